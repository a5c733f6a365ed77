"""One host's way through blocks, rescues, always and includes."""

from __future__ import annotations

import pytest

from nodectl.engine.cursor import Cursor, Failure, Inclusion
from nodectl.engine.strategy import next_group
from nodectl.lang.task import Block, Node, Task
from nodectl.wire.origin import Origin

HERE = Origin("t.yml", 1, 1)


def task(name: str) -> Task:
    return Task("debug", {}, HERE, name=name)


def block(body: list[Node], rescue: list[Node] | None = None, always: list[Node] | None = None) -> Block:
    return Block(tuple(body), tuple(rescue or ()), tuple(always or ()), HERE)


def walk(nodes: list[Node], failing: set[str] = frozenset(), stopped: set[str] = frozenset()) -> tuple[list[str], Cursor]:  # type: ignore[assignment]
    """Names in the order in which they are reached; tasks in ``failing`` fail, those in ``stopped`` are stopped from outside."""
    cursor, seen = Cursor(nodes), []
    while (place := cursor.position()) is not None:
        name = str(place.task.name)
        seen.append(name)
        if name in failing or name in stopped:
            cursor.fail(Failure(place.task, {"msg": name}, rescuable=name not in stopped))
        else:
            cursor.advance()
    return seen, cursor


A, B, C, D, E, F = (task(name) for name in "abcdef")

WAYS = [
    ("plain", [A, B], set(), "ab", ""),
    ("fails at once", [A, B], {"a"}, "a", "a"),
    ("block without failure passes over its rescue", [block([A], [B], [C]), D], set(), "acd", ""),
    ("rescue", [block([A, B], [C], [D]), E], {"a"}, "acde", ""),
    ("rescue fails, always runs, then the end", [block([A], [B], [C]), D], {"a", "b"}, "abc", "b"),
    ("always fails", [block([A], [], [B, C]), D], {"b"}, "ab", "b"),
    ("always after a failure that nobody rescues", [block([A], [], [B]), C], {"a"}, "ab", "a"),
    ("inner failure reaches the outer rescue", [block([block([A], [], [B]), C], [D]), E], {"a"}, "abde", ""),
    ("inner rescue fails into the outer rescue", [block([block([A], [B], [C])], [D], [E]), F], {"a", "b"}, "abcdef", ""),
    ("a block in a rescue", [block([A], [block([B], [C])]), D], {"a", "b"}, "abcd", ""),
    ("empty block", [block([]), A], set(), "a", ""),
]


@pytest.mark.parametrize(("name", "nodes", "failing", "way", "failed"), WAYS, ids=[way[0] for way in WAYS])
def test_way(name: str, nodes: list[Node], failing: set[str], way: str, failed: str) -> None:
    seen, cursor = walk(nodes, failing)
    assert "".join(seen) == way
    assert (cursor.failure.result["msg"] if cursor.failure else "") == failed


def test_a_host_that_is_stopped_runs_always_but_no_rescue() -> None:
    assert walk([block([A, B], [C], [D]), E], stopped={"a"})[0] == ["a", "d"]


def test_will_rescue_looks_through_inner_blocks() -> None:
    cursor = Cursor([block([block([A], [], [B])], [C]), D])
    cursor.position()
    assert cursor.will_rescue()
    seen = walk([block([A], [B])], {"a"})[1]
    assert not seen.will_rescue()


def test_includes_run_in_order_with_their_variables_inside() -> None:
    cursor = Cursor([A, B])
    cursor.position()
    cursor.insert([Inclusion((C,), {"x": 1}), Inclusion((block([D], [E]),), {"x": 2})])
    seen = []
    while (place := cursor.position()) is not None:
        seen.append((place.task.name, dict(place.params)))
        if place.task is D:
            cursor.fail(Failure(D, {}))
        else:
            cursor.advance()
    assert seen == [("c", {"x": 1}), ("d", {"x": 2}), ("e", {"x": 2}), ("b", {})]


def test_paths_put_a_rescue_after_the_body_and_an_include_after_its_task() -> None:
    paths = []
    cursor = Cursor([block([A, B], [C], [D]), E])
    while (place := cursor.position()) is not None:
        paths.append(place.path)
        if place.task is B:
            cursor.fail(Failure(B, {}))
        elif place.task is C:
            cursor.insert([Inclusion((F,), {})])
        else:
            cursor.advance()
    assert paths == sorted(paths)
    assert len(paths) == 6


def test_end_leaves_out_always() -> None:
    cursor = Cursor([block([A], [], [B]), C])
    cursor.position()
    cursor.end()
    assert cursor.position() is None


def test_skip_only_reaches_the_outermost_tasks() -> None:
    cursor = Cursor([A, B], skip=lambda one: one is A or one is C)
    assert cursor.position().task is B  # type: ignore[union-attr]
    cursor.insert([Inclusion((C,), {})])
    assert cursor.position().task is C  # type: ignore[union-attr]


def test_linear_works_on_the_smallest_position() -> None:
    one, two = Cursor([block([A, B], [C]), D]), Cursor([block([A, B], [C]), D])
    cursors = {"h1": one, "h2": two}
    order = []
    while (group := next_group(cursors)) is not None:
        order.append((group.task.name, sorted(group.members)))
        for host in group.members:
            if host == "h1" and group.task is A:
                one.fail(Failure(A, {}))
            else:
                cursors[host].advance()
    # h1 waits in its rescue until h2 has ended the body, and both meet again at d.
    assert order == [("a", ["h1", "h2"]), ("b", ["h2"]), ("c", ["h1"]), ("d", ["h1", "h2"])]
