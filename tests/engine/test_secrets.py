"""What a role's author sees of a secret variable: its value reaches the node in every way of writing it, and nothing else."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from nodectl.wire.secret import MASK, Secret
from tests.engine.fakes import FakeConnections
from tests.engine.playing import ONE, Played, play

TEXT = "correct-horse:{{battery}}"
ENCODED = base64.b64encode(TEXT.encode()).decode()
VARIABLES: dict[str, Any] = {
    "pw": Secret(TEXT),
    "user": {"name": "ops", "pw": Secret(TEXT)},
    "users": [{"name": "ops", "pw": Secret(TEXT)}],
}
# A role's own variables, made of the secret.
PLAY = "- hosts: all\n  gather_facts: false\n  vars: {joined: 'key={{ pw }}', twice: '{{ joined }};{{ joined }}', inner: {deep: ['{{ user.pw }}']}}\n  tasks:\n"


def run(folder: Path, *tasks: str, files: dict[str, str] | None = None, **options: Any) -> Played:
    text = PLAY + "".join(f"    - {task}\n" for task in tasks)
    return play(folder, text, inventory=ONE, files=files, extra_vars=VARIABLES, connections=FakeConnections(), **options)


def shown(played: Played) -> str:
    return json.dumps([event.to_json() for event in played.events])


WAYS = [
    # what an author writes into `copy: content`, and the bytes on the node
    ("{{ pw }}", TEXT),
    ("key={{ pw }}", f"key={TEXT}"),
    ("{{ joined }}", f"key={TEXT}"),
    ("{{ twice }}!", f"key={TEXT};key={TEXT}!"),
    ("{{ user.pw }}", TEXT),
    ("{{ user['pw'] }}-{{ user.name }}", f"{TEXT}-ops"),
    ("{{ users[0].pw }}", TEXT),
    ("{{ users | map(attribute='pw') | join(',') }}", TEXT),
    ("{{ inner.deep[0] }}", TEXT),
    ("{{ hostvars.h1.pw }}", TEXT),
    ("{{ hostvars.h1.joined | default('no such name there') }}", "no such name there"),
    ("{{ lookup('vars', 'pw') }}", TEXT),
    ("{{ lookup('template', 'key.j2') }}", f"key: {TEXT}\n"),
    ("{{ pw ~ '!' }}", f"{TEXT}!"),
    ("{{ pw + '!' }}", f"{TEXT}!"),
    ("{{ '<%s>' % pw }}", f"<{TEXT}>"),
    ("{{ pw | b64encode }}", ENCODED),
    ("{{ pw | upper }}", TEXT.upper()),
    ("{{ pw | length }}", str(len(TEXT))),
    ("{{ pw[:7] }}", TEXT[:7]),
    ("{{ pw.split(':')[0] }}", "correct-horse"),
    ("{{ {'k': pw} | to_json }}", json.dumps({"k": TEXT})),
    ("{{ 'same' if pw == user.pw else 'other' }}", "same"),
    ("{{ 'set' if pw is defined and pw else 'unset' }}", "set"),
    ("{% for one in users %}{{ one.name }}:{{ one.pw }}{% endfor %}", f"ops:{TEXT}"),
    ("{{ nothing | default(pw) }}", TEXT),
]


@pytest.mark.parametrize(("written", "there"), WAYS)
def test_the_value_reaches_the_node_in_every_way_of_writing_it(tmp_path: Path, written: str, there: str) -> None:
    task = json.dumps({"name": "put", "copy": {"content": written, "dest": f"{tmp_path}/there"}})
    played = run(tmp_path, task, files={"templates/key.j2": "key: {{ pw }}\n"}, diff=True)
    assert played.of("h1") == ["put: changed"]
    assert (tmp_path / "there").read_text() == there
    assert TEXT not in shown(played)
    assert ENCODED not in shown(played)


MODULES = [
    # a task, and what the file that it writes then holds
    ("{{command: {{argv: [sh, -c, 'printf %s \"$0\" > {0}', '{{{{ pw }}}}']}}}}", TEXT),
    ("{{shell: \"printf %s '{{{{ pw }}}}' > {0}\"}}", TEXT),
    ("{{shell: 'printf %s \"$KEY\" > {0}', environment: {{KEY: '{{{{ joined }}}}'}}}}", f"key={TEXT}"),
    ("{{command: {{cmd: 'tee {0}', stdin: '{{{{ pw }}}}', stdin_add_newline: false}}}}", TEXT),
    ("{{template: {{src: key.j2, dest: {0}}}}}", f"key: {TEXT}\n"),
    ("{{lineinfile: {{path: {0}, line: 'password {{{{ pw }}}}', create: true}}}}", f"password {TEXT}\n"),
    ("{{copy: {{content: '{{{{ item.name }}}} {{{{ item.pw }}}}', dest: {0}}}, loop: '{{{{ users }}}}'}}", f"ops {TEXT}"),
    ("{{copy: {{content: '{{{{ item }}}}', dest: {0}}}, with_items: ['{{{{ pw }}}}']}}", TEXT),
]


@pytest.mark.parametrize(("task", "there"), MODULES, ids=[task[0][2:12] for task in MODULES])
@pytest.mark.parametrize("options", [{}, {"diff": True}])
def test_every_module_gets_it_and_no_event_does(tmp_path: Path, task: str, there: str, options: dict[str, Any]) -> None:
    played = run(tmp_path, task.format(tmp_path / "there"), files={"templates/key.j2": "key: {{ pw }}\n"}, **options)
    assert played.result.exit_code == 0, shown(played)
    assert (tmp_path / "there").read_text() == there
    assert TEXT not in shown(played)


HIDDEN = [
    # tasks that show something: the secret never, what stands beside it always
    ("{debug: {msg: 'is {{ pw }}'}}", f"is {MASK}"),
    ("{debug: {var: pw}}", MASK),
    ("{debug: {msg: '{{ users }}'}}", '"name": "ops"'),
    ("{name: 'with {{ joined }}', debug: {msg: x}}", "with "),
    ("{fail: {msg: 'no {{ pw }}'}, ignore_errors: true}", f"no {MASK}"),
    ("{assert: {that: \"pw == 'x'\", fail_msg: 'it is {{ pw }}'}, ignore_errors: true}", f"it is {MASK}"),
    ("{debug: {msg: ran}, when: pw, ignore_errors: true}", "secret text"),
    ("{debug: {msg: '{{ pw.nothing }}'}, ignore_errors: true}", "nothing"),
    ("{command: 'echo {{ pw }}', register: r}", f'"echo", "{MASK}"'),
    ("{debug: {msg: ran}, when: pw | length > 3}", "ran"),
    ("{debug: {msg: '{{ item }}'}, loop: ['{{ pw }}', plain]}", "plain"),
    ("{set_fact: {kept: '{{ pw }}'}}", '"status": "ok"'),
]


@pytest.mark.parametrize(("task", "seen"), HIDDEN, ids=[task[0][1:40] for task in HIDDEN])
def test_nothing_shows_it(tmp_path: Path, task: str, seen: str) -> None:
    played = run(tmp_path, task)
    assert TEXT not in shown(played)
    assert seen in shown(played).replace("\\\"", '"')


def test_a_fact_made_of_a_secret_is_hidden_where_it_is_used_later(tmp_path: Path) -> None:
    played = run(tmp_path, "{set_fact: {kept: 'a {{ pw }}'}}", f"{{name: put, copy: {{content: '{{{{ kept }}}}', dest: {tmp_path}/there}}}}", "{debug: {msg: '{{ kept }}'}}")
    assert (tmp_path / "there").read_text() == f"a {TEXT}"
    assert TEXT not in shown(played)


def test_the_words_beside_a_secret_are_no_secrets(tmp_path: Path) -> None:
    """The user's name stands in the same mapping as the password; hiding it would hide every `ops` of the run."""
    played = run(tmp_path, "{debug: {msg: '{{ item.name }}'}, loop: '{{ users }}'}", "{debug: {msg: '{{ user.name }}'}}")
    assert shown(played).count('"ops"') >= 2
