"""The table of what Ansible has, held against Ansible itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodectl.engine.catalogue import known
from nodectl.lang import ansible_modules
from nodectl.lang.arguments import ansible_only, short_name

# The connection's other half of `async`, not a module that a task may name.
NO_MODULES = {"__init__", "async_wrapper"}
# A name of dnf that only the controller has.
ROUTED = {"yum"}


def test_the_table_is_all_of_ansible_core() -> None:
    modules = pytest.importorskip("ansible.modules")
    files = {path.stem for path in Path(modules.__path__[0]).glob("*.py")} - NO_MODULES
    assert set(ansible_modules._BUILTIN.split()) == files | ROUTED


@pytest.mark.parametrize("name", ["subversion", "ansible.builtin.set_stats", "ansible.legacy.sysvinit", "ansible.posix.patch", "community.general.xml", "nmcli"])
def test_what_ansible_has_and_nodectl_does_not(name: str) -> None:
    assert ansible_only(name)
    assert short_name(name, known) is None


@pytest.mark.parametrize("name", ["comand", "community.docker.docker_container", "some.where.reboot"])
def test_what_ansible_does_not_have_either_or_is_elsewhere(name: str) -> None:
    assert not ansible_only(name)
