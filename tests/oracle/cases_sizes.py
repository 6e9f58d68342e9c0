"""The true window: what was sent, what of it is recorded, and the rest."""

from __future__ import annotations

from tests.oracle.build import (
    ABC,
    CAT,
    HELLO,
    ONE_TWO,
    append,
    assembly,
    at,
    budget,
    inject,
    item,
    update,
    usage,
)
from tests.oracle.case import Case, ledger

FOR_TWO_TARGETS = at(
    "t1",
    "s1",
    item("A", ABC),
    item("K", ONE_TWO, visibility=("tool",)),
    inject(point="tool_argument", target="tool"),
    inject(),
    usage(40),
)

CASES = [
    Case(
        "what-was-billed-is-what-is-used",
        # "`sent`: what the provider got. Method `reported` (the bill's whole input, cache reads and writes
        # included)", "`unrecorded = sent - recorded`"
        at("t1", "s1", item("A", ABC), assembly("m1", ["A"]), inject("m1"), usage(9, cached=4, written=2))
        + at("t1", "s2", item("B", ONE_TWO), assembly("m2", ["A", "B"]), inject("m2"), usage(15))
        + at("t1", "s3", item("C", HELLO), assembly("m3", ["B", "C"]), inject("m3"), usage(12))
        + at("t1", "s4", assembly("m4", ["A", "B", "C"]), inject("m4")),
        {
            "1.1": {
                "window": {
                    "used": 9,
                    "used_method": "reported",
                    "used_error": None,
                    "recorded": 5,
                    "unrecorded": 4,
                },
                "bar": [["unrecorded", 4], ["context", 5]],
                "ledger": ledger(0, 5, 0, 5),
            },
            # "sent_after = sent_before + new - freed + Δunrecorded": 15 = 9 + 3 - 0 + (7 - 4)
            "1.2": {
                "window": {"used": 15, "recorded": 8, "unrecorded": 7, "used_method": "reported"},
                "bar": [["unrecorded", 7], ["context", 8]],
                "ledger": ledger(5, 3, 0, 8),
            },
            # 12 = 15 + 2 - 5 + (7 - 7)
            "1.3": {"window": {"used": 12, "recorded": 5, "unrecorded": 7}, "ledger": ledger(8, 2, 5, 5)},
            # No bill, and no calibration to expect one from: "else `recorded`".
            "1.4": {
                "window": {
                    "used": 10,
                    "used_method": "recorded",
                    "used_error": None,
                    "recorded": 10,
                    "unrecorded": None,
                },
                "bar": [["context", 10]],
                "usage": None,
            },
        },
    ),
    Case(
        "less-was-billed-than-is-recorded",
        # "a negative one is shown as that"
        at("t1", "s1", item("A", ABC), item("B", CAT), assembly("m1", ["A", "B"]), inject("m1"), usage(11)),
        {
            "1.1": {
                "window": {"used": 11, "used_method": "reported", "recorded": 13, "unrecorded": -2},
                "bar": [["unrecorded", -2], ["context", 13]],
            }
        },
    ),
    Case(
        "all-that-was-billed-is-recorded",
        at("t1", "s1", item("A", ABC), assembly("m1", ["A"]), inject("m1"), usage(5)),
        {
            "1.1": {
                "window": {"used": 5, "used_method": "reported", "recorded": 5, "unrecorded": 0},
                "bar": [["context", 5]],
            }
        },
    ),
    Case(
        "the-unrecorded-stands-first",
        # "A segment of its own, first in the provider's order"
        at(
            "t1",
            "s1",
            item("U", ONE_TWO, kind="user_message"),
            item("A", HELLO),
            item("S", ABC, kind="system_prompt"),
            item("T", CAT, kind="tool_definition"),
            assembly("m1", ["U", "A", "S", "T"]),
            inject("m1"),
            usage(30),
        ),
        {
            "1.1": {
                "window": {"used": 30, "recorded": 18, "unrecorded": 12},
                "bar": [["unrecorded", 12], ["tools", 8], ["system", 5], ["context", 2], ["user", 3]],
            }
        },
    ),
    Case(
        "what-is-free-is-free-of-what-was-sent",
        # "How full, which share, what is free, when it overflows …: all of it is about `sent`"
        at("t1", "s1", item("A", ABC), budget(20, 5), assembly("m1", ["A"]), inject("m1"), usage(12))
        + at("t1", "s2", item("B", ONE_TWO), budget(20, 5), assembly("m2", ["A", "B"]), inject("m2"))
        + at(None, None, usage(19))
        + at("t1", "s3", budget(20, 5), assembly("m3", ["A", "B"]), inject("m3"))
        + at("t1", "s4", assembly("m4", ["A", "B"]), inject("m4"), usage(19)),
        {
            "1.1": {
                "window": {
                    "limit": 20,
                    "limit_source": "recorded",
                    "cap": 15,
                    "used": 12,
                    "free": 3,
                    "over": 0,
                },
                "flags_lacks": ["over_budget"],
            },
            "1.2": {
                "window": {"cap": 15, "used": 19, "recorded": 8, "free": 0, "over": 4},
                "flags_has": ["over_budget"],
            },
            "1.3": {"window": {"cap": 15, "used": 8, "free": 7, "over": 0}, "flags_lacks": ["over_budget"]},
            # "or unknown"
            "1.4": {
                "window": {
                    "limit": None,
                    "limit_source": None,
                    "cap": None,
                    "used": 19,
                    "free": None,
                    "over": None,
                },
            },
        },
    ),
    Case(
        "a-bill-of-nothing-is-no-bill",
        at("t1", "s1", item("A", ABC), assembly("m1", ["A"]), inject("m1"), usage(40))
        + at("t1", "s2", assembly("m2", ["A"]), inject("m2"), usage(0)),
        {
            "1.1": {"window": {"used": 40, "unrecorded": 35}},
            "1.2": {
                "window": {"used": 5, "used_method": "recorded", "recorded": 5, "unrecorded": None},
                # What cannot be true is no evidence of a cut either; it is shown all the same.
                "flags_lacks": ["unrecorded_cut"],
                "usage": {"reported_input": 0, "counted_input": 5},
            },
        },
    ),
    Case(
        "a-bill-below-the-content-is-right",
        # A declared size may be twice the provider's count: half of 1000 is 500, and 400 are billed.
        at("t1", "s1", item("A", estimate=1000), assembly("m1", ["A"]), inject("m1"), usage(400))
        + at("t1", "s2", assembly("m2", ["A"]), inject("m2"), usage(496))
        + at("t1", "s3", item("B", estimate=14), assembly("m3", ["B"]), inject("m3"), usage(2)),
        {
            "1.1": {
                "window": {"used": 400, "used_method": "reported", "recorded": 1000, "unrecorded": -600},
                "flags_has": ["unrecorded_cut"],
            },
            # 500 of the 1000 are sure; 4 tokens more or less say nothing.
            "1.2": {
                "window": {"used": 496, "used_method": "reported", "recorded": 1000, "unrecorded": -504},
                "flags_lacks": ["unrecorded_cut"],
            },
            # The record explains a fall of up to twice what left it.
            "1.3": {
                "window": {"used": 2, "unrecorded": -12},
                "flags_has": ["unrecorded_cut"],
            },
        },
    ),
    Case(
        "a-bill-says-nothing-of-another-thread",
        at("t1", "s1", item("A", ABC), assembly("m1", ["A"]), inject("m1"), usage(50))
        + at("t1", "x1", item("X", HELLO), assembly("y1", ["X"]), inject("y1"), thread_id="explorer"),
        {
            "1.1": {"window": {"used": 50, "unrecorded": 45}},
            "explorer:1.1": {
                "window": {"used": 2, "used_method": "recorded", "recorded": 2, "unrecorded": None}
            },
        },
    ),
    Case(
        "the-bill-is-the-model's",
        FOR_TWO_TARGETS,
        {"1.1": {"window": {"used": 40, "used_method": "reported", "recorded": 5, "unrecorded": 35}}},
    ),
    Case(
        "what-a-tool-sees-was-not-billed",
        FOR_TWO_TARGETS,
        {
            "1.1": {
                "target": "tool",
                "window": {"used": 3, "used_method": "recorded", "recorded": 3, "unrecorded": None},
            }
        },
        target="tool",
    ),
    Case(
        "stale-copies-were-sent-too",
        at("t1", "s1", item("A", ABC), append("m1", ["A"]), inject(point="user_message_appendix"), usage(9))
        + at("t1", "s2", update("A", CAT), append("m2", ["A"]), inject(point="user_message_appendix"))
        + at(None, None, usage(18)),
        {
            "1.1": {"window": {"used": 9, "recorded": 5, "unrecorded": 4}},
            # 18 = 9 + 8 - 0 + (5 - 4)
            "1.2": {
                "window": {"used": 18, "recorded": 13, "unrecorded": 5},
                "ledger": ledger(5, 8, 0, 13, stale=5),
            },
        },
    ),
]
