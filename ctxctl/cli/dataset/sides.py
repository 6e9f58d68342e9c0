"""Groups of sessions as they are typed: `client_version=2.1.3`, `2026-10`, `2026-W45`, or several."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from ctxctl.cli.dataset import place
from ctxctl.dataset.questions import COMMON
from ctxctl.errors import UsageError

_MONTH = re.compile(r"(\d{4})-(\d{2})")
_WEEK = re.compile(r"(\d{4})-?W(\d{1,2})", re.IGNORECASE)
_NAMES = [one.name for one in COMMON if one.name != "limit"]


def side_of(text: str) -> dict[str, Any]:
    """The filters of a group, by parameter of every question.

    Raises UsageError (`bad-group`, `bad-time`, `bad-parameter`).
    """
    found: dict[str, Any] = {}
    for term in filter(None, (part.strip() for part in text.split(","))):
        for name, value in _term(term).items():
            if name in found:
                raise _bad(text, f"it names {name} twice")
            found[name] = value
    if not found:
        raise _bad(text, "it names nothing")
    return found


def _term(term: str) -> dict[str, Any]:
    period = period_of(term)
    if period is not None:
        return dict(zip(("since", "until"), period, strict=True))
    name, equals, value = term.partition("=")
    name = name.strip().replace("-", "_")
    if not equals or not value:
        raise _bad(term, "it is no NAME=VALUE, month or week")
    if name not in _NAMES:
        raise _bad(term, f"there is no {name[:80]!r} to choose sessions by")
    flags = {name: value} if name in _NAMES else {}
    return place.given_values(dict.fromkeys(_NAMES) | flags, None, COMMON)


def period_of(text: str) -> tuple[datetime, datetime] | None:
    """The beginning and the end (UTC) of a month or an ISO week; None: it is neither."""
    try:
        if match := _MONTH.fullmatch(text):
            begin = datetime(int(match[1]), int(match[2]), 1, tzinfo=UTC)
            return begin, (begin + timedelta(days=31)).replace(day=1)
        if match := _WEEK.fullmatch(text):
            begin = datetime.fromisocalendar(int(match[1]), int(match[2]), 1).replace(tzinfo=UTC)
            return begin, begin + timedelta(days=7)
    except (ValueError, OverflowError):
        pass
    return None


def _bad(text: str, why: str) -> UsageError:
    names = ", ".join(_NAMES)
    hint = f"for example client_version=2.1.3, 2026-10, 2026-W45 or project=shop,2026-10; names: {names}"
    return UsageError("bad-group", f"{text[:80]!r} chooses no sessions: {why}", hint=hint)
