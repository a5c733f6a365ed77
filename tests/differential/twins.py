"""Two hosts that are the same but for their names: Ansible works on the first, nodectl on the second, each with one process for all cases."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.conftest import Lab
from tests.differential.case_files import FOLDER, Case, playbook

# Ansible takes about 150 s on two free cores (a third of a second for each task); a busy machine may need several times that.
DEADLINE_S = 600.0
# What Ansible's apt module needs on the node is there on both, so that it is no difference.
_BACKUP = re.compile(r"\.\d+\.\d{4}-\d\d-\d\d@\d\d:\d\d:\d\d~")
READY = "apt-get -q update && DEBIAN_FRONTEND=noninteractive apt-get -q -y install python3-apt"


@dataclass
class Told:
    """What one side says of one task."""

    status: str
    result: dict[str, Any]
    diff: list[dict[str, Any]] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        return self.status in ("failed", "ignored")


@dataclass
class Side:
    """One of the two hosts after all cases. ``told`` is by the task's name; ``output`` is what the tool printed."""

    host: str
    told: dict[str, Told]
    state: dict[str, Any]
    output: str
    seconds: float


@dataclass
class Twins:
    ansible: Side
    nodectl: Side


def run(lab: Lab, chosen: list[Case], folder: Path) -> Twins:
    """Prepare both hosts, run all cases on both at the same time, and look at what is there afterwards."""
    theirs, ours = lab.names[:2]
    for host in (theirs, ours):
        _prepare(lab, host, chosen)
    started = [_start_ansible(lab, theirs, chosen, folder / "ansible"), _start_nodectl(lab, ours, [case for case in chosen if not case.refused], folder / "nodectl")]
    seconds = _wait(started)
    return Twins(
        Side(theirs, _told_by_ansible(folder / "ansible" / "results.jsonl"), _state(lab, theirs), (folder / "ansible" / "output.txt").read_text(), seconds[0]),
        Side(ours, _told_by_nodectl(folder / "nodectl" / "run" / "events.jsonl"), _state(lab, ours), (folder / "nodectl" / "output.txt").read_text(), seconds[1]),
    )


def _prepare(lab: Lab, host: str, chosen: list[Case]) -> None:
    lines = ["set -e", f"( {READY} ) >/dev/null"]
    for case in chosen:
        lines.append(f"mkdir -p {case.root}")
        if case.data.get("prepare"):
            body = "\n".join(case.data["prepare"])
            lines.append(f"( cd {case.root}; export root={case.root}\n{body}\n) || {{ echo {shlex.quote(case.id)}: prepare failed >&2; exit 1; }}")
    done = lab.inside(host, "bash", "-c", "\n".join(lines), timeout=120)
    assert done.returncode == 0, f"{host} could not be prepared: {done.stderr[-2000:]}"


def _write(folder: Path, chosen: list[Case]) -> None:
    folder.mkdir()
    (folder / "site.yml").write_text(playbook(chosen), "utf-8")
    for case in chosen:
        for name, text in case.data.get("controller", {}).items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")


def _start_ansible(lab: Lab, host: str, chosen: list[Case], folder: Path) -> subprocess.Popen[bytes]:
    _write(folder, chosen)
    # The control socket's path must be shorter than 108 characters, so it cannot lie in a test's folder.
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(folder), "LC_ALL": "C.UTF-8", "ANSIBLE_CALLBACKS_ENABLED": "twin_results", "ANSIBLE_CALLBACK_PLUGINS": str(FOLDER / "plugins"),
        "ANSIBLE_PIPELINING": "True", "ANSIBLE_SSH_CONTROL_PATH_DIR": f"/tmp/twins-{os.getpid()}", "NODECTL_TWIN_OUT": str(folder / "results.jsonl"), "ANSIBLE_NOCOLOR": "1",
    }  # fmt: skip
    program = str(Path(sys.executable).with_name("ansible-playbook"))
    return _start([program, "-i", str(lab.hosts_yaml), "-l", host, "-e", f"fetched={folder}/fetched", "site.yml"], folder, environment)


def _start_nodectl(lab: Lab, host: str, chosen: list[Case], folder: Path) -> subprocess.Popen[bytes]:
    _write(folder, chosen)
    words = ["run", "site.yml", "-i", str(lab.hosts_yaml), "-l", host, "-e", f"fetched={folder}/fetched", "--run-dir", "run"]
    return _start([sys.executable, "-m", "nodectl", *words], folder, {**os.environ, "PYTHONPATH": str(FOLDER.parent.parent)})


def _start(argv: list[str], folder: Path, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    with open(folder / "output.txt", "wb") as out:
        return subprocess.Popen(argv, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)


def _wait(started: list[subprocess.Popen[bytes]]) -> list[float]:
    """How many seconds each took. Both are ended at the deadline."""
    began = time.monotonic()
    took: dict[int, float] = {}
    try:
        while len(took) < len(started) and time.monotonic() - began < DEADLINE_S:
            took.update({n: time.monotonic() - began for n, process in enumerate(started) if n not in took and process.poll() is not None})
            time.sleep(0.1)
    finally:
        for process in started:
            if process.poll() is None:
                process.kill()
            process.wait(10)
    assert len(took) == len(started), f"not done within {DEADLINE_S:.0f} s: {[process.args for n, process in enumerate(started) if n not in took]}"
    return [took[n] for n in range(len(started))]


def _state(lab: Lab, host: str) -> dict[str, Any]:
    done = lab.inside(host, "python3", "-c", (FOLDER / "node_state.py").read_text(), timeout=120)
    assert done.returncode == 0, done.stderr
    state: dict[str, Any] = json.loads(done.stdout)
    return state


def _lines(path: Path) -> list[dict[str, Any]]:
    """Times in names of backups, and the tool's own folder on the controller, are made the same on both sides."""
    if not path.exists():
        return []
    text = _BACKUP.sub(".BACKUP~", path.read_text("utf-8").replace(str(path.parent).removesuffix("/run"), "CONTROLLER"))
    return [json.loads(line) for line in text.splitlines()]


def _told_by_ansible(path: Path) -> dict[str, Told]:
    found = {}
    for line in _lines(path):
        diff = line["result"].pop("diff", [])
        found[line["task"]] = Told(line["status"], line["result"], diff if isinstance(diff, list) else [diff])
    return found


def _told_by_nodectl(path: Path) -> dict[str, Told]:
    return {e["task"]: Told(e["status"], e["result"], e.get("diff", [])) for e in _lines(path) if e["kind"] == "task.end"}
