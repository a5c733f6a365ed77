"""The handoff's ssh_config, read by ssh itself: every option that an inventory may carry means there what it meant to the run."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from nodectl.handoff.pool import pool_of
from nodectl.handoff.ssh_config import ssh_config
from nodectl.transport.channel import Target
from nodectl.transport.ssh_options import parse_common_args
from nodectl.verify.members import NodeFacts, members_of, node_data
from nodectl.verify.session import Session
from nodectl.wire.event import Event
from tests.handoff.pool_events import node, start, verdict
from tests.verify.fleet import FakeFleet

pytestmark = pytest.mark.skipif(shutil.which("ssh") is None, reason="needs OpenSSH's client")


def effective(folder: Path, event: Event, home: Path | None = None) -> list[str]:
    """What `ssh -G` says of the node, in lower case keys."""
    text = ssh_config(pool_of([*start("n1"), event, verdict("n1")]))
    if home is not None:  # ssh takes ~ from the password file and not from HOME
        text = text.replace("~/.ssh/config", str(home))
    (folder / "ssh_config").write_text(text)
    done = subprocess.run(["ssh", "-G", "-F", str(folder / "ssh_config"), "n1"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def of_inventory(args: str, **target: Any) -> Event:
    """The `node` event of a host whose ansible_ssh_common_args are ``args``: as the verification makes it."""
    described = Target("n1", **{"address": "192.0.2.1", "options": parse_common_args(args), **target})
    (member,) = members_of([(Session("n1", described, {}, FakeFleet()), NodeFacts())])
    return Event("node", 1.0, "n1", node_data(described, member, NodeFacts()))


# ansible_ssh_common_args; what ssh must make of the handoff; FOLDER is where the run was started
OPTIONS: list[tuple[str, list[str]]] = [
    ("", ["hostname 192.0.2.1", "port 22", "batchmode yes", "stricthostkeychecking true", "connecttimeout 20", "serveraliveinterval 15"]),
    ("-o UserKnownHostsFile=known", ["userknownhostsfile FOLDER/known"]),
    ("-o UserKnownHostsFile=/k/known", ["userknownhostsfile /k/known"]),
    ("-o 'UserKnownHostsFile=one two'", ["userknownhostsfile FOLDER/one FOLDER/two"]),
    ("-o 'UserKnownHostsFile=\"my file\" two'", ["userknownhostsfile FOLDER/my file FOLDER/two"]),
    ("-o 'UserKnownHostsFile=\"my file\"'", ["userknownhostsfile FOLDER/my file"]),
    ("-o UserKnownHostsFile=/dev/null", ["userknownhostsfile /dev/null"]),
    ("-o UserKnownHostsFile=nonesuch", ["userknownhostsfile FOLDER/nonesuch"]),
    ("-o GlobalKnownHostsFile=none", ["globalknownhostsfile none"]),
    ("-i one", ["identityfile FOLDER/one"]),
    ("-i one -i '/two keys/id'", ["identityfile FOLDER/one", "identityfile /two keys/id"]),
    ("-i %d/.ssh/x", ["identityfile %d/.ssh/x"]),
    ("-J bastion", ["proxyjump bastion"]),
    ("-J a,ops@b:2222", ["proxyjump a,ops@b:2222"]),
    ("-o 'ProxyCommand=ssh -W %h:%p -q \"my bastion\"'", ['proxycommand ssh -W %h:%p -q "my bastion"']),
    ("-o ProxyCommand='nc -X connect %h %p'", ["proxycommand nc -X connect %h %p"]),
    ("-o 'SendEnv=LANG LC_*'", ["sendenv LANG", "sendenv LC_*"]),
    ("-o StrictHostKeyChecking=accept-new", ["stricthostkeychecking accept-new"]),
    ("-o HostKeyAlias=rack1", ["hostkeyalias rack1"]),
    ("-o ServerAliveInterval=5 -C", ["serveraliveinterval 5"]),
    ("-o ConnectTimeout=7", ["connecttimeout 7"]),
    ("-p 2201", ["port 2201"]),
    ("-l admin", ["user admin"]),
    ("-o ControlMaster=auto -o ControlPersist=60s", ["controlmaster auto", "controlpersist 60"]),
    ("-F FILE", ["user fromfile", "port 2222"]),
]


@pytest.mark.parametrize(("args", "wanted"), OPTIONS, ids=[args or "nothing" for args, _ in OPTIONS])
def test_options_of_the_inventory(args: str, wanted: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "FILE").write_text("Host n1\n    User fromfile\n    Port 2222\n")
    shown = effective(tmp_path, of_inventory(args))
    assert [line for line in (text.replace("FOLDER", str(tmp_path)) for text in wanted) if line not in shown] == []


# fields of the target; what ssh must make of it
TARGETS: list[tuple[dict[str, Any], list[str]]] = [
    ({"user": "ops"}, ["user ops"]),
    ({"user": "domain user"}, ["user domain user"]),
    ({"port": 2201}, ["port 2201"]),
    ({"key_file": "keys/id"}, ["identityfile FOLDER/keys/id", "identitiesonly yes"]),
    ({"key_file": "/my keys/100%/id"}, ["identityfile /my keys/100%%/id"]),
    ({"address": "2001:db8::1"}, ["hostname 2001:db8::1"]),
    ({"address": "fe80::1%eth0"}, ["hostname fe80::1%eth0"]),
    ({"address": "n1.example.org"}, ["hostname n1.example.org"]),
    ({"key_file": "/a#b"}, ["identityfile /a#b"]),
    ({"key_file": "/it's"}, ["identityfile /it's"]),
    ({"key_file": "/a=b"}, ["identityfile /a=b"]),
]


@pytest.mark.parametrize(("target", "wanted"), TARGETS, ids=[str(target) for target, _ in TARGETS])
def test_targets(target: dict[str, Any], wanted: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shown = effective(tmp_path, of_inventory("", **target))
    assert [line for line in (text.replace("FOLDER", str(tmp_path)) for text in wanted) if line not in shown] == []


def test_the_key_of_the_inventory_is_the_only_one() -> None:
    """As the run logged in: a key that the options name beside it was not offered."""
    event = of_inventory("-i other", key_file="/keys/id")
    text = ssh_config(pool_of([*start("n1"), event, verdict("n1")]))
    assert text.count("identityfile") == 1
    assert "identityfile /keys/id" in text


# ~/.ssh/config of the person who ran it; what holds in the handoff
USERS: list[tuple[str, dict[str, Any], list[str]]] = [
    ("Host n1\n    ProxyJump bastion\n    User me\n", {"address": "n1"}, ["proxyjump bastion", "user me", "hostname n1"]),
    ("Host n1\n    HostName 198.51.100.7\n    Port 2022\n", {"address": "n1"}, ["hostname 198.51.100.7", "port 2022"]),
    ("Host n1\n    HostName 198.51.100.7\n", {}, ["hostname 192.0.2.1"]),
    ("Host n1\n    User me\n    Port 2022\n", {"user": "ops", "port": 2201}, ["user ops", "port 2201"]),
    ("Host other\n    User me\n", {"address": "n1", "user": "ops"}, ["user ops"]),
    ("Host *\n    ConnectTimeout 99\n    BatchMode no\n", {}, ["connecttimeout 20", "batchmode yes"]),
]


@pytest.mark.parametrize(("config", "target", "wanted"), USERS, ids=[config.replace("\n", " ") for config, _, _ in USERS])
def test_what_the_run_took_from_the_users_own_file_holds_too(config: str, target: dict[str, Any], wanted: list[str], tmp_path: Path) -> None:
    """`ssh -F` leaves ~/.ssh/config out; a node that was only reached through it could not be launched on."""
    (tmp_path / "home_config").write_text(config)
    shown = effective(tmp_path, of_inventory("", **target), tmp_path / "home_config")
    assert [line for line in wanted if line not in shown] == []


def test_an_own_file_is_read_alone() -> None:
    text = ssh_config(pool_of([*start("n1"), of_inventory("-F /dev/null"), verdict("n1")]))
    assert [line.strip() for line in text.splitlines() if "include" in line] == ["include /dev/null"]


@pytest.mark.parametrize("changes", [
    {"user": 'a"b'}, {"key_file": 'k"ey'}, {"ssh_options": {"hostkeyalias": 'x"y'}}, {"ssh_options": {"proxycommand": "nc\nHost *"}}, {"ssh_options": {"proxycommand": 'nc "x'}}, {"ssh_options": {"hostkeyalias": ""}},
    {"ssh_options": {"userknownhostsfile": "'open"}}, {"ssh_options": {"userknownhostsfile": "a\x00"}},
])
def test_what_no_line_can_hold_is_an_error(changes: dict[str, Any]) -> None:
    pool = pool_of([*start("n1"), node("n1", **changes), verdict("n1")])
    with pytest.raises(ValueError, match=r"cannot stand in an ssh_config|quotation"):
        ssh_config(pool)
