"""sshd settings as text and as effective values; who would be locked out."""

from __future__ import annotations

import pytest

from nodectl.agent.sshd_config import effective, includes, lockout, mismatches, render, restage

OPEN = {"permitrootlogin": "without-password", "pubkeyauthentication": "yes", "passwordauthentication": "no"}


def test_the_same_wish_is_the_same_bytes_whatever_its_order() -> None:
    assert render({"MaxAuthTries": "3", "AllowGroups": ["ops", "wheel"]}) == render({"AllowGroups": ["ops", "wheel"], "MaxAuthTries": "3"})
    assert render({"X11Forwarding": False, "AllowGroups": ["ops", "wheel"]}).splitlines()[1:] == ["AllowGroups ops wheel", "X11Forwarding no"]


def test_repeated_keywords_of_sshd_t_are_one_value() -> None:
    assert effective("port 22\nallowgroups ops\nallowgroups wheel\n\n") == {"port": "22", "allowgroups": "ops wheel"}


@pytest.mark.parametrize(
    ("keyword", "wished", "is_now", "same"),
    [
        ("PermitRootLogin", "prohibit-password", "without-password", True),
        ("PermitRootLogin", "no", "without-password", False),
        ("LoginGraceTime", "2m", "120", True),
        ("LoginGraceTime", "1h30m", "5400", True),
        ("LoginGraceTime", "60", "120", False),
        ("LogLevel", "VERBOSE", "VERBOSE", True),
        ("MaxStartups", "64:30:256", "10:30:100", False),
        ("AllowGroups", ["ops", "wheel"], "ops wheel", True),
        ("PasswordAuthentication", False, "no", True),
        ("Nonsense", "1", "", False),
    ],
)
def test_the_effective_value_decides(keyword: str, wished: object, is_now: str, same: bool) -> None:
    found = {keyword.lower(): is_now} if is_now else {}
    wrong = mismatches({keyword: wished}, found)
    assert (wrong == []) is same
    if not same:
        assert keyword in wrong[0]
        assert (is_now or "not set") in wrong[0]


@pytest.mark.parametrize(
    ("change", "user", "groups", "uid", "reason"),
    [
        ({}, "ops", ["ops"], 1000, ""),
        ({"permitrootlogin": "no"}, "ops", ["ops"], 1000, ""),
        ({"permitrootlogin": "no"}, "root", ["root"], 0, "PermitRootLogin no"),
        ({"allowgroups": "sudo ssh-users"}, "ops", ["ops"], 1000, "leaves out ops"),
        ({"allowgroups": "sudo ssh-*"}, "ops", ["ops", "ssh-users"], 1000, ""),
        ({"allowusers": "alice bob@10.0.0.*"}, "ops", ["ops"], 1000, "leaves out ops"),
        ({"allowusers": "ops@10.0.0.*"}, "ops", ["ops"], 1000, ""),
        ({"denygroups": "ops"}, "ops", ["ops"], 1000, "denygroups names ops"),
        ({"denyusers": "o?s"}, "ops", ["ops"], 1000, "denyusers names ops"),
        ({"pubkeyauthentication": "no"}, "ops", ["ops"], 1000, "neither keys nor passwords"),
    ],
)
def test_who_would_be_locked_out(change: dict[str, str], user: str, groups: list[str], uid: int, reason: str) -> None:
    told = lockout({**OPEN, **change}, user, groups, uid)
    assert (told == "") if not reason else (reason in told)


@pytest.mark.parametrize(
    ("main", "staged"),
    [
        ("Include /etc/ssh/sshd_config.d/*.conf\nUsePAM yes\n", "Include /run/x/sshd_config.d/*.conf\nUsePAM yes\n"),
        ("include sshd_config.d/*.conf\n", "include /run/x/sshd_config.d/*.conf\n"),
        ("#Include /etc/ssh/sshd_config.d/*.conf\n", "#Include /etc/ssh/sshd_config.d/*.conf\n"),
    ],
)
def test_the_staged_copy_reads_the_staged_drop_ins(main: str, staged: str) -> None:
    assert restage(main, "/etc/ssh/sshd_config.d", "/run/x/sshd_config.d") == staged
    assert includes(main, "/etc/ssh/sshd_config.d") is not main.startswith("#")
