"""The SSH node pool, read by SkyPilot's own loader."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from nodectl.handoff.pool import pool_of
from nodectl.handoff.skypilot import skypilot
from nodectl.handoff.ssh_config import ssh_config
from nodectl.wire.event import Event
from tests.handoff.consumers import ask, needs_consumers
from tests.handoff.pool_events import node, start, verdict

pytestmark = pytest.mark.servers

FILE = "skypilot/ssh_node_pools.yaml"
# What `sky ssh up` does with the file before it opens a connection, and what its dashboard demands of a pool; many pools in one process, which takes
# seconds to start.
LOADER = """
import json, sys
from sky.ssh_node_pools import core, utils
found = {}
for path in sys.argv[1:]:
    try:
        targets = utils.load_ssh_targets(path)
        pools = utils.get_cluster_config(targets, None, file_path=path)
        found[path] = {name: utils.prepare_hosts_info(name, pool) for name, pool in pools.items()}
        for pool in pools.values():
            core.SSHNodePoolManager()._validate_pool_config(pool)
    except ValueError as error:
        found[path] = [found.get(path), str(error)]
print(json.dumps(found))
"""


def text_of(*events: Event) -> str:
    return skypilot(pool_of([*start("n1"), *events])).files[FILE]


def refusal(host: str = "n1", **changes: Any) -> str:
    artefact = skypilot(pool_of([Event("node", 1.0, host, {**node("n1").data, **changes}), verdict(host)]))
    assert artefact.files == {}
    return artefact.refused[host]


# what of each node's description is changed; the hosts as SkyPilot must see them: address, user, key, by name
POOLS: dict[str, tuple[list[dict[str, Any]], list[tuple[str, str, str, bool]]]] = {
    "all alike": ([{}, {}], [("192.0.2.1", "ops", "KEY", False), ("192.0.2.2", "ops", "KEY", False)]),
    "another user": ([{}, {"user": "admin"}], [("192.0.2.1", "ops", "KEY", False), ("192.0.2.2", "admin", "KEY", False)]),
    "another key": ([{}, {"key_file": "HOME/other"}], [("192.0.2.1", "ops", "KEY", False), ("192.0.2.2", "ops", "HOME/other", False)]),
    "a key of ssh's options": ([{"key_file": "", "ssh_options": {"IdentityFile": "HOME/other"}}], [("192.0.2.1", "ops", "HOME/other", False)]),
    "a name for an address": ([{"address": "gpu-1.example.org"}], [("gpu-1.example.org", "ops", "KEY", False)]),
    "a port": ([{"port": 2222}, {}], [("n1", "", "", True), ("192.0.2.2", "ops", "KEY", False)]),
    "a jump host": ([{"ssh_options": {"proxyjump": "bastion"}}], [("n1", "", "", True)]),
    "two keys": ([{"key_file": "", "ssh_options": {"identityfile": "/a\n/b"}}], [("n1", "", "", True)]),
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with keys, and with the line in its ssh_config that the pool's file asks for. ssh takes ~ from the password file, so it is told."""
    folder = tmp_path_factory.mktemp("sky")
    for name in ("key", "other"):
        (folder / name).write_text("not a key\n")
    (folder / "ssh_config").write_text(ssh_config(pool_of([node("n1", port=2222), verdict("n1")])).replace("include ~/.ssh/config", ""))
    (folder / "config").write_text(f"Include {folder}/ssh_config\n")
    (folder / "bin").mkdir()
    (folder / "bin/ssh").write_text(f'#!/bin/sh\nexec /usr/bin/ssh -F {folder}/config "$@"\n')
    (folder / "bin/ssh").chmod(0o755)
    return folder


def written(home: Path, case: str) -> Path:
    changes, _ = POOLS[case]
    events = [one for number, change in enumerate(changes, start=1) for one in (_node(home, f"n{number}", change), verdict(f"n{number}"))]
    path = home / f"{case.replace(' ', '_')}.yaml"
    path.write_text(text_of(*events))
    return path


def _node(home: Path, host: str, change: dict[str, Any]) -> Event:
    return node(host, **json.loads(json.dumps({"key_file": f"{home}/key", **change}).replace("HOME", str(home))))


@pytest.fixture(scope="module")
def loaded(home: Path) -> dict[str, Any]:
    """What SkyPilot's loader made of every pool."""
    paths = {case: str(written(home, case)) for case in POOLS}
    answer = ask(home, LOADER, *paths.values())
    assert not answer.startswith("failed"), answer
    found = json.loads(answer.splitlines()[-1])
    return {case: found[path] for case, path in paths.items()}


@needs_consumers
@pytest.mark.parametrize("case", POOLS)
def test_its_own_loader_takes_the_pool(case: str, loaded: dict[str, Any], home: Path) -> None:
    wanted = POOLS[case][1]
    found = loaded[case]
    if isinstance(found, list):  # the dashboard wants a user and a key, also where only an ssh_config has both
        assert found[1] == "Pool configuration must include `user`"
        assert all(by_name for *_, by_name in wanted)
        found = found[0]
    assert list(found) == ["nodectl"]
    keys = {"": "", "KEY": f"{home}/key", "HOME/other": f"{home}/other"}
    assert [(host["ip"], host["user"], host["identity_file"], host["password"], host["use_ssh_config"]) for host in found["nodectl"]] == [
        (ip, user, keys[key], "", by_name) for ip, user, key, by_name in wanted
    ]


@needs_consumers
def test_a_key_that_is_gone_is_found_by_the_loader(home: Path) -> None:
    """So the test above would see it if the loader did not read what it is given."""
    path = home / "gone.yaml"
    path.write_text(text_of(node("n1", key_file="/nowhere/key"), verdict("n1")))
    assert "SSH Identity File Missing: /nowhere/key" in ask(home, LOADER, str(path))


def test_names_alone_come_with_the_line_that_makes_them_work() -> None:
    assert "Include" in text_of(node("n1", port=2222), verdict("n1"))
    assert "Include" not in text_of(node("n1"), verdict("n1"))


def test_excluded_nodes_are_not_in_it_and_nobody_proven_is_no_pool() -> None:
    events = [*start("n1", "n2"), node("n1"), verdict("n1", "fail", "slow"), node("n2"), verdict("n2")]
    assert "192.0.2.1" not in skypilot(pool_of(events)).files[FILE]
    assert skypilot(pool_of(events[:-2])).files == {}


# what of the description is changed; words of why SkyPilot cannot have the node
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"connection": "local"}, "this machine itself"), ({"address": "2001:db8::1"}, "its address is '2001:db8::1'"), ({"address": "$(id)"}, "its address is"),
    ({"user": "domain user"}, "its user is"), ({"user": "a;b"}, "its user is"), ({"user": "-oProxyCommand=x"}, "its user is"), ({"key_file": "/my keys/id"}, "its key file is"),
    ({"key_file": "/k'$(id)"}, "its key file is"), ({"host": "Node1"}, "no name"), ({"host": "node_1"}, "no name"), ({"host": "ü"}, "no name"), ({"host": "n" * 64}, "no name"),
]


@pytest.mark.parametrize(("changes", "words"), REFUSED, ids=[str(changes) for changes, _ in REFUSED])
def test_what_skypilot_would_put_unquoted_on_a_line_is_refused(changes: dict[str, Any], words: str) -> None:
    assert words in refusal(**changes)


def test_what_most_have_is_said_once() -> None:
    events = [node("n1"), verdict("n1"), node("n2", user="admin"), verdict("n2"), node("n3", key_file="/keys/other"), verdict("n3"), node("n4", port=2222), verdict("n4")]
    assert yaml.safe_load(text_of(*events)) == {"nodectl": {"user": "ops", "identity_file": "/keys/id", "hosts": [
        {"ip": "192.0.2.1"}, {"ip": "192.0.2.2", "user": "admin"}, {"ip": "192.0.2.3", "identity_file": "/keys/other"}, "n4",
    ]}}


@pytest.mark.parametrize(("changes", "key"), [
    ({"key_file": "", "ssh_options": {"IdentityFile": "/k/a"}}, "/k/a"), ({"ssh_options": {"identityfile": "/k/a"}}, "/keys/id"), ({"key_file": ""}, None),
    ({"key_file": "", "ssh_options": {"user": "x"}}, None),
])
def test_the_key_is_the_one_that_the_run_logged_in_with(changes: dict[str, Any], key: str | None) -> None:
    pool = yaml.safe_load(text_of(node("n1", **changes), verdict("n1")))["nodectl"]
    assert pool.get("identity_file") == key
