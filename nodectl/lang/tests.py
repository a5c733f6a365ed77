"""Jinja tests that Ansible adds (`x is succeeded`, `x is version(…)`)."""

from __future__ import annotations

import functools
import os.path
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from jinja2 import Undefined
from jinja2.tests import TESTS as JINJA

from nodectl.lang.filters_net import NET_TESTS
from nodectl.lang.undefined import Broken, Missing
from nodectl.lang.vault import MAGIC, is_encrypted
from nodectl.lang.versions import compare


def _result(value: Any, test: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise TypeError(f"the test '{test}' wants a registered result, not {value!r}")
    return value


def failed(result: Any) -> bool:
    return bool(_result(result, "failed").get("failed", False))


def succeeded(result: Any) -> bool:
    return not failed(result)


def changed(result: Any) -> bool:
    found = _result(result, "changed")
    if "changed" in found or "results" not in found:
        return bool(found.get("changed", False))
    return any(isinstance(item, Mapping) and item.get("changed", False) for item in found["results"])


def skipped(result: Any) -> bool:
    return bool(_result(result, "skipped").get("skipped", False))


def unreachable(result: Any) -> bool:
    return bool(_result(result, "unreachable").get("unreachable", False))


def _begun(result: Any, key: str) -> bool:
    """A task without `async` has both begun and ended, as in Ansible."""
    return bool(_result(result, key).get(key, True))


def timed_out(result: Any) -> bool:
    late = _result(result, "timedout").get("timedout")
    return isinstance(late, Mapping) and bool(late.get("period"))


def vaulted_file(path: Any) -> bool:
    with open(path, encoding="utf-8", errors="replace") as file:
        return is_encrypted(file.read(len(MAGIC) + 1))


def regex(value: Any = "", pattern: str = "", ignorecase: bool = False, multiline: bool = False, match_type: str = "search") -> bool:
    if match_type not in ("search", "match", "fullmatch"):
        raise ValueError(f"match_type {match_type!r} is not one of search, match, fullmatch")
    flags = (re.IGNORECASE if ignorecase else 0) | (re.MULTILINE if multiline else 0)
    return bool(getattr(re.compile(pattern, flags), match_type)(str(value)))


def match(value: Any, pattern: str = "", ignorecase: bool = False, multiline: bool = False) -> bool:
    return regex(value, pattern, ignorecase, multiline, "match")


def search(value: Any, pattern: str = "", ignorecase: bool = False, multiline: bool = False) -> bool:
    return regex(value, pattern, ignorecase, multiline, "search")


def version(value: Any, than: Any, operator: str = "==", strict: bool | None = None, version_type: str | None = None) -> bool:
    if strict:
        raise ValueError("strict=true is not known here; use version_type='semver'")
    return compare(value, than, operator, version_type or "loose")


def truthy(value: Any, convert_bool: bool = False) -> bool:
    if convert_bool and isinstance(value, str) and value.lower() in ("false", "no", "off", "0", "n", "f"):
        return False
    return bool(value)


def falsy(value: Any, convert_bool: bool = False) -> bool:
    return not truthy(value, convert_bool)


def defined(value: Any) -> bool:
    if isinstance(value, Broken):
        value._fail_with_undefined_error()
    return not isinstance(value, Undefined)


def undefined(value: Any) -> bool:
    return not defined(value)


def contains(container: Any, item: Any) -> bool:
    return item in container


def subset(value: Any, other: Any) -> bool:
    return set(value) <= set(other)


def superset(value: Any, other: Any) -> bool:
    return subset(other, value)


def uri(value: Any, schemes: Sequence[str] | None = None) -> bool:
    """As in Ansible, any text without a scheme is one."""
    return isinstance(value, str) and (not schemes or urlsplit(value).scheme in schemes)


def url(value: Any, schemes: Sequence[str] | None = None) -> bool:
    return uri(value, schemes) and (urlsplit(value).scheme == "file" or bool(urlsplit(value).netloc))


def fqdn_valid(*names: str, min_labels: int = 1, allow_underscores: bool = False) -> bool:
    """Names of hosts as the domain name system takes them."""
    label = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)" if allow_underscores else r"(?!-)[A-Za-z0-9-]{1,63}(?<!-)")
    split = [str(name).removesuffix(".").split(".") for name in names]
    return all(len(parts) >= min_labels and len(".".join(parts)) <= 253 and all(map(label.fullmatch, parts)) for parts in split)


def same_file(one: str, two: str) -> bool:
    return os.path.samefile(one, two)


# Of the controller's files, as in Ansible: for those of a node there is the module stat.
_FILES: Mapping[str, Callable[..., bool]] = {
    "abs": os.path.isabs, "is_abs": os.path.isabs, "directory": os.path.isdir, "is_dir": os.path.isdir, "exists": os.path.exists,
    "file": os.path.isfile, "is_file": os.path.isfile, "link": os.path.islink, "is_link": os.path.islink, "link_exists": os.path.lexists,
    "mount": os.path.ismount, "is_mount": os.path.ismount, "same_file": same_file, "is_same_file": same_file,
}  # fmt: skip


def _strict(test: Callable[..., bool]) -> Callable[..., bool]:
    """An undefined value is an error before the test looks at it."""

    @functools.wraps(test)
    def checked(value: Any, *args: Any, **options: Any) -> bool:
        for item in (value, *args):
            if isinstance(item, Missing):
                item._fail_with_undefined_error()
        return test(value, *args, **options)

    return checked


def _table() -> dict[str, Callable[..., bool]]:
    strict: dict[str, Callable[..., bool]] = {
        "failed": failed, "failure": failed, "succeeded": succeeded, "success": succeeded, "successful": succeeded,
        "started": functools.partial(_begun, key="started"), "finished": functools.partial(_begun, key="finished"), "timedout": timed_out,
        "changed": changed, "change": changed, "skipped": skipped, "skip": skipped,
        "unreachable": unreachable, "reachable": lambda value: not unreachable(value),
        "regex": regex, "match": match, "search": search, "version": version, "version_compare": version,
        "truthy": truthy, "falsy": falsy, "contains": contains,
        "subset": subset, "issubset": subset, "superset": superset, "issuperset": superset,
        "uri": uri, "url": url, "urn": lambda value: uri(value, ["urn"]), "vault_encrypted": lambda value: False, "vaulted_file": vaulted_file,
        **_FILES,
        "all": all, "any": any, "nan": lambda value: value != value, "isnan": lambda value: value != value,
    }  # fmt: skip
    jinja: dict[str, Any] = {name: test for name, test in JINJA.items() if name not in ("filter", "test")}
    return {**{name: _strict(test) for name, test in {**jinja, **strict}.items()}, "defined": defined, "undefined": undefined}


TESTS: Mapping[str, Callable[..., bool]] = _table()
COLLECTIONS: Mapping[str, Mapping[str, Callable[..., bool]]] = {
    "ansible.utils": {name: _strict(test) for name, test in NET_TESTS.items()},
    "community.general": {"fqdn_valid": _strict(fqdn_valid)},
}
