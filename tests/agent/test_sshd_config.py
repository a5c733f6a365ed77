"""sshd settings as text and as effective values; who would be locked out."""

from __future__ import annotations

import pytest

from nodectl.agent.sshd_config import effective, includes, lockout, mismatches, refusals, render, restage, wishes

OPEN = {"permitrootlogin": "without-password", "pubkeyauthentication": "yes", "passwordauthentication": "no"}


def test_the_same_wish_is_the_same_bytes_whatever_its_order() -> None:
    assert render({"MaxAuthTries": "3", "AllowGroups": ["ops", "wheel"]}) == render({"AllowGroups": ["ops", "wheel"], "MaxAuthTries": "3"})
    assert render({"X11Forwarding": False, "AllowGroups": ["ops", "wheel"]}).splitlines()[1:] == ["AllowGroups ops wheel", "X11Forwarding no"]


def test_repeated_keywords_of_sshd_t_are_one_value() -> None:
    assert effective("port 22\nallowgroups ops\nallowgroups wheel\n\n") == {"port": "22", "allowgroups": "ops wheel"}


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        ({"MaxAuthTries": "3", "maxauthtries": 6}, {"maxauthtries": "6"}),
        ({"MaxAuthTries": "3", "MAXAUTHTRIES": None}, {}),
        ({"X11Forwarding": True}, {"X11Forwarding": "yes"}),
        ({"Ciphers": ["a", "b"], "AllowUsers": ["a", "b"]}, {"Ciphers": "a,b", "AllowUsers": "a b"}),
        ({"Banner": " none\n"}, {"Banner": "none"}),
    ],
    ids=str,
)
def test_keywords_are_one_in_any_case_and_the_later_counts(settings: dict[str, object], kept: dict[str, str]) -> None:
    assert wishes(settings) == kept


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"MaxAuthTries": "3", "X11Forwarding": False}, ""),
        ({"Match": "User x"}, "Match begins a Match block"),
        ({"include": "/etc/x"}, "include begins an Include line"),
        ({"Banner": "a\nPort 2222"}, "needs a value of one line"),
        ({"Banner": ""}, "needs a value of one line"),
        ({"AllowUsers": []}, "needs a value of one line"),
        ({"Max AuthTries": "3"}, "is no sshd keyword"),
        ({"#Port": "3"}, "is no sshd keyword"),
    ],
    ids=str,
)
def test_what_is_no_line_of_its_own_is_refused(settings: dict[str, object], reason: str) -> None:
    told = refusals(settings)
    assert told == [] if not reason else (len(told) == 1 and reason in told[0])


@pytest.mark.parametrize(
    ("keyword", "wished", "alone", "is_now", "same"),
    [
        ("PermitRootLogin", "prohibit-password", "without-password", "without-password", True),
        ("PermitRootLogin", "no", "no", "without-password", False),
        ("LoginGraceTime", "2m", "120", "120", True),
        ("LogLevel", "verbose", "VERBOSE", "VERBOSE", True),
        ("MaxStartups", "64:30:256", "64:30:256", "10:30:100", False),
        ("AllowGroups", ["ops", "wheel"], "ops wheel", "ops wheel", True),
        ("AllowGroups", ["ops"], "ops", "ops wheel", False),
        ("AcceptEnv", "FOO", "FOO", "FOO LANG LC_*", True),
        ("AcceptEnv", "FOO", "FOO", "LANG LC_*", False),
        ("Ciphers", "-a", "b,c", "b,c", True),
        ("Nonsense", "1", "", "", False),
    ],
)
def test_the_effective_value_decides(keyword: str, wished: object, alone: str, is_now: str, same: bool) -> None:
    wrong = mismatches({keyword: wished}, {keyword.lower(): alone} if alone else {}, {keyword.lower(): is_now} if is_now else {})
    assert (wrong == []) is same
    if not same:
        assert keyword in wrong[0]
        assert (is_now or "not set") in wrong[0]


def test_older_names_are_found_under_the_newer_one() -> None:
    found = {"kbdinteractiveauthentication": "no"}
    assert mismatches({"ChallengeResponseAuthentication": "no"}, found, found) == []
    assert mismatches({"ChallengeResponseAuthentication": "yes"}, {"kbdinteractiveauthentication": "yes"}, found) != []


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
        ({"allowusers": "* !ops"}, "ops", ["ops"], 1000, "leaves out ops"),
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


@pytest.mark.parametrize(("usepam", "locked", "out"), [("yes", True, False), ("no", False, False), ("no", True, True)])
def test_a_locked_account_needs_pam(usepam: str, locked: bool, out: bool) -> None:
    assert ("UsePAM no" in lockout({**OPEN, "usepam": usepam}, "ops", ["ops"], 1000, locked)) is out
