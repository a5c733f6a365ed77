"""Login shells of every kind, and what their start files print."""

from __future__ import annotations

import hashlib
import io
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from nodectl.transport.bundle import LOADER
from nodectl.transport.channel import Unreachable
from nodectl.transport.pool import Pool
from nodectl.transport.start import Order
from nodectl.wire.step import Step
from tests.transport.fake_agent import write_script

NOISE = {
    "text": b"welcome to the cluster\n\033[33mcolours\033[0m\n",
    "not utf-8": b"\xff\xfe caf\xe9 \x00\x01\n",
    "looks like a frame": b'\x00\x00\x00\x0e\x00\x00\x00\x00{"t":"hello"}xx',
    "no newline at its end": b"x",
    "60 KiB": b"n" * 60 * 1024,
}


def forced(folder: Path, script: str) -> str:
    """An sshd configuration in which every login goes through ``script``; $SSH_ORIGINAL_COMMAND is ours."""
    folder.mkdir(exist_ok=True)
    return f"ForceCommand {write_script(folder / 'login.sh', script)}"


@pytest.mark.parametrize("noise", NOISE.values(), ids=NOISE.keys())
def test_noise_before_the_agent_is_dropped_and_content_stays_exact(tmp_path: Path, sshd: Callable[..., object], pool: Pool, noise: bytes) -> None:
    (tmp_path / "noise").write_bytes(noise)
    config = forced(tmp_path, f'#!/bin/sh\ncat {tmp_path}/noise\ncat {tmp_path}/noise >&2\nexec /bin/sh -c "$SSH_ORIGINAL_COMMAND"\n')
    content = os.urandom(300_000)
    with sshd(config) as server:  # type: ignore[attr-defined]
        outcome = pool.channel(server.target()).submit(Step(1, "hash", {}, blobs={"c": "b"}), {"c": io.BytesIO(content)}).result(5)
        assert outcome.values["c"][0] == hashlib.sha256(content).hexdigest()
        pool.reset("n1")


def test_a_shell_that_prints_without_end_is_refused_with_what_it_prints(tmp_path: Path, sshd: Callable[..., object], pool: Pool) -> None:
    with sshd(forced(tmp_path, "#!/bin/sh\nexec yes 'Please change your password'\n")) as server, pytest.raises(Unreachable) as caught:  # type: ignore[attr-defined]
        pool.channel(server.target())
    assert caught.value.why == "protocol"
    assert "64 KiB" in caught.value.reason
    assert "Please change your password" in caught.value.hint


ENDS = {
    "an account without a shell": ("echo 'This account is currently not available.'; exit 1", "closed", "This account is currently not available."),
    "no words": ("exit 7", "closed", ""),
    "no python": ("exec /bin/sh -c 'python9 -c 1'", "python", "set ansible_python_interpreter"),
    "an old python": ("echo 'nodectl: Python 3.8 or later is needed, this is 3.6.8' >&2; exit 1", "python", "Python 3.8 or later"),
    "python 2": ("echo 'Unknown option: -I' >&2; exit 2", "python", "Python 3.8 or later"),
}


@pytest.mark.parametrize(("script", "why", "words"), ENDS.values(), ids=ENDS.keys())
def test_a_shell_that_ends_says_why(tmp_path: Path, sshd: Callable[..., object], pool: Pool, script: str, why: str, words: str) -> None:
    with sshd(forced(tmp_path, f"#!/bin/sh\n{script}\n")) as server, pytest.raises(Unreachable) as caught:  # type: ignore[attr-defined]
        pool.channel(server.target())
    assert (caught.value.why, caught.value.reason[:3]) == (why, "n1:")
    assert words in caught.value.hint


def test_a_silent_shell_is_given_up_in_time(tmp_path: Path, sshd: Callable[..., object], packed: bytes) -> None:
    from nodectl.transport.channel import Limits

    pool = Pool(Limits(start=1.0), packed=packed)
    with sshd(forced(tmp_path, "#!/bin/sh\necho waiting for the directory server >&2\nsleep 60\n")) as server:  # type: ignore[attr-defined]
        with pytest.raises(Unreachable) as caught:
            pool.channel(server.target())
        pool.close()
    assert (caught.value.why, caught.value.hint) == ("timeout", "it printed: waiting for the directory server")


def test_the_remote_line_needs_no_quoting_beyond_single_quotes() -> None:
    assert not re.search(r"['\\!\n\r]", LOADER)
    order = Order("/opt/my python/bin/python3")
    assert shlex.split(order.command) == order.argv
    assert len(order.command) < 2000  # far below the 64 KiB that some login shells take


@pytest.mark.parametrize("shell", ["sh", "bash", "dash", "zsh", "fish", "tcsh", "csh", "busybox"])
def test_every_login_shell_hands_the_line_on_unchanged(tmp_path: Path, shell: str) -> None:
    found = shutil.which(shell)
    if not found:
        pytest.skip(f"{shell} is not installed")
    show = write_script(tmp_path / "show me", '#!/bin/sh\nfor word; do printf "%s\\0" "$word"; done\n')
    order = Order(str(show))
    prefix = [found, "sh"] if shell == "busybox" else [found]
    done = subprocess.run([*prefix, "-c", order.command], capture_output=True, check=True, timeout=10, env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]})
    assert done.stdout.decode().split("\0")[:-1] == order.argv[1:]


