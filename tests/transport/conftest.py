from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nodectl.transport.channel import Limits
from nodectl.transport.pool import Pool
from tests.transport import fake_agent
from tests.transport.sshd import SSHD, Sshd, running

# Long enough for two busy cores, short enough that a test of a bound ends in a second or two.
FAST = Limits(connect=6.0, start=6.0, silence=1.5)


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
