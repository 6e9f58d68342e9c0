"""Answers of the receivers."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import orjson

JSON = "application/json"


class Reply(NamedTuple):
    """What a request is answered."""

    status: int
    body: bytes = b""
    media: str = JSON
    retry_after: int | None = None
    """Seconds, for what may be tried again."""


def told(status: int, why: str, *, wait: float | None = None, **more: Any) -> Reply:
    """An answer that says why; `wait`: seconds after which it is worth trying again."""
    return Reply(status, orjson.dumps({"error": why, **more}), JSON, seconds(wait))


def seconds(wait: float | None) -> int | None:
    """As `Retry-After` has it: whole seconds, at least one."""
    return None if wait is None else max(1, math.ceil(wait))
