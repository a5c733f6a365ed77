"""What a run promises beyond the order of its tasks: owed handlers, secrets, limits, places, check mode."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from nodectl.diagnostics.model import Mistakes
from nodectl.transport.channel import Lost
from nodectl.wire.outcome import Outcome
from nodectl.wire.secret import MASK, Secret
from nodectl.wire.step import Step
from tests.engine.fakes import FakeConnections
from tests.engine.playing import play

ONE = "[all]\nh1 ansible_connection=local\n"


def book(*tasks: str, head: str = "") -> str:
    return f"- hosts: all\n  gather_facts: false\n{head}  tasks:\n" + "".join(f"    - {task}\n" for task in tasks)


# -- owed handlers (D01)

HANDLER = "  handlers:\n    - {name: reload x, command: echo reload}\n    - {name: other, command: echo other}\n"


def owed_in(folder: Path) -> dict[str, list[str]]:
    """What the files say, by host."""
    found: dict[str, list[str]] = {}
    for path in folder.glob("*"):
        for host, keys in json.loads(path.read_text("utf-8"))["owed"].items():
            found.setdefault(host, []).extend(keys)
    return found


def owed_book(command: str, changed: str) -> str:
    return book(f"{{name: config, command: 'true', changed_when: {changed}, notify: reload x}}", f"{{name: later, command: '{command}'}}", head=HANDLER)


def test_a_handler_that_a_failure_left_undone_runs_in_the_next_run_once(tmp_path: Path) -> None:
    pending = tmp_path / "state" / "pending"
    first = play(tmp_path, owed_book("false", "true"), inventory=ONE, pending_dir=pending)
    assert first.of("h1") == ["config: changed", "later: failed"]
    assert [e.data["handlers"] for e in first.kinds("handlers.pending")] == [["reload x"]]
    assert owed_in(pending) == {"h1": ["reload x"]}
    second = play(tmp_path, owed_book("true", "false"), inventory=ONE, pending_dir=pending)
    assert second.of("h1") == ["config: ok", "later: changed", "reload x: changed"]
    assert owed_in(pending) == {}
    third = play(tmp_path, owed_book("true", "false"), inventory=ONE, pending_dir=pending)
    assert third.of("h1") == ["config: ok", "later: changed"]


def test_what_is_owed_waits_for_a_play_that_has_the_handler(tmp_path: Path) -> None:
    pending = tmp_path / "pending"
    play(tmp_path, owed_book("false", "true"), inventory=ONE, pending_dir=pending)
    play(tmp_path, book("{name: x, debug: {msg: a}}"), inventory=ONE, pending_dir=pending)
    assert owed_in(pending) == {"h1": ["reload x"]}


def test_a_handler_that_fails_is_still_owed(tmp_path: Path) -> None:
    pending = tmp_path / "pending"
    text = book("{name: config, command: 'true', notify: bad}", head="  handlers:\n    - {name: bad, command: 'false'}\n    - {name: good, debug: {msg: a}}\n")
    played = play(tmp_path, text, inventory=ONE, pending_dir=pending)
    assert played.of("h1") == ["config: changed", "bad: failed"]
    assert owed_in(pending) == {"h1": ["bad"]}


def test_check_mode_leaves_the_file_of_owed_handlers_alone(tmp_path: Path) -> None:
    pending = tmp_path / "pending"
    play(tmp_path, owed_book("false", "true"), inventory=ONE, pending_dir=pending)
    before = [path.read_bytes() for path in pending.iterdir()]
    played = play(tmp_path, owed_book("true", "false"), inventory=ONE, pending_dir=pending, check=True)
    assert "reload x: skipped" in played.of("h1")
    assert [path.read_bytes() for path in pending.iterdir()] == before
    fresh = play(tmp_path, owed_book("false", "true"), inventory=ONE, pending_dir=tmp_path / "none", check=True)
    assert fresh.kinds("handlers.pending") == []
    assert not (tmp_path / "none").exists()


def test_a_lost_host_owes_its_handlers(tmp_path: Path) -> None:
    pending = tmp_path / "pending"
    play(tmp_path, owed_book("true", "true"), inventory=ONE, pending_dir=pending, connections=FakeConnections(dies={"h1": 1}))
    assert owed_in(pending) == {"h1": ["reload x"]}


@pytest.mark.parametrize("text", ["", "[]", "{", '{"owed": [1]}', '{"owed": {"h1": 3}}'])
def test_a_damaged_file_of_owed_handlers_is_refused_before_anything_runs(tmp_path: Path, text: str) -> None:
    pending = tmp_path / "pending"
    pending.mkdir()
    (pending / "local.json").write_text(text)
    with pytest.raises(Mistakes, match=r"pending/local\.json"):
        play(tmp_path, book("{name: x, command: 'true'}"), inventory=ONE, pending_dir=pending)


def test_what_is_owed_stands_in_the_file_before_the_task_is_sent_and_until_its_handler_ran(tmp_path: Path) -> None:
    """A controller that is killed writes nothing any more."""
    pending = tmp_path / "pending"
    seen: list[tuple[str, dict[str, list[str]]]] = []

    def look(host: str, step: Step) -> Outcome | None:
        seen.append((str(step.args.get("cmd") or step.args.get("_raw_params") or step.args), owed_in(pending)))
        return None

    play(tmp_path, owed_book("echo later", "true"), inventory=ONE, pending_dir=pending, connections=FakeConnections(script=look))
    assert [owed for _, owed in seen] == [{"h1": ["reload x"]}] * 3
    assert owed_in(pending) == {}


def test_a_task_that_changed_nothing_owes_nothing(tmp_path: Path) -> None:
    pending = tmp_path / "pending"
    play(tmp_path, owed_book("false", "false"), inventory=ONE, pending_dir=pending)
    assert owed_in(pending) == {}


def test_a_task_whose_answer_was_lost_may_have_changed_what_it_notifies_of(tmp_path: Path) -> None:
    pending = tmp_path / "pending"

    def dies(host: str, step: Step) -> Outcome | None:
        raise Lost("no byte for 20 s")

    played = play(tmp_path, owed_book("true", "true"), inventory=ONE, pending_dir=pending, connections=FakeConnections(script=dies))
    assert [event.data["handlers"] for event in played.kinds("handlers.pending")] == [["reload x"]]
    assert owed_in(pending) == {"h1": ["reload x"]}


def test_an_unreachable_host_owes_nothing(tmp_path: Path) -> None:
    pending = tmp_path / "pending"
    played = play(tmp_path, owed_book("true", "true"), inventory=ONE, pending_dir=pending, connections=FakeConnections(down=["h1"]))
    assert played.kinds("handlers.pending") == []
    assert owed_in(pending) == {}


def test_a_node_is_its_address_and_not_its_name(tmp_path: Path) -> None:
    """Two inventories may call different nodes n1; and a node that got another name still owes what it owed."""
    pending = tmp_path / "pending"

    def inventory(name: str, address: str) -> str:
        return f"[all]\n{name} ansible_host={address} ansible_user=ops\n"

    def run(name: str, address: str, command: str) -> list[str]:
        return play(tmp_path, owed_book(command, str(command == "false")), inventory=inventory(name, address), pending_dir=pending).of(name)

    run("n1", "10.0.0.1", "false")
    assert run("n1", "10.9.9.9", "true") == ["config: ok", "later: changed"]
    assert run("gpu1", "10.0.0.1", "true") == ["config: ok", "later: changed", "reload x: changed"]
    assert owed_in(pending) == {}


def test_names_of_one_node_owe_each_for_itself(tmp_path: Path) -> None:
    pending = tmp_path / "pending"
    play(tmp_path, owed_book("false", "inventory_hostname == 'h1'"), pending_dir=pending)
    assert owed_in(pending) == {"h1": ["reload x"]}
    second = play(tmp_path, owed_book("true", "false"), pending_dir=pending)
    assert "reload x: changed" in second.of("h1")
    assert "reload x: changed" not in second.of("h2")


def test_a_folder_that_cannot_be_written_is_told_and_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    played = play(tmp_path, owed_book("true", "true"), inventory=ONE, pending_dir=tmp_path / "file" / "pending")
    assert played.of("h1") == ["config: changed", "later: changed", "reload x: changed"]
    assert any("nobody will know that local owes the handlers: reload x" in event.data["text"] for event in played.kinds("warning"))


def test_a_templated_name_that_means_no_handler_fails_the_task(tmp_path: Path) -> None:
    played = play(tmp_path, book("{name: change, command: 'true', notify: 'restart {{ svc }}', vars: {svc: web}}", head=HANDLER), inventory=ONE)
    assert played.of("h1") == ["change: failed"]
    assert "restart web" in played.kinds("task.end")[0].data["result"]["msg"]


# -- secrets

SECRET = "hunter2-hunter2"


def all_text(played: Any) -> str:
    return json.dumps([event.to_json() for event in played.events])


def test_a_typed_secret_reaches_the_node_and_no_event(tmp_path: Path) -> None:
    text = book("{name: say, command: 'echo {{ pw }}', register: r}", "{name: whole, command: {argv: [echo, '{{ pw }}']}, register: w}", "{name: show, debug: {var: w}}")
    played = play(tmp_path, text, inventory=ONE, extra_vars={"pw": Secret(SECRET)})
    assert [step.args.get("argv") for _, step in played.connections.steps][1] == ["echo", SECRET]
    assert played.result.exit_code == 0
    assert SECRET not in all_text(played)
    assert MASK in all_text(played)


def test_a_template_file_gets_the_secret_in_clear_and_the_diff_does_not(tmp_path: Path) -> None:
    dest = tmp_path / "out.conf"
    text = book(f"{{name: conf, template: {{src: s.j2, dest: '{dest}', mode: '0600'}}}}")
    played = play(tmp_path, text, inventory=ONE, files={"s.j2": "key={{ pw }}\n"}, extra_vars={"pw": Secret(SECRET)}, diff=True)
    assert dest.read_text() == f"key={SECRET}\n"
    assert SECRET not in all_text(played)


def test_no_log_hides_result_items_and_diff_but_not_the_variable(tmp_path: Path) -> None:
    text = book(
        "{name: quiet, command: 'echo {{ item }}', loop: [hiddenword], register: r, no_log: true}",
        "{name: used, assert: {that: \"r.results[0].stdout == 'hidden' ~ 'word'\", quiet: true}}",
    )
    played = play(tmp_path, text, inventory=ONE)
    assert played.of("h1") == ["quiet: changed", "used: ok"]
    ends = [json.dumps(event.data) for event in played.events if event.kind in ("task.end", "task.item") and event.data["task"] == "quiet"]
    assert "hiddenword" not in "".join(ends)
    assert "no_log" in "".join(ends)


def test_text_from_a_node_is_never_a_template(tmp_path: Path) -> None:
    text = book("{name: evil, command: \"echo {{ '{{' }} 7 * 7 {{ '}}' }}\", register: r}", "{name: keep, set_fact: {kept: '{{ r.stdout }}'}}", "{name: show, debug: {msg: '{{ kept }}'}}")
    played = play(tmp_path, text, inventory=ONE)
    assert played.kinds("task.end")[-1].data["result"]["msg"] == "{{ 7 * 7 }}"


# -- many hosts

MANY = "[all]\n" + "".join(f"h{number}\n" for number in range(1, 9)) + "[all:vars]\nansible_connection=local\n"


def slow(host: str, step: Step) -> Outcome:
    time.sleep(0.02)
    return Outcome()


@pytest.mark.parametrize(("forks", "most"), [(1, 1), (3, 3), (16, 8)])
def test_no_more_hosts_at_a_time_than_forks(tmp_path: Path, forks: int, most: int) -> None:
    connections = FakeConnections(script=slow)
    play(tmp_path, book("{name: a, ping: {}}"), inventory=MANY, connections=connections, forks=forks)
    assert 1 <= connections.most_running <= most


@pytest.mark.parametrize("strategy", ["linear", "free"])
@pytest.mark.parametrize(("throttle", "most"), [("1", 1), ("'{{ 2 }}'", 2), ("0", 8), ("'{{ none_of_ours }}'", 1)])
def test_no_more_hosts_at_a_time_than_throttle(tmp_path: Path, strategy: str, throttle: str, most: int) -> None:
    connections = FakeConnections(script=slow)
    text = book(f"{{name: a, ping: , throttle: {throttle}}}").replace("gather_facts: false", f"gather_facts: false\n  strategy: {strategy}")
    played = play(tmp_path, text, inventory=MANY, connections=connections)
    assert set(played.result.status.values()) == {"ok"}
    assert connections.most_running == most if most < 8 else connections.most_running > 2
    assert [event.data["text"].startswith("throttle cannot be read") for event in played.kinds("warning")] == ([True] if "none" in throttle else [])


def test_linear_ends_a_task_everywhere_before_the_next_begins(tmp_path: Path) -> None:
    connections = FakeConnections(script=slow)
    play(tmp_path, book("{name: a, ping: {}}", "{name: b, stat: {path: /}}", "{name: c, command: 'true'}"), inventory=MANY, connections=connections)
    modules = [step.module for _, step in connections.steps]
    assert modules == sorted(modules, key=["ping", "stat", "command"].index)


def test_events_come_from_one_thread_at_a_time(tmp_path: Path) -> None:
    played = play(tmp_path, book("{name: a, command: 'true', loop: [1, 2, 3]}", head="  strategy: free\n"), inventory=MANY)
    assert len(played.kinds("task.item")) == 24
    assert all(isinstance(event.to_json(), dict) for event in played.events)


def test_hostvars_of_other_hosts_are_rendered_as_theirs(tmp_path: Path) -> None:
    inventory = "[all]\nh1 port=1\nh2 port=2\n[all:vars]\nansible_connection=local\nurl='http://{{ inventory_hostname }}:{{ port }}'\n"
    text = book(
        "{name: mine, set_fact: {mine: '{{ port }}'}}",
        "{name: all, set_fact: {urls: \"{{ groups['all'] | map('extract', hostvars, 'url') | list }}\", seen: \"{{ hostvars['h2'].mine }}\"}}",
    )
    played = play(tmp_path, text, inventory=inventory)
    known = played.result.variables("h1")
    assert known["urls"] == ["http://h1:1", "http://h2:2"]
    assert str(known["seen"]) == "2"


@pytest.mark.parametrize("shown", ["hostvars", "hostvars[inventory_hostname]", "vars", "groups"])
def test_what_holds_everything_can_be_shown(tmp_path: Path, shown: str) -> None:
    text = book(f"{{name: a, debug: {{var: '{shown}'}}}}", f"{{name: b, set_fact: {{kept: '{{{{ {shown} }}}}'}}}}", "{name: c, debug: {var: kept}}")
    played = play(tmp_path, text)
    assert played.of("h1") == ["a: ok", "b: ok", "c: ok"]
    assert "h2" in all_text(played)


def test_run_once_takes_the_next_host_when_the_first_is_unreachable(tmp_path: Path) -> None:
    played = play(tmp_path, book("{name: once, command: echo x, run_once: true, register: r}", "{name: all, assert: {that: r.stdout == 'x'}}"), connections=FakeConnections(["h1"]))
    assert played.of("h2") == ["once: changed", "all: ok"]
    assert played.result.status == {"h1": "unreachable", "h2": "ok"}


def test_run_once_that_holds_nowhere_is_said(tmp_path: Path) -> None:
    played = play(tmp_path, book("{name: once, debug: {msg: a}, run_once: true, when: false}"))
    assert [event for event in played.kinds("warning") if "ran on none" in event.data["text"]]


# -- places, settings, check mode


def test_facts_are_gathered_unless_said_otherwise_and_reach_variables(tmp_path: Path) -> None:
    def facts(host: str, step: Step) -> Outcome | None:
        return Outcome(facts={"ansible_distribution": "Debian", "ansible_memtotal_mb": 4}) if step.module == "setup" else None

    text = "- hosts: all\n  gather_subset: [min]\n  tasks:\n    - {name: use, assert: {that: [ansible_distribution == 'Debian', ansible_facts.memtotal_mb == 4]}}\n"
    played = play(tmp_path, text, inventory=ONE, connections=FakeConnections(script=facts))
    assert played.of("h1") == ["Gathering Facts: ok", "use: ok"]
    assert played.connections.steps[0][1].args["gather_subset"] == ["min"]
    assert played.result.variables("h1")["ansible_distribution"] == "Debian"


BECOME = [
    # play, task, inventory variable, command line -> user
    ("", "", "", {}, ""),
    ("become: true", "", "", {}, "root"),
    ("become: true", "become: false", "", {}, ""),
    ("", "become: true, become_user: '{{ who }}'", "", {}, "app"),
    ("", "", "ansible_become=true ansible_become_user=db", {}, "db"),
    ("become: true", "", "ansible_become=false", {}, ""),
    ("", "", "", {"become": True, "become_user": "op"}, "op"),
]


@pytest.mark.parametrize(("of_play", "of_task", "variable", "options", "user"), BECOME)
def test_become(tmp_path: Path, of_play: str, of_task: str, variable: str, options: dict[str, Any], user: str) -> None:
    inventory = f"[all]\nh1 ansible_host=10.0.0.1 ansible_user=ops who=app {variable}\n"
    task = "{name: x, ping: {}" + (f", {of_task}" if of_task else "") + "}"
    played = play(tmp_path, book(task, head=f"  {of_play}\n" if of_play else ""), inventory=inventory, **options)
    assert played.connections.becomes == [("h1", user)]


def test_becoming_who_one_already_is_needs_no_sudo(tmp_path: Path) -> None:
    inventory = "[all]\nh1 ansible_host=10.0.0.1 ansible_user=root\n"
    assert play(tmp_path, book("{name: x, ping: {}, become: true}"), inventory=inventory).connections.becomes == [("h1", "")]


def test_keywords_travel_with_the_step(tmp_path: Path) -> None:
    text = book(
        "{name: a, command: 'true', environment: {A: '{{ 1 }}'}, timeout: 7, check_mode: true, diff: true}", "{name: b, command: 'true'}", head="  environment: {B: b, A: play}\n"
    )
    steps = [step for _, step in play(tmp_path, text, inventory=ONE).connections.steps]
    assert (steps[0].environment, steps[0].timeout, steps[0].check, steps[0].diff) == ({"B": "b", "A": "1"}, 7.0, True, True)
    assert (steps[1].environment, steps[1].timeout, steps[1].check, steps[1].diff) == ({"B": "b", "A": "play"}, 3600.0, False, False)


def test_a_step_that_neither_ends_nor_is_ended_is_a_lost_host(tmp_path: Path) -> None:
    def hang(host: str, step: Step) -> Outcome | None:
        raise TimeoutError

    played = play(tmp_path, book("{name: x, ping: {}, timeout: 1}"), inventory=ONE, connections=FakeConnections(script=hang))
    assert played.result.status == {"h1": "lost"}
    assert "did not end within 1 s" in played.kinds("host.lost")[0].data["reason"]


def test_a_failure_names_its_place(tmp_path: Path) -> None:
    played = play(tmp_path, book("{name: x, file: {path: /tmp/x, state: '{{ bad }}'}, vars: {bad: lost}}"), inventory=ONE)
    end = played.kinds("task.end")[0]
    assert end.data["status"] == "failed"
    assert end.data["origin"].rpartition("/")[2].startswith("site.yml:4:")
    assert "state" in end.data["result"]["msg"]
    assert played.connections.steps == []


def test_a_mode_given_as_a_decimal_number_never_reaches_the_node(tmp_path: Path) -> None:
    played = play(tmp_path, book(f"{{name: x, file: {{path: {tmp_path}/x, state: touch, mode: '{{{{ m }}}}'}}, vars: {{m: 644}}}}"), inventory=ONE)
    assert played.of("h1") == ["x: failed"]
    assert not (tmp_path / "x").exists()


def test_octal_in_the_yaml_is_octal_text_for_the_node(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    play_it = play(tmp_path, book(f"{{name: x, file: {{path: {tmp_path}/x, mode: 0640}}}}"), inventory=ONE)
    assert play_it.result.exit_code == 0
    assert (tmp_path / "x").stat().st_mode & 0o7777 == 0o640


def test_ignore_unreachable_lets_a_host_go_on(tmp_path: Path) -> None:
    played = play(tmp_path, book("{name: x, ping: {}, ignore_unreachable: true, register: r}", "{name: y, assert: {that: r.unreachable}}"), inventory=ONE, connections=FakeConnections(["h1"]))
    assert played.of("h1") == ["x: ignored", "y: ok"]
    assert played.result.status == {"h1": "ok"}


UNREADABLE = [
    ("{name: x, command: 'false', ignore_errors: '{{ nothing }}'}", "nothing"),
    ("{name: x, command: 'false', ignore_errors: perhaps}", "true or false"),
    ("{name: x, command: 'true', no_log: '{{ nothing }}'}", "nothing"),
    ("{name: x, command: 'true', timeout: '{{ nothing }}'}", "nothing"),
    ("{name: x, command: 'true', timeout: soon}", "number"),
    ("{name: x, command: 'true', environment: '{{ [1] }}'}", "environment"),
    ("{name: x, command: 'true', become: '{{ nothing }}'}", "nothing"),
    ("{name: x, command: 'true', delegate_to: '{{ nothing }}'}", "nothing"),
    ("{name: x, command: 'true', changed_when: '{{ nothing }}'}", "nothing"),
    ("{name: x, command: 'true', failed_when: nothing.x}", "nothing"),
    ("{name: x, command: 'true', until: nothing.x, delay: 0}", "nothing"),
    ("{name: x, command: 'true', retries: many, until: true}", "number"),
    ("{name: x, command: 'true', notify: '{{ nothing }}'}", "nothing"),
    ("{name: x, command: 'true', when: nothing}", "nothing"),
    ("{name: x, command: 'true', loop: '{{ nothing }}'}", "nothing"),
    ("{name: '{{ nothing }}', command: '{{ nothing }}'}", "nothing"),
    ("{name: x, meta: noop, when: nothing}", "nothing"),
]


@pytest.mark.parametrize(("task", "said"), UNREADABLE, ids=[one[0][9:60] for one in UNREADABLE])
def test_a_keyword_that_cannot_be_read_is_the_tasks_failure_and_no_bug(tmp_path: Path, task: str, said: str) -> None:
    try:
        played = play(tmp_path, book(task), inventory=ONE)
    except Mistakes as mistakes:  # found at load already: better still
        told, status = str(mistakes), "failed"
    else:
        told, status = played.kinds("task.end")[-1].data["result"]["msg"], played.result.status["h1"]
    assert status == "failed"
    assert any(word in told for word in (said, "must be", "expected"))


def test_ignore_unreachable_that_cannot_be_read_ignores_nothing(tmp_path: Path) -> None:
    played = play(tmp_path, book("{name: x, ping: {}, ignore_unreachable: '{{ nothing }}'}"), inventory=ONE, connections=FakeConnections(["h1"]))
    assert played.result.status == {"h1": "unreachable"}


def test_the_text_false_is_no_answer(tmp_path: Path) -> None:
    played = play(tmp_path, book("{name: x, command: 'true', when: wipe}"), inventory=ONE, extra_vars={"wipe": "false"})
    assert played.of("h1") == ["x: failed"]
    assert "wipe" in played.kinds("task.end")[0].data["result"]["msg"]


def test_max_fail_percentage_stops_at_more_than_its_share(tmp_path: Path) -> None:
    text = book("{name: x, fail: {msg: a}, when: \"inventory_hostname in ['h1', 'h2']\"}", "{name: y, debug: {msg: a}}", head="  max_fail_percentage: {}\n")
    within = play(tmp_path, text.replace("{}\n", "25\n", 1), inventory=MANY)
    assert within.result.status["h3"] == "ok"
    over = play(tmp_path, text.replace("{}\n", "24\n", 1), inventory=MANY)
    assert over.of("h3") == ["x: skipped"]
    assert over.result.status["h3"] == "stopped"
    assert "more than 24 %" in over.kinds("host.stopped")[0].data["reason"]


def test_start_at_task_leaves_out_what_stands_before(tmp_path: Path) -> None:
    text = book("{name: a, debug: {msg: a}}", "{name: b, debug: {msg: a}}", "{name: c, debug: {msg: a}}")
    assert play(tmp_path, text, inventory=ONE, start_at_task="b").of("h1") == ["b: ok", "c: ok"]


def test_limit_leaves_other_hosts_alone(tmp_path: Path) -> None:
    played = play(tmp_path, book("{name: a, ping: {}}"), limit="h2")
    assert {host for host, _ in played.connections.steps} == {"h2"}
    assert played.result.status == {"h2": "ok"}


REFUSED = [
    ({"tags": ("disk",)}, "E401", "disks"),
    ({"skip_tags": ("dosks",)}, "E401", "disks"),
    ({"start_at_task": "b"}, "E402", ""),
    ({"limit": "h9"}, "E304", "h9"),
]


@pytest.mark.parametrize(("options", "code", "near"), REFUSED)
def test_refused_before_any_connection(tmp_path: Path, options: dict[str, Any], code: str, near: str) -> None:
    connections = FakeConnections()
    with pytest.raises(Mistakes) as caught:
        play(tmp_path, book("{name: a, ping: {}, tags: disks}"), connections=connections, **options)
    assert [one.code for one in caught.value.diagnostics] == [code]
    assert near in caught.value.diagnostics[0].help + caught.value.diagnostics[0].message
    assert connections.steps == []


@pytest.mark.parametrize("head", ["serial: many", "serial: '{{ nothing }}'", "max_fail_percentage: some", "serial: [1, -2]"])
def test_numbers_of_a_play_are_read_before_any_connection(tmp_path: Path, head: str) -> None:
    connections = FakeConnections()
    with pytest.raises(Mistakes):
        play(tmp_path, book("{name: a, ping: {}}", head=f"  {head}\n"), connections=connections)
    assert connections.steps == []


def test_a_tag_inside_a_dynamic_include_is_known(tmp_path: Path) -> None:
    files = {"more.yml": "- {name: deep, debug: {msg: a}, tags: deep}\n"}
    played = play(tmp_path, book("{name: in, include_tasks: more.yml, tags: always}", "{name: out, debug: {msg: a}}"), inventory=ONE, files=files, tags=("deep",))
    assert played.of("h1") == ["in: ok", "deep: ok"]


def test_an_interrupt_closes_the_connections_and_keeps_what_is_owed(tmp_path: Path) -> None:
    pending = tmp_path / "pending"
    seen = threading.Event()

    def interrupt(host: str, step: Step) -> Outcome | None:
        if seen.is_set():
            raise KeyboardInterrupt
        seen.set()
        return None

    connections = FakeConnections(script=interrupt)
    with pytest.raises(KeyboardInterrupt):
        play(tmp_path, owed_book("true", "true"), inventory=ONE, pending_dir=pending, connections=connections)
    assert connections.closed
    assert owed_in(pending) == {"h1": ["reload x"]}


def test_a_delegate_that_was_lost_is_not_asked_again(tmp_path: Path) -> None:
    def dies(host: str, step: Step) -> Outcome | None:
        if host == "h2":
            raise Lost("gone")
        return None

    text = book("{name: a, ping: {}}", "{name: b, ping: {}, delegate_to: h2}")
    played = play(tmp_path, text, connections=FakeConnections(script=dies))
    assert played.result.status == {"h1": "failed", "h2": "lost"}
    assert [host for host, _ in played.connections.steps].count("h2") == 1


@pytest.mark.parametrize("task", [
    "{name: t, debug: {msg: a}, when: \"'x' in r.stdout\"}", "{name: t, debug: {msg: a}, loop: '{{ r.stdout_lines }}'}", "{name: t, debug: {msg: '{{ r.rc }}'}}",
])  # fmt: skip
def test_the_empty_output_of_a_command_that_was_not_run_is_called_unknown_and_not_false(tmp_path: Path, task: str) -> None:
    played = play(tmp_path, book("{name: c, command: echo x, register: r}", task), inventory=ONE, check=True)
    told = next(event.data["result"] for event in played.kinds("task.end") if event.data["task"] == "t")
    assert told["skip_reason"] == "cannot be known in check mode"
    assert "'r' comes of a command that check mode does not run" in told["msg"]
    assert played.result.exit_code == 0


def test_hostvars_can_be_written_as_json(tmp_path: Path) -> None:
    played = play(tmp_path, book("{name: all, debug: {msg: '{{ hostvars[inventory_hostname] | to_json | length > 2 }}'}}", "{name: m, debug: {msg: '{{ x | default(omit) }}'}}"), inventory=ONE)
    assert played.of("h1") == ["all: ok", "m: ok"]
