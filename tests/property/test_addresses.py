"""Addresses: what is printed of a place leads back to it, whatever its session and thread are called."""

from __future__ import annotations

from typing import NamedTuple, cast

from hypothesis import given
from hypothesis import strategies as st

from ctxctl.model.addresses import prefix
from ctxctl.session.addresses import address_id, step_ordinal
from ctxctl.trace.index import Span

NAMES = st.text(alphabet="ab:/@1. -é", min_size=1, max_size=6)


class At(NamedTuple):
    session: str | None
    thread: str
    turn: int
    step: int


def spans(keys: list[tuple[str | None, str]]) -> list[Span]:
    """Two turns of each thread, the second one with two steps."""
    made = [At(*key, turn, step) for key in keys for turn, step in ((1, 1), (2, 1), (2, 2))]
    return cast("list[Span]", made)


@given(st.lists(NAMES, min_size=1, max_size=5, unique=True), st.sampled_from([None, "s", "a/b:c"]))
def test_threads_of_one_session(threads: list[str], session: str | None) -> None:
    found = spans([(session, thread) for thread in (*threads, "main")])
    for ordinal, at in enumerate(found):
        address = f"{prefix(at.thread)}{at.turn}.{at.step}"
        assert address_id(address, found) is None
        assert step_ordinal(address, found) == ordinal


@given(st.lists(st.tuples(NAMES, NAMES), min_size=2, max_size=5, unique_by=lambda key: key[0]))
def test_threads_of_several_sessions(keys: list[tuple[str, str]]) -> None:
    """A name that begins or ends with what divides names may be taken for the end of the other one."""
    found = spans([(session, thread) for session, thread in keys])
    written = [prefix(at.thread, at.session) for at in found]
    for ordinal, at in enumerate(found):
        first = written.index(written[ordinal])
        if found[first][:2] == at[:2]:
            assert step_ordinal(f"{written[ordinal]}{at.turn}.{at.step}", found) == ordinal
