"""One thing that happens to an object store's mount while somebody writes, as a file of object_cases/: read, played, and held to the one law.

The law: what a writer was told is safe (its close came back without an error) is in the store byte for byte in the end, and reads back so
through the mount. Steps, in the order of the file:

    write: NAME, KIB         a file of random bytes; must succeed                refused: NAME     must not succeed
    attempt: NAME, KIB       either outcome, if it is the truth                  many: COUNT       small files
    begin: NAME, KIB         opened, half of it written, and left open           end: NAME         the rest and the close; either outcome
    move: FROM, TO           drop: NAME
    fault: NAME, VALUE       of the lab's store; lift: NAME                      signal: NAME      to the daemon
    stop, start, restart, begin_start   the unit (begin_start does not wait)     fill: KIB         the cache's disk, down to so much
    unmount                  by hand, behind the unit's back
    poweroff, cut, boot      of the whole host: shut down, without power (the lab's kernel stays, and keeps what it has not written yet), on again
    here: NAME               the store has the file now                          left: NAME        the journal named it as not uploaded
    down                     the mount point is bare and closed                  up: SECONDS       the mount answers again by itself
"""

from __future__ import annotations

import hashlib
import shlex
from pathlib import Path
from typing import Any

import yaml

from nodectl.lab import hosts
from nodectl.lab.plan import LAB_USER
from tests.roles.stage import Stages, until

FOLDER = Path(__file__).parent / "object_cases"
KEYS = {"about", "mount", "steps"}
# A store that was away is asked again by rclone after a minute at the most; a restarted one at once.
ARRIVAL_S = 90.0
# Units that wait for their uploads have 2 s here; systemd ends the rest within a few more.
SHUTDOWN_S = 60.0
# Who opens a file while the store is away, in a folder that was not listed for ten seconds, waits until rclone gives up listing it.
WRITE_S = 150.0
WRITER = """\
import os, sys, time
path, half, result = sys.argv[1], int(sys.argv[2]), sys.argv[3]
first, second = os.urandom(half), os.urandom(half)
try:
    with open(path, "wb", buffering=0) as file:
        file.write(first)
        open(result + ".begun", "w").close()
        while not os.path.exists(result + ".go"): time.sleep(0.05)
        file.write(second)
    import hashlib
    told = hashlib.sha256(first + second).hexdigest()
except OSError as error:
    told = "refused: %s" % error
with open(result + ".part", "w") as file: file.write(told)
os.rename(result + ".part", result)
"""


def case_files() -> list[Path]:
    return sorted(FOLDER.glob("*.yaml"))


class ObjectCase:
    """A case on a host whose mounts are up; ``buckets`` maps each mount point to where its files lie in the store's folder."""

    def __init__(self, stages: Stages, path: Path, buckets: dict[str, str]) -> None:
        data = yaml.safe_load(path.read_text())
        assert set(data) == KEYS, f"{path.name}: has {sorted(data)}; expected {sorted(KEYS)}"
        self.stages, self.name, self.mount, self.steps = stages, path.stem, str(data["mount"]), data["steps"]
        self.unit = f"nodectl-cache-{self.mount.strip('/')}.service"
        self.store = stages.lab.dir / "store" / buckets[self.mount]
        self.safe: dict[str, str] = {}
        self.gone: set[str] = set()
        self.since = ""

    def play(self) -> None:
        """All steps, then the law. Whatever happened, the host is as before."""
        self.since = self.stages.shell("journalctl --show-cursor -n 0 -q | sed -n 's/^-- cursor: //p'").strip()
        try:
            for step in self.steps:
                word, value = next(iter(step.items())) if isinstance(step, dict) else (step, "")
                getattr(self, f"_{word}")(*[part.strip() for part in str(value).split(",")] if value != "" else ())
        finally:
            self._restore()
        self._hold()

    def _restore(self) -> None:
        self.stages.lab.lift_all()
        self.stages.shell(f"rm -f /scratch/filler; systemctl reset-failed {self.unit} 2>/dev/null; systemctl start {self.unit}")

    def _hold(self) -> None:
        for name, content in self.safe.items():
            until(lambda name=name, content=content: self._stored(name) == content, ARRIVAL_S, f"{name} is in the store byte for byte")  # type: ignore[misc]
        for name in self.gone:
            assert not (self.store / name).exists(), f"{name} was removed, and is in the store"
        if self.safe:
            names = " ".join(shlex.quote(f"{self.mount}/{name}") for name in self.safe)
            back = self._as_user(f"sha256sum -z {names}").stdout.split("\0")
            assert [line.split(" ")[0] for line in back if line] == list(self.safe.values())
        self._as_user(f"rm -f {self.mount}/{self.name}-*")

    def _path(self, name: str) -> str:
        return f"{self.name}-{name}"

    def _as_user(self, line: str) -> Any:
        return self.stages.lab.inside(self.stages.host, "runuser", "-u", LAB_USER, "--", "sh", "-c", line, timeout=WRITE_S)

    def _stored(self, name: str) -> str:
        path = self.store / name
        return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""

    def _try(self, name: str, kib: str) -> str:
        """The file's sha256, "" when the writer was told no."""
        path = shlex.quote(f"{self.mount}/{self._path(name)}")
        done = self._as_user(f"head -c {kib}K /dev/urandom > /tmp/case && cat /tmp/case > {path} && sha256sum < /tmp/case")
        return str(done.stdout).split(" ")[0] if done.returncode == 0 else ""

    def _write(self, name: str, kib: str = "300") -> None:
        content = self._try(name, kib)
        assert content, f"{name} was refused"
        self.safe[self._path(name)] = content

    def _refused(self, name: str) -> None:
        assert self._try(name, "64") == "", f"{name} was taken"
        self.gone.add(self._path(name))

    def _attempt(self, name: str, kib: str) -> None:
        """Either outcome, if it is the truth."""
        content = self._try(name, kib)
        if content:
            self.safe[self._path(name)] = content

    def _begin(self, name: str, kib: str = "1024") -> None:
        writer = f"rm -f /tmp/case.*; exec setsid python3 -c {shlex.quote(WRITER)} {self.mount}/{self._path(name)} {int(kib) * 512} /tmp/case.end"
        self._as_user(f"({writer}) >/dev/null 2>&1 </dev/null &")
        until(lambda: self._as_user("test -e /tmp/case.end.begun").returncode == 0, 10, f"{name} is begun")

    def _end(self, name: str) -> None:
        self._as_user("touch /tmp/case.end.go")
        until(lambda: self._as_user("test -e /tmp/case.end").returncode == 0, 60, f"the writer of {name} came to its end")
        told = self._as_user("cat /tmp/case.end").stdout
        if not told.startswith("refused"):
            self.safe[self._path(name)] = told

    def _many(self, count: str) -> None:
        names = [self._path(f"{number:03}") for number in range(int(count))]
        assert self._as_user(f"cd {self.mount} && for n in {' '.join(names)}; do echo $n > $n; done").returncode == 0
        self.safe.update({name: hashlib.sha256(f"{name}\n".encode()).hexdigest() for name in names})

    def _move(self, old: str, new: str) -> None:
        assert self._as_user(f"mv {self.mount}/{self._path(old)} {self.mount}/{self._path(new)}").returncode == 0
        self.safe[self._path(new)] = self.safe.pop(self._path(old))
        self.gone.add(self._path(old))

    def _drop(self, name: str) -> None:
        assert self._as_user(f"rm {self.mount}/{self._path(name)}").returncode == 0
        del self.safe[self._path(name)]
        self.gone.add(self._path(name))

    def _fault(self, name: str, value: str = "") -> None:
        self._as_user(f"ls {self.mount}")
        self.stages.lab.fault("", name, value)

    def _lift(self, name: str) -> None:
        self.stages.lab.lift("", name)

    def _systemctl(self, *words: str) -> None:
        self.stages.inside("systemctl", *words, self.unit)

    def _stop(self) -> None:
        self._systemctl("stop")

    def _start(self) -> None:
        self._systemctl("start")

    def _restart(self) -> None:
        self._systemctl("restart")

    def _unmount(self) -> None:
        self.stages.inside("umount", self.mount)

    def _poweroff(self) -> None:
        lab, host = self.stages.lab, self.stages.host
        self.stages.close()
        lab.inside(host, "systemctl", "poweroff")
        until(lambda: hosts.leader(lab.state, host) == 0, SHUTDOWN_S, "the host is shut down")
        self._cut()

    def _cut(self) -> None:
        self.stages.close()
        self.stages.lab.fault(self.stages.host, "down")

    def _boot(self) -> None:
        self.stages.lab.lift(self.stages.host, "down")

    def _begin_start(self) -> None:
        self._systemctl("start", "--no-block")

    def _signal(self, name: str) -> None:
        self._systemctl("kill", "--kill-who=main", f"--signal={name}")

    def _fill(self, kib: str) -> None:
        free = f"$(( $(stat -f -c '%a*%S' /scratch) - {kib} * 1024 ))"
        self.stages.shell(f"fallocate -l {free} /scratch/filler && sync -f /scratch")

    def _here(self, name: str) -> None:
        assert self._stored(self._path(name)) == self.safe[self._path(name)], f"{name} is not in the store yet"

    def _left(self, name: str) -> None:
        said = self.stages.inside("journalctl", "-u", self.unit, "-o", "cat", "--no-pager", f"--after-cursor={self.since}")
        assert self._path(name) in said, said

    def _down(self) -> None:
        """A client that goes on trying without its store may be seen for a moment, each time."""
        lab, host = self.stages.lab, self.stages.host
        look = f"! mountpoint -q {self.mount} && stat -c '%a %U' {self.mount}"
        until(lambda: lab.inside(host, "sh", "-c", look).stdout == "0 root\n", 10, f"{self.mount} is bare and closed")

    def _up(self, seconds: str) -> None:
        until(lambda: self._as_user(f"ls {self.mount} && mountpoint -q {self.mount}").returncode == 0, float(seconds), f"{self.mount} answers again")
