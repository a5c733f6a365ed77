"""Node objects against Kubernetes' published schemas, and the script against kubectl itself."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from nodectl.handoff.kubernetes import REASON_MOST, kubernetes, label
from nodectl.handoff.pool import pool_of
from nodectl.wire.event import Event
from tests.handoff.consumers import ask, needs_consumers
from tests.handoff.kube_server import Cluster, api_server
from tests.handoff.pool_events import machine, node, start, verdict, waived

pytestmark = pytest.mark.servers

needs_kubectl = pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl: apt-get install kubernetes-client")
TAINT = {"key": "nodectl/unproven", "value": "failed", "effect": "NoSchedule"}
OTHER = {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}
WHY = "it's \"bad\" $(id) `id`=x; -\nü \\ #-"
EVENTS = [
    *start("gpu-01.rack1", "n2", "n3"), node("n2"), verdict("n2", "fail", WHY), Event("host.lost", 1.0, "n3", {"reason": ""}),
    Event("node", 1.0, "gpu-01.rack1", node("n1").data), waived("gpu-01.rack1", why="it's \"fine\""), verdict("gpu-01.rack1", "skipped"),
]


def nodes_of(*events: Event) -> list[dict[str, Any]]:
    return [one for one in yaml.safe_load_all(kubernetes(pool_of(events)).files["kubernetes/nodes.yaml"]) if one]


def test_labels_of_a_proven_node_and_taint_and_reason_of_an_excluded_one() -> None:
    waiver = '[{"check": "clock.offset", "who": "ops", "why": "it\'s \\"fine\\"", "until": "2026-12-31"}]'
    run = "20260801T000000Z-ab12"
    assert nodes_of(*EVENTS) == [
        {"apiVersion": "v1", "kind": "Node", "spec": {}, "metadata": {
            "name": "gpu-01.rack1", "annotations": {"nodectl/waivers": waiver},
            "labels": {"nodectl/verdict": "skipped", "nodectl/run": run, "nodectl/fabric": "ib", "nodectl/gpu": "h100-sxm"},
        }},
        {"apiVersion": "v1", "kind": "Node", "spec": {"taints": [TAINT]}, "metadata": {
            "name": "n2", "annotations": {"nodectl/reason": f"failed: {WHY}".replace("\n", " ")}, "labels": {"nodectl/verdict": "failed", "nodectl/run": run},
        }},
        {"apiVersion": "v1", "kind": "Node", "spec": {"taints": [{**TAINT, "value": "lost"}]}, "metadata": {
            "name": "n3", "annotations": {"nodectl/reason": "lost"}, "labels": {"nodectl/verdict": "lost", "nodectl/run": run},
        }},
    ]


VALIDATE = """
import sys, yaml
from kubernetes_validate import utils as k
versions = k.all_versions()
for path in sys.argv[1:]:
    for node in filter(None, yaml.safe_load_all(open(path))):
        for version in (versions[0], versions[-1]):
            try:
                k.validate(node, version, strict=True)
            except k.ValidationError as error:
                print(path, version, error.message)
print("done", len(versions))
"""


@needs_consumers
def test_the_published_schemas_take_every_object(tmp_path: Path) -> None:
    """Strict, by the oldest and the newest release that the package holds; the last file proves that the check can fail."""
    (tmp_path / "good.yaml").write_text(kubernetes(pool_of(EVENTS)).files["kubernetes/nodes.yaml"])
    assert ask(tmp_path, VALIDATE, str(tmp_path / "good.yaml")).startswith("done ")
    (tmp_path / "bad.yaml").write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "x"}, "spec": {"taints": [{"key": "a"}], "taint": 1}}))
    assert "'effect' is a required property" in ask(tmp_path, VALIDATE, str(tmp_path / "bad.yaml"))


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with api_server(tmp_path) as running:
        yield running


def apply(cluster: Cluster, *events: Event, args: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    path = cluster.config.with_name("apply.sh")
    path.write_text(kubernetes(pool_of(events)).files["kubernetes/apply.sh"])
    environment = {**os.environ, "KUBECONFIG": str(cluster.config), "HOME": str(cluster.config.parent)}
    return subprocess.run(["sh", str(path), *args], capture_output=True, text=True, env=environment, timeout=120)


def ours(cluster: Cluster) -> dict[str, tuple[dict[str, str], dict[str, str], list[dict[str, str]]]]:
    """By node: nodectl's labels and annotations, and all taints."""
    def of(metadata: dict[str, Any], key: str) -> dict[str, str]:
        return {name: value for name, value in (metadata.get(key) or {}).items() if name.startswith("nodectl/")}

    return {name: (of(node["metadata"], "labels"), of(node["metadata"], "annotations"), node["spec"].get("taints") or []) for name, node in cluster.nodes.items()}


@needs_kubectl
def test_kubectl_does_what_the_objects_say_and_touches_nothing_else(cluster: Cluster) -> None:
    cluster.add("gpu-01.rack1", taints=[OTHER, TAINT], unschedulable=True)
    cluster.add("n2", taints=[OTHER])
    cluster.add("n3")
    cluster.add("stranger", taints=[TAINT])
    cluster.nodes["gpu-01.rack1"]["metadata"]["annotations"] = {"nodectl/reason": "failed: long ago", "mine": "stays"}
    done = apply(cluster, *EVENTS)
    assert done.returncode == 0, done.stderr
    wanted = {one["metadata"]["name"]: one for one in nodes_of(*EVENTS)}
    found = ours(cluster)
    assert {name: found[name][:2] for name in wanted} == {name: (one["metadata"]["labels"], one["metadata"]["annotations"]) for name, one in wanted.items()}
    assert [found["gpu-01.rack1"][2], found["stranger"][2]] == [[OTHER], [TAINT]]
    assert sorted(found["n2"][2], key=lambda taint: taint["key"]) == [OTHER, TAINT]
    assert cluster.nodes["gpu-01.rack1"]["spec"]["unschedulable"] is True
    assert cluster.nodes["gpu-01.rack1"]["metadata"]["annotations"]["mine"] == "stays"
    before = json.dumps(cluster.nodes, sort_keys=True)
    assert apply(cluster, *EVENTS).returncode == 0
    assert json.dumps(cluster.nodes, sort_keys=True) == before


@needs_kubectl
def test_a_node_that_comes_back_loses_taint_and_reason(cluster: Cluster) -> None:
    cluster.add("n1")
    apply(cluster, node("n1"), verdict("n1", "fail", "slow"))
    assert ours(cluster)["n1"][1:] == ({"nodectl/reason": "failed: slow"}, [TAINT])
    apply(cluster, node("n1"), verdict("n1"))
    labels, annotations, taints = ours(cluster)["n1"]
    assert (labels["nodectl/verdict"], annotations, taints) == ("pass", {}, [])


@needs_kubectl
def test_a_node_that_the_cluster_does_not_have_is_said_and_holds_up_nobody(cluster: Cluster) -> None:
    cluster.add("n2")
    done = apply(cluster, *start("n1", "n2"), node("n2"), verdict("n2"))
    assert done.returncode == 1
    assert "failed: kubectl taint node n1" in done.stderr
    assert ours(cluster)["n2"][0]["nodectl/verdict"] == "pass"


@pytest.mark.parametrize(("args", "code"), [(("--dry-run",), 0), (("--help",), 2), (("x",), 2)])
def test_a_dry_run_asks_nobody(args: tuple[str, ...], code: int, cluster: Cluster) -> None:
    cluster.add("n2")
    done = apply(cluster, *EVENTS, args=args)
    assert (done.returncode, cluster.changes) == (code, 0)
    if code == 0:
        assert "kubectl 'taint' 'node' 'n2' '--overwrite' 'nodectl/unproven=failed:NoSchedule'\n" in done.stdout
        assert "kubectl 'taint' 'node' 'gpu-01.rack1' 'nodectl/unproven-'\n" in done.stdout


def test_the_taint_comes_first_and_goes_last() -> None:
    """Between two commands no node that is not proven is free to be scheduled on."""
    calls = [line for line in kubernetes(pool_of(EVENTS)).files["kubernetes/apply.sh"].splitlines() if line.startswith(("try ", "untaint "))]
    assert [line.split()[1] if line.startswith("try") else "untaint" for line in calls] == ["taint", "taint", *["label", "annotate"] * 3, "untaint"]


@needs_kubectl
def test_a_fleet_takes_few_commands_and_everybody_gets_his(cluster: Cluster) -> None:
    """And a name that is part of another is not taken for it."""
    names = [f"n{number}" for number in range(1, 121)]
    for name in names:
        cluster.add(name, taints=[TAINT] if name in ("n1", "n100") else [])
    del cluster.nodes["n77"]
    events = [one for name in names for one in (node(name), verdict(name))]
    calls = [line for line in kubernetes(pool_of(events)).files["kubernetes/apply.sh"].splitlines() if line.startswith(("try ", "untaint "))]
    assert len(calls) == 9
    done = apply(cluster, *events)
    assert (done.returncode, "n77" in done.stderr) == (1, True)
    assert {name for name, (labels, _, taints) in ours(cluster).items() if labels.get("nodectl/verdict") == "pass" and not taints} == set(cluster.nodes)


@needs_kubectl
def test_a_cluster_that_does_not_answer_is_an_error_and_nothing_is_half_done(cluster: Cluster, tmp_path: Path) -> None:
    cluster.config.write_text(cluster.config.read_text().replace("http://127.0.0.1", "http://127.0.0.2"))
    assert apply(cluster, *EVENTS).returncode == 1
    assert cluster.changes == 0


@pytest.mark.parametrize("host", ["Node1", "node_1", "ü", "a.", ".a", "-a", "a-", "a..b", "a-.b", "a" * 254, "fe80::1", "a=b", "n$(id)", "a b", "--all"])
@pytest.mark.parametrize("value", ["pass", "fail"])
def test_names_that_no_node_can_have(host: str, value: str) -> None:
    """`kubectl taint node --all` would stop a whole cluster."""
    artefact = kubernetes(pool_of([Event("node", 1.0, host, node("n2").data), verdict(host, value), node("n3"), verdict("n3")]))
    assert list(artefact.refused) == [host]
    assert all(host not in text for text in artefact.files.values()) or len(host) < 3


@pytest.mark.parametrize("host", ["n1", "10.0.0.1", "gpu-01.rack1.example.org", "a" * 253])
def test_names_that_a_node_can_have(host: str) -> None:
    assert kubernetes(pool_of([Event("node", 1.0, host, node("n2").data), verdict(host)])).refused == {}


@pytest.mark.parametrize(("text", "wanted"), [("a b", "a-b"), ("-a-", "a"), ("ü", ""), ("x" * 80, "x" * 63), ("a" * 62 + ".b", "a" * 62), ("20260801T000000Z-ab12", "20260801T000000Z-ab12"), ("a\n: b", "a-b")])
def test_label_values(text: str, wanted: str) -> None:
    assert label(text) == wanted


def test_gpus_without_a_known_name_and_reasons_without_an_end() -> None:
    odd, bad = nodes_of(node("n1", machine=machine("n1", sku="", gpu_model="")), verdict("n1"), verdict("n2", "fail", "x" * 100_000))
    assert odd["metadata"]["labels"]["nodectl/gpu"] == "gpu"
    assert len(bad["metadata"]["annotations"]["nodectl/reason"]) == REASON_MOST


def test_the_inventorys_own_word_for_a_node_in_kubernetes() -> None:
    def named(host: str, name: str) -> Event:
        return Event("target", 0.5, host, {"address": "192.0.2.9", "slurm_node_name": "", "kubernetes_node_name": name})

    events = [named("N1", "ip-10-0-0-1.ec2.internal"), named("n2", "--all"), named("n3", "ip-10-0-0-1.ec2.internal"), Event("node", 1.0, "N1", node("n1").data), verdict("N1")]
    artefact = kubernetes(pool_of([*events, verdict("n2", "fail"), verdict("n3", "fail")]))
    assert [one["metadata"]["name"] for one in yaml.safe_load_all(artefact.files["kubernetes/nodes.yaml"]) if one] == ["ip-10-0-0-1.ec2.internal"]
    assert set(artefact.refused) == {"n2", "n3"}
    assert "two nodes as ip-10-0-0-1.ec2.internal" in artefact.refused["n3"]
    assert "--all" not in artefact.files["kubernetes/apply.sh"]
