"""One setting in one section of an INI file."""

from __future__ import annotations

import re
from typing import Any, Dict, List, NamedTuple, Optional, Set

from nodectl.agent import attributes, edited_text, replace
from nodectl.agent.contract import Args, Failed, State
from nodectl.agent.system import System
from nodectl.wire.outcome import Change
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="See that an option stands in a section of an INI file, or that option or section is gone",
    params={
        "path": Param("path", required=True, aliases=("dest",), help="the file"),
        "section": Param(help="the section; without it, what comes before the first one"),
        "section_has_values": Param("list", elements="dict", help="of several such sections, the first in which these stand: option, and value or values"),
        "option": Param(help="the option; without it, the whole section is meant"),
        "value": Param(help="its value"),
        "values": Param("list", elements="str", help="its values, where the option may stand several times"),
        "state": Param(default="present", choices=("present", "absent"), help="present or absent"),
        "exclusive": Param("bool", default=True, help="the given values are the only ones; false: other lines of the option stay"),
        "no_extra_spaces": Param("bool", default=False, help="no blanks around ="),
        "ignore_spaces": Param("bool", default=False, help="a line that differs only in blanks around = stays"),
        "allow_no_value": Param("bool", default=False, help="the option may stand alone, without ="),
        "modify_inactive_option": Param("bool", default=True, help="a line that is commented out is taken in place of a new one"),
        "create": Param("bool", default=True, help="make the file where there is none"),
        "follow": Param("bool", default=False, help="where path is a link, write what it points to"),
        "backup": replace.PARAMS["backup"],
        **attributes.PARAMS,
    },
    mutually_exclusive=(("value", "values"),),
    returns={"path": "the file", "msg": "what was done", "backup_file": "the kept old file"},
    example="- ini_file: {path: /etc/systemd/journald.conf, section: Journal, option: SystemMaxUse, value: 2G}\n",
)
_SILENT = re.compile(r"^[ \t]*([#;].*)?$")


class _Line(NamedTuple):
    """A line that sets the option. ``active``: it is not commented out."""

    active: bool
    value: str


def _setting(option: str, line: str) -> Optional[_Line]:
    found = re.match(rf"[ \t]*([#;]?)[ \t]*{re.escape(option)}[ \t]*(?:=|$)[ \t]*(.*)", line)
    return _Line(not found.group(1), found.group(2)) if found else None


read = edited_text.read


def diff(args: Args, state: State) -> Change:
    text = state["text"]
    if text is None and not args["create"]:
        raise Failed(f"Destination {state['path']} does not exist!", rc=257, path=state["path"])
    if args["option"] is None and args["section"] is None:
        raise Failed("one of section and option is needed")
    values = [args["value"]] if args["value"] is not None else list(dict.fromkeys(args["values"] or []))
    if args["state"] == "present" and not values and not args["allow_no_value"]:
        raise Failed("Parameter 'value(s)' must be defined if state=present and allow_no_value=False.")
    old = edited_text.lines((text or "").replace("\r\n", "\n").lstrip("\ufeff")) or ["\n"]
    whole = [*old[:-1], old[-1] if old[-1].endswith("\n") else old[-1] + "\n"]
    new = _edited(args, whole, values)
    if new == old and text is not None:
        return edited_text.change(args, state, text, [])
    what = "put" if args["state"] == "present" else "remove"
    name = f"{args['option'] or ''} in [{args['section'] or ''}]".strip()
    return edited_text.change(args, state, "".join(new), [f"{what} {name} of {state['path']}"] if new != old else [])


def _edited(args: Args, lines: List[str], values: List[str]) -> List[str]:
    start, end = _span(args, lines)
    section = lines[start:end] if args["section"] is not None else ["[\n", *lines[start:end]]  # a heading of its own makes all sections alike
    if start < 0:
        return lines + _new_section(args, values) if args["state"] == "present" else lines
    if args["state"] == "absent":
        section = _without(args, section, values)
    elif args["option"] is not None:
        section = _with(args, section, values)
    return lines[:start] + section[0 if args["section"] is not None else 1 :] + lines[end:]


def _span(args: Args, lines: List[str]) -> "tuple[int, int]":
    """Where the section stands, its heading included; (-1, -1) where there is none."""
    heads = [index for index, line in enumerate(lines) if line.startswith("[")]
    if args["section"] is None:
        return 0, heads[0] if heads else len(lines)
    named = re.compile(rf"^\[\s*{re.escape(args['section'].strip())}\s*]")
    for number, start in enumerate(heads, 1):
        end = [*heads, len(lines)][number]
        if named.match(lines[start]) and all(_holds(condition, lines[start:end]) for condition in args["section_has_values"] or []):
            return start, end
    return -1, -1


def _wanted(condition: Dict[str, Any]) -> List[str]:
    values = [condition["value"]] if condition.get("value") is not None else condition.get("values") or []
    return [str(value) for value in values]


def _holds(condition: Dict[str, Any], section: List[str]) -> bool:
    wanted = _wanted(condition)
    settings = [_setting(str(condition["option"]), line) for line in section]
    return any(setting is not None and (not wanted or setting.value in wanted) for setting in settings)


def _new_section(args: Args, values: List[str]) -> List[str]:
    lines = [f"[{args['section']}]\n"]
    for condition in args["section_has_values"] or []:
        if condition["option"] != args["option"]:
            lines += _settings(args, str(condition["option"]), _wanted(condition))
        elif not args["exclusive"]:
            values = list(dict.fromkeys([*values, *_wanted(condition)]))
    return lines + (_settings(args, args["option"], values) if args["option"] is not None else [])


def _settings(args: Args, option: str, values: List[str]) -> List[str]:
    between = "=" if args["no_extra_spaces"] else " = "
    if not values and args["allow_no_value"]:
        return [f"{option}\n"]
    return [f"{option}{between}{value}\n" for value in values]


def _without(args: Args, section: List[str], values: List[str]) -> List[str]:
    option = args["option"]
    if option is None:
        return []

    def goes(line: str) -> bool:
        setting = _setting(option, line)
        return setting is not None and setting.active and (args["exclusive"] or setting.value in values)

    return [line for line in section if not goes(line)]


def _with(args: Args, section: List[str], values: List[str]) -> List[str]:
    """Lines that hold a wished value stay in their place; other lines of the option take the values that are left, or go."""
    left, result = list(values), list(section)
    found = _settings_in(args, section)
    settled = _keep_wished(args, found, left, result)
    bare = any(result[index] == f"{args['option']}\n" for index in settled)
    if args["exclusive"] and not args["allow_no_value"]:
        for index in [index for index in found if index not in settled]:
            result[index] = _kept(args, section[index], found[index], left.pop(0)) if left else ""
    return _inserted([line for line in result if line], _settings(args, args["option"], left) if left or not bare else [])


def _settings_in(args: Args, section: List[str]) -> Dict[int, _Line]:
    """Index of each line that may be taken for the option."""
    settings = {index: _setting(args["option"], line) for index, line in enumerate(section)}
    return {index: one for index, one in settings.items() if one is not None and (one.active or args["modify_inactive_option"])}


def _keep_wished(args: Args, found: Dict[int, _Line], left: List[str], result: List[str]) -> Set[int]:
    """Writes lines whose value is wished into ``result`` and takes it from ``left``; which lines that were."""
    settled = set()
    for index, setting in found.items():
        if setting.value in left:
            left.remove(setting.value)
            result[index] = _kept(args, result[index], setting, setting.value)
            settled.add(index)
        elif not left and args["allow_no_value"]:
            result[index] = f"{args['option']}\n"
            return settled | {index}
    return settled


def _kept(args: Args, line: str, setting: _Line, value: str) -> str:
    """The line as it shall be: as it is, where only blanks differ and those do not count."""
    if args["ignore_spaces"] and setting.active and setting.value == value:
        return line
    return f"{args['option']}\n" if not value and args["allow_no_value"] else _settings(args, args["option"], [value])[0]


def _inserted(section: List[str], lines: List[str]) -> List[str]:
    """New lines go behind the last one that says something: comments and blank lines at the end belong to what follows."""
    at = max(index for index, line in enumerate(section) if not _SILENT.match(line)) + 1
    return section[:at] + lines + section[at:]


def write(system: System, args: Args, state: State, change: Change) -> None:
    change.data["backup_file"] = edited_text.write(system, args, state, change, follow=args["follow"])


def values(args: Args, state: State, change: Change) -> Args:
    kept = {"backup_file": change.data["backup_file"]} if change.data.get("backup_file") else {}
    return {"path": args["path"], **kept, **attributes.returned(state["path"], state["there"])}
