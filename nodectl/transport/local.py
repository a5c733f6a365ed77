"""An agent on this machine: the same loader, without a network between."""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import time
from collections.abc import Sequence
from typing import IO

from nodectl.transport.channel import Unreachable
from nodectl.transport.line import Chunk

# As much as the kernel's pipe holds.
PIECE = 65536


class LocalLine:
    """A child process of ours. Its own session: Ctrl-C on the terminal reaches nodectl, which then ends the agent in order."""

    def __init__(self, argv: Sequence[str]) -> None:
        try:
            self._process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, bufsize=0)
        except OSError as error:
            raise Unreachable("python", f"'{argv[0]}' cannot be started: {error.strerror}", "install it, or set ansible_python_interpreter") from None
        self._selector = selectors.DefaultSelector()
        for stream in (self._process.stdout, self._process.stderr):
            assert stream is not None
            os.set_blocking(stream.fileno(), False)
            self._selector.register(stream, selectors.EVENT_READ)
        os.set_blocking(self._stdin.fileno(), False)

    @property
    def _stdin(self) -> IO[bytes]:
        assert self._process.stdin is not None
        return self._process.stdin

    def read(self, timeout: float) -> Chunk:
        got: dict[object, bytes] = {}
        for key, _ in self._selector.select(timeout):
            data = os.read(key.fd, PIECE)
            got[key.fileobj] = data
            if not data:
                self._selector.unregister(key.fileobj)
        return Chunk(got.get(self._process.stdout, b""), got.get(self._process.stderr, b""), not self._selector.get_map())

    def write(self, data: bytes, timeout: float) -> None:
        left = memoryview(data)
        if self._stdin.closed:
            raise BrokenPipeError("the line to the agent is closed")
        with selectors.DefaultSelector() as ready:
            ready.register(self._stdin, selectors.EVENT_WRITE)
            while left:
                if not ready.select(timeout):
                    raise TimeoutError(f"the agent read nothing for {timeout:g} s")
                left = left[os.write(self._stdin.fileno(), left[:PIECE]) :]

    def status(self, timeout: float) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(timeout)
        return None

    def hang_up(self) -> None:
        self._stdin.close()

    def discard(self) -> None:
        self.abort()

    def abort(self) -> None:
        """EOF ends a healthy agent together with what it runs; one that does not listen is killed."""
        with contextlib.suppress(OSError):
            self._stdin.close()
        end = time.monotonic() + 0.5
        while self._process.poll() is None and time.monotonic() < end:
            time.sleep(0.01)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            self._process.kill()
