"""torchrun.sh run for real, with a stand-in for ssh and one for the interpreter: what it starts, what it leaves, how it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from nodectl.handoff.write import write_handoff
from tests.handoff.pool_events import node, start, verdict

# ssh -F CONFIG -- NAME COMMAND: runs the command here, as the login shell of a node would.
FAKE_SSH = """#!/bin/sh
config=$2 name=$4
echo "$name" >> {log}
[ -e {down}/$name ] && exit 255
NODE_NAME=$name exec sh -c "$5"
"""
# The node's torch interpreter: -c asks for a port; -m torch.distributed.run shows what it got, then runs the copied script with sh.
FAKE_PYTHON = """#!/bin/sh
if [ "$1" = -c ]; then echo 29555; exit 0; fi
echo "args: $*"
echo "env: $GLOO_SOCKET_IFNAME $SPACED"
mktemp -d > /dev/null
for word; do case $word in --node-rank=*) NODE_RANK=${word#*=};; esac; done
export NODE_RANK
while [ $# -gt 0 ]; do case $1 in /*) script=$1; shift; break;; esac; shift; done
exec sh "$script" "$@"
"""


class Launch:
    """A handoff of three nodes whose ssh and python are stand-ins."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "ssh.log"
        self.down = folder / "down"
        self.down.mkdir()
        (folder / "bin").mkdir()
        self._program("bin/ssh", FAKE_SSH.format(log=self.log, down=self.down))
        self._program("python", FAKE_PYTHON)
        names = ("n1", "n2", "n3")
        env = {"GLOO_SOCKET_IFNAME": "eth0", "SPACED": "it's a $HOME of; spaces"}
        events = start(*names)
        for name in names:
            events += [node(name, torch_python=str(folder / "python"), nproc=2, env=env), verdict(name)]
        write_handoff(events, folder / "handoff")

    def _program(self, name: str, text: str) -> None:
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o755)

    def start(self, script: str, *args: str) -> subprocess.Popen[str]:
        path = self.folder / "job's script.py"
        path.write_text(script)
        environment = {**os.environ, "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}", "TMPDIR": str(self.scratch())}
        command = [str(self.folder / "handoff/torchrun.sh"), str(path), *args]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)

    def scratch(self) -> Path:
        path = self.folder / "tmp"
        path.mkdir(exist_ok=True)
        return path

    def run(self, script: str, *args: str) -> tuple[int, str]:
        process = self.start(script, *args)
        output, _ = process.communicate(timeout=30)
        return process.returncode, output


@pytest.fixture
def launch(tmp_path: Path) -> Launch:
    return Launch(tmp_path)


def test_every_node_runs_the_script_with_its_rank_and_environment(launch: Launch) -> None:
    code, output = launch.run('echo "hello $1 from rank $NODE_RANK on $NODE_NAME"', "it's me")
    assert code == 0, output
    for rank, name in enumerate(["n1", "n2", "n3"]):
        assert f"[{name}] hello it's me from rank {rank} on {name}" in output
        assert f"[{name}] env: eth0 it's a $HOME of; spaces" in output
    wanted = "-m torch.distributed.run --nnodes=3 --nproc-per-node=2 --node-rank=1 --master-addr=10.0.0.1 --master-port=29555 --rdzv-backend=static"
    assert wanted in next(line for line in output.splitlines() if line.startswith("[n2] args:"))


def test_nothing_is_left_on_nodes_or_here(launch: Launch) -> None:
    """The stand-in for torchrun leaves a temporary folder of its own, as torchrun does."""
    assert launch.run("true")[0] == 0
    assert list(launch.scratch().iterdir()) == []


def test_the_first_failure_ends_the_others_and_gives_the_exit_code(launch: Launch) -> None:
    began = time.monotonic()
    code, output = launch.run(f'[ "$NODE_RANK" = 1 ] && exit 7; sleep 60; touch {launch.folder}/survived')
    assert code == 7
    assert time.monotonic() - began < 15
    assert "n2 ended with exit code 7" in output
    assert not (launch.folder / "survived").exists()
    assert list(launch.scratch().iterdir()) == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_job_everywhere(launch: Launch, number: signal.Signals, code: int) -> None:
    process = launch.start(f'echo $$ >> {launch.folder}/pids; exec sleep 60')
    pids = launch.folder / "pids"
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and (not pids.exists() or len(pids.read_text().split()) < 3):
        time.sleep(0.05)
    process.send_signal(number)
    output, _ = process.communicate(timeout=20)
    assert process.returncode == code, output
    assert [pid for pid in pids.read_text().split() if Path(f"/proc/{pid}").exists()] == []
    assert list(launch.scratch().iterdir()) == []


def test_a_killed_launcher_leaves_no_job_behind(launch: Launch) -> None:
    process = launch.start(f'echo $$ >> {launch.folder}/pids; exec sleep 60')
    pids = launch.folder / "pids"
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and (not pids.exists() or len(pids.read_text().split()) < 3):
        time.sleep(0.05)
    process.kill()
    process.communicate(timeout=20)
    deadline = time.monotonic() + 10
    alive = pids.read_text().split()
    while alive and time.monotonic() < deadline:
        alive = [pid for pid in alive if Path(f"/proc/{pid}").exists()]
        time.sleep(0.05)
    assert alive == []


def test_a_node_that_refuses_the_login_is_named(launch: Launch) -> None:
    (launch.down / "n2").touch()
    code, output = launch.run("true")
    assert code == 1
    assert "cannot log in to n2" in output
    assert list(launch.scratch().iterdir()) == []


@pytest.mark.parametrize(("args", "code", "words"), [([], 2, "Launch SCRIPT with torchrun"), (["--help"], 2, "MASTER_PORT"), (["/nowhere.py"], 1, "cannot read /nowhere.py")])
def test_usage(launch: Launch, args: list[str], code: int, words: str) -> None:
    done = subprocess.run([str(launch.folder / "handoff/torchrun.sh"), *args], capture_output=True, text=True)
    assert done.returncode == code
    assert words in done.stderr
    assert not launch.log.exists()


def test_the_port_can_be_chosen(launch: Launch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASTER_PORT", "31000")
    assert "--master-port=31000" in launch.run("true")[1]
