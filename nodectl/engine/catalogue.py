"""Every module name a playbook may use: those that run on the node and those whose first half runs here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from nodectl.agent import catalogue as on_node
from nodectl.engine.actions import (
    access,
    assemble,
    assert_,
    copy,
    debug,
    fail,
    fetch,
    grow,
    include_vars,
    machine_profile,
    pause,
    raw,
    reboot,
    script,
    set_fact,
    synchronize,
    template,
    unarchive,
    uri,
    wait_for_connection,
)
from nodectl.engine.actions.contract import Args, Context
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec


class Action(NamedTuple):
    spec: Spec
    run: Callable[[Context, Args], Outcome]


ACTIONS: Mapping[str, Action] = {
    "access_files": Action(access.FILES.spec, access.FILES.run),
    "add_host": Action(grow.ADD_HOST, grow.add_host),
    "assemble": Action(assemble.SPEC, assemble.run),
    "assert": Action(assert_.SPEC, assert_.run),
    "copy": Action(copy.SPEC, copy.run),
    "debug": Action(debug.SPEC, debug.run),
    "fail": Action(fail.SPEC, fail.run),
    "fetch": Action(fetch.SPEC, fetch.run),
    "group_by": Action(grow.GROUP_BY, grow.group_by),
    "include_vars": Action(include_vars.SPEC, include_vars.run),
    "machine_profile": Action(machine_profile.SPEC, machine_profile.run),
    "nftables_table": Action(access.FIREWALL.spec, access.FIREWALL.run),
    "pause": Action(pause.SPEC, pause.run),
    "raw": Action(raw.SPEC, raw.run),
    "reboot": Action(reboot.SPEC, reboot.run),
    "script": Action(script.SPEC, script.run),
    "set_fact": Action(set_fact.SPEC, set_fact.run),
    "sshd_dropin": Action(access.SSHD.spec, access.SSHD.run),
    "synchronize": Action(synchronize.SPEC, synchronize.run),
    "template": Action(template.SPEC, template.run),
    "unarchive": Action(unarchive.SPEC, unarchive.run),
    "uri": Action(uri.SPEC, uri.run),
    "wait_for_connection": Action(wait_for_connection.SPEC, wait_for_connection.run),
}

META_ACTIONS = (
    "flush_handlers", "noop", "end_host", "end_play", "end_batch", "end_role", "clear_facts", "clear_host_errors", "refresh_inventory", "reset_connection",
)

# What the strategy does itself: no code of a module stands behind these names.
STRUCTURE: Mapping[str, Spec] = {
    "meta": Spec("Steer the run", {"action": Param("str", "What to do.", required=True, choices=META_ACTIONS)}, free_form="action"),
    "include_tasks": Spec(
        "Go through the tasks of a file at this point",
        {"file": Param("path", "The file.", required=True), "apply": Param("dict", "Keywords for the tasks of the file.")},
        free_form="file",
    ),
    "include_role": Spec(
        "Go through a role at this point",
        {
            "name": Param("str", "The role.", required=True), "tasks_from": Param("str", "File in tasks/.", default="main"),
            "vars_from": Param("str", "File in vars/.", default="main"), "defaults_from": Param("str", "File in defaults/.", default="main"),
            "handlers_from": Param("str", "File in handlers/.", default="main"), "apply": Param("dict", "Keywords for the tasks of the role."),
            "public": Param("bool", "Leave the role's variables visible afterwards.", default=False),
            "allow_duplicates": Param("bool", "Taken for Ansible's sake: every include runs.", default=True),
            "rolespec_validate": Param("bool", "Check the role's arguments against its argument_specs.", default=True),
        },
    ),
}


def known(name: str) -> Spec | None:
    """The parameters of a module by its short name, or None where there is no such module."""
    if name in STRUCTURE:
        return STRUCTURE[name]
    if name in ACTIONS:
        return ACTIONS[name].spec
    return on_node.spec(name) if name in on_node.MODULES else None


def names() -> list[str]:
    """All names, sorted: for `nodectl doc` and for close matches. Probes are left to the verification."""
    return sorted({*STRUCTURE, *ACTIONS, *on_node.MODULES})
