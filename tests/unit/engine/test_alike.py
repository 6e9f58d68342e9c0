"""Which texts repeat an earlier one."""

from __future__ import annotations

import hashlib
import random

from ctxctl.engine.textdiff.near_duplicates import NEAR, NearDuplicate, SeenTexts, jaccard, sample_of

WORDS = [f"word{n}" for n in range(2000)]


def text(seed: int, length: int = 300) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=length))


def found(*texts: str) -> list[NearDuplicate | None]:
    known = SeenTexts()
    return [known.add(n, hashlib.sha256(t.encode()).hexdigest(), t) for n, t in enumerate(texts)]


def test_equal_texts_repeat_the_first_one_however_short() -> None:
    assert found("ok", text(1), "ok", text(1)) == [None, None, NearDuplicate(0, 100), NearDuplicate(1, 100)]


def test_a_few_other_words_make_it_nearly_the_same() -> None:
    first = text(2)
    words = first.split(" ")
    words[10], words[200] = "changed", "too"
    near = found(first, text(3), " ".join(words))[2]
    assert near is not None
    assert near.number == 0
    assert NEAR <= near.share < 100


def test_other_texts_and_halves_are_not() -> None:
    first = text(4)
    half = " ".join(first.split(" ")[:150])
    assert found(first, text(5), half) == [None, None, None]


def test_blanks_and_signs_are_no_difference_in_words_but_texts_are_not_equal() -> None:
    first = text(6)
    assert found(first, first.replace(" ", "  ")) == [None, NearDuplicate(0, 99)]


def test_short_texts_are_compared_as_a_whole_only() -> None:
    assert sample_of("one two three four five six seven eight nine ten eleven twelve 13 14 15") is None
    assert found("a b c d", "a b c d e") == [None, None]


def test_the_sample_is_a_fair_one() -> None:
    first = text(7, 4000)
    words = first.split(" ")
    for n in range(0, 4000, 40):  # each change touches four runs of 4,000: about 82 per cent stay in common
        words[n] = "x"
    a, b = sample_of(first), sample_of(" ".join(words))
    assert a is not None
    assert b is not None
    assert 70 <= jaccard(a, b) <= 92


def test_what_all_have_in_common_makes_nothing_alike_and_nothing_slow() -> None:
    head = text(8, 40)
    texts = [f"{head} {text(100 + n, 200)}" for n in range(200)]
    assert found(*texts) == [None] * 200
