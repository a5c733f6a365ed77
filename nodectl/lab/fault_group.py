"""Faults that strike in the middle of a collective: something waits beside the host until its ranks talk to their peers."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from nodectl.lab import hosts, services
from nodectl.lab.fault_kind import Act, FaultKind, require_running
from nodectl.lab.fault_power import freeze, power_off, power_on, thaw
from nodectl.lab.machine import send, start, stop
from nodectl.lab.plan import TORCH_PYTHON
from nodectl.lab.state import LabHost, LabState, load

# The controller may be busy with other checks for minutes before a group starts.
PATIENCE_S = 600.0
# Ranks that have connected are in their first rounds after this long.
INTO_IT_S = 0.3
LOOK_EVERY_S = 0.05
# /proc/net/tcp's number for an established connection.
_ESTABLISHED = "01"


def in_a_group(table: str, peers: list[str]) -> bool:
    """Whether a table in the form of /proc/net/tcp holds a connection with one of ``peers`` (IPv4)."""
    wanted = {_as_kernel(peer) for peer in peers}
    for line in table.splitlines()[1:]:
        fields = line.split()
        if len(fields) > 3 and fields[3] == _ESTABLISHED and fields[2].partition(":")[0] in wanted:
            return True
    return False


def _as_kernel(address: str) -> str:
    """10.77.1.11 as 0B014D0A: the kernel prints the word as it lies in memory, and hosts are little-endian."""
    return "".join(f"{int(part):02X}" for part in reversed(address.split(".")))


def _kill_ranks(state: LabState, host: LabHost, value: str) -> None:
    for pid in ranks(state, host):
        send(pid, signal.SIGKILL)


def ranks(state: LabState, host: LabHost) -> list[int]:
    """Processes of the host that run the lent torch."""
    return [pid for pid in hosts.members(state, host.name) if _program(pid) == TORCH_PYTHON]


def _program(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].decode(errors="replace")
    except OSError:
        return ""


def _nothing(state: LabState, host: LabHost, value: str) -> None:
    """Dead ranks are dead; the next group has new ones."""


STRIKES: Mapping[str, tuple[Act, Act]] = {"power": (power_off, power_on), "freeze": (freeze, thaw), "ranks": (_kill_ranks, _nothing)}


def strike(folder: str, name: str, what: str) -> None:
    """Waits until the host is in a group, then does it. Ends by itself after PATIENCE_S."""
    state = load(Path(folder))
    if state is None:
        return
    host = state.host(name)
    if _await(lambda: _connected(state, host)):
        time.sleep(INTO_IT_S)
        STRIKES[what][0](state, host, "")


def _await(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(LOOK_EVERY_S)
    return False


def _connected(state: LabState, host: LabHost) -> bool:
    first = hosts.leader(state, host.name)
    try:
        table = Path(f"/proc/{first}/net/tcp").read_text() if first else ""
    except OSError:
        return False
    return in_a_group(table, [peer.address for peer in state.hosts if peer.name != host.name])


def _mark(state: LabState, host: LabHost) -> str:
    return services.mark(state, f"strike-{host.name}")


def _lie_in_wait(what: str) -> Act:
    def apply(state: LabState, host: LabHost, value: str) -> None:
        require_running(state, host)
        log = state.dir / f"strike-{host.name}.log"
        state.claim("file", str(log))
        state.claim("process", _mark(state, host))
        call = f"from nodectl.lab.fault_group import strike; strike({str(state.dir)!r}, {host.name!r}, {what!r})"
        start(_mark(state, host), [sys.executable, "-c", call], log, {"PYTHONPATH": str(Path(__file__).parents[2])})

    return apply


def _call_off(what: str) -> Act:
    def lift(state: LabState, host: LabHost, value: str) -> None:
        stop(_mark(state, host))
        STRIKES[what][1](state, host, value)

    return lift


def group_faults() -> tuple[FaultKind, ...]:
    return (
        FaultKind("dies-in-group", "the host loses power as soon as its ranks talk to their peers", "", _lie_in_wait("power"), _call_off("power")),
        FaultKind("freezes-in-group", "the host stands still as soon as its ranks talk to their peers", "", _lie_in_wait("freeze"), _call_off("freeze")),
        FaultKind("ranks-die", "the host's ranks are killed as soon as they talk to their peers", "", _lie_in_wait("ranks"), _call_off("ranks")),
    )
