"""rclone's control interface on this node: how much of a mount's cache is not in the object store yet."""

from __future__ import annotations

import base64
import http.client
import json
import os
import stat
import urllib.parse
from typing import Any, Dict, Tuple

from nodectl.agent.contract import Failed
from nodectl.agent.system import System

_LOCAL = ("127.0.0.1", "localhost", "::1")


def credentials(system: System, path: str) -> Tuple[str, str]:
    """RCLONE_RC_USER and RCLONE_RC_PASS from a file that only root may read; ("", "") for no file."""
    if not path:
        return "", ""
    info, raw = system.stat(path, follow=True), system.read(path)
    if info is None or raw is None:
        raise Failed(f"there is no {path} with the credentials of rclone's control interface")
    if stat.S_IMODE(info.st_mode) & 0o077:
        raise Failed(f"{path} holds a password and can be read by others (mode {stat.S_IMODE(info.st_mode):04o}): set 0600")
    pairs = dict(line.strip().split("=", 1) for line in raw.decode("utf-8", "replace").splitlines() if "=" in line and not line.lstrip().startswith("#"))
    return pairs.get("RCLONE_RC_USER", "").strip("\"'"), pairs.get("RCLONE_RC_PASS", "").strip("\"'")


def call(system: System, url: str, env_file: str, command: str, timeout: float) -> Dict[str, Any]:
    """One command's answer. Raises Failed; the password is in no message and in no argv."""
    _must_be_local(url)
    user, password = credentials(system, env_file)
    return post(url, user, password, command, {}, timeout)


def _must_be_local(url: str) -> None:
    parts = urllib.parse.urlsplit(url)
    if parts.scheme != "http" or parts.hostname not in _LOCAL:
        raise Failed(f"rclone's control interface is asked on this node only (http://127.0.0.1:PORT), not on {url}")


def post(url: str, user: str, password: str, command: str, order: Dict[str, Any], timeout: float) -> Dict[str, Any]:
    """As ``call``, with what the command takes and with credentials at hand."""
    _must_be_local(url)
    parts = urllib.parse.urlsplit(url)
    headers = {"Content-Type": "application/json"}
    if user:
        headers["Authorization"] = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode("ascii")
    connection = http.client.HTTPConnection(parts.hostname or "127.0.0.1", parts.port or 5572, timeout=timeout)
    try:
        connection.request("POST", f"/{command}", body=json.dumps(order).encode(), headers=headers)
        answer = connection.getresponse()
        data = json.loads(answer.read(1024 * 1024).decode("utf-8", "replace") or "{}")
    except (OSError, http.client.HTTPException) as error:
        raise Failed(f"rclone's control interface at {url} does not answer: {error}") from None
    except ValueError:
        raise Failed(f"rclone's control interface at {url} gave no JSON for {command}") from None
    finally:
        connection.close()
    if answer.status != 200 or not isinstance(data, dict):
        raise Failed(f"rclone at {url} refuses {command}: {answer.status} {str(data.get('error', '') if isinstance(data, dict) else '')[:200]}")
    return data


def cache_stats(system: System, url: str, env_file: str, timeout: float) -> Dict[str, int]:
    """queued, uploading, errored, dirty (files that the cache's own records call not uploaded), bytes, out_of_space.

    rclone answers 200 with no diskCache for a mount that has no cache: then nothing can be left behind.
    """
    data = call(system, url, env_file, "vfs/stats", timeout)
    cache = data.get("diskCache")
    if not isinstance(cache, dict):
        return {"queued": 0, "uploading": 0, "errored": 0, "dirty": 0, "bytes": 0, "out_of_space": 0}
    missing = [key for key in ("uploadsQueued", "uploadsInProgress", "erroredFiles") if key not in cache]
    if missing:
        raise Failed(f"this rclone does not tell {', '.join(missing)} in vfs/stats: it cannot be known whether everything is uploaded")
    return {
        "queued": int(cache["uploadsQueued"]), "uploading": int(cache["uploadsInProgress"]), "errored": int(cache["erroredFiles"]),
        "dirty": dirty_files(str(cache.get("pathMeta", ""))), "bytes": int(cache.get("bytesUsed", 0)), "out_of_space": int(bool(cache.get("outOfSpace"))),
    }


def dirty_files(folder: str, limit: int = 100000) -> int:
    """Records below the cache's vfsMeta folder that say Dirty; they also show files that are still open for writing.

    Bounded: a cache of more files than ``limit`` is counted as far as that.
    """
    dirty = seen = 0
    for base, _, names in os.walk(folder) if folder else ():
        for name in names:
            seen += 1
            if seen > limit:
                return dirty
            try:
                with open(os.path.join(base, name), "rb") as handle:
                    dirty += b'"Dirty": true' in handle.read(1024 * 1024) or 0
            except OSError:
                continue
    return dirty
