from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nodectl.transport.channel import Limits
from nodectl.transport.pool import Pool
from tests.transport import fake_agent
from tests.transport.sshd import SSHD, Sshd, running

# Patient where a busy machine may be slow, because no good test waits so long; only silence is short, because the tests of
# frozen nodes have to wait for its end. The fake agent beats ten times a second.
FAST = Limits(connect=20.0, start=20.0, silence=2.0)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Logins on a real sshd, and waits that have to be real, are no unit tests: `make test-fast` leaves them to `make test`."""
    for item in items:
        if {"server", "sshd"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.servers)


@pytest.fixture(scope="session")
def packed() -> bytes:
    return fake_agent.packed()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    """One plain sshd for all tests that do nothing bad to it."""
    if not SSHD:
        pytest.skip("sshd is not installed: apt-get install openssh-server")
    with running(tmp_path_factory.mktemp("sshd")) as started:
        yield started


@pytest.fixture
def sshd(tmp_path: Path) -> Callable[..., object]:
    """For tests that need a server of their own: ``with sshd("MaxStartups 5") as server``."""
    if not SSHD:
        pytest.skip("sshd is not installed: apt-get install openssh-server")

    def start(config: str = "", name: str = "sshd", **more: object) -> object:
        return running(tmp_path / name, config, **more)  # type: ignore[arg-type]

    return start


@pytest.fixture
def pool(packed: bytes) -> Iterator[Pool]:
    made = Pool(FAST, packed=packed)
    yield made
    made.close()
