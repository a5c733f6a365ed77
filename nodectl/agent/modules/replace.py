"""Every match of a pattern in a text file, replaced."""

from __future__ import annotations

import re
from typing import Tuple

from nodectl.agent import attributes, edited_text, replace
from nodectl.agent.contract import Args, Failed, State
from nodectl.agent.system import System
from nodectl.wire.outcome import Change, Outcome
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Replace every match of a pattern in a text file",
    params={
        "path": edited_text.PATH,
        "regexp": Param(required=True, help="what to replace; ^ and $ mean the ends of a line"),
        "replace": Param(default="", help="by what; it may hold \\1 and \\g<name>; without it, matches are removed"),
        "after": Param(help="a pattern: only what comes after its first match is touched"),
        "before": Param(help="a pattern: only what comes before its first match is touched"),
        "encoding": Param(default="utf-8", help="encoding of the file"),
        **replace.PARAMS,
        **attributes.PARAMS,
    },
    returns={"msg": "how many replacements were made", "backup_file": "the kept old file"},
    example="- replace: {path: /etc/default/grub, regexp: 'quiet splash', replace: 'console=ttyS0'}\n",
)

NO_SECTION = "Pattern for before/after params did not match the given file"


def act(system: System, args: Args, check: bool) -> Outcome:
    """No state: done twice it may well do something twice. So what is read again is compared with what was written."""
    state = edited_text.read(system, args)
    change = _change(args, state)
    values: Args = {"rc": 0}
    if change and not check:
        kept = edited_text.write(system, args, state, change)
        values.update({"backup_file": kept} if kept else {})
        if edited_text.read(system, args)["text"] != change.data["after"]:
            raise Failed(f"{state['path']} is not as it was written when it is read again", **values)
    shown = {"before": change.before, "after": change.after, "before_header": change.before_header, "after_header": change.after_header}
    missed = _section(args, state["text"])[0] < 0
    return Outcome(
        changed=bool(change), msg=NO_SECTION if missed else "; ".join(change.actions), values=values, diff=[shown] if change else [],
        warnings=[f"{state['path']}: {NO_SECTION}"] if missed else [],
    )


def _change(args: Args, state: State) -> Change:
    text = state["text"]
    if text is None:
        raise Failed(f"Path {state['path']} does not exist !", rc=257, path=state["path"])
    start, end = _section(args, text)
    if start < 0:
        return Change()
    try:
        new, count = edited_text.pattern(args["regexp"], "regexp", re.MULTILINE).subn(args["replace"], text[start:end])
    except (re.error, IndexError) as error:
        raise Failed(f"replace does not fit the pattern: {error}: {args['replace']}") from None
    after = text[:start] + new + text[end:]
    return edited_text.change(args, state, after, [f"{count} replacements made"] if after != text else [])


def _section(args: Args, text: str) -> Tuple[int, int]:
    """Where the part lies that may be touched; (-1, -1) where before and after find none."""
    after, before = args["after"] or "", args["before"] or ""
    if not after and not before:
        return 0, len(text)
    wanted = f"{after}(?P<subsection>.*?){before}" if after and before else f"{after}(?P<subsection>.*){before}"
    pattern = edited_text.pattern(wanted, "before/after", re.DOTALL)
    found = pattern.search(text)
    return found.span("subsection") if found else (-1, -1)
