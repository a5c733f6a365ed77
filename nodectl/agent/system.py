"""The only hands of the modules: everything that touches the node goes through one System, made anew for each step."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import shutil
import stat
import sys
import time
from typing import BinaryIO, Callable, List, Mapping, NamedTuple, Optional, Sequence, Union

from nodectl.agent.contract import Failed
from nodectl.agent.processes import Completed, Stopper, execute

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# The login's variables that change what a program does in ways that no playbook says.
_NOT_PASSED_ON = re.compile(r"^(PYTHON.*|BASH_ENV|ENV|LC_.*|LANG|LANGUAGE|IFS|CDPATH|LD_PRELOAD|LD_LIBRARY_PATH|OLDPWD|PWD|SHLVL|_)$")
_OCTAL = re.compile(r"\\([0-7]{3})")
# stat and one entry of the folder: reading all of a large bucket is not needed to see that it answers.
_PROBE = "import os,sys\nos.stat(sys.argv[1])\nwith os.scandir(sys.argv[1]) as found: next(found, None)"


class Mount(NamedTuple):
    """One line of /proc/self/mountinfo. ``options`` holds the mount's own and the filesystem's; ``device`` is "major:minor"."""

    source: str
    target: str
    fstype: str
    options: str
    root: str
    device: str


def _quiet(_text: str) -> None:
    return None


class System:
    """Runs programs, reads and writes files, for one step.

    ``environment`` is added to the fixed one; ``blobs`` maps a name to bytes that came with the step; ``progress`` takes a
    line for the person who waits. ``stopper`` is how another thread ends the step; ``began`` is when it began.
    """

    def __init__(
        self, environment: Optional[Mapping[str, str]] = None, blobs: Optional[Mapping[str, BinaryIO]] = None,
        progress: Callable[[str], None] = _quiet, stopper: Optional[Stopper] = None,
    ) -> None:
        self.environment = dict(base_environment(os.environ), **(environment or {}))
        self.stopper = stopper or Stopper()
        self.began = time.time()
        self._blobs = dict(blobs or {})
        self._progress = progress

    def run(
        self, argv: Sequence[str], stdin: bytes = b"", timeout: Optional[float] = 60.0, env: Optional[Mapping[str, str]] = None, cwd: str = "",
    ) -> Completed:
        """Run a program to its end; rc != 0 is no error here. ``timeout`` in seconds; None leaves only the step's own limit.

        Raises Failed when the program is not there, the time passed or the step was stopped: then the whole process group was ended.
        ``cwd`` is "/" when not given; "." is the folder in which the login began.
        """
        environment = dict(self.environment, **(env or {}))
        program = self.which(argv[0]) if "/" not in argv[0] else argv[0]
        if program is None:
            raise Failed(f"program not found: {argv[0]} (looked in {self.environment['PATH']})", rc=2, cmd=list(argv))
        return execute([program, *argv[1:]], stdin, timeout, environment, cwd, self.stopper)

    def which(self, name: str) -> Optional[str]:
        """The full path of a program, or None."""
        for folder in [""] if "/" in name else self.environment["PATH"].split(":"):
            path = os.path.join(folder, name)
            if os.path.isfile(path) and os.access(path, os.X_OK):
                return path
        return None

    def sleep(self, seconds: float) -> None:
        """Wait; raises Failed at once when the step is stopped. Modules never call time.sleep."""
        self.stopper.event.wait(seconds)
        self.stopper.check()

    def read(self, path: str) -> Optional[bytes]:
        """The whole file; None when there is none. Raises Failed when it is there and cannot be read."""
        try:
            with open(path, "rb") as file:
                return file.read()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise Failed(f"cannot read {path}: {error.strerror}") from None

    def stat(self, path: str, follow: bool = False) -> Optional[os.stat_result]:
        """None when nothing is there (also: a dangling link when followed)."""
        try:
            return os.stat(path) if follow else os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise Failed(f"cannot look at {path}: {error.strerror}") from None

    def write_atomic(
        self, path: str, data: Union[bytes, BinaryIO], mode: Optional[int] = None, uid: Optional[int] = None, gid: Optional[int] = None, follow: bool = True,
    ) -> None:
        """Replace a file: temporary file beside it, fsync, rename, so that no reader ever sees half of it.

        ``data`` is bytes, or a binary file that is read from where it stands.
        Mode and owner of the old file stay where not given, its extended attributes (SELinux label, ACL) too; a new file is 0644.
        A symlink is followed, or replaced by the file with ``follow=False``. Raises Failed.
        """
        target = os.path.realpath(path) if follow else path
        old = self.stat(target)
        if old is not None and stat.S_ISDIR(old.st_mode):
            raise Failed(f"cannot write {path}: it is a directory")
        kept = old if old is not None and stat.S_ISREG(old.st_mode) else None
        try:
            with _Beside(target) as temporary:
                _fill(temporary.handle, data, kept, target, mode, uid, gid)
                os.rename(temporary.path, target)
            _sync_folder(os.path.dirname(target) or ".")
        except OSError as error:
            raise Failed(f"cannot write {path}: {_why(error)}") from None

    def mounts(self) -> List[Mount]:
        """The mount table as the kernel has it, oldest first: of two on one target the last one is seen."""
        with open("/proc/self/mountinfo", "rb") as file:
            return parse_mountinfo(file.read().decode("utf-8", "surrogateescape"))

    def probe(self, path: str, timeout: float) -> str:
        """ "" when the folder ``path`` answered within ``timeout`` seconds, else the reason. A dead FUSE or NFS mount never hangs it."""
        try:
            done = self.run([sys.executable or "python3", "-I", "-S", "-c", _PROBE, path], timeout=timeout)
        except Failed as failed:
            self.stopper.check()
            return f"{path} did not answer within {timeout:g} s" if "did not end" in failed.msg else failed.msg
        return "" if done.rc == 0 else (done.stderr.strip().splitlines() or [f"exit code {done.rc}"])[-1]

    def blob(self, name: str) -> BinaryIO:
        """The bytes that came with the step under ``name``, from their start."""
        if name not in self._blobs:
            raise Failed(f"nodectl sent no content named '{name}' with this step (a bug of nodectl)")
        file = self._blobs[name]
        file.seek(0)
        return file

    def hold(self, name: str, file: BinaryIO) -> BinaryIO:
        """Bytes that a module fetched itself, for as long as its step goes on: ``held`` finds them again."""
        self._blobs[name] = file
        return file

    def held(self, name: str) -> Optional[BinaryIO]:
        return self._blobs.get(name)

    def progress(self, text: str) -> None:
        """A line for the person who waits; may be called often."""
        self._progress(text)


def base_environment(login: Mapping[str, str]) -> "dict[str, str]":
    """What programs see: the login's variables (proxies, HOME), but PATH and language fixed so that output can be parsed."""
    kept = {key: value for key, value in login.items() if not _NOT_PASSED_ON.match(key)}
    kept.update(PATH=PATH, LC_ALL="C.UTF-8")
    return kept


def parse_mountinfo(text: str) -> List[Mount]:
    """Lines of /proc/self/mountinfo; blanks and other characters come back from their octal form."""
    mounts = []
    for line in text.splitlines():
        left, _, right = line.partition(" - ")
        first, last = left.split(" "), right.split(" ")
        if len(first) < 6 or len(last) < 3:
            continue
        options = ",".join(dict.fromkeys(f"{first[5]},{last[2]}".split(",")))
        mounts.append(Mount(_unescape(last[1]), _unescape(first[4]), last[0], options, _unescape(first[3]), first[2]))
    return mounts


def _unescape(text: str) -> str:
    return _OCTAL.sub(lambda found: chr(int(found.group(1), 8)), text)


class _Beside:
    """A file beside ``target`` with a name that the next writer finds again, locked while it is ours; gone at the end.

    A writer that was killed leaves one without a lock: the next one takes it away. So nothing is left for ever, and nothing has to be searched for.
    """

    # Writers of one file at the same time, each with a name of its own.
    MOST = 16

    def __init__(self, target: str) -> None:
        folder, name = os.path.split(target)
        start = os.path.join(folder or ".", "." + os.fsdecode(os.fsencode(name)[:200]) + ".nodectl-")
        for number in range(self.MOST):
            self.path = f"{start}{number}"
            if self._taken():
                return
        raise OSError(errno.EEXIST, f"{self.MOST} others are writing it")

    def _taken(self) -> bool:
        """Made and locked; a name of somebody who lives is left alone."""
        try:
            self.handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            if not _abandoned(self.path):
                return False
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.path)
            return self._taken()
        with contextlib.suppress(OSError):  # a filesystem without locks: nobody takes another's file away then either
            fcntl.flock(self.handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if self._ours():
            return True
        os.close(self.handle)  # it was taken for abandoned before the lock was there
        return False

    def _ours(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self.handle), os.lstat(self.path))
        except OSError:
            return False

    def __enter__(self) -> "_Beside":
        return self

    def __exit__(self, *_error: object) -> None:
        if self._ours():  # it was not renamed; after a rename the name may be another writer's by now
            with contextlib.suppress(OSError):
                os.unlink(self.path)
        os.close(self.handle)


def _abandoned(path: str) -> bool:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except OSError:
        return False
    finally:
        os.close(handle)


def _fill(
    handle: int, data: Union[bytes, BinaryIO], old: Optional[os.stat_result], old_path: str, mode: Optional[int], uid: Optional[int], gid: Optional[int],
) -> None:
    with os.fdopen(handle, "wb", closefd=False) as file:
        if isinstance(data, bytes):
            file.write(data)
        else:
            shutil.copyfileobj(data, file, 1024 * 1024)
        file.flush()
        owner = (uid if uid is not None else old.st_uid if old else -1, gid if gid is not None else old.st_gid if old else -1)
        if owner != (-1, -1):
            os.fchown(handle, *owner)
        if old is not None:
            _copy_attributes(old_path, handle)
        os.fchmod(handle, mode if mode is not None else stat.S_IMODE(old.st_mode) if old else 0o644)
        os.fsync(handle)


def _copy_attributes(source: str, target: int) -> None:
    """SELinux label, ACL, user attributes. A filesystem without them, or a label we may not set, is no reason to fail."""
    with contextlib.suppress(OSError):
        for name in os.listxattr(source):
            with contextlib.suppress(OSError):
                os.setxattr(target, name, os.getxattr(source, name))


def _sync_folder(folder: str) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):  # some network filesystems cannot sync a folder
            os.fsync(handle)
    finally:
        os.close(handle)


def _why(error: OSError) -> str:
    hints = {
        errno.EBUSY: "the file is a mount point of its own (bind mount) and cannot be replaced",
        errno.EROFS: "the filesystem is read-only",
        errno.ENOSPC: "no space left on the filesystem",
        errno.ENOENT: "the folder does not exist",
        errno.EPERM: "not permitted (not root, or the file is immutable: lsattr shows an 'i')",
    }
    return hints.get(error.errno or 0, error.strerror or str(error))
