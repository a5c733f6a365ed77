"""A real sshd on 127.0.0.1 for one test: own host keys, own configuration, own known_hosts, nothing of the machine's."""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nodectl.transport.channel import Target

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/usr/bin")

BASE = """
ListenAddress 127.0.0.1
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin yes
AuthorizedKeysFile {dir}/authorized_keys
AcceptEnv NODECTL_TEST_*
LogLevel VERBOSE
"""


def make_key(path: Path, kind: str = "ed25519") -> Path:
    size = ["-b", "2048"] if kind == "rsa" else []  # the smallest that sshd takes: a larger one takes seconds to make
    subprocess.run(["ssh-keygen", "-q", "-t", kind, *size, "-N", "", "-C", path.name, "-f", str(path)], check=True, stdin=subprocess.DEVNULL)
    return path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass
class Sshd:
    dir: Path
    port: int
    key: Path
    process: subprocess.Popen[bytes]
    host_keys: list[Path] = field(default_factory=list)

    @property
    def known_hosts(self) -> Path:
        return self.dir / "known_hosts"

    @property
    def log(self) -> str:
        return (self.dir / "log").read_text(errors="replace")

    def trust(self, key: Path, name: str = "") -> None:
        """Make ``key`` (a private key's path) the one known for this server."""
        public = key.with_name(key.name + ".pub").read_text().split()
        self.known_hosts.write_text(f"{name or f'[127.0.0.1]:{self.port}'} {public[0]} {public[1]}\n")

    def target(self, host: str = "n1", **options: str) -> Target:
        merged = {"userknownhostsfile": str(self.known_hosts), "configfile": "/dev/null", "globalknownhostsfile": "none", **options}
        return Target(host, "127.0.0.1", self.port, getpass.getuser(), key_file=str(self.key), options=merged)

    def sessions(self) -> list[int]:
        """Processes of ours below the listener, youngest last."""
        return descendants(self.process.pid)


def descendants(pid: int) -> list[int]:
    found: list[int] = []
    for child in children(pid):
        found += [child, *descendants(child)]
    return found


def children(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


@contextlib.contextmanager
def running(folder: Path, config: str = "", key_kinds: Sequence[str] = ("ed25519",), key: Path | None = None) -> Iterator[Sshd]:
    """Start one and wait until it answers; end it and what it started afterwards."""
    assert SSHD
    folder.mkdir(parents=True, exist_ok=True)
    user_key = key or make_key(folder / "user_key")
    (folder / "authorized_keys").write_text(user_key.with_name(user_key.name + ".pub").read_text())
    host_keys = [make_key(folder / f"host_{kind}", kind) for kind in key_kinds]
    # sshd takes the first value of an option: the test's words come before ours.
    lines = [config, *[f"HostKey {path}" for path in host_keys], BASE.format(dir=folder)]
    (folder / "conf").write_text("\n".join(lines))
    Path("/run/sshd").mkdir(exist_ok=True)  # its privilege separation folder, which the package's unit makes
    port = free_port()
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([SSHD, "-D", "-e", "-f", str(folder / "conf"), "-p", str(port)], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    server = Sshd(folder, port, user_key, process, host_keys)
    server.trust(host_keys[0])
    try:
        _await_banner(server)
        yield server
    finally:
        for pid in [*descendants(process.pid), process.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait(5)


def _await_banner(server: Sshd) -> None:
    end = time.monotonic() + 5
    while time.monotonic() < end:
        assert server.process.poll() is None, server.log
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", server.port), 1) as probe:
            probe.settimeout(1)
            if probe.recv(4) == b"SSH-":
                return
        time.sleep(0.02)
    raise AssertionError(server.log)
