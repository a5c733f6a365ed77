"""What modules of the catalogue read and write as text: tables, without a node."""

from __future__ import annotations

from typing import Any

import pytest

from nodectl.agent import dnf_packages
from nodectl.agent.modules import (
    alternatives,
    apt_repository,
    capabilities,
    cron,
    deb822_repository,
    iptables,
    known_hosts,
    locale_gen,
    pip,
    service_facts,
    ufw,
)
from tests.agent.modules_sys.scripted import filled, reason

KEY = "AAAAC3NzaC1lZDI1NTE5AAAAIMUk2Y0uGlBeEnV5bjHFwl5rLq4ITYyRxXzZ7kF7wqTg"


@pytest.mark.parametrize(
    ("wish", "version", "fitting"),
    [
        ("1.0", "1", True), ("1.0", "1.0.1", False), (">=1.2,<2", "1.10", True), (">=1.2,<2", "2.0", False), ("~=1.4", "1.9", True), ("~=1.4", "2.0", False),
        ("!=1.5", "1.5", False), ("==2.*", "2.13.0", True), ("==2.*", "20.1", False), (">=2.0", "2.0rc1", False), ("==2.13.0", "2.13.0+cpu", True),
    ],
)  # fmt: skip
def test_pip_versions(wish: str, version: str, fitting: bool) -> None:
    [wanted] = pip.parse([f"torch{wish}" if wish[0] in "<>=!~" else f"torch=={wish}"], None)
    assert pip.fits(wanted.clauses, version) == fitting


@pytest.mark.parametrize("name", ["-r/etc/passwd", "", "--index-url=http://x", "a\nb"])
def test_pip_takes_no_options_for_names(name: str) -> None:
    assert "is no package" in reason(lambda: pip.parse([name], None))


def test_pip_puts_a_list_of_versions_together_again() -> None:
    assert [one.text for one in pip.parse(["a>=1", "<2", "b"], None)] == ["a>=1,<2", "b"]


PLAN = """Dependencies resolved.
================
 Package  Architecture  Version  Repository  Size
================
Installing:
 twdep    noarch        1:1.0-1  twrepo      6.0 k
Installing dependencies:
 a-very-long-name-that-is-wrapped
          noarch        2.0-3    twrepo      6.1 k

Transaction Summary
================
Install  2 Packages

Total size: 12 k
Operation aborted.
"""


def test_dnf_tells_what_it_would_do() -> None:
    assert dnf_packages.parse_plan(PLAN) == ["Installed: twdep-1.0-1.noarch", "Installed: a-very-long-name-that-is-wrapped-2.0-3.noarch"]
    assert dnf_packages.parse_plan("Nothing to do.\n") == []


@pytest.mark.parametrize("name", ["--installroot=/x", "a*", "", "a\nb", "-y"])
def test_dnf_takes_no_options_for_names(name: str) -> None:
    assert "is no package name" in reason(lambda: dnf_packages.parse([name]))


@pytest.mark.parametrize(
    ("lines", "line", "after"),
    [
        ([], "* * * * * a", ["#Ansible: x", "* * * * * a"]),
        (["#Ansible: x", "old", "kept"], "new", ["#Ansible: x", "new", "kept"]),
        (["#Ansible: x", "old", "kept"], None, ["kept"]),
        (["kept", "same"], "same", ["kept", "#Ansible: x", "same"]),
        (["#Ansible: xy", "other"], None, ["#Ansible: xy", "other"]),
    ],
)
def test_cron_lines(lines: list[str], line: str | None, after: list[str]) -> None:
    assert cron.with_job(lines, "x", line) == after


@pytest.mark.parametrize("bad", [{"name": "a\nb"}, {"job": "a\nb"}, {"user": "ops\nroot"}, {"special_time": "daily", "hour": "1"}, {"cron_file": "/etc/crontab"}])
def test_cron_refuses(bad: dict[str, Any]) -> None:
    args = {"name": "x", "job": "true", "user": "ops", "cron_file": "x", **bad}
    assert reason(lambda: cron._refuse(filled(cron.SPEC, **args)))


def test_alternatives_are_read() -> None:
    text = "editor - auto mode\n  link best version is /bin/b\n  link currently points to /bin/b\n  link editor is /usr/bin/editor\n  slave editor.1 is /m\n/bin/b - priority 40\n  slave editor.1: /m/b\n"
    state = alternatives.parse(text)
    assert (state["mode"], state["path"], state["link"]) == ("auto", "/bin/b", "/usr/bin/editor")
    assert state["known"] == {"/bin/b": {"priority": 40, "family": "", "subcommands": {"editor.1": ["/m", "/m/b"]}}}


def test_capabilities_are_read_and_kept() -> None:
    there = capabilities.parse("cap_net_raw,cap_ipc_lock=ep cap_sys_nice=p")
    assert there == [("cap_net_raw", "=", "ep"), ("cap_ipc_lock", "=", "ep"), ("cap_sys_nice", "=", "p")]
    assert capabilities.wished({"capability": "CAP_NET_RAW+ep", "state": "present"}, there) == there
    assert capabilities.wished({"capability": "cap_net_raw", "state": "absent"}, there) == there[1:]


@pytest.mark.parametrize(("line", "named"), [(f"a,b ssh-ed25519 {KEY}", True), (f"ab ssh-ed25519 {KEY}", False), (f"@revoked b ssh-ed25519 {KEY}", True)])
def test_known_hosts_names(line: str, named: bool) -> None:
    entry = known_hosts.parse(line)
    assert entry is not None
    assert known_hosts.names(entry, "b") == named
    hashed = known_hosts.parse(known_hosts.hashed(line, "b", b"salt" * 5))
    assert hashed is not None
    assert [known_hosts.names(hashed, host) for host in ("b", "c")] == [True, False]


@pytest.mark.parametrize(
    ("source", "file"), [("deb http://user:pw@h.org/x stable main", "h_org_x"), ("deb [trusted=yes] http://127.0.0.1:80/tw ./", "127_0_0_1_80_tw")]
)
def test_sources_file_has_no_password_in_its_name(source: str, file: str) -> None:
    assert apt_repository.file_of(source) == file


@pytest.mark.parametrize(("name", "slug"), [("Tw Repo_1", "tw-repo-1"), ("../../x", "x"), ("Ä", "")])
def test_deb822_names(name: str, slug: str) -> None:
    if slug:
        assert deb822_repository.slug(name) == slug
    else:
        assert "is no name" in reason(lambda: deb822_repository.slug(name))


def test_locale_lines() -> None:
    text = "# de_DE.UTF-8 UTF-8\nen_US.UTF-8 UTF-8\n"
    assert locale_gen.wished(text, ["de_DE.UTF-8"], True) == "de_DE.UTF-8 UTF-8\nen_US.UTF-8 UTF-8\n"
    assert locale_gen.wished(text, ["en_US.UTF-8"], False) == "# de_DE.UTF-8 UTF-8\n# en_US.UTF-8 UTF-8\n"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({"protocol": "tcp", "destination_port": "22", "jump": "ACCEPT"}, "-p tcp -j ACCEPT --destination-port 22"),
        ({"source": "!10.0.0.0/8", "jump": "DROP", "comment": "not ours"}, "! -s 10.0.0.0/8 -j DROP -m comment --comment not ours"),
        ({"ctstate": ["NEW", "RELATED"], "syn": "match", "jump": "ACCEPT"}, "-j ACCEPT --syn -m conntrack --ctstate NEW,RELATED"),
        ({"protocol": "udp", "destination_ports": ["80", "443:444"], "limit": "5/min"}, "-p udp -m multiport --dports 80,443:444 -m limit --limit 5/min"),
    ],
)
def test_iptables_rules(args: dict[str, Any], words: str) -> None:
    assert " ".join(iptables.rule(filled(iptables.SPEC, chain="INPUT", **args))) == words


def test_ufw_words() -> None:
    args = filled(ufw.SPEC, rule="allow", to_port="22", proto="tcp", delete=True)
    assert ufw.commands(args) == [["delete", "allow", "from", "any", "to", "any", "port", "22", "proto", "tcp"]]


def test_services_are_read() -> None:
    listed = "ssh.service loaded active running OpenBSD Secure Shell server\nx.service not-found inactive dead x.service\n"
    found = service_facts.parse(listed, "ssh.service enabled enabled\ny@.service static -\n")
    assert found["ssh.service"] == {"name": "ssh.service", "state": "running", "status": "enabled", "source": "systemd"}
    assert (found["x.service"]["status"], found["y@.service"]["state"]) == ("not-found", "")
