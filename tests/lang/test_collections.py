"""Filters and tests of ansible.utils and community.general beside the collections themselves.

Their answers are recorded in cases/collections.json with the versions that gave them. `python -m tests.lang.test_collections` asks anew;
it needs the collections, which the tests do not: `pip install 'ansible>=12,<13' netaddr jmespath` in an environment of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nodectl.lang.template import Templar
from nodectl.lang.template_error import TemplateError
from tests.lang.test_oracle import ERROR, Oracle, bare

HERE = Path(__file__).parent / "cases"
ROOT = Path(__file__).parents[2]
RECORDED: dict[str, Any] = json.loads((HERE / "collections.json").read_text("utf-8"))

ADDRESSES = [
    "192.0.2.1", "192.0.2.1/24", "192.0.2.0/24", "10.1.2.3/8", "10.0.0.0/31", "192.0.2.5/32", "127.0.0.1", "8.8.8.8", "224.0.0.1", "169.254.1.1/16",
    "2001:db8::1", "2001:db8::/32", "fe80::1/64", "::1", "not an address", "192.0.2.300",
]  # fmt: skip
QUERIES: list[Any] = [
    "", "address", "network", "netmask", "prefix", "broadcast", "hostmask", "size", "subnet", "net", "int", "bool", "type", "version", "revdns", "host", "ipv4",
    "ipv6", "private", "public", "loopback", "multicast", "unicast", "link-local", "wrap", "cidr", "first_usable", "last_usable", "range_usable", "size_usable",
    "next_usable", "previous_usable", "network_id", "network/prefix", "network_netmask", "network_wildcard", "address/prefix", "ip/prefix", "ip_netmask",
    "ip_wildcard", 1, -1, 300, "192.0.2.0/24", "wildcard", "nonsense",
]  # fmt: skip
OTHERS = json.loads((HERE / "collection_expressions.json").read_text("utf-8"))


def expressions() -> Iterator[str]:
    yield from (asked(address, query) for query in QUERIES for address in ADDRESSES)
    yield from OTHERS


def asked(address: str, query: Any) -> str:
    return f"{{{{ {address!r} | ansible.utils.ipaddr({query!r}) }}}}"


class Theirs(Oracle):
    """ansible-core with the collections beside it."""

    def versions(self) -> dict[str, str]:
        import ansible
        from ansible.utils.collection_loader._collection_finder import _get_collection_metadata as metadata

        roots = {name: metadata(name) for name in ("ansible.utils", "community.general")}
        assert all(roots.values())
        import importlib.resources as resources

        found = {"ansible-core": ansible.__version__}
        for name in roots:
            manifest = json.loads(resources.files(f"ansible_collections.{name}").joinpath("MANIFEST.json").read_text("utf-8"))
            found[name] = manifest["collection_info"]["version"]
        return found


def record() -> None:
    oracle = Theirs()
    answers = {text: oracle.render(text) for text in expressions()}
    whole = {"versions": oracle.versions(), "answers": answers}
    (HERE / "collections.json").write_text(json.dumps(whole, indent=1) + "\n", "utf-8")


def test_nothing_recorded_is_out_of_date() -> None:
    assert list(RECORDED["answers"]) == list(dict.fromkeys(expressions()))
    assert set(RECORDED["versions"]) == {"ansible-core", "ansible.utils", "community.general"}


def ours(text: str) -> Any:
    try:
        return json.loads(json.dumps(bare(Templar().render(text, {}))))
    except TemplateError:
        return ERROR


@pytest.mark.parametrize("text", OTHERS)
def test_same_as_the_collection(text: str) -> None:
    assert ours(text) == RECORDED["answers"][text]


# Where ansible.utils fails although the question is a good one, nodectl says false, or the answer.
FAILS = ("first_usable", "last_usable", "range_usable", "next_usable", "previous_usable", "ip_wildcard")
DEVIATION = "`ipaddr` says false"


@pytest.mark.parametrize("query", QUERIES)
def test_each_question_to_ipaddr(query: Any) -> None:
    assert DEVIATION in (ROOT / "docs/deviations.md").read_text("utf-8")
    for address in ADDRESSES:
        theirs = RECORDED["answers"][asked(address, query)]
        if theirs != ERROR or query not in FAILS:
            assert (address, ours(asked(address, query))) == (address, False if theirs is None else theirs)


def test_names_of_hosts() -> None:
    """The collection needs one more library for these."""
    names = {"n1.example.com": True, "n1_x.example.com": False, "-a.b": False, "a" * 64: False, "a..b": False}
    assert {name: ours(f"{{{{ {name!r} is community.general.fqdn_valid }}}}") for name in names} == names
    assert ours("{{ 'n1' is community.general.fqdn_valid(min_labels=2) }}") is False


if __name__ == "__main__":
    record()
