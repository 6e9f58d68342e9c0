"""Statuses, causes and flags (DESIGN section 3, "Status")."""

from __future__ import annotations

from tests.oracle.build import (
    ABC,
    ALPHA,
    BETA,
    CAT,
    HELLO,
    ONE_TWO,
    RED,
    XYZ,
    assembly,
    at,
    block,
    budget,
    inject,
    item,
    redact,
    remove,
    select,
    update,
)
from tests.oracle.case import Case, added, ledger, removed, skipped, updated

PLANNER = "alpha"

CASES = [
    Case(
        "new-and-freed-are-not-netted",
        # "the multiset difference of this frame's placements and the previous one's"
        at("t1", "s1", item("A", ABC), item("B", ONE_TWO), assembly("m1", ["A", "B"]), inject("m1"))
        + at("t2", "s2", update("A", CAT), assembly("m2", ["A"]), inject("m2")),
        {
            "1.1": {},
            "2.1": {
                "ledger": ledger(8, 8, 8, 8),
                "counts": {"updated": 1, "removed": 1, "added": 0, "skipped": 0, "omitted": 0},
                "order": ["A", "B"],
                "changes": {
                    "A": updated(
                        version="daa74395aad4b05e",
                        previous_version="52cf9f06f83e0a0a",
                        tokens=8,
                        in_window=8,
                        new=8,
                        freed=5,
                    ),
                    "B": removed(tokens=3, in_window=0, new=0, freed=3, cause="unrecorded", reason=None),
                },
                "cache": {
                    "possible_prefix": 0,
                    "broken_by": {"item": "A", "position": 0, "status": "updated"},
                },
            },
        },
    ),
    Case(
        "moved-is-outside-the-longest-increasing-subsequence",
        at(
            "t1",
            "s1",
            item("A", ABC),
            item("B", ONE_TWO),
            item("C", HELLO),
            item("D", ALPHA),
            assembly("m1", ["A", "B", "C", "D"]),
            inject("m1"),
        )
        + at("t1", "s2", assembly("m2", ["D", "A", "B", "C"]), inject("m2")),
        {
            "1.1": {},
            "1.2": {
                "ledger": ledger(11, 0, 0, 11),
                "order": ["D", "A", "B", "C"],
                "changes": {
                    "D": skipped(flags=["moved"], new=0, freed=0),
                    "A": skipped(flags=[]),
                    "B": skipped(flags=[]),
                    "C": skipped(flags=[]),
                },
                "cache": {"possible_prefix": 0, "broken_by": {"item": "D", "position": 0, "status": "moved"}},
            },
        },
    ),
    Case(
        "pushed-along-is-not-moved",
        at("t1", "s1", item("A", ABC), item("B", ONE_TWO), assembly("m1", ["A", "B"]), inject("m1"))
        + at("t1", "s2", item("X", ALPHA), assembly("m2", ["X", "A", "B"]), inject("m2"))
        + at("t1", "s3", assembly("m3", ["B"]), inject("m3")),
        {
            "1.1": {},
            "1.2": {
                "changes": {"X": added(flags=[]), "A": skipped(flags=[]), "B": skipped(flags=[])},
                # "the first placement that breaks it, and the change that did": A is as it was, X came.
                "cache": {"possible_prefix": 0, "broken_by": {"item": "X", "position": 0, "status": "added"}},
            },
            "1.3": {
                "changes": {"B": skipped(flags=[]), "X": removed(), "A": removed()},
                "order": ["B", "X", "A"],
            },
        },
    ),
    Case(
        "selection-and-budget-name-the-cause",
        # AMBIGUOUS: a drop by the budget could be `omitted` (reason budget_limit) too.  Of the causes
        # "`omitted` (with `reason`), `truncated`" and of "selection and budget records" the first belong
        # together, so the second do.
        at(
            "t1",
            "s1",
            item("A", ABC),
            item("B", ONE_TWO),
            item("C", HELLO),
            item("D", RED),
            select(["A", "B", "C", "D"]),
            inject(),
        )
        + at(
            "t1",
            "s2",
            select(["B", "C"], {"A": "low_relevance"}),
            budget(dropped={"C": "budget_limit"}),
            inject(),
        ),
        {
            "1.1": {"ledger": ledger(0, 14, 0, 14)},
            "1.2": {
                "ledger": ledger(14, 0, 11, 3),
                "counts": {"removed": 3, "omitted": 0, "skipped": 1},
                "order": ["B", "A", "C", "D"],
                "changes": {
                    "B": skipped(),
                    "A": removed(cause="omitted", reason="low_relevance"),
                    "C": removed(cause="truncated", reason="budget_limit"),
                    "D": removed(cause="unrecorded", reason=None),
                },
            },
        },
    ),
    Case(
        "the-recorded-cause-wins",
        at(
            "t1",
            "s1",
            item("A", ABC),
            item("B", ONE_TWO),
            item("C", HELLO),
            select(["A", "B", "C"]),
            inject(),
        )
        + at("t1", "s2", remove("A", "expired"), select(["C"], {"A": "stale", "B": "stale"}), inject()),
        {
            "1.1": {},
            "1.2": {
                "changes": {
                    "C": skipped(),
                    "A": removed(cause="expired"),
                    "B": removed(cause="omitted", reason="stale"),
                }
            },
        },
    ),
    Case(
        "redacted-away",
        at("t1", "s1", item("A", ABC), item("B", ONE_TWO), assembly("m1", ["A", "B"]), inject("m1"))
        + at("t1", "s2", redact("A"), assembly("m2", ["B"]), inject("m2")),
        {
            "1.1": {},
            "1.2": {
                "ledger": ledger(8, 0, 5, 3),
                "changes": {"B": skipped(), "A": removed(cause="redacted", freed=5)},
                "cache": {"possible_prefix": 0, "broken_by": {"item": "A", "cause": "redacted"}},
            },
        },
    ),
    Case(
        "a-rewind-is-a-branch",
        # "a rewind in one thread is a change with cause `branched`" ("a new root")
        at(
            "t1",
            "s1",
            item("A", ABC),
            item("B", ONE_TWO),
            item("C", HELLO),
            assembly("m1", ["A", "B", "C"], ctxctl={"root": "r1"}),
            inject("m1"),
        )
        + at("t2", "s2", item("D", RED), assembly("m2", ["A", "D"], ctxctl={"root": "r2"}), inject("m2")),
        {
            "1.1": {},
            "2.1": {
                "ledger": ledger(10, 4, 5, 9),
                "order": ["A", "D", "B", "C"],
                "changes": {
                    "A": skipped(),
                    "D": added(),
                    "B": removed(cause="branched", freed=3),
                    "C": removed(cause="branched", freed=2),
                },
                "cache": {
                    "possible_prefix": 5,
                    "broken_by": {"item": "B", "position": 1, "cause": "branched"},
                },
            },
        },
    ),
    Case(
        "cleared-by-the-assembly",
        at("t1", "s1", item("A", ABC), item("B", ONE_TWO), assembly("m1", ["A", "B"]), inject("m1"))
        + at("t2", "s2", item("D", RED), assembly("m2", ["D"], ctxctl={"cause": "cleared"}), inject("m2")),
        {
            "1.1": {},
            "2.1": {
                "changes": {"D": added(), "A": removed(cause="cleared"), "B": removed(cause="cleared")},
                "counts": {"added": 1, "removed": 2},
            },
        },
    ),
    Case(
        "the-same-root-is-no-branch",
        at(
            "t1",
            "s1",
            item("A", ABC),
            item("B", HELLO),
            assembly("m1", ["A", "B"], ctxctl={"root": "r1"}),
            inject("m1"),
        )
        + at("t1", "s2", assembly("m2", ["A"], ctxctl={"root": "r1"}), inject("m2")),
        {"1.1": {}, "1.2": {"changes": {"A": skipped(), "B": removed(cause="unrecorded")}}},
    ),
    Case(
        "cut-to-fit-by-an-update",
        # "`updated`: ... another version or another rendering (flag `truncated` where it was cut to fit)"
        at("t1", "s1", item("A", CAT), assembly("m1", ["A"]), inject("m1"))
        + at(
            "t1",
            "s2",
            update("A", ONE_TWO),
            budget(cut={"A": 3}),
            assembly("m2", [block("A", metadata={"truncated": True})]),
            inject("m2"),
        ),
        {
            "1.1": {"changes": {"A": added(flags=[])}},
            "1.2": {
                "ledger": ledger(8, 3, 8, 3),
                "counts": {"updated": 1, "omitted": 0, "removed": 0},
                "changes": {"A": updated(tokens=3, new=3, freed=8, flags=["truncated"])},
            },
        },
    ),
    Case(
        "cut-to-fit-in-the-block",
        # Another rendering of the same version: the block's own text.
        at("t1", "s1", item("A", CAT), item("B", HELLO), assembly("m1", ["A", "B"]), inject("m1"))
        + at(
            "t1",
            "s2",
            budget(cut={"A": 3}),
            assembly("m2", [block("A", content=ONE_TWO, metadata={"truncated": True}), "B"]),
            inject("m2"),
        ),
        {
            "1.1": {},
            "1.2": {
                "ledger": ledger(10, 3, 8, 5),
                "changes": {
                    "A": updated(
                        version="daa74395aad4b05e",
                        previous_version="daa74395aad4b05e",
                        new=3,
                        freed=8,
                        in_window=3,
                        flags=["truncated"],
                    ),
                    "B": skipped(flags=[]),
                },
            },
        },
    ),
    Case(
        "another-wrapper-is-another-rendering",
        # "A placement's tokens are those of its text and of its own recorded wrapper."
        at("t1", "s1", item("A", HELLO), assembly("m1", ["A"]), inject("m1"))
        + at("t1", "s2", assembly("m2", [block("A", wrapper="<doc>\n{content}\n</doc>")]), inject("m2")),
        {
            "1.1": {"ledger": ledger(0, 2, 0, 2)},
            "1.2": {
                "ledger": ledger(2, 9, 2, 9),
                "changes": {"A": updated(new=9, freed=2, in_window=9, flags=["rendering"])},
                "window": {"used": 9},
            },
        },
    ),
    Case(
        "agents-switch-in-one-thread",
        at(
            "t1",
            "s1",
            item("tool:search", ONE_TWO, kind="tool_definition"),
            item("agent:planner", ABC, kind="system_prompt"),
            item("U", HELLO, kind="user_message"),
            assembly("m1", ["tool:search", "agent:planner", "U"]),
            inject("m1"),
        )
        + at(
            "t2",
            "s2",
            remove("agent:planner", "detached"),
            item("agent:coder", CAT, kind="system_prompt"),
            item("tool:edit", RED, kind="tool_definition"),
            assembly("m2", ["tool:search", "tool:edit", "agent:coder", "U"]),
            inject("m2"),
        ),
        {
            "1.1": {"ledger": ledger(0, 10, 0, 10)},
            "2.1": {
                "ledger": ledger(10, 12, 5, 17),
                "order": ["tool:search", "tool:edit", "agent:coder", "U", "agent:planner"],
                "changes": {
                    "tool:search": skipped(),
                    "tool:edit": added(kind="tool_definition"),
                    "agent:coder": added(kind="system_prompt"),
                    "U": skipped(flags=[]),
                    "agent:planner": removed(cause="detached", kind="system_prompt"),
                },
                "cache": {
                    "possible_prefix": 3,
                    "broken_by": {"item": "agent:planner", "position": 1, "status": "removed"},
                },
            },
        },
    ),
    Case(
        "a-turn-sums-its-steps",
        # "A turn's ledger is its steps' in sum; its changes are from the previous turn's last frame to its
        # own last frame."
        at("t1", "s1", item("A", ABC), assembly("m1", ["A"]), inject("m1"))
        + at("t2", "s2", item("B", ONE_TWO), assembly("m2", ["A", "B"]), inject("m2"))
        + at("t2", "s3", item("C", HELLO), update("A", XYZ), assembly("m3", ["A", "C"]), inject("m3"))
        + at("t2", "s4", item("D", BETA), assembly("m4", ["A", "D"]), inject("m4")),
        {
            "1.1": {},
            "2.1": {"ledger": ledger(5, 3, 0, 8)},
            "2.2": {"ledger": ledger(8, 7, 8, 7)},
            "2.3": {"ledger": ledger(7, 1, 2, 6)},
        },
        turns={
            "1": {"ledger": ledger(0, 5, 0, 5), "changes": {"A": added()}, "steps": 1, "turn_id": "t1"},
            "2": {
                "ledger": ledger(5, 11, 10, 6),
                "counts": {"added": 1, "updated": 1, "removed": 0, "skipped": 0},
                "changes": {"A": updated(), "D": added()},
                "steps": 3,
            },
        },
    ),
]
