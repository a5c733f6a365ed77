"""Hardening on a real host: access is never lost, whatever is asked for and whatever dies on the way."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from nodectl.wire.outcome import Outcome
from tests.roles.stage import Stages, Trial, until

pytestmark = pytest.mark.lab
FOLDERS = ("/etc/ssh", "/etc/systemd", "/var/lib/nodectl", "/run/systemd/transient")
DROP_INS = "/etc/ssh/sshd_config.d"
OURS = f"{DROP_INS}/00-nodectl.conf"
# Passes every check that can be made without trying: only a fresh login shows that nobody's key is found any more.
NO_KEYS = {"AuthorizedKeysFile": "/nonexistent"}


@pytest.fixture
def hardened(provisioned: Stages) -> Stages:
    """The host with the role's defaults in force and nothing pending, whatever the test before left."""
    proven(provisioned)
    provisioned.shell(f"find {DROP_INS} -type f ! -name 00-nodectl.conf -delete; mkdir -p /var/lib/nodectl /run/systemd/transient")
    done = apply(provisioned)
    assert not done.failed, done.msg
    if done.values["pending"]:
        assert not provisioned.do("access_confirm", guard="sshd", keep=True).failed
    return provisioned


@cache
def proven(stages: Stages) -> dict[str, str]:
    """The settings that the role's first run has left in force."""
    lines = stages.shell(f"grep -v '^#' {OURS}").splitlines()
    return {line.partition(" ")[0]: line.partition(" ")[2] for line in lines}


def apply(stages: Stages, check: bool = False, revert_after: int = 600, **extra: Any) -> Outcome:
    """The node's half alone, with the role's own settings: applied and, until somebody confirms, pending."""
    login = {"login_user": "ops", "login_address": "10.77.0.1"}
    return stages.do("sshd_dropin", check, settings={**proven(stages), **extra}, revert_after=revert_after, **login)


def settle(stages: Stages) -> None:
    """The role would prove a fresh login here."""
    assert stages.as_user("id -un") == "ops\n"
    assert not stages.do("access_confirm", guard="sshd", keep=True).failed


def seen(stages: Stages, keyword: str) -> str:
    """The effective value as sshd tells it."""
    return dict(line.split(" ", 1) for line in stages.inside("sshd", "-T").splitlines() if " " in line)[keyword.lower()]


def tree(stages: Stages) -> str:
    return stages.tree(*FOLDERS)


def test_the_defaults_are_effective_and_nothing_is_left_pending(hardened: Stages) -> None:
    assert (seen(hardened, "PermitRootLogin"), seen(hardened, "MaxStartups"), seen(hardened, "UsePAM")) == ("no", "64:30:256", "yes")
    assert hardened.shell(f"stat -c %a:%U {OURS}") == "600:root\n"
    assert hardened.as_user("id -un") == "ops\n"
    assert "nodectl-sshd-revert" not in hardened.shell("systemctl list-timers --all --no-pager; systemctl list-unit-files --no-pager")


@pytest.mark.parametrize(
    ("extra", "reason"),
    [
        ({"AllowGroups": "nobodyhere"}, "leaves out ops (groups ops ssh-users)"),
        ({"AllowUsers": ["root", "alice"]}, "leaves out ops"),
        ({"DenyGroups": "o*"}, "denygroups names ops"),
        ({"UsePAM": "no"}, "without PAM sshd refuses such accounts"),
        ({"PubkeyAuthentication": "no"}, "neither keys nor passwords"),
        ({"Nonsense": "1"}, "Bad configuration option: Nonsense"),
        ({"Ciphers": "nonsense"}, "Bad SSH2 cipher spec 'nonsense'"),
        ({"MaxAuthTries": "many"}, "integer value invalid"),
        ({"Match": "Address 10.0.0.0/8"}, "begins a Match block"),
        ({"Banner": "no\nPort 2222"}, "needs a value of one line"),
        ({"Max AuthTries": "3"}, "is no sshd keyword"),
    ],
    ids=str,
)
def test_what_would_break_is_refused_before_anything_is_written(hardened: Stages, extra: dict[str, Any], reason: str) -> None:
    before = tree(hardened)
    for check in (True, False):
        done = apply(hardened, check, **extra)
        assert done.failed
        assert reason in done.msg
        assert "nothing was changed" in done.msg
    assert tree(hardened) == before
    assert hardened.as_user("id -un") == "ops\n"


def test_a_refusal_reaches_the_person(hardened: Stages) -> None:
    done = hardened("hardening", hardening_sshd_extra={"AllowGroups": "nobodyhere"})
    assert done.code == 2
    assert "this would lock out ops, nothing was changed: allowgroups nobodyhere leaves out ops (groups ops ssh-users)" in done.out


@pytest.mark.parametrize(
    ("extra", "keyword", "value"),
    [
        ({"maxauthtries": 6}, "MaxAuthTries", "6"),
        ({"MaxAuthTries": None}, "MaxAuthTries", "6"),
        ({"LoginGraceTime": "2m", "RekeyLimit": "1G 1h", "MaxStartups": 100}, "RekeyLimit", "1073741824 3600"),
        ({"Ciphers": ["aes256-gcm@openssh.com", "aes256-ctr"]}, "Ciphers", "aes256-gcm@openssh.com,aes256-ctr"),
        ({"Ciphers": "-chacha20-poly1305@openssh.com"}, "Ciphers", "aes128-ctr,aes192-ctr,aes256-ctr,aes128-gcm@openssh.com,aes256-gcm@openssh.com"),
        ({"ChallengeResponseAuthentication": False}, "KbdInteractiveAuthentication", "no"),
        ({"AcceptEnv": "WANDB_*"}, "AcceptEnv", "LC_*"),
        ({"AllowGroups": ["ops", "sudo"]}, "AllowGroups", "sudo"),
    ],
    ids=str,
)
def test_values_may_be_written_in_any_of_sshds_ways(hardened: Stages, extra: dict[str, Any], keyword: str, value: str) -> None:
    assert apply(hardened, True, **extra).changed
    done = apply(hardened, **extra)
    assert (done.failed, done.changed) == (False, True), done.msg
    settle(hardened)
    assert apply(hardened, **extra).changed is False
    assert seen(hardened, keyword) == value


def test_a_cloud_images_drop_in_loses(hardened: Stages) -> None:
    hardened.shell(f"rm {OURS}; echo 'PasswordAuthentication yes' > {DROP_INS}/50-cloud-init.conf")
    assert seen(hardened, "PasswordAuthentication") == "yes"
    assert apply(hardened).changed
    settle(hardened)
    assert seen(hardened, "PasswordAuthentication") == "no"


def test_a_drop_in_that_sorts_first_is_named(hardened: Stages) -> None:
    hardened.shell(f"rm {OURS}; echo 'PasswordAuthentication yes' > {DROP_INS}/00-aaa.conf")
    before = tree(hardened)
    done = apply(hardened)
    assert done.failed
    assert f"{DROP_INS}/00-aaa.conf sorts before {OURS}" in done.msg
    assert tree(hardened) == before


def test_a_setting_before_the_include_line_is_named(hardened: Stages) -> None:
    hardened.shell(f"rm {OURS}; cp -a /etc/ssh/sshd_config /root/kept; sed -i '1i MaxAuthTries 9' /etc/ssh/sshd_config")
    try:
        before = tree(hardened)
        done = apply(hardened)
        assert done.failed
        assert "MaxAuthTries is effectively '9', wished '3'; look for it before the Include line" in done.msg
        assert tree(hardened) == before
    finally:
        hardened.shell("cp -a /root/kept /etc/ssh/sshd_config")


def test_settings_that_no_login_survives_are_taken_back(hardened: Stages) -> None:
    hardened.shell(f"chmod 640 {OURS}")
    before = tree(hardened)
    done = hardened("hardening", hardening_sshd_extra=NO_KEYS)
    assert done.code == 2
    assert "no fresh login with the new settings: " in done.reason
    assert "login refused for user ops" in done.reason
    assert done.reason.endswith("the old ones are back, and a fresh login works")
    assert tree(hardened) == before
    assert hardened.as_user("id -un") == "ops\n"
    again = hardened("hardening", hardening_sshd_extra={"MaxAuthTries": 4})
    assert again.code == 0, again.out
    assert seen(hardened, "MaxAuthTries") == "4"


def test_without_a_file_before_there_is_none_after(hardened: Stages) -> None:
    hardened.shell(f"rm {OURS}; systemctl reload ssh")
    before = tree(hardened)
    assert hardened("hardening", hardening_sshd_extra=NO_KEYS).code == 2
    assert tree(hardened) == before


def applied(stages: Stages) -> bool:
    """Looked at from outside: a process in the host would need longer than the moment lasts."""
    root = stages.lab.root(stages.host)
    return (root / "var/lib/nodectl/sshd-revert/armed").exists() and "slow-keys" in (root / OURS[1:]).read_text()


def slow_keys(stages: Stages) -> dict[str, Any]:
    """Settings with which a login takes two seconds longer: time enough to die between applying and confirming."""
    stages.shell("printf '#!/bin/sh\\nsleep 2\\n' > /usr/local/bin/slow-keys; chmod 755 /usr/local/bin/slow-keys")
    return {"AuthorizedKeysCommand": "/usr/local/bin/slow-keys", "AuthorizedKeysCommandUser": "nobody"}


def test_a_dead_controller_is_no_confirmation(hardened: Stages) -> None:
    before = tree(hardened)
    hardened.killed("hardening", lambda: applied(hardened), hardening_sshd_extra=slow_keys(hardened), hardening_revert_after=5)
    until(lambda: not applied(hardened), 15, "the node takes the old settings back by itself")
    until(lambda: tree(hardened) == before, 5, "nothing is left of the new ones")
    assert seen(hardened, "AuthorizedKeysCommand") == "none"
    # sshd starts itself again when it takes its old settings: for a moment nobody listens.
    until(lambda: hardened.lab.ssh(hardened.host, "id -un").stdout == "ops\n", 15, "the login works again")


def test_a_confirmation_that_comes_too_late_is_refused(hardened: Stages) -> None:
    before = tree(hardened)
    assert apply(hardened, MaxAuthTries=5, revert_after=1).values["pending"]
    until(lambda: tree(hardened) == before, 10, "the node takes the old settings back by itself")
    late = hardened.do("access_confirm", guard="sshd", keep=True)
    assert late.failed
    assert "already restored" in late.msg


def test_a_run_after_a_dead_controller_confirms_what_it_proves(hardened: Stages) -> None:
    assert apply(hardened, MaxAuthTries=5).values["pending"]
    done = hardened("hardening", hardening_sshd_extra={"MaxAuthTries": 5})
    assert (done.code, done.changed) == (0, set()), done.out
    assert hardened.shell("ls -d /var/lib/nodectl/*-revert 2>/dev/null || true") == ""
    assert seen(hardened, "MaxAuthTries") == "5"


def test_what_comes_back_is_the_last_proven_file(hardened: Stages) -> None:
    """A second, different change on top of one that nobody confirmed: the unproven one must not become "the old one"."""
    before = tree(hardened)
    assert apply(hardened, MaxAuthTries=5).values["pending"]
    assert apply(hardened, MaxAuthTries=6).values["pending"]
    assert seen(hardened, "MaxAuthTries") == "6"
    back = hardened.do("access_confirm", guard="sshd", keep=False)
    assert (back.failed, back.changed) == (False, True)
    assert tree(hardened) == before
    assert seen(hardened, "MaxAuthTries") == "3"


def test_a_node_that_loses_power_before_the_confirmation_boots_with_the_old_file(hardened: Stages) -> None:
    before = hardened.tree("/etc/ssh", "/etc/systemd", "/var/lib/nodectl")
    assert apply(hardened, MaxAuthTries=5).values["pending"]
    hardened.close()
    hardened.lab.fault(hardened.host, "down")
    hardened.lab.lift(hardened.host, "down")
    until(lambda: hardened.tree("/etc/ssh", "/etc/systemd", "/var/lib/nodectl") == before, 20, "the boot takes the old settings back")
    assert seen(hardened, "MaxAuthTries") == "3"
    assert hardened.as_user("id -un") == "ops\n"


def test_root_is_not_locked_out(hardened: Stages) -> None:
    hardened.shell("mkdir -p /root/.ssh; chmod 700 /root/.ssh; cp /home/ops/.ssh/authorized_keys /root/.ssh/")
    hardened.shell(f"rm {OURS}; systemctl reload ssh")
    before = tree(hardened)
    done = hardened("hardening", ansible_user="root", ansible_become=False)
    assert done.code == 2, done.out
    assert "PermitRootLogin no, and this run logs in as root" in done.reason
    assert "PermitRootLogin: prohibit-password" in done.reason
    assert tree(hardened) == before
    allowed = hardened("hardening", ansible_user="root", hardening_sshd_extra={"PermitRootLogin": "prohibit-password"})
    assert allowed.code == 0, allowed.out


def test_revert_gives_back_what_was_there_before_the_first_run(hardened: Stages, first: dict[str, Trial]) -> None:
    """Last of all, because it takes the profile away."""
    foretold, done = hardened("hardening", "--check", "--tags", "revert"), hardened("hardening", "--tags", "revert")
    assert (foretold.code, done.code) == (0, 0), foretold.out + done.out
    assert foretold.changed == done.changed
    # What else is there now has come with packages that ours needed, which stay.
    before, after = first["hardening"].before.splitlines(), hardened.settings().splitlines()
    assert sorted(set(before) - set(after)) == []
    assert [line for line in after if "nodectl" in line and line not in before] == []
    assert hardened.shell("getent group ssh-users sugroup || true") == ""
    assert "inet nodectl" not in hardened.shell("nft list tables 2>/dev/null || true")
    assert hardened.as_user("id -un") == "ops\n"
    again = hardened("hardening", "--tags", "revert")
    assert (again.code, again.changed) == (0, set()), again.out
