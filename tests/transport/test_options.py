"""ansible_ssh_common_args, ~/.ssh/config and ProxyJump, without a network. `ssh -G` is the oracle where it is installed."""

from __future__ import annotations

import getpass
import shutil
import subprocess
from pathlib import Path

import pytest

from nodectl.transport.channel import Target, Unreachable
from nodectl.transport.route import Hop, Router
from nodectl.transport.ssh_config import UserConfig
from nodectl.transport.ssh_options import BadOption, parse_common_args

ME = getpass.getuser()

GOOD = [
    ("", {}),
    ("-o UserKnownHostsFile=/tmp/k -o ProxyJump=a@b:22", {"userknownhostsfile": "/tmp/k", "proxyjump": "a@b:22"}),
    ("-oPort=2222", {"port": "2222"}),
    ("-o 'ServerAliveInterval 30'", {"serveraliveinterval": "30"}),
    ("-o Port=1 -o port=2", {"port": "1"}),
    ("-J hop1,hop2 -p 7 -l ops", {"proxyjump": "hop1,hop2", "port": "7", "user": "ops"}),
    ("-i a -i b", {"identityfile": "a\nb"}),
    ("-q -vvv -4 -o ControlMaster=auto -o ControlPersist=60s", {"controlmaster": "auto", "controlpersist": "60s"}),
    ('-o ProxyCommand="ssh -W %h:%p -q bastion"', {"proxycommand": "ssh -W %h:%p -q bastion"}),
    ("-F ~/c", {"configfile": "~/c"}),
]

BAD = [
    ("-o BindAddress=10.0.0.1", "ssh option 'bindaddress' is not supported"),
    ("-o Ciphers=aes256-ctr", "ssh option 'ciphers' is not supported"),
    ("-D 1080", "ssh option '-D' is not supported"),
    ("-o Port", "'-o Port' is not of the form Key=Value"),
    ("-o", "option -o needs a value"),
    ("-J", "option -J needs a value"),
    ("hop1", "'hop1' is not an option"),
    ("-o 'Port=1", "not well quoted"),
]


@pytest.mark.parametrize(("text", "expected"), GOOD)
def test_common_args(text: str, expected: dict[str, str]) -> None:
    assert parse_common_args(text) == expected


@pytest.mark.parametrize(("text", "message"), BAD)
def test_what_is_not_followed_is_refused(text: str, message: str) -> None:
    with pytest.raises(BadOption, match=message):
        parse_common_args(text)


CONFIG = """
Include conf.d/*.conf
Match final all
  ServerAliveInterval 7
Host gpu*
  User ops
  Port 2201
  IdentityFile ~/keys/gpu
  ProxyJump edge:2200
Host edge
  HostName edge.example.org
  User jumper
Host *
  UserKnownHostsFile /k1 /k2
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "conf.d").mkdir()
    (tmp_path / "conf.d" / "a.conf").write_text("Host gpu1\n  HostName 10.0.0.7\n  User root\n")
    (tmp_path / "config").write_text(CONFIG)
    return tmp_path / "config"


def route(config: Path, **target: object) -> tuple[Hop, ...]:
    options = {"configfile": str(config), **target.pop("options", {})}  # type: ignore[dict-item]
    return Router().route(Target("n1", options=options, **target))  # type: ignore[arg-type]


def test_route_from_the_config(config: Path) -> None:
    hop, node = route(config, address="gpu1")
    assert (hop.address, hop.port, hop.user) == ("edge.example.org", 2200, "jumper")
    assert (node.address, node.port, node.user) == ("10.0.0.7", 2201, "root")
    assert node.keys == (str(Path("~/keys/gpu").expanduser()),)
    assert node.keepalive == 7
    assert [str(file) for file in node.known_hosts.files[:2]] == ["/k1", "/k2"]


def test_the_inventory_wins_over_the_config(config: Path) -> None:
    (node,) = route(config, address="gpu1", user="me", port=9, key_file="/key", options={"proxyjump": "none", "userknownhostsfile": "/k3"})
    assert (node.port, node.user, node.keys, node.only) == (9, "me", ("/key",), True)
    assert str(node.known_hosts.files[0]) == "/k3"


SPECS = [
    ("a@hop1:2201,b@hop2", [("a", "hop1", 2201), ("b", "hop2", 22)]),
    ("hop", [(ME, "hop", 22)]),
    ("ssh://a@hop:1", [("a", "hop", 1)]),
    ("a@[fe80::1]:2", [("a", "fe80::1", 2)]),
    ("[fe80::1]", [(ME, "fe80::1", 22)]),
    ("none", []),
]


@pytest.mark.parametrize(("spec", "expected"), SPECS)
def test_proxy_jump(spec: str, expected: list[tuple[str, str, int]]) -> None:
    hops = route(Path("/dev/null"), address="n1", port=2222, user="ops", options={"proxyjump": spec})
    assert [(hop.user, hop.address, hop.port) for hop in hops[:-1]] == expected
    assert (hops[-1].user, hops[-1].port) == ("ops", 2222)


WRONG = [
    ({"address": "n1", "options": {"proxyjump": "a:b:c:d@"}}, "is not \\[user@\\]host\\[:port\\]"),
    ({"address": "n1", "options": {"port": "no"}}, "'no' is not a port"),
    ({"address": "n1", "options": {"bindaddress": "x"}}, "ssh option 'bindaddress' is not supported"),
    ({"address": "n1", "options": {"proxyjump": ",".join(f"h{n}" for n in range(9))}}, "more than 8 hosts"),
]


@pytest.mark.parametrize(("target", "message"), WRONG)
def test_what_cannot_be_followed_is_said(target: dict[str, object], message: str) -> None:
    with pytest.raises(Unreachable, match=message) as caught:
        route(Path("/dev/null"), **target)
    assert caught.value.why == "config"


@pytest.mark.parametrize(("text", "place", "words"), [("Host a\nMatch nonsense b\n", ":2", "nonsense"), ("Port\n", ":1", "Unparsable")])
def test_a_config_that_cannot_be_read_names_file_and_line(tmp_path: Path, text: str, place: str, words: str) -> None:
    file = tmp_path / "config"
    file.write_text(text)
    with pytest.raises(Unreachable) as caught:
        UserConfig([file]).lookup("n1")
    assert caught.value.why == "config"
    assert f"{file}{place}: " in caught.value.reason
    assert words in caught.value.reason


def test_includes_that_go_round_end(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("Include config\n")
    with pytest.raises(Unreachable, match="deeper than 16"):
        UserConfig([tmp_path / "config"])


def test_a_wildcard_jump_does_not_jump_to_itself(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("Host *\n  ProxyJump bastion\n")
    assert [hop.address for hop in route(tmp_path / "config", address="n1")] == ["bastion", "n1"]


@pytest.mark.skipif(not shutil.which("ssh"), reason="needs the ssh client as oracle: apt-get install openssh-client")
@pytest.mark.parametrize("alias", ["gpu1", "gpu2", "edge", "elsewhere"])
def test_same_answers_as_ssh(config: Path, alias: str) -> None:
    # ssh looks for relative includes in ~/.ssh only.
    config.write_text(config.read_text().replace("conf.d/", f"{config.parent}/conf.d/"))
    shown = subprocess.run(["ssh", "-G", "-F", str(config), alias], capture_output=True, text=True, check=True).stdout
    expected = dict(line.split(" ", 1) for line in shown.splitlines() if " " in line)
    node = route(config, address=alias)[-1]
    jump = [f"{hop.user}@{hop.address}" for hop in route(config, address=alias)[:-1]]
    assert (node.address, str(node.port), node.user, str(node.keepalive)) == (expected["hostname"], expected["port"], expected["user"], expected["serveraliveinterval"])
    assert (jump == ["jumper@edge.example.org"]) is ("proxyjump" in expected)


@pytest.mark.parametrize(("address", "text"), [("fe80::1", "n1 (ops@[fe80::1]:2222)"), ("10.0.0.1", "n1 (ops@10.0.0.1:2222)")])
def test_a_node_is_called_so_that_the_port_can_be_told_from_the_address(address: str, text: str) -> None:
    target = Target("n1", address, 2222, "ops", options={"configfile": "/dev/null"})
    assert str(Router().route(target)[-1]) == text


def test_a_proxy_command_of_the_file_gets_the_port_and_user_of_the_inventory(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("Host n1\n  HostName 10.0.0.1\n  Port 23\n  User filed\n  ProxyCommand=relay %h %p %r 100%%\n")
    target = Target("n1", "n1", 2222, "ops", options={"configfile": str(config)})
    assert Router().route(target)[-1].proxy_command == "relay 10.0.0.1 2222 ops 100%"


def test_the_first_hop_is_reached_by_its_own_proxy_command_and_no_other(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("Host edge\n  User jumper\n  ProxyCommand relay %h %p %r\nHost inner\n  ProxyCommand never\n")
    first, second, node = Router().route(Target("n1", "10.0.0.1", 22, "ops", options={"configfile": str(config), "proxyjump": "edge:2200,inner"}))
    assert (first.proxy_command, second.proxy_command, node.proxy_command) == ("relay edge 2200 jumper", "", "")


@pytest.mark.parametrize(("user", "port"), [("ops", 2201), ("other", 22), ("", 2300)])
def test_match_user_is_about_who_logs_in(tmp_path: Path, user: str, port: int) -> None:
    """`ssh -l USER -G` is the oracle; without a user the file's own counts."""
    config = tmp_path / "config"
    config.write_text("Host n1\n  User filed\nMatch user ops\n  Port 2201\nMatch user filed\n  Port 2300\n")
    node = Router().route(Target("n1", "n1", 22, user, options={"configfile": str(config)}))[-1]
    shown = subprocess.run(["ssh", "-G", "-F", str(config), *(["-l", user] if user else []), "n1"], capture_output=True, text=True, check=True).stdout
    assert (node.user, node.port) == (user or "filed", port)
    assert f"\nport {port}\n" in shown


def test_match_user_of_a_hop_is_the_hops(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("Match host edge user jumper\n  Port 2200\n")
    hops = [Router().route(Target("n1", "10.0.0.1", 22, "ops", options={"configfile": str(config), "proxyjump": spec}))[0] for spec in ("jumper@edge", "ops@edge")]
    assert [hop.port for hop in hops] == [2200, 22]
