"""All mistakes at once, each with its place, before any connection."""

from __future__ import annotations

from pathlib import Path

from tests.acceptance.run import nodectl

PLAYBOOK = """\
- name: One
  hosts: gpus
  tasks:
    - name: A keyword with a typo
      ping:
      whn: true
    - name: A parameter that does not exist
      file:
        path: /tmp/x
        stat: touch
    - name: A key twice
      file:
        path: /tmp/y
        path: /tmp/z
        state: touch
"""
INVENTORY = "all:\n  children:\n    gpu:\n      hosts:\n        n1: {ansible_host: 127.0.0.1, ansible_port: 9}\n"


def test_four_kinds_of_mistakes_are_told_in_one_go(tmp_path: Path) -> None:
    playbook = tmp_path / "site.yml"
    playbook.write_text(PLAYBOOK)
    (tmp_path / "hosts.yaml").write_text(INVENTORY)
    run = nodectl(tmp_path / "run", "run", str(playbook), "-i", str(tmp_path / "hosts.yaml"))
    assert run.code == 1, run.out
    for line, column, word in ((2, 10, "gpus"), (6, 7, "whn"), (10, 9, "stat"), (14, 9, "path")):
        assert f"{playbook}:{line}:{column}" in run.out, run.out
        assert word in run.out
    assert run.out.count("^") >= 4
    assert "gpu" in run.out
    assert "when" in run.out
    assert "4 mistakes found" in run.out
    assert not (tmp_path / "run" / "events.jsonl").exists()
