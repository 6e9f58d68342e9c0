"""What the next bill should say, how sure that is, and what a thread's own bills teach."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.tokens.calibrate import expect
from ctxctl.tokens.calibrate.expect import (
    ENOUGH,
    SCALES,
    WIDTHS,
    BillsLearned,
    ModelWeights,
    expected,
    half_width,
    method,
    model_weights,
    refine,
    slopes,
)
from ctxctl.tokens.calibrate.features import BOUNDS, CLASSES
from ctxctl.tokens.calibrate.relatives import nearest_fit, relative_kind
from ctxctl.tokens.calibrate.shipped import PATH, shipped_calibration
from ctxctl.tokens.calibrate.spread import ErrorSpread, SizeError, spread_of

ENCODING = "o200k_base"
NONE = (0,) * len(CLASSES)
RESULT = CLASSES.index("tool_result")


def of(model: str | None) -> ModelWeights:
    return model_weights(shipped_calibration(), model, ENCODING)


def moved(tokens: int) -> tuple[int, ...]:
    return tuple(tokens if n == RESULT else 0 for n in range(len(CLASSES)))


def taught(
    how: ModelWeights, true: float, bills: int, *, noise: float = 0.0, learned: BillsLearned | None = None
) -> BillsLearned:
    """A thread that gets tool results and is billed `true` tokens for each that its slopes make of them."""
    dice = random.Random(3)
    size = 30_000
    known = learned or refine(None, how, NONE, NONE, size, size, recorded=10_000)
    for _ in range(bills):
        counted = dice.randrange(500, 4000)
        entered = [round(slopes(how, known)[n] * x) for n, x in enumerate(moved(counted))]
        change = round(how.slopes[RESULT] * true * counted * (1 + dice.uniform(-noise, noise)))
        size += change
        known = refine(known, how, entered, NONE, change, size, recorded=10_000)
    return known


def test_a_public_tokenizer_is_exact_and_never_scaled() -> None:
    how = of("gpt-5.5")
    assert how.method == "exact:o200k_base"
    assert how.slopes == (1.0,) * len(CLASSES)
    assert slopes(how, taught(how, 1.4, 40)) == how.slopes
    assert model_weights(shipped_calibration(), "gpt-4", ENCODING).method == "estimate:o200k_base"
    assert model_weights(shipped_calibration(), "gpt-4", "cl100k_base").method == "exact:cl100k_base"


def test_a_fitted_model_says_whose_numbers_it_has() -> None:
    how = of("anthropic/claude-opus-4-5-20251101")
    assert how.method == "calibrated:o200k_base"
    assert how.basis == expect.FITTED
    assert "sessions of claude-opus-4-5" in how.how
    assert 1.0 < how.slopes[RESULT] < 1.3


@pytest.mark.parametrize(
    ("model", "as_"),
    [
        ("claude-opus-5", "claude-opus-4-8"),
        ("claude-sonnet-5-20260901", "claude-opus-4-8"),
        ("fable-5", "claude-opus-4-8"),
        ("claude-opus-4-7", "claude-opus-4-8"),
        ("claude-sonnet-4-6", "claude-opus-4-6"),
        ("claude-opus-4-1", "claude-opus-4"),
        ("gemini-4-pro", "gemini-3-pro-preview"),
    ],
)
def test_a_relative_stands_in_with_a_wider_error_and_is_named(model: str, as_: str) -> None:
    how, other = of(model), of(as_)
    assert how.slopes == other.slopes
    assert how.how.endswith(f"has no fit of its own; uses that of {as_}, the nearest in its family")
    assert how.spread.request > other.spread.request
    assert how.spread.moved > other.spread.moved


@pytest.mark.parametrize("model", ["kimi-k3", "mistral-large", "claude", "claude-2.1", "llama3.1", "", None])
def test_without_a_reason_nobody_stands_in(model: str | None) -> None:
    how = of(model)
    assert how.method == "estimate:o200k_base"
    assert how.slopes == (1.0,) * len(CLASSES)
    assert model_weights(None, "claude-opus-4-5", ENCODING).basis == expect.ESTIMATED


def test_nothing_fitted_with_another_encoding_is_used() -> None:
    assert (
        model_weights(shipped_calibration(), "claude-opus-4-5", "cl100k_base").method
        == "estimate:cl100k_base"
    )


def test_the_groups_are_told_by_version() -> None:
    groups = {name: found.group for name in shipped_names() if (found := relative_kind(name))}
    assert groups["claude-opus-4-6"] == "claude"
    assert groups["claude-opus-4-8"] == "newer claude"
    assert relative_kind("claude-3-5-haiku") == ("claude", (3, 5), "haiku")
    assert nearest_fit("claude-haiku-4-6", shipped_calibration().fits).model == "claude-opus-4-6"  # type: ignore[union-attr]
    assert nearest_fit("llama-3.3-70b", shipped_calibration().fits) is None


def shipped_names() -> list[str]:
    return [fit.model for fit in shipped_calibration().fits]


def test_the_next_size_is_the_last_bill_and_what_came() -> None:
    how = of("claude-opus-4-5")
    items = moved(2)
    assert expected(how, None, 50_000, moved(1000), NONE) == 51_000
    assert expected(how, None, 50_000, moved(0), items) == 50_000 + round(2 * how.per_item[RESULT])
    assert expected(how, None, 50_000, moved(-60_000), NONE) == 0


def test_after_a_break_half_of_what_came_unrecorded_since_the_first_bill_is_gone() -> None:
    how = of("claude-opus-4-5")
    learned = refine(None, how, NONE, NONE, 30_000, 30_000, recorded=10_000)
    assert learned.base == 20_000
    plain = expected(how, learned, 100_000, moved(-50_000), NONE, recorded=4000)
    assert plain == 50_000
    broken = expected(how, learned, 100_000, moved(-50_000), NONE, broken=True, recorded=4000)
    assert broken == (50_000 + 20_000 + 4000) // 2
    wide = half_width(how, learned, moved(-50_000), NONE, broken, broken=True)
    assert wide >= 0.5 * broken > half_width(how, learned, moved(-500), NONE, plain)
    after = refine(learned, how, moved(-50_000), NONE, -80_000, 20_000, broken=True, recorded=4000)
    assert (after.base, after.scale, after.width) == (16_000, 1.0, 1.0)


def test_the_error_grows_with_what_moved_and_with_requests_and_unknown_items() -> None:
    how = of("claude-opus-4-5")
    least = half_width(how, None, moved(10), NONE, 50_000)
    assert least < half_width(how, None, moved(10_000), NONE, 60_000)
    assert half_width(how, None, moved(-10_000), NONE, 60_000) == half_width(
        how, None, moved(10_000), NONE, 60_000
    )
    assert 3 * least >= half_width(how, None, moved(10), NONE, 50_000, requests=3) > 2 * least
    assert half_width(how, None, moved(10), NONE, 50_000, blind=2) > 10 * least


def test_a_threads_bills_pull_the_slopes_a_little_and_within_bounds() -> None:
    how = of("claude-opus-4-5")
    few, many = taught(how, 1.08, 3, noise=0.02), taught(how, 1.08, 60, noise=0.02)
    assert 1.0 < few.scale < many.scale
    assert many.scale == pytest.approx(1.08, abs=0.03)
    far = taught(how, 1.9, 60)
    assert far.scale <= SCALES[expect.FITTED][1]


def test_a_model_that_nobody_fitted_is_calibrated_by_its_own_thread() -> None:
    how = of("kimi-k3")
    few = taught(how, 1.5, ENOUGH - 1)
    assert method(how, few) == "estimate:o200k_base"
    many = taught(how, 1.5, ENOUGH + 20)
    assert method(how, many) == "calibrated:o200k_base"
    assert many.scale == pytest.approx(1.5, abs=0.05)
    assert half_width(how, many, moved(3000), NONE, 50_000) < half_width(how, few, moved(3000), NONE, 50_000)
    assert method(of("gpt-5.5"), many) == "exact:o200k_base"


@pytest.mark.parametrize("wrong", [-29_000, 400_000, 90_000])
def test_one_wrong_bill_does_not_bend_the_scale(wrong: int) -> None:
    how = of("kimi-k3")
    before = taught(how, 1.3, 30, noise=0.02)
    after = refine(before, how, moved(1500), NONE, wrong, 80_000 + wrong, recorded=10_000)
    assert after.scale == before.scale
    assert after.width > before.width
    assert taught(how, 1.3, 20, noise=0.02, learned=after).scale == pytest.approx(before.scale, abs=0.02)


def test_the_error_follows_what_the_bills_show() -> None:
    how = of("claude-sonnet-4-5")
    quiet, loud = taught(how, 1.0, 60), taught(how, 1.0, 60, noise=0.6)
    assert quiet.width < 1 < loud.width
    assert quiet.width >= WIDTHS[0]


def test_items_of_unknown_size_are_learned_from_what_they_were_billed() -> None:
    how = of("gpt-5.5")
    learned = refine(None, how, NONE, NONE, 30_000, 30_000)
    for n in range(30):
        learned = refine(learned, how, moved(100), NONE, 100 + 300, 30_000 + 400 * n, blind=1)
    assert how.blind < expected(how, learned, 0, NONE, NONE, blind=1) <= 300
    assert expected(how, learned, 0, NONE, NONE, blind=1) > 200
    same = refine(learned, how, moved(-100), NONE, -9000, 30_000, blind=-3)
    assert (same.blind, same.blinds) == (learned.blind, learned.blinds), "nobody knows which left"


Bill = st.tuples(
    st.lists(st.integers(-(10**7), 10**7), min_size=len(CLASSES), max_size=len(CLASSES)),
    st.lists(st.integers(-50, 50), min_size=len(CLASSES), max_size=len(CLASSES)),
    st.integers(-(10**8), 10**8), st.integers(0, 10**8), st.integers(-5, 5), st.integers(0, 9), st.booleans(),
)  # fmt: skip


@given(st.lists(Bill, max_size=30), st.sampled_from(["claude-opus-4-5", "claude-opus-5", "gpt-5", "kimi"]))
def test_whatever_was_billed_all_stays_within_bounds(
    bills: list[tuple[list[int], list[int], int, int, int, int, bool]], model: str
) -> None:
    how = of(model)
    learned: BillsLearned | None = None
    low, high = SCALES[how.basis]
    for came, items, change, size, blind, requests, broken in bills:
        learned = refine(
            learned, how, came, items, change, size,
            requests=requests, blind=blind, broken=broken, recorded=size // 2,
        )  # fmt: skip
        assert low <= learned.scale <= high
        assert WIDTHS[0] <= learned.width <= WIDTHS[1]
        assert expected(how, learned, size, came, items, blind=blind, broken=broken, recorded=size) >= 0
        assert half_width(how, learned, came, items, size, blind=blind, broken=broken) >= 1


def test_a_spread_holds_what_it_was_made_of_and_no_more_than_needed() -> None:
    dice = random.Random(5)
    offs = [SizeError(dice.gauss(0, 20 + 0.1 * m), m) for m in (dice.randrange(0, 5000) for _ in range(800))]
    found = spread_of(offs)
    within = sum(abs(off.error) <= found.of(1, off.moved, 0) for off in offs) / len(offs)
    assert 0.9 <= within <= 0.94
    assert 0.12 < found.moved < 0.25
    assert spread_of(offs[::-1]) == found
    assert spread_of([]) == ErrorSpread(0.0, 0.0)
    assert found.of(0, 0, 0) == found.of(1, 0, 0), "the expected request is one"


def test_what_is_shipped_holds_names_of_models_and_numbers_and_nothing_else() -> None:
    made = shipped_calibration()
    assert made.common is not None
    assert len(made.fits) >= 8
    assert PATH.stat().st_size < 64_000
    assert made.encode() + b"\n" == PATH.read_bytes()
    text = PATH.read_text()
    assert "/" not in text
    assert "\\" not in text
    for fit in made.fits:
        assert fit.next_size.p50 <= 0.01
        assert fit.next_size.p95 <= 0.05
        assert fit.spread is not None
        assert all(b.low <= w <= b.high for w, b in zip(fit.weights, BOUNDS, strict=True))
