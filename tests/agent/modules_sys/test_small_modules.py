"""Accounts, keys, kernel settings and modules: pure parts on tables, the rest on copies."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

import pytest

from nodectl.agent import kernel_keys
from nodectl.agent.contract import Failed
from nodectl.agent.modules import authorized_key, getent, group, modprobe, sysctl, user
from nodectl.agent.system import System
from tests.agent.modules_sys.conftest import Inside
from tests.agent.modules_sys.scripted import Scripted, filled, reason


def public_key(letter: str, comment: str = "me@here") -> str:
    kind = b"ssh-ed25519"
    blob = base64.b64encode(len(kind).to_bytes(4, "big") + kind + b"\0\0\0\x20" + letter.encode() * 32).decode()
    return f"ssh-ed25519 {blob} {comment}"


A, B = public_key("a"), public_key("b", "other")


@pytest.mark.parametrize(
    ("old", "args", "new"),
    [
        ("", {"key": A}, f"{A}\n"),
        (f"{A}\n", {"key": A}, f"{A}\n"),
        (f"# mine\n{B}", {"key": A}, f"# mine\n{B}\n{A}\n"),
        (f"{A} renamed\n", {"key": A}, f"{A} renamed\n"),
        (f"{A}\n{B}\n", {"key": A, "state": "absent"}, f"{B}\n"),
        (f"# c\n{B}\n", {"key": A, "exclusive": True}, f"# c\n{A}\n"),
        (f"{A}\n{A}\n", {"key": A}, f"{A}\n"),
        (f"{A}\n", {"key": A, "key_options": 'from="10.0.0.0/8"'}, f'from="10.0.0.0/8" {A}\n'),
        (f'command="a b" {A}\n', {"key": f'command="a b" {A}'}, f'command="a b" {A}\n'),
        (f"{B}\n", {"key": f"{A}\n{B}"}, f"{B}\n{A}\n"),
    ],
)
def test_authorized_keys_text(old: str, args: dict[str, Any], new: str) -> None:
    full = filled(authorized_key.SPEC, user="ops", **args)
    assert authorized_key.new_text(full, old, authorized_key.wished(full)) == new


@pytest.mark.parametrize("key", ["ssh-ed25519", A[:60], A.replace("ssh-ed25519", "ssh-rsa"), "https://example.org/me.keys", "# only a comment", "-----BEGIN KEY-----"])
def test_what_is_no_key_is_refused(key: str) -> None:
    assert reason(lambda: authorized_key.wished(filled(authorized_key.SPEC, user="ops", key=key)))


def test_links_are_not_followed_as_root(tmp_path: Path) -> None:
    (tmp_path / "keys").symlink_to("/etc/passwd")
    args = filled(authorized_key.SPEC, user="root", key=A, path=str(tmp_path / "keys"))
    assert "not a plain file" in reason(lambda: authorized_key.read(System(), args))


def test_key_of_a_user_to_come() -> None:
    args = filled(authorized_key.SPEC, user="nobody-knows", key=A)
    state = authorized_key.read(System(), args)
    assert authorized_key.diff(args, state)
    assert "no user nobody-knows" in reason(lambda: authorized_key.write(System(), args, state, authorized_key.diff(args, state)))


NAMED = {"adm": (4, "adm"), "sudo": (27, "sudo"), "27": (27, "sudo")}


def user_state(**more: Any) -> dict[str, Any]:
    base = {"uid": 1000, "gid": 1000, "comment": "", "home": "/home/ops", "shell": "/bin/sh", "named": NAMED, "groups": ["adm"], "password": "!", "home_exists": True}
    return dict(base, **more)


@pytest.mark.parametrize(
    ("args", "state", "steps"),
    [
        ({}, user_state(), []),
        ({"shell": "/bin/bash"}, user_state(), ["change shell of ops from /bin/sh to /bin/bash"]),
        ({"uid": 1001}, user_state(), ["change uid of ops from 1000 to 1001"]),
        ({"groups": ["sudo"], "append": True}, user_state(), ["change groups of ops from adm to adm,sudo"]),
        ({"groups": ["adm"]}, user_state(), []),
        ({"groups": ["27"]}, user_state(groups=["sudo"]), []),
        ({"groups": []}, user_state(), ["change groups of ops from adm to none"]),
        ({"groups": ["sudo"]}, user_state(), ["change groups of ops from adm to sudo"]),
        ({"password": "$6$x"}, user_state(), ["set the password of ops"]),
        ({"password": "$6$x", "update_password": "on_create"}, user_state(), []),
        ({"password_lock": True}, user_state(password="$6$x"), ["lock the password of ops"]),
        ({"password_lock": True}, user_state(), []),
        ({}, user_state(home_exists=False), ["make the home folder /home/ops"]),
        ({"create_home": False}, user_state(home_exists=False), []),
        ({"state": "absent"}, user_state(), ["remove user ops"]),
        ({"state": "absent"}, {"uid": None}, []),
        ({}, {"uid": None}, ["make user ops"]),
    ],
)
def test_user_steps(args: dict[str, Any], state: dict[str, Any], steps: list[str]) -> None:
    full = filled(user.SPEC, name="ops", **args)
    assert user.diff(full, dict({"named": {}, "groups": []}, **state)).actions == steps


def test_clear_text_password_is_refused_and_not_shown() -> None:
    said = reason(lambda: user.diff(filled(user.SPEC, name="ops", password="hunter2"), user_state()))
    assert "not a hash" in said
    assert "hunter2" not in said


def test_password_goes_through_stdin() -> None:
    system = Scripted({"useradd": (0, "", ""), "chpasswd": (0, "", "")}, {"/etc/shadow": b""})
    args = filled(user.SPEC, name="newone", password="$6$secret")
    state: dict[str, Any] = {"uid": None, "groups": [], "named": {}}
    user.write(system, args, state, user.diff(args, state))
    assert not any("secret" in line for line in system.ran)
    assert system.fed[-1] == b"newone:$6$secret\n"


def test_unknown_group_is_named_before_anything_is_done() -> None:
    system = Scripted({})
    args = filled(user.SPEC, name="newone", groups=["no-such-group"])
    state = user.read(system, args)
    assert "no group no-such-group" in reason(lambda: user.write(system, args, state, user.diff(args, state)))


def test_accounts_for_real(inside: Inside) -> None:
    for check in (True, False, False):
        made_group = inside.step("group", {"name": "nodectl-t", "gid": 48211}, check=check)
    assert made_group["changed"] is False
    wish = {"name": "nodectl-t", "group": "nodectl-t", "groups": ["adm"], "shell": "/bin/bash", "home": str(inside.folder / "home"), "password": "$6$a$b"}
    assert inside.step("user", wish, check=True)["changed"]
    done = inside.step("user", wish)
    assert not done["failed"], done["msg"]
    assert done["values"]["groups"] == "adm"
    assert inside.sh("id -nG nodectl-t").split() == ["nodectl-t", "adm"]
    assert inside.step("user", wish)["changed"] is False
    assert inside.sh("getent shadow nodectl-t").split(":")[1] == "$6$a$b"
    key = inside.step("authorized_key", {"user": "nodectl-t", "key": A})
    assert not key["failed"], key["msg"]
    assert inside.sh(f"stat -c '%U %a' {inside.folder}/home/.ssh {inside.folder}/home/.ssh/authorized_keys").split() == ["nodectl-t", "700", "nodectl-t", "600"]
    assert inside.step("authorized_key", {"user": "nodectl-t", "key": A})["changed"] is False
    assert inside.step("user", dict(wish, groups=["sudo"], append=True))["changed"]
    assert inside.sh("id -nG nodectl-t").split() == ["nodectl-t", "adm", "sudo"]
    assert inside.step("user", {"name": "nodectl-t", "state": "absent", "remove": True})["changed"]
    assert inside.step("getent", {"database": "passwd", "key": "nodectl-t", "fail_key": False})["facts"] == {"getent_passwd": {"nodectl-t": None}}
    assert inside.step("group", {"name": "nodectl-t", "state": "absent"})["failed"] is False


def test_group_steps() -> None:
    assert group.diff(filled(group.SPEC, name="g", gid=7), {"gid": 6}).actions == ["change the gid of g from 6 to 7"]
    assert "exists" in reason(lambda: group.write(Scripted({"groupadd": (9, "", "exists")}), filled(group.SPEC, name="g"), {"gid": None}, group.diff(filled(group.SPEC, name="g"), {"gid": None})))


def test_getent_splits() -> None:
    hosts = Scripted({"getent hosts": (0, "10.0.0.1   n1 n1.local\n", "")})
    assert getent.act(hosts, filled(getent.SPEC, database="hosts"), False).facts == {"getent_hosts": {"10.0.0.1": ["n1", "n1.local"]}}
    assert "no entry 'x'" in reason(lambda: getent.act(Scripted({"getent": (2, "", "")}), filled(getent.SPEC, database="passwd", key="x"), False))


@pytest.mark.parametrize(
    ("old", "value", "new"),
    [
        ("", "1", "a.b = 1\n"),
        ("a.b=1\n", "1", "a.b=1\n"),
        ("a/b = 1\n", "2", "a.b = 2\n"),
        ("# a.b = 9\nx = 1\na.b = 1\na.b = 3\n", "2", "# a.b = 9\nx = 1\na.b = 2\n"),
        ("a.b = 4096\t87380 1\n", "4096 87380\t1", "a.b = 4096\t87380 1\n"),
        ("a.b = 1\n", None, ""),
        ("-a.b = 1\n", "1", "-a.b = 1\n"),
        ("x = 1", "1", "x = 1\na.b = 1\n"),
    ],
)
def test_sysctl_text(old: str, value: str | None, new: str) -> None:
    assert sysctl.with_value(old, "a.b", value) == new
    assert sysctl.with_value(new, "a.b", value) == new


def test_sysctl_names() -> None:
    assert kernel_keys.proc_path("net.ipv4.conf.eth0/100.rp_filter") == "/proc/sys/net/ipv4/conf/eth0.100/rp_filter"
    assert kernel_keys.proc_path("net/core/rmem_max") == "/proc/sys/net/core/rmem_max"


class Kernel:
    """A /proc/sys in a folder."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.key = folder / "vm" / "swappiness"
        self.key.parent.mkdir(parents=True)
        self.key.write_text("60\n")
        self.file = folder / "sysctl.d" / "x.conf"
        monkeypatch.setattr(kernel_keys, "PROC", str(folder))

    def run(self, check: bool = False, **args: Any) -> Any:
        full = filled(sysctl.SPEC, **dict({"name": "vm.swappiness", "value": "10", "sysctl_file": str(self.file)}, **args))
        return sysctl.act(System(), full, check)


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    return Kernel(tmp_path, monkeypatch)


def test_sysctl_file_and_kernel(kernel: Kernel) -> None:
    told = kernel.run(check=True)
    assert not kernel.file.exists()
    done = kernel.run()
    assert told.msg == done.msg == f"write vm.swappiness in {kernel.file}; set vm.swappiness from 60 to 10"
    assert (kernel.file.read_text(), kernel.key.read_text()) == ("vm.swappiness = 10\n", "10")
    assert not kernel.run().changed
    kernel.key.write_text("60\n")
    assert kernel.run().msg == "set vm.swappiness from 60 to 10"


def test_sysctl_read_only_is_a_warning(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    done = kernel.run()
    assert done.changed
    assert "takes effect at boot" in done.warnings[0]
    assert done.values["effective"] == "boot"
    assert kernel.key.read_text() == "60\n"
    assert not kernel.run().changed


def test_sysctl_missing_key_is_a_warning(kernel: Kernel) -> None:
    done = kernel.run(name="net.no.such")
    assert "no such key here" in done.warnings[0]
    assert done.values == {"live": None, "effective": "none"}


def test_sysctl_without_reload(kernel: Kernel) -> None:
    assert kernel.run(reload=False).values["effective"] == "boot"
    assert kernel.key.read_text() == "60\n"


def test_sysctl_refused_by_the_kernel(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sysctl, "read_live", lambda name: "60")
    with pytest.raises(Failed, match="the kernel shows 60"):
        kernel.run()
    assert "the kernel shows 60" in kernel.run(ignoreerrors=True).warnings[0]


def module_state(**more: Any) -> dict[str, Any]:
    return dict({"loaded": False, "builtin": False, "table": True, "tree": True, "load_file": "", "options_file": ""}, **more)


@pytest.mark.parametrize(
    ("args", "state", "steps"),
    [
        ({}, module_state(), ["load m"]),
        ({}, module_state(loaded=True), []),
        ({}, module_state(builtin=True, table=False), []),
        ({"state": "absent"}, module_state(loaded=True), ["unload m"]),
        ({"persistent": "present"}, module_state(loaded=True), ["write /etc/modules-load.d/m.conf"]),
        ({"persistent": "present", "params": "a=1"}, module_state(loaded=True, load_file="m\n"), ["write /etc/modprobe.d/m.conf"]),
        ({"persistent": "absent"}, module_state(loaded=True, load_file="m\n"), ["remove /etc/modules-load.d/m.conf"]),
    ],
)
def test_modprobe_steps(args: dict[str, Any], state: dict[str, Any], steps: list[str]) -> None:
    assert modprobe.diff(filled(modprobe.SPEC, name="m", **args), state).actions == steps


def test_modprobe_where_nothing_can_be_loaded() -> None:
    args = filled(modprobe.SPEC, name="m")
    with pytest.raises(Failed, match="cannot load modules here") as raised:
        modprobe.diff(args, module_state(table=False))
    assert raised.value.values == {"available": False}
    assert "built into" in reason(lambda: modprobe.diff(filled(modprobe.SPEC, name="m", state="absent"), module_state(builtin=True)))
    broken = Scripted({"modprobe m": (1, "", "FATAL: not found")})
    assert "no /lib/modules" in reason(lambda: modprobe.write(broken, args, module_state(tree=False), modprobe.diff(args, module_state(tree=False))))
