"""A node without Python: said in check mode, mended by the first stage, and then a node like any other.

The lab's packages hold no second python3, so the host gets a package of that name from a folder: that apt is asked, and what follows, is what is shown.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conftest import Lab
from tests.roles.stage import Stages

TAKEN_AWAY = r"""
set -e
version=$(readlink /usr/bin/python3)
dpkg --force-depends --remove python3 python3-minimal >/dev/null 2>&1
mkdir -p /var/tmp/debs/tree/DEBIAN /var/tmp/debs/tree/usr/bin
cd /var/tmp/debs
ln -s "$version" tree/usr/bin/python3
printf 'Package: python3\nVersion: 99\nArchitecture: all\nMulti-Arch: allowed\nMaintainer: t <t@example.org>\nDescription: t\n' > tree/DEBIAN/control
dpkg-deb --build tree python3.deb >/dev/null
{ cat tree/DEBIAN/control; echo "Filename: ./python3.deb"; echo "Size: $(stat -c %s python3.deb)"; echo "SHA256: $(sha256sum python3.deb | cut -d' ' -f1)"; } > Packages
echo 'deb [trusted=yes] file:/var/tmp/debs ./' > /etc/apt/sources.list.d/here.list
! command -v python3
"""


@pytest.fixture
def without(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stages]:
    host = lab.names[-1]
    lab.reset(host)
    stages = Stages(lab, host, tmp_path_factory.mktemp("python"))
    stages.inside("bash", "-c", TAKEN_AWAY)
    try:
        yield stages
    finally:
        stages.close()
        lab.reset(host)


@pytest.mark.lab
def test_python3_is_installed_where_it_is_missing(without: Stages) -> None:
    check, real = without.rehearsed("facts")
    assert (check.code, check.changed) == (4, set())
    assert "there is no interpreter '/usr/bin/python3'" in check.reason
    assert (real.code, len(real.changed)) == (0, 1), real.out
    said = [event["result"]["stdout"] for event in real.events if event["kind"] == "task.end" and event["module"] == "raw"]
    assert [line.partition(": ")[0] for line in said[0].splitlines()[-1:]] == ["python3 was missing and is installed now"]
    again = without("facts")
    assert (again.code, again.changed) == (0, set())


@pytest.mark.lab
def test_without_a_package_manager_it_is_said_what_to_do(without: Stages) -> None:
    without.shell("mv /usr/bin/apt-get /usr/bin/apt-get.away")
    found = without("facts")
    assert (found.code, found.changed) == (2, set())
    assert "install Python 3.8 or later by hand" in found.out
