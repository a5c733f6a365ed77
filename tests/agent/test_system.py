"""The hands: programs with every bound, files without a moment of half of them, mounts, probes."""

from __future__ import annotations

import io
import os
import threading
import time
from pathlib import Path

import pytest

from nodectl.agent import processes
from nodectl.agent.contract import Failed
from nodectl.agent.processes import KEEP, Stopper
from nodectl.agent.system import System, base_environment, parse_mountinfo
from tests.processes import gone


def test_run(system: System) -> None:
    done = system.run(["sh", "-c", "cat; echo err >&2; exit 3"], stdin=b"in")
    assert (done.rc, done.stdout, done.stderr) == (3, "in", "err\n")
    assert done.argv[0].endswith("/sh")


def test_run_says_where_it_looked(system: System) -> None:
    with pytest.raises(Failed, match=r"program not found: no-such-thing .looked in /usr/local/sbin:") as caught:
        system.run(["no-such-thing"])
    assert caught.value.values["rc"] == 2


@pytest.mark.parametrize(("argv", "cwd", "words"), [(["/nonexistent/x"], "", "program not found: /nonexistent/x"), (["true"], "/nonexistent", "there is no such folder")])
def test_run_cannot_start(system: System, argv: list[str], cwd: str, words: str) -> None:
    with pytest.raises(Failed, match=words):
        system.run(argv, cwd=cwd)


def test_a_file_that_is_no_program(system: System, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("no program")
    with pytest.raises(Failed, match=r"cannot run .*Permission denied"):
        system.run([str(tmp_path / "x")])


def test_killed_by_a_signal_is_a_negative_code(system: System) -> None:
    assert system.run(["sh", "-c", "kill -9 $$"]).rc == -9


def test_timeout_ends_the_whole_group(system: System, tmp_path: Path) -> None:
    began = time.monotonic()
    with pytest.raises(Failed, match=r"did not end within 0.3 s") as caught:
        system.run(["sh", "-c", f"echo said; sleep 50 & echo $! > {tmp_path}/pid; wait"], timeout=0.3)
    assert time.monotonic() - began < 4
    assert caught.value.values["stdout"] == "said\n"
    pid = int((tmp_path / "pid").read_text())
    assert gone(pid)


def test_a_program_that_leaves_a_child_on_the_pipe(system: System, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "LINGER", 0.2)
    began = time.monotonic()
    done = system.run(["sh", "-c", "sleep 20 & echo started"], timeout=15)
    assert done.stdout == "started\n"
    assert time.monotonic() - began < 5, "the daemon holds the pipe; it must not hold us"


def test_large_output_keeps_both_ends(system: System) -> None:
    done = system.run(["sh", "-c", "echo first; head -c 3000000 /dev/zero | tr '\\0' x; echo; echo last"])
    assert done.stdout.startswith("first\n")
    assert done.stdout.endswith("\nlast\n")
    assert len(done.stdout) < KEEP + 200
    assert done.dropped_stdout == 3000000 + len("first\n\nlast\n") - KEEP
    assert f"{done.dropped_stdout} bytes left out here" in done.stdout
    assert done.dropped_stderr == 0


def test_large_output_on_both_streams_without_text_and_without_an_end(system: System) -> None:
    each = 3_000_000
    done = system.run(["sh", "-c", f"head -c {each} /dev/zero; head -c {each} /dev/zero | tr '\\0' '\\377' >&2; exit 7"])
    assert done.rc == 7
    assert (done.dropped_stdout, done.dropped_stderr) == (each - KEEP, each - KEEP)
    assert (done.stdout.count("\0"), done.stderr.count("\ufffd")) == (KEEP, KEEP)


def test_exactly_the_limit_drops_nothing(system: System) -> None:
    done = system.run(["head", "-c", str(KEEP), "/dev/zero"])
    assert (len(done.stdout), done.dropped_stdout) == (KEEP, 0)


def test_large_input_to_a_program_that_does_not_read(system: System) -> None:
    assert system.run(["true"], stdin=b"x" * 5_000_000).rc == 0


def test_large_input_comes_through(system: System) -> None:
    assert system.run(["wc", "-c"], stdin=b"x" * 3_000_000).stdout.strip() == "3000000"


def test_broken_utf8_is_kept_readable(system: System) -> None:
    assert system.run(["printf", "a\\377b"]).stdout == "a\ufffdb"


def test_stop_from_another_thread() -> None:
    stopper = Stopper()
    threading.Timer(0.2, stopper.stop, ["cancelled"]).start()
    with pytest.raises(Failed, match=r"^cancelled$"):
        System(stopper=stopper).run(["sleep", "50"])
    with pytest.raises(Failed, match=r"^cancelled$"):
        System(stopper=stopper).run(["true"])


def test_the_first_reason_stays() -> None:
    stopper = Stopper()
    stopper.stop("first")
    stopper.stop("second")
    with pytest.raises(Failed, match=r"^first$"):
        System(stopper=stopper).sleep(50)


def test_environment() -> None:
    login = {"PATH": "/evil", "HOME": "/root", "http_proxy": "http://p", "PYTHONPATH": "/x", "LC_MESSAGES": "de_DE", "BASH_ENV": "/rc", "LD_PRELOAD": "/x.so"}
    base = base_environment(login)
    assert base == {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "HOME": "/root", "http_proxy": "http://p"}
    assert System({"A": "task"}).run(["sh", "-c", "echo $A$B"], env={"B": "call"}).stdout == "taskcall\n"


def test_which_looks_where_the_step_says(tmp_path: Path) -> None:
    program = tmp_path / "mine"
    program.write_text("#!/bin/sh\necho mine\n")
    assert System().which("mine") is None
    program.chmod(0o755)
    system = System({"PATH": str(tmp_path)})
    assert system.which("mine") == str(program)
    assert system.run(["mine"]).stdout == "mine\n"


def test_read(system: System, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"\0x")
    assert system.read(str(tmp_path / "f")) == b"\0x"
    assert system.read(str(tmp_path / "none")) is None
    assert system.read(str(tmp_path / "f" / "below")) is None
    with pytest.raises(Failed, match=r"cannot read .*Is a directory"):
        system.read(str(tmp_path))


def test_stat(system: System, tmp_path: Path) -> None:
    (tmp_path / "l").symlink_to("nowhere")
    assert system.stat(str(tmp_path / "l")) is not None
    assert system.stat(str(tmp_path / "l"), follow=True) is None


@pytest.mark.parametrize(("old", "mode", "result"), [(None, None, 0o644), (0o600, None, 0o600), (0o600, 0o640, 0o640), (None, 0o400, 0o400)])
def test_write_atomic_modes(system: System, tmp_path: Path, old: int | None, mode: int | None, result: int) -> None:
    path = tmp_path / "f"
    if old is not None:
        path.write_text("old")
        path.chmod(old)
    system.write_atomic(str(path), b"new", mode=mode)
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o7777 == result
    assert os.listdir(tmp_path) == ["f"], "nothing is left beside it"


def test_write_atomic_from_a_stream(system: System, tmp_path: Path) -> None:
    source = io.BytesIO(b"0123456789")
    source.seek(4)
    system.write_atomic(str(tmp_path / "f"), source)
    assert (tmp_path / "f").read_bytes() == b"456789"


def test_write_atomic_links(system: System, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("old")
    (tmp_path / "l").symlink_to("f")
    system.write_atomic(str(tmp_path / "l"), b"through")
    assert (tmp_path / "l").is_symlink()
    assert (tmp_path / "f").read_bytes() == b"through"
    system.write_atomic(str(tmp_path / "l"), b"instead", follow=False)
    assert not (tmp_path / "l").is_symlink()
    assert (tmp_path / "f").read_bytes() == b"through"


def test_a_reader_never_sees_half(system: System, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"a" * 100_000)
    reader = path.open("rb")
    system.write_atomic(str(path), b"b" * 100_000)
    assert set(reader.read()) == {ord("a")}, "who has the old file open reads the old file"
    reader.close()


@pytest.mark.parametrize(("name", "words"), [("none/f", "the folder does not exist"), (".", "it is a directory"), ("f/below", "Not a directory")])
def test_write_atomic_says_why(system: System, tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / "f").write_text("x")
    with pytest.raises(Failed, match=words):
        system.write_atomic(str(tmp_path / name), b"x")


def test_write_atomic_keeps_user_attributes(system: System, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("x")
    try:
        os.setxattr(path, "user.note", b"kept")
    except OSError:
        pytest.skip("this filesystem has no user attributes")
    system.write_atomic(str(path), b"new")
    assert os.getxattr(path, "user.note") == b"kept"


MOUNTINFO = """\
22 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw,errors=remount-ro
30 22 0:26 /sub\\040dir /mnt/a\\040b\\134c rw,nosuid master:2 propagate_from:1 - fuse.rclone bucket:data\\011x rw,user_id=0
31 22 0:27 / /run rw - tmpfs tmpfs rw,nosuid
broken line
"""


def test_mount_table() -> None:
    root, rclone, run = parse_mountinfo(MOUNTINFO)
    assert (root.source, root.target, root.fstype, root.device, root.root) == ("/dev/nvme0n1p2", "/", "ext4", "259:2", "/")
    assert root.options == "rw,relatime,errors=remount-ro"
    assert (rclone.target, rclone.source, rclone.root, rclone.fstype) == ("/mnt/a b\\c", "bucket:data\tx", "/sub dir", "fuse.rclone")
    assert run.options == "rw,nosuid"


def test_mounts_of_this_machine(system: System) -> None:
    assert any(mount.target == "/proc" and mount.fstype == "proc" for mount in system.mounts())


def test_probe(system: System, tmp_path: Path) -> None:
    assert system.probe(str(tmp_path), 10) == ""
    assert "No such file" in system.probe(str(tmp_path / "none"), 10)
    (tmp_path / "f").write_text("x")
    assert "Not a directory" in system.probe(str(tmp_path / "f"), 10)


def test_probe_of_something_that_hangs(system: System, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dead FUSE mount in small: the child that asks never comes back."""
    monkeypatch.setattr("nodectl.agent.system._PROBE", "import time\ntime.sleep(50)")
    began = time.monotonic()
    assert "did not answer within 0.3 s" in system.probe(str(tmp_path), 0.3)
    assert time.monotonic() - began < 4


def test_blob() -> None:
    system = System(blobs={"content": io.BytesIO(b"abc")})
    assert system.blob("content").read() == b"abc"
    assert system.blob("content").read() == b"abc", "each reader starts at the beginning"
    with pytest.raises(Failed, match=r"no content named 'other'"):
        system.blob("other")


def test_progress() -> None:
    heard: list[str] = []
    System(progress=heard.append).progress("half of it")
    assert heard == ["half of it"]


def test_children_do_not_inherit_descriptors(system: System) -> None:
    handle = os.open("/dev/null", os.O_RDONLY)
    os.set_inheritable(handle, True)
    try:
        assert os.path.exists(f"/proc/self/fd/{handle}")
        assert system.run(["test", "-e", f"/proc/self/fd/{handle}"]).rc == 1
    finally:
        os.close(handle)
