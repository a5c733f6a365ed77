"""SkyPilot's own login with what stands in the pool: its command line for ssh, to real hosts."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodectl.handoff.write import write_handoff
from nodectl.lab.plan import LAB_USER
from tests.conftest import Lab
from tests.handoff.consumers import ask, needs_consumers
from tests.handoff.pool_events import node, start, verdict

# The first thing that `sky ssh up` does with each host of the pool.
LOGIN = """
import sys
from sky.ssh_node_pools import utils
from sky.ssh_node_pools.deploy import utils as deploy
for name, pool in utils.get_cluster_config(utils.load_ssh_targets(sys.argv[1])).items():
    for host in utils.prepare_hosts_info(name, pool):
        print("said:", deploy.run_remote(host["ip"], "hostname", host["user"], host["identity_file"], use_ssh_config=host["use_ssh_config"]))
"""


@pytest.mark.lab
@pytest.mark.alone
@needs_consumers
def test_skypilot_logs_in_to_every_host_of_the_pool_and_to_no_other(lab: Lab, tmp_path: Path) -> None:
    *proven, bad = lab.names
    events = [*start(*lab.names)]
    for name in lab.names:
        events += [node(name, address=lab.address(name), user=LAB_USER, key_file=str(lab.key)), verdict(name, "fail" if name == bad else "pass", "slow")]
    write_handoff(events, tmp_path / "handoff")
    # SkyPilot takes any host key, and ssh would keep those of the lab in the home of whoever runs this.
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/ssh").write_text(f'#!/bin/sh\nexec /usr/bin/ssh -o UserKnownHostsFile={lab.known_hosts} "$@"\n')
    (tmp_path / "bin/ssh").chmod(0o755)
    said = ask(tmp_path, LOGIN, str(tmp_path / "handoff/skypilot/ssh_node_pools.yaml"))
    assert [line for line in said.splitlines() if line.startswith("said:")] == [f"said: {name}" for name in proven], said
