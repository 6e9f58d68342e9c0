"""Addresses of frames."""

from __future__ import annotations

import pytest

from ctxctl.errors import UsageError
from tests.unit.engine.making import Json, add, inspect

EVENTS: list[Json] = [
    add("a", "x", turn="t1", step="s1"),
    add("b", "y", turn="t1", step="s2"),
    add("c", "z", turn="t2", step="s3"),
    add("d", "w", turn="t1", step="q", thread="explorer"),
]


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("1", ("main", 1, 2)),
        ("1.1", ("main", 1, 1)),
        ("1.-2", ("main", 1, 1)),
        ("2", ("main", 2, 1)),
        ("-1", ("main", 2, 1)),
        ("-2.1", ("main", 1, 1)),
        ("explorer:1", ("explorer", 1, 1)),
        ("main:2", ("main", 2, 1)),
    ],
)
def test_addresses(address: str, place: tuple[str, int, int]) -> None:
    inspector = inspect(EVENTS)
    step = inspector.step(inspector.resolve(address))
    assert (step.thread, step.turn, step.step) == place


def test_a_name_with_dividers_in_it() -> None:
    inspector = inspect([add("a", "x", turn="t"), add("b", "y", turn="t", thread="main/views")])
    for address in ("main//views:1", "main/views:1", "main//views:-1.1"):
        assert inspector.step(inspector.resolve(address)).thread == "main/views"
    with pytest.raises(UsageError) as caught:
        inspector.resolve("other:1")
    assert caught.value.hint == "there are: main, main//views"


def test_what_is_escaped_goes_before_what_is_typed_plainly() -> None:
    found = [add(name, "x", session=name, turn="t", thread=thread) for name, thread in (
        ("a", "b"), ("a/b", "main"), ("a//b", "main"),
    )]  # fmt: skip
    inspector = inspect(found)
    for address, session in (("a//b/1", "a/b"), ("a////b/1", "a//b"), ("a/b:1", "a"), ("a/b/1", "a/b")):
        assert inspector.step(inspector.resolve(address)).session == session


@pytest.mark.parametrize(
    ("address", "slug"),
    [
        ("3", "no-such-frame"),
        ("1.3", "no-such-frame"),
        ("0", "no-such-frame"),
        ("-3", "no-such-frame"),
        ("x:1", "no-such-frame"),
        ("nowhere/1", "no-such-frame"),
        ("", "bad-address"),
        ("one", "bad-address"),
        ("1.", "bad-address"),
        ("999999999999999999", "no-such-frame"),
        ("9" * 5000, "bad-address"),
        ("1." + "9" * 5000, "bad-address"),
    ],
)
def test_addresses_of_nothing(address: str, slug: str) -> None:
    with pytest.raises(UsageError) as caught:
        inspect(EVENTS).resolve(address)
    assert caught.value.slug == slug
    assert caught.value.hint


def test_a_trace_of_several_sessions_needs_the_session() -> None:
    inspector = inspect([add("a", "x", session="s/1", turn="t"), add("b", "y", session="u", turn="t")])
    with pytest.raises(UsageError, match="2 sessions"):
        inspector.resolve("1")
    assert inspector.step(inspector.resolve("s/1/1")).session == "s/1"
    assert inspector.step(inspector.resolve("u/main:1")).session == "u"
