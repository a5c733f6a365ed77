"""iptables: one rule, chain or policy of the running kernel's tables. nodectl's own `nftables` loads a whole ruleset and takes it back by itself."""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

from nodectl.agent.contract import Args, Failed, State
from nodectl.agent.system import System
from nodectl.wire.outcome import Change
from nodectl.wire.params import Param, Spec

# Parameter → (flag, kind), in the order in which Ansible writes them. Kinds: value (a leading ! negates), values, csv, multiport.
_RULE: Tuple[Tuple[str, str, str], ...] = (
    ("protocol", "-p", "value"), ("source", "-s", "value"), ("destination", "-d", "value"), ("match", "-m", "values"),
    ("tcp_flags", "--tcp-flags", "flags"), ("jump", "-j", "value"), ("gateway", "--gateway", "tee"),
    ("log_prefix", "--log-prefix", "value"), ("log_level", "--log-level", "value"),
    ("to_destination", "--to-destination", "value"), ("destination_ports", "--dports", "multiport"), ("to_source", "--to-source", "value"),
    ("goto", "-g", "value"),
    ("in_interface", "-i", "value"), ("out_interface", "-o", "value"), ("fragment", "-f", "value"), ("set_counters", "-c", "value"),
    ("source_port", "--source-port", "value"), ("destination_port", "--destination-port", "value"), ("to_ports", "--to-ports", "value"),
    ("set_dscp_mark", "--set-dscp", "value"), ("set_dscp_mark_class", "--set-dscp-class", "value"), ("syn", "--syn", "syn"), ("ctstate", "", "ctstate"),
    ("src_range", "--src-range", "range"), ("dst_range", "--dst-range", "range"), ("match_set", "--match-set", "set"), ("limit", "--limit", "limit"),
    ("limit_burst", "--limit-burst", "limit"), ("uid_owner", "--uid-owner", "owner"), ("gid_owner", "--gid-owner", "owner"),
    ("reject_with", "--reject-with", "reject"), ("icmp_type", "", "icmp"), ("comment", "--comment", "comment"),
)
_LISTS = ("match", "destination_ports", "ctstate")
SPEC = Spec(
    summary="A rule, a chain or a chain's policy present or absent in the running kernel; nothing of it outlives a boot by itself.",
    params={
        "table": Param("str", "the table", default="filter", choices=("filter", "nat", "mangle", "raw", "security")),
        "chain": Param("str", "the chain"),
        "action": Param("str", "where a new rule goes: at the end or at the front", default="append", choices=("append", "insert")),
        "rule_num": Param("str", "with insert: before this rule"),
        "ip_version": Param("str", "which packets", default="ipv4", choices=("ipv4", "ipv6", "both")),
        **{name: Param("list", f"{flag or name} of iptables-extensions(8)", default=[], elements="str") for name, flag, _ in _RULE if name in _LISTS},
        **{name: Param("str", f"{flag or name} of iptables(8) and its extensions") for name, flag, _ in _RULE if name not in (*_LISTS, "tcp_flags", "syn")},
        "tcp_flags": Param("dict", "flags that are looked at, flags_set that must be set"),
        "syn": Param("str", "match: only packets that begin a connection; negate: only others", default="ignore", choices=("ignore", "match", "negate")),
        "match_set_flags": Param("str", "with match_set", choices=("src", "dst", "src,dst", "dst,src", "src,src", "dst,dst")),
        "policy": Param("str", "the chain's policy, instead of a rule", choices=("ACCEPT", "DROP", "QUEUE", "RETURN")),
        "flush": Param("bool", "remove all rules of the chain, or of the table", default=False),
        "chain_management": Param("bool", "without a rule: make or remove the chain itself", default=False),
        "numeric": Param("bool", "taken for Ansible's sake: names are never looked up here", default=False),
        "wait": Param("str", "seconds to wait for another iptables"),
        "state": Param("str", "what is wished", default="present", choices=("present", "absent")),
    },
    mutually_exclusive=(("set_dscp_mark", "set_dscp_mark_class"), ("flush", "policy")),
    returns={
        "rule": "the rule's words", "chain": "the wish", "table": "the wish", "ip_version": "the wish", "flush": "the wish", "state": "the wish",
        "chain_management": "the wish", "wait": "the wish",
    },
    example="- iptables:\n    chain: INPUT\n    protocol: tcp\n    destination_port: '9100'\n    source: 10.0.0.0/8\n    jump: ACCEPT\n",
)
_PROGRAMS = {"ipv4": ["iptables"], "ipv6": ["ip6tables"], "both": ["iptables", "ip6tables"]}


def rule(args: Args) -> List[str]:
    """The words of the rule, as Ansible orders them."""
    words: List[str] = []
    jump = args["jump"]
    if jump is None and (args["log_prefix"] or args["log_level"]):
        args = dict(args, jump="LOG")
    used = list(args["match"])
    for name, flag, kind in _RULE:
        value = args[name]
        if value is None or value == [] or value == "ignore":
            continue
        words += _module(args, name, kind, used) + _words(args, name, flag, kind, value)
    return words


def _module(args: Args, name: str, kind: str, used: List[str]) -> List[str]:
    """-m, and -j where a value means a target, unless it is there already."""
    needed = {
        "multiport": "multiport", "range": "iprange", "set": "set", "limit": "limit", "owner": "owner", "comment": "comment",
        "ctstate": "" if "state" in used else "conntrack",
    }.get(kind, "")
    if kind == "reject":
        return ["-j", "REJECT"] if args["jump"] is None else []
    if name.startswith("set_dscp_mark") and (args["jump"] or "").lower() != "dscp":
        return ["-j", "DSCP"]
    if not needed or needed in used:
        return []
    used.append(needed)
    return ["-m", needed]


def _words(args: Args, name: str, flag: str, kind: str, value: Any) -> List[str]:
    if kind == "values":
        return [word for one in value for word in _negatable("-m", one)]
    if kind == "flags":
        return [flag, ",".join(map(str, value["flags"])), ",".join(map(str, value["flags_set"]))] if {"flags", "flags_set"} <= set(value) else []
    if kind == "tee":
        return [flag, value] if (args["jump"] or "").lower() == "tee" else []
    if kind == "multiport":
        return [flag, ",".join(value)]
    if kind == "ctstate":
        return ["--state" if "state" in args["match"] else "--ctstate", ",".join(value)]
    if kind == "syn":
        return ["--syn"] if value == "match" else ["!", "--syn"]
    if kind == "icmp":
        return _negatable("--icmpv6-type" if args["ip_version"] == "ipv6" else "--icmp-type", value)
    if kind == "set":
        return [*_negatable(flag, value), *([args["match_set_flags"]] if args["match_set_flags"] else [])]
    return _negatable(flag, value)


def _negatable(flag: str, value: str) -> List[str]:
    return ["!", flag, value[1:]] if value.startswith("!") else [flag, value]


def _command(args: Args, program: str, action: str, *more: str) -> List[str]:
    wait = ["-w", args["wait"]] if args["wait"] else ["-w"]
    return [program, *wait, "-t", args["table"], action, *([args["chain"]] if args["chain"] else []), *more]


def _refuse(args: Args) -> None:
    if args["chain"] is None and not args["flush"]:
        raise Failed("iptables: chain is needed")
    if args["jump"] not in (None, "LOG") and (args["log_prefix"] or args["log_level"]):
        raise Failed("iptables: log_prefix and log_level are for jump: LOG")
    if (args["jump"] or "").lower() == "tee" and args["gateway"] is None:
        raise Failed("iptables: jump: TEE needs gateway")
    for name in ("chain", *(name for name, _, _ in _RULE)):
        for text in args[name] if isinstance(args[name], list) else [args[name]]:
            if isinstance(text, str) and (text == "" or text.startswith("-") or "\n" in text or "\0" in text):
                raise Failed(f"iptables: {name} cannot be {text!r}")


def read(system: System, args: Args) -> State:
    """Per program: whether the rule or chain is there, and the chain's policy."""
    _refuse(args)
    words = rule(args)
    state: State = {}
    for program in _PROGRAMS[args["ip_version"]]:
        asked = _command(args, program, "-S")
        listed = system.run(asked)
        if listed.rc != 0 and (args["chain"] is None or args["policy"] or words):
            raise Failed(f"{' '.join(asked)}: {listed.stderr.strip()}", rc=listed.rc, stderr=listed.stderr)
        lines = listed.stdout.splitlines() if listed.rc == 0 else []
        policy = next((line.split()[2] for line in lines if line.startswith("-P ")), "")
        there = bool(words) and system.run(_command(args, program, "-C", *words)).rc == 0
        state[program] = {"chain": listed.rc == 0, "policy": policy, "rules": sum(line.startswith("-A ") for line in lines), "there": there}
    return state


def diff(args: Args, state: State) -> Change:
    steps: List[str] = []
    orders: List[List[str]] = []
    for program, now in state.items():
        found = _order(args, program, now)
        if found:
            orders.append(found)
            steps.append(" ".join(found))
    return Change(steps, data={"orders": orders})


def _order(args: Args, program: str, now: Dict[str, Any]) -> List[str]:
    words, present = rule(args), args["state"] == "present"
    if args["flush"]:
        return _command(args, program, "-F") if now["rules"] else []
    if args["policy"]:
        if not now["policy"]:
            raise Failed(f"{args['chain']} of table {args['table']} has no policy: only the kernel's own chains have one")
        return _command(args, program, "-P", args["policy"]) if now["policy"] != args["policy"] else []
    if not words:
        if now["chain"] == present or not args["chain_management"]:
            return []
        return _command(args, program, "-N" if present else "-X")
    if now["there"] == present:
        return []
    number = [args["rule_num"]] if args["rule_num"] and args["action"] == "insert" else []
    return _command(args, program, "-D", *words) if not present else _command(args, program, "-I" if args["action"] == "insert" else "-A", *number, *words)


def write(system: System, args: Args, state: State, change: Change) -> None:
    for words in change.data["orders"]:
        done = system.run(words)
        if done.rc != 0:
            raise Failed(f"{' '.join(words)}: {done.stderr.strip()}", rc=done.rc, stderr=done.stderr)


def values(args: Args, state: State, change: Change) -> Dict[str, Any]:
    found = {key: args[key] for key in ("chain", "table", "ip_version", "flush", "state", "chain_management", "wait")}
    return dict(found, rule=" ".join(rule(args)))
