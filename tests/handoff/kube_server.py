"""As much of a Kubernetes API server as kubectl needs to change nodes: discovery, and GET and PATCH of nodes. Validates what it stores by label's rules."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

_DISCOVERY: dict[str, Any] = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
    "/api/v1": {
        "kind": "APIResourceList", "groupVersion": "v1",
        "resources": [{"name": "nodes", "singularName": "", "namespaced": False, "kind": "Node", "shortNames": ["no"], "verbs": ["get", "list", "patch", "update"]}],
    },
}
_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")


@dataclass
class Cluster:
    """``nodes`` by name, as objects; ``config`` is the kubeconfig that leads here; ``changes`` counts patches."""

    config: Path
    nodes: dict[str, dict[str, Any]] = field(default_factory=dict)
    changes: int = 0

    def add(self, name: str, **spec: Any) -> None:
        labels = {"kubernetes.io/hostname": name}
        self.nodes[name] = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": spec}


def merged(old: Any, patch: Any) -> Any:
    """A JSON merge patch (RFC 7386); Node.spec.taints has no merge key, so kubectl's strategic patches of nodes are the same."""
    if not isinstance(patch, dict):
        return patch
    new = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if key.startswith("$"):
            continue
        if value is None:
            new.pop(key, None)
        else:
            new[key] = merged(new.get(key), value)
    return new


@contextmanager
def api_server(folder: Path) -> Iterator[Cluster]:
    cluster = Cluster(folder / "kubeconfig")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            listed = {"apiVersion": "v1", "kind": "NodeList", "metadata": {}, "items": list(cluster.nodes.values())} if path == "/api/v1/nodes" else None
            self.answer(_DISCOVERY.get(path) or listed or cluster.nodes.get(path.removeprefix("/api/v1/nodes/")))

        def do_PATCH(self) -> None:
            name = self.path.partition("?")[0].removeprefix("/api/v1/nodes/")
            patch = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            assert "json" in self.headers["Content-Type"]
            node = merged(cluster.nodes[name], patch)
            assert all(_VALUE.fullmatch(value) for value in node["metadata"]["labels"].values()), "422"
            cluster.nodes[name] = node
            cluster.changes += 1
            self.answer(node)

        def answer(self, value: Any) -> None:
            status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404, "message": f'"{self.path}" not found'}
            body = json.dumps(value or status).encode()
            self.send_response(200 if value else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            return None

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    cluster.config.write_text(json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "t", "contexts": [{"name": "t", "context": {"cluster": "t", "user": "t"}}],
        "clusters": [{"name": "t", "cluster": {"server": f"http://127.0.0.1:{server.server_address[1]}"}}], "users": [{"name": "t", "user": {}}],
    }))
    try:
        yield cluster
    finally:
        server.shutdown()
        server.server_close()
