"""What this field adds to an inventory: network_tier, disk_tier and file_mounts, named as SkyPilot names them. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from nodectl.diagnostics.model import Collector
from nodectl.lang.document import Map
from nodectl.lang.unsafe import has_template
from nodectl.wire.origin import Origin

TIERS = ("best", "standard")
MODES = ("MOUNT", "MOUNT_CACHED", "COPY")
# What the mount is for: the names of the field's four workloads, also as MODEL_CHECKPOINT_RO and so on. The role object_cache tunes by them.
PROFILES = ("dataset_ro", "dataset_rw", "checkpoint_ro", "checkpoint_rw")
# The programs that the role object_cache can mount with; a test holds that its table has the same.
CLIENTS = ("rclone", "mountpoint-s3", "s3fs", "juicefs", "goofys", "geesefs")
KEYS = ("source", "mode", "profile", "client", "endpoint", "region", "credentials")
# Bucket names as S3 takes them (3 to 63 of a-z 0-9 . -), then an optional prefix; for JuiceFS the database that holds its names.
_SOURCE = re.compile(r"^(s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(/.*)?|(rediss?|tikv|etcd|mysql|postgres|sqlite3|badger)://\S+)$")
# Mounting over one of these hides what the node needs to run.
_NEVER = frozenset(["/", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib64", "/proc", "/root", "/run", "/sbin", "/sys", "/tmp", "/usr", "/var"])


@dataclass(frozen=True)
class FileMount:
    """One mount of an object store. ``profile``, ``client``, ``endpoint``, ``region`` and ``credentials`` are names, "" where not given."""

    path: str
    source: str
    mode: str = "MOUNT"
    profile: str = ""
    client: str = ""
    endpoint: str = ""
    region: str = ""
    credentials: str = ""

    @property
    def cached(self) -> bool:
        return self.mode == "MOUNT_CACHED"

    @property
    def bucket(self) -> str:
        return self.source.removeprefix("s3://").partition("/")[0]

    @property
    def prefix(self) -> str:
        return self.source.removeprefix("s3://").partition("/")[2]


def network_tier(variables: Mapping[str, Any]) -> str:
    """`best` or `standard`. Raises Mistakes for anything else; ``variables`` are rendered."""
    return _checked_tier("network_tier", variables)


def disk_tier(variables: Mapping[str, Any]) -> str:
    """`best` or `standard`. Raises Mistakes for anything else; ``variables`` are rendered."""
    return _checked_tier("disk_tier", variables)


def file_mounts(variables: Mapping[str, Any]) -> list[FileMount]:
    """The mounts a host asks for, in the order written. Raises Mistakes with everything that is wrong with them."""
    found = Collector()
    mounts = read_mounts(variables.get("file_mounts"), None, found)
    found.stop_if_wrong()
    return mounts


def check_variable(name: str, value: Any, at: Origin | None, found: Collector) -> None:
    """The same checks at load, where a variable is written; values that hold templates are left for the run."""
    if name == "file_mounts":
        read_mounts(value, at, found)
    elif name in ("network_tier", "disk_tier"):
        read_tier(name, value, at, found)


def read_tier(name: str, value: Any, at: Origin | None, found: Collector) -> str:
    """One tier, `best` where it is not given or wrong."""
    if value is None or _templated(value):
        return "best"
    if value in TIERS:
        return str(value)
    near = get_close_matches(str(value).lower(), TIERS, n=1)
    found.error("E306", f"{name} is {value!r}", at, label="expected best or standard", help=f"did you mean '{near[0]}'?" if near else "")
    return "best"


def read_mounts(value: Any, at: Origin | None, found: Collector) -> list[FileMount]:
    """The mounts that are right; what is wrong is in ``found``, at the key or value where its place is known."""
    if value is None or _templated(value):
        return []
    if not isinstance(value, Mapping):
        advice = "write /data: {source: s3://bucket/prefix, mode: MOUNT}"
        found.error("E306", "file_mounts is not a mapping", at, label="expected PATH: {source: …}", help=advice)
        return []
    mounts: list[FileMount] = []
    for path, spec in value.items():
        key_at = value.key_at.get(path, at) if isinstance(value, Map) else at
        mount = _mount(path, spec, key_at, found)
        if mount is not None:
            _apart(mount, mounts, key_at, found)
            mounts.append(mount)
    return mounts


def _mount(path: Any, spec: Any, at: Origin | None, found: Collector) -> FileMount | None:
    before = len(found.errors)
    _path(path, at, found)
    if isinstance(spec, str):
        spec = {"source": spec}
    if not isinstance(spec, Mapping):
        found.error("E306", f"file_mounts: {path} has no source", at, label="expected {source: s3://bucket/prefix}")
        return None
    places = spec.value_at if isinstance(spec, Map) else {}
    keys = spec.key_at if isinstance(spec, Map) else {}
    for key in spec:
        if key not in KEYS:
            near = get_close_matches(str(key), KEYS, n=1)
            advice = f"did you mean '{near[0]}'?" if near else ""
            found.error("E306", f"file_mounts: {path} has an unknown key '{key}'", keys.get(key, at), label=f"expected {', '.join(KEYS)}", help=advice)
    _source(path, spec.get("source"), places.get("source", at), found)
    _choice(path, "mode", MODES, spec.get("mode"), places.get("mode", at), found)
    _choice(path, "profile", PROFILES, _plain_profile(spec.get("profile")), places.get("profile", at), found)
    _choice(path, "client", CLIENTS, spec.get("client"), places.get("client", at), found)
    if len(found.errors) > before:
        return None
    return FileMount(str(path), **{key: str(spec[key]) for key in KEYS if spec.get(key) is not None})


def _plain_profile(value: Any) -> Any:
    """MODEL_CHECKPOINT_RO is checkpoint_ro, in any case of letters; what is none of them stays as it was written."""
    plain = str(value).lower().removeprefix("model_")
    return plain if plain in PROFILES else value


def _path(path: Any, at: Origin | None, found: Collector) -> None:
    text = str(path)
    if _templated(text):
        return
    if not isinstance(path, str) or not text.startswith("/") or ".." in text.split("/") or any(char.isspace() for char in text):
        message = f"file_mounts: '{path}' is not a mount point"
        found.error("E306", message, at, label="expected an absolute path without blanks", help="write for example /data")
    elif (text.rstrip("/") or "/") in _NEVER:
        message = f"file_mounts: {path} would hide the node's own files"
        found.error("E306", message, at, label="a system folder", help="choose a folder of its own, for example /data")


def _source(path: Any, source: Any, at: Origin | None, found: Collector) -> None:
    if isinstance(source, str) and (_templated(source) or _SOURCE.match(source)):
        return
    said = "no source" if source is None else f"source {source!r}"
    found.error("E306", f"file_mounts: {path} has {said}", at, label="expected s3://bucket/prefix", help="a bucket has 3 to 63 of a-z 0-9 . -")


def _choice(path: Any, key: str, choices: tuple[str, ...], value: Any, at: Origin | None, found: Collector) -> None:
    if value is None or value in choices or _templated(value):
        return
    near = get_close_matches(str(value).lower(), [choice.lower() for choice in choices], n=1)
    meant = next((choice for choice in choices if near and choice.lower() == near[0]), "")
    advice = f"did you mean '{meant}'?" if meant else ""
    found.error("E306", f"file_mounts: {path} has {key} {value!r}", at, label=f"expected {' or '.join(choices)}", help=advice)


def _apart(mount: FileMount, others: list[FileMount], at: Origin | None, found: Collector) -> None:
    """A mount inside another would vanish whenever the outer one is restarted."""
    for other in others:
        one, two = mount.path.rstrip("/") + "/", other.path.rstrip("/") + "/"
        if one.startswith(two) or two.startswith(one):
            found.error("E306", f"file_mounts: {mount.path} and {other.path} lie inside each other", at, label="expected separate folders")


def _checked_tier(name: str, variables: Mapping[str, Any]) -> str:
    found = Collector()
    tier = read_tier(name, variables.get(name), None, found)
    found.stop_if_wrong()
    return tier


def _templated(value: Any) -> bool:
    return isinstance(value, str) and has_template(value)
