"""The way to a node: one Hop per login, from the inventory, the SSH options and ~/.ssh/config."""

from __future__ import annotations

import getpass
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nodectl.transport.channel import Target, Unreachable
from nodectl.transport.known_hosts import KnownHosts, Policy
from nodectl.transport.ssh_config import SYSTEM_FILE, USER_FILE, UserConfig
from nodectl.transport.ssh_options import BadOption, check, paths
from nodectl.wire.secret import Secret

# Longer chains than this are a loop in somebody's configuration.
MAX_HOPS = 8

# Often enough to keep a NAT entry, which may live for 30 s only.
KEEPALIVE = 15

_SPEC = re.compile(r"^(?:ssh://)?(?:(?P<user>[^@]+)@)?(?:\[(?P<six>[^\]]+)\]|(?P<host>[^:\[\]]+|[0-9A-Fa-f:]+))(?::(?P<port>\d+))?/?$")


@dataclass(frozen=True)
class Hop:
    """One login. ``name`` is what a person wrote. ``only``: no other keys than ``keys`` are offered."""

    name: str
    address: str
    port: int
    user: str
    keys: tuple[str, ...]
    only: bool
    password: Secret | None
    known_hosts: KnownHosts
    key_name: str
    keepalive: int
    proxy_command: str = ""

    def __str__(self) -> str:
        place = f"[{self.address}]:{self.port}" if ":" in self.address else f"{self.address}:{self.port}"
        return f"{self.user}@{place}" if self.name in (self.address, place, f"{self.user}@{place}") else f"{self.name} ({self.user}@{place})"


class Router:
    """Makes routes. ``known_hosts`` replaces ~/.ssh/known_hosts where neither options nor config name a file."""

    def __init__(self, known_hosts: Path | None = None) -> None:
        self._known_hosts = known_hosts

    def route(self, target: Target) -> tuple[Hop, ...]:
        """All hops, the node itself last. Raises Unreachable("config")."""
        try:
            check(target.options)
        except BadOption as error:
            raise Unreachable("config", f"{target.host}: {error}", "change ansible_ssh_common_args") from None
        config = UserConfig(_files(target.options))
        found = config.lookup(target.address, target.user)
        options = {**found, **target.options}
        node = self._node(target, found, options)
        jumps = self._jumps(str(options.get("proxyjump") or ""), config, target, (target.address,))
        return (*jumps, node)

    def _node(self, target: Target, found: Mapping[str, Any], options: Mapping[str, Any]) -> Hop:
        # 22 is also what "nothing said" looks like; a config that says otherwise for this name knows better.
        port = target.port if target.port not in (0, 22) else _port(options.get("port"), target.host)
        keys = (target.key_file,) if target.key_file else tuple(_identities(options))
        only = bool(target.key_file) or options.get("identitiesonly") == "yes"
        address = str(options.get("hostname") or target.address)
        user = target.user or str(options.get("user") or getpass.getuser())
        proxy = _proxy_command(options, address, port, user)
        return self._hop(target.host, address, port, user, keys, only, target.password, options, proxy, ())

    def _jumps(self, text: str, config: UserConfig, target: Target, seen: tuple[str, ...]) -> tuple[Hop, ...]:
        specs = [spec.strip() for spec in text.split(",") if spec.strip()]
        if not specs or text.lower() == "none":
            return ()
        hops: tuple[Hop, ...] = ()
        for index, spec in enumerate(specs):
            # Only the first hop is reached directly, so only its own ProxyJump or ProxyCommand counts, as in ssh.
            name, hop, own = self._jump(spec, config, target, direct=index == 0)
            if name in seen[1:]:
                return ()  # `Host *` with ProxyJump bastion names the bastion for itself too
            if own and len(seen) < MAX_HOPS:
                hops = self._jumps(own, config, target, (*seen, name))
            hops += (hop,)
        if len(hops) > MAX_HOPS:
            raise Unreachable("config", f"{target.host}: ProxyJump goes over more than {MAX_HOPS} hosts: {text}", "is there a loop in ~/.ssh/config?")
        return hops

    def _jump(self, spec: str, config: UserConfig, target: Target, direct: bool) -> tuple[str, Hop, str]:
        """(name, hop, its own ProxyJump where it is reached ``direct``).

        Port and user: from the spec, else the hop's own config, else 22 and the local user; never the node's.
        """
        match = _SPEC.match(spec)
        if not match:
            raise Unreachable("config", f"{target.host}: '{spec}' in ProxyJump is not [user@]host[:port]", "change ProxyJump")
        name = match["six"] or match["host"]
        found = config.lookup(name, match["user"] or "")
        port = int(match["port"]) if match["port"] else _port(found.get("port"), spec)
        user = match["user"] or str(found.get("user") or getpass.getuser())
        # ssh gives -i and UserKnownHostsFile to the last hop only; one inventory key and file for all of them is what people mean.
        keys = tuple(_identities(found)) or ((target.key_file,) if target.key_file else ())
        extra = [Path(path).expanduser() for path in paths(target.options.get("userknownhostsfile", ""))]
        options = {**found, **{key: value for key, value in target.options.items() if key == "stricthostkeychecking"}}
        address = str(found.get("hostname") or name)
        proxy = _proxy_command(found, address, port, user) if direct else ""
        hop = self._hop(spec, address, port, user, keys, found.get("identitiesonly") == "yes", None, options, proxy, extra)
        return name, hop, str(found.get("proxyjump") or "") if direct else ""

    def _hop(
        self, name: str, address: str, port: int, user: str, keys: tuple[str, ...], only: bool, password: Secret | None,
        options: Mapping[str, Any], proxy: str, extra: Sequence[Path],
    ) -> Hop:
        told = str(options.get("stricthostkeychecking", "")).lower()
        policy: Policy = "accept-new" if told == "accept-new" else "strict"
        known = KnownHosts(tuple(dict.fromkeys([*extra, *self._known_files(options)])), policy, told)
        keepalive = int(options.get("serveraliveinterval") or KEEPALIVE)
        return Hop(name, address, port, user, keys, only, password, known, str(options.get("hostkeyalias") or ""), keepalive, proxy)

    def _known_files(self, options: Mapping[str, Any]) -> list[Path]:
        named = paths(str(options.get("userknownhostsfile", "")))
        default = [str(self._known_hosts)] if self._known_hosts else ["~/.ssh/known_hosts", "~/.ssh/known_hosts2"]
        system = paths(str(options.get("globalknownhostsfile", "/etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2")))
        return [Path(file.replace("%d", "~", 1)).expanduser() for file in [*(named or default), *system] if file.lower() != "none"]


def _files(options: Mapping[str, str]) -> list[Path]:
    """-F FILE is read alone, as in ssh."""
    own = options.get("configfile")
    return [Path(own).expanduser()] if own else [Path(USER_FILE).expanduser(), Path(SYSTEM_FILE)]


def _identities(options: Mapping[str, Any]) -> list[str]:
    value = options.get("identityfile") or []
    return value.splitlines() if isinstance(value, str) else [str(item) for item in value]


def _port(value: object, name: str) -> int:
    text = str(value or 22)
    if not text.isdigit() or not 0 < int(text) < 65536:
        raise Unreachable("config", f"{name}: '{text}' is not a port", "change Port in ~/.ssh/config or the SSH options")
    return int(text)


def _proxy_command(options: Mapping[str, Any], address: str, port: int, user: str) -> str:
    """The user's own way to that address, "" for TCP; ProxyJump goes before it."""
    command = str(options.get("proxycommand") or "")
    if options.get("proxyjump") or command.lower() == "none":
        return ""
    return re.sub(r"%[hpr%]", lambda m: {"%h": address, "%p": str(port), "%r": user, "%%": "%"}[m[0]], command)
