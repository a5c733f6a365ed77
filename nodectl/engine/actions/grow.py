"""add_host and group_by: the inventory grows while the run goes on. What they add holds from the next task on, and for later plays."""

from __future__ import annotations

from typing import Any

from nodectl.engine.actions.contract import ActionFailed, Args, Context
from nodectl.inventory.ranges import BadRange, expand, split_port
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

ADD_HOST = Spec(
    summary="Add a host to the inventory of this run, once for all hosts of the play",
    params={
        "name": Param("str", "The host, with :PORT where it is not 22.", required=True, aliases=("host", "hostname")),
        "groups": Param("list", "Groups that it is in; they are made where they are not there.", aliases=("groupname", "group"), elements="str"),
    },
    open=True,
    returns={"add_host": "host_name, groups and host_vars as they were added"},
    example="- add_host: {name: \"{{ new_node }}\", groups: [gpu], ansible_host: 10.0.0.9}\n",
)
GROUP_BY = Spec(
    summary="Put each host into a group that is named by its variables",
    params={
        "key": Param("str", "The group's name.", required=True),
        "parents": Param("list", "Groups that hold this one.", default=["all"], elements="str"),
    },
    returns={"add_group": "the group", "parent_groups": "the groups that hold it"},
    example="- group_by: {key: \"os_{{ ansible_facts['distribution'] }}\"}\n",
)


def add_host(context: Context, args: Args) -> Outcome:
    try:
        plain, port = split_port(args["name"])
        names = expand(plain)
    except BadRange as wrong:
        raise ActionFailed(f"add_host: {args['name']!r} is no host name: {wrong}") from None
    if len(names) != 1 or not names[0].strip():
        raise ActionFailed(f"add_host: {args['name']!r} is not the name of one host")
    groups = [part.strip() for text in args["groups"] or () for part in text.split(",") if part.strip()]
    given: dict[str, Any] = {name: value for name, value in args.items() if ADD_HOST.canonical(name) is None}
    if port:
        given["ansible_ssh_port"] = port
    changed = context.grow(names[0], groups, (), given)
    return Outcome(changed=changed, values={"add_host": {"host_name": names[0], "groups": groups, "host_vars": given}})


def group_by(context: Context, args: Args) -> Outcome:
    """Blanks become dashes, as in Ansible: a group has none in its name."""
    name, parents = args["key"].replace(" ", "-"), [parent.replace(" ", "-") for parent in args["parents"]]
    if not name:
        raise ActionFailed("group_by: the key is empty")
    changed = context.grow(context.host, [name], parents, {})
    return Outcome(changed=changed, values={"add_group": name, "parent_groups": parents})
