"""Cutting a text changes no token: every rule against tiktoken, on texts made to break them."""

# ruff: noqa: RUF001 (look-alikes are the point)

from __future__ import annotations

import random
from typing import Final

import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st

from ctxctl.tokens import chunks, cuts
from ctxctl.tokens.cuts import Cuts
from ctxctl.tokens.ranks import PATTERNS, get_encoding, ranks

BASES: Final = ("o200k_base", "cl100k_base")
CLASSES: Final = (
    *" \t\n\r\x0b\x85\xa0\u2003\u3000",  # white space
    *"aszZAISKéßÀжЖσΣǅʰ",  # letters with case, and some that are neither
    *"漢字かカ가ªº",
    *"0129²٣",
    *"'’!/=-\"_<|>.。，！…",
    *"\u0301\ufe0f\u200d\u200b\ufffd❤😀👩→█",
    *"\x00\x1c\x1f\x7f",
)
WORDS: Final = (
    "'ll",
    "'S",
    "'re",
    "don't",
    "'lLa",
    "x'sA",
    "\r\n",
    "\n/",
    "!\n\n",
    "!/\n//",
    "\n \n",
    "<|endoftext|>",
)
# Characters that get long runs: the soft rules ask for some of the same class in a row.
texts = st.lists(
    st.one_of(
        st.sampled_from(WORDS),
        st.builds(lambda c, n: c * n, st.sampled_from(CLASSES), st.integers(1, 6)),
        st.text(alphabet="aA漢!/\n ", min_size=1, max_size=8),
    ),
    min_size=2,
    max_size=8,
).map("".join)


def pieces(base: str, text: str) -> list[str]:
    """The pre-tokens of a text."""
    found: list[str] = regex.findall(PATTERNS[base], text)
    return found


def check(base: str, text: str) -> int:
    """Hold every rule at every place of a text; how many cuts there were."""
    encoding = get_encoding(base)
    whole = encoding.encode_ordinary(text)
    parts = pieces(base, text)
    found = Cuts(base, text)
    done = 0
    for cut in range(1, len(text)):
        left, right = text[:cut], text[cut:]
        if found._hard.match(text, cut):
            done += 1
            assert encoding.encode_ordinary(left) + encoding.encode_ordinary(right) == whole, (text, cut)
        for place in (found._among_digits(0, cut), found._before_blanks(0, cut)):
            if place is not None:
                done += 1
                halves = encoding.encode_ordinary(text[:place]), encoding.encode_ordinary(text[place:])
                assert halves[0] + halves[1] == whole, (text, place)
        if Cuts(base, text).soft(0, cut):
            done += 1
            before, after = pieces(base, left), pieces(base, right)
            assert [*before[:-1], before[-1] + after[0], *after[1:]] == parts, (text, cut)
        # What is remembered of a run may not change the answer.
        assert found.soft(0, cut) == Cuts(base, text).soft(0, cut)
    return done


@pytest.mark.parametrize("base", BASES)
@given(text=texts)
@example(text="!\n\n\n\n/=")
@example(text="!\n\n\n \n")
@example(text="x\n\n\n   ")
@example(text="aHHHH漢漢漢漢AAAb")
@example(text="a漢漢漢漢AAAb")
@example(text="漢AAAAAAAA ")
@example(text="漢AAAAAAAAa")
@example(text="!\n//////==")
@example(text="x'llaaaaaaa'llLLLLLLL")
@example(text="²1234567")
def test_every_cut(base: str, text: str) -> None:
    check(base, text)


@pytest.mark.parametrize("base", BASES)
def test_every_cut_at_random(base: str) -> None:
    chance = random.Random(20)
    done = 0
    for _ in range(8_000):
        words = chance.choices([*CLASSES, *WORDS], k=chance.randint(2, 8))
        done += check(base, "".join(word * chance.choice((1, 1, 2, 3, 5)) for word in words))
    assert done > 20_000


@pytest.mark.parametrize("base", BASES)
@given(text=texts, data=st.data())
def test_the_rest_is_a_text_of_its_own(base: str, text: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(text) - 1))
    rest = text[at:]
    for cut in range(at + 1, len(text)):
        # Only the symbols and letters before a place may say more than where the text is taken to begin.
        if Cuts(base, rest).soft(0, cut - at):
            assert Cuts(base, text).soft(at, cut)


def test_classes_are_what_they_are_called() -> None:
    everything = "".join(map(chr, range(0x110000)))

    def members(ranges: str) -> str:
        return "".join(regex.findall(f"[{ranges}]", everything))

    # The separators U+001C to U+001F are white space to Python alone.
    assert set(members(r"\s")) - set("\x1c\x1d\x1e\x1f") == set(cuts._WHITE)
    assert not regex.search(r"[\s\p{L}\p{N}\p{M}/]", members(cuts._SYMBOLS))
    assert regex.fullmatch(r"\p{L}+", members(cuts._LETTERS))
    assert regex.fullmatch(r"\p{Ll}+", members(cuts._SMALL))
    assert regex.fullmatch(r"\p{Lo}+", members(cuts._NO_CASE))
    assert regex.fullmatch(r"\p{P}+", members(cuts._FULL_WIDTH))


@pytest.mark.parametrize("base", BASES)
@given(
    piece=st.one_of(
        st.binary(min_size=1, max_size=40), st.text("aAe n=\n漢", min_size=1, max_size=40).map(str.encode)
    )
)
def test_merge_is_what_tiktoken_does(base: str, piece: bytes) -> None:
    encoding = get_encoding(base)
    if piece not in ranks(base):
        tokens = encoding._encode_single_piece(piece)
        assert chunks.merge(piece, ranks(base)) == [
            encoding.decode_single_token_bytes(each) for each in tokens
        ]
