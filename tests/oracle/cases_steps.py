"""Turns, steps, targets, usage and the possible prefix: which step an event belongs to, and what it cost."""

from __future__ import annotations

from tests.oracle.build import (
    ABC,
    ALPHA,
    BETA,
    CAT,
    HELLO,
    ONE_TWO,
    RED,
    UP,
    append,
    assembly,
    at,
    compact,
    inject,
    item,
    summary,
    update,
    usage,
)
from tests.oracle.case import Case, added, ledger, skipped, updated

TOOL_EVENTS = at(
    "t1",
    "s1",
    item("A", ABC),
    item("K", ONE_TWO, visibility=("tool",)),
    item("AK", HELLO, visibility=("model", "tool")),
    inject(point="tool_argument", target="tool"),
    inject(),
) + at(
    "t1",
    "s2",
    update("K", CAT, visibility=("tool",)),
    inject(point="tool_argument", target="tool"),
    inject(),
)

CASES = [
    Case(
        "what-the-model-sees-of-it",
        TOOL_EVENTS,
        {
            "1.1": {
                "target": "model",
                "ledger": ledger(0, 7, 0, 7),
                "changes": {"A": added(), "AK": added()},
            },
            "1.2": {"ledger": ledger(7, 0, 0, 7), "changes": {"A": skipped(), "AK": skipped()}},
        },
    ),
    Case(
        "what-the-tool-sees-of-it",
        TOOL_EVENTS,
        {
            "1.1": {"target": "tool", "ledger": ledger(0, 5, 0, 5), "changes": {"K": added(), "AK": added()}},
            "1.2": {
                "ledger": ledger(5, 8, 3, 10),
                "changes": {"K": updated(), "AK": skipped()},
                # Only the model's requests have a prompt cache.
                "cache": {"possible_prefix": None, "broken_by": None},
            },
        },
        target="tool",
    ),
    Case(
        "an-assembly-for-a-tool-is-not-the-model's",
        at(
            "t1",
            "s1",
            item("A", ABC),
            item("B", ONE_TWO),
            assembly("m1", ["A"]),
            assembly("k1", ["B"], target="tool"),
            inject("m1"),
        ),
        {"1.1": {"ledger": ledger(0, 5, 0, 5), "changes": {"A": added()}}},
    ),
    Case(
        "no-turn-and-no-step-ids",
        # "A second model assembly without a step id opens a new step."
        at(None, None, item("A", ABC), append("m1", ["A", "R1"]))
        + at(None, None, append("m2", ["R2"]))
        + at(None, None, item("B", HELLO), append("m3", ["B"])),
        {
            "1.1": {
                "turn": 1,
                "turn_id": None,
                "step_id": None,
                "mode": "append",
                "ledger": ledger(0, 5, 0, 5, uncounted=1),
            },
            "1.2": {"ledger": ledger(5, 0, 0, 5, uncounted=2), "changes": {"A": {}, "R1": {}, "R2": added()}},
            "1.3": {"ledger": ledger(5, 2, 0, 7, uncounted=2)},
        },
    ),
    Case(
        "ids-are-taken-from-the-line-before",
        # "what precedes a turn's first step id belongs to that step"
        at("t1", None, item("A", ABC))
        + at(None, "s1", item("B", ONE_TWO))
        + at(None, None, assembly("m1", ["A", "B"]), inject("m1"))
        + at("t2", None, item("C", HELLO))
        + at("t2", "s2", assembly("m2", ["A", "C"]), inject("m2")),
        {
            "1.1": {"turn_id": "t1", "step_id": "s1", "ledger": ledger(0, 8, 0, 8)},
            "2.1": {"turn_id": "t2", "step_id": "s2", "ledger": ledger(8, 2, 3, 7)},
        },
    ),
    Case(
        "line-order-rules",
        # "Line order rules; time orders nothing."
        at("t1", "s1", item("A", ABC, time="2026-01-02T09:00:00Z"), inject(time="2026-01-02T08:00:00Z"))
        + at("t1", "s2", update("A", CAT, time="2026-01-02T07:00:00Z"), inject(time="2026-01-02T06:00:00Z")),
        {
            "1.1": {"ledger": ledger(0, 5, 0, 5)},
            "1.2": {"ledger": ledger(5, 8, 5, 8), "changes": {"A": updated(version="daa74395aad4b05e")}},
        },
    ),
    Case(
        "the-same-event-twice",
        # "A second event with the same `event_id` in one session and source is ignored and reported."
        at(
            "t1",
            "s1",
            item("A", ABC, event_id="x"),
            update("A", CAT, event_id="x"),
            item("B", HELLO, event_id="x", source="another"),
            inject(),
        ),
        {"1.1": {"ledger": ledger(0, 7, 0, 7), "changes": {"A": added(tokens=5), "B": added()}}},
        problems=[2],
    ),
    Case(
        "too-late-for-its-step",
        # "An event for a sealed step takes effect in the next frame and is reported."
        at("t1", "s1", item("A", ABC), inject())
        + at("t1", "s1", item("B", ONE_TWO))
        + at("t1", "s2", item("C", HELLO), inject())
        + at("t1", "s1", update("A", CAT))
        + at("t1", "s3", inject()),
        {
            "1.1": {"ledger": ledger(0, 5, 0, 5)},
            "1.2": {"ledger": ledger(5, 5, 0, 10), "changes": {"A": skipped(), "B": added(), "C": added()}},
            "1.3": {
                "ledger": ledger(10, 8, 5, 13),
                "changes": {"A": updated(), "B": skipped(), "C": skipped()},
            },
        },
        problems=[3, 6],
    ),
    Case(
        "usage-attaches-to-the-sealed-step",
        at("t1", "s1", item("A", ABC), assembly("m1", ["A"]), inject("m1"))
        + at(None, None, usage(9, cached=4, written=2, output=3))
        + at("t1", "s2", item("B", ONE_TWO), assembly("m2", ["A", "B"]), inject("m2"), usage(12))
        + at("t1", "s3", assembly("m3", ["A", "B"]), inject("m3")),
        {
            "1.1": {
                # "`difference` = counted - reported"; reported is the whole input, cache parts included.
                "usage": {
                    "reported_input": 9,
                    "reported_cached": 4,
                    "reported_output": 3,
                    "counted_input": 5,
                    "difference": -4,
                },
                "cache": {"possible_prefix": None, "reported_cached": 4, "reported_cache_write": 2},
                "stages": {"evidence": {"verdict": "recorded"}},
            },
            "1.2": {
                "usage": {
                    "reported_input": 12,
                    "counted_input": 8,
                    "difference": -4,
                    "reported_cached": None,
                },
                "flags_lacks": ["unrecorded_cut"],
            },
            "1.3": {"usage": None, "stages": {"evidence": {"verdict": "not_recorded"}}},
        },
    ),
    Case(
        "an-unrecorded-cut",
        # "A drop that the provider's usage shows and nothing records makes the step an *unrecorded cut*."
        at("t1", "s1", item("A", estimate=70000), item("B", ABC), inject(), usage(100000))
        + at("t1", "s2", item("C", HELLO), inject(), usage(40000))
        + at("t1", "s3", item("D", ALPHA), inject(), usage(40001)),
        {
            "1.1": {"flags_lacks": ["unrecorded_cut"]},
            "1.2": {"ledger": ledger(70005, 2, 0, 70007), "flags_has": ["unrecorded_cut"]},
            "1.3": {"flags_lacks": ["unrecorded_cut"]},
        },
    ),
    Case(
        "a-recorded-drop-is-no-unrecorded-cut",
        at("t1", "s1", item("A", estimate=90000), item("B", ABC), inject(), usage(100000))
        + at("t1", "s2", summary("S", BETA), compact(["A"], "S"), inject(), usage(9000)),
        {"1.1": {}, "1.2": {"ledger": ledger(90005, 1, 90000, 6), "flags_lacks": ["unrecorded_cut"]}},
    ),
    Case(
        "the-prefix-goes-in-the-provider's-order",
        # "in the provider's order (tools, system, messages where known)"
        at(
            "t1",
            "s1",
            item("U", ONE_TWO, kind="user_message"),
            item("S", ABC, kind="system_prompt"),
            item("T", CAT, kind="tool_definition"),
            assembly("m1", ["U", "S", "T"]),
            inject("m1"),
        )
        + at("t1", "s2", update("U", RED, kind="user_message"), assembly("m2", ["U", "S", "T"]), inject("m2"))
        + at(
            "t1", "s3", update("T", UP, kind="tool_definition"), assembly("m3", ["U", "S", "T"]), inject("m3")
        ),
        {
            "1.1": {"order": ["U", "S", "T"]},
            "1.2": {
                "ledger": ledger(16, 4, 3, 17),
                "cache": {
                    "possible_prefix": 13,
                    "broken_by": {"item": "U", "position": 2, "status": "updated"},
                },
            },
            "1.3": {
                "ledger": ledger(17, 4, 8, 13),
                "cache": {
                    "possible_prefix": 0,
                    "broken_by": {"item": "T", "position": 0, "status": "updated"},
                },
            },
        },
    ),
    Case(
        "the-prefix-looks-at-versions",
        at(
            "t1",
            "s1",
            item("S", ABC, kind="system_prompt"),
            item("A", ONE_TWO),
            item("B", HELLO),
            assembly("m1", ["S", "A", "B"]),
            inject("m1"),
        )
        + at("t1", "s2", update("A", RED), assembly("m2", ["S", "A", "B"]), inject("m2"))
        + at("t1", "s3", item("C", ALPHA), assembly("m3", ["S", "A", "B", "C"]), inject("m3")),
        {
            "1.1": {},
            "1.2": {
                "cache": {
                    "possible_prefix": 5,
                    "broken_by": {
                        "item": "A",
                        "position": 1,
                        "status": "updated",
                    },
                }
            },
            "1.3": {"cache": {"possible_prefix": 11, "broken_by": None}},
        },
    ),
    Case(
        "a-prefix-is-the-threads-own",
        # "with the thread's previous request"
        at("t1", "s1", item("A", ABC), assembly("m1", ["A"]), inject("m1"))
        + at(
            "t1",
            "x1",
            item("X", HELLO),
            assembly("y1", ["X"]),
            inject("y1"),
            thread_id="explorer",
        )
        + at("t1", "s2", item("B", ONE_TWO), assembly("m2", ["A", "B"]), inject("m2")),
        {
            "1.1": {},
            "explorer:1.1": {"ledger": ledger(0, 2, 0, 2), "cache": {"possible_prefix": None}},
            "1.2": {"ledger": ledger(5, 3, 0, 8), "cache": {"possible_prefix": 5}},
        },
    ),
]
