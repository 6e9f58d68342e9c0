"""``ctxctl calibrate DIR``: what all sessions of a directory tell of their models' tokenizers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from ctxctl.cli.fleet import in_order
from ctxctl.cli.output import note
from ctxctl.fleet.asking import Failed, Question
from ctxctl.fleet.captures import lasting
from ctxctl.fleet.packing import packed
from ctxctl.session import Inspector
from ctxctl.session.calibration import sessions_of
from ctxctl.text import visible
from ctxctl.tokens.calibrate.points import Lane
from ctxctl.typed_decoding import from_msgpack

if TYPE_CHECKING:
    from ctxctl.cli.fleet import Fleet

_WORK: Final = "ctxctl.cli.fleet_calibrate:work"


class _Words(msgspec.Struct, frozen=True, array_like=True):
    encoding: str
    models: dict[str, dict[str, Any]]


class _Answer(msgspec.Struct, frozen=True, array_like=True):
    lanes: list[list[Lane]]
    damaged: bool


def gather_fleet(
    fleet: Fleet, encoding: str, models: dict[str, dict[str, Any]]
) -> tuple[list[list[Lane]], bool]:
    """What each session tells, in the order of the captures' names, and whether anything was wrong with one.

    A capture that cannot be read is passed over, and told.
    """
    words = msgspec.msgpack.encode(_Words(encoding, models))
    found: list[list[Lane]] = []
    damaged = False
    for name, data in in_order(fleet, Question(_WORK, words, fleet.rests_on)):
        if isinstance(data, Failed):
            note(f"ctxctl: passed over: {visible(name)}: {visible(data.message)}")
            continue
        answer = from_msgpack(data, _Answer)
        found += answer.lanes
        damaged = damaged or answer.damaged
    return found, damaged


def work(path: str, format_name: str, words: bytes, _more: bytes) -> tuple[bytes, bool]:
    """What one capture tells, as an encoded `_Answer`."""
    asked = from_msgpack(words, _Words)
    with Inspector.open(
        path, encoding=asked.encoding, format=format_name, own_models=asked.models
    ) as inspector:
        answer = _Answer(sessions_of(inspector.replay()), bool(inspector.finding_count))
        problems = inspector.problems
    return packed(answer), lasting(format_name, None, problems)
