"""Identity, versions, refs, contents and token counts (DESIGN section 2)."""

from __future__ import annotations

from tests.oracle.build import (
    ABC,
    CAT,
    HELLO,
    ONE_TWO,
    RED,
    XYZ,
    assembly,
    at,
    inject,
    item,
    select,
    update,
)
from tests.oracle.case import Case, added, ledger, omitted, removed, skipped, updated

ABC_SHA = "52cf9f06f83e0a0a90dc25dcf548c18421244f9520c577672cd27b6618f12134"
CAT_SHA = "daa74395aad4b05e99ba7f2d5a57f148f1d76737843a334c88914a4fddecd2e9"
STRANGE_SHA = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

CASES = [
    Case(
        "a-ref-names-a-version",
        # "A ref names `ID` (its latest version at that line) or `ID@VERSION`."
        at(
            "t1",
            "s1",
            item("A", ABC, version="1"),
            update("A", CAT, version="2"),
            item("B", HELLO, version="1"),
            assembly("m1", ["A@1", "B@1"]),
            inject("m1"),
        )
        + at("t1", "s2", assembly("m2", ["A", "B"]), inject("m2")),
        {
            "1.1": {
                "ledger": ledger(0, 7, 0, 7),
                "changes": {"A": added(version="1", tokens=5), "B": added()},
            },
            "1.2": {
                "ledger": ledger(7, 8, 5, 10),
                "changes": {"A": updated(version="2", previous_version="1", tokens=8), "B": skipped()},
            },
        },
    ),
    Case(
        "a-ref-means-the-latest-version-at-its-own-line",
        at("t1", "s1", item("A", ABC), assembly("m1", ["A"]), update("A", CAT), inject("m1"))
        + at("t1", "s2", assembly("m2", ["A"]), inject("m2")),
        {
            "1.1": {"ledger": ledger(0, 5, 0, 5)},
            "1.2": {"ledger": ledger(5, 8, 5, 8), "changes": {"A": updated(new=8, freed=5)}},
        },
    ),
    Case(
        "a-selected-ref-means-the-latest-version-at-its-own-line",
        at("t1", "s1", item("A", ABC), select(["A"]), update("A", CAT), inject())
        + at("t1", "s2", select(["A"]), inject()),
        {
            "1.1": {"basis": "selection", "ledger": ledger(0, 5, 0, 5)},
            "1.2": {"ledger": ledger(5, 8, 5, 8), "changes": {"A": updated(new=8, freed=5)}},
        },
    ),
    Case(
        "a-suffix-goes-only-if-it-is-the-version",
        # "less a trailing `@SUFFIX` only if the suffix equals the item's version or a prefix of one of its
        # digests"
        at(
            "t1",
            "s1",
            item("user@host", ABC),
            item(f"doc@{CAT_SHA[:12]}", CAT),
            item("note@v7", HELLO, version="v7"),
            item("src@0011223344556677", ONE_TWO, digest="sha256-16:0011223344556677"),
            assembly("m1", ["user@host", "doc", "note@v7", "src@0011223344556677"]),
            inject("m1"),
        )
        + at(
            "t1",
            "s2",
            update(f"doc@{ABC_SHA[:12]}", ABC),
            item("note@v8", RED, version="v8", updated=True),
            assembly("m2", ["user@host", f"doc@{ABC_SHA[:12]}", "note", "src"]),
            inject("m2"),
        ),
        {
            "1.1": {
                "ledger": ledger(0, 18, 0, 18, uncounted=0),
                "order": ["user@host", "doc", "note", "src"],
                "changes": {
                    "user@host": added(version=ABC_SHA[:16]),
                    "doc": added(version=CAT_SHA[:16]),
                    "note": added(version="v7"),
                    "src": added(version="6899ee404683a14e"),
                },
            },
            "1.2": {
                "ledger": ledger(18, 9, 10, 17, uncounted=0),
                "changes": {
                    "user@host": skipped(),
                    "doc": updated(version=ABC_SHA[:16], previous_version=CAT_SHA[:16]),
                    "note": updated(version="v8", previous_version="v7"),
                    "src": skipped(),
                },
            },
        },
    ),
    Case(
        "declared-version-over-the-digest",
        # "`metadata.version` if given": the same text under another version is `updated`.
        at("t1", "s1", item("A", ABC, version="1"), assembly("m1", ["A"]), inject("m1"))
        + at("t1", "s2", update("A", ABC, version="2"), assembly("m2", ["A"]), inject("m2")),
        {
            "1.1": {"changes": {"A": added(version="1")}},
            "1.2": {
                "ledger": ledger(5, 5, 5, 5),
                "changes": {"A": updated(version="2", previous_version="1", new=5, freed=5)},
                "cache": {
                    "possible_prefix": 0,
                    "broken_by": {"item": "A", "status": "updated"},
                },
            },
        },
    ),
    Case(
        "an-unknown-ref",
        # "An unknown ref is a placement with a null version and uncounted tokens."
        at("t1", "s1", item("A", ABC), assembly("m1", ["A", "ghost"]), inject("m1"))
        + at("t1", "s2", assembly("m2", ["A", "ghost"]), inject("m2"))
        + at("t1", "s3", item("ghost", CAT), assembly("m3", ["A", "ghost"]), inject("m3")),
        {
            "1.1": {
                "ledger": ledger(0, 5, 0, 5, uncounted=1),
                "window": {"uncounted": 1},
                "changes": {"A": added(), "ghost": added(version=None, tokens=None, in_window=0, new=0)},
            },
            "1.2": {
                "changes": {"A": skipped(), "ghost": skipped()},
                "cache": {"possible_prefix": 5, "broken_by": None},
            },
            "1.3": {
                "ledger": ledger(5, 8, 0, 13, uncounted=0),
                "changes": {"A": skipped(), "ghost": updated(previous_version=None, new=8, freed=0)},
            },
        },
    ),
    Case(
        "declared-only-where-there-is-no-text",
        # "`declared` (a `token_estimate`, only where there is no text)"; "A placement without text or count
        # adds 0 and raises `uncounted`."
        at(
            "t1",
            "s1",
            item("A", ABC, estimate=99),
            item("B", estimate=40),
            item("C"),
            assembly("m1", ["A", "B", "C"]),
            inject("m1"),
        ),
        {
            "1.1": {
                "window": {
                    "used": 45,
                    "uncounted": 1,
                    "by_method": {"estimate:o200k_base": 5, "declared": 40},
                },
                "ledger": ledger(0, 45, 0, 45, uncounted=1),
                "changes": {
                    "A": added(tokens=5),
                    "B": added(tokens=40, version=None),
                    "C": added(tokens=None),
                },
            }
        },
    ),
    Case(
        "exact-where-the-model-is-known-to-use-the-encoding",
        at("t1", "s1", item("A", ABC), item("B", estimate=40), assembly("m1", ["A", "B"]), inject("m1")),
        {"1.1": {"window": {"used": 45, "by_method": {"exact:o200k_base": 5, "declared": 40}}}},
        model="gpt-4o",
    ),
    Case(
        "another-estimate-keeps-the-law",
        # No text, no version, no digest: the key of the ledger is the same, and still "window_after =
        # window_before + new - freed, always".
        at("t1", "s1", item("A", estimate=10), item("B", estimate=7), inject())
        + at("t1", "s2", update("A", estimate=20), inject()),
        {
            "1.1": {"ledger": ledger(0, 17, 0, 17)},
            "1.2": {"ledger": {"window_before": 17, "window_after": 27}},
        },
    ),
    Case(
        "contents-by-reference",
        # "A content appears inline once; later occurrences are `content_ref: "sha256:..."`."
        at(
            "t1",
            "s1",
            item("A", ABC),
            item("B", ref=f"sha256:{ABC_SHA}"),
            item("C", ref=f"sha256:{STRANGE_SHA}", estimate=6),
            assembly("m1", ["A", "B", "C"]),
            inject("m1"),
        )
        + at("t1", "s2", update("B", ABC), assembly("m2", ["A", "B", "C"]), inject("m2")),
        {
            "1.1": {
                "ledger": ledger(0, 16, 0, 16, uncounted=0),
                "changes": {
                    "A": added(version=ABC_SHA[:16]),
                    "B": added(version=ABC_SHA[:16], tokens=5),
                    # "the first 16 hex digits of the content's SHA-256": the ref names it.
                    "C": added(version=STRANGE_SHA[:16], tokens=6),
                },
            },
            "1.2": {
                "ledger": ledger(16, 0, 0, 16),
                "changes": {"A": skipped(), "B": skipped(), "C": skipped()},
            },
        },
    ),
    Case(
        "structured-content-as-canonical-json",
        at(
            "t1",
            "s1",
            item("A", {"b": [2, 3], "a": 1}),
            assembly("m1", ["A"]),
            inject("m1"),
        )
        + at("t1", "s2", update("A", {"a": 1, "b": [2, 3]}), assembly("m2", ["A"]), inject("m2"))
        + at("t1", "s3", update("A", {"a": 1, "b": [3, 2]}), assembly("m3", ["A"]), inject("m3")),
        {
            "1.1": {
                "ledger": ledger(0, 11, 0, 11),
                "changes": {"A": added(version="efbd0040190fb087", tokens=11)},
            },
            "1.2": {"ledger": ledger(11, 0, 0, 11), "changes": {"A": skipped()}},
            "1.3": {"ledger": ledger(11, 11, 11, 11), "changes": {"A": updated()}},
        },
    ),
    Case(
        "omitted-by-version",
        # An omitted ref with a version is about that item, whichever of its versions is in the window.
        at("t1", "s1", item("A", ABC, version="1"), item("B", HELLO, version="1"), select(["A@1"]), inject())
        + at("t1", "s2", select(["A@1"], {"B@1": "duplicate", "nobody": "low_relevance"}), inject()),
        {
            "1.1": {"changes": {"A": added(version="1")}},
            "1.2": {
                "mode": "window",
                "counts": {"skipped": 1, "omitted": 2},
                "changes": {
                    "A": skipped(),
                    "B": omitted(reason="duplicate"),
                    "nobody": omitted(reason="low_relevance", version=None, tokens=None),
                },
            },
        },
    ),
    Case(
        "an-item-is-its-own-in-each-session",
        at("t1", "s1", item("A", ABC), inject(), session_id="one")
        + at("t1", "s1", item("A", CAT), inject(), session_id="two")
        + at("t2", "s2", item("B", HELLO), inject(), session_id="one")
        + at("t2", "s2", update("A", XYZ), inject(), session_id="two"),
        {
            "one/1.1": {"ledger": ledger(0, 5, 0, 5)},
            "two/1.1": {"ledger": ledger(0, 8, 0, 8), "changes": {"A": added()}},
            "one/2.1": {"ledger": ledger(5, 2, 0, 7), "changes": {"A": skipped(), "B": added()}},
            "two/2.1": {"ledger": ledger(8, 5, 8, 5), "changes": {"A": updated()}},
        },
    ),
    Case(
        "an-item-is-its-own-in-each-thread",
        # "`thread_id` separates a sub-agent's (or a concurrent branch's) conversation"
        at("t1", "s1", item("A", ABC), item("B", ONE_TWO), inject())
        + at("t1", "x1", item("A", CAT), inject(), thread_id="explorer")
        + at("t1", "s2", inject())
        + at("t1", "x2", item("C", HELLO), select(["C"]), inject(), thread_id="explorer"),
        {
            "1.1": {"thread": "main", "ledger": ledger(0, 8, 0, 8)},
            "explorer:1.1": {
                "thread": "explorer",
                "ledger": ledger(0, 8, 0, 8),
                "changes": {"A": added(tokens=8)},
                "cache": {"possible_prefix": None},
            },
            "1.2": {
                "ledger": ledger(8, 0, 0, 8),
                "changes": {"A": skipped(tokens=5), "B": skipped()},
                "cache": {"possible_prefix": 8},
            },
            "explorer:1.2": {
                "ledger": ledger(8, 2, 8, 2),
                "changes": {"C": added(), "A": removed(cause="unrecorded")},
            },
        },
    ),
]
