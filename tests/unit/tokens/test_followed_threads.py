"""A thread's bills, foretold one after the other, as the engine does it."""

from __future__ import annotations

import random

import pytest

from ctxctl.tokens.calibrate import expect
from ctxctl.tokens.calibrate.expect import ModelWeights, model_weights
from ctxctl.tokens.calibrate.features import CLASSES
from ctxctl.tokens.calibrate.following import NOTHING, SWITCHED, ThreadExpectation, expected_request
from ctxctl.tokens.calibrate.shipped import shipped_calibration

RESULT = CLASSES.index("tool_result")
OPUS, NEWER = "claude-opus-4-5", "claude-opus-4-8"


def of(model: str) -> ModelWeights:
    return model_weights(shipped_calibration(), model, "o200k_base")


def results(tokens: int) -> tuple[int, ...]:
    return tuple(tokens if n == RESULT else 0 for n in range(len(CLASSES)))


def test_nothing_is_foretold_before_the_first_bill() -> None:
    thread = ThreadExpectation().entered(results(5000), NOTHING)
    assert expected_request(thread, OPUS, of(OPUS), 5000) is None
    thread = thread.billed(OPUS, of(OPUS), 30_000, 5000).entered(results(400), NOTHING)
    told = expected_request(thread, OPUS, of(OPUS), 5400)
    assert told is not None
    assert told.size == 30_400


@pytest.mark.parametrize(
    ("model", "encoding", "tools", "size", "half"),
    [
        ("gpt-4o", "o200k_base", 0, 107, 10),
        ("gpt-4o", "o200k_base", 1, 119, 70),
        ("gpt-4", "cl100k_base", 1, 123, 10),
        ("o3", "o200k_base", 0, 107, 140),
        ("gpt-5.5", "o200k_base", 1, 119, 200),
    ],
)
def test_a_whole_request_to_a_public_tokenizer_is_foretold_by_rule(
    model: str, encoding: str, tools: int, size: int, half: int
) -> None:
    """A hundred tokens of text in one message: 4 around it, 3 of the answer, and what tools add."""
    how = model_weights(shipped_calibration(), model, encoding)
    moved = tuple(100 if name == "text" else 0 for name in CLASSES)
    items = tuple({"text": 1, "tool_definition": tools}.get(name, 0) for name in CLASSES)
    thread = ThreadExpectation()
    assert expected_request(thread.entered(moved, items, whole=True), model, how, 100) == (size, half)
    assert expected_request(thread.entered(moved, items), model, how, 100) is None, "some of it is unseen"
    unread = thread.entered(moved, items, whole=True, blind=1)
    assert expected_request(unread, model, how, 100) is None, "a part of any size"


def test_requests_without_a_bill_add_up_and_make_it_less_sure() -> None:
    thread = ThreadExpectation().entered(results(5000), NOTHING).billed(OPUS, of(OPUS), 30_000, 5000)
    once = thread.entered(results(300), results(1))
    twice = once.entered(results(200), results(1))
    assert (twice.moved[RESULT], twice.items[RESULT], twice.requests) == (500, 2, 2)
    first, second = (expected_request(t, OPUS, of(OPUS), 5500) for t in (once, twice))
    assert first is not None
    assert second is not None
    assert second.size == 30_500 + round(2 * of(OPUS).per_item[RESULT])
    assert second.half > first.half
    billed = twice.billed(OPUS, of(OPUS), 30_580, 5500)
    assert (billed.moved, billed.items, billed.requests) == (NOTHING, NOTHING, 0)
    assert thread.requests == 0, "a value: what came later changes nothing of it"


def test_a_newer_models_tokens_are_more_and_the_other_way_round() -> None:
    thread = ThreadExpectation().entered(results(5000), NOTHING).billed(OPUS, of(OPUS), 30_000, 5000)
    thread = thread.entered(results(0), NOTHING)
    told = expected_request(thread, NEWER, of(NEWER), 5000)
    assert told is not None
    ratio = of(NEWER).slopes[RESULT] / of(OPUS).slopes[RESULT]
    assert 1.2 < ratio < 1.5
    assert told.size == pytest.approx(30_000 * ratio, rel=0.01)
    assert told.half == round(SWITCHED * told.size)
    there = thread.billed(NEWER, of(NEWER), 39_000, 5000)
    learned = there.of(NEWER)
    assert learned is not None
    assert (learned.bills, learned.informative) == (1, 0), "a change of model says nothing of the scale"
    assert there.of(OPUS) == thread.of(OPUS)
    back = expected_request(there.entered(NOTHING, NOTHING), OPUS, of(OPUS), 5000)
    assert back is not None
    assert back.size == pytest.approx(39_000 / ratio, rel=0.01)


def test_models_of_a_thread_are_forgotten_but_for_the_last() -> None:
    thread = ThreadExpectation()
    for n in range(30):
        thread = thread.entered(NOTHING, NOTHING).billed(f"claude-opus-4-{n}", of(OPUS), 1000, 10)
    assert len(thread.learned) == 8
    assert thread.of("claude-opus-4-29") is not None
    assert thread.of("claude-opus-4-3") is None


@pytest.mark.parametrize("model", [OPUS, "claude-opus-5", "kimi-k3", "gpt-5.5"])
def test_nine_of_ten_bills_of_a_noisy_thread_are_within_the_error(model: str) -> None:
    """Each thread has a noise of its own; what it stated before its bill is held against that."""
    dice = random.Random(11)
    how, within, late = of(model), [], []
    for noise in (0.01, 0.05, 0.3, 2.0):
        thread, size, recorded = ThreadExpectation().entered(NOTHING, NOTHING), 40_000, 0
        thread = thread.billed(model, how, size, recorded)
        for n in range(120):
            tokens = round(dice.randrange(100, 3000) * expect.slopes(how, thread.of(model))[RESULT])
            recorded += tokens
            thread = thread.entered(results(tokens), NOTHING)
            told = expected_request(thread, model, how, recorded)
            assert told is not None
            size = max(1, size + round(tokens + dice.gauss(0, 1) * noise * 1500))
            within.append(abs(told.size - size) <= told.half)
            if n >= 60:
                late.append(within[-1])
            thread = thread.billed(model, how, size, recorded)
    assert sum(within) / len(within) >= 0.85
    assert 0.85 <= sum(late) / len(late) <= 1.0


def test_it_is_the_same_from_any_step_on() -> None:
    how = of(OPUS)
    states = [ThreadExpectation()]
    for n in range(40):
        after = states[-1].entered(results(100 * n), results(1), blind=n % 3 == 0, broken=n % 11 == 10)
        states.append(after.billed(OPUS, how, 20_000 + 120 * n * n, 50 * n * n) if n % 4 else after)
    thread = states[20]
    for n in range(20, 40):
        after = thread.entered(results(100 * n), results(1), blind=n % 3 == 0, broken=n % 11 == 10)
        thread = after.billed(OPUS, how, 20_000 + 120 * n * n, 50 * n * n) if n % 4 else after
    assert thread == states[40]
