"""Which sessions of a dataset are meant by what somebody types: words, fields and figures, all of which hold.

    orchard client:codex cost>5 -model:mini window>80% since:2026-08-01

Spelled as queries of `ctxctl find` are: a minus negates, a comma means or, quotation marks hold blanks
together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any, Final

from ctxctl.dataset.session_values import SessionRow
from ctxctl.errors import UsageError

Test = Callable[[SessionRow], bool]

FIELDS: Final[Mapping[str, Callable[[SessionRow], str | None]]] = {
    "project": lambda row: row.project,
    "client": lambda row: _joined(row.client, row.client_version),
    "model": lambda row: row.model,
    "branch": lambda row: row.branch,
    "format": lambda row: row.format,
    "session": lambda row: _joined(row.name, row.key),
    "path": lambda row: row.path,
    "title": lambda row: row.title,
    "label": lambda row: " ".join(f"{key}={value}" for key, value in row.labels) or None,
}
"""What `NAME:TEXT` looks in; the text stands somewhere in it, capitals or not."""
NUMBERS: Final[Mapping[str, Callable[[SessionRow], float | None]]] = {
    "turns": lambda row: row.turns,
    "requests": lambda row: row.own.requests,
    "sent": lambda row: row.own.sent,
    "tokens": lambda row: row.own.sent,
    "window": lambda row: row.own.filled,
    "read": lambda row: None if not row.own.read_of else (row.own.read or 0) / row.own.read_of,
    "misses": lambda row: row.own.misses,
    "compactions": lambda row: row.own.compactions,
    "cost": lambda row: row.own.usd,
}
"""What is compared with a number; what is not recorded is neither more nor less than one."""
SHARES: Final = frozenset({"window", "read"})
TIMES: Final = ("since", "until")
WORDS: Final = ("project", "client", "model", "branch", "title", "session", "path", "label")
"""Fields in which a word without a name is looked for."""
LONGEST: Final = 2000
"""Characters that are read."""

_TERM: Final = re.compile(
    r'-?(?:[A-Za-z_]{2,16}:)?(?:"(?:[^"\\]|\\.)*"|[^\s",]+)(?:,(?:"(?:[^"\\]|\\.)*"|[^\s",]+))*|"'
)
_COMPARED: Final = re.compile(r"([A-Za-z_]{2,16}):?(>=|<=|==|≥|≤|>|<|=)(\S*)")
_NUMBER: Final = re.compile(r"\$?([0-9]{1,15}(?:\.[0-9]{1,9})?)([kKmMgG]?)(%?)")
_NAMED: Final = re.compile(r"([A-Za-z_]{2,16}):(.*)", re.DOTALL)
_VALUE: Final = re.compile(r'"((?:[^"\\]|\\.)*)"|([^,"]+)')
_ZEROS: Final = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}
_OPERATORS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    ">": lambda a, b: a > b, "<": lambda a, b: a < b, "=": lambda a, b: a == b,
    ">=": lambda a, b: a >= b, "<=": lambda a, b: a <= b,
}  # fmt: skip
_SAME: Final = {"==": "=", "≥": ">=", "≤": "<="}


def session_filter(typed: str) -> Test:
    """What tells whether a session is meant; an empty text means all.

    Raises UsageError (`bad-query`).
    """
    if len(typed) > LONGEST:
        raise _wrong(f"longer than {LONGEST} characters")
    tests = [_term(match[0]) for match in _TERM.finditer(typed)]
    return lambda row: all(test(row) for test in tests)


def chosen(rows: Iterable[SessionRow], given: Mapping[str, Any]) -> list[SessionRow]:
    """The sessions that the parameters of every question leave, as their SQL has it (`common.sql`)."""
    key, _, value = str(given.get("label") or "").partition("=")
    same = {
        name: given[name]
        for name in ("project", "client", "client_version", "model", "branch", "format")
        if given.get(name) is not None
    }
    since, until = (
        None if moment is None else moment.astimezone(UTC).replace(tzinfo=None)
        for moment in (given.get("since"), given.get("until"))
    )
    return [
        row
        for row in rows
        if all(getattr(row, name) == wanted for name, wanted in same.items())
        and (not key or (key, value) in row.labels)
        and (since is None or (row.started is not None and row.started >= since))
        and (until is None or (row.started is not None and row.started < until))
    ]


def _term(text: str) -> Test:
    if text.startswith("-") and len(text) > 1:
        test = _term(text[1:])
        return lambda row: not test(row)
    if text == '"':
        raise _wrong("a quotation mark is not closed")
    if match := _COMPARED.fullmatch(text):
        return _compared(match[1].lower(), _SAME.get(match[2], match[2]), match[3])
    if match := _NAMED.fullmatch(text):
        name = match[1].lower()
        if name in TIMES:
            return _timed(name, match[2])
        if name in FIELDS:
            return _in_field(name, _values(name, match[2]))
        _misspelled(name)
    words = [word.casefold() for word in _texts(text)]
    return lambda row: any(word in told for word in words for told in _told(row))


def _misspelled(name: str) -> None:
    """A name that is nearly that of a field is a slip; any other is text."""
    if name in NUMBERS:
        raise _wrong(f"{name} is compared with a number, for example {name}>10")
    near = get_close_matches(name, (*FIELDS, *NUMBERS, *TIMES), 1, 0.75)
    if near:
        raise _wrong(f"no field is called {name}: did you mean {near[0]}?")


def _told(row: SessionRow) -> list[str]:
    found = (FIELDS[name](row) for name in WORDS)
    return [text.casefold() for text in found if text is not None]


def _in_field(name: str, values: list[str]) -> Test:
    value = FIELDS[name]
    wanted = [one.casefold() for one in values]

    def test(row: SessionRow) -> bool:
        found = value(row)
        return found is not None and any(one in found.casefold() for one in wanted)

    return test


def _values(name: str, text: str) -> list[str]:
    found = [one for one in _texts(text) if one]
    if not found:
        raise _wrong(f"{name}: needs a value, for example {name}:x")
    return found


def _texts(text: str) -> list[str]:
    return [
        re.sub(r"\\(.)", r"\1", match[1]) if match[1] is not None else match[2]
        for match in _VALUE.finditer(text)
    ]


def _compared(name: str, operator: str, text: str) -> Test:
    value = NUMBERS.get(name)
    if value is None:
        near = get_close_matches(name, NUMBERS, 1, 0.6)
        raise _wrong(
            f"{name} is no figure: "
            + (f"did you mean {near[0]}?" if near else f"there are {', '.join(NUMBERS)}")
        )
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise _wrong(
            f"{name}{operator} needs a number, for example {name}>{'80%' if name in SHARES else '10'}"
        )
    if match[3] and name not in SHARES:
        raise _wrong(f"{name} has no per cent; window and read have")
    limit = float(match[1]) * _ZEROS[match[2].lower()]
    if name in SHARES and (match[3] or limit > 1):
        limit /= 100
    compare = _OPERATORS[operator]

    def test(row: SessionRow) -> bool:
        found = value(row)
        return found is not None and compare(found, limit)

    return test


def _timed(name: str, text: str) -> Test:
    try:
        day = datetime.fromisoformat(text)
    except ValueError:
        raise _wrong(f"{name}:{text[:40]} is no date, for example {name}:2026-08-01") from None
    day = day.replace(tzinfo=None)
    if name == "since":
        return lambda row: row.started is not None and row.started >= day
    return lambda row: row.started is not None and row.started < day


def _joined(one: str | None, other: str | None) -> str | None:
    return " ".join(text for text in (one, other) if text) or None


def _wrong(message: str) -> UsageError:
    return UsageError("bad-query", message)
