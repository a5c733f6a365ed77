"""probe_perftest: the command of each end, patience with a server that does not listen yet, deadlines, and a real process that hangs."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from nodectl.agent.contract import Failed
from nodectl.agent.probes import probe_perftest
from nodectl.agent.system import System
from tests.agent.modules_sys.scripted import Answer, Scripted, filled, reason

TABLE = " #bytes #iterations BW peak[MB/sec]    BW average[MB/sec]\n 65536 200 4.8 4.8\n"


def arguments(**given: Any) -> dict[str, Any]:
    return filled(probe_perftest.SPEC, **{"tool": "ib_write_bw", "device": "mlx5_0", "tcp_port": 18515, "size": 65536, "iterations": 200, **given})


COMMANDS: list[tuple[dict[str, Any], str]] = [
    ({}, "ib_write_bw -F -d mlx5_0 -i 1 -p 18515 -s 65536 -n 200 -q 1"),
    ({"peer": "10.0.0.2", "gid_index": 3}, "ib_write_bw -F -d mlx5_0 -i 1 -p 18515 -s 65536 -n 200 -x 3 -q 1 10.0.0.2"),
    ({"gid_index": 0, "queue_pairs": 2, "ib_port": 2}, "ib_write_bw -F -d mlx5_0 -i 2 -p 18515 -s 65536 -n 200 -x 0 -q 2"),
    ({"tool": "ib_write_lat", "peer": "::1", "size": 2}, "ib_write_lat -F -d mlx5_0 -i 1 -p 18515 -s 2 -n 200 ::1"),
    ({"connection": "SRD", "gid_index": 0, "device": "rdmap0s1"}, "ib_write_bw -F -d rdmap0s1 -i 1 -p 18515 -s 65536 -n 200 -x 0 -c SRD -q 1"),
]


@pytest.mark.parametrize(("given", "expected"), COMMANDS, ids=[expected for _, expected in COMMANDS])
def test_the_command(given: dict[str, Any], expected: str) -> None:
    node = Scripted({"ib_write_bw": (0, TABLE, ""), "ib_write_lat": (0, TABLE, ""), "ib_write_bw --version": (0, "Version: 6.06\n", ""), "ib_write_lat --version": (0, "6.06", "")})
    found = probe_perftest.act(node, arguments(**given), False).values
    assert " ".join(found["argv"]) == expected == node.ran[-1]
    assert (found["rc"], found["stdout"], found["installed"], found["version"], found["timed_out"]) == (0, TABLE, True, "6.06", False)


@pytest.mark.parametrize("given", [{"tool": "rm"}, {"connection": "UD"}, {"tcp_port": "x"}, {"size": None}])
def test_arguments_are_checked(given: dict[str, Any]) -> None:
    from nodectl.wire.params import validate

    whole = {"tool": "ib_write_bw", "device": "mlx5_0", "tcp_port": 1, "size": 1, "iterations": 1, **given}
    assert validate(probe_perftest.SPEC, whole)[1]


def test_a_node_without_perftest_says_so() -> None:
    node = Scripted({"something": (0, "", "")})
    found = probe_perftest.act(node, arguments(), False).values
    assert (found["installed"], found["rc"]) == (False, 127)
    assert node.ran == []


def test_nothing_is_measured_in_check_mode() -> None:
    assert probe_perftest.act(Scripted({}), arguments(), True).skipped


@pytest.mark.parametrize("words", probe_perftest.NOT_YET)
def test_a_client_is_patient_until_the_server_listens(words: str) -> None:
    tries: list[str] = []

    def answer(argv: Sequence[str]) -> Answer:
        tries.append(" ".join(argv))
        return (0, TABLE, "") if len(tries) == 3 else (1, f"{words} 10.0.0.2:18515\n", "")

    node = Scripted({"ib_write_bw": answer, "ib_write_bw --version": (0, "6.06", "")})
    found = probe_perftest.act(node, arguments(peer="10.0.0.2"), False).values
    assert (found["rc"], len(tries)) == (0, 3)


@pytest.mark.parametrize(("peer", "words"), [("", "Couldn't connect to"), ("10.0.0.2", "Failed to modify QP 17 to RTR"), ("10.0.0.2", "")])
def test_only_that_is_tried_again(peer: str, words: str) -> None:
    node = Scripted({"ib_write_bw": (1, words, ""), "ib_write_bw --version": (0, "6.06", "")})
    found = probe_perftest.act(node, arguments(peer=peer), False).values
    assert found["rc"] == 1
    assert len(node.ran) == 2


def test_patience_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    node = Scripted({"ib_write_bw": (1, "Couldn't connect to 10.0.0.2:1", ""), "ib_write_bw --version": (0, "", "")})
    monkeypatch.setattr(node, "sleep", sleep)
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    found = probe_perftest.act(node, arguments(peer="10.0.0.2", timeout=60.0), False).values
    assert (found["rc"], found["version"]) == (1, "")
    assert probe_perftest.PATIENCE <= now[0] < probe_perftest.PATIENCE + 1


def test_long_output_is_cut_from_its_start() -> None:
    node = Scripted({"ib_write_bw": (0, "x" * 100_000 + TABLE, "e" * 100_000), "ib_write_bw --version": (0, "6.06", "")})
    found = probe_perftest.act(node, arguments(), False).values
    assert len(found["stdout"]) == len(found["stderr"]) == probe_perftest.TAIL
    assert found["stdout"].endswith(TABLE)


# -- real processes


def program(folder: Path, text: str) -> System:
    path = folder / "ib_write_bw"
    path.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo "Version: 6.06" && exit\n{text}\n')
    path.chmod(0o755)
    return System({"PATH": f"{folder}:{os.environ['PATH']}"})


def test_a_server_that_nobody_comes_to_is_ended_at_its_deadline(tmp_path: Path) -> None:
    began = time.monotonic()
    found = probe_perftest.act(program(tmp_path, "echo waiting for a client; exec sleep 60"), arguments(timeout=1.2), False).values
    assert (found["timed_out"], found["rc"]) == (True, -15)
    assert "waiting for a client" in found["stdout"]
    assert time.monotonic() - began < 10


def test_a_step_that_is_cancelled_ends_its_process(tmp_path: Path) -> None:
    system = program(tmp_path, f"echo $$ > {tmp_path}/pid; exec sleep 60")
    timer = threading.Timer(0.3, system.stopper.stop, ["the other end has failed"])
    timer.start()
    said = reason(lambda: probe_perftest.act(system, arguments(timeout=30.0), False))
    timer.join()
    assert "the other end has failed" in said
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_a_version_that_hangs_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hanging(Scripted):
        def run(self, argv: Sequence[str], *args: Any, **kwargs: Any) -> Any:
            if argv[-1] == "--version":
                raise Failed("ib_write_bw did not end within 10 s")
            return super().run(argv, *args, **kwargs)

    found = probe_perftest.act(Hanging({"ib_write_bw": (0, TABLE, "")}), arguments(), False).values
    assert (found["version"], found["rc"]) == ("", 0)
