"""Kubernetes: a taint on every node that is not proven, labels on those that are, and the same as Node objects.

The taints of a node are one list that is replaced as a whole by whoever applies or patches it (Node.spec.taints is atomic), and the
cluster keeps its own there (not-ready, unschedulable). So what is to be *done* is a script of kubectl's own verbs, which change one key.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from nodectl.handoff.artefact import Artefact, Inexpressible
from nodectl.handoff.block_yaml import block
from nodectl.handoff.pool import Excluded, HandedNode, Pool

# A subdomain of DNS (RFC 1123), as Kubernetes wants it of a node's name.
_NAME = re.compile(r"(?=.{1,253}\Z)[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*")
# A label's value has at most so many characters and begins and ends with a letter or a digit.
LABEL_MOST = 63
TAINT = "nodectl/unproven"
VERDICT, RUN, GPU, FABRIC, REASON, WAIVERS = "nodectl/verdict", "nodectl/run", "nodectl/gpu", "nodectl/fabric", "nodectl/reason", "nodectl/waivers"
# All annotations of an object together may have 256 KiB; a reason that long helps nobody.
REASON_MOST = 4096


def kubernetes(pool: Pool) -> Artefact:
    """nodes.yaml and apply.sh. Excluded nodes are tainted, with the reason as an annotation."""
    nodes: list[dict[str, Any]] = []
    refused = {}
    wanted: list[HandedNode | Excluded] = [*pool.nodes, *pool.excluded]
    taken: set[str] = set()
    for one in wanted:
        try:
            if name(one) in taken:
                raise Inexpressible(f"Kubernetes would know two nodes as {name(one)}")
            taken.add(name(one))
            nodes.append(_proven(one, pool.run_id) if isinstance(one, HandedNode) else _excluded(one, pool.run_id))
        except Inexpressible as error:
            refused[one.host] = str(error)
    head = f"# Nodes of nodectl's run {label(pool.run_id)}: labels, annotations and taints as Node objects. To change a cluster, use apply.sh beside this.\n"
    documents = "".join(f"---\n{block(node)}" for node in nodes)
    return Artefact({"kubernetes/nodes.yaml": head + documents, "kubernetes/apply.sh": script(nodes, pool.run_id)}, refused)


def name(item: HandedNode | Excluded) -> str:
    """The node's name in Kubernetes. Raises Inexpressible."""
    host = item.names.kubernetes or item.host
    if not _NAME.fullmatch(host):
        raise Inexpressible(f"{host!r} is not a node name of Kubernetes: small letters, digits, - and dots, a letter or a digit at either end of each part")
    return host


def label(text: str) -> str:
    """``text`` in the letters that a label's value may have."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", text)[:LABEL_MOST].strip("-_.")


def _proven(node: HandedNode, run_id: str) -> dict[str, Any]:
    labels = {VERDICT: node.verdict, RUN: label(run_id), FABRIC: label(node.fabric), GPU: label(node.machine.gpu_type) if node.gpus else ""}
    waivers = json.dumps([vars(waiver) for waiver in node.waivers], ensure_ascii=False) if node.waivers else ""
    return _node(name(node), labels, {WAIVERS: waivers}, [])


def _excluded(item: Excluded, run_id: str) -> dict[str, Any]:
    kind = label(item.kind)
    taints = [{"key": TAINT, "value": kind, "effect": "NoSchedule"}]
    return _node(name(item), {VERDICT: kind, RUN: label(run_id)}, {REASON: _printable(item.sentence)[:REASON_MOST]}, taints)


def _node(host: str, labels: Mapping[str, str], annotations: Mapping[str, str], taints: list[dict[str, str]]) -> dict[str, Any]:
    metadata = {"name": host, "labels": _said(labels), "annotations": _said(annotations)}
    said = {key: value for key, value in metadata.items() if value}
    return {"apiVersion": "v1", "kind": "Node", "metadata": said, "spec": {"taints": taints} if taints else {}}


def _said(values: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in values.items() if value}


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)


_SCRIPT = r"""#!/bin/sh
# Label the nodes that nodectl's run @RUN@ proved, and taint those that it excluded.
#
#     kubernetes/apply.sh             do it (with kubectl's current context)
#     kubernetes/apply.sh --dry-run   only print the commands
#
# Changes nothing but nodectl's own labels, annotations and taint (@TAINT@): a node that somebody
# cordoned stays cordoned. What runs on a tainted node goes on running. May be run again and again.
set -u

case ${1-} in
    '') run() { kubectl "$@"; } ;;
    --dry-run) run() { printf 'kubectl'; printf " '%s'" "$@"; printf '\n'; } ;;
    *) sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
command -v kubectl >/dev/null 2>&1 || [ "${1-}" ] || { echo "apply.sh: no kubectl here" >&2; exit 1; }
status=0

# Each of its own, so that one unknown node does not hold up the others.
try() { run "$@" || { echo "failed: kubectl $*" >&2; status=1; }; }

# untaint NODE...: kubectl calls it an error to remove what is not there.
untaint() {
    for node in "$@"; do
        case $tainted in *" $node "*) try taint node "$node" @TAINT@- ;; esac
    done
}

# tainted: the nodes that have nodectl's taint now; a dry run takes all that may have it.
if [ "${1-}" ]; then
    tainted=' @PROVEN@ '
else
    keys=$(kubectl get nodes -o 'jsonpath={range .items[*]}{.metadata.name}{" "}{.spec.taints[*].key}{"\n"}{end}') || exit 1
    tainted=" $(printf '%s\n' "$keys" | awk '{ for (i = 2; i <= NF; i++) if ($i == "@TAINT@") printf "%s ", $1 }')"
fi

@CALLS@
exit "$status"
"""


def script(nodes: list[dict[str, Any]], run_id: str) -> str:
    """The text of apply.sh: labels and annotations of each node as its object has them, and nodectl's own that it lacks taken away."""
    out = [node for node in nodes if node["spec"]]
    proven = [node["metadata"]["name"] for node in nodes if not node["spec"]]
    # Out first and in last: between two commands no unproven node is without its taint.
    calls = [call for node in out for call in _taints(node)]
    calls += [call for words, names in _alike(nodes).items() for some in _slices(names) for call in _words(some, *words)]
    calls += [f"untaint {' '.join(some)}" for some in _slices(proven)]
    values = {"@RUN@": label(run_id), "@TAINT@": TAINT, "@PROVEN@": " ".join(proven), "@CALLS@": "\n".join(calls)}
    return re.sub("@(?:RUN|TAINT|PROVEN|CALLS)@", lambda mark: values[mark[0]], _SCRIPT)


# Of a fleet most nodes get the same words, and kubectl takes many nodes at once; so many names are a line that can still be read.
AT_ONCE = 50


def _slices(names: Sequence[str]) -> list[Sequence[str]]:
    return [names[first:first + AT_ONCE] for first in range(0, len(names), AT_ONCE)]


def _alike(nodes: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], list[str]]:
    """Names of nodes by (changes of labels, changes of annotations)."""
    found: dict[tuple[str, str], list[str]] = {}
    for node in nodes:
        labels = _changes(node["metadata"].get("labels", {}), (VERDICT, RUN, FABRIC, GPU))
        annotations = _changes(node["metadata"].get("annotations", {}), (REASON, WAIVERS))
        found.setdefault((shlex.join(labels), shlex.join(annotations)), []).append(node["metadata"]["name"])
    return found


def _words(names: Sequence[str], labels: str, annotations: str) -> list[str]:
    return [f"try label node {' '.join(names)} --overwrite {labels}", f"try annotate node {' '.join(names)} --overwrite {annotations}"]


def _taints(node: Mapping[str, Any]) -> list[str]:
    taints = [f"{taint['key']}={taint['value']}:{taint['effect']}" for taint in node["spec"]["taints"]]
    return [f"try taint node {node['metadata']['name']} --overwrite {shlex.join(taints)}"]


def _changes(wanted: Mapping[str, str], own: tuple[str, ...]) -> list[str]:
    return [f"{key}={wanted[key]}" if key in wanted else f"{key}-" for key in own]
