"""systemd, systemd_service: units of the system manager."""

from __future__ import annotations

from nodectl.agent import units
from nodectl.agent.contract import Args
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Start, stop, restart, reload, enable or mask a systemd unit, and prove that it is so.",
    params={
        "name": Param("str", "unit name; .service is added where it has no suffix", aliases=("service", "unit")),
        "state": Param("str", "what is wished", choices=("started", "stopped", "restarted", "reloaded")),
        "enabled": Param("bool", "whether it starts at boot"),
        "masked": Param("bool", "whether it is kept from being started at all"),
        "force": Param("bool", "replace conflicting links when enabling", default=False),
        "daemon_reload": Param("bool", "make systemd read its unit files again first", default=False, aliases=("daemon-reload",)),
        "daemon_reexec": Param("bool", "make systemd start itself again first", default=False, aliases=("daemon-reexec",)),
        "no_block": Param("bool", "do not wait for the end of the job (then only the order is proven)", default=False),
        "scope": Param("str", "which manager", default="system", choices=("system",)),
    },
    required_one_of=(("state", "enabled", "masked", "daemon_reload", "daemon_reexec"),),
    returns={"name": "the unit's full name", "status": "its properties as systemd shows them", "state": "the wish", "enabled": "the wish"},
    example="- systemd:\n    name: chrony\n    state: started\n    enabled: true\n",
)


def act(system: System, args: Args, check: bool) -> Outcome:
    return units.act(system, args, check)
