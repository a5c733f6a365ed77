"""Where vault passwords come from: a file, a program, or a question; given by options or by Ansible's own environment variables."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from nodectl.diagnostics.model import Collector
from nodectl.lang.vault import DEFAULT_LABEL, Vault
from nodectl.wire.secret import Secret

# s; a password program may wait for a key that has to be touched by a person.
PROGRAM_LIMIT = 120.0
PROMPT = ("prompt", "prompt_ask_vault_pass")

VAULT_OPTIONS = (
    click.option("--vault-password-file", "vault_files", type=click.Path(path_type=Path), multiple=True, metavar="FILE",
                 help="A vault password: the file's content, or what it prints where it is executable. Repeatable."),
    click.option("--vault-id", "vault_ids", multiple=True, metavar="LABEL@SOURCE",
                 help="A vault password with its label; SOURCE is a file, a program, or `prompt`. Repeatable."),
    click.option("-J", "--ask-vault-pass", "ask_vault", is_flag=True, help="Ask for the vault password."),
)  # fmt: skip


def read_vault(given: Mapping[str, Any], found: Collector) -> Vault:
    """The passwords that the options name; the environment counts where no option does. Mistakes go into ``found``."""
    wanted = [(DEFAULT_LABEL, str(path)) for path in given.get("vault_files", ())]
    wanted += [_split(text) for text in given.get("vault_ids", ())]
    wanted += [(DEFAULT_LABEL, PROMPT[0])] if given.get("ask_vault") else []
    passwords: dict[str, list[Secret]] = {}
    for label, source in wanted or _from_environment():
        password = _prompted(label) if source in PROMPT else _from_file(label, Path(source).expanduser(), found)
        if password is not None:
            passwords.setdefault(label, []).append(password)
    return Vault(passwords)


def _from_environment() -> list[tuple[str, str]]:
    listed = os.environ.get("ANSIBLE_VAULT_IDENTITY_LIST", "")
    wanted = [_split(text.strip()) for text in listed.split(",") if text.strip()]
    single = os.environ.get("ANSIBLE_VAULT_PASSWORD_FILE", "")
    return wanted + ([(DEFAULT_LABEL, single)] if single else [])


def _split(text: str) -> tuple[str, str]:
    """`label@source`; without an @ the whole is the source."""
    label, at, source = text.partition("@")
    return (label or DEFAULT_LABEL, source) if at else (DEFAULT_LABEL, text)


def _prompted(label: str) -> Secret:
    words = "Vault password" if label == DEFAULT_LABEL else f"Vault password ({label})"
    return Secret(click.prompt(words, hide_input=True, err=True))


def _from_file(label: str, path: Path, found: Collector) -> Secret | None:
    try:
        text = _printed(label, path) if os.access(path, os.X_OK) and path.is_file() else path.read_text("utf-8")
    except (OSError, UnicodeDecodeError, subprocess.SubprocessError) as error:
        why = error.strerror if isinstance(error, OSError) else _ended(error)
        found.error("E405", f"vault password {path}: {why}", None, help="give a file that you may read, or a program that prints the password")
        return None
    if not text.strip():
        found.error("E405", f"vault password {path}: it is empty", None, help="put the password into its first line")
        return None
    return Secret(text.strip())


def _printed(label: str, path: Path) -> str:
    """A program whose name ends in -client is asked for a label, as Ansible does. Its complaints go to the terminal."""
    argv: Sequence[str] = [str(path.absolute()), *(["--vault-id", label] if path.stem.endswith("-client") else [])]
    return subprocess.run(argv, stdout=subprocess.PIPE, text=True, timeout=PROGRAM_LIMIT, check=True).stdout


def _ended(error: Exception) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        return f"the program ended with status {error.returncode}"
    if isinstance(error, subprocess.TimeoutExpired):
        return f"the program did not end within {PROGRAM_LIMIT:.0f} s"
    return "it is not UTF-8 text"
