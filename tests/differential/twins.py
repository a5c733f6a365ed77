"""The cases played on one host, by Ansible or by nodectl: what the tool says of each task, and what each module leaves on the node."""

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

from nodectl.lab import hosts
from tests.conftest import Lab
from tests.differential.case_files import FIRST, FOLDER, PICTURES, Case, playbook
from tests.differential.web import PORT

_BACKUP = re.compile(r"\.\d+\.\d{4}-\d\d-\d\d@\d\d:\d\d:\d\d~")
# What Ansible's modules (apt; deb822_repository; locale_gen and the like need the programs too) want on the node: there for both, so that it is no difference.
READY = (
    "apt-get -q update && DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install "
    "python3-apt python3-debian dnf rpm createrepo-c python3-pip locales cron gnupg iptables ufw zip unzip rsync acl attr git make python3-pexpect"
)
WEB_ANSWERS = f"python3 -c \"import socket; socket.create_connection((\\\"127.0.0.1\\\", {PORT}))\" 2>/dev/null"
# What of a picture is compared line by line.
LINES = ("passwd", "group", "shadow", "packages", "units")
Left = dict[str, Any]


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
    """One tool after its cases. ``told`` is by the task's name, ``left`` by module: what is another on the node than before the module's cases."""

    told: dict[str, Told]
    left: dict[str, Left]
    output: str = ""


def prepare(lab: Lab, host: str, chosen: list[Case]) -> None:
    """Packages, the cases' folders and what they want to find there."""
    lines = ["set -e", f"( {READY} ) >/dev/null", f"mkdir -p {PICTURES}"]
    lines += [f"cat > {PICTURES}/{name} <<'EOF'\n{(FOLDER / name).read_text()}\nEOF" for name in ("node_state.py", "web.py")]
    lines += [f"setsid python3 {PICTURES}/web.py / </dev/null >/dev/null 2>&1 &", f"timeout 20 sh -c 'until {WEB_ANSWERS}; do sleep 0.1; done'"]
    for case in chosen:
        lines.append(f"mkdir -p {case.root}")
        if case.data.get("prepare"):
            body = "\n".join(case.data["prepare"])
            lines.append(f"( cd {case.root}; export root={case.root}\n{body}\n) >/dev/null || {{ echo {shlex.quote(case.id)}: prepare failed >&2; exit 1; }}")
    done = hosts.inside(lab.state, host, ("bash", "-s"), 300, "\n".join(lines))
    assert done.returncode == 0, f"{host} could not be prepared: {done.stderr[-2000:]}"


def by_ansible(lab: Lab, host: str, chosen: list[Case], folder: Path, deadline: float, program: str = "", pictures: bool = False) -> Side:
    """``program``: another ansible-playbook than the one beside this Python; ``deadline`` in seconds."""
    _write(folder, chosen, pictures)
    # The control socket's path must be shorter than 108 characters, so it cannot lie in a test's folder.
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(folder), "LC_ALL": "C.UTF-8", "ANSIBLE_CALLBACKS_ENABLED": "twin_results", "ANSIBLE_CALLBACK_PLUGINS": str(FOLDER / "plugins"),
        "ANSIBLE_PIPELINING": "True", "ANSIBLE_SSH_CONTROL_PATH_DIR": f"/tmp/twins-{os.getpid()}", "NODECTL_TWIN_OUT": str(folder / "results.jsonl"), "ANSIBLE_NOCOLOR": "1",
        # On a terminal, which Ansible asks for where it can, both streams are one and lines end in \r\n.
        "ANSIBLE_SSH_USETTY": "False",
    }  # fmt: skip
    words = ["-i", str(lab.hosts_yaml), "-l", host, "-e", f"fetched={folder}/fetched", "site.yml"]
    output = _play([program or str(Path(sys.executable).with_name("ansible-playbook")), *words], folder, environment, deadline)
    return Side(_told_by_ansible(folder / "results.jsonl", host), _left(lab, host, chosen) if pictures else {}, output)


def by_nodectl(lab: Lab, host: str, chosen: list[Case], folder: Path, deadline: float) -> Side:
    _write(folder, chosen, pictures=True)
    words = ["run", "site.yml", "-i", str(lab.hosts_yaml), "-l", host, "-e", f"fetched={folder}/fetched", "--run-dir", "run"]
    output = _play([sys.executable, "-m", "nodectl", *words], folder, {**os.environ, "PYTHONPATH": str(FOLDER.parent.parent)}, deadline)
    return Side(_told_by_nodectl(folder / "run" / "events.jsonl", host), _left(lab, host, chosen), output)


def _write(folder: Path, chosen: list[Case], pictures: bool) -> None:
    folder.mkdir(parents=True)
    (folder / "site.yml").write_text(playbook(chosen, pictures), "utf-8")
    for case in chosen:
        for name, text in case.data.get("controller", {}).items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")


def _play(argv: list[str], folder: Path, environment: dict[str, str], deadline: float) -> str:
    """What the tool printed. It is ended at the deadline."""
    began = time.monotonic()
    with open(folder / "output.txt", "wb") as out:
        process = subprocess.Popen(argv, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
    try:
        process.wait(deadline)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(10)
    output = (folder / "output.txt").read_text(errors="replace")
    assert "PLAY RECAP" in output, f"{argv[0]} did not come to its end in {time.monotonic() - began:.0f} s: {output[-3000:]}"
    return output


def _left(lab: Lab, host: str, chosen: list[Case]) -> dict[str, Left]:
    """Module -> what its cases changed on the node."""
    found, before = {}, _picture(lab, host, FIRST)
    for module in dict.fromkeys(case.module for case in chosen):
        after = _picture(lab, host, module)
        found[module] = change(before, after)
        before = after
    return found


def _picture(lab: Lab, host: str, name: str) -> dict[str, Any]:
    done = lab.inside(host, "cat", f"{PICTURES}/{name}.json")
    assert done.returncode == 0, done.stderr
    # Accounts and units hold the host's name too; the files' digests are without it already.
    state: dict[str, Any] = json.loads(_neutral(done.stdout, host))
    return state


def change(before: dict[str, Any], after: dict[str, Any]) -> Left:
    """{files: path -> what lies there now (None = gone), passwd, group, …: [lines gone, lines new]}, only what is another."""
    one, other = before["files"], after["files"]
    left: Left = {"files": {path: other.get(path) for path in sorted({*one, *other}) if one.get(path) != other.get(path)}}
    for name in LINES:
        gone, new = set(before[name]) - set(after[name]), set(after[name]) - set(before[name])
        left.update({name: [sorted(gone), sorted(new)]} if gone or new else {})
    return left


def _neutral(text: str, host: str) -> str:
    # Not in the escape of JSON: "\n2" is a newline before a 2.
    return re.sub(rf"(?<!\\)\b{re.escape(host)}\b", "HOST", text)


def _lines(path: Path, host: str) -> list[dict[str, Any]]:
    """Times in names of backups, the tool's own folder on the controller and the host's name are made the same on both sides."""
    if not path.exists():
        return []
    text = _BACKUP.sub(".BACKUP~", path.read_text("utf-8").replace(str(path.parent).removesuffix("/run"), "CONTROLLER"))
    return [json.loads(line) for line in _neutral(text, host).splitlines()]


def _told_by_ansible(path: Path, host: str) -> dict[str, Told]:
    found = {}
    for line in _lines(path, host):
        diff = line["result"].pop("diff", [])
        found[line["task"]] = Told(line["status"], line["result"], diff if isinstance(diff, list) else [diff])
    return found


def _told_by_nodectl(path: Path, host: str) -> dict[str, Told]:
    return {e["task"]: Told(e["status"], e["result"], e.get("diff", [])) for e in _lines(path, host) if e["kind"] == "task.end"}
