"""The workloads themselves: really started, two ranks of gloo on loopback, through the agent's own modules."""

from __future__ import annotations

import ast
import importlib.util
import json
import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from nodectl.agent.contract import Failed
from nodectl.agent.probes import probe_free_port, workload
from nodectl.agent.runner import run_step
from nodectl.agent.system import System
from nodectl.verify.group import gang
from nodectl.verify.group.gang import Case
from nodectl.verify.group.operations import OPS
from nodectl.verify.group.sweep_plan import sweep
from nodectl.verify.parse.workload import group_output, records
from nodectl.wire.outcome import Outcome
from nodectl.wire.step import Step

pytestmark = pytest.mark.servers
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed: pip install 'nodectl[torch]'")
FOLDER = Path(gang.__file__).parents[1] / "workloads"


def run(python: str, source: str, *argv: str, timeout: float = 30.0, **env: str) -> Outcome:
    return run_step(System(), Step(1, "workload", {"python": python, "source": source, "argv": list(argv), "env": env, "timeout": timeout}))


def config(rank: int, port: int, **changes: Any) -> str:
    plain = {
        "backend": "gloo", "master": "127.0.0.1", "port": port, "node_rank": rank, "nodes": 2, "nproc": 1, "cases": [case("all_reduce", [4096, 1 << 20])],
        "timeout": 10.0, "init_timeout": 20.0,
    }
    return json.dumps({**plain, **changes})


def case(op: str, sizes: list[int], **changes: Any) -> dict[str, Any]:
    plain = {"op": op, "dtype": "float32", "redop": "sum", "root": 0, "in_place": True, "sizes": sizes, "warmup": 1, "iterations": 3, "budget": 5.0, "keep": True}
    return {**plain, **changes}


def group(*configs: str) -> list[Outcome]:
    with ThreadPoolExecutor(len(configs)) as pool:
        return list(pool.map(lambda text: run(sys.executable, gang.workload_source("collective"), text, GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1"), configs))


def free_port() -> int:
    return int(probe_free_port.act(System(), {"address": "127.0.0.1"}, False).values["port"])


@needs_torch
def test_two_nodes_of_two_ranks_reduce_and_check_every_value() -> None:
    port = free_port()
    outcomes = group(config(0, port, nproc=2), config(1, port, nproc=2))
    assert [outcome.values["rc"] for outcome in outcomes] == [0, 0], outcomes
    found = group_output({str(index): outcome.values["stdout"] for index, outcome in enumerate(outcomes)}, 4)
    assert [size.bytes for size in found.sizes] == [4096, 1 << 20]
    assert all(size.wrong == 0 and len(size.seconds) >= 1 for size in found.sizes)
    assert found.ready == {0, 1, 2, 3}
    assert 1e5 < found.sizes[-1].bandwidth("all_reduce", 4, "median").busbw < 1e12


@needs_torch
def test_every_operation_for_real_in_one_start() -> None:
    """gloo, three ranks: all operations in all places and some types right, averages of integers said to be impossible, pace and bytes told."""
    cases = [*sweep(OPS, ("float32",), ("sum",), (8, 65536), LIKE), *sweep(OPS, ("bfloat16", "uint8"), ("max",), (4096,), LIKE)]
    cases += sweep(["all_reduce"], ("int32", "float16"), ("avg", "prod"), (4096,), LIKE)
    port = free_port()
    configs = [config(rank, port, nodes=3, pace=2, until=60.0, cases=[asdict(one) for one in cases]) for rank in range(3)]
    outcomes = group(*configs)
    assert [outcome.values["rc"] for outcome in outcomes] == [0, 0, 0], outcomes
    found = group_output({str(index): outcome.values["stdout"] for index, outcome in enumerate(outcomes)}, 3)
    refused = {number for number, one in enumerate(cases) if (one.dtype, one.redop) == ("int32", "avg")}
    assert set(found.unsupported) == refused
    assert {number: sum(size.wrong for size in sizes) for number, sizes in found.cases.items()} == {number: 0 for number in range(len(cases)) if number not in refused}
    assert all(len(size.ranks) == 3 and len(size.seconds) == 1 for sizes in found.cases.values() for size in sizes)
    assert set(found.pace) == {0, 1, 2}
    assert all(len(pace.host) == 2 and 0 < sum(pace.cpu) <= sum(pace.host) * 1.1 for pace in found.pace.values())
    assert len(set(found.moved.values())) == 1
    assert found.moved[0] > 65536
    # The kernel's own count of each connection: what was sent is known, and loopback loses next to nothing.
    assert set(found.resent) == {0, 1, 2}
    assert all(set(peers) == {"127.0.0.1"} and peers["127.0.0.1"][0] > 10 for peers in found.resent.values())


LIKE = Case("", (), iterations=2, budget=1.0)
# A rank whose network spoils one element of what it sends, one of whose calls does nothing, or whose clock has no time left.
SPOILED = """
plain = dist.all_reduce
def all_reduce(buffer, op=None, **more):
    if buffer.numel() > 1 and config["node_rank"] == 1:
        buffer[7] += 1
    return plain(buffer, op=op) if op is not None else plain(buffer)
config = json.loads(sys.argv[1])
dist.all_reduce = all_reduce
code = main()
sys.stdout.flush()
os._exit(code)
"""


@needs_torch
def test_one_wrong_element_of_one_rank_is_counted_by_all() -> None:
    text = gang.workload_source("collective").replace('if __name__ == "__main__":', "if False:") + SPOILED
    port = free_port()
    orders = [config(rank, port, cases=[asdict(Case("all_reduce", (65536,), iterations=1)), asdict(Case("broadcast", (65536,), iterations=1))]) for rank in range(2)]
    with ThreadPoolExecutor(2) as pool:
        outcomes = list(pool.map(lambda order: run(sys.executable, text, order, GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1"), orders))
    found = group_output({str(index): outcome.values["stdout"] for index, outcome in enumerate(outcomes)}, 2)
    # three patterns, one element, two ranks that see it
    assert {number: sizes[0].wrong for number, sizes in found.cases.items()} == {0: 6, 1: 0}, outcomes[0].values["stderr"]


@needs_torch
def test_no_size_is_begun_when_the_time_is_up() -> None:
    port = free_port()
    outcomes = group(*[config(rank, port, until=0.001) for rank in range(2)])
    found = group_output({str(index): outcome.values["stdout"] for index, outcome in enumerate(outcomes)}, 2)
    assert [outcome.values["rc"] for outcome in outcomes] == [0, 0]
    assert found.sizes == ()
    assert len(found.skipped) == 1
    assert "no time is left" in found.skipped[0]


# One interpreter for three looks, because importing torch takes longer than all of them: what it has, a sum that is off by one value
# in one place, and a rank that never comes.
THREE_LOOKS = """
given = case_of()
values = Values(given, 2, 0)
plain = dist.all_reduce
def all_reduce(buffer, op=None):
    fill(buffer, values.expected())
    buffer[5] += 1
dist.all_reduce = all_reduce
say("looked", wrong=Operation(given, 280, 0, 2, torch.device("cpu")).checked(0))
dist.all_reduce = plain
say("ended", code=main())
"""


@needs_torch
def test_facts_wrong_values_and_a_rank_that_never_comes() -> None:
    facts, collective = (gang.workload_source(name) for name in ("torch_facts", "collective"))
    looks = THREE_LOOKS.replace("case_of()", repr(case("all_reduce", [280])))
    text = facts + "\n" + collective.replace("from __future__ import annotations", "").replace('if __name__ == "__main__":', "if False:") + looks
    outcome = run(sys.executable, text, config(0, free_port(), init_timeout=1.0))
    found = {record["kind"]: record for record in records(outcome.values["stdout"])}
    assert set(found) == {"torch", "looked", "missing", "error", "ended"}, outcome.values["stderr"]
    assert found["torch"]["gloo"] is True
    assert found["torch"]["gpus"] == len(found["torch"]["names"])
    assert found["looked"]["wrong"] == 1
    assert found["missing"]["ranks"] == [1]
    assert found["error"]["phase"] == "waiting for all ranks"
    assert found["ended"]["code"] == 3


@pytest.mark.parametrize("path", sorted(FOLDER.glob("[a-z]*.py")), ids=lambda path: path.stem)
def test_workloads_stand_alone(path: Path) -> None:
    """They are sent as text: standard library and torch only, and grammar of Python 3.8."""
    tree = ast.parse(path.read_text(), feature_version=(3, 8))
    imported = [name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names]
    imported += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    roots = {name.partition(".")[0] for name in imported}
    assert roots - {"torch"} <= set(sys.stdlib_module_names)


# -- the agent's side

def test_a_program_runs_from_stdin_with_arguments_and_environment() -> None:
    outcome = run("python3", "import os, sys\nprint(sys.argv[1:], os.environ['COLOUR'])\nsys.exit(4)", "a b", "$HOME", COLOUR="blue")
    assert not outcome.failed
    assert outcome.values == {"rc": 4, "stdout": "['a b', '$HOME'] blue\n", "stderr": "", "timed_out": False}


def ended(stat: Path) -> bool:
    """Gone, or a zombie that its adoptive parent has not yet looked after; a signal takes a moment on a busy machine."""
    for _ in range(40):
        try:
            if stat.read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.05)
    return False


def test_the_deadline_ends_children_too_and_keeps_what_was_printed(tmp_path: Path) -> None:
    source = f"import os, time\nprint('started', flush=True)\nif os.fork() == 0:\n    open('{tmp_path}/pid', 'w').write(str(os.getpid()))\ntime.sleep(60)"
    outcome = run("python3", source, timeout=0.5)
    assert outcome.values["timed_out"] is True
    assert outcome.values["stdout"] == "started\n"
    assert ended(Path(f"/proc/{(tmp_path / 'pid').read_text()}/stat"))


def test_a_signal_is_a_negative_exit_code() -> None:
    assert run("python3", "import os\nos.kill(os.getpid(), 9)").values["rc"] == -9


def test_an_interpreter_that_is_not_there_is_named() -> None:
    outcome = run("/opt/nothing/bin/python", "print(1)")
    assert outcome.failed
    assert "/opt/nothing/bin/python" in outcome.msg


def test_only_the_end_of_long_output_comes_back() -> None:
    outcome = run("python3", "print('x' * 400000)\nprint('the end')")
    assert len(outcome.values["stdout"]) == workload.TAIL
    assert outcome.values["stdout"].endswith("the end\n")


def test_nothing_runs_in_check_mode() -> None:
    assert run_step(System(), Step(1, "workload", {"python": "python3", "source": "x"}, check=True)).skipped


def test_a_port_that_can_be_listened_on() -> None:
    port = free_port()
    with socket.socket() as server:
        server.bind(("127.0.0.1", port))
        server.listen(1)
        assert "in use" in probe_free_port._refused("127.0.0.1", port)


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(Failed, match=r"no rendezvous can listen on 192.0.2.1"):
        probe_free_port.act(System(), {"address": "192.0.2.1"}, False)
