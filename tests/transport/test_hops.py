"""Jump hosts: ports, users, keys and host keys hop by hop, and which hop is to blame."""

from __future__ import annotations

import getpass
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from nodectl.transport.channel import Target, Unreachable
from nodectl.transport.dial import Over
from nodectl.transport.gate import Gates
from nodectl.transport.pool import Pool
from nodectl.transport.route import Router
from nodectl.transport.ssh import Dialer, Link
from nodectl.wire.step import Step
from tests.transport.sshd import Sshd, free_port, make_key, running

ME = getpass.getuser()


@dataclass
class Chain:
    """Two bastions and a node, one key for all, one known_hosts."""

    first: Sshd
    second: Sshd
    node: Sshd
    known_hosts: Path

    @property
    def jump(self) -> str:
        return f"{ME}@127.0.0.1:{self.first.port},ssh://{ME}@127.0.0.1:{self.second.port}"

    def target(self, jump: str, **options: str) -> Target:
        return replace(self.node.target(), options={**self.node.target().options, "userknownhostsfile": str(self.known_hosts), "proxyjump": jump, **options})


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory, server: Sshd) -> Iterator[Chain]:
    folder = tmp_path_factory.mktemp("chain")
    with running(folder / "first", key=server.key) as first, running(folder / "second", key=server.key) as second:
        known = folder / "known_hosts"
        known.write_text("".join(one.known_hosts.read_text() for one in (first, second, server)))
        yield Chain(first, second, server, known)


def test_through_two_hops(chain: Chain, pool: Pool) -> None:
    # The target's user and port are not those of the hops.
    assert pool.channel(chain.target(chain.jump)).submit(Step(1, "flood", {"bytes": 3_000_000})).result(10).failed is False
    assert f"Accepted publickey for {ME}" in chain.first.log
    assert f"Accepted publickey for {ME}" in chain.second.log


def test_forty_nodes_behind_a_bastion_that_lets_few_in_at_once(chain: Chain, tmp_path: Path) -> None:
    """D04: from the sixth handshake on this bastion drops all, and says nothing. Logins only: what comes after them is the same for one and for forty."""
    gates = Gates()
    with running(tmp_path / "narrow", "MaxStartups 5:100:5\n", key=chain.node.key) as narrow:
        known = tmp_path / "known_hosts"
        known.write_text(chain.node.known_hosts.read_text() + narrow.known_hosts.read_text())
        target = chain.target(f"{ME}@127.0.0.1:{narrow.port}", userknownhostsfile=str(known))

        def login(number: int) -> Link:
            return Dialer(Router().route(replace(target, host=f"n{number}")), gates, 30.0, print, Over()).dial()

        with ThreadPoolExecutor(40) as threads:
            links = list(threads.map(login, range(40)))
        assert [link.alive for link in links] == [True] * 40
        assert narrow.log.count("Accepted publickey") == 40
        for link in links:
            link.close()


def test_aliases_of_hops_are_looked_up(chain: Chain, pool: Pool, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(
        f"Host edge\n  HostName 127.0.0.1\n  Port {chain.first.port}\n  IdentityFile {chain.node.key}\n"
        f"Host inner\n  HostName 127.0.0.1\n  Port {chain.second.port}\n  ProxyJump edge\n"
        f"Host *\n  UserKnownHostsFile {chain.known_hosts}\n"
    )
    # `inner` itself is reached through `edge`: its own ProxyJump counts.
    before = chain.first.log.count("Accepted publickey")
    assert pool.channel(chain.target("inner", configfile=str(config))).alive
    assert chain.first.log.count("Accepted publickey") == before + 1


def blame(pool: Pool, target: Target) -> Unreachable:
    with pytest.raises(Unreachable) as caught:
        pool.channel(target)
    return caught.value


def test_a_hop_that_refuses_is_named(chain: Chain, pool: Pool) -> None:
    dead = free_port()
    error = blame(pool, chain.target(f"{ME}@127.0.0.1:{chain.first.port},{ME}@127.0.0.1:{dead}"))
    assert error.why == "hop"
    assert error.reason.startswith(f"hop 2 of 2 on the way to n1 ({ME}@127.0.0.1:{chain.node.port}): ")
    assert f"could not connect to 127.0.0.1:{dead}" in error.reason


def test_a_node_that_refuses_behind_a_hop_is_the_node(chain: Chain, pool: Pool) -> None:
    dead = free_port()
    error = blame(pool, replace(chain.target(f"{ME}@127.0.0.1:{chain.first.port}"), port=dead))
    assert error.why == "refused"
    assert error.reason.startswith(f"n1 ({ME}@127.0.0.1:{dead}): {ME}@127.0.0.1:{chain.first.port} could not connect to 127.0.0.1:{dead}: Connect failed")
    assert error.reason.endswith(f"; reached through {ME}@127.0.0.1:{chain.first.port}")


def test_the_key_of_every_hop_is_verified(chain: Chain, pool: Pool, tmp_path: Path) -> None:
    known = tmp_path / "known"
    known.write_text(chain.first.known_hosts.read_text() + chain.node.known_hosts.read_text())
    error = blame(pool, replace(chain.target(chain.jump), options={**chain.target(chain.jump).options, "userknownhostsfile": str(known)}))
    assert error.why == "hop"
    assert "hop 2 of 2" in error.reason
    assert "host key is not known: ssh-ed25519 SHA256:" in error.reason
    assert f">> {known}" in error.hint


def test_a_login_refused_by_a_hop(chain: Chain, pool: Pool, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(f"Host 127.0.0.1\n  IdentityFile {make_key(tmp_path / 'other')}\n  IdentitiesOnly yes\n")
    error = blame(pool, chain.target(f"{ME}@127.0.0.1:{chain.first.port}", configfile=str(config)))
    assert error.why == "hop"
    assert "hop 1 of 1" in error.reason
    assert "login refused" in error.reason


def test_a_hop_that_does_not_forward(chain: Chain, pool: Pool, sshd: Callable[..., object]) -> None:
    with sshd("AllowTcpForwarding no", key=chain.node.key) as closed:  # type: ignore[attr-defined]
        known = closed.dir / "all"
        known.write_text(closed.known_hosts.read_text() + chain.node.known_hosts.read_text())
        error = blame(pool, chain.target(f"{ME}@127.0.0.1:{closed.port}", userknownhostsfile=str(known)))
    assert error.why == "hop"
    assert "AllowTcpForwarding" in error.hint
