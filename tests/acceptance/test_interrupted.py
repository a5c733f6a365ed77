"""A run that is stopped on real hosts: it ends soon, leaves nothing running, and the next one goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nodectl.report.journal import read_journal
from tests.conftest import Lab

ROOT = Path(__file__).resolve().parents[2]
STUBBORN = """
- hosts: all
  gather_facts: false
  become: true
  tasks:
    - {name: config, copy: {content: new, dest: /etc/interrupted.conf}, notify: reload}
    - {name: long, command: sh -c 'trap "" TERM; sleep 4711 & wait', when: stay | default(true) | bool}
  handlers:
    - {name: reload, command: sh -c 'echo once >> /root/reloads'}
"""
PACKAGES = """
- hosts: all
  gather_facts: false
  become: true
  tasks:
    - apt: {name: [chrony, jq, fio], state: present, update_cache: true}
    - {command: test -s /etc/chrony/chrony.conf, changed_when: false}
"""


def nodectl(place: Path, lab: Lab, text: str, *options: str) -> subprocess.Popen[str]:
    (place / "book.yml").write_text(text)
    argv = [sys.executable, "-m", "nodectl", "run", "book.yml", "-i", str(lab.hosts_yaml), *options]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(argv, cwd=place, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def until(lab: Lab, host: str, command: str, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while lab.inside(host, "sh", "-c", command).returncode != 0:
        assert time.monotonic() < end, f"{host}: {command}"
        time.sleep(0.2)


# SIGTERM goes the way of Ctrl-C, which a test session in the background would have its children ignore.
@pytest.mark.lab
@pytest.mark.alone
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_running_and_what_is_owed_is_done_by_the_next_run(bare_lab: Lab, tmp_path: Path, number: signal.Signals) -> None:
    first = nodectl(tmp_path, bare_lab, STUBBORN)
    for host in bare_lab.names:
        until(bare_lab, host, "pgrep -f '[s]leep 4711'")
    begin = time.monotonic()
    first.send_signal(number)
    first.communicate(timeout=30)
    assert first.returncode == (130 if number == signal.SIGTERM else -9)
    assert time.monotonic() - begin < 15
    for host in bare_lab.names:
        until(bare_lab, host, "! pgrep -f '[s]leep 4711|[p]ython3 -I'", 15)
    events = read_journal(tmp_path / ".nodectl" / "runs" / "latest" / "events.jsonl")
    assert ("run.end" in [event.kind for event in events]) == (number == signal.SIGTERM)
    second = nodectl(tmp_path, bare_lab, STUBBORN, "-e", "stay=no")
    out, _ = second.communicate(timeout=60)
    assert second.returncode == 0, out
    assert {bare_lab.inside(host, "cat", "/root/reloads").stdout for host in bare_lab.names} == {"once\n"}


@pytest.mark.lab
@pytest.mark.alone
def test_an_installation_that_was_cut_off_is_finished_by_the_next_run(bare_lab: Lab, tmp_path: Path) -> None:
    host = bare_lab.names[0]
    first = nodectl(tmp_path, bare_lab, PACKAGES, "-l", host)
    until(bare_lab, host, "ls /var/lib/dpkg/updates | grep -q '^[0-9]'")  # dpkg is in the middle of its work
    first.kill()
    first.communicate(timeout=30)
    until(bare_lab, host, "! pgrep -x 'apt-get|dpkg'", 15)
    second = nodectl(tmp_path, bare_lab, PACKAGES, "-l", host)
    out, _ = second.communicate(timeout=120)
    assert second.returncode == 0, out
    third = nodectl(tmp_path, bare_lab, PACKAGES, "-l", host)
    out, _ = third.communicate(timeout=60)
    assert "changed=0" in out, out
