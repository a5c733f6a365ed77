"""A private mount namespace to run modules in (`inside`), and loop devices on images (`disk`)."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
_ETC = "mkdir -p {d}/up {d}/work && mount -t tmpfs tmpfs {d} && mkdir {d}/up {d}/work && mount -t overlay -o lowerdir=/etc,upperdir={d}/up,workdir={d}/work overlay /etc && : > /etc/fstab"


class Inside:
    """The other end of inside.py."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        script = f"{_ETC.format(d=folder / 'etc')} && exec {sys.executable} {Path(__file__).with_name('inside.py')} {ROOT}"
        self.process = subprocess.Popen(["unshare", "--mount", "--propagation", "private", "sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def _ask(self, order: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline() or '{"failed": true, "msg": "the inside ended"}')
        return answer

    def step(self, module: str, args: dict[str, Any], check: bool = False) -> dict[str, Any]:
        """The outcome of one module as JSON."""
        return self._ask({"module": module, "args": args, "check": check})

    def dies(self, module: str, args: dict[str, Any], number: int, moment: str) -> str:
        """The act at which the agent was killed, as inside.dies says it."""
        return str(self._ask({"module": module, "args": args, "check": False, "dies": {"number": number, "moment": moment}})["said"])

    def sh(self, command: str) -> str:
        """stdout of a shell line; fails the test when it fails."""
        answer = self._ask({"sh": command})
        assert answer.get("rc") == 0, f"{command}: {answer}"
        return str(answer["out"])

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(timeout=20)


@pytest.fixture
def inside(tmp_path: Path) -> Iterator[Inside]:
    if os.geteuid() != 0:
        pytest.skip("needs root: mounts in a private namespace")
    (tmp_path / "etc").mkdir()
    node = Inside(tmp_path)
    yield node
    node.close()


class LoopDisk:
    """An image on a loop device; ``serial`` is the image's base name."""

    def __init__(self, image: Path) -> None:
        self.image = image
        self.serial = image.stem
        self.path = subprocess.run(["losetup", "--find", "--show", str(image)], check=True, capture_output=True, text=True).stdout.strip()

    @property
    def name(self) -> str:
        return os.path.basename(self.path)

    def sha256(self) -> str:
        subprocess.run(["blockdev", "--flushbufs", self.path], check=True)
        return hashlib.sha256(self.image.read_bytes()).hexdigest()

    def run(self, *argv: str) -> None:
        subprocess.run([part.replace("DEV", self.path) for part in argv], check=True, capture_output=True, stdin=subprocess.DEVNULL)


class DiskMaker:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made: list[LoopDisk] = []

    def __call__(self, serial: str, mebibytes: int = 16) -> LoopDisk:
        image = self.folder / f"{serial}.img"
        with image.open("wb") as handle:
            handle.truncate(mebibytes * 1024 * 1024)
        self.made.append(LoopDisk(image))
        return self.made[-1]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[DiskMaker]:
    """Makes empty disks, in memory where there is room (a busy disk makes every mkfs wait); each loop device is detached by its own name."""
    if os.geteuid() != 0 or shutil.which("losetup") is None:
        pytest.skip("needs root and losetup: attaches loop devices")
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="nodectl-disks-", dir=memory if memory.is_dir() else tmp_path))
    maker = DiskMaker(folder)
    yield maker
    for made in maker.made:
        subprocess.run(["delpart", made.path, "1"], check=False, capture_output=True)
        subprocess.run(["losetup", "--detach", made.path], check=False)
    shutil.rmtree(folder)


@pytest.fixture
def rclone_mount(tmp_path: Path) -> Iterator[dict[str, Any]]:
    """A real mount of a folder through rclone with a write cache."""
    if os.geteuid() != 0 or shutil.which("rclone") is None or not os.path.exists("/dev/fuse"):
        pytest.skip("needs root, rclone and /dev/fuse")
    for name in ("remote", "mnt", "cache"):
        (tmp_path / name).mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env = tmp_path / "rc.env"
    env.write_text("RCLONE_RC_USER=u\nRCLONE_RC_PASS=p\n")
    env.chmod(0o600)
    argv = ["rclone", "mount", str(tmp_path / "remote"), str(tmp_path / "mnt"), "--vfs-cache-mode", "full", "--cache-dir", str(tmp_path / "cache"), "--vfs-write-back", "1s", "--rc"]
    process = subprocess.Popen([*argv, "--rc-addr", f"127.0.0.1:{port}", "--allow-other"], env=dict(os.environ, RCLONE_RC_USER="u", RCLONE_RC_PASS="p"), stderr=subprocess.DEVNULL)
    end = time.monotonic() + 10
    while not os.path.ismount(tmp_path / "mnt") and time.monotonic() < end:
        time.sleep(0.05)
    yield {"path": str(tmp_path / "mnt"), "url": f"http://127.0.0.1:{port}", "env_file": str(env), "remote": tmp_path / "remote"}
    subprocess.run(["fusermount3", "-u", str(tmp_path / "mnt")], check=False)
    process.terminate()
    process.wait(timeout=10)
