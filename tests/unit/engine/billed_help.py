"""Traces whose bills are larger than what they hold, and a model table for them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ctxctl.engine.replay.rules import CataloguedModel, ReplayRules, ThresholdRule
from ctxctl.engine.sizes.scales import EnteredSize, Expectation, Uncalibrated
from ctxctl.model.whatif import Limits
from ctxctl.session import Inspector
from tests.oracle import build
from tests.oracle.build import Event, assembly, at, inject, item, usage

NOTE = "models.dev as of 2026-07-02: listed by the maker."


def catalogue(patch: pytest.MonkeyPatch, window: int | None, note: str = NOTE) -> None:
    """Let the model table say this window of every model."""
    rules = Inspector.rules

    def listed(*_: str | None) -> CataloguedModel:
        return CataloguedModel(Limits(window), note)

    def made(self: Inspector, *, skipped: bool = False) -> ReplayRules:
        return replace(rules(self, skipped=skipped), catalogue=listed)

    patch.setattr(Inspector, "rules", made)


def compacting(patch: pytest.MonkeyPatch, tokens: int) -> None:
    """Let the client compact by itself at this size."""
    rules = Inspector.rules

    def made(self: Inspector, *, skipped: bool = False) -> ReplayRules:
        return replace(
            rules(self, skipped=skipped), compacts_at=lambda *_: ThresholdRule(tokens, "Client 1: a rule.")
        )

    patch.setattr(Inspector, "rules", made)


class Steady(Uncalibrated):
    """Counts are the model's own tokens, and as much is sent beside them as with the last bill."""

    def enter(self, thread: object, entered: EnteredSize) -> object:
        """As it was."""
        return thread

    def expect(self, thread: object, model: str | None, recorded: int) -> Expectation | None:
        """To the token, and within seven."""
        return Expectation(recorded + thread, 7) if isinstance(thread, int) else None

    def billed(self, thread: object, model: str | None, size: int, recorded: int) -> object:
        """What was sent beside the content."""
        return size - recorded


def expecting(patch: pytest.MonkeyPatch) -> None:
    """Let sizes that were not billed be expected from the last bill."""
    rules = Inspector.rules

    def made(self: Inspector, *, skipped: bool = False) -> ReplayRules:
        return replace(rules(self, skipped=skipped), scales=Steady())

    patch.setattr(Inspector, "rules", made)


def three_steps() -> list[Event]:
    """5 of 105 billed tokens are recorded, then 13 of 115; the third step (17 recorded) is not billed."""
    return [
        *at("t1", "s1", item("A", build.ABC), assembly("asm1", ["A"]), inject("asm1"), usage(105)),
        *at("t2", "s2", item("B", build.WALK), assembly("asm2", ["A", "B"]), inject("asm2"), usage(115)),
        *at("t3", "s3", item("C", build.RED), assembly("asm3", ["A", "B", "C"]), inject("asm3")),
    ]
