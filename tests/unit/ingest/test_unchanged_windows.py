"""Windows that never change: what is seen of events of any shape."""

from __future__ import annotations

from typing import Any

import pytest

from ctxctl.ingest.fidelity import UnchangedWindows

CALL = {"event_type": "context.item.added", "data": {"item_id": "c", "context_kind": "tool_call"}}
RESULT = {"event_type": "context.item.added", "data": {"item_id": "r", "context_kind": "tool_result"}}


def request(*items: str, base: str | None = None, splices: Any = None, thread: str = "t") -> dict[str, Any]:
    marks = {} if base is None else {"base": base, "splices": splices or []}
    blocks = [{"block_id": item, "item_refs": [item]} for item in items]
    data = {"ordered_blocks": blocks, "metadata": {"ctxctl": marks}}
    return {"event_type": "context.assembly.created", "thread_id": thread, "data": data}


def told(*events: dict[str, Any]) -> bool:
    still = UnchangedWindows()
    for event in events:
        still.see(event)
    return bool(still.problems())


def test_the_same_window_twice_with_results_in_none() -> None:
    assert told(request("u"), CALL, RESULT, request("u"))
    assert told(request("u"), CALL, RESULT, request(base="a"))


@pytest.mark.parametrize(
    "events",
    [
        [request("u"), CALL, RESULT, request("u", "c", "r")],
        [request("u"), CALL, RESULT, request("r", base="a", splices=[[1, 0, 1]])],
        [request("u"), CALL, RESULT],
        [request("u"), CALL, RESULT, request("u", thread="other")],
        [request("u"), request("u")],
        [request("u"), CALL, request("u")],
        [CALL, RESULT, request("c", "r"), request("c", "r")],
        [],
    ],
)
def test_what_is_nothing_to_tell(events: list[dict[str, Any]]) -> None:
    assert not told(*events)


@pytest.mark.parametrize("blocks", [5, "x", [5, {"block_id": [1]}, {"item_refs": {}}], None])
def test_blocks_may_be_anything(blocks: Any) -> None:
    odd = {"event_type": "context.assembly.created", "session_id": [], "data": {"ordered_blocks": blocks}}
    assert not told(odd, {"event_type": "context.item.added", "data": None}, odd)
