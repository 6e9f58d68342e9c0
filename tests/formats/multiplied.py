"""Fixtures made larger: their records, what is in them, their texts and names, as often as asked for.

What is JSON (one document, lines, or YAML) is taken apart; anything else is repeated as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.formats.damage import is_lines

_ID: re.Pattern[str] = re.compile(
    r"(?:^|_|\.)(?:id|ids|uuid|uuids|key|hash|number|ordinal|seq|sha256|digest|ts)$"
    r"|(?:Id|ID|Ids|IDs|Uuid|Uuids|UUID|Hash|Key|Order|Order)$",
)
"""Names of fields that tell one thing from another."""
_TYPED: re.Pattern[str] = re.compile(r"^(?:type|role|kind|event|method|jsonrpc|version)$")
_BRACKETS = re.compile(r"\[\d+\]")


class Loaded(NamedTuple):
    """A capture taken apart."""

    rows: list[Any]
    """The values of its lines; a document is the only one."""
    is_lines: bool


class Cell(NamedTuple):
    """One way to make one capture larger."""

    what: str
    make: Callable[[int], bytes]
    """The capture with the number of copies that is asked for; 1 gives as much as there is."""


def taken_apart(data: bytes, name: str) -> Loaded | None:
    """A capture of JSON or YAML; None for any other."""
    if name.endswith((".yaml", ".yml")):
        import yaml

        try:
            return Loaded([yaml.safe_load(data)], False)
        except yaml.YAMLError:
            return None
    try:
        if not is_lines(data):
            return Loaded([json.loads(data)], False)
        return Loaded([json.loads(line) for line in data.splitlines() if line.strip()], True)
    except (UnicodeDecodeError, ValueError):
        return None


def _written(rows: list[Any], *, lines: bool) -> bytes:
    if lines:
        return b"".join(json.dumps(row, separators=(",", ":"), default=str).encode() + b"\n" for row in rows)
    return json.dumps(rows[0], separators=(",", ":"), default=str).encode()


def _renamed(value: Any, suffix: str, key: str = "") -> Any:
    """A copy with identities of its own; they stay consistent within the copy."""
    if isinstance(value, dict):
        return {name: _renamed(one, suffix, name) for name, one in value.items()}
    if isinstance(value, list):
        return [_renamed(one, suffix, key) for one in value]
    if not _ID.search(key) or _TYPED.match(key):
        return value
    if isinstance(value, str):
        return value + suffix
    if isinstance(value, int) and not isinstance(value, bool):
        return value + 1000 * int(suffix[1:])
    return value


def _copies(value: list[Any], count: int, *, fresh: bool) -> list[Any]:
    made = list(value)
    for at in range(1, count):
        made += [_renamed(one, f"-{at}") for one in value] if fresh else value
    return made


def _places(value: Any, path: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Everything in a value, with the way to it."""
    yield path, value
    if depth > 12:
        return
    if isinstance(value, dict):
        for name, one in value.items():
            yield from _places(one, f"{path}.{name}", depth + 1)
    elif isinstance(value, list):
        for at, one in enumerate(value):
            yield from _places(one, f"{path}[{at}]", depth + 1)


def _with(value: Any, path: str, change: Callable[[Any], Any], here: str = "") -> Any:
    """A copy in which what stands at one place is changed."""
    if here == path:
        return change(value)
    if isinstance(value, dict):
        return {
            name: _with(one, path, change, f"{here}.{name}") if path.startswith(f"{here}.{name}") else one
            for name, one in value.items()
        }
    if isinstance(value, list):
        return [
            _with(one, path, change, f"{here}[{at}]") if path.startswith(f"{here}[{at}]") else one
            for at, one in enumerate(value)
        ]
    return value


def _spread(value: Any, count: int) -> Any:
    """An object with copies of its entries under further names."""
    return {
        **value,
        **{f"{name}-{at}": one for at in range(1, count) for name, one in value.items()},
    }


def _deep(count: int) -> Any:
    value: Any = "x"
    for at in range(min(count, 400)):
        value = [value] if at % 2 else {"a": value}
    return value


def cells(path: Path) -> Iterator[Cell]:
    """The ways in which a fixture can be made larger."""
    data = path.read_bytes()
    loaded = taken_apart(data, path.name)
    if loaded is None:
        yield Cell("repeated", lambda count: data * count)
        return
    rows, lines = loaded
    if lines:
        yield Cell("records again", lambda n: _written(_copies(rows, n, fresh=False), lines=True))
        yield Cell("records afresh", lambda n: _written(_copies(rows, n, fresh=True), lines=True))
    seen: set[str] = set()
    for number in range(len(rows)):
        yield from _of_row(rows, number, lines, seen)


def _of_row(rows: list[Any], number: int, lines: bool, seen: set[str]) -> Iterator[Cell]:
    row = rows[number]
    kind = str(row.get("type") or row.get("kind") or "") if isinstance(row, dict) and lines else ""

    def changed(place: str, change: Callable[[Any], Any]) -> bytes:
        made = [*rows[:number], _with(row, place, change), *rows[number + 1 :]]
        return _written(made, lines=lines)

    for place, value in _places(row):
        name = f"{kind}{_BRACKETS.sub('[]', place)}"
        mark = f"{name}:{type(value).__name__}"
        if mark in seen:
            continue
        seen.add(mark)
        yield from _of_place(name, place, value, changed)


def _of_place(
    name: str, place: str, value: Any, changed: Callable[[str, Callable[[Any], Any]], bytes]
) -> Iterator[Cell]:
    if isinstance(value, list) and value:
        yield Cell(f"{name} again", lambda n: changed(place, lambda v: _copies(v, n, fresh=False)))
        yield Cell(f"{name} afresh", lambda n: changed(place, lambda v: _copies(v, n, fresh=True)))
    elif isinstance(value, dict) and value and place:
        yield Cell(f"{name} wide", lambda n: changed(place, lambda v: _spread(v, n)))
    elif isinstance(value, str) and value:
        yield Cell(f"{name} long", lambda n: changed(place, lambda v: v * n))
        yield Cell(f"{name} deep", lambda n: changed(place, lambda v: _deep(n)))
