"""What the lab serves to its hosts, in the bridge's namespace: the object store and the package repository."""

from __future__ import annotations

import csv
import io
import random
import secrets
import socket
import string
import sys
import time
from pathlib import Path

from nodectl.lab.machine import marked, start, stop
from nodectl.lab.needs import rclone
from nodectl.lab.network import bridge_namespace, within
from nodectl.lab.plan import BUCKETS, REPO_PORT, SERVICES_OCTET, STORE_PORT, address
from nodectl.lab.problem import LabProblem
from nodectl.lab.state import LabState
from nodectl.wire.secret import Secret

STORE = "store"
REPO = "repo"
# Stands before the store and spoils its answers, while a fault says so.
PROXY = "store-proxy"
# Where the store itself listens meanwhile.
BEHIND_PORT = STORE_PORT + 1
# rclone answers after 0.3 s here.
ANSWER_TIMEOUT_S = 30.0
# rclone refuses requests signed with a very short key id; these are the lengths that S3 itself uses.
ACCESS_KEY_LENGTH = 20
SECRET_KEY_LENGTH = 40
# Enough for batch reads to be timed, small enough for every host's cache: 8 shards of 4 MiB.
SHARDS = 8
SHARD_BYTES = 4 << 20


def endpoint(state: LabState) -> str:
    return f"http://{address(state.net, SERVICES_OCTET)}:{STORE_PORT}"


def mark(state: LabState, service: str) -> str:
    return f"{state.id}/{service}"


def _folder(state: LabState) -> Path:
    return state.dir / "store"


def _key_file(state: LabState) -> Path:
    return state.dir / "store.key"


def fill_store(state: LabState) -> None:
    """Makes the buckets, sample data and a fresh key pair, which is kept in a file of root's alone."""
    state.claim("tree", str(_folder(state)))
    for bucket in BUCKETS:
        (_folder(state) / bucket).mkdir(parents=True)
    contents = random.Random(state.id)
    for number in range(SHARDS):
        (_folder(state) / "dataset" / f"shard-{number:05}.bin").write_bytes(contents.randbytes(SHARD_BYTES))
    state.claim("file", str(_key_file(state)))
    access, secret = fresh_keys()
    _key_file(state).touch(mode=0o600)
    _key_file(state).write_text(f"{access},{secret.reveal()}\n")


def fresh_keys() -> tuple[str, Secret]:
    """Access key id and secret key that nobody has had before."""
    access = "".join(secrets.choice(string.ascii_uppercase + string.digits) for _ in range(ACCESS_KEY_LENGTH))
    secret = "".join(secrets.choice(string.ascii_letters + string.digits) for _ in range(SECRET_KEY_LENGTH))
    return access, Secret(secret)


def store_keys(state: LabState) -> tuple[str, Secret]:
    """Access key id and secret key."""
    access, secret = _key_file(state).read_text().strip().split(",")
    return access, Secret(secret)


def start_store(state: LabState, keys: tuple[str, Secret] | None = None, port: int = STORE_PORT) -> None:
    """Serves the buckets, to whoever has ``keys`` (not given: the lab's own). Raises LabProblem when nobody answers within ANSWER_TIMEOUT_S."""
    access, secret = keys or store_keys(state)
    # The environment, unlike argv, is not shown to other users; rclone reads it as a line of CSV.
    line = io.StringIO()
    csv.writer(line).writerow([f"{access},{secret.reveal()}"])
    listen = f"{address(state.net, SERVICES_OCTET)}:{port}"
    argv = [rclone(), "serve", "s3", "--config=/dev/null", f"--addr={listen}", str(_folder(state))]
    _serve(state, STORE, argv, port, {"RCLONE_AUTH_KEY": line.getvalue().strip()})


def start_proxy(state: LabState, spoils: str) -> None:
    """Puts the store behind a proxy that spoils its answers: one of store_proxy's words."""
    stop_store(state)
    start_store(state, port=BEHIND_PORT)
    here = address(state.net, SERVICES_OCTET)
    argv = [sys.executable, "-I", str(Path(__file__).with_name("store_proxy.py")), here, str(STORE_PORT), str(BEHIND_PORT), spoils]
    _serve(state, PROXY, argv, STORE_PORT, {})


def start_repo(state: LabState) -> None:
    """Serves the package repository. Raises LabProblem when nobody answers within ANSWER_TIMEOUT_S."""
    argv = [sys.executable, "-I", "-m", "http.server", "--bind", address(state.net, SERVICES_OCTET), "--directory", state.repo, str(REPO_PORT)]
    _serve(state, REPO, argv, REPO_PORT, {})


def _serve(state: LabState, service: str, argv: list[str], port: int, env: dict[str, str]) -> None:
    log = state.dir / f"{service}.log"
    state.claim("file", str(log))
    state.claim("process", mark(state, service))
    start(mark(state, service), [*within(bridge_namespace(state)), *argv], log, env)
    deadline = time.monotonic() + ANSWER_TIMEOUT_S
    while not answering(state, port):
        if time.monotonic() > deadline:
            end = log.read_text(errors="replace")[-1000:]
            raise LabProblem(f"the lab's {service} did not answer on port {port} within {ANSWER_TIMEOUT_S:.0f} s. Its log ends with:\n{end}")
        time.sleep(0.05)


def answering(state: LabState, port: int) -> bool:
    """Whether an HTTP server says anything within a second: a frozen one still accepts connections."""
    try:
        with socket.create_connection((address(state.net, SERVICES_OCTET), port), timeout=1.0) as connection:
            connection.sendall(b"HEAD / HTTP/1.0\r\n\r\n")
            return connection.recv(5) == b"HTTP/"
    except OSError:
        return False


def stop_store(state: LabState) -> None:
    """With whatever stands before it."""
    stop(mark(state, PROXY))
    stop(mark(state, STORE))


def running(state: LabState, service: str) -> bool:
    return bool(marked(mark(state, service)))
