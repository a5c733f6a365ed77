"""getent: entries of a name service database as facts."""

from __future__ import annotations

from nodectl.agent.contract import Args, Failed
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Read a database such as passwd, group or hosts; its entries become the fact getent_<database>.",
    params={
        "database": Param("str", "passwd, group, hosts, …", required=True),
        "key": Param("str", "one entry only", default=""),
        "service": Param("str", "one source only, such as files"),
        "split": Param("str", "separator of the fields"),
        "fail_key": Param("bool", "an unknown key is a failure", default=True),
    },
    returns={"ansible_facts": "getent_<database>: entry name → list of its other fields"},
    example="- getent:\n    database: passwd\n    key: ops\n",
)
_COLON = ("passwd", "shadow", "group", "gshadow")
_MEANING = {1: "getent lacks the arguments, or there is no such database", 3: "this database cannot be listed"}


def act(system: System, args: Args, check: bool) -> Outcome:
    argv = ["getent", *(["-s", args["service"]] if args["service"] else []), args["database"], *([args["key"]] if args["key"] else [])]
    done = system.run(argv, timeout=60.0)
    fact = f"getent_{args['database']}"
    if done.rc == 2 and not args["fail_key"]:
        return Outcome(facts={fact: {args["key"]: None}}, msg="there is no such key")
    if done.rc != 0:
        reason = f"there is no entry {args['key']!r} in {args['database']}" if done.rc == 2 else _MEANING.get(done.rc, done.stderr.strip())
        raise Failed(f"getent: {reason}", rc=done.rc)
    separator = args["split"] or (":" if args["database"] in _COLON else None)
    entries = {}
    for line in done.stdout.splitlines():
        fields = line.split(separator)
        if fields:
            entries[fields[0]] = fields[1:]
    return Outcome(facts={fact: entries})
