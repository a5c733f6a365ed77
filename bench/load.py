"""How long reading and checking a large playbook takes: `python -m bench.load [--roles 200] [--tasks 10000] [--profile]`.

It writes a playbook with that many roles and tasks and an inventory of 1000 hosts into a temporary folder, and does what
`nodectl check` does with it. What counts is CPU time: it does not depend on what else the machine is doing.
The aim is 5 s for 200 roles and 10,000 tasks: the largest site that its authors have seen has half of that, and five seconds
is what a person waits for an answer without turning away.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import sys
import tempfile
import time
from pathlib import Path

from nodectl.cli.loading import load
from nodectl.diagnostics.model import Collector
from nodectl.engine.options import Options

AIM = 5.0
HOSTS = 1000


def task(role: int, number: int) -> str:
    """Tasks as roles have them: names with templates, conditions, loops, notifications, blocks, free text."""
    kinds = [
        f"- name: Package {number} of {{{{ role_name }}}}\n  apt: {{name: \"{{{{ r{role}_packages }}}}\", state: present}}\n  when: r{role}_on | bool\n",
        f"- name: Folder {number}\n  file:\n    path: /etc/r{role}/{number}\n    state: directory\n    mode: \"0755\"\n    owner: root\n  notify: restart r{role}\n",
        f"- name: Setting {number}\n  lineinfile: {{path: /etc/r{role}.conf, regexp: '^k{number}=', line: \"k{number}={{{{ r{role}_values.v{number} | default(0) }}}}\"}}\n",
        f"- name: Ask {number}\n  command: systemctl is-active r{role}-{number}\n  register: r{role}_{number}\n  changed_when: false\n  failed_when: r{role}_{number}.rc > 3\n",
        f"- name: Each {number}\n  sysctl: {{name: \"{{{{ item.key }}}}\", value: \"{{{{ item.value }}}}\"}}\n  loop: \"{{{{ r{role}_sysctl | dict2items }}}}\"\n  tags: [r{role}, sysctl]\n",
    ]
    return kinds[number % len(kinds)]


def write_role(folder: Path, role: int, tasks: int) -> None:
    files = {
        "tasks/main.yml": "".join(task(role, number) for number in range(tasks)),
        "handlers/main.yml": f"- name: restart r{role}\n  systemd: {{name: r{role}, state: restarted}}\n",
        "defaults/main.yml": f"r{role}_on: true\nr{role}_packages: [a, b]\nr{role}_values: {{v1: 1}}\nr{role}_sysctl: {{vm.swappiness: 1}}\n",
        "meta/argument_specs.yml": f"argument_specs:\n  main:\n    options:\n      r{role}_on: {{type: bool}}\n      r{role}_packages: {{type: list, elements: str}}\n",
    }
    for name, text in files.items():
        path = folder / "roles" / f"r{role}" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def write(folder: Path, roles: int, tasks: int) -> int:
    """The number of tasks written."""
    each = max(1, tasks // roles)
    for role in range(roles):
        write_role(folder, role, each)
    listed = "".join(f"    - {{role: r{role}, r{role}_on: true}}\n" for role in range(roles))
    (folder / "site.yml").write_text(f"- hosts: gpu\n  roles:\n{listed}")
    (folder / "hosts.yaml").write_text(f"gpu:\n  hosts:\n    gpu-[0001:{HOSTS:04}]: {{rack: r1}}\n  vars: {{a: 1, b: '{{{{ a }}}}'}}\n")
    return roles * each


def measure(folder: Path) -> float:
    """CPU seconds. Ends the program where the playbook turns out to be wrong: a figure for half a load would mean nothing."""
    start = time.process_time()
    found = Collector()
    load([str(folder / "hosts.yaml")], folder / "site.yml", Options(), found)
    seconds = time.process_time() - start
    if found.errors:
        sys.exit(f"the playbook is wrong: {found.errors[0].origin}: {found.errors[0].message}")
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--roles", type=int, default=200)
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--profile", action="store_true", help="show where the time goes")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tasks = write(folder, given.roles, given.tasks)
        profile = cProfile.Profile()
        if given.profile:
            seconds = profile.runcall(measure, folder)
            pstats.Stats(profile).sort_stats("cumulative").print_stats(30)
        else:
            seconds = measure(folder)
    print(f"{given.roles} roles, {tasks} tasks, {HOSTS} hosts: {seconds:.2f} s CPU, {1e6 * seconds / tasks:.0f} us a task; the aim for 200 and 10000 is {AIM:g} s")


if __name__ == "__main__":
    main()
