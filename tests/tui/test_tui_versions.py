"""Versions in words."""

from __future__ import annotations

import pytest

from ctxctl.tui.versions import change_of, named, without_digests

DIGEST = "e0215f6fdd1d0ad5"


def test_only_versions_that_somebody_gave_are_named() -> None:
    assert named("2.1") == "2.1"
    assert named("draft-of-the-evening") == "draft-of-th…"
    assert named(DIGEST) == named(None) == ""


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        ("1", "2", "version 1 → 2"),
        ("1", "1", "version 1"),
        (None, "1", "version 1"),
        ("1", None, "version 1"),
        (None, DIGEST, ""),
        (DIGEST, "69282dc88c1b2a3d", "a different text than before"),
        ("1", DIGEST, "a different text than before"),
        (None, None, ""),
    ],
)
def test_a_change_of_version(before: str | None, now: str | None, said: str) -> None:
    assert change_of(before, now) == said


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (f"became available (version {DIGEST})", "became available"),
        (f"became available (version {DIGEST}, from a.md)", "became available (from a.md)"),
        (f"was updated to version {DIGEST}; 5 tokens", "was updated to another version; 5 tokens"),
        ("became available (version 3)", "became available (version 3)"),
    ],
)
def test_sentences_lose_digests_alone(told: str, said: str) -> None:
    assert without_digests(told) == said
