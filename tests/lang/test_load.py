"""Playbooks as values: what outer levels say is in every task, imports are gone, roles bring what they need."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from nodectl.diagnostics.model import Collector
from nodectl.lang.load import load_playbook, load_role, load_tasks, load_vars_file
from nodectl.lang.playbook import Play
from nodectl.lang.task import Become, Block, LoopControl, Node, Reach, Task
from nodectl.wire.params import OctalInt
from tests.lang.specs import known

Write = Callable[[dict[str, str]], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_files(files: dict[str, str]) -> Path:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(dedent(text))
        return tmp_path

    return write_files


def plays(root: Path, *, warnings: int = 0) -> list[Play]:
    found = Collector()
    playbook = load_playbook(root / "site.yml", [root / "more_roles"], known, found)
    assert not found.errors, [f"{one.origin} {one.message}" for one in found.errors]
    assert len(found.warnings) == warnings
    return list(playbook.plays)


def nodes(play: Play) -> list[Node]:
    return [node for section in play.sections for node in section.nodes]


def tasks(play: Play) -> list[Task]:
    result: list[Task] = []

    def walk(some: Any) -> None:
        for node in some:
            if isinstance(node, Block):
                walk([*node.body, *node.rescue, *node.always])
            else:
                result.append(node)

    walk(nodes(play))
    return result


def only_task(write: Write, task: str) -> Task:
    return tasks(plays(write({"site.yml": "- hosts: all\n  tasks:\n    - " + task.replace("\n", "\n      ") + "\n"}))[0])[0]


def test_a_play_with_all_its_keywords(write: Write) -> None:
    root = write(
        {
            "vars.yml": "a: 1\n",
            "site.yml": """\
            - name: First
              hosts: [gpu, "!gpu-3"]
              gather_facts: false
              gather_subset: [network]
              become: true
              become_user: ops
              vars: {x: "{{ y }}"}
              vars_files: [vars.yml, "{{ os }}.yml"]
              serial: [1, "30%"]
              strategy: free
              max_fail_percentage: 20
              any_errors_fatal: true
              force_handlers: true
              environment: {A: b}
              tags: one, two
              connection: local
              post_tasks: [debug: {msg: last}]
              tasks: [debug: {msg: middle}]
              pre_tasks: [debug: {msg: first}]
            - hosts: n1
            """,
        }
    )
    first, second = plays(root)
    assert (first.name, first.hosts, second.name, second.hosts) == ("First", "gpu,!gpu-3", "n1", "n1")
    assert (first.gather_facts, second.gather_facts) == (False, None)
    assert first.become == Become(True, "ops")
    assert first.vars == {"x": "{{ y }}"}
    assert first.reach == Reach("local")
    assert first.vars_files == ("vars.yml", "{{ os }}.yml")
    assert (first.serial, first.strategy, first.max_fail_percentage) == ((1, "30%"), "free", 20)
    assert (first.any_errors_fatal, first.force_handlers, first.gather_subset) == (True, True, ("network",))
    assert first.environment == ({"A": "b"},)
    assert first.tags == {"one", "two"}
    assert [section.name for section in first.sections] == ["pre_tasks", "tasks", "post_tasks"]
    assert all(task.tags == {"one", "two"} for task in tasks(first))
    assert str(first.hosts_origin) == f"{root}/site.yml:2:10"
    assert tasks(first)[0].any_errors_fatal
    assert tasks(first)[0].become == Become(), "the engine merges a play's become itself"


def test_a_task_with_all_its_keywords(write: Write) -> None:
    task = only_task(
        write,
        """name: "{{ n }}"
ansible.builtin.file: {path: /x, state: touch, mode: 0644}
when: [a, b == 1]
loop: "{{ things }}"
loop_control: {loop_var: thing, index_var: i, label: "{{ thing.n }}", pause: 1, extended: true}
register: result
vars: {v: 1}
tags: t
become: "{{ b }}"
environment: [{A: 1}, "{{ env }}"]
ignore_errors: yes
changed_when: false
failed_when: [result.rc == 2]
until: result is succeeded
retries: 3
delay: "{{ d }}"
delegate_to: other
run_once: true
check_mode: false
diff: false
no_log: true
timeout: 20""",
    )
    assert (task.module, task.args) == ("file", {"path": "/x", "state": "touch", "mode": 0o644})
    assert isinstance(task.args["mode"], OctalInt)
    assert (task.name, task.when, task.loop, task.loop_kind) == ("{{ n }}", ("a", "b == 1"), "{{ things }}", "loop")
    assert task.loop_control == LoopControl("thing", "i", "{{ thing.n }}", 1.0, True)
    assert (task.register, task.vars, task.tags, task.become.enabled) == ("result", {"v": 1}, frozenset({"t"}), "{{ b }}")
    assert task.environment == ({"A": 1}, "{{ env }}")
    assert (task.ignore_errors, task.changed_when, task.failed_when) == (True, (False,), ("result.rc == 2",))
    assert (task.until, task.retries, task.delay) == (("result is succeeded",), 3, "{{ d }}")
    assert (task.delegate_to, task.run_once, task.check_mode, task.diff, task.no_log, task.timeout) == ("other", True, False, False, True, 20)
    assert task.origin.line == 3
    assert (task.origins["args.mode"].line, task.origins["args.mode"].column) == (4, 54)
    assert task.origins["when"].line == 5


def test_defaults_of_a_bare_task(write: Write) -> None:
    task = only_task(write, "debug:")
    assert (task.args, task.when, task.loop, task.ignore_errors, task.no_log, task.run_once) == ({}, (), None, False, False, False)
    assert (task.changed_when, task.failed_when, task.until, task.scope, task.inherited) == (None, None, (), (), None)


@pytest.mark.parametrize(
    ("text", "module", "args"),
    [
        ("command: echo hi", "command", {"cmd": "echo hi"}),
        ("command: chdir=/x make all", "command", {"cmd": "make all", "chdir": "/x"}),
        ("command: 'echo  {{ x }}'\nargs: {chdir: /x}", "command", {"cmd": "echo  {{ x }}", "chdir": "/x"}),
        ("command: {argv: [a, b]}", "command", {"argv": ["a", "b"]}),
        ("ansible.legacy.command: 5", "command", {"cmd": "5"}),
        ("file: path=/a state=absent", "file", {"path": "/a", "state": "absent"}),
        ("action: file path=/a state=absent", "file", {"path": "/a", "state": "absent"}),
        ("action: {module: file, path: /a}", "file", {"path": "/a"}),
        ("apt: name=a,b", "apt", {"name": "a,b"}),
        ("meta: flush_handlers", "meta", {"action": "flush_handlers"}),
        ("set_fact: {anything: '{{ x }}'}", "set_fact", {"anything": "{{ x }}"}),
        ("include_tasks: '{{ x }}.yml'", "include_tasks", {"file": "{{ x }}.yml"}),
    ],
)
def test_ways_to_write_arguments(write: Write, text: str, module: str, args: dict[str, Any]) -> None:
    task = only_task(write, text)
    assert (task.module, task.args) == (module, args)


def test_local_action_and_loop_kinds(write: Write) -> None:
    assert only_task(write, "local_action: command echo hi").delegate_to == "localhost"
    task = only_task(write, "debug:\nwith_dict: '{{ d }}'")
    assert (task.loop, task.loop_kind) == ("{{ d }}", "dict")


def test_blocks_give_their_keywords_to_what_is_in_them(write: Write) -> None:
    root = write(
        {
            "site.yml": """\
            - hosts: all
              tags: play
              tasks:
                - name: Outer
                  block:
                    - block: [debug: {msg: inner}]
                      when: c2
                      tags: inner
                      vars: {b: 2}
                      become_user: db
                      ignore_errors: false
                      notify: hello
                  rescue: [debug: {msg: rescue}]
                  always: [debug: {msg: always}]
                  when: c1
                  vars: {a: 1}
                  become: true
                  environment: {E: 1}
                  ignore_errors: true
                  no_log: true
                  delegate_to: other
                  run_once: true
                  check_mode: true
              handlers: [{name: hello, debug: }]
            """
        }
    )
    play = plays(root)[0]
    outer = nodes(play)[0]
    assert isinstance(outer, Block)
    assert (outer.name, len(outer.body), len(outer.rescue), len(outer.always)) == ("Outer", 1, 1, 1)
    inner, rescue, _ = tasks(play)
    assert inner.when == ("c1", "c2")
    assert inner.tags == {"play", "inner"}
    assert inner.scope == ({"a": 1}, {"b": 2})
    assert inner.become == Become(True, "db")
    assert (inner.ignore_errors, inner.no_log, inner.delegate_to, inner.run_once, inner.check_mode) == (False, True, "other", True, True)
    assert inner.environment == ({"E": 1},)
    assert inner.notify == ("hello",)
    assert (rescue.when, rescue.ignore_errors, rescue.become, rescue.notify) == (("c1",), True, Become(True), ())


def test_imports_are_replaced_by_what_they_bring(write: Write) -> None:
    root = write(
        {
            "site.yml": """\
            - import_playbook: sub/other.yml
              when: p
              tags: imported
              vars: {pv: 1}
            - hosts: all
              tasks:
                - import_tasks: tasks/one.yml
                  when: w1
                  vars: {x: 1}
                  tags: t1
                  become: true
            """,
            "sub/other.yml": "- hosts: all\n  tasks: [debug: {msg: other}]\n",
            "tasks/one.yml": "- debug: {msg: first}\n- import_tasks: two.yml\n  when: w2\n  vars: {y: 2}\n",
            "tasks/two.yml": "- debug: {msg: second}\n  when: w3\n",
        }
    )
    other, site = plays(root)
    assert [(task.when, task.tags, task.scope) for task in tasks(other)] == [(("p",), frozenset({"imported"}), ())]
    assert other.vars == {"pv": 1}
    assert other.basedir == root / "sub"
    first, second = tasks(site)
    assert (first.when, first.scope, first.become.enabled) == (("w1",), ({"x": 1},), True)
    assert (second.when, second.scope, second.tags) == (("w1", "w2", "w3"), ({"x": 1}, {"y": 2}), frozenset({"t1"}))
    assert second.origin.file.endswith("tasks/two.yml")


ROLE = {
    "roles/base/tasks/main.yml": "- debug: {msg: base}\n  notify: restart base\n",
    "roles/base/handlers/main.yml": "- name: restart base\n  debug: {msg: restarted}\n  listen: [topic]\n",
    "roles/base/defaults/main.yml": "size: 1\n",
    "roles/base/vars/main.yml": "fixed: 2\n",
    "roles/base/meta/argument_specs.yml": "argument_specs: {main: {options: {size: {type: int}, flavour: {type: str}}}}\n",
}


def test_a_role_brings_tasks_handlers_and_variables(write: Write) -> None:
    root = write(
        {
            **ROLE,
            "site.yml": """\
            - hosts: all
              roles:
                - role: base
                  size: 5
                  vars: {v: 1}
                  when: c
                  tags: [r]
                  become: true
              tasks: [debug: {msg: after}]
              handlers: [{name: own, debug: }]
            """,
        }
    )
    play = plays(root)[0]
    mine, after = tasks(play)
    assert mine.role is not None
    assert (mine.role.name, mine.role.params, mine.role.defaults, mine.role.vars) == ("base", {"size": 5}, {"size": 1}, {"fixed": 2})
    assert (mine.when, mine.tags, mine.scope, mine.become.enabled) == (("c",), frozenset({"r"}), ({"v": 1},), True)
    assert str(mine.role.origins["size"]).endswith("defaults/main.yml:1:1")
    assert after.role is None
    assert [(handler.name, handler.listen) for handler in play.handlers] == [("restart base", ("topic",)), ("own", ())]
    assert play.handlers[0].role is mine.role


def with_dependencies(first: str, second: str, roles: str = "[a, b]") -> dict[str, str]:
    return {
        "site.yml": f"- hosts: all\n  roles: {roles}\n",
        "roles/a/tasks/main.yml": "- debug: {msg: a}\n",
        "roles/b/tasks/main.yml": "- debug: {msg: b}\n",
        "roles/a/meta/main.yml": f"dependencies: [{first}]\n",
        "roles/b/meta/main.yml": f"dependencies: [{second}]\n",
        "roles/fuse/tasks/main.yml": "- debug: {msg: fuse}\n",
    }


@pytest.mark.parametrize(
    ("first", "second", "roles", "same"),
    [
        ("fuse", "fuse", "[a, b]", True),
        ("{role: fuse, bucket: x}", "{role: fuse, bucket: y}", "[a, b]", False),
        ("{role: fuse, bucket: x}", "{role: fuse, bucket: x}", "[a, b]", True),
        ("{role: fuse, vars: {bucket: x}}", "fuse", "[a, b]", False),
        ("{role: fuse, when: x}", "fuse", "[a, b]", False),
        ("{role: fuse, tags: x}", "{role: fuse, tags: [x]}", "[a, b]", True),
        ("fuse", "fuse", "[{role: a, when: never}, b]", True),
        ("fuse", "fuse", "[{role: a, tags: x}, b]", True),
    ],
)
def test_two_uses_of_a_role_are_the_same_if_they_are_written_the_same(write: Write, first: str, second: str, roles: str, same: bool) -> None:
    """D62: other parameters are another run. What is around a use parts nothing: whether it ran is found out on each host."""
    play = plays(write(with_dependencies(first, second, roles)))[0]
    assert [task.args["msg"] for task in tasks(play)] == ["fuse", "a", "fuse", "b"]
    uses = [node.role.use for node in nodes(play) if isinstance(node, Block) and node.role is not None and node.role.name == "fuse"]
    assert (uses[0] == uses[1]) is same


def test_allow_duplicates_and_parameters_of_the_parent(write: Write) -> None:
    files = with_dependencies("{role: fuse, own: 1}", "fuse", "[{role: a, bucket: x}, b]")
    play = plays(write({**files, "roles/fuse/meta/main.yml": "allow_duplicates: true\n"}))[0]
    assert [task.args["msg"] for task in tasks(play)] == ["fuse", "a", "fuse", "b"]
    role = tasks(play)[0].role
    assert role is not None
    assert role.params == {"bucket": "x", "own": 1}
    assert role.allow_duplicates


def test_import_role_takes_other_files_and_may_repeat(write: Write) -> None:
    root = write(
        {
            **ROLE,
            "roles/base/tasks/extra.yml": "- debug: {msg: extra}\n",
            "roles/base/vars/other.yaml": "fixed: 9\n",
            "site.yml": """\
            - hosts: all
              tasks:
                - import_role: {name: base}
                - import_role: {name: base, tasks_from: extra.yml, vars_from: other}
                  vars: {x: 1}
            """,
        }
    )
    first, second = tasks(plays(root)[0])
    assert (first.args["msg"], second.args["msg"]) == ("base", "extra")
    assert second.role is not None
    assert (second.role.vars, second.scope) == ({"fixed": 9}, ({"x": 1},))
    assert first.role is not second.role


def test_roles_are_found_beside_the_playbook_then_on_the_path_then_beside_a_role(write: Write) -> None:
    root = write(
        {
            "site.yml": "- hosts: all\n  roles: [one, two]\n",
            "roles/one/tasks/main.yml": "- debug: {msg: here}\n",
            "more_roles/one/tasks/main.yml": "- debug: {msg: there}\n",
            "more_roles/two/tasks/main.yml": "- import_role: {name: three}\n",
            "more_roles/three/tasks/main.yml": "- debug: {msg: three}\n",
        }
    )
    assert [task.args["msg"] for task in tasks(plays(root)[0])] == ["here", "three"]


def test_includes_stay_and_carry_what_their_tasks_will_get(write: Write) -> None:
    root = write(
        {
            **ROLE,
            "more.yml": "- debug: {msg: more}\n  when: inside\n- import_tasks: deep.yml\n",
            "deep.yml": "- debug: {msg: deep}\n",
            "site.yml": """\
            - hosts: all
              tasks:
                - block:
                    - include_tasks: {file: more.yml, apply: {tags: [applied], become: true}}
                      when: own
                      tags: [own]
                      vars: {x: 1}
                    - include_role: {name: base}
                  when: outer
                  vars: {o: 1}
            """,
        }
    )
    include, role = tasks(plays(root)[0])
    assert (include.module, include.when, include.tags, include.apply_tags) == ("include_tasks", ("outer", "own"), frozenset({"own"}), frozenset({"applied"}))
    found = Collector()
    more, deep = load_tasks(root / "more.yml", None, include, [], known, found).nodes
    assert isinstance(more, Task)
    assert isinstance(deep, Task)
    assert (more.when, more.tags, more.scope, more.become.enabled) == (("outer", "inside"), frozenset({"applied"}), ({"o": 1}, {"x": 1}), True)
    assert deep.args == {"msg": "deep"}
    loaded = load_role("base", {}, root, role, [], known, found)
    assert not list(found)
    assert [handler.name for handler in loaded.handlers] == ["restart base"]
    block = loaded.nodes[0]
    assert isinstance(block, Block)
    assert block.role is loaded.role
    task = block.body[0]
    assert isinstance(task, Task)
    assert (task.when, task.scope, task.role) == (("outer",), ({"o": 1},), loaded.role)


def test_a_role_without_tasks_is_still_a_role(write: Write) -> None:
    root = write({"roles/only/defaults/main.yml": "a: 1\n"})
    found = Collector()
    loaded = load_role("only", {"p": 1}, root, None, [], known, found)
    assert (loaded.role.defaults, loaded.role.params, loaded.nodes) == ({"a": 1}, {"p": 1}, ())
    assert not list(found)


def test_recursion_through_includes_is_fine_and_through_imports_is_not(write: Write) -> None:
    root = write({"site.yml": "- hosts: all\n  tasks: [include_tasks: again.yml]\n", "again.yml": "- include_tasks: again.yml\n  when: more\n"})
    assert len(tasks(plays(root)[0])) == 1
    write({"again.yml": "- import_tasks: again.yml\n"})
    found = Collector()
    load_playbook(root / "site.yml", [], known, found)
    assert [one.code for one in found] == ["E215"]


@pytest.mark.parametrize("notify", ["restart base", "topic", "base : restart base", "{{ svc }}"])
def test_names_that_a_handler_answers_to(write: Write, notify: str) -> None:
    root = write({**ROLE, "site.yml": f'- hosts: all\n  roles: [base]\n  tasks:\n    - debug:\n      notify: "{notify}"\n'})
    assert tasks(plays(root)[0])[1].notify == (notify,)


def test_handlers_of_an_included_role_count_too(write: Write) -> None:
    plays(write({**ROLE, "site.yml": "- hosts: all\n  tasks:\n    - include_role: {name: base}\n    - debug:\n      notify: restart base\n"}))


def test_variables_from_a_file(write: Write) -> None:
    root = write({"v.yml": "a: 1\nb: {c: '{{ d }}'}\n", "list.yml": "[1]\n", "empty.yml": ""})
    found = Collector()
    assert load_vars_file(root / "v.yml", found) == {"a": 1, "b": {"c": "{{ d }}"}}
    assert type(load_vars_file(root / "v.yml", found)["b"]) is dict
    assert load_vars_file(root / "empty.yml", found) == {}
    assert not list(found)
    assert load_vars_file(root / "list.yml", found) == {}
    assert [one.code for one in found] == ["E209"]


def test_a_playbook_that_is_not_there() -> None:
    found = Collector()
    assert load_playbook(Path("/nowhere/site.yml"), [], known, found).plays == ()
    assert [one.code for one in found] == ["E109"]


def test_the_shipped_playbooks_have_no_mistakes() -> None:
    from nodectl.engine.catalogue import known as every_module

    root = Path(__file__).parents[2]
    for playbook in sorted((root / "playbooks").glob("*.yml")):
        found = Collector()
        load_playbook(playbook, [root / "roles"], every_module, found).seen.warn([], found)
        assert not list(found), [f"{one.origin} {one.message}" for one in found]


def test_files_with_a_full_path_are_read_where_they_are(write: Write, tmp_path: Path) -> None:
    root = write({"elsewhere/t.yml": "- debug: {msg: there}\n", "site.yml": f"- hosts: all\n  tasks: [import_tasks: {tmp_path}/elsewhere/t.yml]\n"})
    assert [task.args["msg"] for task in tasks(plays(root)[0])] == ["there"]
    found = Collector()
    write({"site.yml": f"- hosts: all\n  tasks: [import_tasks: {tmp_path}/elsewhere/none.yml]\n"})
    load_playbook(root / "site.yml", [], known, found)
    assert [one.code for one in found] == ["E210"]


def test_defaults_and_vars_may_be_folders(write: Write) -> None:
    root = write(
        {
            "site.yml": "- hosts: all\n  roles: [r, s]\n",
            "roles/r/tasks/main.yml": "- debug:\n",
            "roles/r/defaults/main/10.yml": "a: 10\nb: 10\n",
            "roles/r/defaults/main/20.yaml": "b: 20\n",
            "roles/r/defaults/main/deep/30.yml": "c: 30\n",
            "roles/r/defaults/main/notes.txt": "a: text\n",
            "roles/r/vars/main/x.json": '{"v": 1}',
            "roles/s/tasks/main.yml": "- debug:\n",
            "roles/s/defaults/main.yml": "a: file\n",
            "roles/s/defaults/main/10.yml": "a: folder\n",
        }
    )
    first, second = (task.role for task in tasks(plays(root)[0]))
    assert first is not None
    assert second is not None
    assert (first.defaults, first.vars) == ({"a": 10, "b": 20, "c": 30}, {"v": 1})
    assert first.origins["b"].file.endswith("20.yaml")
    assert second.defaults == {"a": "file"}
