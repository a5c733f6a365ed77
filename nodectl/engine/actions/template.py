"""template: rendered on the controller with the host's variables, sent like a copy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from nodectl.engine.actions.contract import ActionFailed, Args, Context
from nodectl.engine.actions.copy import SPEC as COPY
from nodectl.engine.actions.copy import send_bytes, unseen
from nodectl.engine.actions.files import find_source
from nodectl.lang.vault import VaultError, is_encrypted
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Render a Jinja file and put the result on the node",
    params={
        "src": Param("path", "The template, in templates/ of the role or playbook.", required=True),
        **{name: COPY.params[name] for name in ("dest", "mode", "owner", "group", "backup", "force", "follow", "validate")},
        "newline_sequence": Param("str", "What ends a line.", default="\n", choices=("\n", "\r", "\r\n", "\\n", "\\r", "\\r\\n")),
        "output_encoding": Param("str", "Encoding of the file on the node.", default="utf-8"),
    },
    returns={"dest": "the file on the node", "checksum": "SHA-1 of its content"},
    example="- template:\n    src: limits.conf.j2\n    dest: /etc/security/limits.d/90-nodectl.conf\n    mode: \"0644\"\n",
)


def run(context: Context, args: Args) -> Outcome:
    source = find_source(args["src"], context.task, context.playbook_dir, "templates")
    try:
        text = source.read_text("utf-8")
        sealed = is_encrypted(text)
        text = context.vault.text(text) if sealed else text
    except (OSError, UnicodeDecodeError, VaultError) as error:
        raise ActionFailed(f"{source}: {error}") from None
    rendered = context.templar.render_file(text, _Here(context.variables, source, str(args["dest"])), str(source))
    newline = args["newline_sequence"].encode().decode("unicode_escape")
    if newline != "\n":
        rendered = rendered.replace("\n", newline)
    try:
        data = rendered.encode(args["output_encoding"])
    except (LookupError, UnicodeEncodeError) as error:
        raise ActionFailed(f"{source}: cannot be written as {args['output_encoding']}: {error}") from None
    if args["mode"] == "preserve":
        args = {**args, "mode": format(source.stat().st_mode & 0o7777, "04o")}
    outcome = send_bytes(context, args, data, source.name)
    return unseen(outcome) if sealed else outcome


class _Here(Mapping[str, Any]):
    """The task's variables and the template's own names."""

    def __init__(self, variables: Mapping[str, Any], source: Path, dest: str) -> None:
        self._variables = variables
        self._own = {
            "ansible_managed": "Ansible managed", "template_path": str(source), "template_fullpath": str(source.absolute()),
            "template_destpath": dest, "template_host": "", "template_uid": "",
        }

    def __getitem__(self, name: str) -> Any:
        if name in self._variables:
            return self._variables[name]
        return self._own[name]

    def __iter__(self) -> Iterator[str]:
        yield from self._variables
        yield from (name for name in self._own if name not in self._variables)

    def __len__(self) -> int:
        return sum(1 for _ in self)
