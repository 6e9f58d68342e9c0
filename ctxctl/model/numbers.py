"""Reading numbers that strangers wrote."""

from __future__ import annotations

from typing import Any


def count(value: Any) -> int | None:
    """A token count, or None for what is not one."""
    if type(value) is int:  # as all are that come from JSON
        return value if 0 <= value < 2**53 else None
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else None
