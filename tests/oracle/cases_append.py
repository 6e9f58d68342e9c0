"""Frames that grow: only differences are injected (DESIGN section 3, "Mode" and "The frame", 2)."""

from __future__ import annotations

from tests.oracle.build import (
    ABC,
    ALPHA,
    BETA,
    CAT,
    HELLO,
    ONE_TWO,
    RED,
    append,
    assembly,
    at,
    compact,
    inject,
    item,
    remove,
    select,
    summary,
    update,
)
from tests.oracle.case import Case, added, ledger, removed, skipped, updated

APPENDIX = "user_message_appendix"

CASES = [
    Case(
        "append-declared-by-the-assembly",
        at("t1", "s1", item("A", ABC), append("m1", ["A"]), inject("m1"))
        + at("t2", "s2", item("B", ONE_TWO), append("m2", ["B"]), inject("m2")),
        {
            "1.1": {"mode": "append", "mode_declared": True, "ledger": ledger(0, 5, 0, 5, saved=0, stale=0)},
            "2.1": {
                "mode": "append",
                "basis": "assembly",
                "ledger": ledger(5, 3, 0, 8, saved=0, stale=0),
                "order": ["A", "B"],
                "changes": {"A": skipped(new=0, in_window=5), "B": added(new=3)},
                "cache": {"possible_prefix": 5, "broken_by": None},
            },
        },
    ),
    Case(
        "append-inferred-from-the-injection-points",
        # sanqian's shape: a version check skips what has not changed.
        at("t1", "s1", item("A", ABC), item("B", ONE_TWO), select(["A", "B"]), inject(point=APPENDIX))
        + at("t2", "s2", select([], {"A": "duplicate", "B": "duplicate"}))
        + at("t3", "s3", update("A", CAT), select(["A"], {"B": "duplicate"}), inject(point=APPENDIX)),
        {
            "1.1": {
                "mode": "append",
                "mode_declared": False,
                "basis": "selection",
                "ledger": ledger(0, 8, 0, 8, saved=0),
            },
            "2.1": {
                # "nothing recorded repeats the frame"; `saved`: "the tokens of items recorded as skipped"
                "mode": "append",
                "ledger": ledger(8, 0, 0, 8, saved=8, stale=0),
                "counts": {"skipped": 2, "omitted": 0, "added": 0, "removed": 0, "updated": 0},
                "changes": {"A": skipped(), "B": skipped()},
                "flags_has": ["injection_not_recorded"],
            },
            "3.1": {
                # "An older copy of the same item becomes stale": it stays in the window.
                "ledger": ledger(8, 8, 0, 16, saved=3, stale=5),
                "counts": {"updated": 1, "skipped": 1},
                "changes": {"A": updated(tokens=8, in_window=13, new=8, freed=0), "B": skipped(in_window=3)},
                # The old copy is where it was: a growing history keeps its prefix.
                "cache": {"possible_prefix": 8, "broken_by": None},
            },
        },
    ),
    Case(
        "append-takes-the-items-added-since",
        # "or else the items added or updated since the last frame; nothing recorded repeats the frame"
        at("t1", "s1", item("A", ABC), item("K", CAT, visibility=("tool",)), inject(point=APPENDIX))
        + at("t2", "s2", item("B", ONE_TWO), update("A", HELLO), inject(point=APPENDIX))
        + at("t3", "s3", inject(point=APPENDIX)),
        {
            "1.1": {"mode": "append", "basis": "items", "ledger": ledger(0, 5, 0, 5)},
            "2.1": {
                "basis": "items",
                "ledger": ledger(5, 5, 0, 10, stale=5),
                "changes": {"B": added(new=3), "A": updated(new=2, freed=0, in_window=7)},
            },
            "3.1": {
                "basis": "repeat",
                "ledger": ledger(10, 0, 0, 10, stale=5),
                "changes": {"B": skipped(), "A": skipped(in_window=7)},
                "cache": {"possible_prefix": 10, "broken_by": None},
            },
        },
    ),
    Case(
        "removed-but-its-copies-stay",
        # "a removed item is no longer current but its copies stay, stale, until the history is cut"
        at("t1", "s1", item("A", ABC), append("m1", ["A"]), inject("m1"))
        + at("t2", "s2", remove("A", "detached"), item("B", ONE_TWO), append("m2", ["B"]), inject("m2"))
        + at("t3", "s3", summary("S", BETA), compact(["A"], "S"), inject())
        + at("t4", "s4", update("A", ABC), append("m4", ["A"]), inject("m4")),
        {
            "1.1": {},
            "2.1": {
                "ledger": ledger(5, 3, 0, 8, stale=5),
                "changes": {
                    "B": added(),
                    "A": removed(cause="detached", tokens=5, in_window=5, new=0, freed=0),
                },
                "cache": {"possible_prefix": 5, "broken_by": None},
            },
            "3.1": {
                # A was not current before: what the compaction frees belongs to no change.
                "ledger": ledger(8, 1, 5, 4, stale=0),
                "changes": {"B": skipped(), "S": added(new=1)},
                "cache": {"possible_prefix": 0, "broken_by": {"item": "A", "position": 0}},
            },
            "4.1": {
                "ledger": ledger(4, 5, 0, 9, stale=0),
                "changes": {"B": skipped(), "S": skipped(), "A": added(new=5, freed=0, in_window=5)},
            },
        },
    ),
    Case(
        "append-compaction-with-summary",
        at("t1", "s1", item("A", ABC), item("B", ONE_TWO), append("m1", ["A", "B"]), inject("m1"))
        + at("t2", "s2", update("A", CAT), append("m2", ["A"]), inject("m2"))
        + at(
            "t3",
            "s3",
            summary("S", BETA),
            compact(["A"], "S"),
            item("C", HELLO),
            append("m3", ["C"]),
            inject("m3"),
        ),
        {
            "1.1": {"ledger": ledger(0, 8, 0, 8)},
            "2.1": {"ledger": ledger(8, 8, 0, 16, stale=5)},
            "3.1": {
                # Both copies of A are cut, the stale one too.
                "ledger": ledger(16, 3, 13, 6, stale=0),
                "changes": {
                    "B": skipped(),
                    "S": added(new=1),
                    "C": added(new=2),
                    "A": removed(cause="compacted", into="S", tokens=8, in_window=0, freed=13),
                },
            },
        },
    ),
    Case(
        "carried-in-from-before-the-trace",
        # "An item skipped as unchanged that was never seen was carried in from before the trace: current,
        # uncounted."  AMBIGUOUS whether its first status is `skipped` (it was there before) or `added` (no
        # frame of this trace had it); the first: "carried in from before" makes it current in both.
        at("t1", "s1", item("A", ABC), select(["A"], {"X": "duplicate"}), inject(point=APPENDIX))
        + at("t2", "s2", select([], {"A": "duplicate", "X": "duplicate"}), inject(point=APPENDIX)),
        {
            "1.1": {
                "ledger": ledger(0, 5, 0, 5, saved=0, uncounted=1),
                "window": {"uncounted": 1},
                "counts": {"added": 1, "skipped": 1, "omitted": 0},
                "changes": {"A": added(), "X": skipped(tokens=None, new=0, in_window=0)},
            },
            "2.1": {
                "ledger": ledger(5, 0, 0, 5, saved=5, uncounted=1),
                "changes": {"A": skipped(), "X": skipped()},
            },
        },
    ),
    Case(
        "append-sends-the-same-again",
        # AMBIGUOUS: `skipped` says "nothing enters again", but the status table's condition is "current in
        # both, same version and rendering", and the ledger is "about placements, all copies".
        at("t1", "s1", item("A", ABC), append("m1", ["A"]), inject("m1"))
        + at("t2", "s2", append("m2", ["A"]), inject("m2")),
        {
            "1.1": {},
            "2.1": {
                "ledger": ledger(5, 5, 0, 10, stale=5),
                "counts": {"skipped": 1, "added": 0, "updated": 0},
                "changes": {"A": skipped(new=5, freed=0, in_window=10)},
            },
        },
    ),
    Case(
        "window-where-one-injection-is-elsewhere",
        # "`append` where the injections are only at `user_message_appendix` or `peer_agent_message`"
        at("t1", "s1", item("A", ABC), assembly("m1", ["A"]), inject("m1"))
        + at("t2", "s2", item("B", ONE_TWO), assembly("m2", ["B"]), inject("m2", APPENDIX)),
        {
            "1.1": {"mode": "window"},
            "2.1": {
                "mode": "window",
                "mode_declared": False,
                "ledger": ledger(5, 3, 5, 3, saved=None, stale=0),
                "changes": {"B": added(), "A": removed(cause="unrecorded")},
            },
        },
    ),
    Case(
        "declared-window-at-an-appendix",
        # "It is declared ... or, failing that" inferred: what is declared wins over the injection point.
        at(
            "t1",
            "s1",
            item("A", ABC),
            assembly("m1", ["A"], ctxctl={"mode": "window"}),
            inject("m1", APPENDIX),
        )
        + at(
            "t2",
            "s2",
            item("B", ONE_TWO),
            assembly("m2", ["B"], ctxctl={"mode": "window"}),
            inject("m2", APPENDIX),
        ),
        {
            "1.1": {"mode": "window", "mode_declared": True},
            "2.1": {"mode": "window", "ledger": ledger(5, 3, 5, 3, saved=None)},
        },
    ),
    Case(
        "append-for-a-peer",
        at("t1", "s1", item("A", ABC), inject(point="peer_agent_message"))
        + at("t2", "s2", item("B", RED), inject(point=APPENDIX))
        + at("t3", "s3", item("C", ALPHA), inject(point="peer_agent_message")),
        {
            "1.1": {"mode": "append"},
            "2.1": {"mode": "append", "ledger": ledger(5, 4, 0, 9)},
            "3.1": {"mode": "append", "ledger": ledger(9, 1, 0, 10), "order": ["A", "B", "C"]},
        },
    ),
]
