"""The hostfile, read by mpirun itself."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from nodectl.handoff.write import write_handoff
from nodectl.wire.event import Event
from tests.handoff.pool_events import node, start, verdict

needs_mpi = pytest.mark.skipif(shutil.which("mpirun") is None, reason="needs Open MPI: apt-get install openmpi-bin")
# In place of ssh: notes down how it was called, and runs the line here under the name of the node.
SSH = """#!/bin/sh
echo "$*" >>"$FAKE/log"
[ "$1 $2" = "-x -F" ] || exit 9  # -x is mpirun's own: no X11
shift
node=$3
shift 3
NODE=$node exec sh -c "$*"
"""


def mpirun(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """mpirun as the handoff's index says, in the handoff's folder; root may only run it where it says so."""
    (folder / "ssh").write_text(SSH)
    (folder / "ssh").chmod(0o755)
    environment = {**os.environ, "FAKE": str(folder), "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    line = f'mpirun --hostfile hostfile --mca plm_rsh_args "-F $PWD/ssh_config" --mca plm_rsh_agent {folder}/ssh "$@"'
    return subprocess.run(["sh", "-c", line, "sh", *args], capture_output=True, text=True, timeout=120, cwd=folder / "handoff", env=environment)


def handoff(folder: Path, *events: Event) -> Path:
    write_handoff([*start("n1", "n2", "n3"), *events], folder / "handoff")
    return folder


# Addresses that no machine has: mpirun would start what is its own without asking ssh.
EVENTS = [
    node("n1", fabric_address="198.51.100.1", nproc=2), verdict("n1"), node("n2", fabric_address="198.51.100.2", nproc=1), verdict("n2"),
    node("n3", fabric_address="198.51.100.3"), verdict("n3", "fail", "slow"),
]


@needs_mpi
def test_a_job_starts_on_the_proven_nodes_with_their_slots(tmp_path: Path) -> None:
    done = mpirun(handoff(tmp_path, *EVENTS), "-np", "3", "sh", "-c", "echo rank $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE on $NODE")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["rank 0 of 3 on 198.51.100.1", "rank 1 of 3 on 198.51.100.1", "rank 2 of 3 on 198.51.100.2"]
    logins = [line.split()[:4] for line in (tmp_path / "log").read_text().splitlines()]
    assert sorted(logins) == [["-x", "-F", f"{tmp_path}/handoff/ssh_config", f"198.51.100.{number}"] for number in (1, 2)]


@needs_mpi
def test_there_are_no_more_slots_than_ranks_were_proven(tmp_path: Path) -> None:
    done = mpirun(handoff(tmp_path, *EVENTS), "--do-not-launch", "-np", "4", "true")
    assert "not enough slots" in done.stderr


@needs_mpi
def test_an_address_that_mpirun_cannot_read_is_refused_by_us_for_a_reason(tmp_path: Path) -> None:
    """Open MPI ends with an internal error at such a line, whoever else stands in the file."""
    folder = handoff(tmp_path, *EVENTS)
    (folder / "handoff/hostfile").write_text("2001:db8::1 slots=2\n")
    done = mpirun(folder, "-np", "1", "true")
    assert done.returncode != 0
    assert "illegal character" in done.stderr
    result = write_handoff([*EVENTS, node("n1", fabric_address="2001:db8::1"), verdict("n1")], folder / "handoff")
    assert result.hosts == ("n1", "n2")
    assert "2001:db8::1, which is no node name of Open MPI" in result.refused["mpi"]["n1"]
    assert (folder / "handoff/hostfile").read_text() == "198.51.100.2 slots=1\n"


def test_no_line_for_a_hostfile_is_no_hostfile(tmp_path: Path) -> None:
    result = write_handoff([node("n1", fabric_address="2001:db8::1"), verdict("n1")], tmp_path)
    assert "hostfile" not in result.artefacts
    assert "torchrun.sh" in result.artefacts


@pytest.mark.skipif(shutil.which("ssh") is None, reason="needs OpenSSH's client")
@pytest.mark.parametrize(("name", "changes", "wanted"), [
    ("n1", {}, "192.0.2.1"), ("10.0.0.1", {}, "192.0.2.1"), ("10.0.0.1", {"address": "n1"}, "10.0.0.1"), ("10.0.0.1", {"address": "10.0.0.1"}, "10.0.0.1"),
])
def test_the_address_in_the_hostfile_is_reached_like_the_node(name: str, changes: dict[str, str], wanted: str, tmp_path: Path) -> None:
    write_handoff([node("n1", port=2222, **changes), verdict("n1")], tmp_path)
    shown = subprocess.run(["ssh", "-G", "-F", str(tmp_path / "ssh_config"), name], capture_output=True, text=True, check=True).stdout.splitlines()
    assert [line for line in (f"hostname {wanted}", "port 2222", "user ops") if line not in shown] == []
