"""Connection variables as Ansible spells them, and what the transport gets."""

from __future__ import annotations

from typing import Any

import pytest

from nodectl.engine.options import Options
from nodectl.engine.targets import BadTarget, become_of, needed_become, target_of
from nodectl.lang.task import Become, Reach
from nodectl.transport.channel import BecomeTarget, Target
from nodectl.wire.secret import Secret

TARGETS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {"address": "n1", "port": 22, "user": "cli", "connection": "ssh", "key_file": "/cli", "python": "python3"}),
    ({"ansible_host": "10.0.0.1", "ansible_port": "2222"}, {"address": "10.0.0.1", "port": 2222}),
    ({"ansible_user": "ops", "ansible_ssh_private_key_file": "/k"}, {"user": "ops", "key_file": "/k"}),
    ({"ansible_ssh_user": "old", "ansible_ssh_host": "h", "ansible_ssh_port": 1}, {"user": "old", "address": "h", "port": 1}),
    ({"ansible_connection": "local"}, {"connection": "local"}),
    ({"ansible_connection": "smart"}, {"connection": "ssh"}),
    ({"ansible_python_interpreter": "auto_silent"}, {"python": "python3"}),
    ({"ansible_python_interpreter": "/opt/py"}, {"python": "/opt/py"}),
    ({"ansible_ssh_common_args": "-o UserKnownHostsFile=/kh -o ProxyJump=b"}, {"options": {"userknownhostsfile": "/kh", "proxyjump": "b"}}),
    ({"ansible_password": "pw"}, {"password": Secret("pw")}),
    ({"ansible_ssh_pass": Secret("pw")}, {"password": Secret("pw")}),
]


@pytest.mark.parametrize(("variables", "expected"), TARGETS)
def test_target(variables: dict[str, Any], expected: dict[str, Any]) -> None:
    target = target_of("n1", variables, remote_user="cli", private_key="/cli")
    assert {name: getattr(target, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"ansible_port": "many"}, "ansible_port"), ({"ansible_port": 0}, "1 to 65535"), ({"ansible_port": 70000}, "1 to 65535"),
        ({"ansible_connection": "winrm"}, "winrm"), ({"ansible_ssh_common_args": "-o 'X"}, "ansible_ssh_common_args"),
    ],
)  # fmt: skip
def test_target_refuses(variables: dict[str, Any], said: str) -> None:
    with pytest.raises(BadTarget, match=said):
        target_of("n1", variables)


def test_localhost_is_local_unless_it_has_an_address() -> None:
    assert target_of("localhost", {}).connection == "local"
    assert target_of("localhost", {"ansible_host": "10.0.0.1"}).connection == "ssh"


NO = Become()
BECOMES: list[tuple[Become, Become, dict[str, Any], Options, BecomeTarget | None]] = [
    (NO, NO, {}, Options(), None),
    (Become(True), NO, {}, Options(), BecomeTarget("root")),
    (NO, Become(True, "app"), {}, Options(), BecomeTarget("app")),
    (Become(user="db"), Become(True, "app"), {}, Options(), BecomeTarget("db")),
    (Become(False), Become(True), {}, Options(become=True), None),
    (Become(True), NO, {"ansible_become": "no"}, Options(), None),
    (Become(True, flags="-H -S -n -E"), NO, {}, Options(), BecomeTarget("root", flags=("-E",))),
    (Become(True, flags="-E"), NO, {"ansible_become_flags": "-i"}, Options(), BecomeTarget("root", flags=("-i",))),
    (NO, NO, {}, Options(become=True, become_user="x", become_password=Secret("p")), BecomeTarget("x", password=Secret("p"))),
    (Become(True), NO, {"ansible_become_password": "q", "ansible_become_user": "y"}, Options(become_password=Secret("p")), BecomeTarget("y", password=Secret("q"))),
]


@pytest.mark.parametrize(("task", "play", "variables", "options", "expected"), BECOMES)
def test_become(task: Become, play: Become, variables: dict[str, Any], options: Options, expected: BecomeTarget | None) -> None:
    assert become_of(task, play, variables, options) == expected


@pytest.mark.parametrize(("task", "said"), [(Become(True, method="su"), "su"), (Become("perhaps"), "true or false"), (Become(True, flags="'"), "become_flags")])
def test_become_refuses(task: Become, said: str) -> None:
    with pytest.raises(BadTarget, match=said):
        become_of(task, NO, {}, Options())


def test_become_is_left_out_for_the_user_one_already_is() -> None:
    root = BecomeTarget("root")
    assert needed_become(Target("n", "n", user="root"), root) is None
    assert needed_become(Target("n", "n", user="ops"), root) is root
    assert needed_become(Target("n", "n"), root) is root


REACHES = [
    ({}, Reach(user="k", port=2222, connection="local"), ("k", 2222, "local")),
    ({"ansible_user": "v", "ansible_port": 1, "ansible_connection": "ssh"}, Reach("local", "k", 2222), ("v", 1, "ssh")),
    ({}, Reach(), ("cli", 22, "ssh")),
    ({}, Reach("ansible.builtin.ssh"), ("cli", 22, "ssh")),
]


@pytest.mark.parametrize(("variables", "reach", "expected"), REACHES)
def test_variables_win_over_keywords_and_those_over_the_command_line(variables: dict[str, Any], reach: Reach, expected: tuple[Any, ...]) -> None:
    target = target_of("n1", variables, reach=reach, remote_user="cli")
    assert (target.user, target.port, target.connection) == expected
