"""doc and explain take names as people have them before their eyes."""

from __future__ import annotations

import pytest

from nodectl.cli.main import run


@pytest.mark.parametrize("name", ["copy", "ansible.builtin.copy", "ansible.legacy.copy", "Copy", "import_tasks", "ansible.posix.mount"])
def test_doc_finds_a_module_by_any_of_its_names(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doc", name]) == 0
    assert capsys.readouterr().out.startswith(f"# {name.rsplit('.', 1)[-1].lower()}")


UNKNOWN = [
    ("rhel_facts", "Ansible has this module; this version of nodectl does not"),
    ("ansible.builtin.subversion", "Ansible has this module; this version of nodectl does not"),
    ("ansible.builtin.fil", "did you mean 'file'?"),
    ("zzz", "nodectl doc lists them all"),
]


@pytest.mark.parametrize(("name", "text"), UNKNOWN)
def test_doc_says_what_a_module_is_that_is_not_there(name: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doc", name]) == 1
    assert text in capsys.readouterr().err


@pytest.mark.parametrize("code", ["E203", "e203", " e203"])
def test_explain_folds_case(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", code]) == 0
    assert capsys.readouterr().out.startswith("# E203")


def test_explain_names_the_nearest_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "e2033"]) == 1
    assert "did you mean 'E203'?" in capsys.readouterr().err
