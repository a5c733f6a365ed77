"""firewalld: one thing in one zone, in the running firewall, in its files, or both."""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

from nodectl.agent.contract import Args, Failed, State
from nodectl.agent.system import System
from nodectl.wire.outcome import Change
from nodectl.wire.params import Param, Spec

# Parameter → the word in firewall-cmd's --query-, --add-, --remove-.
_THINGS: Dict[str, str] = {
    "service": "service", "port": "port", "protocol": "protocol", "source": "source", "interface": "interface", "rich_rule": "rich-rule",
    "icmp_block": "icmp-block", "icmp_block_inversion": "icmp-block-inversion", "masquerade": "masquerade", "forward": "forward",
}
_FLAGS = ("masquerade", "forward", "icmp_block_inversion")
SPEC = Spec(
    summary="A service, port, source, interface or rule of a zone enabled or disabled, where firewalld is the node's firewall.",
    params={
        **{name: Param("str", f"{name.replace('_', ' ')}") for name in _THINGS if name not in _FLAGS},
        **{name: Param("bool", f"{name.replace('_', ' ')} of the zone") for name in _FLAGS},
        "zone": Param("str", "the zone; not given: the default one"),
        "permanent": Param("bool", "in its files"),
        "immediate": Param("bool", "in the running firewall; the default where permanent is not given", default=False),
        "timeout": Param("int", "seconds after which the running firewall forgets it; 0 = never", default=0),
        "offline": Param("bool", "in its files although it does not run", default=False, aliases=("ignore_errors",)),
        "state": Param("str", "what is wished", required=True, choices=("enabled", "disabled", "present", "absent")),
    },
    required_one_of=(tuple(_THINGS),),
    mutually_exclusive=(tuple(_THINGS),),
    returns={},
    example="- firewalld:\n    port: 9100/tcp\n    permanent: true\n    immediate: true\n    state: enabled\n",
)


def _thing(args: Args) -> Tuple[str, str]:
    """(firewall-cmd's word, its value; "" for one that is only on or off)"""
    name = next(name for name in _THINGS if args[name] is not None)
    value = "" if name in _FLAGS else str(args[name])
    if name not in _FLAGS and (not value or value.startswith("-") or "\n" in value):
        raise Failed(f"firewalld: {name} cannot be {value!r}")
    if name == "port" and "/" not in value:
        raise Failed(f"firewalld: a port is written with its protocol, as 9100/tcp, not {value!r}")
    return _THINGS[name], value


def _on(args: Args) -> bool:
    flag = next((args[name] for name in _FLAGS if args[name] is not None), True)
    return (args["state"] in ("enabled", "present")) == bool(flag)


def _layers(args: Args) -> List[str]:
    return [*(["--permanent"] if args["permanent"] else []), *([""] if args["immediate"] or not args["permanent"] else [])]


def _words(args: Args, layer: str, verb: str) -> List[str]:
    word, value = _thing(args)
    program = ["firewall-offline-cmd"] if args["offline"] and layer else ["firewall-cmd", *([layer] if layer else [])]
    timeout = [f"--timeout={args['timeout']}"] if verb == "add" and args["timeout"] and not layer else []
    return [*program, *([f"--zone={args['zone']}"] if args["zone"] else []), f"--{verb}-{word}{f'={value}' if value else ''}", *timeout]


def read(system: System, args: Args) -> State:
    if system.which("firewall-cmd") is None:
        raise Failed("there is no firewalld on this node")
    return {layer: _query(system, _words(args, layer, "query")) for layer in _layers(args)}


def _query(system: System, argv: List[str]) -> bool:
    done = system.run(argv)
    if done.rc not in (0, 1) or "FirewallD is not running" in done.stderr:
        raise Failed(f"{' '.join(argv)}: {(done.stderr.strip() or done.stdout.strip() or f'exit code {done.rc}')}", rc=done.rc)
    return done.rc == 0


def diff(args: Args, state: State) -> Change:
    verb = "add" if _on(args) else "remove"
    orders = [_words(args, layer, verb) for layer in _layers(args) if state[layer] != _on(args)]
    return Change([" ".join(words) for words in orders], data={"orders": orders})


def write(system: System, args: Args, state: State, change: Change) -> None:
    for words in change.data["orders"]:
        done = system.run(words)
        if done.rc != 0:
            raise Failed(f"{' '.join(words)}: {(done.stderr.strip() or done.stdout.strip())}", rc=done.rc)


def values(args: Args, state: State, change: Change) -> Dict[str, Any]:
    return {}
