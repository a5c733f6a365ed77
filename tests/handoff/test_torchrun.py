"""torchrun.sh run for real, with a stand-in for ssh and one for the interpreter: what it starts, what it leaves, how it ends."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
from pathlib import Path

import pytest

from nodectl.handoff.write import write_handoff
from tests.handoff.pool_events import node, start, verdict
from tests.processes import gone

# ssh -F CONFIG -- NAME COMMAND: runs the command here, as the login shell of a node would.
FAKE_SSH = """#!/bin/sh
config=$2 name=$4
echo "$name" >> {log}
[ -e {down}/$name ] && exit 255
[ -e {down}/$name.prints ] && echo "Welcome to $name"
case $5 in
    mktemp*) [ -e {down}/$name.mktemp ] && {{ echo "mktemp: No space left on device" >&2; exit 1; }};;
    cat*) [ -e {down}/$name.copy ] && exit 1;;
    *"import socket"*) [ -e {down}/$name.port ] && exit 127;;
esac
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

    def __init__(self, folder: Path, names: tuple[str, ...] = ("n1", "n2", "n3"), python: str = "python") -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.log = folder / "ssh.log"
        self.down = folder / "down"
        self.down.mkdir()
        (folder / "bin").mkdir()
        self._program("bin/ssh", FAKE_SSH.format(log=shlex.quote(str(self.log)), down=shlex.quote(str(self.down))))
        self._program(python, FAKE_PYTHON)
        self.names = names
        env = {"GLOO_SOCKET_IFNAME": "eth0", "SPACED": "it's a $HOME of; spaces"}
        events = start(*names)
        for name in names:
            events += [node(name, torch_python=str(folder / python), nproc=2, env=env), verdict(name)]
        write_handoff(events, folder / "handoff")

    def _program(self, name: str, text: str) -> None:
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o755)

    def start(self, script: str, *args: str, name: str = "job's script.py") -> subprocess.Popen[str]:
        path = self.folder / name
        path.write_text(script)
        environment = {**os.environ, "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}", "TMPDIR": str(self.scratch())}
        command = [str(self.folder / "handoff/torchrun.sh"), str(path), *args]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)

    def scratch(self) -> Path:
        path = self.folder / "tmp"
        path.mkdir(exist_ok=True)
        return path

    def run(self, script: str, *args: str, name: str = "job's script.py") -> tuple[int, str]:
        process = self.start(script, *args, name=name)
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
    assert all(gone(int(pid)) for pid in pids.read_text().split())
    assert list(launch.scratch().iterdir()) == []


def test_a_killed_launcher_leaves_no_job_behind(launch: Launch) -> None:
    process = launch.start(f'echo $$ >> {launch.folder}/pids; exec sleep 60')
    pids = launch.folder / "pids"
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and (not pids.exists() or len(pids.read_text().split()) < 3):
        time.sleep(0.05)
    process.kill()
    process.communicate(timeout=20)
    assert all(gone(int(pid)) for pid in pids.read_text().split())


# what goes wrong on n2 (n1 where it is about the rendezvous), and what is said; nothing may be left anywhere
STAGES: list[tuple[str, str]] = [
    ("n2", "cannot log in to n2"),
    ("n2.mktemp", "cannot log in to n2"),
    ("n2.copy", "to n2"),
    ("n1", "no free port on n1"),
    ("n1.port", "no free port on n1"),
]


@pytest.mark.parametrize(("fault", "words"), STAGES, ids=[fault for fault, _ in STAGES])
def test_a_node_that_fails_before_the_job_is_named(fault: str, words: str, launch: Launch) -> None:
    (launch.down / fault).touch()
    code, output = launch.run(f"touch {launch.folder}/ran")
    assert code == 1
    assert words in output
    assert not (launch.folder / "ran").exists()
    assert list(launch.scratch().iterdir()) == []


@pytest.mark.parametrize("name", ["n1", "n2"])
def test_a_start_file_that_prints_is_no_fault(name: str, launch: Launch) -> None:
    """The run itself read past it; so does the launcher, and it removes the folder it asked for."""
    (launch.down / f"{name}.prints").touch()
    code, output = launch.run('echo "ran on $NODE_NAME"')
    assert code == 0, output
    assert all(f"[{node}] ran on {node}" in output for node in launch.names)
    assert list(launch.scratch().iterdir()) == []


def test_a_node_that_is_lost_during_the_job_ends_it(launch: Launch) -> None:
    """ssh ends with 255 when the line breaks; that node is gone before the cleaning, which must not hold up the rest."""
    code, output = launch.run(f'[ "$NODE_RANK" = 2 ] && {{ touch {launch.down}/n3; kill -9 $$; }}; exec sleep 60')
    assert code not in (0, 1)
    assert "n3 ended with exit code" in output
    left = [path.name for path in launch.scratch().iterdir()]
    assert len(left) <= 1  # what n3 had: nobody can log in to remove it


@pytest.mark.parametrize("gone", ["env/n2.env"])
def test_ranks_do_not_start_without_their_environment(gone: str, launch: Launch) -> None:
    """Without it they would bind to whatever interface comes first, and hang or be slow."""
    (launch.folder / "handoff" / gone).unlink()
    code, output = launch.run("true")
    assert (code, launch.log.exists()) == (1, False)
    assert f"cannot read {launch.folder}/handoff/{gone}: write the handoff again" in output


@pytest.mark.parametrize("port", ["", "http", "29500 x", "-1", "$(id)"])
def test_a_chosen_port_that_is_none(port: str, launch: Launch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASTER_PORT", port)
    code, output = launch.run("true")
    assert (code, "is not a port" in output) == ((0, False) if not port else (1, True))


NAMES = [("gpu-01.rack[1]", "a=b", "10.0.0.3"), ("ü", "x~y", "fe80::1")]


@pytest.mark.parametrize("names", NAMES, ids=["ascii", "others"])
def test_odd_names_and_paths(names: tuple[str, ...], tmp_path: Path) -> None:
    """Names as an inventory takes them, an interpreter and a script with every quote there is."""
    launch = Launch(tmp_path / "it's a $HOME \"x\"", names, "py thon'$(id)")
    code, output = launch.run('echo "ran on $NODE_NAME with <$1> <$2>"', "a'b\"c", "$(id) `id`", name="-job `id` $x'.py")
    assert code == 0, output
    for name in names:
        assert f"[{name}] ran on {name} with <a'b\"c> <$(id) `id`>" in output
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
