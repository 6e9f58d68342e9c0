"""How old the packaged catalogue is, and what it is made of.

An answer never depends on the day it is asked on, but for this one line: the age of what it rests on.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from typing import Any

from ctxctl.report.tables import labelled
from ctxctl.tokens.catalogue.table import load_table


def catalogue_date(today: date | None = None) -> str:
    """The day of the catalogue, and how long ago that was; `catalogue_sources` says of what it is made.

    Args:
        today: Default: the clock's day, or that of `SOURCE_DATE_EPOCH` (seconds since 1970) where it is set.
    """
    return dated(load_table().date, today)


def dated(day: str, today: date | None = None) -> str:
    """A day (YYYY-MM-DD), and how long ago that was; `today` as in `catalogue_date`."""
    return f"of {day}, {age(day, today or _today())}"


def catalogue_line(width: int, day: str | None = None) -> Iterator[str]:
    """The line of a header that says how old the catalogue is; `day`: its date, where that is known."""
    yield from labelled("catalogue", catalogue_date() if day is None else dated(day), width)


def catalogue_sources() -> str:
    """The catalogue's sources, each with its date, the newest first."""
    return "; ".join(" ".join(source) for source in reversed(load_table().sources))


def age(of: str, today: date) -> str:
    """How long ago a day (YYYY-MM-DD) was, in the largest fitting unit."""
    days = (today - date.fromisoformat(of)).days
    if days < 0:
        return "newer than this machine's clock"
    if days < 60:
        return "of today" if not days else f"{days} day{'s' * (days != 1)} old"
    months = days * 12 // 365
    return f"{months} months old" if months < 24 else f"{months // 12} years old"


def catalogue_object(of: tuple[str, Sequence[tuple[str, str]]] | None = None) -> dict[str, Any]:
    """The catalogue's day and sources as JSON; without the age, so that every day gives the same bytes.

    `of`: both, where they are known already.
    """
    if of is None:
        table = load_table()
        of = table.date, table.sources
    return {"date": of[0], "sources": [{"name": name, "of": day} for name, day in of[1]]}


def _today() -> date:
    said = os.environ.get("SOURCE_DATE_EPOCH", "")
    if said.isdecimal() and len(said) < 12:
        return datetime.fromtimestamp(int(said), UTC).date()
    return datetime.now(UTC).date()
