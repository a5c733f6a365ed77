"""nodectl vault: files and values that only their password opens, as ansible-vault writes them."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec

import click

from nodectl.cli.options import vault_options
from nodectl.cli.vault_passwords import read_vault
from nodectl.diagnostics.model import Collector, Diagnostic, Mistakes
from nodectl.lang.vault import DEFAULT_LABEL, Vault, VaultError, encrypt, is_encrypted, label_of
from nodectl.wire.secret import Secret

Given = ParamSpec("Given")
files_argument = click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
label_option = click.option("--encrypt-vault-id", "label", metavar="LABEL", help="Encrypt with the password of this label.")


@click.group("vault")
def command() -> None:
    """Files and values that only their password opens; the formats are ansible-vault's. Passwords come as for a run."""


def _no_traceback(function: Callable[Given, int]) -> Callable[Given, int]:
    @wraps(function)
    def told(*args: Given.args, **kwargs: Given.kwargs) -> int:
        try:
            return function(*args, **kwargs)
        except (VaultError, OSError) as error:
            hint = error.hint if isinstance(error, VaultError) else ""
            said = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) and error.filename else str(error)
            raise Mistakes([Diagnostic("E105", said, help=hint)]) from None

    return told


@command.command("encrypt")
@files_argument
@label_option
@vault_options
@_no_traceback
def encrypt_files(files: tuple[Path, ...], label: str | None, **given: Any) -> int:
    """Encrypt FILES in place. A file that is encrypted already is refused, and then none is touched."""
    name, password = _sealing(_passwords(given), label)
    texts = {path: path.read_bytes() for path in files}
    _refuse([f"{path} is encrypted already" for path, data in texts.items() if is_encrypted(data.decode("utf-8", "replace"))])
    for path, data in texts.items():
        _replace(path, encrypt(data, password, name).encode())
    return 0


@command.command("decrypt")
@files_argument
@vault_options
@_no_traceback
def decrypt_files(files: tuple[Path, ...], **given: Any) -> int:
    """Decrypt FILES in place. Where one cannot be opened, none is touched."""
    for path, data in _opened(files, _passwords(given)).items():
        _replace(path, data)
    return 0


@command.command("view")
@files_argument
@vault_options
@_no_traceback
def view(files: tuple[Path, ...], **given: Any) -> int:
    """Show what FILES hold; nothing is written."""
    for data in _opened(files, _passwords(given)).values():
        click.echo(data, nl=not data.endswith(b"\n"))
    return 0


@command.command("rekey")
@files_argument
@click.option("--new-vault-id", metavar="LABEL@SOURCE", help="The new password and its label.")
@click.option("--new-vault-password-file", type=click.Path(path_type=Path), metavar="FILE", help="The new password.")
@vault_options
@_no_traceback
def rekey(files: tuple[Path, ...], new_vault_id: str | None, new_vault_password_file: Path | None, **given: Any) -> int:
    """Encrypt FILES anew with another password. Where one cannot be opened, none is touched."""
    fresh = {"vault_ids": [new_vault_id] if new_vault_id else [], "vault_files": [new_vault_password_file] if new_vault_password_file else []}
    if not any(fresh.values()):
        raise click.UsageError("give the new password with --new-vault-id or --new-vault-password-file")
    opened = _opened(files, _passwords(given))
    name, password = _sealing(_passwords(fresh), None)
    for path, data in opened.items():
        _replace(path, encrypt(data, password, name).encode())
    return 0


@command.command("edit")
@click.argument("file", type=click.Path(path_type=Path))
@vault_options
@_no_traceback
def edit(file: Path, **given: Any) -> int:
    """Open FILE in $EDITOR and encrypt it again with the password that opened it. Nothing is written where nothing was changed."""
    vault = _passwords(given)
    before = _opened((file,), vault)[file]
    after = _edited(before, file.suffix)
    if after != before:
        name, password = _sealing(vault, label_of(file.read_text("utf-8")))
        _replace(file, encrypt(after, password, name).encode())
    return 0


@command.command("encrypt-string")
@click.argument("value", required=False)
@click.option("-n", "--name", metavar="NAME", help="The variable's name: the output is then a line of YAML.")
@label_option
@vault_options
@_no_traceback
def encrypt_string(value: str | None, name: str | None, label: str | None, **given: Any) -> int:
    """Print VALUE encrypted, to be pasted into YAML. Without VALUE it is read from standard input, so that no shell history keeps it."""
    label_name, password = _sealing(_passwords(given), label)
    text = value if value is not None else sys.stdin.read()
    lines = encrypt(text.encode(), password, label_name).splitlines()
    click.echo("\n".join([f"{name + ': ' if name else ''}!vault |", *(f"  {line}" for line in lines)]))
    return 0


def _passwords(given: dict[str, Any]) -> Vault:
    found = Collector()
    vault = read_vault(given, found)
    found.stop_if_wrong()
    return vault


def _sealing(vault: Vault, label: str | None) -> tuple[str, Secret]:
    """The label and password to encrypt with. Raises VaultError, UsageError where it is not clear which."""
    labels = list(vault.passwords)
    if not labels:
        raise VaultError("no vault password was given", "give --vault-password-file FILE, --vault-id LABEL@FILE or --ask-vault-pass")
    if label is None and len(labels) > 1:
        raise click.UsageError(f"several passwords were given ({', '.join(labels)}): say which with --encrypt-vault-id")
    name = label if label in vault.passwords else labels[0] if label in (None, DEFAULT_LABEL) and len(labels) == 1 else None
    if name is None:
        raise click.UsageError(f"no password with the label '{label}' was given; given are {', '.join(labels)}")
    return name, vault.passwords[name][0]


def _opened(files: tuple[Path, ...], vault: Vault) -> dict[Path, bytes]:
    """All of them, or Mistakes that name each one that stays closed."""
    opened: dict[Path, bytes] = {}
    problems: list[Diagnostic] = []
    for path in dict.fromkeys(files):
        text = path.read_bytes().decode("utf-8", "replace")
        if not is_encrypted(text):
            problems.append(Diagnostic("E105", f"{path} is not encrypted"))
            continue
        try:
            opened[path] = vault.open(text)
        except VaultError as error:
            problems.append(Diagnostic("E105", f"{path}: {error}", help=error.hint))
    if problems:
        raise Mistakes(problems)
    return opened


def _refuse(problems: list[str]) -> None:
    if problems:
        raise Mistakes([Diagnostic("E105", problem) for problem in problems])


def _replace(path: Path, data: bytes) -> None:
    """The whole new file or the whole old one, with the old one's mode; clear text is never wider open than it was."""
    mode = path.stat().st_mode & 0o777
    with tempfile.NamedTemporaryFile(dir=path.resolve().parent, prefix=f".{path.name}.", delete=False) as fresh:
        try:
            fresh.write(data)
            fresh.flush()
            os.fsync(fresh.fileno())
            os.chmod(fresh.name, mode)
            os.replace(fresh.name, path.resolve())
        except OSError:
            os.unlink(fresh.name)
            raise


def _edited(before: bytes, suffix: str) -> bytes:
    """What the editor left, from a file that only the user can read and that is gone afterwards."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    folder = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # clear text should not reach a disk
    with tempfile.TemporaryDirectory(dir=folder, prefix="nodectl-vault-") as place:
        path = Path(place) / f"clear{suffix}"
        path.touch(mode=0o600)
        path.write_bytes(before)
        ended = subprocess.run([*editor.split(), str(path)], check=False).returncode
        if ended != 0:
            raise VaultError(f"the editor ({editor}) ended with status {ended}: nothing was written")
        return path.read_bytes()
