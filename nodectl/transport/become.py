"""Becoming another user: the words before the interpreter, and the dialogue with sudo."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field

from nodectl.transport.channel import BecomeTarget, Unreachable


def _prompt() -> str:
    # 64 random bits: no banner and no earlier output can contain it, and it is no secret.
    return f"[nodectl-{secrets.token_hex(8)}]"


@dataclass
class Sudo:
    """One sudo call. With a password it is asked for by a prompt of our own; without one sudo may not ask at all."""

    become: BecomeTarget
    prompt: str = field(default_factory=_prompt)
    _seen: bytes = b""
    _prompts: int = 0

    def argv(self, command: Sequence[str]) -> list[str]:
        """LC_ALL=C through env, because not every login shell knows `NAME=value command`; sudo's own texts are then English."""
        if self.become.method != "sudo":
            raise Unreachable("sudo", f"become method '{self.become.method}' is not supported", "nodectl knows sudo only: set ansible_become_method: sudo")
        asking = ["-S", "-p", self.prompt] if self.become.password else ["-n"]
        return ["env", "LC_ALL=C", "LANGUAGE=C", "sudo", *asking, "-H", *self.become.flags, "-u", self.become.user, "--", *command]

    def asked(self, err: bytes) -> bool:
        """Feed stderr; True when sudo asks for the password now. Raises Unreachable when it asks again: it did not like the first one."""
        self._seen += err
        asked = self._seen.count(self.prompt.encode())
        if asked > self._prompts and self._prompts:
            raise Unreachable("sudo", "sudo password rejected", f"sudo did not accept the password for {self.become.user}: check ansible_become_password or -K")
        fresh = asked > self._prompts
        self._prompts = asked
        # Counting needs everything since the start; a chatty lecture or PAM module is cut at 64 KiB.
        if len(self._seen) > 65536:
            raise Unreachable("sudo", "sudo printed more than 64 KiB instead of starting the agent", self._tail())
        return fresh

    def refused(self, err: str) -> Unreachable | None:
        """What sudo's last words mean, once it ended without starting the agent; None when they are not sudo's."""
        text = err.replace(self.prompt, "").strip()
        for words, reason, hint in _MEANINGS:
            if words in text:
                return Unreachable("sudo", reason.format(user=self.become.user), hint)
        if "sudo:" in text or not text:
            return Unreachable("sudo", f"sudo did not start the agent as {self.become.user}: {text or 'it ended without a word'}")
        return None

    def _tail(self) -> str:
        return self._seen[-300:].decode("utf-8", "replace").replace(self.prompt, "")


_GIVE = "give it with -K or ansible_become_password, or allow the account NOPASSWD in sudoers"
_CHECK = "check ansible_become_password or -K"
_RULE = "add a rule for it in /etc/sudoers.d/"
_INSTALL = "install sudo, or log in as the user you want to be (ansible_user: root, become: false)"

# sudo's words (it runs with LC_ALL=C), what they mean, what to do.
_MEANINGS = (
    ("password is required", "sudo needs a password", _GIVE),
    ("a terminal is required", "sudo needs a password", _GIVE),
    ("no password was provided", "sudo password rejected", _CHECK),
    ("incorrect password", "sudo password rejected", _CHECK),
    ("must have a tty", "sudo demands a terminal (requiretty)", "in sudoers: Defaults:<account> !requiretty"),
    ("not in the sudoers file", "the account may not use sudo", _RULE),
    ("may not run sudo", "the account may not use sudo", _RULE),
    ("not allowed to execute", "sudo does not let the account run Python as {user}", "allow ALL commands in sudoers: nodectl runs one Python process"),
    ("unknown user", "there is no user {user} to become", "check become_user"),
    ("env: 'sudo'", "sudo is not installed", _INSTALL),
    ("env: sudo", "sudo is not installed", _INSTALL),
)
