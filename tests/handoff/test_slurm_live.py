"""Slurm itself (Debian's slurmctld, slurmd and munge) starts with the handoff's lines, runs a job on the proven nodes, and says why the others are drained."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nodectl.agent.probes import probe_machine
from nodectl.agent.system import System
from nodectl.handoff.pool import pool_of
from nodectl.handoff.slurm import reason
from nodectl.handoff.write import write_handoff
from nodectl.wire.event import Event
from tests.handoff.pool_events import machine, node, start, verdict
from tests.handoff.slurm_cluster import Cluster, SlurmHost, cluster, missing

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(os.geteuid() != 0 or missing() != "", reason=f"needs root and Slurm: apt-get install slurmctld slurmd slurm-client munge ({missing()} missing)"),
]

# Less than this machine has, or slurmd would drain the node.
SMALL = {"cpus": 1, "sockets": 1, "cores_per_socket": 1, "threads_per_core": 1, "memory": 2**30}
WHY = 'network.pairs: "12 MB/s" # ü; it\'s \\ $(slow)\nand more'


def fates(n1: str, n3: str) -> list[Event]:
    """n1 has eight GPUs and another host name than the inventory gives it; n2 has none; n4 was never reached."""
    return [
        *start("n1", "gpu-02.rack_1", "n3", "n4"),
        node("n1", address="10.77.0.1", machine=machine("gpu-1.example.org", **SMALL)), verdict("n1", n1, "it's \"bad\""),
        node("gpu-02.rack_1", address="10.77.0.2", gpus=0, nproc=1, machine=machine("gpu-02", **this_machine())), verdict("gpu-02.rack_1"),
        node("n3", address="10.77.0.3", machine=machine("n3", **SMALL)), verdict("n3", n3, WHY),
        Event("host.unreachable", 1.0, "n4", {"reason": "no route"}),
        *(event for number, text in enumerate(SAID, start=1) for event in (node(f"x{number}", address=f"10.77.1.{number}"), verdict(f"x{number}", "fail", text))),
    ]


def this_machine() -> dict[str, Any]:
    """As the agent's probe sees it: slurmd takes the line only where it has all of that itself."""
    found = probe_machine.act(System(), {"root": "/"}, False).values
    return {key: found[key] for key in ("cpus", "sockets", "cores_per_socket", "threads_per_core", "memory")}


# What nodes say when they fail: each must come out of Slurm as it went in, and none may end the file.
SAID = [
    "State=IDLE", "'", '""', "a=b,c=d", "NodeName=DEFAULT State=IDLE", "Include /etc/passwd", "[1-3]", "%s%n%d", "$HOME `id` $(id)", "a\\", "\\#", "温度 too high", "a\tb",
    "x" * 500, "no end\\", "; & | < >", "(null)", "\u202e\x1b[31m", "  ", "{}", "*", "~", "\udcff", "None", "a # b # c", "line\r\nline",
]


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("slurm")
    handoff = write_handoff(fates("pass", "fail"), folder / "handoff")
    assert handoff.hosts == ("n1", "gpu-02.rack_1")
    with cluster(folder, folder / "handoff", [SlurmHost("gpu-1", "10.77.0.1", 8), SlurmHost("gpu-02", "10.77.0.2")]) as running:
        yield running


def states(slurm: Cluster, wanted: str) -> str:
    return slurm.wait(["sinfo", "-h", "-N", "-n", "n1,gpu-02.rack_1", "-o", "%N %T"], wanted)


IDLE = "gpu-02.rack_1 idle\nn1 idle"
DRAINED = "nodectl: failed: network.pairs: '12 MB/s' no. ü; it's / $(slow) and more"


def test_the_proven_nodes_register_and_run_a_job(slurm: Cluster) -> None:
    assert states(slurm, IDLE) == IDLE, slurm.log("slurmd-0") + slurm.log("slurmd-1") + slurm.log("slurmctld")
    assert sorted(slurm.tool("srun", "-N2", "hostname").split()) == ["gpu-02", "gpu-1"]


def test_a_job_gets_the_gpus_it_asks_for(slurm: Cluster) -> None:
    assert states(slurm, IDLE) == IDLE
    shown = slurm.tool("srun", "-N1", "--gres=gpu:h100-sxm:2", "sh", "-c", "hostname; echo $CUDA_VISIBLE_DEVICES").split()
    assert shown[0] == "gpu-1"
    assert len(shown[1].split(",")) == 2
    assert "not a valid character" not in slurm.log("slurmd-0")
    assert "Requested node configuration is not available" in slurm.tool("srun", "-N1", "--gres=gpu:h100-sxm:9", "true", check=False)


def reasons(slurm: Cluster) -> dict[str, str]:
    """Of the nodes of SAID, without who set them and when."""
    found = {}
    for line in slurm.tool("scontrol", "show", "node", "-o").splitlines():
        found[line.split()[0].removeprefix("NodeName=")] = re.sub(r" \[\S+@[\dT:-]+\]$", "", line.partition(" Reason=")[2].rstrip())
        assert "DRAIN" in line or not line.startswith("NodeName=x")
    return {host: text for host, text in found.items() if host.startswith("x")}


def test_whatever_a_node_said_is_the_reason_that_slurm_shows(slurm: Cluster) -> None:
    wanted = {item.host: reason(item) for item in pool_of(fates("pass", "fail")).excluded if item.host.startswith("x")}
    assert reasons(slurm) == wanted
    assert len(wanted) == len(SAID)


def test_an_excluded_node_shows_its_reason_and_gets_no_job(slurm: Cluster) -> None:
    assert f"{DRAINED}|n3" in slurm.tool("sinfo", "-h", "-R", "-o", "%E|%N").splitlines()
    assert slurm.tool("sinfo", "-h", "-n", "n3", "-o", "%T").strip("*\n") == "drained"
    refused = slurm.tool("srun", "--immediate=1", "-w", "n3", "true", check=False)
    assert "srun: error" in refused
    assert slurm.tool("scontrol", "show", "node", "n4", check=False).startswith("Node n4 not found")


ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed: pip install 'nodectl[torch]'")
def test_a_training_runs_as_the_page_says(slurm: Cluster) -> None:
    """The job of docs/handoff.md, with what this machine has in place of eight GPUs."""
    assert states(slurm, IDLE) == IDLE
    block = re.search(r"^    #!/bin/bash\n(?:    .*\n)+", (ROOT / "docs/handoff.md").read_text(), re.MULTILINE)
    assert block is not None
    script = re.sub(r"^    ", "", block[0], flags=re.MULTILINE)
    for word, stand_in in {
        " --gres=gpu:8": "", "--nproc-per-node=8": "--nproc-per-node=1", "'torchrun ": f"'GLOO_SOCKET_IFNAME=eth0 {sys.executable} -m torch.distributed.run ",
        "train.py": f"{ROOT}/nodectl/verify/workloads/train_ddp.py --steps 2",
    }.items():
        assert word in script
        script = script.replace(word, stand_in)
    (slurm.folder / "job.sh").write_text(script)
    slurm.tool("sbatch", "--wait", "-o", str(slurm.folder / "out"), str(slurm.folder / "job.sh"), timeout=180, check=False)
    said = (slurm.folder / "out").read_text()
    assert "world size 2" in said, said
    assert "weights equal on all ranks: yes" in said


def apply(slurm: Cluster, name: str, *events: Event) -> subprocess.CompletedProcess[str]:
    write_handoff(events, slurm.folder / name)
    argv = ["ip", "netns", "exec", slurm.namespace, str(slurm.folder / name / "slurm/apply.sh")]
    return subprocess.run(argv, capture_output=True, text=True, env=slurm.environment(), timeout=60)


def shown(slurm: Cluster, host: str) -> tuple[str, str]:
    """(state, reason) as Slurm holds them, without who set it and when."""
    lines = slurm.tool("scontrol", "show", "node", host).splitlines()
    found = {key: next((line.strip().removeprefix(f"{key}=") for line in lines if line.strip().startswith(f"{key}=")), "") for key in ("State", "Reason")}
    return found["State"].split()[0].replace("+NOT_RESPONDING", ""), found["Reason"].rpartition(" [")[0]


def test_a_later_run_changes_places_and_leaves_what_others_drained(slurm: Cluster) -> None:
    """Last in this file: it turns n1 and n3 round, then the other way; a node that an operator drained stays his."""
    assert states(slurm, IDLE) == IDLE
    before = reasons(slurm)
    for host in before:
        slurm.tool("scontrol", "update", f"NodeName={host}", "State=DRAIN", "Reason=nodectl: before")
    first = apply(slurm, "turned", *fates("fail", "pass"))
    assert "n4: Slurm does not know it" in first.stderr
    assert first.returncode == 1
    assert reasons(slurm) == before  # by scontrol now, and not by slurm.conf
    assert shown(slurm, "n1") == ("IDLE+DRAIN", "nodectl: failed: it's 'bad'")
    assert shown(slurm, "n3")[0].startswith(("IDLE", "DOWN", "UNKNOWN"))
    assert shown(slurm, "n3")[1] == ""
    slurm.tool("scontrol", "update", "NodeName=gpu-02.rack_1", "State=DRAIN", "Reason=fan is loud")
    apply(slurm, "back", *fates("pass", "fail"))
    assert shown(slurm, "n1") == ("IDLE", "")
    assert shown(slurm, "n3")[1] == DRAINED
    assert shown(slurm, "gpu-02.rack_1") == ("IDLE+DRAIN", "fan is loud")
