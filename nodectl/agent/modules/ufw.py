"""ufw: Ubuntu's firewall. It is never enabled where its rules would shut out the very ssh by which this node is reached."""

from __future__ import annotations

import re
from typing import Any, Dict, List

from nodectl.agent.contract import Args, Failed
from nodectl.agent.system import System
from nodectl.agent.text_file import one_line
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="ufw on or off, its defaults, its logging, one rule present or absent.",
    params={
        "state": Param("str", "enabled also starts it at boot", choices=("enabled", "disabled", "reloaded", "reset")),
        "default": Param("str", "what happens to packets that no rule is for", choices=("allow", "deny", "reject"), aliases=("policy",)),
        "direction": Param("str", "which packets", choices=("in", "incoming", "out", "outgoing", "routed")),
        "logging": Param("str", "how much is logged", choices=("full", "high", "low", "medium", "off", "on")),
        "rule": Param("str", "what a rule does", choices=("allow", "deny", "limit", "reject")),
        "delete": Param("bool", "the rule is to be absent", default=False),
        "insert": Param("int", "before this rule"),
        "insert_relative_to": Param("str", "what insert counts from", default="zero", choices=("zero",)),
        "route": Param("bool", "a rule for packets that pass through", default=False),
        "log": Param("bool", "log what matches", default=False),
        "interface": Param("str", "with direction: the interface", aliases=("if",)),
        "interface_in": Param("str", "interface of entry", aliases=("if_in",)),
        "interface_out": Param("str", "interface of exit", aliases=("if_out",)),
        "from_ip": Param("str", "source", default="any", aliases=("from", "src")),
        "from_port": Param("str", "source port"),
        "to_ip": Param("str", "destination", default="any", aliases=("to", "dest")),
        "to_port": Param("str", "destination port", aliases=("port",)),
        "proto": Param("str", "protocol", choices=("ah", "any", "esp", "ipv6", "tcp", "udp", "gre", "igmp", "vrrp"), aliases=("protocol",)),
        "name": Param("str", "an application of /etc/ufw/applications.d", aliases=("app",)),
        "comment": Param("str", "comment of the rule"),
    },
    required_one_of=(("state", "default", "rule", "logging"),),
    mutually_exclusive=(("name", "proto", "logging"), ("direction", "interface_in"), ("direction", "interface_out")),
    returns={"commands": "the ufw commands", "msg": "`ufw status verbose` afterwards"},
    example="- ufw:\n    rule: allow\n    port: '22'\n    proto: tcp\n- ufw:\n    state: enabled\n    default: deny\n",
)
_STATES = {"enabled": "enable", "disabled": "disable", "reloaded": "reload", "reset": "reset"}
_RULES = ("/etc/ufw/user.rules", "/etc/ufw/user6.rules", "/lib/ufw/user.rules", "/lib/ufw/user6.rules", "/var/lib/ufw/user.rules", "/var/lib/ufw/user6.rules")
_WORDS = (("from_ip", "from"), ("from_port", "port"), ("to_ip", "to"), ("to_port", "port"), ("proto", "proto"), ("name", "app"), ("comment", "comment"))
_DEFAULTS = re.compile(r"Default: (\w+) \(incoming\), (\w+) \(outgoing\), (\w+) \(routed\)")


def _ufw(system: System, *words: str) -> str:
    done = system.run(["ufw", *words], env={"LANG": "C"})
    if done.rc != 0:
        raise Failed(f"ufw {' '.join(words)}: {(done.stderr.strip() or done.stdout.strip())}", rc=done.rc, commands=[" ".join(["ufw", *words])])
    return done.stdout


def _rules(system: System) -> List[str]:
    """The rules as ufw keeps them: one tuple each."""
    texts = [(system.read(path) or b"").decode("utf-8", "replace") for path in _RULES]
    return [line for text in texts for line in text.splitlines() if line.startswith("### tuple")]


def rule_words(args: Args) -> List[str]:
    words = ["route"] if args["route"] else []
    words += ["delete"] if args["delete"] else []
    words += ["insert", str(args["insert"])] if args["insert"] is not None and not args["delete"] else []
    words.append(args["rule"])
    words += [args["direction"]] if args["direction"] else []
    words += ["on", args["interface"]] if args["interface"] else []
    words += ["in", "on", args["interface_in"]] if args["interface_in"] else []
    words += ["out", "on", args["interface_out"]] if args["interface_out"] else []
    words += ["log"] if args["log"] else []
    for key, word in _WORDS:
        words += [word, one_line(key, args[key])] if args[key] else []
    return words


def commands(args: Args) -> List[List[str]]:
    """ufw's words for each wish, in Ansible's order. Raises Failed for what goes with nothing."""
    if args["interface"] and not args["direction"]:
        raise Failed("ufw: interface needs direction")
    if args["default"] and args["direction"] not in (None, "incoming", "outgoing", "routed"):
        raise Failed("ufw: of a default the direction is incoming, outgoing or routed")
    found = [["--force", _STATES[args["state"]]]] if args["state"] else []
    found += [["default", args["default"], *([args["direction"]] if args["direction"] else [])]] if args["default"] else []
    found += [rule_words(args)] if args["rule"] else []
    return found + ([["logging", args["logging"]]] if args["logging"] else [])


def _foretold(system: System, args: Args, status: str, words: List[str]) -> bool:
    """Whether these words would change something."""
    if words[0] == "--force":
        active = "Status: active" in status
        return args["state"] in ("reloaded", "reset") or active != (args["state"] == "enabled")
    if words[0] == "default":
        now = _DEFAULTS.search(status) if "Status: active" in status else None
        kept = _kept_defaults(system) if now is None else {"incoming": now.group(1), "outgoing": now.group(2), "routed": now.group(3)}
        wished = kept.get(args["direction"] or "incoming")
        return wished not in (args["default"], "disabled" if args["default"] == "deny" and args["direction"] == "routed" else None)
    if words[0] == "logging":
        return _logging_differs(system, args["logging"], status)
    done = _ufw(system, "--dry-run", *words)
    lines = [line for line in done.splitlines() if line.strip()]
    return not lines or not all(line.startswith(("Skipping", "Could not delete non-existent")) for line in lines)


def _kept_defaults(system: System) -> Dict[str, str]:
    """/etc/default/ufw, which is what holds while ufw is off."""
    text = (system.read("/etc/default/ufw") or b"").decode("utf-8", "replace")
    names = {"incoming": "INPUT", "outgoing": "OUTPUT", "routed": "FORWARD"}
    words = {"DROP": "deny", "ACCEPT": "allow", "REJECT": "reject"}
    found = {key: re.search(rf'^DEFAULT_{name}_POLICY="?(\w+)"?', text, re.MULTILINE) for key, name in names.items()}
    return {key: words.get(match.group(1), "") for key, match in found.items() if match}


def _logging_differs(system: System, wish: str, status: str) -> bool:
    found = re.search(r"Logging: (on|off)(?: \((\w+)\))?", status)
    if found is None:
        text = (system.read("/etc/ufw/ufw.conf") or b"").decode("utf-8", "replace")
        kept = re.search(r"^LOGLEVEL=(\w+)", text, re.MULTILINE)
        level = kept.group(1) if kept else "low"
    else:
        level = "off" if found.group(1) == "off" else found.group(2) or "low"
    return level == "off" if wish == "on" else level != wish


def _keeps_ssh(system: System, args: Args) -> None:
    """Raises Failed where enabling would refuse the port by which this node is reached."""
    port = (system.environment.get("SSH_CONNECTION", "").split() or ["22"])[-1]
    incoming = args["default"] if args["default"] and args["direction"] in (None, "incoming") else _kept_defaults(system).get("incoming", "deny")
    open_to = [line for line in _rules(system) if re.match(r"### tuple ### (allow|limit)\S* ", line)]
    lets_in = [line for line in open_to if line.split()[5] in (port, "any") or "OpenSSH" in line]
    if incoming != "allow" and not lets_in and not (args["rule"] in ("allow", "limit") and args["to_port"] in (port, "ssh")):
        raise Failed(f"ufw is not enabled: no rule of its lets ssh in at port {port}, and this node would be out of reach. Allow that port first")


def act(system: System, args: Args, check: bool) -> Outcome:
    if system.which("ufw") is None:
        raise Failed("there is no ufw on this node: install it first")
    wished = commands(args)
    before, rules = _ufw(system, "status", "verbose"), _rules(system)
    told = [words for words in wished if _foretold(system, args, before, words)]
    if args["state"] == "enabled" and ["--force", "enable"] in told:
        _keeps_ssh(system, args)
    values: Dict[str, Any] = {"commands": [f"ufw {' '.join(words)}" for words in wished]}
    steps = [f"ufw {' '.join(words)}" for words in told]
    diff = [{"before": "", "after": "".join(f"{step}\n" for step in steps), "before_header": "ufw", "after_header": "ufw"}] if steps else []
    if check or not told:
        return Outcome(changed=bool(told), msg="; ".join(steps), values=values, diff=diff)
    for words in told:
        _ufw(system, *words)
    after = _ufw(system, "status", "verbose")
    if args["state"] in ("enabled", "disabled") and ("Status: active" in after) != (args["state"] == "enabled"):
        raise Failed(f"ufw says {after.splitlines()[0]!r} although {args['state']} was asked for", **values)
    changed = args["state"] in ("reloaded", "reset") or before != after or rules != _rules(system) or bool(told)
    return Outcome(changed=changed, msg=after.rstrip(), values=values, diff=diff)
