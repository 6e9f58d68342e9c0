"""What a calibration finds in sessions that were made up under known weights, and what it refuses."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxctl.tokens.calibrate import errors as held_out
from ctxctl.tokens.calibrate.calibration import (
    LEAST_STEPS,
    Calibration,
    Fit,
    RefusedModel,
    calibrate,
    decode,
    fitted,
)
from ctxctl.tokens.calibrate.errors import distinct_segments, quantile, reason, summed
from ctxctl.tokens.calibrate.expect import model_weights
from ctxctl.tokens.calibrate.features import BOUNDS, CLASSES, NOTHING, WIDTH, vector_sum, weighed_tokens
from ctxctl.tokens.calibrate.fit import fit, levels, median, overall
from ctxctl.tokens.calibrate.points import BlindRequest, Lane, Point, Row, family, plausible, rows_of
from ctxctl.tokens.calibrate.shipped import shipped_calibration

MODEL = "claude-imagined-9"
TRUE = (1.3, 1.1, 1.15, 1.05, 1.6, 1.2, 12.0, 5.0, 45.0, 20.0, 9.0, 3.0)
BEYOND = 21_000


def lane(
    seed: int, steps: int, *, noise: float = 0.0, beyond: int = BEYOND, weights: Sequence[float] = TRUE
) -> Lane:
    """A thread whose bills are what the weights make of its content, and a constant."""
    dice = random.Random(seed)
    sizes, points = NOTHING, []
    for _ in range(steps):
        came = [0] * WIDTH
        for at in range(len(CLASSES)):
            if dice.random() < 0.8:
                came[at], came[at + len(CLASSES)] = dice.randrange(5, 3000), dice.randrange(1, 4)
        sizes = vector_sum(sizes, tuple(came))
        billed = beyond + weighed_tokens(weights, sizes)
        points.append(Point(1, round(billed * (1 + dice.uniform(-noise, noise))), sizes))
    return Lane(MODEL, tuple(points))


def close(found: Sequence[float], slope: float = 0.02, item: float = 4.0) -> bool:
    return all(
        abs(a - b) <= (slope if n < len(CLASSES) else item)
        for n, (a, b) in enumerate(zip(found, TRUE, strict=True))
    )


def test_known_weights_and_a_known_constant_are_recovered() -> None:
    found = fitted(MODEL, [[lane(seed, 40)] for seed in range(4)], "o200k_base")
    assert isinstance(found, Fit)
    assert close(found.weights)
    assert abs(found.beyond.p50 - BEYOND) < 150
    assert found.next_size.p95 < 0.0005
    assert found.next_size.steps == 4 * 39
    assert found.by == "sessions"
    assert found.alternate is not None
    assert found.alternate.p95 < 0.002


def test_a_tenth_of_wrong_bills_does_not_bend_the_weights() -> None:
    dice = random.Random(7)
    sessions = []
    for seed in range(4):
        points = [
            p._replace(reported=p.reported * dice.choice([3, 5, 9])) if dice.random() < 0.1 else p
            for p in lane(seed, 60).points
        ]
        sessions.append([Lane(MODEL, tuple(points))])
    rows = [row for session in sessions for one in session for row in rows_of(one.points)]
    assert close(fit(rows), slope=0.03, item=6.0)


def test_what_was_never_seen_gets_the_slope_of_the_rest() -> None:
    rows = []
    for n in range(1, 40):
        moved = [0] * WIDTH
        moved[2], moved[2 + len(CLASSES)] = 500 * n, 1
        rows.append(Row(100_000 + 700 * n, round(1.4 * 500 * n) + 8, tuple(moved)))
    weights = fit(rows)
    assert abs(weights[2] - 1.4) < 0.01
    assert abs(weights[5] - 1.4) < 0.01, "tool definitions never changed"
    assert overall(rows) == pytest.approx(1.4, abs=0.01)
    assert fit([]) == tuple(BOUNDS[n].usual if n >= len(CLASSES) else BOUNDS[0].usual for n in range(WIDTH))


def test_what_was_hardly_seen_is_drawn_to_the_weights_of_relatives() -> None:
    near = tuple(1.1 if n < len(CLASSES) else 10.0 for n in range(WIDTH))
    rows = [row for seed in range(4) for row in rows_of(lane(seed, 40, noise=0.0005).points)]
    much = fit(rows, near)
    assert close(much, slope=0.06, item=25.0), "what is seen often tells for itself"
    text = [0] * WIDTH
    text[0] = 300
    results = [
        Row(90_000 + n, round(1.3 * 900 * n), tuple(900 * n if c == 2 else 0 for c in range(WIDTH)))
        for n in (1, 2, 3)
    ]
    odd = [Row(90_000, 300 + 240, tuple(text))]
    assert fit(odd + results)[0] > 1.5
    assert fit(odd + results, near)[0] == pytest.approx(1.1, abs=0.06)
    assert fit(odd + results, near)[5] == 1.1


def test_what_nobody_can_count_costs_what_was_billed_beyond_the_rest() -> None:
    """Images of 1,500 tokens each that came with text; where some left, nobody knows which."""
    sessions = []
    for seed in range(4):
        one = lane(seed, 40)
        came = tuple(a - b for a, b in zip(one.points[1].sizes, one.points[0].sizes, strict=True))
        text = weighed_tokens(TRUE, came)
        blinds = [BlindRequest(Row(90_000, round(text + 1500 * n), came), n) for n in (1, 2, 5)]
        blinds.append(BlindRequest(Row(90_000, round(text), came), -1))
        sessions.append([one._replace(blinds=tuple(blinds))])
    found = fitted(MODEL, sessions, "o200k_base")
    assert isinstance(found, Fit)
    assert found.blind_item == pytest.approx(1500, abs=20)
    assert found.blinds == 4 * 3


def test_the_order_of_sessions_and_rows_is_all_one() -> None:
    sessions = [[lane(seed, 30, noise=0.002)] for seed in range(5)]
    forth = calibrate(sessions, "o200k_base").calibration
    back = calibrate(list(reversed(sessions)), "o200k_base").calibration
    assert forth.encode() == back.encode()
    assert forth.digest == back.digest != ""
    rows = [row for session in sessions for one in session for row in rows_of(one.points)]
    mixed = random.Random(1).sample(rows, len(rows))
    assert fit(rows) == fit(mixed)


def test_a_session_given_twice_counts_once() -> None:
    sessions = [[lane(seed, 30)] for seed in range(4)]
    once, twice = (fitted(MODEL, s, "o200k_base") for s in (sessions, [*sessions, *sessions]))
    assert isinstance(once, Fit)
    assert isinstance(twice, Fit)
    assert once.steps == twice.steps
    assert once.weights == twice.weights
    assert len(distinct_segments([*sessions, *sessions])) == 4


def test_nothing_is_fitted_for_a_public_tokenizer() -> None:
    sessions = [[lane(seed, 40)._replace(model="gpt-4o")] for seed in range(4)]
    outcome = calibrate(sessions, "o200k_base")
    assert outcome.calibration.fits == ()
    assert outcome.calibration.digest == ""
    assert "public" in outcome.refused[0].why
    # Nor does a calibration that claims to know it get used.
    claims = calibrate([[one._replace(model=MODEL)] for (one,) in sessions], "o200k_base").calibration
    (known,) = claims.fits
    forged = Calibration(
        (Fit(**{**{f: getattr(known, f) for f in Fit.__struct_fields__}, "model": "gpt-4o"}),)
    )
    assert forged.of("gpt-4o", "o200k_base") is None
    how = model_weights(forged, "gpt-4o", "o200k_base")
    assert (how.method, set(how.slopes)) == ("exact:o200k_base", {1.0})


def test_too_few_steps_are_refused_with_the_number() -> None:
    found = fitted(MODEL, [[lane(1, LEAST_STEPS)]], "o200k_base")
    assert isinstance(found, RefusedModel)
    assert f"too few steps to fit and to test: {LEAST_STEPS - 1}" in found.why
    assert isinstance(fitted(MODEL, [[lane(1, LEAST_STEPS + 1)]], "o200k_base"), Fit)


def test_an_error_that_is_not_bounded_is_refused_and_told() -> None:
    found = fitted(MODEL, [[lane(seed, 30, noise=0.12)] for seed in range(4)], "o200k_base")
    assert isinstance(found, RefusedModel)
    assert "does not explain" in found.why
    assert found.next_size is not None
    assert found.next_size.p95 > 0.05


def test_a_slope_at_its_bound_is_refused() -> None:
    steep = (4.0,) * len(CLASSES) + TRUE[len(CLASSES) :]
    found = fitted(
        MODEL, [[lane(seed, 40, beyond=900_000, weights=steep)] for seed in range(4)], "o200k_base"
    )
    assert isinstance(found, RefusedModel)
    assert "runs into its bound" in found.why


def test_bills_below_what_is_recorded_are_left_out_and_counted() -> None:
    sound = [[lane(seed, 40)] for seed in range(4)]
    less = [
        [
            lane(9, 30, beyond=-60_000)._replace(
                points=tuple(
                    p._replace(reported=max(1000, p.reported)) for p in lane(9, 30, beyond=-60_000).points
                )
            )
        ]
    ]
    found = fitted(MODEL, sound + less, "o200k_base")
    assert isinstance(found, Fit)
    assert found.contradicted == 30
    assert found.sessions == 4
    assert close(found.weights)


def test_a_jump_that_nothing_explains_begins_another_level() -> None:
    points = list(lane(3, 30).points)
    points = points[:15] + [p._replace(reported=p.reported + 30_000) for p in points[15:]]
    found = levels(TRUE, points)
    assert [start for start, _ in found] == [0, 15]
    assert found[0][1].beyond == pytest.approx(BEYOND, abs=200)
    assert found[1][1].beyond == pytest.approx(BEYOND + 30_000, abs=200)
    assert found[1][1].of(TRUE, points[20].sizes) == pytest.approx(points[20].reported, rel=0.001)


def test_what_is_tested_was_not_fitted() -> None:
    """Sessions under two sets of weights: whichever is left out is predicted by the others' weights."""
    other = (*(0.8,) * len(CLASSES), *TRUE[len(CLASSES) :])
    sessions = [[lane(seed, 30)] for seed in range(4)] + [[lane(50, 30, weights=other)]]
    found = held_out.predict_by_methods(distinct_segments(sessions))
    assert found.by == "sessions"
    assert len(found.next_size) == 5 * 29
    errors = sorted(miss.error for miss in found.next_size)
    assert sum(error > 0.005 for error in errors) >= 15, "the fifth session is not predicted well"
    assert quantile(errors, 0.3) < 0.002


@pytest.mark.parametrize(
    ("threads", "steps", "by", "tested"),
    [
        (4, 30, "threads", 4 * 29),
        (2, 30, "stretches", 2 * 29),
        (1, 30, "stretches", 29),
        (1, 4, "stretches", 3),
    ],
)
def test_one_session_is_tested_by_leaving_out_threads_or_else_stretches(
    threads: int, steps: int, by: str, tested: int
) -> None:
    """Each step but the first of a thread is predicted once, by weights of the others."""
    session = [lane(seed, steps) for seed in range(threads)]
    found = held_out.predict_by_methods(distinct_segments([session]))
    assert (found.by, len(found.next_size)) == (by, tested)
    expected = [move for one in session for move in moves(one.points, [(n - 1, n) for n in range(1, steps)])]
    assert sorted((miss.reported, miss.change, miss.moved) for miss in found.next_size) == sorted(expected)


def moves(
    points: Sequence[Point], pairs: Sequence[tuple[int, int]]
) -> list[tuple[int, int, tuple[int, ...]]]:
    """What was billed, and changed, and came, from one point to another (indexes)."""
    return [
        (
            points[to].reported,
            points[to].reported - points[at].reported,
            tuple(b - a for a, b in zip(points[at].sizes, points[to].sizes, strict=True)),
        )
        for at, to in pairs
    ]


def test_each_method_predicts_the_steps_that_it_says() -> None:
    """Of ten steps: each from the first, every other one from the one before, and the second half."""
    lanes = [lane(seed, 10) for seed in range(4)]
    found = held_out.predict_by_methods(distinct_segments([[one] for one in lanes]))
    for misses, pairs in (
        (found.next_size, [(n - 1, n) for n in range(1, 10)]),
        (found.first, [(0, n) for n in range(1, 10)]),
        (found.alternate, [(n - 1, n) for n in range(1, 10, 2)]),
        (found.halves, [(n - 1, n) for n in range(5, 10)]),
    ):
        predicted = sorted((miss.reported, miss.change, miss.moved) for miss in misses)
        assert predicted == sorted(move for one in lanes for move in moves(one.points, pairs))


def test_a_step_is_predicted_from_the_last_level_that_began_before_it() -> None:
    """The bills jump at the 16th of 30: of every other one, none is predicted from the wrong side."""
    whole = lane(7, 30).points
    jumped = tuple(p._replace(reported=p.reported + 40_000) if n >= 16 else p for n, p in enumerate(whole))
    found = held_out.predict_by_methods(
        distinct_segments([[Lane(MODEL, jumped)], *([lane(seed, 30)] for seed in range(3))])
    )
    assert max(miss.error for miss in found.alternate) < 0.01
    off = [miss for miss in found.halves if miss.error > 0.1]
    assert {miss.reported for miss in off} == {point.reported for point in jumped[16:]}


def test_a_miss_is_told_by_its_numbers() -> None:
    (start, *_), later = lane(1, 2).points, lane(1, 2).points[1]
    sessions = [[lane(seed, 30)] for seed in range(4)]
    worst = max(held_out.predict_by_methods(distinct_segments(sessions)).next_size)
    assert "billed" in reason(worst)
    assert start.reported < later.reported
    assert summed([]) is None


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(
            st.one_of(st.integers(-5, 5), st.integers(-(10**12), 10**12), st.just(0)),
            st.lists(st.integers(-(10**7), 10**7), min_size=WIDTH, max_size=WIDTH),
        ),
        max_size=40,
    ),
    st.randoms(use_true_random=False),
)
def test_weights_stay_within_their_bounds_whatever_was_billed(
    bills: list[tuple[int, list[int]]], dice: random.Random
) -> None:
    points, sizes = [], NOTHING
    for reported, came in bills:
        sizes = vector_sum(sizes, tuple(came))
        points.append(Point(dice.randrange(2), max(1, abs(reported)), sizes))
    weights = fit(rows_of(points))
    assert all(math.isfinite(w) for w in weights)
    assert all(bound.low <= w <= bound.high for w, bound in zip(weights, BOUNDS, strict=True))
    found = fitted(MODEL, [[Lane(MODEL, tuple(points))]], "o200k_base")
    assert isinstance(found, Fit | RefusedModel)
    assert found == fitted(MODEL, [[Lane(MODEL, tuple(points))]], "o200k_base")


@pytest.mark.parametrize("bill", [0, -1, None, math.nan, math.inf, "12000", 10**12, True, 12.5, 399])
def test_what_is_no_size_is_not_fitted_to(bill: object) -> None:
    assert not plausible(bill, 1000)


def test_a_bill_above_a_share_of_what_was_counted_may_be_one() -> None:
    assert plausible(400, 1000)
    assert plausible(1, 0)


@pytest.mark.parametrize(
    ("name", "same"),
    [
        ("claude-opus-4-5-20251101", "claude-opus-4-5"),
        ("anthropic/claude-opus-4-5", "claude-opus-4-5"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("claude-opus-4-6[1m]", "claude-opus-4-6"),
        ("anthropic/claude-3-haiku-20240307⚡", "claude-3-haiku"),
        ("publishers/google/models/gemini-2.5-flash", "gemini-2.5-flash"),
        ("Claude-Opus-4-5@20251101", "claude-opus-4-5"),
    ],
)
def test_one_tokenizer_has_one_name(name: str, same: str) -> None:
    assert family(name) == same


def test_a_calibration_is_read_back_as_it_was() -> None:
    made = calibrate([[lane(seed, 30)] for seed in range(3)], "o200k_base").calibration
    again = decode(made.encode())
    assert again == made
    assert again.digest == made.digest
    assert again.of(f"anthropic/{MODEL}-20260101", "o200k_harmony") == made.fits[0]
    assert again.of(MODEL, "cl100k_base") is None
    assert again.of(None, "o200k_base") is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"version":1', b'"version":2'),
        (b'"weights":[1.', b'"weights":[9.'),
        (b'"weights":[', b'"weights":[1.1,'),
        (b'"encoding":"o200k_base"', b'"encoding":"abc"'),
        (
            b"{",
            b"[",
        ),
    ],
)
def test_what_is_no_calibration_is_not_taken_for_one(old: bytes, new: bytes) -> None:
    raw = calibrate([[lane(seed, 30)] for seed in range(3)], "o200k_base").calibration.encode()
    assert old in raw
    with pytest.raises(ValueError):  # noqa: PT011 - each says something else
        decode(raw.replace(old, new, 1))


def test_the_median_is_the_usual_one() -> None:
    assert median([3, 1, 2]) == 2
    assert median([4, 1, 2, 3]) == 2.5


def test_a_hostile_name_of_a_model_is_cut_short() -> None:
    assert len(family("a" + "-v1:1" * 100_000 + "!")) <= 80
    assert family("/" * 500) == "/" * 80
    assert family("⚡") == "⚡"


def test_copilots_name_of_a_claude_model_has_that_models_fit() -> None:
    shipped = shipped_calibration()
    own = shipped.of("claude-opus-4-6", "o200k_base")
    assert own is not None
    assert shipped.of("claude-opus-4.6", "o200k_base") == own
    assert "sessions of claude-opus-4-6" in model_weights(shipped, "claude-opus-4.6", "o200k_base").how
