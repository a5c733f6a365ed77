"""A file's new content put in place: checked by a program first, the old one kept if wished. Shared by the modules that edit files."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shlex
import shutil
import stat
import time
from typing import Any, BinaryIO, Dict, Optional, Union

from nodectl.agent import attributes
from nodectl.agent.contract import Args, Failed
from nodectl.agent.own_folder import own_folder
from nodectl.agent.system import System
from nodectl.wire.params import Param

# As Ansible: above this a person does not read a diff any more (bytes).
DIFF_LIMIT = 104448
# A check of a configuration (sshd -t, visudo -c, nginx -t) takes under a second; one that resolves dead names takes a minute.
VALIDATE_LIMIT = 120.0
CHUNK = 1024 * 1024

PARAMS: Dict[str, Param] = {
    "backup": Param("bool", default=False, help="keep the old file beside it, with the time in its name"),
    "validate": Param(help="a command with %s in place of the new file; when it fails, nothing is changed"),
}


def put(system: System, path: str, data: Union[bytes, BinaryIO], args: Args, ids: Dict[str, Any], there: Dict[str, Any], follow: bool = True) -> Optional[str]:
    """Validate, back up, replace with owner and mode as wished. ``there`` is ``attributes.look`` of the old file.

    Returns the backup's path, or None. Raises Failed; then the old file is as it was.
    """
    attributes.known(args, ids)
    if not os.path.isdir(os.path.dirname(path) or "."):
        raise Failed(f"Destination directory {os.path.dirname(path)} does not exist", path=path)
    if args.get("validate"):
        _validate(system, args["validate"], data)
    exists = there["kind"] == "file"
    backup = keep(path) if args.get("backup") and exists else None
    mode = attributes.wished_mode(args.get("mode"), there["mode"] if exists else 0o644, directory=False)
    if not isinstance(data, bytes):
        data.seek(0)
    system.write_atomic(path, data, mode=mode, uid=ids["uid"], gid=ids["gid"], follow=follow)
    return backup


def _validate(system: System, command: str, data: Union[bytes, BinaryIO]) -> None:
    if "%s" not in command:
        raise Failed(f"validate must contain %s: {command}")
    with own_folder() as folder:  # the content may be secret
        trial = os.path.join(folder, "candidate")
        with open(trial, "wb") as file:
            if isinstance(data, bytes):
                file.write(data)
            else:
                data.seek(0)
                shutil.copyfileobj(data, file, CHUNK)
        os.chmod(trial, 0o600)
        done = system.run(shlex.split(command.replace("%s", trial)), timeout=VALIDATE_LIMIT)
        if done.rc != 0:
            raise Failed(f"failed to validate, nothing was changed: {(done.stderr or done.stdout).strip()}", rc=done.rc, stdout=done.stdout, stderr=done.stderr)


def keep(path: str) -> str:
    """Copy ``path`` to a name beside it, with owner, mode and times; the name says when."""
    name = f"{path}.{os.getpid()}.{time.strftime('%Y-%m-%d@%H:%M:%S')}~"
    shutil.copy2(path, name)
    old = os.stat(path)
    with contextlib.suppress(PermissionError):  # not root: the copy is ours
        os.chown(name, old.st_uid, old.st_gid)
    os.chmod(name, stat.S_IMODE(old.st_mode))
    return name


def sha1(data: Union[bytes, BinaryIO]) -> str:
    """The checksum that Ansible returns; it tells whether content differs, nothing rests on it for safety."""
    digest = hashlib.sha1()  # noqa: S324
    if isinstance(data, bytes):
        digest.update(data)
        return digest.hexdigest()
    data.seek(0)
    for piece in iter(lambda: data.read(CHUNK), b""):
        digest.update(piece)
    data.seek(0)
    return digest.hexdigest()


def sha1_of(path: str) -> Optional[str]:
    """Of a file on the node; None where there is no regular file."""
    if not os.path.isfile(path):
        return None
    with open(path, "rb") as file:
        return sha1(file)


def shown(data: Optional[bytes]) -> str:
    """Content as text for `--diff`; large or binary content as one line that says so."""
    if data is None:
        return ""
    if len(data) > DIFF_LIMIT:
        return f"(content of more than {DIFF_LIMIT} bytes is not shown)\n"
    if b"\0" in data:
        return "(binary content is not shown)\n"
    return data.decode("utf-8", "replace")


def start_of(file: BinaryIO) -> bytes:
    """As much as ``shown`` needs."""
    file.seek(0)
    data = file.read(DIFF_LIMIT + 1)
    file.seek(0)
    return data
