"""How long reading and checking a large playbook takes: `python -m bench.load [--roles 200] [--tasks 10000] [--profile]`.

It writes a playbook with that many roles and tasks and an inventory of 1000 hosts into a temporary folder, and does what
`nodectl check` does with it. What counts is CPU time: it does not depend on what else the machine is doing.
The aim is 5 s and 500 MB for 200 roles and 10,000 tasks: the largest site that its authors have seen has half of that, and five seconds
is what a person waits for an answer without turning away.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import resource
import sys
import tempfile
import time
from pathlib import Path

from nodectl.cli.loading import load
from nodectl.diagnostics.model import Collector
from nodectl.engine.options import Options

AIM = 5.0
AIM_MB = 500
HOSTS = 1000


# Tasks as roles have them: names with templates, conditions, loops, notifications, free text. R is the role's number, N the task's.
KINDS = (
    """- name: Package N of {{ role_name }}
  apt: {name: "{{ rR_packages }}", state: present}
  when: rR_on | bool
""",
    """- name: Folder N
  file:
    path: /etc/rR/N
    state: directory
    mode: "0755"
    owner: root
  notify: restart rR
""",
    """- name: Setting N
  lineinfile: {path: /etc/rR.conf, regexp: '^kN=', line: "kN={{ rR_values.vN | default(0) }}"}
""",
    """- name: Ask N
  command: systemctl is-active rR-N
  register: rR_N
  changed_when: false
  failed_when: rR_N.rc > 3
""",
    """- name: Each N
  sysctl: {name: "{{ item.key }}", value: "{{ item.value }}"}
  loop: "{{ rR_sysctl | dict2items }}"
  tags: [rR, sysctl]
""",
)
DEFAULTS = "rR_on: true\nrR_packages: [a, b]\nrR_values: {v1: 1}\nrR_sysctl: {vm.swappiness: 1}\n"
SPECS = "argument_specs: {main: {options: {rR_on: {type: bool}, rR_packages: {type: list, elements: str}}}}\n"


def task(role: int, number: int) -> str:
    return KINDS[number % len(KINDS)].replace("rR", f"r{role}").replace("N", str(number))


def write_role(folder: Path, role: int, tasks: int) -> None:
    files = {
        "tasks/main.yml": "".join(task(role, number) for number in range(tasks)),
        "handlers/main.yml": f"- name: restart r{role}\n  systemd: {{name: r{role}, state: restarted}}\n",
        "defaults/main.yml": DEFAULTS.replace("rR", f"r{role}"),
        "meta/argument_specs.yml": SPECS.replace("rR", f"r{role}"),
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


def peak() -> float:
    """The most memory that this process has held, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


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
    each = 1e6 * seconds / tasks
    print(f"{given.roles} roles, {tasks} tasks, {HOSTS} hosts: {seconds:.2f} s CPU, {each:.0f} us a task, {peak():.0f} MB at most")
    print(f"the aim for 200 roles and 10000 tasks is {AIM:g} s and {AIM_MB} MB")


if __name__ == "__main__":
    main()
