"""Validate records by the types of their fields, because nearly all records of a trace are alike.

A record's shape is the names and types of its fields. The demands of a schema on a shape are computed once.
Only what the values still have to satisfy (a time, the members of a list) is checked for each record.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

_Test = Callable[[Any], bool]
_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,), "integer": (int,), "number": (int, float), "object": (dict,), "array": (list,),
}  # fmt: skip
_OF_A_SCHEMA: Final = frozenset(
    ("$schema", "$id", "title", "description", "type", "additionalProperties", "properties", "required")
)
_MAX_SHAPES: Final = 1000
"""Most shapes that are remembered per schema."""
_TIME: Final = re.compile(
    r"[0-9]{4}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
    r"T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]+)?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])\Z"
).match
"""The usual times, except on the 29th of February."""


class Shapes:
    """The shapes that one schema allows.

    `allow` never accepts what the schema rejects, but may reject what it accepts; then ask the schema itself.
    It accepts nothing if the schema has other keywords than `_OF_A_SCHEMA`.
    """

    def __init__(self, schema: dict[str, Any]) -> None:
        self._is_plain = (
            schema.keys() <= _OF_A_SCHEMA
            and schema.get("type") == "object"
            and schema.get("additionalProperties") is True
        )
        self._required = frozenset(schema.get("required", ()))
        self._fields: dict[str, dict[str, Any]] = schema.get("properties", {})
        self._known: dict[tuple[Any, ...], tuple[tuple[str, _Test], ...] | None] = {}

    def allow(self, record: dict[str, Any]) -> bool:
        """Return whether a record is valid by its shape and by the tests for that shape."""
        shape = (*record, *map(type, record.values()))
        try:
            tests = self._known[shape]
        except KeyError:
            tests = self._tests(record)
            if len(self._known) < _MAX_SHAPES:
                self._known[shape] = tests
        if tests is None:
            return False
        for name, test in tests:  # noqa: SIM110 - a generator costs as much as the tests
            if not test(record[name]):
                return False
        return True

    def _tests(self, record: dict[str, Any]) -> tuple[tuple[str, _Test], ...] | None:
        """Return the tests for the values of a record's fields; None if only the schema can tell."""
        if not self._is_plain or not self._required <= record.keys():
            return None
        tests: list[tuple[str, _Test]] = []
        for name, value in record.items():
            if name not in self._fields:
                continue
            allowed, test = _of_field(self._fields[name], type(value))
            if not allowed:
                return None
            if test is not None:
                tests.append((name, test))
        return tuple(tests)


def _of_field(field: dict[str, Any], kind: type) -> tuple[bool, _Test | None]:
    """Return whether a field may have values of a type, and their test; False in any doubt."""
    if not field:
        return True, None
    if kind not in _types(field):
        return False, None
    rest = field.keys() - {"type"}
    if not rest or (kind is dict and field.get("additionalProperties") is True and len(rest) == 1):
        return True, None
    if rest == {"format"} and field["format"] == "date-time":
        return True, _is_time
    if rest == {"minimum"}:
        least = field["minimum"]
        return True, lambda value: bool(value >= least)
    if rest == {"items"} and kind is list and field["items"].keys() == {"type"}:
        members = _types(field["items"])
        return True, lambda value: members.issuperset(map(type, value))
    return False, None


@lru_cache(maxsize=256)
def _is_time(value: str) -> bool:
    """Return whether a text is a time. It is cached: an event and its record share one."""
    return _TIME(value) is not None


def _types(field: dict[str, Any]) -> frozenset[type]:
    said = field.get("type", ())
    return frozenset(
        kind for name in ([said] if isinstance(said, str) else said) for kind in _TYPES.get(name, ())
    )
