"""Which keys are offered to a server, and what to say when it takes none of them."""

from __future__ import annotations

import base64
import contextlib
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from paramiko import Agent, PKey, Transport
from paramiko.ssh_exception import AuthenticationException, BadAuthenticationType, SSHException

from nodectl.transport.channel import Unreachable
from nodectl.transport.route import Hop

# ssh's own order of preference.
DEFAULT_KEYS = ("~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa")

# An agent answers in milliseconds; asking a person to confirm comes later, with the signature.
AGENT_WAIT = 3.0

# Logins in use ask for two of them (a key and a password, or a key and a code); a server that never has enough must not hold us.
MOST_FACTORS = 4


class Offer(NamedTuple):
    name: str
    key: PKey


class Login:
    """Logs in on one transport: keys in order, then the password. Passed to fabric's connection as its authentication strategy."""

    def __init__(self, hop: Hop, deadline: float) -> None:
        self._hop = hop
        self._deadline = deadline
        self._agent: Agent | None = None
        self._held: list[Offer] | None = None
        self._tried: list[str] = []
        self._unusable: list[str] = []
        self._methods: list[str] = []
        self._taken: set[bytes] = set()

    def authenticate(self, transport: Transport) -> None:
        """Raises Unreachable("auth") with everything that was offered."""
        try:
            for _ in range(MOST_FACTORS):
                further = self._next_factor(transport)
                if further is None:
                    break
                if not further:
                    return
                self._methods = list(further)
            raise self._refused()
        finally:
            if self._agent:
                self._agent.close()

    def _next_factor(self, transport: Transport) -> list[str] | None:
        """The methods of which the server still wants one: [] = logged in. None = it took nothing of what we have."""
        for offer in self._offers():
            further = self._try_key(transport, offer)
            if further is not None:
                return further
        return self._try_password(transport)

    def _try_key(self, transport: Transport, offer: Offer) -> list[str] | None:
        # A server that wants two keys takes the first one once.
        if (self._methods and "publickey" not in self._methods) or offer.key.asbytes() in self._taken:
            return None
        self._tried.append(f"{offer.name} ({offer.key.get_name()} {offer.key.fingerprint})")
        further = self._asked(transport, lambda: transport.auth_publickey(self._hop.user, offer.key))
        if further is not None:
            self._taken.add(offer.key.asbytes())
        return further

    def _try_password(self, transport: Transport) -> list[str] | None:
        password = self._hop.password
        if password is None or "password" in self._tried:
            return None
        self._tried.append("password")
        return self._asked(transport, lambda: transport.auth_password(self._hop.user, password.reveal()))

    def _asked(self, transport: Transport, offer: Callable[[], list[str]]) -> list[str] | None:
        """What the server wants beside this, or None where it refused it."""
        try:
            return offer()
        except BadAuthenticationType as error:
            self._methods = list(error.allowed_types)
        except (SSHException, EOFError) as error:
            self._hung_up(transport, error)
        return None

    def _hung_up(self, transport: Transport, error: Exception) -> None:
        """A refused key is no error yet; a connection that is gone is."""
        if time.monotonic() > self._deadline or "timeout" in str(error).lower():
            raise Unreachable("timeout", f"{self._hop}: the server did not answer the login in time", "a slow PAM module or directory server on it?") from None
        if not transport.is_active():
            raise Unreachable(
                "auth",
                f"{self._hop}: the server hung up after {_several(len(self._tried), 'offer')}: {', '.join(self._tried)}",
                "MaxAuthTries is used up: name the right key with ansible_ssh_private_key_file, then no other is offered",
            ) from None
        if not isinstance(error, AuthenticationException):
            self._unusable.append(f"{self._tried.pop()}: {error}")

    def _refused(self) -> Unreachable:
        offered = f"offered: {', '.join(self._tried)}" if self._tried else "nothing to offer: no key, no agent, no password"
        unusable = f"; not usable: {'; '.join(self._unusable)}" if self._unusable else ""
        methods = f"; the server takes: {', '.join(self._methods)}" if self._methods else ""
        return Unreachable(
            "auth",
            f"{self._hop}: login refused for user {self._hop.user}; {offered}{unusable}{methods}",
            f"is the public key in ~{self._hop.user}/.ssh/authorized_keys there, and is ansible_user right?",
        )

    # -- what can be offered

    def _offers(self) -> Iterator[Offer]:
        """Named keys first; unless only they are wanted, the agent's, then the default files. No key twice."""
        seen: set[bytes] = set()
        for offer in self._all():
            if offer.key.asbytes() not in seen:
                seen.add(offer.key.asbytes())
                yield offer

    def _all(self) -> Iterator[Offer]:
        for name in self._hop.keys:
            yield from self._from_file(Path(name).expanduser())
        if self._hop.only:
            return
        yield from self._from_agent()
        for name in DEFAULT_KEYS:
            path = Path(name).expanduser()
            if path.exists():
                yield from self._from_file(path)

    def _from_file(self, path: Path) -> Iterator[Offer]:
        """The key of a file; where it is locked by a passphrase, the same key from the agent."""
        try:
            yield Offer(str(path), PKey.from_path(str(path)))
        except FileNotFoundError:
            self._unusable.append(f"{path}: there is no such file")
        except (OSError, ValueError, TypeError, SSHException) as error:
            public = _public_blob(path)
            held = [offer for offer in self._from_agent() if public and offer.key.asbytes() == public]
            if not held:
                locked = "it needs a passphrase: ssh-add it" if isinstance(error, TypeError) or "encrypted" in str(error).lower() else str(error)
                self._unusable.append(f"{path}: {locked}")
            yield from held

    def _from_agent(self) -> Iterator[Offer]:
        if self._held is None:
            self._held = self._ask_agent()
        yield from self._held

    def _ask_agent(self) -> list[Offer]:
        """The agent's keys. It is asked beside us: a forwarded socket whose other end hangs would answer never."""
        answer: queue.SimpleQueue[tuple[Agent, list[Offer]]] = queue.SimpleQueue()

        def ask() -> None:
            with contextlib.suppress(SSHException, OSError):
                agent = Agent()
                answer.put((agent, [Offer(f"agent:{getattr(key, 'comment', '') or 'key'}", key) for key in agent.get_keys()]))

        if not os.environ.get("SSH_AUTH_SOCK"):
            return []
        thread = threading.Thread(target=ask, name="nodectl-agent", daemon=True)
        thread.start()
        thread.join(min(AGENT_WAIT, max(0.1, self._deadline - time.monotonic())))
        if answer.empty():
            self._unusable.append(f"ssh-agent at {os.environ['SSH_AUTH_SOCK']}: it does not answer")
            return []
        self._agent, held = answer.get()
        return held


def _public_blob(path: Path) -> bytes:
    """The wire form from `<path>.pub`, or from the file itself when it is a public key."""
    for file in (path.with_name(path.name + ".pub"), path):
        with contextlib.suppress(OSError, ValueError, IndexError):
            return base64.b64decode(file.read_text(encoding="ascii").split()[1], validate=True)
    return b""


def _several(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")
