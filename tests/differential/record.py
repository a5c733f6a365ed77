"""Ask ansible-core again: `python -m tests.differential.record --lab DIR [--ansible PROGRAM] [MODULE ...]`.

DIR is a running lab of which the last host is taken (put back to its first day before and after). PROGRAM is an ansible-playbook of an
environment that has the PyPI package `ansible` beside ansible-core, which carries community.general and ansible.posix; without it only the
modules of ansible-core itself can be asked. Without MODULE all modules are recorded.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from nodectl.lab.state import load
from tests.conftest import Lab
from tests.differential import recorded
from tests.differential.case_files import Case, cases
from tests.differential.twins import by_ansible, prepare

# A third of a second per task on a free core, and several thousand tasks when everything is recorded.
DEADLINE_S = 7200.0


def versions(program: str) -> dict[str, str]:
    """ansible-core's version, and those of the collections that the modules may come from."""
    first = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
    found = {"ansible-core": first.split()[-1].rstrip("]")}
    galaxy = Path(program).with_name("ansible-galaxy")
    listed = subprocess.run([str(galaxy), "collection", "list", "--format", "json"], capture_output=True, text=True).stdout or "{}"
    for folder in json.loads(listed).values():
        found.update({name: about["version"] for name, about in folder.items() if name in ("ansible.posix", "community.general", "community.crypto")})
    return found


def record(lab: Lab, program: str, chosen: list[Case]) -> None:
    host = lab.names[-1]
    lab.reset(host)
    prepare(lab, host, chosen)
    with tempfile.TemporaryDirectory() as folder:
        side = by_ansible(lab, host, chosen, Path(folder) / "ansible", DEADLINE_S, program, pictures=True)
    by = versions(program)
    for module in dict.fromkeys(case.module for case in chosen):
        recorded.save(module, [case for case in chosen if case.module == module], side, by)
    lab.reset(host)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lab", type=Path, required=True)
    parser.add_argument("--ansible", default=str(Path(sys.executable).with_name("ansible-playbook")))
    parser.add_argument("modules", nargs="*")
    given = parser.parse_args()
    state = load(given.lab)
    if state is None:
        parser.error(f"{given.lab}: no lab is there")
    record(Lab(state), given.ansible, [case for case in cases() if not given.modules or case.module in given.modules])


if __name__ == "__main__":
    main()
