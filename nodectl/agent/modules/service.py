"""service: the node's services, which are systemd units everywhere nodectl goes."""

from __future__ import annotations

from nodectl.agent import units
from nodectl.agent.contract import Args
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Start, stop, restart, reload or enable a service, and prove that it is so.",
    params={
        "name": Param("str", "service name", required=True),
        "state": Param("str", "what is wished", choices=("started", "stopped", "restarted", "reloaded")),
        "enabled": Param("bool", "whether it starts at boot"),
        "use": Param("str", "which service manager", default="auto", choices=("auto", "systemd")),
        # systemd's parameters, which Ansible passes on to the module that `service` stands for.
        "masked": Param("bool", "whether it is kept from being started at all"),
        "daemon_reload": Param("bool", "make systemd read its unit files again first", default=False),
    },
    required_one_of=(("state", "enabled", "masked"),),
    returns={"name": "the unit's full name", "status": "its properties as systemd shows them", "state": "the wish", "enabled": "the wish"},
    example="- service:\n    name: ssh\n    state: reloaded\n",
)


def act(system: System, args: Args, check: bool) -> Outcome:
    return units.act(system, args, check)
