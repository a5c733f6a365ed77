"""probe_nvme: NVMe controllers and their health logs, by nvme-cli or by the same command from Python. One that hangs stalls only its own question."""

from __future__ import annotations

import json
import os
import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Dict, List

from nodectl.agent import recorded
from nodectl.agent.contract import Args, Failed
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="NVMe controllers: model, firmware, state, and SMART health (wear, spare, temperature, media errors).",
    params={"timeout": Param("float", "seconds for each controller's health log", default=8.0), "root": recorded.PARAM},
    returns={
        "controllers": "per controller: name, model, serial, firmware, state, transport, pci, and from its health log (null where not had): "
        "warning (bits), temperature (C), spare and spare_threshold (%), used (% of its rated life), media_errors, error (why there is no health log)",
        "simulated": "whether a recorded tree was read",
    },
    example="- probe_nvme: {}\n",
)
_CLASS = "sys/class/nvme"
_KELVIN = 273
# Names of nvme-cli 1 and 2 and of the specification's own words.
_HEALTH = {
    "warning": ("critical_warning",), "spare": ("avail_spare", "available_spare"), "spare_threshold": ("spare_thresh", "available_spare_threshold"),
    "used": ("percent_used", "percentage_used"), "media_errors": ("media_errors",),
}
# Without nvme-cli: Get Log Page (opcode 2) of page 2 (SMART / Health), 512 bytes, for the whole controller; <linux/nvme_ioctl.h>.
_ASK = """\
import ctypes, fcntl, os, struct, sys
log = ctypes.create_string_buffer(512)
order = struct.pack('=BBHIIIQQIIIIIIIIII', 2, 0, 0, 0xFFFFFFFF, 0, 0, 0, ctypes.addressof(log), 0, 512, 0x007F0002, 0, 0, 0, 0, 0, 5000, 0)
device = os.open(sys.argv[1], os.O_RDONLY)
status = fcntl.ioctl(device, 0xC0484E41, bytearray(order))
sys.exit(f'the controller answered with status {status:#x}' if status else print(log.raw.hex()))
"""
_SIZE = 512
# Asked at the same time: eight hung controllers must not cost eight deadlines.
_TOGETHER = 32


def act(system: System, args: Args, check: bool) -> Outcome:
    tree = recorded.Tree(system, args["root"])
    names = [name for name in tree.names(_CLASS) if _ours(tree, name)]
    controllers: List[Dict[str, Any]] = []
    if names:
        with ThreadPoolExecutor(min(_TOGETHER, len(names)), thread_name_prefix="nvme") as pool:
            controllers = list(pool.map(lambda name: _controller(tree, name, args["timeout"]), names))
    return Outcome(values={"controllers": controllers, "simulated": tree.simulated})


def _ours(tree: recorded.Tree, name: str) -> bool:
    """A container sees the machine's controllers in sysfs, and has no device file of those that are not its own."""
    try:
        return tree.simulated or stat.S_ISCHR(os.stat(os.path.join("/dev", name)).st_mode)
    except OSError:
        return False


def _controller(tree: recorded.Tree, name: str, timeout: float) -> Dict[str, Any]:
    place = f"{_CLASS}/{name}"
    facts: Dict[str, Any] = {
        "name": name, "model": tree.text(f"{place}/model"), "serial": tree.text(f"{place}/serial"), "firmware": tree.text(f"{place}/firmware_rev"),
        "state": tree.text(f"{place}/state") or None, "transport": tree.text(f"{place}/transport"), "pci": tree.text(f"{place}/address"),
        **dict.fromkeys([*_HEALTH, "temperature"]), "error": "",
    }
    try:
        facts.update(_health(tree, os.path.join("/dev", name), timeout))
    except Failed as failed:
        facts["error"] = failed.msg
    return facts


def _health(tree: recorded.Tree, device: str, timeout: float) -> Dict[str, Any]:
    if tree.simulated or tree.program("nvme") is not None:
        return health(tree.run("nvme", ["smart-log", device, "-o", "json"], timeout).stdout)
    done = tree.system.run([sys.executable or "python3", "-I", "-S", "-c", _ASK, device], timeout=timeout)
    if done.rc != 0:
        raise Failed((done.stderr.strip().splitlines() or [f"exit code {done.rc}"])[-1])
    return log_page(bytes.fromhex(done.stdout.strip()))


def log_page(page: bytes) -> Dict[str, Any]:
    """The SMART / Health log page as the specification lays it out. Raises Failed for one of another length."""
    if len(page) != _SIZE:
        raise Failed(f"the health log has {len(page)} bytes, not {_SIZE}")
    return {
        "warning": float(page[0]), "temperature": float(int.from_bytes(page[1:3], "little") - _KELVIN), "spare": float(page[3]),
        "spare_threshold": float(page[4]), "used": float(page[5]), "media_errors": float(int.from_bytes(page[160:176], "little")),
    }


def health(text: str) -> Dict[str, Any]:
    """The health log as nvme-cli prints it. Raises Failed for what is none."""
    try:
        said = json.loads(text[text.index("{") :])
    except ValueError:
        raise Failed("nvme smart-log gave no JSON") from None
    if not isinstance(said, dict):
        raise Failed("nvme smart-log gave no mapping")
    found = {key: _figure(next((said[name] for name in names if name in said), None)) for key, names in _HEALTH.items()}
    kelvin = _figure(said.get("temperature"))
    return dict(found, temperature=None if kelvin is None else kelvin - _KELVIN)


def _figure(value: Any) -> "float | None":
    """A number, also where it is written as text (128-bit counters) or explained bit by bit (-v)."""
    if isinstance(value, dict):
        value = value.get("value")
    try:
        return None if isinstance(value, bool) or value is None else float(value)
    except (TypeError, ValueError):
        return None
