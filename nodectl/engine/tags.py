"""Which tasks --tags and --skip-tags select: Ansible's rules, with always, never, tagged, untagged and all."""

from __future__ import annotations

from collections.abc import Collection

SPECIAL = frozenset(["all", "always", "never", "tagged", "untagged"])


def selected(tags: Collection[str], only: Collection[str], skip: Collection[str]) -> bool:
    """``tags`` of the task with those of its play; empty ``only`` means all."""
    own = set(tags) or {"untagged"}
    return _asked_for(own, set(only) or {"all"}) and not _left_out(own, set(skip))


def _asked_for(own: set[str], only: set[str]) -> bool:
    if "always" in own or own & only:
        return True
    return "never" not in own and ("all" in only or ("tagged" in only and own != {"untagged"}))


def _left_out(own: set[str], skip: set[str]) -> bool:
    if "all" in skip:
        return "always" not in own or "always" in skip
    return bool(own & skip) or ("tagged" in skip and own != {"untagged"})
