"""When nothing can be said of a name that nobody seems to use, nothing is said. What is said: tests/diagnostics/cases/E223*, E224*."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nodectl.diagnostics.model import Collector
from nodectl.lang.load import load_playbook
from tests.lang.specs import known

PLAY = """
- hosts: all
  tasks:
    - command: id
      register: lonely
      {task}
  handlers:
    - name: restart
      command: id
"""

SILENT: dict[str, tuple[str, list[Any], list[str]]] = {
    "nothing": ("", [], ["E223", "E224"]),
    "a_templated_handler": ("notify: 'restart {{ x }}'", [], ["E223"]),
    "a_templated_role": ("changed_when: false\n    - include_role: {name: '{{ x }}'}", [], []),
    "a_variable_of_the_inventory": ("notify: restart", [{"a": [{"b": "{{ lonely.rc }}"}]}], []),
    "a_text_without_braces": ("notify: restart", ["lonely"], ["E223"]),
    "a_name_of_its_own_condition": ("when: lonely is defined", [], ["E224"]),
}


@pytest.mark.parametrize("name", SILENT)
def test_what_is_told(name: str, tmp_path: Path) -> None:
    task, others, codes = SILENT[name]
    (tmp_path / "site.yml").write_text(PLAY.replace("{task}", task))
    found = Collector()
    playbook = load_playbook(tmp_path / "site.yml", [], known, found)
    assert not found.errors, found.errors[0].message
    playbook.seen.warn(others, found)
    assert [one.code for one in found.warnings] == codes


def test_files_that_are_none_are_no_trouble(tmp_path: Path) -> None:
    """Beside a playbook lies whatever a person has there: bytes, a link that leads nowhere, a file that is too large to be a template."""
    (tmp_path / "site.yml").write_text(PLAY.replace("{task}", "notify: restart"))
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "bytes").write_bytes(b"\xff\xfe\x00 lonely2")
    (tmp_path / "templates" / "link").symlink_to("nowhere")
    (tmp_path / "templates" / "large").write_bytes(b"lonely " * 200_000)
    found = Collector()
    load_playbook(tmp_path / "site.yml", [], known, found).seen.warn([], found)
    assert [one.code for one in found.warnings] == ["E223"]
