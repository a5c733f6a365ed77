"""The files that a lab hands out, and what it serves: everything that needs no root."""

from __future__ import annotations

import csv
import importlib.util
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from nodectl.lab import base, inventory_file, services, torch_share
from nodectl.lab.problem import LabProblem
from nodectl.lab.state import LabHost, LabState
from tests.lab.reading import read_yaml

pytestmark = pytest.mark.servers


@pytest.fixture
def state(tmp_path: Path) -> LabState:
    hosts = (LabHost("n1", "10.77.4.11", ("LAB4N1D1", "LAB4N1D2")), LabHost("n2", "10.77.4.12"))
    return LabState("a1b2c3", "dev", tmp_path, net=4, s3=True, torch_site="/site", hosts=hosts)


def test_the_inventory_is_what_the_rest_of_nodectl_expects(state: LabState, tmp_path: Path) -> None:
    whole = read_yaml(inventory_file.inventory_text(state, fixed=False))
    variables = whole["all"]["vars"]
    assert variables == {
        "ansible_user": "ops",
        "ansible_ssh_private_key_file": str(tmp_path / "id_ed25519"),
        "ansible_ssh_common_args": f"-o UserKnownHostsFile={tmp_path}/known_hosts -o IdentitiesOnly=yes",
        "ansible_python_interpreter": "/usr/bin/python3",
        "network_tier": "best",
        "disk_tier": "best",
        "torch_python": "/opt/torch/bin/python",
        "file_mounts": {
            "/data": {"source": "s3://dataset", "mode": "MOUNT", "profile": "dataset_ro"},
            "/ckpt": {"source": "s3://ckpt", "mode": "MOUNT_CACHED", "profile": "checkpoint_rw"},
        },
    }
    assert whole["all"]["children"]["gpu"]["hosts"] == {
        "n1": {"ansible_host": "10.77.4.11", "scratch_devices": [{"serial": "LAB4N1D1"}, {"serial": "LAB4N1D2"}]},
        "n2": {"ansible_host": "10.77.4.12", "disk_tier": "standard"},
    }


def test_without_store_torch_or_free_limits_the_inventory_says_less(state: LabState) -> None:
    state.s3, state.torch_site = False, ""
    variables = read_yaml(inventory_file.inventory_text(state, fixed=True))["all"]["vars"]
    assert "file_mounts" not in variables
    assert "torch_python" not in variables
    assert isinstance(variables["base_memlock"], str)
    assert variables["base_nofile"] > 0


def test_no_secret_is_in_the_inventory_and_the_file_with_them_is_roots_alone(state: LabState, tmp_path: Path) -> None:
    services.fill_store(state)
    inventory_file.write_inventory(state)
    access, secret = services.store_keys(state)
    assert (len(access), len(secret.reveal())) == (20, 40)
    assert secret.reveal() not in state.hosts_yaml.read_text() + (tmp_path / "lab.json").read_text()
    kept = tmp_path / "group_vars/all.yml"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "store.key").stat().st_mode) == 0o600
    assert read_yaml(kept.read_text()) == {
        "object_cache_endpoint": "http://10.77.4.2:9000",
        "object_cache_access_key": access,
        "object_cache_secret_key": secret.reveal(),
    }


def test_ansible_reads_the_inventory(state: LabState) -> None:
    program = Path(sys.executable).parent / "ansible-inventory"
    if not program.exists():
        pytest.skip("ansible-core is not installed: pip install 'nodectl[test]'")
    services.fill_store(state)
    inventory_file.write_inventory(state)
    done = subprocess.run([str(program), "-i", str(state.hosts_yaml), "--list"], capture_output=True, text=True, timeout=60, check=True)
    known = json.loads(done.stdout)
    assert known["gpu"]["hosts"] == ["n1", "n2"]
    assert known["_meta"]["hostvars"]["n1"]["object_cache_endpoint"] == "http://10.77.4.2:9000"


def test_two_stores_have_different_keys_and_equal_labs_equal_data(state: LabState, tmp_path: Path) -> None:
    other = LabState("a1b2c3", "dev", tmp_path / "other", s3=True)
    other.dir.mkdir()
    for one in (state, other):
        services.fill_store(one)
    assert services.store_keys(state)[0] != services.store_keys(other)[0]
    shards = [sorted((one.dir / "store/dataset").iterdir()) for one in (state, other)]
    assert len(shards[0]) == services.SHARDS
    assert [path.read_bytes() for path in shards[0]] == [path.read_bytes() for path in shards[1]]
    assert (state.dir / "store/ckpt").is_dir()


def test_the_store_gets_its_keys_by_the_environment_and_never_by_argv(state: LabState, monkeypatch: pytest.MonkeyPatch) -> None:
    services.fill_store(state)
    seen: list[tuple[list[str], dict[str, str]]] = []
    monkeypatch.setattr(services, "rclone", lambda: "rclone")
    monkeypatch.setattr(services, "start", lambda mark, argv, log, env: seen.append((argv, env)))
    monkeypatch.setattr(services, "answering", lambda state, port: True)
    services.start_store(state)
    access, secret = services.store_keys(state)
    ((argv, env),) = seen
    assert secret.reveal() not in " ".join(argv)
    assert next(csv.reader([env["RCLONE_AUTH_KEY"]])) == [f"{access},{secret.reveal()}"]


def test_a_service_that_does_not_answer_is_named_with_the_end_of_its_log(state: LabState, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "start", lambda mark, argv, log, env: log.write_text("port is taken\n"))
    monkeypatch.setattr(services, "answering", lambda state, port: False)
    monkeypatch.setattr(services, "ANSWER_TIMEOUT_S", 0.1)
    with pytest.raises(LabProblem, match=r"(?s)repo did not answer on port 8078.*port is taken"):
        services.start_repo(state)


@pytest.mark.parametrize(("python", "lent"), [(f"{sys.version_info.major}.{sys.version_info.minor}", True), ("3.9", False)])
def test_torch_is_lent_only_to_the_same_python(python: str, lent: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: type("Spec", (), {"origin": "/env/site-packages/torch/__init__.py"}))
    site, why_not = torch_share.lendable(python)
    assert site == (Path("/env/site-packages") if lent else None)
    assert ("the hosts have Python 3.9" in why_not) is not lent


def test_without_torch_the_reason_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    site, why_not = torch_share.lendable("3.11")
    assert site is None
    assert "torch is not installed" in why_not


def test_the_lent_environment_is_an_ordinary_one(tmp_path: Path) -> None:
    torch_share.furnish(tmp_path, "3.11")
    assert os.readlink(tmp_path / "opt/torch/bin/python") == "/usr/bin/python3"
    assert "home = /usr/bin\n" in (tmp_path / "opt/torch/pyvenv.cfg").read_text()
    assert (tmp_path / torch_share.packages("3.11").lstrip("/")).is_dir()


def test_the_hosts_repository_has_what_the_first_roles_install() -> None:
    assert {"chrony", "fio", "rclone", "nvme-cli", "rdma-core", "ibverbs-utils", "perftest"} <= set(base.REPO_PACKAGES)
    assert not set(base.REPO_PACKAGES) & set(base.BASE_PACKAGES)
