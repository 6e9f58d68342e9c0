"""An item's life: what happened to it at each step, with runs of "nothing new" in one line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from ctxctl.item_names import NAMELESS, ItemNames
from ctxctl.model.addresses import prefix
from ctxctl.model.outline import Life
from ctxctl.report.changes import short_version
from ctxctl.report.paint import Paint
from ctxctl.report.tables import Column, table
from ctxctl.text import clip, visible
from ctxctl.wording import SIGNS, UNCHANGED, number

_COLUMNS = (
    Column("status"),
    Column("at"),
    Column("version", least=8),
    Column("tokens", right=True),
    Column("cause", least=12),
)


class Span(msgspec.Struct, frozen=True):
    """One event of a life, or a run of steps in which nothing about the item changed."""

    first: Life
    last: Life


def life_spans(lives: Sequence[Life]) -> list[Span]:
    """Runs of `skipped` entries of one thread with one version are one span; all others stand alone."""
    found: list[Span] = []
    open_at: dict[tuple[str | None, str], int] = {}
    for life in lives:
        thread = (life.session, life.thread)
        at = open_at.get(thread)
        if at is not None and _continues(found[at].last, life):
            found[at] = Span(found[at].first, life)
        else:
            open_at[thread] = len(found)
            found.append(Span(life, life))
    return found


def _continues(last: Life, life: Life) -> bool:
    if last.status != "skipped" or life.status != "skipped":
        return False
    return last.version == life.version and last.mode == life.mode


def life_lines(
    item: str, lives: Sequence[Life], width: int, paint: Paint, name: str = "", names: ItemNames = NAMELESS,
    titles: Mapping[str, str | None] = MappingProxyType({}),
) -> Iterator[str]:  # fmt: skip
    """The table of an item's life, under its name where it is known, and its id.

    `names` and `titles` call the summaries that it went into.
    """
    found = life_spans(lives)
    place = _Places(lives)
    body = [
        (
            f"{SIGNS.get(span.first.status, ' ')} {visible(span.first.status)}",
            place.text(span),
            short_version(span.last.version),
            number(span.last.tokens),
            _why(span.first, names, titles),
        )
        for span in found
    ]
    if name and name != visible(item):
        yield paint("head", clip(name, width))
        yield paint("dim", visible(item))
    else:
        yield paint("head", visible(item))
    if not body:
        return
    table_ = table(_COLUMNS, body, width - 2)
    for line in table_.head:
        yield "  " + paint("dim", line)
    for span, (line, *rest) in zip(found, table_.rows, strict=True):
        end = len(span.first.status) + 2
        role = span.first.status if span.first.status in SIGNS else "dim"
        yield "  " + paint(role, line[:end]) + line[end:]
        yield from ("  " + more for more in rest)


class _Places:
    """How steps are named: turns alone where no turn of this life has a second step."""

    def __init__(self, lives: Sequence[Life]) -> None:
        self._steps = any(life.step != 1 for life in lives)
        self._sessions = len({life.session for life in lives}) > 1

    def text(self, span: Span) -> str:
        first, last = span.first, span.last
        name = self._number(first)
        if last is not first:
            name += f"\u2013{self._number(last)}"
        return f"{visible(prefix(first.thread, first.session if self._sessions else None))}{name}"

    def _number(self, life: Life) -> str:
        return f"{life.turn}.{life.step}" if self._steps else str(life.turn)


def _why(life: Life, names: ItemNames, titles: Mapping[str, str | None]) -> str:
    if life.status == "skipped":
        return UNCHANGED[life.mode]
    parts = [visible(life.cause)] if life.cause else []
    if life.reason:
        parts.append(f"({visible(life.reason)})")
    if life.into:
        parts.append(f"into {names.of_ref(life.into, titles)}")
    return " ".join(parts)


def to_json(item: str, span: Span) -> dict[str, Any]:
    """One `life` line; `until` is the last step of a run, else null."""
    first, last = span.first, span.last
    return {
        "type": "life",
        "item": item,
        "status": first.status,
        "session": first.session,
        "thread": first.thread,
        "turn": first.turn,
        "step": first.step,
        "until": None if last is first else {"turn": last.turn, "step": last.step},
        "version": last.version,
        "tokens": last.tokens,
        "cause": first.cause,
        "reason": first.reason,
        "into": first.into,
    }
