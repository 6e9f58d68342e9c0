"""A hundred answers of `why` that someone read against the raw files stay what they were judged to be."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.corpus.test_independent import ask
from tools.independent.drawing import CHANGED, PAIRS, draw
from tools.independent.why_read import PAGE, VERDICTS, claims, entries, page

DRAWN = 80
"""Pairs of the list that a drawing still gives."""
LISTED = entries()
BY_CAPTURE = sorted({entry["capture"] for entry in LISTED})


def test_the_page_is_the_list() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(LISTED)


def test_the_list_is_of_a_hundred_of_many_kinds() -> None:
    assert [entry["number"] for entry in LISTED] == list(range(1, PAIRS + 1))
    assert all(entry["raw"] and entry["verdict"] in VERDICTS for entry in LISTED)
    captures = Counter(entry["capture"] for entry in LISTED)
    assert max(captures.values()) <= 6
    assert len({"/".join(name.split("/")[:2]) for name in captures}) >= 12
    changed = [entry for entry in LISTED if entry["sort"] in (*CHANGED, "gone")]
    assert len(changed) >= PAIRS // 2


def alike(said: dict[str, Any], read: dict[str, Any]) -> bool:
    """The same claims; what it has cost is weighed: a calibration that is fitted anew moves that a little."""
    (tokens, requests), (before, asked) = said.get("cost") or (0, 0), read.get("cost") or (0, 0)
    plain = {name: value for name, value in said.items() if name != "cost"}
    close = abs(tokens - before) <= max(2, 0.03 * before)
    return close and requests == asked and plain == {n: value for n, value in read.items() if n != "cost"}


@pytest.mark.parametrize("capture", BY_CAPTURE)
def test_what_was_right_is_still_said(corpus: Path, capture: str) -> None:
    path, wrong = corpus / capture, []
    if not path.exists():
        pytest.skip(f"no {capture}")
    for entry in LISTED:
        if entry["capture"] != capture or entry["verdict"] != "right":
            continue
        told = ask(["why", f"{path}@{entry['address']}", entry["item"], "--json", "--no-what-if"])
        said = claims(next(line for line in told if line["type"] == "why"))
        if not alike(said, entry["claims"]):
            wrong.append(f"{entry['number']}: {entry['claims']} was right, now {said}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
def test_the_pairs_are_drawn_and_not_chosen(corpus: Path) -> None:
    """A mended answer changes what there is to draw from: the rest are the same pairs still."""
    drawn = {(pair.capture, pair.address, pair.item) for pair in draw(corpus, ask)}
    assert len(drawn & {(entry["capture"], entry["address"], entry["item"]) for entry in LISTED}) >= DRAWN
