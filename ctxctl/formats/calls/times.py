"""Times as captures write them down."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any


def moment(value: Any) -> str | None:
    """A native time as RFC 3339 in UTC: text as it is, seconds or milliseconds since 1970 converted."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if isinstance(value, str):
        return value if value[:1].isdigit() else _of_mail(value)
    seconds = value / 1000 if value > 1e11 else float(value)
    if not 0 < seconds < 2**33:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _of_mail(value: str) -> str | None:
    """A date as HTTP headers and Ruby's cassettes have it."""
    # Slow to import, and needed by few captures.
    from email.utils import parsedate_to_datetime

    try:
        return parsedate_to_datetime(value).isoformat()
    except (TypeError, ValueError, IndexError, OverflowError):
        return None
