"""service_facts: services and their states as the fact `services`."""

from __future__ import annotations

from typing import Dict, List

from nodectl.agent import units
from nodectl.agent.contract import Args, Failed
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Spec

SPEC = Spec(
    summary="Gather the services of systemd: ansible_facts.services maps a unit to its state and whether it starts at boot.",
    params={},
    returns={"ansible_facts": "services: name → {name, state, status, source}"},
    example="- service_facts:\n- assert:\n    that: ansible_facts.services['chrony.service'].state == 'running'\n",
)
# States in which the unit file's own state says nothing.
_BAD = ("not-found", "masked", "failed")


def parse(listed: str, files: str) -> Dict[str, Dict[str, str]]:
    """`systemctl list-units --all` and `list-unit-files`, both of services without legend, as one table. "" is a state still to be asked."""
    found: Dict[str, Dict[str, str]] = {}
    for words in _rows(listed, 4):
        bad = next((word for word in _BAD if word in words[:-1]), "")
        found[words[0]] = {"name": words[0], "state": "running" if words[3] == "running" else "stopped", "status": bad or words[2], "source": "systemd"}
    for words in _rows(files, 2):
        entry = found.setdefault(words[0], {"name": words[0], "state": "", "status": "", "source": "systemd"})
        entry["status"] = entry["status"] if entry["status"] in _BAD else words[1]
    return found


def _rows(text: str, least: int) -> List[List[str]]:
    rows = (line.replace("\u25cf", " ").split() for line in text.splitlines())
    return [words for words in rows if len(words) >= least and words[0].endswith(".service")]


def act(system: System, args: Args, check: bool) -> Outcome:
    texts: List[str] = []
    for words in (["list-units", "--all"], ["list-unit-files"]):
        done = units.systemctl(system, [*words, "--no-pager", "--no-legend", "--plain", "--type", "service"], units.QUERY_SECONDS)
        if done.rc != 0:
            raise Failed(f"systemctl {words[0]}: {done.stderr.strip() or 'no answer'} (is systemd the first process of this node?)", rc=done.rc)
        texts.append(done.stdout)
    services = parse(*texts)
    for name, state in _active(system, [name for name, entry in services.items() if not entry["state"]]).items():
        services[name]["state"] = state
    return Outcome(facts={"services": services})


def _active(system: System, names: List[str]) -> Dict[str, str]:
    """The state of units that are not loaded, asked for all at once; a template has none."""
    plain = [name for name in names if not name.endswith("@.service")]
    done = units.systemctl(system, ["show", "--property=ActiveState", *plain], units.QUERY_SECONDS) if plain else None
    told = iter([line.partition("=")[2] for line in done.stdout.splitlines() if "=" in line] if done else [])
    return {name: next(told, "unknown") if name in plain else "unknown" for name in names}
