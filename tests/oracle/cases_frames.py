"""What is in a frame, in window mode: by the strongest thing recorded (DESIGN section 3, "The frame")."""

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
    compact,
    inject,
    item,
    remove,
    select,
    summary,
    update,
)
from tests.oracle.case import Case, added, ledger, omitted, removed, skipped, updated

CASES = [
    Case(
        "two-requests-that-resend-the-window",
        at("t1", "s1", item("A", ABC), item("B", ONE_TWO), assembly("m1", ["A", "B"]), inject("m1"))
        + at("t2", "s2", item("C", HELLO), assembly("m2", ["A", "B", "C"]), inject("m2")),
        {
            "1.1": {
                "turn_id": "t1",
                "step_id": "s1",
                "target": "model",
                "mode": "window",
                "mode_declared": False,
                "basis": "assembly",
                "layer": "injected",
                "window": {
                    "limit": None,
                    "reserved": None,
                    "cap": None,
                    "used": 8,
                    "free": None,
                    "over": None,
                },
                "ledger": ledger(0, 8, 0, 8, saved=None, stale=0, uncounted=0),
                "counts": {"added": 2, "updated": 0, "removed": 0, "skipped": 0, "omitted": 0},
                "order": ["A", "B"],
                "changes": {
                    "A": added(tokens=5, in_window=5, new=5, freed=0, cause=None, previous_version=None),
                    "B": added(tokens=3, in_window=3, new=3, freed=0),
                },
                "stages": {
                    "selection": {"verdict": "not_recorded"},
                    "budget": {"verdict": "not_recorded"},
                    "assembly": {"verdict": "recorded"},
                    "injection": {"verdict": "recorded"},
                },
                # "In the first frame of a thread window_before is 0 and possible_prefix null."
                "cache": {"possible_prefix": None, "broken_by": None},
                "usage": None,
                "flags_lacks": ["injection_not_recorded"],
            },
            "2.1": {
                "ledger": ledger(8, 2, 0, 10),
                "counts": {"added": 1, "updated": 0, "removed": 0, "skipped": 2, "omitted": 0},
                "order": ["A", "B", "C"],
                "changes": {
                    "A": skipped(tokens=5, in_window=5, new=0, freed=0),
                    "B": skipped(),
                    "C": added(tokens=2, new=2),
                },
                "cache": {"possible_prefix": 8, "broken_by": None},
            },
        },
    ),
    Case(
        "live-items-that-the-model-can-see",
        # "the live items (added or updated, not removed, not compacted away) visible to the target"; "Where
        # only an injection is recorded, it is these live items that it carried."
        at(
            "t1",
            "s1",
            item("A", ABC),
            item("K", ONE_TWO, visibility=("tool",)),
            item("U", HELLO, visibility=("ui", "model")),
            inject(),
        )
        + at(
            "t2",
            "s2",
            remove("A", "detached"),
            item("B", RED),
            update("K", CAT, visibility=("tool",)),
            inject(),
        ),
        {
            "1.1": {
                "basis": "items",
                "mode": "window",
                "ledger": ledger(0, 7, 0, 7),
                "order": ["A", "U"],
                "changes": {"A": added(new=5), "U": added(new=2)},
            },
            "2.1": {
                "ledger": ledger(7, 4, 5, 6),
                "order": ["U", "B", "A"],
                "changes": {
                    "U": skipped(),
                    "B": added(new=4),
                    "A": removed(cause="detached", tokens=5, in_window=0, new=0, freed=5),
                },
            },
        },
    ),
    Case(
        "live-items-in-order-of-first-appearance",
        at("t1", "s1", item("A", ABC), item("B", ONE_TWO), inject())
        + at("t1", "s2", update("A", XYZ), item("C", HELLO), inject()),
        {
            "1.1": {"order": ["A", "B"]},
            "1.2": {
                "ledger": ledger(8, 7, 5, 10),
                "order": ["A", "B", "C"],
                "changes": {
                    "A": updated(new=5, freed=5, flags=[]),
                    "B": skipped(flags=[]),
                    "C": added(flags=[]),
                },
                "cache": {
                    "possible_prefix": 0,
                    "broken_by": {"item": "A", "position": 0, "status": "updated"},
                },
            },
        },
    ),
    Case(
        "no-injection-is-marked",
        # "Selected is never injected: without an injection record the frame is marked".
        at("t1", "s1", item("A", ABC), item("B", ONE_TWO))
        + at("t1", "s2", item("C", HELLO), assembly("m2", ["A", "C"])),
        {
            "1.1": {
                "basis": "items",
                "ledger": ledger(0, 8, 0, 8),
                "flags_has": ["injection_not_recorded"],
                "stages": {"injection": {"verdict": "not_recorded"}},
            },
            "1.2": {
                "basis": "assembly",
                "layer": "view",
                "ledger": ledger(8, 2, 3, 7),
                "changes": {"A": skipped(), "C": added(), "B": removed(cause="unrecorded")},
                "flags_has": ["injection_not_recorded"],
            },
        },
    ),
    Case(
        "selection-less-what-the-budget-dropped",
        at(
            "t1",
            "s1",
            item("A", ABC),
            item("B", ONE_TWO),
            item("C", CAT),
            item("D", HELLO),
            select(["A", "B", "C"], {"D": "low_relevance"}),
            budget(20, 5, dropped={"C": "budget_limit"}),
            inject(),
        ),
        {
            "1.1": {
                "basis": "selection",
                "window": {"limit": 20, "reserved": 5, "cap": 15, "used": 8, "free": 7, "over": 0},
                "ledger": ledger(0, 8, 0, 8),
                "counts": {"added": 2, "omitted": 2, "removed": 0, "skipped": 0, "updated": 0},
                "changes": {
                    "A": added(),
                    "B": added(),
                    "D": omitted(reason="low_relevance", new=0, freed=0, in_window=0, tokens=2),
                    "C": omitted(reason="budget_limit", new=0, freed=0, in_window=0, tokens=8),
                },
                "stages": {"selection": {"verdict": "recorded"}, "budget": {"verdict": "recorded"}},
            }
        },
    ),
    Case(
        "still-over-budget",
        # "what was truncated, dropped or compacted, and *still over budget* as its own state"
        at(
            "t1",
            "s1",
            item("A", ABC),
            item("B", CAT),
            select(["A", "B"]),
            budget(6, 2, dropped={"B": "budget_limit"}),
            inject(),
        ),
        {
            "1.1": {
                "window": {"limit": 6, "reserved": 2, "cap": 4, "used": 5, "over": 1},
                "flags_has": ["still_over_budget"],
            }
        },
    ),
    Case(
        "max-input-caps-the-prompt",
        # "prompt cap = min(max_input, window - reserved)"; where max_input is written is the format's choice.
        at(
            "t1",
            "s1",
            item("A", ABC),
            {**(b := budget(20, 5)), "data": {**b["data"], "metadata": {"ctxctl": {"max_input": 9}}}},
            assembly("m1", ["A"]),
            inject("m1"),
        ),
        {"1.1": {"window": {"limit": 20, "reserved": 5, "cap": 9, "used": 5, "free": 4, "over": 0}}},
    ),
    Case(
        "only-what-is-named-is-omitted",
        # "named at this step as candidate, omitted or dropped, and neither current now nor before"
        at(
            "t1",
            "s1",
            item("A", ABC),
            item("B", ONE_TWO),
            item("C", HELLO),
            select(["A"], candidates=["A", "C"]),
            assembly("m1", ["A"]),
            inject("m1"),
        )
        + at("t1", "s2", assembly("m2", ["A"]), inject("m2")),
        {
            "1.1": {
                "counts": {"added": 1, "omitted": 1},
                "order": ["A", "C"],
                "changes": {"A": added(), "C": omitted(new=0, in_window=0)},
            },
            # Nothing names C at this step.
            "1.2": {"counts": {"skipped": 1, "omitted": 0}, "changes": {"A": skipped()}},
        },
    ),
    Case(
        "the-last-assembly-wins",
        # "A step is sealed by the target's injection, else by its last assembly"
        at("t1", "s1", item("A", ABC), item("B", ONE_TWO), assembly("m1", ["A"]), assembly("m2", ["A", "B"])),
        {"1.1": {"ledger": ledger(0, 8, 0, 8), "changes": {"A": added(), "B": added()}}},
    ),
    Case(
        "the-injection-names-its-assembly",
        # AMBIGUOUS: DESIGN says neither that the injection's assembly_id decides nor that the last assembly
        # before it does.  "`injected` (what went over the wire)": the assembly that the injection names.
        at(
            "t1",
            "s1",
            item("A", ABC),
            item("B", ONE_TWO),
            assembly("m1", ["A"]),
            assembly("m2", ["A", "B"]),
            inject("m1"),
        ),
        {"1.1": {"ledger": ledger(0, 5, 0, 5), "changes": {"A": added()}}},
    ),
    Case(
        "an-injection-seals",
        # "What comes later enters the next frame"
        at("t1", "s1", item("A", ABC), inject())
        + at(None, None, item("C", HELLO), remove("A", "expired"))
        + at("t1", "s2", inject()),
        {
            "1.1": {"ledger": ledger(0, 5, 0, 5), "changes": {"A": added()}},
            "1.2": {
                "ledger": ledger(5, 2, 5, 2),
                "changes": {"C": added(), "A": removed(cause="expired")},
            },
        },
    ),
    Case(
        "blocks-go-by-position",
        at(
            "t1",
            "s1",
            item("A", ABC),
            item("B", ONE_TWO),
            item("C", HELLO),
            assembly("m1", [block("B", 1), block("C", 2), block("A", 0)]),
            inject("m1"),
        )
        + at("t1", "s2", assembly("m2", [block("A", 0), block("B", 1), block("C", 2)]), inject("m2")),
        {
            "1.1": {"order": ["A", "B", "C"]},
            "1.2": {
                "order": ["A", "B", "C"],
                "changes": {"A": skipped(flags=[]), "B": skipped(flags=[]), "C": skipped(flags=[])},
                "cache": {"possible_prefix": 10, "broken_by": None},
            },
        },
    ),
    Case(
        "assemblies-as-splices",
        at(
            "t1",
            "s1",
            item("A", ABC, version="1"),
            item("B", ONE_TWO, version="1"),
            item("C", HELLO, version="1"),
            assembly("m1", ["A@1", "B@1", "C@1"]),
            inject("m1"),
        )
        + at(
            "t1",
            "s2",
            update("B", CAT, version="2"),
            item("D", ALPHA, version="1"),
            # Index 1 of the base is replaced by the first new block, the second goes to its end (index 3).
            assembly("m2", ["B@2", "D@1"], ctxctl={"base": "m1", "splices": [[1, 1, 1], [3, 0, 1]]}),
            inject("m2"),
        )
        + at("t1", "s3", assembly("m3", [], ctxctl={"base": "m2", "splices": [[0, 2, 0]]}), inject("m3")),
        {
            "1.1": {"order": ["A", "B", "C"], "ledger": ledger(0, 10, 0, 10)},
            "1.2": {
                "order": ["A", "B", "C", "D"],
                "ledger": ledger(10, 9, 3, 16),
                "changes": {
                    "A": skipped(),
                    "B": updated(version="2", previous_version="1", new=8, freed=3, tokens=8),
                    "C": skipped(),
                    "D": added(version="1"),
                },
                "cache": {"possible_prefix": 5, "broken_by": {"item": "B", "position": 1}},
            },
            "1.3": {
                "order": ["C", "D", "A", "B"],
                "ledger": ledger(16, 0, 13, 3),
                "changes": {
                    "C": skipped(flags=[]),
                    "D": skipped(flags=[]),
                    "A": removed(cause="unrecorded", freed=5),
                    "B": removed(cause="unrecorded", freed=8, tokens=8),
                },
                "cache": {
                    "possible_prefix": 0,
                    "broken_by": {"item": "A", "position": 0, "status": "removed"},
                },
            },
        },
    ),
    Case(
        "a-compaction-over-live-items",
        # "A compaction takes its source_item_refs out and its summary in."
        at("t1", "s1", item("A", ABC), item("B", ONE_TWO), item("C", HELLO), inject())
        + at("t2", "s2", summary("S", BETA), compact(["A", "B"], "S"), inject())
        + at("t3", "s3", inject()),
        {
            "1.1": {"ledger": ledger(0, 10, 0, 10)},
            "2.1": {
                "ledger": ledger(10, 1, 8, 3),
                "counts": {"added": 1, "removed": 2, "skipped": 1, "updated": 0, "omitted": 0},
                "changes": {
                    "C": skipped(),
                    "S": added(new=1, kind="thread_summary"),
                    "A": removed(cause="compacted", into="S", freed=5),
                    "B": removed(cause="compacted", into="S", freed=3),
                },
            },
            "3.1": {
                "ledger": ledger(3, 0, 0, 3),
                "changes": {"C": skipped(), "S": skipped()},
                "cache": {"possible_prefix": 3},
            },
        },
    ),
    Case(
        "a-compaction-between-assemblies",
        at("t1", "s1", item("A", ABC), item("B", ONE_TWO), assembly("m1", ["A", "B"]), inject("m1"))
        + at(
            "t2",
            "s2",
            summary("S", BETA),
            compact(["A"], "S"),
            # "the recorded cause wins, then a compaction that names it, selection and budget records"
            select(["S", "B"], {"A": "superseded_by_summary"}),
            assembly("m2", ["S", "B"]),
            inject("m2"),
        ),
        {
            "1.1": {},
            "2.1": {
                "ledger": ledger(8, 1, 5, 4),
                "order": ["S", "B", "A"],
                "changes": {
                    "S": added(),
                    "B": skipped(flags=[]),
                    "A": removed(cause="compacted", into="S"),
                },
                "cache": {
                    "possible_prefix": 0,
                    "broken_by": {"item": "A", "position": 0, "status": "removed", "cause": "compacted"},
                },
            },
        },
    ),
    Case(
        "two-copies-in-one-window",
        # "The ledger of a step is about placements, all copies"
        at("t1", "s1", item("A", ABC), item("B", HELLO), assembly("m1", ["A", "B", "A"]), inject("m1"))
        + at("t1", "s2", assembly("m2", ["A", "B"]), inject("m2")),
        {
            "1.1": {
                "ledger": ledger(0, 12, 0, 12),
                "counts": {"added": 2},
                "changes": {"A": added(tokens=5, in_window=10, new=10), "B": added()},
            },
            "1.2": {
                "ledger": ledger(12, 0, 5, 7),
                # "current in both, same version and rendering"
                "changes": {"A": skipped(tokens=5, in_window=5, new=0, freed=5), "B": skipped()},
                "cache": {"possible_prefix": 7, "broken_by": {"item": "A", "position": 2}},
            },
        },
    ),
]
