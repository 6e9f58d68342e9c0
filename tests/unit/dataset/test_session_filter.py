"""What one types to find sessions of a dataset."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.dataset.session_filter import session_filter
from ctxctl.dataset.session_values import Figures, Places, SessionRow
from ctxctl.errors import UsageError


def row(**facts: Any) -> SessionRow:
    made: dict[str, Any] = {
        "key": "0" * 16, "source": "1" * 16, "name": None, "title": None, "project": None, "branch": None,
        "client": None, "client_version": None, "model": None, "format": "codex", "started": None, "turns": 3,
        "labels": (), "path": None, "sessions": 1, "own": Figures(requests=10, sent=150_000),
        "copied": Figures(), "places": Places(), **facts,
    }  # fmt: skip
    return SessionRow(**made)


ORCHARD = row(
    project="Orchard tools", client="Claude Code", client_version="2.1.0", model="opus-4", branch="main",
    path="/logs/a b.jsonl", labels=(("team", "fruit"),), started=datetime(2026, 8, 3, 9),
    own=Figures(10, 150_000, filled=0.8, read=50, read_of=100, usd=5.0, misses=2, compactions=1),
)  # fmt: skip
BARE = row()


@pytest.mark.parametrize(
    ("typed", "orchard", "bare"),
    [
        ("", True, True),
        ("   ", True, True),
        ("orchard", True, False),
        ("ORCHARD opus", True, False),
        ("orchard mini", False, False),
        ("orchard,nothing", True, False),
        ('"orchard tools"', True, False),
        ('"tools orchard"', False, False),
        ("-orchard", False, True),
        ("client:code", True, False),
        ("client:2.1", True, False),
        ('client:"claude code"', True, False),
        ("client:codex,claude", True, False),
        ("-client:claude", False, True),
        ("project:tools model:opus", True, False),
        ("format:codex", True, True),
        ("label:team=fruit", True, False),
        ("path:/logs", True, False),
        ("branch:main", True, False),
        ("cost>4", True, False),
        ("cost>=$5", True, False),
        ("cost>5", False, False),
        ("cost<=5", True, False),
        ("-cost>5", True, True),
        ("sent>100k", True, True),
        ("tokens:>149k", True, True),
        ("sent<0.15M", False, False),
        ("window>=80%", True, False),
        ("window>0.9", False, False),
        ("window>70", True, False),
        ("read<51%", True, False),
        ("misses=2", True, False),
        ("misses==2", True, False),
        ("compactions>0", True, False),
        ("requests≥10", True, True),
        ("turns<4", True, True),
        ("since:2026-08-03", True, False),
        ("until:2026-08-03", False, False),
        ("until:2026-08-04", True, False),
        ("https://x", False, False),
        (",", True, True),
    ],
)
def test_what_fits(typed: str, orchard: bool, bare: bool) -> None:
    fits = session_filter(typed)
    assert (fits(ORCHARD), fits(BARE)) == (orchard, bare)


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("clinet:x", "did you mean client?"),
        ("project:", "needs a value"),
        ("cost>", "needs a number"),
        ("cost>many", "needs a number"),
        ("cost:5", "is compared with a number"),
        ("cots>5", "did you mean cost?"),
        ("zzz>5", "there are turns, requests"),
        ("cost>5%", "has no per cent"),
        ("window>", "for example window>80%"),
        ("since:yesterday", "is no date"),
        ('"open', "not closed"),
        ("x" * 2001, "longer than"),
    ],
)
def test_what_is_wrong_is_said(typed: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        session_filter(typed)
    assert caught.value.slug == "bad-query"
    assert said in caught.value.message


@given(st.text(st.sampled_from('ab-:",<>=%$.5k\\ '), max_size=40))
def test_any_text_is_a_filter_or_told_as_none(typed: str) -> None:
    try:
        fits = session_filter(typed)
    except UsageError as error:
        slug = error.slug
    else:
        slug = "bad-query" if fits(ORCHARD) in (True, False) else ""
    assert slug == "bad-query"
