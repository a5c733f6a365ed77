"""Arguments in one text, compared with ansible-core's own splitter."""

from __future__ import annotations

import pytest

from nodectl.lang import freeform

TEXTS = [
    "path=/a state=absent", "msg='two words' x=1", 'msg="{{ a | default(\'x y\') }}"', "line=a=b", "a='it is' b=\"q\"", "name={{ item }}", "name={{ item.x }}-{{ y }} z=1",
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_options_are_those_of_ansible(text: str) -> None:
    from ansible.parsing.splitter import parse_kv

    assert freeform.options(text) == dict(parse_kv(text))


@pytest.mark.parametrize(
    ("text", "rest", "given"),
    [
        ("echo hi", "echo hi", {}),
        ("chdir=/tmp make all", "make all", {"chdir": "/tmp"}),
        ("make all chdir=/tmp creates='/a b'", "make all", {"chdir": "/tmp", "creates": "/a b"}),
        ("dd if=/dev/zero of=/x", "dd if=/dev/zero of=/x", {}),
        ("sh -c 'a  b' | cat", "sh -c 'a  b' | cat", {}),
        ("echo  two   blanks", "echo  two   blanks", {}),
        ("echo {{ a b }} chdir=/x", "echo {{ a b }}", {"chdir": "/x"}),
    ],
)
def test_a_command_line_stays_as_it_was_written(text: str, rest: str, given: dict[str, str]) -> None:
    assert freeform.command_line(text, ["chdir", "creates"]) == (rest, given)


@pytest.mark.parametrize(("text", "message"), [("a='x", "quote"), ("{{ a", "template"), ("a b=1", "'a' is not name=value"), ("a=1 a=2", "twice")])
def test_texts_that_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises(freeform.BadText, match=message):
        freeform.options(text)
