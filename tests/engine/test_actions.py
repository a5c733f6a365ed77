"""The controller's halves of modules, through the agent's own code on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nodectl.diagnostics.model import Mistakes
from nodectl.transport.channel import BecomeTarget, Target, Unreachable
from nodectl.wire.outcome import Outcome
from nodectl.wire.step import Step
from tests.engine.fakes import FakeChannel, FakeConnections
from tests.engine.playing import Played, play, write_tree
from tests.engine.test_run import ONE, book


def last(played: Played) -> dict[str, Any]:
    result: dict[str, Any] = played.kinds("task.end")[-1].data["result"]
    return result


def put(tmp_path: Path, task: str, **options: Any) -> Played:
    """One task with DEST replaced by a folder that exists."""
    (tmp_path / "dest").mkdir(exist_ok=True)
    return play(tmp_path, book("{name: x, " + task.replace("DEST", str(tmp_path / "dest")) + "}"), inventory=ONE, **options)


# -- copy

COPIES = [
    # task, files beside the playbook, what stands at the destination
    ("copy: {src: a.txt, dest: DEST/}", {"files/a.txt": "A"}, {"a.txt": "A"}),
    ("copy: {src: a.txt, dest: DEST}", {"files/a.txt": "A"}, {"a.txt": "A"}),
    ("copy: {src: a.txt, dest: DEST/b.txt}", {"a.txt": "A"}, {"b.txt": "A"}),
    ("copy: {content: 'text', dest: DEST/c}", {}, {"c": "text"}),
    ("copy: {content: {a: 1}, dest: DEST/c}", {}, {"c": '{"a": 1}'}),
    ("copy: {src: tree, dest: DEST}", {"files/tree/x": "X", "files/tree/sub/y": "Y"}, {"tree/x": "X", "tree/sub/y": "Y"}),
    ("copy: {src: tree/, dest: DEST}", {"files/tree/x": "X", "files/tree/sub/y": "Y"}, {"x": "X", "sub/y": "Y"}),
]


@pytest.mark.parametrize(("task", "files", "there"), COPIES, ids=[copy[0][6:50] for copy in COPIES])
def test_copy_puts_it_there_and_then_finds_it_there(tmp_path: Path, task: str, files: dict[str, str], there: dict[str, str]) -> None:
    assert put(tmp_path, task, files=files).of("h1") == ["x: changed"]
    assert {name: (tmp_path / "dest" / name).read_text() for name in there} == there
    assert put(tmp_path, task, files=files).of("h1") == ["x: ok"]


def test_copy_in_check_mode_writes_nothing_and_shows_the_difference(tmp_path: Path) -> None:
    played = put(tmp_path, "copy: {content: 'new', dest: DEST/c}", check=True, diff=True)
    assert played.of("h1") == ["x: changed"]
    assert list((tmp_path / "dest").iterdir()) == []
    assert played.kinds("task.end")[0].data["diff"][0]["after"] == "new"


def test_a_large_file_that_is_there_is_not_sent_again(tmp_path: Path) -> None:
    large = "x" * 300_000
    sent = []

    def watch(host: str, step: Step) -> Outcome | None:
        sent.append(dict(step.blobs))
        return None

    for _ in range(2):
        put(tmp_path, "copy: {src: big, dest: DEST/big}", files={"files/big": large}, connections=FakeConnections(script=watch))
    assert (tmp_path / "dest" / "big").read_text() == large
    # First run: the question, then the bytes. Second run: the question alone.
    assert [bool(blobs) for blobs in sent] == [False, True, False]


def test_copy_names_every_place_it_looked_at(tmp_path: Path) -> None:
    played = put(tmp_path, "copy: {src: \"{{ 'missing' }}.txt\", dest: DEST/}")
    assert played.of("h1") == ["x: failed"]
    assert "files/missing.txt" in last(played)["msg"]


def test_copy_refuses_a_source_with_another_checksum(tmp_path: Path) -> None:
    played = put(tmp_path, "copy: {src: a, dest: DEST/a, checksum: '0000'}", files={"files/a": "A"})
    assert "checksum" in last(played)["msg"]
    assert not (tmp_path / "dest" / "a").exists()


def test_mode_preserve_takes_the_mode_of_the_source(tmp_path: Path) -> None:
    write_tree(tmp_path, {"files/run": "#!/bin/sh\n"})
    (tmp_path / "files" / "run").chmod(0o750)
    put(tmp_path, "copy: {src: run, dest: DEST/run, mode: preserve}")
    assert (tmp_path / "dest" / "run").stat().st_mode & 0o777 == 0o750


# -- template

TEMPLATES = [
    ("n={{ n }}\n", "n=3\n"),
    ("A {% if n %}yes{% else %}no{% endif %}\nB 1\n", "A yesB 1\n"),
    ("{% for i in [1, 2] %}\n{{ i }}\n{% endfor %}\n", "1\n2\n"),
    ("no newline at the end", "no newline at the end"),
    ("{{ template_path.rpartition('/')[2] }} {{ inventory_hostname }}\n", "t.j2 h1\n"),
]


@pytest.mark.parametrize(("text", "expected"), TEMPLATES)
def test_template(tmp_path: Path, text: str, expected: str) -> None:
    put(tmp_path, "template: {src: t.j2, dest: DEST/t}, vars: {n: 3}", files={"templates/t.j2": text})
    assert (tmp_path / "dest" / "t").read_text() == expected


def test_template_names_what_is_undefined_and_its_file(tmp_path: Path) -> None:
    played = put(tmp_path, "template: {src: t.j2, dest: DEST/t}, vars: {port: 3}", files={"templates/t.j2": "x\n{{ prot }}\n"})
    assert played.of("h1") == ["x: failed"]
    assert "t.j2" in last(played)["msg"]
    assert "'prot'" in last(played)["msg"]
    assert "'port'" in last(played)["msg"]


def test_a_role_finds_its_own_files_first(tmp_path: Path) -> None:
    dest = tmp_path / "dest"
    dest.mkdir()
    files = {
        "templates/t.j2": "playbook", "roles/r/templates/t.j2": "role", "files/f": "playbook", "roles/r/files/f": "role",
        "roles/r/tasks/main.yml": f"- template: {{src: t.j2, dest: {dest}/t}}\n- copy: {{src: f, dest: {dest}/f}}\n- set_fact: {{got: \"{{{{ lookup('file', 'f') }}}}\"}}\n",
    }  # fmt: skip
    played = play(tmp_path, "- hosts: all\n  gather_facts: false\n  roles: [r]\n", inventory=ONE, files=files)
    assert ((dest / "t").read_text(), (dest / "f").read_text(), played.result.variables("h1")["got"]) == ("role", "role", "role")


# -- the small ones

SMALL = [
    ("assert: {that: [true, 1 == 2]}", "failed", "Assertion failed"),
    ("assert: {that: 1 == 2, fail_msg: no way}", "failed", "no way"),
    ("assert: {that: 1 == 1, success_msg: fine}", "ok", "fine"),
    ("assert: {that: nothing.here}", "failed", "nothing"),
    ("fail: {msg: 'because {{ 1 + 1 }}'}", "failed", "because 2"),
    ("debug: {msg: [1, 2]}", "ok", "[1, 2]"),
    ("debug: {var: nothing}", "ok", "VARIABLE IS NOT DEFINED!"),
    ("debug: {var: groups.all}", "ok", "h1"),
    ("debug: {msg: a, verbosity: 2}", "skipped", "Verbosity"),
    ("set_fact: {'not a name': 1}", "failed", "cannot be the name"),
    ("include_vars: missing.yml", "failed", "vars/missing.yml"),
    ("pause: {}", "failed", "nobody gives"),
    ("pause: {seconds: 0}", "ok", "0"),
    ("include_tasks: '{{ nope }}.yml'", "failed", "nope"),
    ("include_tasks: {file: '{{ 1 }}.yml'}", "failed", "1.yml is not there"),
    ("include_role: {name: '{{ x }}'}, vars: {x: nope}", "failed", "nope"),
    ("ping: {}, become: true, become_method: su", "failed", "sudo"),
    ("debug: {msg: a}, loop: 3", "failed", "wants a list"),
    ("debug: {msg: '{{ item }}'}, with_env: HOME", "ok", "All items completed"),
    ("debug: {msg: a}, with_first_found: [nope, nada]", "failed", "none of nope, nada exists"),
]


@pytest.mark.parametrize(("task", "status", "said"), SMALL, ids=[small[0][:40] for small in SMALL])
def test_small(tmp_path: Path, task: str, status: str, said: str) -> None:
    played = put(tmp_path, task)
    assert played.of("h1") == [f"x: {status}"]
    assert said in str(last(played))


def test_include_vars_of_a_folder_in_the_order_of_names(tmp_path: Path) -> None:
    files = {"vars/all/1.yml": "a: 1\nb: 1\n", "vars/all/2.yml": "b: 2\n", "vars/one.yml": "c: '{{ b }}'\n"}
    text = book("{include_vars: {dir: vars/all}}", "{include_vars: {file: one.yml, name: boxed}}", "{set_fact: {seen: '{{ [a, b, boxed.c] }}'}}")
    assert play(tmp_path, text, inventory=ONE, files=files).result.variables("h1")["seen"] == [1, 2, 2]


def test_fetch_puts_it_under_the_hosts_name_and_not_outside(tmp_path: Path) -> None:
    source = tmp_path / "node.conf"
    source.write_text("hello")
    text = book(f"{{name: x, fetch: {{src: {source}, dest: got}}}}")
    assert play(tmp_path, text, inventory=ONE).of("h1") == ["x: changed"]
    assert (tmp_path / "got" / "h1" / str(source).lstrip("/")).read_text() == "hello"
    assert play(tmp_path, text, inventory=ONE).of("h1") == ["x: ok"]
    outside = play(tmp_path, book("{name: x, fetch: {src: /../../../../etc/hostname, dest: got}}"), inventory=ONE)
    assert outside.of("h1") == ["x: failed"]


def test_wait_for_connection_tries_until_it_works(tmp_path: Path) -> None:
    tries = []

    def up_at_the_third(host: str, step: Step) -> Outcome | None:
        tries.append(step.module)
        if len(tries) < 3:
            raise Unreachable("refused", "port closed")
        return None

    text = book("{name: x, wait_for_connection: {timeout: 5, sleep: 0}}")
    assert play(tmp_path, text, inventory=ONE, connections=FakeConnections(script=up_at_the_third)).of("h1") == ["x: ok"]
    assert tries == ["ping"] * 3


def test_wait_for_connection_gives_up(tmp_path: Path) -> None:
    played = play(tmp_path, book("{name: x, wait_for_connection: {timeout: 0}}"), inventory=ONE, connections=FakeConnections(["h1"]))
    assert played.of("h1") == ["x: failed"]


# -- sshd_dropin: a fresh login decides

SSHD = "sshd_dropin: {settings: {MaxAuthTries: 3}}"
NODE = "[all]\nh1 ansible_host=10.0.0.1 ansible_user=ops\n"


class Sshd:
    """A node that answers as sshd_dropin does; ``login`` says whether a fresh login works, ``kept`` what was confirmed."""

    def __init__(self, pending: bool = True) -> None:
        self.pending = pending
        self.kept: list[bool] = []
        self.asked: dict[str, Any] = {}

    def __call__(self, host: str, step: Step) -> Outcome:
        if step.module == "command":
            return Outcome(values={"stdout": "10.0.0.9 5000 10.0.0.1 22", "rc": 0})
        if step.module == "sshd_dropin":
            self.asked = step.args
            return Outcome(changed=self.pending, values={"pending": self.pending})
        self.kept.append(step.args["keep"])
        return Outcome(msg="confirmed by a fresh login")


class NoFreshLogin(FakeConnections):
    def fresh(self, target: Any, become: object = None) -> Any:
        raise Unreachable("auth", "Permission denied (publickey)")


@pytest.mark.parametrize(
    ("works", "pending", "status", "kept", "logins"),
    [(True, True, "changed", [True], 1), (False, True, "failed", [False], 0), (True, False, "ok", [], 0)],
)
def test_sshd_settings_are_kept_only_after_a_fresh_login(tmp_path: Path, works: bool, pending: bool, status: str, kept: list[bool], logins: int) -> None:
    node = Sshd(pending)
    connections = FakeConnections(script=node) if works else NoFreshLogin(script=node)
    played = play(tmp_path, book("{name: x, " + SSHD + "}"), inventory=NODE, connections=connections)
    assert played.of("h1") == [f"x: {status}"]
    assert node.kept == kept
    assert len(connections.fresh_logins) == logins
    assert (node.asked["login_user"], node.asked["login_address"]) == ("ops", "10.0.0.9")


BAD_HOSTS = [("n[1:2]", "not the name of one host"), ("n[1", "no host name"), ("' '", "not the name of one host")]


@pytest.mark.parametrize(("name", "told"), BAD_HOSTS)
def test_add_host_takes_one_name(tmp_path: Path, name: str, told: str) -> None:
    played = play(tmp_path, book(f"{{name: a, add_host: {{name: '{name.strip(chr(39))}'}}}}"))
    assert told in next(event.data["result"]["msg"] for event in played.kinds("task.end"))
    assert played.result.exit_code == 2


def test_an_added_host_is_reached_in_the_next_play_and_its_password_is_never_shown(tmp_path: Path) -> None:
    tasks = "{name: a, add_host: {name: 'new:2222', groups: fresh, ansible_host: 10.0.0.9, ansible_password: hunter2-long}}"
    text = book(tasks) + "- hosts: fresh\n  gather_facts: false\n  tasks: [{name: b, ping: }]\n"
    seen: list[Target] = []

    class Line(FakeConnections):
        def channel(self, target: Target, become: BecomeTarget | None = None) -> FakeChannel:
            seen.append(target)
            return super().channel(target, become)

    played = play(tmp_path, text, connections=Line())
    assert played.of("new") == ["b: ok"]
    assert {(one.host, one.address, one.port) for one in seen if one.host == "new"} == {("new", "10.0.0.9", 2222)}
    assert "hunter2" not in repr(played.events)


@pytest.mark.parametrize(("earlier", "code"), [("{add_host: {name: x, groups: later}}", 0), ("{ping: }", None)])
def test_only_what_a_task_may_add_is_left_for_the_run(tmp_path: Path, earlier: str, code: int | None) -> None:
    text = book(earlier) + "- hosts: latter:later\n  gather_facts: false\n  tasks: [{ping: }]\n"
    if code is None:
        with pytest.raises(Mistakes, match="later"):
            play(tmp_path, text)
    else:
        assert play(tmp_path, text).result.exit_code == code


# -- machine_profile

PROFILES = [
    # arguments, what nodectl_profile says of it
    ("{pci_ids: ['2330']}", {"name": "h100-sxm", "gpus": 8, "nvlinks": 18}),
    ("{gpu_names: ['NVIDIA GB200'], pci_ids: ['2330']}", {"name": "gb200", "imex": True}),
    ("{name: oci-bm-h100, pci_ids: ['2901'], bare_metal: false}", {"name": "oci-bm-h100", "hcas": 16, "hca_rate_gbps": 200.0, "nvme": 16}),
    ("{pci_ids: ['2901'], bare_metal: false}", {"name": "b200", "nvlinks": 18}),
    ("{pci_ids: ['ffff']}", {"name": ""}),
    ("{}", {"name": "", "summary": ""}),
]


@pytest.mark.parametrize(("args", "said"), PROFILES, ids=[row[0] for row in PROFILES])
def test_the_profile_of_a_machine(tmp_path: Path, args: str, said: dict[str, Any]) -> None:
    played = play(tmp_path, book(f"{{name: x, machine_profile: {args}}}"), inventory=ONE)
    found = played.result.variables("h1")["nodectl_profile"]
    assert {key: found.get(key) for key in said} == said
    assert ("gpus" in found) == ("gpus" in said or said["name"] in ("gb200", "oci-bm-h100"))


def test_a_profile_that_nobody_knows(tmp_path: Path) -> None:
    assert "nobody knows 'h100'" in last(put(tmp_path, "machine_profile: {name: h100}"))["msg"]
