"""Lines and scripts for Slurm, as text; test_slurm_live.py gives them to Slurm itself."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodectl.handoff.artefact import Artefact
from nodectl.handoff.pool import Excluded, pool_of
from nodectl.handoff.slurm import REASON_MOST, reason, slurm
from nodectl.wire.event import Event
from tests.handoff.pool_events import machine, node, start, verdict, waived


def made(*events: Event) -> Artefact:
    return slurm(pool_of([*start(*dict.fromkeys(event.host for event in events)), *events]))


def line_of(artefact: Artefact, host: str) -> str:
    return next(line for line in artefact.files["slurm/nodes.conf"].splitlines() if f"NodeName={host} " in line)


def test_a_proven_node() -> None:
    artefact = made(node("n1"), verdict("n1"))
    assert line_of(artefact, "n1") == (
        "NodeName=n1 NodeAddr=192.0.2.1 CPUs=64 Sockets=2 CoresPerSocket=16 ThreadsPerCore=2 RealMemory=513802 Gres=gpu:h100-sxm:8 State=UNKNOWN"
    )
    assert artefact.files["slurm/gres.conf"].splitlines()[1:] == ["NodeName=n1 Name=gpu Type=h100-sxm File=/dev/nvidia[0-7]"]
    assert "NodeSet=proven Nodes=n1\n" in artefact.files["slurm/nodes.conf"]
    assert "\nresume n1\n" in artefact.files["slurm/apply.sh"]
    assert artefact.refused == {}


# what of n1's description is changed; what its line holds then, or what it must not hold (after a !)
LINES: list[tuple[dict[str, Any], list[str]]] = [
    ({"machine": machine("gpu-1.rack1.example.org")}, [" NodeHostname=gpu-1 "]),
    ({"machine": machine("")}, ["!NodeHostname"]),
    ({"address": "n1"}, ["!NodeAddr"]),
    ({"address": "2001:db8::1"}, [" NodeAddr=2001:db8::1 "]),
    ({"connection": "local", "address": "localhost"}, [" NodeAddr=10.0.0.1 "]),
    ({"machine": machine("n1", cores_per_socket=0)}, [" CPUs=64 ", "!Sockets", "!Threads"]),
    ({"machine": machine("n1", cpus=63)}, [" CPUs=63 ", "!Sockets"]),
    ({"gpus": 0, "nproc": 1}, ["!Gres"]),
    ({"machine": machine("n1", sku="", gpu_model="NVIDIA RTX 6000 Ada")}, [" Gres=gpu:nvidia-rtx-6000-ada:8 "]),
    ({"gpus": 1, "machine": machine("n1", gpu_files=["/dev/nvidia3"])}, [" Gres=gpu:h100-sxm:1 "]),
    ({"machine": machine("n1", sku="MI300X", gpu_model="AMD Instinct MI300X", gpu_files=[])}, [" Gres=gpu:mi300x:8 "]),
]


@pytest.mark.parametrize(("changes", "words"), LINES, ids=[words[0] + str(number) for number, (_, words) in enumerate(LINES)])
def test_lines(changes: dict[str, Any], words: list[str]) -> None:
    line = line_of(made(node("n1", **changes), verdict("n1")), "n1")
    assert [word for word in words if (word[1:] in line if word[0] == "!" else word not in line)] == [], line


# the device files of the GPUs; how gres.conf names them
FILES = [(["3"], "3"), (["0", "1"], "[0-1]"), (["0", "2", "3", "5"], "[0,2-3,5]"), (["0", "1", "2", "10", "11"], "[0-2,10-11]")]


@pytest.mark.parametrize(("numbers", "wanted"), FILES)
def test_device_files(numbers: list[str], wanted: str) -> None:
    files = [f"/dev/nvidia{number}" for number in numbers]
    artefact = made(node("n1", gpus=len(files), machine=machine("n1", gpu_files=files)), verdict("n1"))
    assert artefact.files["slurm/gres.conf"].endswith(f" File=/dev/nvidia{wanted}\n")


# what of n1's description is changed; words of why Slurm cannot have it
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"machine": None}, "did not ask it for its processors"), ({"machine": {"error": "no /proc"}}, "no /proc"), ({"machine": machine("n1", cpus=0)}, "did not say"),
    ({"machine": machine("n1", memory=None)}, "did not say"), ({"machine": machine("a b")}, "its host name is 'a b'"), ({"machine": machine("n2")}, "calls itself n2, and so does n2"),
    ({"address": "fe80::1%eth0"}, "its address is"), ({"machine": machine("n1", gpu_files=[])}, "8 GPUs and there are 0 files"),
    ({"machine": machine("n1", gpu_files=["/dev/nvidia0"] * 7)}, "there are 7 files"), ({"machine": machine("n1", gpu_files=["/dev/x0"] * 8)}, "there are 0 files"),
]


@pytest.mark.parametrize(("changes", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_what_no_line_could_say_truly_is_refused_and_the_others_stand(changes: dict[str, Any], words: str) -> None:
    artefact = slurm(pool_of([*start("n1", "n2"), node("n2"), verdict("n2"), node("n1", **changes), verdict("n1")]))
    assert list(artefact.refused) == ["n1"]
    assert words in artefact.refused["n1"]
    assert all("n1" not in text for text in artefact.files.values())
    assert "NodeSet=proven Nodes=n2\n" in artefact.files["slurm/nodes.conf"]


@pytest.mark.parametrize("host", ["default", "ALL", "proven", "a[1]", "ünode", "a=b", "a~b", "-n", "a+b", "fe80::1", "n" * 65, "a%b", ".n"])
def test_names_that_mean_something_else_to_slurm(host: str) -> None:
    """Proven or not: a line `NodeName=ALL State=DRAIN` would take the whole cluster down."""
    for value in ("pass", "fail"):
        artefact = made(Event("node", 1.0, host, node("n2").data), verdict(host, value, "slow"))
        assert host in artefact.refused or host == "-n"  # an option of ssh is no name for any format
        assert not any(f"NodeName={host} " in text or f"\ndrain {host} " in text for text in artefact.files.values())


def test_an_excluded_node_is_drained_with_its_reason_and_in_no_set() -> None:
    artefact = made(node("n1"), verdict("n1", "fail", "network.pairs: 12 MB/s", "clock: off"), node("n2"), verdict("n2"))
    assert line_of(artefact, "n1") == 'NodeName=n1 NodeAddr=192.0.2.1 State=DRAIN Reason="nodectl: failed: network.pairs: 12 MB/s; clock: off"'
    assert "Nodes=n2\n" in artefact.files["slurm/nodes.conf"]
    assert "n1" not in artefact.files["slurm/gres.conf"]
    assert "\ndrain n1 'nodectl: failed: network.pairs: 12 MB/s; clock: off'\n" in artefact.files["slurm/apply.sh"]


@pytest.mark.parametrize("events", [[], [node("n1", address="fe80::1%eth0")], [node("n1", address="a b # c\nNodeName=ALL")]], ids=["none", "a zone", "hostile"])
def test_a_node_whose_address_nobody_learned_is_only_drained_by_the_script(events: list[Event]) -> None:
    """slurmctld asks for the address of every name at its start, and waits half a minute for one that does not resolve."""
    artefact = made(*events, Event("host.unreachable", 1.0, "n1", {"reason": "no route"}))
    assert line_of(artefact, "n1") == '# (no address is known) NodeName=n1 State=DRAIN Reason="nodectl: unreachable: no route"'
    assert "\ndrain n1 'nodectl: unreachable: no route'\n" in artefact.files["slurm/apply.sh"]
    assert artefact.refused == {}


def test_a_waiver_stands_beside_its_node_as_a_comment() -> None:
    artefact = made(node("n1"), waived("n1", why="x\nNodeName=ALL State=DOWN \\"), verdict("n1", "skipped"))
    assert "\n# n1: clock.offset waived by ops until 2026-12-31: x?NodeName=ALL State=DOWN /\n" in artefact.files["slurm/nodes.conf"]


# reasons as nodes give them; what is left of each
REASONS: list[tuple[str, str]] = [
    ('a "quoted" word', "a 'quoted' word"), ("two\nlines\r\n\tand a tab", "two lines and a tab"), ("50 # comment", "50 no. comment"), ("C:\\x\\", "C:/x/"),
    ("ü and 温度", "ü and 温度"), ("\x1b[2J\x00", "?[2J?"), ("\udcff", "?"), ("$(reboot) `reboot`", "$(reboot) `reboot`"), ("NodeName=ALL", "NodeName=ALL"), ("", ""),
]


@pytest.mark.parametrize(("text", "wanted"), REASONS, ids=[repr(text) for text, _ in REASONS])
def test_reasons_are_one_line(text: str, wanted: str) -> None:
    assert reason(Excluded("n1", "failed", (text,))) == f"nodectl: failed: {wanted}".rstrip()


@given(st.lists(st.text(), max_size=5))
def test_any_reason_stays_inside_its_quotes(texts: list[str]) -> None:
    text = reason(Excluded("n1", "failed", tuple(texts)))
    assert text.isprintable()
    assert not set('"#\\\n').intersection(text)
    assert text.startswith("nodectl: failed")
    assert len(text) <= REASON_MOST


# A scontrol that knows some nodes and writes down what it is asked to change.
SCONTROL = """#!/bin/sh
case "$1 $2" in
    'show node') cat "$FAKE/$3" 2>/dev/null || { echo "Node $3 not found"; exit 1; } ;;
    update\\ *) shift; printf '<%s>' "$@" >>"$FAKE/log"; echo >>"$FAKE/log"; [ ! -e "$FAKE/down" ] ;;
esac
"""
# state and reason of the node in Slurm; what happens to it when it is proven, and when it is excluded
STATES: list[tuple[str, str, bool, bool]] = [
    ("IDLE", "", False, True), ("ALLOCATED", "", False, True), ("IDLE+DRAIN", "nodectl: failed: slow [root@2026-01-01T00:00:00]", True, True),
    ("MIXED+DRAINING", "nodectl: unknown: x", True, True), ("IDLE+DRAIN", "fan broken [ops@2026-01-01T00:00:00]", False, False),
    ("IDLE+DRAIN", "see nodectl: failed", False, False), ("DOWN+NOT_RESPONDING", "Not responding [slurm@2026-01-01T00:00:00]", False, True), ("DOWN+DRAIN", "", False, False),
]


def apply(folder: Path, artefact: Artefact, *args: str) -> tuple[int, str, list[str]]:
    """(exit code, output, updates) of apply.sh with a scontrol that answers from ``folder``."""
    (folder / "bin").mkdir(exist_ok=True)
    (folder / "bin/scontrol").write_text(SCONTROL)
    (folder / "bin/scontrol").chmod(0o755)
    (folder / "apply.sh").write_text(artefact.files["slurm/apply.sh"])
    done = subprocess.run(
        ["sh", str(folder / "apply.sh"), *args], capture_output=True, text=True, timeout=20, env={"PATH": f"{folder}/bin:/usr/bin:/bin", "FAKE": str(folder)},
    )
    log = folder / "log"
    return done.returncode, done.stdout + done.stderr, log.read_text().splitlines() if log.exists() else []


@pytest.mark.parametrize(("state", "why", "resumed", "drained"), STATES, ids=[f"{state} {why}" for state, why, _, _ in STATES])
def test_only_what_nodectl_drained_is_resumed_and_nobodys_reason_is_lost(state: str, why: str, resumed: bool, drained: bool, tmp_path: Path) -> None:
    for number, value in enumerate(("pass", "fail")):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "n1").write_text(f"NodeName=n1 CoresPerSocket=2\n   State={state} ThreadsPerCore=1\n" + (f"   Reason={why}\n" if why else ""))
        code, _, updates = apply(folder, made(node("n1"), verdict("n1", value, "it's \"slow\"")))
        assert code == 0
        if value == "pass":
            assert updates == (["<NodeName=n1><State=RESUME>"] if resumed else [])
        else:
            assert updates == (["<NodeName=n1><State=DRAIN><Reason=nodectl: failed: it's 'slow'>"] if drained else [])


def test_one_unknown_node_does_not_hold_up_the_others(tmp_path: Path) -> None:
    (tmp_path / "n2").write_text("   State=IDLE x\n")
    code, output, updates = apply(tmp_path, made(node("n1"), verdict("n1", "fail"), node("n2"), verdict("n2", "fail", "slow")))
    assert (code, updates) == (1, ["<NodeName=n2><State=DRAIN><Reason=nodectl: failed: slow>"])
    assert "n1: Slurm does not know it" in output


def test_a_dry_run_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "n1").write_text("   State=IDLE x\n")
    code, output, updates = apply(tmp_path, made(node("n1"), verdict("n1", "fail", "slow")), "--dry-run")
    assert (code, updates) == (0, [])
    assert "scontrol update 'NodeName=n1' 'State=DRAIN' 'Reason=nodectl: failed: slow'" in output


def test_a_slurm_that_refuses_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "n1").write_text("   State=IDLE x\n")
    (tmp_path / "down").touch()
    assert apply(tmp_path, made(node("n1"), verdict("n1", "fail", "slow")))[0] == 1


@pytest.mark.parametrize("args", [["--help"], ["x"]])
def test_usage(args: list[str], tmp_path: Path) -> None:
    code, output, updates = apply(tmp_path, made(node("n1"), verdict("n1", "fail")), *args)
    assert (code, updates) == (2, [])
    assert "slurm/apply.sh --dry-run" in output


def test_without_scontrol_it_says_so(tmp_path: Path) -> None:
    (tmp_path / "apply.sh").write_text(made(node("n1"), verdict("n1", "fail")).files["slurm/apply.sh"])
    done = subprocess.run(["/bin/sh", str(tmp_path / "apply.sh")], capture_output=True, text=True, env={"PATH": str(tmp_path)})
    assert (done.returncode, "no scontrol here" in done.stderr) == (1, True)


@pytest.mark.parametrize("run_id", ["@CALLS@", "x\nrm -rf /", "$(id)", ""])
def test_the_name_of_a_run_stays_in_its_comment(run_id: str, tmp_path: Path) -> None:
    artefact = slurm(pool_of([Event("run.start", 0.0, "", {"run_id": run_id}), node("n1"), verdict("n1")]))
    assert all(line.startswith("#") for line in artefact.files["slurm/nodes.conf"].splitlines()[:4])
    assert [line for line in artefact.files["slurm/apply.sh"].splitlines() if line.startswith(("rm", "$"))] == []
    assert artefact.files["slurm/apply.sh"].count("resume n1") == 1


def named(host: str, **names: str) -> Event:
    return Event("target", 0.5, host, {"address": f"192.0.2.{host[1:]}", "slurm_node_name": "", "kubernetes_node_name": "", **names})


def test_the_inventorys_own_word_for_a_node_in_slurm_holds_everywhere() -> None:
    events = [named("n1", slurm_node_name="gpu-1"), named("n2", slurm_node_name="gpu-2"), node("n1", machine=machine("gpu-1")), verdict("n1"), verdict("n2", "fail", "slow")]
    artefact = made(*events)
    assert line_of(artefact, "gpu-1").startswith("NodeName=gpu-1 NodeAddr=192.0.2.1 CPUs=64 ")
    assert line_of(artefact, "gpu-2") == 'NodeName=gpu-2 NodeAddr=192.0.2.2 State=DRAIN Reason="nodectl: failed: slow"'
    assert artefact.files["slurm/gres.conf"].splitlines()[1].startswith("NodeName=gpu-1 ")
    assert "NodeSet=proven Nodes=gpu-1\n" in artefact.files["slurm/nodes.conf"]
    assert [line for line in artefact.files["slurm/apply.sh"].splitlines() if line.startswith(("drain ", "resume "))] == ["drain gpu-2 'nodectl: failed: slow'", "resume gpu-1"]


@pytest.mark.parametrize("word", ["ALL", "default", "a b", "x[1-9]", "-x", "x\nNodeName=y", "n" * 65])
def test_a_word_of_the_inventory_is_held_to_the_same_rules(word: str) -> None:
    artefact = made(named("n1", slurm_node_name=word), node("n1"), verdict("n1"), named("n2", slurm_node_name=word), verdict("n2", "fail"))
    assert set(artefact.refused) == {"n1", "n2"}
    assert not any(word in line.split("=")[-1] for text in artefact.files.values() for line in text.splitlines() if line.startswith(("NodeName", "NodeSet", "drain ", "resume ")))


def test_one_word_for_two_nodes_is_the_first_ones() -> None:
    artefact = made(named("n1", slurm_node_name="x"), named("n2", slurm_node_name="x"), node("n1"), verdict("n1"), node("n2"), verdict("n2"))
    assert artefact.refused == {"n2": "Slurm would know two nodes as x"}


def test_a_node_that_was_never_reached_is_drained_where_the_inventory_says_it_is() -> None:
    artefact = made(named("n1"), Event("host.unreachable", 1.0, "n1", {"reason": "no route"}))
    assert line_of(artefact, "n1") == 'NodeName=n1 NodeAddr=192.0.2.1 State=DRAIN Reason="nodectl: unreachable: no route"'


@pytest.mark.parametrize(("more", "cut"), [(-1, False), (0, False), (1, True)])
def test_only_what_is_too_long_is_cut(more: int, cut: bool) -> None:
    text = reason(Excluded("n1", "failed", ("x" * (REASON_MOST - len("nodectl: failed: ") + more),)))
    assert (len(text), text.endswith("...")) == (min(REASON_MOST, REASON_MOST + more), cut)


def test_gpus_of_amd_are_found_by_slurm_itself() -> None:
    """Their device files say nothing about which GPU they are."""
    artefact = made(node("n1", machine=machine("n1", sku="MI300X", gpu_model="AMD Instinct MI300X", gpu_files=[])), verdict("n1"))
    assert artefact.files["slurm/gres.conf"].splitlines()[1:] == ["NodeName=n1 AutoDetect=rsmi Name=gpu Type=mi300x"]
