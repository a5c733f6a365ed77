"""What do scanners say before and after the role hardening? `python -m bench.hardening --lab DIR [--host n1] [--write]`.

A lab host on its first day is scanned, hardened by playbooks/hardening.yml, and scanned again; then the profile is taken back and applied once more,
now that its packages are there. Lynis comes from Debian onto the host; ssh-audit runs here (`pip install ssh-audit`).

Node view: a lab host's /proc/sys is read-only, so lynis sees a copy of it in a mount namespace of its own, with the values that a boot would set from
the sysctl.d files, and Debian's own ones for keys that this kernel lacks.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from bench.lab_group import lab_at
from bench.marked import written
from nodectl.lab import hosts, lifecycle
from nodectl.lab.plan import LAB_USER
from nodectl.lab.state import LabState
from nodectl.shipped import shipped

BEGIN, END = "<!-- bench/hardening.py -->\n", "<!-- end of bench/hardening.py -->\n"
PAGE = Path(__file__).parents[1] / "docs" / "hardening.md"
# apt over a slow line, and lynis on a busy machine: ten times what they take here.
BOUND_S = 900.0
# At so many sshd's stock MaxStartups refused 11 (rule sshd-fan-in of the role).
LOGINS = 40
# What is ours and runs as a service of its own on a hardened node.
UNIT = "nodectl-aide.service"

LYNIS = r"""
import glob, os, shutil, subprocess
COPY = "/run/nodectl-sysctl"
STOCK = {"kernel/yama/ptrace_scope": "0", "kernel/sysrq": "438", "kernel/perf_event_paranoid": "3", "kernel/unprivileged_bpf_disabled": "2"}
shutil.rmtree(COPY, ignore_errors=True)
subprocess.run(["cp", "-r", "/proc/sys", COPY], stderr=subprocess.DEVNULL)
values = {key: value for key, value in STOCK.items() if not os.path.exists(COPY + "/" + key)}
files = {os.path.basename(path): path for folder in ("/usr/lib", "/run", "/etc") for path in glob.glob(folder + "/sysctl.d/*.conf")}
for path in [files[name] for name in sorted(files)] + ["/etc/sysctl.conf"]:
    for line in open(path).read().splitlines() if os.path.exists(path) else []:
        key, equals, value = line.strip().lstrip("-").partition("=")
        if equals and not key.startswith(("#", ";")) and "*" not in key:
            values[key.strip().replace(".", "/") if "/" not in key else key.strip()] = value.strip()
for key, value in values.items():
    os.makedirs(os.path.dirname(COPY + "/" + key), exist_ok=True)
    open(COPY + "/" + key, "w").write(value + "\n")
subprocess.run(["mount", "--bind", COPY, "/proc/sys"], check=True)
subprocess.run(["lynis", "audit", "system", "--quick", "--no-colors", "--quiet", "--report-file", "/run/lynis.dat"], stdout=subprocess.DEVNULL)
report = open("/run/lynis.dat").read().splitlines()
index = [line.partition("=")[2] for line in report if line.startswith("hardening_index=")]
print(index[0] if index else "none", *(sum(line.startswith(kind) for line in report) for kind in ("warning[]", "suggestion[]")))
"""


@dataclass(frozen=True)
class Scanned:
    """``lynis``: index, warnings, suggestions. ``ssh``: ssh-audit's marks of failure and of warning."""

    lynis: str
    ssh: tuple[int, int]
    sshd_exposure: str


@dataclass(frozen=True)
class Played:
    seconds: float
    changed: int


def inside(state: LabState, host: str, *argv: str) -> str:
    done = hosts.inside(state, host, argv, BOUND_S)
    if done.returncode:
        raise SystemExit(f"{host}: {argv[0]} ended with {done.returncode}: {done.stderr[-1000:]}")
    return done.stdout


def scan(state: LabState, host: str) -> Scanned:
    lynis = inside(state, host, "unshare", "--mount", "python3", "-c", LYNIS).split()[-3:]
    return Scanned(" / ".join(lynis), ssh_marks(state, host), exposure(state, host, "ssh.service"))


def ssh_marks(state: LabState, host: str) -> tuple[int, int]:
    done = subprocess.run(["ssh-audit", "-n", state.host(host).address], capture_output=True, text=True, timeout=60)
    found = re.findall(r"\[(fail|warn)\]", done.stdout)
    if "(gen)" not in done.stdout:
        raise SystemExit(f"ssh-audit said nothing: {done.stdout}{done.stderr}")
    return found.count("fail"), found.count("warn")


def exposure(state: LabState, host: str, unit: str) -> str:
    said = hosts.inside(state, host, ("systemd-analyze", "security", "--no-pager", unit), 60.0).stdout
    found = re.search(r"exposure level for \S+: ([0-9.]+)", said)
    return found[1] if found else "none"


def play(state: LabState, host: str, *words: str) -> Played:
    with tempfile.TemporaryDirectory(prefix="nodectl-hardening-") as folder:
        argv = [sys.executable, "-m", "nodectl", "run", str(shipped("playbooks") / "hardening.yml"), "-i", str(state.hosts_yaml), "--limit", host]
        done = subprocess.run([*argv, "--run-dir", f"{folder}/run", *words], capture_output=True, text=True, timeout=BOUND_S)
        if done.returncode:
            raise SystemExit(f"hardening {' '.join(words)} ended with {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-1000:]}")
        report = json.loads(Path(folder, "run/report.json").read_text())
        events = [json.loads(line) for line in Path(folder, "run/events.jsonl").read_text().splitlines()]
    return Played(float(events[-1]["seconds"]), report["hosts"][host]["stats"]["changed"])


def refused(state: LabState, host: str) -> int:
    """Of LOGINS logins at the same time."""
    options = ["-F", "none", "-i", str(state.key), "-o", f"UserKnownHostsFile={state.known_hosts}", "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes"]
    argv = ["ssh", *options, f"{LAB_USER}@{state.host(host).address}", "true"]
    with ThreadPoolExecutor(LOGINS) as threads:
        codes = list(threads.map(lambda _: subprocess.run(argv, capture_output=True, timeout=120).returncode, range(LOGINS)))
    return sum(code != 0 for code in codes)


def measure(state: LabState, host: str) -> list[str]:
    inside(state, host, "sh", "-c", "apt-get -q update && DEBIAN_FRONTEND=noninteractive apt-get -q -y install --no-install-recommends lynis linux-base")
    before = scan(state, host)
    first, second = play(state, host), play(state, host)
    after, lost, own = scan(state, host), refused(state, host), exposure(state, host, UNIT)
    back = play(state, host, "--tags", "revert")
    restored = ssh_marks(state, host)
    again = play(state, host)
    rows = [
        ("Lynis: index / warnings / suggestions (node view)", before.lynis, after.lynis, ">= 84, <= 21 suggestions"),
        ("ssh-audit: fail / warn", "{} / {}".format(*before.ssh), "{} / {}".format(*after.ssh), "0 / <= 2"),
        ("`systemd-analyze security`: ssh.service", before.sshd_exposure, after.sshd_exposure, "no goal: sshd starts everybody's processes"),
        (f"`systemd-analyze security`: {UNIT}", "", own, "<= 4.0"),
        (f"refused of {LOGINS} logins at the same time", "", str(lost), "0"),
        ("first run, packages included", "", f"{first.seconds:.1f} s, {first.changed} changes", ""),
        ("second run", "", f"{second.seconds:.1f} s, {second.changed} changes", "0 changes"),
        ("taken back by `--tags revert`; ssh-audit after it", "", f"{back.seconds:.1f} s; {restored[0]} / {restored[1]}", "as before"),
        ("applied once more, packages at hand", "", f"{again.seconds:.1f} s", "< 20 s"),
    ]
    return ["| yardstick | first day | hardened | goal |", "| --- | --- | --- | --- |", *(f"| {' | '.join(row)} |" for row in rows)]


def main() -> int:
    parser = argparse.ArgumentParser(description="What scanners say before and after the role hardening.")
    parser.add_argument("--lab", type=Path, required=True, help="folder of a lab that is up; the host is put back to its first day before and after")
    parser.add_argument("--host", default="n1")
    parser.add_argument("--write", action="store_true", help="put the table into docs/hardening.md")
    chosen = parser.parse_args()
    state = lifecycle.reset(lab_at(chosen.lab), (chosen.host,))
    try:
        lines = measure(state, chosen.host)
    finally:
        lifecycle.reset(state, (chosen.host,))
    print("\n".join(lines))
    if chosen.write:
        PAGE.write_text(written(PAGE.read_text("utf-8"), BEGIN, END, "\n".join(lines) + "\n"), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
