"""Parameters of a few modules, so that the language is tested without the engine's catalogue."""

from __future__ import annotations

from nodectl.wire.params import Param, Spec

_FILE = Spec(
    "Files",
    {
        "path": Param("path", required=True, aliases=("dest", "name")),
        "state": Param(choices=("file", "directory", "link", "touch", "absent")),
        "src": Param("path"),
        "mode": Param("mode"),
        "owner": Param(),
        "recurse": Param("bool", default=False),
    },
    required_if=(("state", "link", ("src",)),),
)
_COMMAND = Spec("Run a program", {"cmd": Param(), "argv": Param("list", elements="str"), "chdir": Param("path"), "creates": Param("path")}, free_form="cmd")
SPECS = {
    "file": _FILE,
    "command": _COMMAND,
    "shell": _COMMAND,
    "copy": Spec(
        "Copy",
        {"src": Param("path"), "content": Param("raw"), "dest": Param("path", required=True), "remote_src": Param("bool", default=False), "mode": Param("mode")},
        mutually_exclusive=(("src", "content"),),
    ),
    "template": Spec("Template", {"src": Param("path", required=True), "dest": Param("path", required=True), "mode": Param("mode")}),
    "include_vars": Spec("Variables", {"file": Param("path"), "dir": Param("path"), "name": Param()}, free_form="file"),
    "debug": Spec("Show", {"msg": Param("raw"), "var": Param("raw")}),
    "assert": Spec("Check", {"that": Param("raw", required=True), "fail_msg": Param()}),
    "set_fact": Spec("Set", {"cacheable": Param("bool")}, open=True),
    "meta": Spec("Steer", {"action": Param(required=True, choices=("flush_handlers", "noop"))}, free_form="action"),
    "include_tasks": Spec("Include", {"file": Param("path", required=True), "apply": Param("dict")}, free_form="file"),
    "include_role": Spec("Include", {"name": Param(required=True), "tasks_from": Param(), "apply": Param("dict")}),
    "apt": Spec("Packages", {"name": Param("list", elements="str"), "state": Param(choices=("present", "absent"))}),
}


def known(name: str) -> Spec | None:
    return SPECS.get(name)
