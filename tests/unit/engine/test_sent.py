"""A step's size by hand: the bill, what is expected from the last one, or what is recorded; its limits."""

from __future__ import annotations

from typing import Any

from ctxctl.engine.replay.frames import delta_of
from ctxctl.engine.replay.rules import CataloguedModel
from ctxctl.engine.sizes.limits import _catalogued
from ctxctl.engine.sizes.scales import RAW, Scale, Uncalibrated
from ctxctl.engine.sizes.sent import NEW, ObservedStep, SentMemory, SentSize, moved_by, sent_size
from ctxctl.model.whatif import Limits
from ctxctl.tokens.calibrate.features import NOTHING, Vector
from tests.oracle.scales import Known, Restless
from tests.unit.engine.making import placement

SEEN = ObservedStep("m", 100, NOTHING, 0, False, None, False, 100)


def tokens(moved: int) -> Vector:
    return (moved, *NOTHING[1:])


def after_a_bill(scales: Any) -> SentMemory:
    running, size = sent_size(NEW, SEEN._replace(reported=150), scales)
    assert size == SentSize(150, "reported", None, 50, None)
    return running


def test_without_a_bill_it_is_what_is_recorded() -> None:
    assert sent_size(NEW, SEEN, Restless())[1] == SentSize(100, "recorded", None, None, None)
    running = after_a_bill(Uncalibrated())
    assert sent_size(running, SEEN, Uncalibrated())[1] == SentSize(100, "recorded", None, None, None), (
        "nobody expects"
    )
    assert sent_size(running, SEEN._replace(altered=True, frame=70), Uncalibrated())[1].used == 70, (
        "nor of a what-if"
    )


def test_what_is_expected_is_kept_up_until_the_next_bill() -> None:
    running = after_a_bill(Restless())
    running, size = sent_size(running, SEEN._replace(recorded=130, frame=130, moved=tokens(30)), Restless())
    assert size == SentSize(180, "expected", 1, 50, 180)
    seen = SEEN._replace(recorded=110, frame=110, moved=tokens(-20))
    running, size = sent_size(running, seen, Restless())
    assert size == SentSize(160, "expected", 3, 50, 160)
    running, size = sent_size(running, seen._replace(moved=NOTHING, reported=165), Restless())
    assert size == SentSize(165, "reported", None, 55, 160, 4)
    assert running == ((165, "m", 55), (1, 165, "m", 0, 0, False, 0), 0, 165)


def test_who_cannot_tell_the_error_says_none() -> None:
    running = after_a_bill(Restless())
    assert sent_size(running, SEEN._replace(uncounted=1), Restless())[1].error is None
    assert sent_size(running, SEEN._replace(broken=True), Restless())[1].error is None
    assert sent_size(running, SEEN._replace(model="other"), Restless())[1].error is None
    other, _ = sent_size(running, SEEN._replace(model="other", reported=90), Restless())
    assert isinstance(other.thread, Known)
    assert other.thread.bills == 0, "what one model's bills teach is not another's"


def test_a_what_if_has_beside_its_content_what_was_sent_beside_the_recorded() -> None:
    seen = SEEN._replace(altered=True, frame=70, reported=150)
    assert sent_size(NEW, seen, Uncalibrated())[1] == SentSize(120, "expected", None, 50, None)
    assert sent_size(NEW, seen._replace(reported=60, frame=10), Uncalibrated())[1].used == 0, (
        "less than nothing is nothing"
    )


def test_what_moved_is_what_is_recorded_of_it() -> None:
    old, new = placement("a", 1, tokens=5), placement("b", 2, tokens=7)
    assert moved_by(delta_of([old], [new, new])) == (9, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0)


def test_a_scale() -> None:
    scale = Scale({"tool_result": 2.0}, 1.5, "calibrated")
    assert scale.of("tool_result", 10, True) == (20, "calibrated")
    assert scale.of("user_message", 10, False) == (15, "estimated")
    assert RAW.of("tool_result", 10, True) == (10, "counted")
    assert (scale.counted("tool_result", 9), RAW.counted("x", 9)) == (4, 9)


def test_a_model_table_is_believed_until_a_bill_is_larger() -> None:
    table = CataloguedModel(Limits(200, None, None), "of a table", 32)
    reserve = Limits(None, 20, None)
    held = _catalogued(table, reserve, 180)
    assert (held.limits, held.source, held.note, held.max_output) == (
        Limits(200, 20, None), "catalogue", "of a table", 32,
    )  # fmt: skip
    outgrown = _catalogued(table, reserve, 181)
    assert (outgrown.limits.cap, outgrown.source) == (None, None)
    assert outgrown.note is not None
    assert "181 tokens were billed" in outgrown.note
    assert _catalogued(table._replace(own=True), reserve, 181).limits.cap == 180, "the user's word stands"
