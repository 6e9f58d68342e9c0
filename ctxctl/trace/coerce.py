"""Read fields of decoded JSON leniently: valid values are returned, others are reported."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any

import orjson

from ctxctl.model.records import Ref
from ctxctl.trace.depth import DEPTH_LIMIT, nests_deeper

MAX_COUNT = 1 << 53
"""Largest count. Above it, JSON readers disagree about integers."""

Report = Callable[[str, str, str], None]
"""Called with a slug, the key with the fault, and a message."""

_LONG_NUMBER = re.compile(rb"\d{19}")
_EXACT_BYTES = 1 << 16
_REF_KEYS = (
    "item_ref", "item_id", "ref", "id", "block_id", "source_id", "uri",
    "surface_id", "selection_id", "budget_id", "assembly_id", "injection_id", "compaction_id", "missing_id",
    "summary_id", "context_id", "policy_id", "evidence_id", "artifact_id", "tool_call_id",
)  # fmt: skip


_MAX_DIGITS = 4000


def parse_json(raw: bytes) -> Any:
    """Parse JSON, with exact integers in short records, and with numbers that orjson rejects.

    Raises ValueError or RecursionError.
    """
    if len(raw) <= _EXACT_BYTES and _LONG_NUMBER.search(raw):
        return json.loads(raw, parse_int=_integer)
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        return json.loads(raw, parse_int=_integer)


def _integer(digits: str) -> int | float:
    """Return an integer, or infinity for one with too many digits for Python."""
    return int(digits) if len(digits) <= _MAX_DIGITS else float(digits)


def show(value: object) -> str:
    """Return a short spelling of a value for a message."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "an array"
    try:
        text = repr(value)
    except ValueError:
        return "a number of thousands of digits"
    return text if len(text) <= 40 else text[:37] + "..."


class Fields:
    """A JSON object read key by key. Each reader uses the first of its keys that is not null."""

    __slots__ = ("data", "report", "shallow", "where")

    def __init__(
        self, data: dict[str, Any], report: Report, where: str = "data", *, shallow: bool = False
    ) -> None:
        self.data = data
        self.report = report
        self.where = where
        self.shallow = shallow
        """Whether it is known not to nest deeper than the limit."""

    def get(self, *keys: str) -> Any:
        """Return the first value of `keys` that is neither absent nor null, else None."""
        for key in keys:
            value = self.data.get(key)
            if value is not None:
                return value
        return None

    def text(self, *keys: str) -> str | None:
        """Return a string. A number is converted to one."""
        for key in keys:
            value = self.data.get(key)
            if value is None:
                continue
            if isinstance(value, str):
                return value
            if isinstance(value, int | float) and not isinstance(value, bool):
                return show(value)
            self.wrong(key, "text", value)
        return None

    ident = text

    def name(self, *keys: str) -> str | None:
        """Return a string, or the string under a naming key of an object."""
        for key in keys:
            value = self.data.get(key)
            if isinstance(value, dict):
                inner = Fields(value, self.report, f"{self.where}.{key}")
                return inner.text("id", "name", "model", "ref", "item_ref", "item_id", "summary_id", "uri")
            if value is not None:
                return self.text(key)
        return None

    def count(self, *keys: str) -> int | None:
        """Return an integer from 0 to 2^53."""
        for key in keys:
            value = self.data.get(key)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float):
                self.wrong(key, "a count", value)
            elif not 0 <= value <= MAX_COUNT:
                self.report(
                    "bad-count",
                    key,
                    f"{self.where}.{key} is {show(value)}, not a count from 0 to 2^53; ignored",
                )
            elif value != int(value):
                self.wrong(key, "a whole number", value)
            else:
                return int(value)
        return None

    def number(self, *keys: str) -> float | None:
        """Return a finite number."""
        for key in keys:
            value = self.data.get(key)
            if value is None:
                continue
            if isinstance(value, int | float) and not isinstance(value, bool):
                try:
                    number = float(value)
                except OverflowError:
                    number = math.inf
                if math.isfinite(number):
                    return number
            self.wrong(key, "a number", value)
        return None

    def flag(self, *keys: str) -> bool | None:
        """True or false."""
        for key in keys:
            value = self.data.get(key)
            if isinstance(value, bool):
                return value
            if value is not None:
                self.wrong(key, "true or false", value)
        return None

    def table(self, key: str) -> dict[str, Any]:
        """Return an object nested no deeper than the limit; empty if there is none."""
        value = self.data.get(key)
        if value is None:
            return {}
        if not isinstance(value, dict):
            self.wrong(key, "an object", value)
            return {}
        if not self.shallow and nests_deeper(DEPTH_LIMIT, value):
            self.report("too-deep", key, f"{self.where}.{key} nests more than {DEPTH_LIMIT} deep; ignored")
            return {}
        return value

    def rows(self, key: str) -> list[Any]:
        """Return an array. A lone string or object is an array of one."""
        value = self.data.get(key)
        if value is None:
            return []
        if isinstance(value, list):
            return value
        if isinstance(value, str | dict):
            return [value]
        self.wrong(key, "an array", value)
        return []

    def texts(self, key: str) -> tuple[str, ...]:
        """Return an array of strings."""
        found = []
        for value in self.rows(key):
            if isinstance(value, dict):
                value = value.get("target") or value.get("id") or value.get("text")
            if isinstance(value, str):
                found.append(value)
            else:
                self.wrong(key, "an array of texts", value)
        return tuple(found)

    def refs(self, key: str) -> tuple[Ref, ...]:
        """References to items, as strings or objects."""
        found = []
        for value in self.rows(key):
            ref = self.ref(value, key)
            if ref is not None:
                found.append(ref)
        return tuple(found)

    def ref_names(self, key: str) -> tuple[str, ...]:
        """Return only the names of the references."""
        return tuple([ref.ref for ref in self.refs(key)])

    def ref(self, value: Any, key: str) -> Ref | None:
        """One reference: `ID`, `ID@VERSION`, or an object that names it and says more."""
        if isinstance(value, str):
            return Ref(value)
        if not isinstance(value, dict):
            self.wrong(key, "a reference", value)
            return None
        fields = Fields(value, self.report, f"{self.where}.{key}")
        name = fields.text(*_REF_KEYS)
        if name is None:
            self.report("bad-field", key, f"a reference in {self.where}.{key} names nothing; ignored")
            return None
        version = fields.text("version")
        more = Fields(fields.table("metadata"), self.report, f"{self.where}.{key}.metadata")
        rank = fields.count("rank")
        score = fields.number("score", "relevance")
        return Ref(
            name if version is None or name.endswith("@" + version) else f"{name}@{version}",
            fields.text("reason", "omission_reason"),
            fields.text("native_reason") or more.text("native_reason"),
            more.number("score", "relevance") if score is None else score,
            more.count("rank") if rank is None else rank,
        )

    def wrong(self, key: str, wanted: str, value: object) -> None:
        """Report a value of the wrong type."""
        self.report("bad-field", key, f"{self.where}.{key} is {show(value)}, not {wanted}; ignored")
