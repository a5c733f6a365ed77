"""From Ansible's connection variables to the transport's values."""

from __future__ import annotations

import getpass
import shlex
from collections.abc import Mapping
from typing import Any

from nodectl.engine.options import Options
from nodectl.lang.loading import CONNECTIONS, plain_connection
from nodectl.lang.task import Become, Reach
from nodectl.transport.channel import BecomeTarget, Target
from nodectl.transport.ssh_options import parse_common_args
from nodectl.wire.params import Param, Wrong, convert
from nodectl.wire.secret import Secret

SSH_PORT = 22
NOT_SAID = Reach()
# Words of become_flags that nodectl gives sudo itself: how it asks for a password, and whose home it takes.
_OWN_FLAGS = frozenset(["-H", "-S", "-n"])
LOCAL_NAMES = frozenset(["localhost", "127.0.0.1", "::1"])
_FLAG = Param(type="bool")
_PORT = Param(type="int")


class BadTarget(ValueError):
    """A connection variable of a host has a value that cannot be used; the text names host, variable and value."""

# The variables that say how a host is reached.
NAMES = frozenset([
    "ansible_connection", "ansible_host", "ansible_ssh_host", "ansible_user", "ansible_ssh_user", "ansible_port", "ansible_ssh_port",
    "ansible_private_key_file", "ansible_ssh_private_key_file", "ansible_password", "ansible_ssh_pass", "ansible_ssh_password", "ansible_become",
    "ansible_become_user", "ansible_become_method", "ansible_become_flags", "ansible_become_pass", "ansible_become_password", "ansible_sudo_pass",
    "ansible_python_interpreter", "ansible_ssh_args", "ansible_ssh_common_args", "ansible_ssh_extra_args", "ansible_group_priority",
])  # fmt: skip


def target_of(host: str, variables: Mapping[str, Any], *, reach: Reach = NOT_SAID, remote_user: str = "", private_key: str = "") -> Target:
    """How to reach ``host``. ``variables`` and ``reach`` are rendered; as in Ansible variables win over keywords, and those over the command line.

    Raises BadTarget.
    """
    local = "local" if host in LOCAL_NAMES and "ansible_host" not in variables else None
    connection = plain_connection(str(_first(variables.get("ansible_connection"), local, reach.connection, "ssh")))
    if connection not in CONNECTIONS:
        raise BadTarget(f"{host}: ansible_connection is {connection!r}; nodectl knows ssh and local")
    return Target(
        host=host,
        address=str(variables.get("ansible_host") or variables.get("ansible_ssh_host") or host),
        port=_port(host, variables, reach.port),
        user=str(_first(variables.get("ansible_user"), variables.get("ansible_ssh_user"), reach.user, remote_user, "")),
        connection="local" if connection == "local" else "ssh",
        key_file=str(variables.get("ansible_ssh_private_key_file") or variables.get("ansible_private_key_file") or private_key),
        password=_secret(variables, "ansible_password", "ansible_ssh_pass", "ansible_ssh_password"),
        options=_ssh_options(host, variables),
        python=_python(variables),
    )


def become_of(task_become: Become, play_become: Become, variables: Mapping[str, Any], options: Options) -> BecomeTarget | None:
    """Who to become, or None to stay the login user. Ansible's order: variables, then task, play, command line. Raises BadTarget."""
    wanted = _first(variables.get("ansible_become"), task_become.enabled, play_become.enabled, options.become)
    if wanted is None or not _flag("become", wanted):
        return None
    user = _first(variables.get("ansible_become_user"), task_become.user, play_become.user, options.become_user, "root")
    method = str(_first(variables.get("ansible_become_method"), task_become.method, play_become.method, "sudo"))
    if method != "sudo":
        raise BadTarget(f"become_method is {method!r}; nodectl knows sudo")
    password = _secret(variables, "ansible_become_password", "ansible_become_pass", "ansible_sudo_pass")
    flags = _first(variables.get("ansible_become_flags"), task_become.flags, play_become.flags) or ""
    return BecomeTarget(str(user), "sudo", password or options.become_password, _flags(str(flags)))


def _flags(text: str) -> tuple[str, ...]:
    try:
        return tuple(word for word in shlex.split(text) if word not in _OWN_FLAGS)
    except ValueError as error:
        raise BadTarget(f"become_flags cannot be read: {error}") from None


def needed_become(target: Target, become: BecomeTarget | None) -> BecomeTarget | None:
    """``become``, or None where the login user already is that user: a node without sudo then works too."""
    if become is None:
        return None
    login = target.user or (getpass.getuser() if target.connection == "local" else "")
    return None if login == become.user else become


def _python(variables: Mapping[str, Any]) -> str:
    said = str(variables.get("ansible_python_interpreter") or "python3")
    return "python3" if said.startswith("auto") else said


def _ssh_options(host: str, variables: Mapping[str, Any]) -> dict[str, str]:
    """The three variables as one command line, in the order in which Ansible gives them to ssh: the first of several values holds."""
    found: dict[str, str] = {}
    for name in ("ansible_ssh_args", "ansible_ssh_common_args", "ansible_ssh_extra_args"):
        text = variables.get(name)
        try:
            more = parse_common_args(str(text)) if text else {}
        except ValueError as error:
            raise BadTarget(f"{host}: {name}: {error}") from None
        keys = [files["identityfile"] for files in (found, more) if "identityfile" in files]
        found = {**more, **found, **({"identityfile": "\n".join(keys)} if keys else {})}
    return found


def _port(host: str, variables: Mapping[str, Any], keyword: Any) -> int:
    said = _first(variables.get("ansible_port"), variables.get("ansible_ssh_port"), keyword, SSH_PORT)
    try:
        port = int(convert(_PORT, said))
    except Wrong as wrong:
        raise BadTarget(f"{host}: ansible_port {wrong}") from None
    if not 0 < port < 65536:
        raise BadTarget(f"{host}: ansible_port is {port}; expected 1 to 65535")
    return port


def _flag(name: str, value: Any) -> bool:
    try:
        return bool(convert(_FLAG, value))
    except Wrong as wrong:
        raise BadTarget(f"{name} {wrong}") from None


def _secret(variables: Mapping[str, Any], *names: str) -> Secret | None:
    value = _first(*(variables.get(name) for name in names))
    if value is None or isinstance(value, Secret):
        return value
    return Secret(str(value))


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None and value != ""), None)
