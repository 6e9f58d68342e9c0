"""A row that is replaced where it stands: the assemblies still add up to the window."""

from __future__ import annotations

import random
from typing import Any

from ctxctl.ingest.build import Maker
from ctxctl.ingest.conversation import Conversation
from ctxctl.ingest.parts import Part

Json = dict[str, Any]


def replayed(out: list[Json]) -> list[list[str]]:
    """The window at each request, as the assemblies' splices give it."""
    windows: list[list[str]] = []
    now: list[str] = []
    for event in out:
        if event["event_type"] != "context.assembly.created":
            continue
        data = event["data"]
        blocks = [block["item_refs"][0] for block in data["ordered_blocks"]]
        marks = data["metadata"]["ctxctl"]
        if "base" not in marks:
            now = blocks
        else:
            made: list[str] = []
            at = 0
            for start, removed, inserted in marks["splices"]:
                made += now[at:start]
                made += [blocks.pop(0) for _ in range(inserted)]
                at = start + removed
            now = made + now[at:]
        windows.append(now)
    return windows


def test_rows_put_elsewhere_appended_and_cut_add_up() -> None:
    rng = random.Random(7)
    out: list[Json] = []
    conversation = Conversation(Maker("test", "t-"), out)
    expected: list[list[str]] = []
    for number in range(600):
        size = len(conversation)
        choice = rng.random()
        if choice < 0.4 or not size:
            conversation.append(Part("user_message", f"text {number}", "user", key=f"k{number}"))
        elif choice < 0.7:
            at = rng.randrange(size)
            item = conversation.rows[at][0].item
            conversation.put(at, Part("user_message", f"text {rng.randrange(5)}", "user", key=item))
        elif choice < 0.8:
            at = rng.randrange(size)
            conversation.splice(at, rng.randrange(size - at + 1))
        else:
            conversation.request()
            expected.append([row[0].ref for row in conversation.rows])
    assert replayed(out) == expected


def test_a_first_row_that_changes_with_each_request_costs_one_block() -> None:
    out: list[Json] = []
    conversation = Conversation(Maker("test", "t-"), out)
    conversation.append(*(Part("user_message", str(n), "user", key=f"k{n}") for n in range(50)))
    for number in range(20):
        conversation.put(0, Part("system_prompt", f"rules {number}", "system", key="system"))
        conversation.request()
    sizes = [len(e["data"]["ordered_blocks"]) for e in out if e["event_type"] == "context.assembly.created"]
    assert sizes == [50, *[1] * 19]


def test_parts_are_inserted_in_front_of_several_rows() -> None:
    out: list[Json] = []
    window = Conversation(Maker("x", "x-"), out)
    window.append(*(Part("user_message", f"text {at}", "user", key=f"i{at}") for at in range(4)))
    window.request()
    window.insert([])
    window.insert([(at, Part("tool_result", "r", "tool", key=f"r{n}")) for n, at in enumerate((1, 1, 3, 4))])
    window.request()
    now = ["i0", "r0", "r1", "i1", "i2", "r2", "i3", "r3"]
    assert [row[0].item for row in window.rows] == now
    assert [ref.partition("@")[0] for ref in replayed(out)[-1]] == now
