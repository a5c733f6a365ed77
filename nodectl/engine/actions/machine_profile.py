"""machine_profile: which kind of machine this is (of the same profiles that the verification judges by), and what such a machine has."""

from __future__ import annotations

from nodectl.engine.actions.contract import ActionFailed, Args, Context
from nodectl.verify.node.profiles import ProfileError, load_profiles, profile_for
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Choose the machine's profile by its GPUs, or by name, and set what such a machine has as a fact",
    params={
        "name": Param("str", "The profile by name (node_profile of hosts.yaml); empty = by the GPUs.", default=""),
        "gpu_names": Param("list", "Product names as the driver gives them.", default=[]),
        "pci_ids": Param("list", "PCI device ids (2330) of the GPUs: they are known before there is a driver.", default=[]),
        "bare_metal": Param("bool", "A guest may see a part of the machine only, so figures of the whole board are left out there.", default=True),
    },
    returns={
        "ansible_facts": "nodectl_profile: name (empty where none fits), summary, its figures (gpus, nvlinks, hcas, hca_rate_gbps, nvme, imex …)",
    },
    example="- machine_profile: {pci_ids: ['2330']}\n",
)
# Bytes per second in a profile, Gb/s on a port.
GBPS = 8 / 1e9


def run(context: Context, args: Args) -> Outcome:
    """Pure: nothing is asked of the node. Raises ActionFailed for a name that nobody knows."""
    try:
        profile = profile_for(load_profiles(), args["name"], args["gpu_names"], args["pci_ids"])
    except ProfileError as error:
        raise ActionFailed(str(error)) from None
    facts: dict[str, object] = {"name": profile.name, "summary": profile.summary}
    for key in profile.entries:
        entry = profile.entry(key, args["bare_metal"])
        if entry is not None:
            facts.update({"hca_rate_gbps": entry.value * GBPS} if key == "hca_rate" else {key: _plain(entry.value)})
    return Outcome(msg=profile.name or "no profile fits", facts={"nodectl_profile": facts}, values={"profile": profile.name})


def _plain(value: float | bool) -> int | bool:
    return value if isinstance(value, bool) else int(value)
