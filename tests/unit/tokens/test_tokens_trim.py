"""Texts cut exactly at a token bound."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.tokens.counter import Counter
from ctxctl.tokens.trim import MARKER, trim

COUNTER = Counter("o200k_base")
TEXTS = st.text(max_size=200) | st.sampled_from(
    ["word " * 50, "😀👩‍👩‍👧‍👦" * 20, "漢字かな" * 30, "a" * 400, "\n\n\t  \n" * 40, "1234567890" * 20]
)


@given(text=TEXTS, tokens=st.integers(-1, 60), side=st.sampled_from(["head", "tail"]))
def test_never_more_than_the_bound_and_nothing_made_up(text: str, tokens: int, side: str) -> None:
    made = trim(COUNTER, text, tokens, side)  # type: ignore[arg-type]
    count = COUNTER.count(made)[0]
    assert count <= max(0, tokens)
    if COUNTER.count(text)[0] <= tokens:
        assert made == text
    else:
        clean = text.encode("utf-8", "replace").decode()
        kept = made.removesuffix(MARKER) if side == "head" else made.removeprefix(MARKER)
        assert clean.startswith(kept) if side == "head" else clean.endswith(kept)


@pytest.mark.parametrize("side", ["head", "tail"])
def test_ordinary_text_is_cut_at_the_bound_itself(side: str) -> None:
    text = "The quick brown fox jumps over the lazy dog. " * 40
    for tokens in (5, 17, 100):
        assert COUNTER.count(trim(COUNTER, text, tokens, side))[0] == tokens  # type: ignore[arg-type]


def test_a_bound_too_small_for_the_marker() -> None:
    assert trim(COUNTER, "one two three four", 1) == "one"
    assert trim(COUNTER, "one two three four", 0) == ""
