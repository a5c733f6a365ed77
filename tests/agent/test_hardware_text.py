"""What the parsers of GPUs, kernel log, PCI settings and disk health make of recorded and of hostile texts."""

from __future__ import annotations

import contextlib
import re
import struct
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodectl.agent import kernel_lines, nvidia_smi, pci_config, recorded
from nodectl.agent.contract import Failed
from nodectl.agent.probes import probe_nvme
from nodectl.agent.system import System
from nodectl.lab.hardware import config

CASES = Path(__file__).with_name("cases_hardware")


def cases(kind: str) -> list[Any]:
    return [pytest.param(tomllib.loads(path.read_text()), id=path.stem) for path in sorted((CASES / kind).glob("*.toml"))]


# -- nvidia-smi


@pytest.mark.parametrize("case", cases("nvidia_smi"))
def test_reports_of_nvidia_smi(case: dict[str, Any]) -> None:
    report = nvidia_smi.parse(case["xml"].strip())
    assert report["driver"] == case["driver"]
    assert len(report["gpus"]) == len(case["gpu"])
    for found, expected in zip(report["gpus"], case["gpu"], strict=True):
        assert {key: found[key] for key in expected if key != "absent"} == {key: value for key, value in expected.items() if key != "absent"}
        assert {key: found[key] for key in expected["absent"]} == dict.fromkeys(expected["absent"])


@pytest.mark.parametrize(("xml", "words"), [
    ("", "not XML"), ("Unable to determine the device handle", "not XML"), ("<nvidia_smi_log><gpu>", "not XML"), ("<html></html>", "begins with html"),
    ('<!DOCTYPE x [<!ENTITY a "aaaa">]><nvidia_smi_log>&a;</nvidia_smi_log>', "declares entities"),
])
def test_what_is_no_report(xml: str, words: str) -> None:
    with pytest.raises(Failed) as failed:
        nvidia_smi.parse(xml)
    assert words in failed.value.msg


def test_a_report_without_gpus() -> None:
    assert nvidia_smi.parse("<nvidia_smi_log/>") == {"driver": "", "gpus": []}


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    for xml in (text, f"<nvidia_smi_log><gpu><product_name>{text}</product_name></gpu></nvidia_smi_log>"):
        with contextlib.suppress(Failed):
            assert "gpus" in nvidia_smi.parse(xml)
    assert isinstance(nvidia_smi.nvlinks(text), dict)


LINKS = """GPU 0: NVIDIA H100 PCIe (UUID: GPU-a1bf2ff6)
\t Link 0: 26.562 GB/s
\t Link 1: <inactive>
\t Link 2: 26.562 GB/s
GPU 1: NVIDIA H100 PCIe (UUID: GPU-b)
Unable to retrieve NVLink information as all links are inActive
GPU 2: NVIDIA H100 PCIe (UUID: GPU-c)
\t Link 0: N/A
"""


def test_nvlinks_are_counted_per_gpu() -> None:
    assert nvidia_smi.nvlinks(LINKS) == {0: {"up": 2, "listed": 3}, 2: {"up": 0, "listed": 1}}


# -- the kernel's log


@pytest.mark.parametrize("case", cases("kernel_log"))
def test_kernel_logs(case: dict[str, Any]) -> None:
    events = kernel_lines.parse(case["log"], case.get("booted", 0.0))
    assert [event["kind"] for event in events] == [event["kind"] for event in case["event"]]
    for found, expected in zip(events, case["event"], strict=True):
        shown = {key: found[key] for key in expected}
        assert shown == {key: pytest.approx(value) if key == "at" else value for key, value in expected.items()}


def test_every_line_that_is_read_is_also_let_through_by_grep() -> None:
    """What grep leaves out, the parser never sees."""
    worth = re.compile(kernel_lines.WORTH)
    for case in cases("kernel_log"):
        for line in case.values[0]["log"].splitlines():
            assert worth.search(line) or not kernel_lines.parse(line), line


def test_a_code_that_is_no_number_of_ours_is_no_code() -> None:
    assert kernel_lines.parse("NVRM: Xid (PCI:0000:01:00): " + "9" * 5000 + ", x") == []


@given(st.text(max_size=300))
def test_any_log_is_read(text: str) -> None:
    for event in kernel_lines.parse(text + "\nNVRM: Xid (PCI:0000:01:00): 79, " + text):
        assert event["kind"] in ("xid", "sxid", "link_down")


# -- PCI configuration space


def test_settings_of_an_endpoint_and_a_bridge() -> None:
    found = pci_config.decode(config(max_read_request=512, relaxed=False))
    assert (found.alive, found.whole, found.bridge, found.max_read_request, found.relaxed_ordering, found.acs) == (True, True, False, 512, False, None)
    found = pci_config.decode(config(bridge=True, acs=0x001D))
    assert (found.bridge, found.acs) == (True, ("SrcValid", "ReqRedir", "CmpltRedir", "UpstreamFwd"))
    assert pci_config.redirecting(found) == ["ReqRedir", "CmpltRedir"]


@pytest.mark.parametrize(("control", "harm"), [(0x00, []), (0x01, []), (0x04, ["ReqRedir"]), (0x08, ["CmpltRedir"]), (0x20, ["EgressCtrl"]), (0x53, [])])
def test_only_redirects_do_harm(control: int, harm: list[str]) -> None:
    """D92: source validation alone is no redirect."""
    assert pci_config.redirecting(pci_config.decode(config(bridge=True, acs=control))) == harm


def test_what_only_root_reads_is_not_known() -> None:
    found = pci_config.decode(config()[:64])
    assert (found.alive, found.whole, found.max_read_request, found.acs) == (True, False, None, None)


@pytest.mark.parametrize("data", [b"", b"\xff" * 64, b"\xff" * 4096, b"\x86\x80"])
def test_a_device_that_does_not_answer(data: bytes) -> None:
    assert pci_config.decode(data).alive is False


def test_chains_that_lead_in_circles_end() -> None:
    data = bytearray(config())
    data[0x61] = 0x60  # the first capability names itself as the next
    struct.pack_into("<I", data, 0x100, 0x10010001)  # and so does the first extended one
    found = pci_config.decode(bytes(data))
    assert (found.max_read_request, found.acs) == (4096, None)


@given(st.binary(min_size=64, max_size=4096))
def test_any_configuration_space_is_read(data: bytes) -> None:
    found = pci_config.decode(data)
    assert found.max_read_request in (None, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)


# -- NVMe


@pytest.mark.parametrize("case", cases("smart"))
def test_health_logs(case: dict[str, Any]) -> None:
    assert probe_nvme.health(case["text"]) == {key: value for key, value in case.items() if key != "text"}


def test_a_health_log_that_says_little() -> None:
    found = probe_nvme.health('{"temperature": "warm", "percent_used": true}')
    assert found == {"warning": None, "temperature": None, "spare": None, "spare_threshold": None, "used": None, "media_errors": None}


@pytest.mark.parametrize("text", ["", "no such device", "[1, 2]", '{"a": ', "nvme: {"])
def test_what_is_no_health_log(text: str) -> None:
    with pytest.raises(Failed):
        probe_nvme.health(text)


def test_a_health_log_from_the_device_itself() -> None:
    page = bytearray(512)
    page[0], page[1:3], page[3], page[4], page[5] = 4, (350).to_bytes(2, "little"), 7, 10, 110
    page[160:176] = (3).to_bytes(16, "little")
    assert probe_nvme.log_page(bytes(page)) == {"warning": 4.0, "temperature": 77.0, "spare": 7.0, "spare_threshold": 10.0, "used": 110.0, "media_errors": 3.0}
    with pytest.raises(Failed, match="511 bytes"):
        probe_nvme.log_page(bytes(511))


def test_the_order_to_the_device_has_the_kernels_size() -> None:
    """struct nvme_admin_cmd is 72 bytes, and its size is part of the ioctl's number."""
    layout = re.search(r"struct.pack\('([^']+)'", probe_nvme._ASK)
    assert layout
    assert struct.calcsize(layout.group(1)) == 72 == 0xC0484E41 >> 16 & 0x3FFF


def test_a_device_that_is_none_of_nvme_says_why(system: System) -> None:
    done = system.run([sys.executable, "-I", "-S", "-c", probe_nvme._ASK, "/dev/null"], timeout=20)
    assert done.rc != 0
    assert "Inappropriate ioctl" in done.stderr


# -- a recorded tree


def test_a_recorded_tree_shows_nothing_of_the_machine(tmp_path: Path, system: System) -> None:
    tree = recorded.Tree(system, str(tmp_path))
    assert tree.simulated
    assert not recorded.Tree(system, "/").simulated
    assert tree.program("sh") is None
    assert (tree.text("proc/uptime"), tree.number("proc/uptime"), tree.names("sys"), tree.linked("sys/x")) == ("", None, [], "")
    with pytest.raises(Failed, match="sh is not installed"):
        tree.run("sh", ["-c", "true"], 5)


@pytest.mark.parametrize(("script", "words"), [("exit 3", "failed with exit code 3: it said nothing"), ("echo out; echo why >&2; exit 1", "exit code 1: out why"), ("sleep 60", "did not end within 0.2 s")])
def test_a_program_of_the_tree_that_fails(tmp_path: Path, system: System, script: str, words: str) -> None:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "tool"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    with pytest.raises(Failed) as failed:
        recorded.Tree(system, str(tmp_path)).run("tool", [], 0.2 if "sleep" in script else 20)
    assert words in failed.value.msg


@pytest.mark.parametrize(("text", "number"), [("8", 8), ("0x1f", 31), ("-1", -1), ("", None), ("8 lanes", None), ("0b", None)])
def test_whole_numbers(text: str, number: int | None) -> None:
    assert recorded.whole(text) == number
