"""The lab's hands on this machine: run a tool, start a process that outlives us, find it again, remove a mount or a tree."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from nodectl.lab.problem import LabProblem

# Every process of a lab carries this variable: found by it, no number that another process may have taken is ever signalled.
MARK = "NODECTL_LAB_PROCESS"
# ip, losetup, mount and tc answer in milliseconds; a machine under heavy load was seen to need 3 s.
TOOL_TIMEOUT_S = 30.0
# Time for a service to end by itself before it is killed.
TERM_S = 3.0
# A killed process goes at once unless the kernel holds it; an unmount of a busy disk took 2 s.
GONE_S = 15.0
# Where losetup, tc and chroot are. An ordinary user's PATH, which `su` and some containers keep, has none of them.
SYSTEM_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")


def search_path() -> str:
    """PATH, and behind it the folders of the system's programs that it lacks."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join([*folders, *(folder for folder in SYSTEM_FOLDERS if folder not in folders)])


def run(argv: Sequence[str], timeout: float = TOOL_TIMEOUT_S, stdin: str = "", env: Mapping[str, str] | None = None) -> str:
    """Standard output of a tool that ended with 0. Raises LabProblem with its words otherwise, or when it hangs."""
    done = attempt(argv, timeout, stdin, env)
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip())[-2000:] or "nothing"
        raise LabProblem(f"{argv[0]} ended with {done.returncode} and said: {said}\n  command: {' '.join(argv)}")
    return done.stdout


def attempt(argv: Sequence[str], timeout: float = TOOL_TIMEOUT_S, stdin: str = "", env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Like run(), for callers to whom a code other than 0 is an answer."""
    full = {**os.environ, "PATH": search_path(), "LC_ALL": "C.UTF-8", **(env or {})}
    try:
        return subprocess.run(list(argv), input=stdin, capture_output=True, text=True, errors="replace", timeout=timeout, env=full, check=False)
    except FileNotFoundError as err:
        raise LabProblem(f"{argv[0]} is not installed (or not in PATH)") from err
    except subprocess.TimeoutExpired as err:
        raise LabProblem(f"{argv[0]} did not end within {timeout:.0f} s\n  command: {' '.join(argv)}") from err


def start(mark: str, argv: Sequence[str], log: Path, env: Mapping[str, str] | None = None) -> None:
    """Starts a process in a session of its own that goes on after this one. Output goes to ``log``; ``mark`` finds it again."""
    full = {**os.environ, "PATH": search_path(), **(env or {}), MARK: mark}
    with log.open("ab") as output:
        subprocess.run(
            ["setsid", "--fork", *argv], stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=full, timeout=TOOL_TIMEOUT_S, check=True
        )


def processes() -> Iterator[int]:
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            yield int(entry)


def marked(mark: str) -> list[int]:
    """Live processes that were started with this mark."""
    wanted = f"{MARK}={mark}".encode()
    return [pid for pid in processes() if wanted in _environ(pid).split(b"\0")]


def _environ(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:  # it ended while we looked, or is a kernel thread
        return b""


def stop(mark: str) -> None:
    """Ends the processes with this mark: asked first, killed after TERM_S. Raises LabProblem when one stays."""
    for pid in marked(mark):
        # A stopped process would keep the request until it is continued.
        send(pid, signal.SIGTERM)
        send(pid, signal.SIGCONT)
    if not until(lambda: not marked(mark), TERM_S):
        kill_all(lambda: marked(mark), f"process {mark}")


def kill_all(find: Callable[[], list[int]], what: str) -> None:
    """Kills whatever ``find`` finds until it finds nothing. Raises LabProblem after GONE_S seconds."""

    def gone() -> bool:
        for pid in find():
            send(pid, signal.SIGKILL)
        return not find()

    if not until(gone, GONE_S):
        raise LabProblem(f"{what} is still there {GONE_S:.0f} s after it was killed (pids {find()}): the kernel holds it, see dmesg")


def send(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def until(condition: Callable[[], bool], seconds: float, pause: float = 0.05) -> bool:
    """Whether ``condition`` became true within ``seconds``."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
    return True


def mount_points(below: Path) -> list[str]:
    """Mount points at or under a folder, the deepest last."""
    root = str(below)
    found = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        target = line.split(" ")[4].encode().decode("unicode_escape")
        if target == root or target.startswith(root.rstrip("/") + "/"):
            found.append(target)
    return sorted(found)


def unmount(path: Path) -> None:
    """Takes away everything mounted at or under ``path``. Lazily: a host that is still dying must not hold us up."""
    for target in reversed(mount_points(path)):
        run(["umount", "--lazy", "--", target])


def remove_tree(path: Path) -> None:
    """Removes a folder and what is in it. Refuses when something is mounted there: that would be somebody's data."""
    if not path.exists() and not path.is_symlink():
        return
    mounted = mount_points(path)
    if mounted:
        raise LabProblem(f"{path} was not removed: {mounted[0]} is mounted there. Unmount it (umount {mounted[0]}), then run `nodectl lab down` again")
    shutil.rmtree(path)
