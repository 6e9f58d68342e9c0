"""Read older versions of the trace format: one function per step, applied to the raw event.

`CURRENT` is what the writer writes. An event of a newer minor version is rejected, because its fields may
mean something else; a newer patch release of the current version is read as is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, Literal

from ctxctl.model.vocab import SCHEMA_VERSION

CURRENT: Final = SCHEMA_VERSION
Raw = dict[str, Any]
Verdict = Literal["current", "same", "older", "newer", "unknown"]

_VERSION = re.compile(r"(\d{1,6})\.(\d{1,6})(?:\.(\d{1,6}))?(?:[-+].*)?\Z")


def _from_0_1_0(event: Raw) -> Raw:
    """0.1.1 asks for `schema_version` in the record too; nothing else changed."""
    event = {**event, "schema_version": CURRENT}
    data = event.get("data")
    if isinstance(data, dict) and data.get("schema_version") in (None, "0.1.0"):
        event["data"] = {**data, "schema_version": CURRENT}
    return event


STEPS: Final[dict[str, tuple[str, Callable[[Raw], Raw]]]] = {"0.1.0": ("0.1.1", _from_0_1_0)}
"""Version found -> (version it becomes, function)."""

TYPED_ALIKE: Final = frozenset({"0.1.0", CURRENT})
"""Versions whose records have the same types, so the decoder need not rewrite their lines."""


def judge_version(version: object) -> Verdict:
    """Return the status of a `schema_version`: `same` as the current one, `older` (to upgrade), …."""
    if version == CURRENT:
        return "current"
    match = _VERSION.match(version) if isinstance(version, str) else None
    if match is None:
        return "unknown"
    number = tuple(int(part or 0) for part in match.groups())
    current = tuple(int(part) for part in CURRENT.split("."))
    if number[:2] > current[:2]:
        return "newer"
    if version in STEPS and version not in TYPED_ALIKE:
        return "older"
    return "same"


def upgrade_event(event: Raw) -> Raw:
    """Return the event as the current version would write it, without modifying the argument."""
    version = event.get("schema_version")
    if not isinstance(version, str):
        version = "0.1.0"
    while version in STEPS:
        version, step = STEPS[version]
        event = step(event)
    return event
