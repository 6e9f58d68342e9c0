"""The rules of context-simple against what its original code made of 3,000 random histories.

The digests were written by the original code (`tests/frameworks/test_amplifier_simple.py` runs it again, and
says what has to be done where it is another one).
"""

from __future__ import annotations

from tests.unit.policies.simple_inputs import DIGESTS, INPUTS, made, ours


def test_what_the_original_code_made_of_random_histories() -> None:
    lines = DIGESTS.read_text(encoding="utf-8").splitlines()
    recorded = [line for line in lines if not line.startswith("#")]
    assert len(recorded) == INPUTS
    views = [ours(made(seed)) for seed in range(INPUTS)]
    other = [seed for seed, view in enumerate(views) if view.digest != recorded[seed]]
    assert not other
    levels = {view.told["strategy_level"] for view in views if view.told is not None}
    assert levels == set(range(1, 9))
    assert any(view.told is None for view in views)
