"""probe_nvme: NVMe controllers from sysfs, and their health log by nvme-cli. A controller that does not answer stalls nobody but its own question."""

from __future__ import annotations

import json
import os
import stat
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
        facts.update(health(tree.run("nvme", ["smart-log", os.path.join("/dev", name), "-o", "json"], timeout).stdout))
    except Failed as failed:
        facts["error"] = failed.msg
    return facts


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
