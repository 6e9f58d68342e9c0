"""The questions that a dataset is asked by name: one file of SQL each, here read and put together.

A file says in comments what it answers, its parameters and its columns, and holds two statements: the first
counts what the answer is about, the second answers.  Both are SQL that DuckDB runs as it stands, with
parameters as ``$name``; what ClickHouse spells otherwise is in `for_clickhouse`, and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Final, Literal, NamedTuple

ParameterType = Literal["text", "number", "int", "time"]
ColumnType = Literal["text", "int", "number", "share", "usd", "tokens", "token-steps", "digest"]


class Parameter(NamedTuple):
    """What a question can be told."""

    name: str
    type: ParameterType
    default: float | int | str | None
    says: str
    required: bool = False


class AnswerColumn(NamedTuple):
    """One column of an answer."""

    name: str
    type: ColumnType
    """`share`: 0 to 1.  `digest`: 16 hexadecimal digits.  `tokens` may be a mean, with a fraction."""
    says: str


class Question(NamedTuple):
    """One question; both statements have no common table expressions in front yet."""

    name: str
    asks: str
    counted: str
    """What the answer is about, as a plural."""
    silent: str
    """Why some of these say nothing."""
    texts: bool
    """Whether it reads texts, which a dataset has only if it was made so."""
    parameters: tuple[Parameter, ...]
    """Its own; `COMMON` go with every question."""
    columns: tuple[AnswerColumn, ...]
    detail: tuple[str, ...]
    """Columns that a narrow view may leave out, the first of them first."""
    head: str
    """Answers one row: sessions, counted, silent."""
    body: str

    @property
    def all_parameters(self) -> tuple[Parameter, ...]:
        """Its own, then the common ones."""
        return (*self.parameters, *COMMON)


COMMON: Final = (
    Parameter("since", "time", None, "sessions that began then or later, as far as a time is recorded"),
    Parameter("until", "time", None, "sessions that began earlier, as far as a time is recorded"),
    Parameter("project", "text", None, "sessions of this project"),
    Parameter("client", "text", None, "sessions of this program"),
    Parameter("client_version", "text", None, "sessions of this version of it"),
    Parameter("model", "text", None, "sessions whose main thread asked this model most"),
    Parameter("branch", "text", None, "sessions that began on this git branch"),
    Parameter("format", "text", None, "sessions of captures of this format"),
    Parameter("label", "text", None, "sessions with this label, as KEY=VALUE"),
    Parameter("limit", "int", 20, "rows at most"),
)
"""What every question can be told; null: all sessions."""
ORDER: Final = (
    "tools-fill", "stale", "repeats", "repeats-across", "rereads", "cache-rate", "breaks", "misses",
    "compactions", "compaction-took", "p95-window", "overflows", "first-request", "unused-tools",
    "sub-agents", "sentence", "servers", "cost", "largest-contents", "not-recorded",
)  # fmt: skip
"""The questions, in the order in which they are listed."""
LISTS: Final = ("overview", "sessions", "measures")
"""What lists a dataset's contents; asked as the questions are."""

_PARAMETER: Final = re.compile(r"\$(\w+)")
_COLUMN: Final = re.compile(r"column (\w+) ([\w-]+): (.*)")
_OWN: Final = re.compile(r"param (\w+) (\w+)(?: = (\S+))?: (.*)")
_CLICKHOUSE_TYPES: Final = {
    "text": "Nullable(String)", "number": "Nullable(Float64)", "int": "Nullable(Int64)",
    "time": "Nullable(DateTime64(6, 'UTC'))",
}  # fmt: skip
CLICKHOUSE_NAMES: Final = {"unnest(": "arrayJoin(", "map_keys(": "mapKeys("}
"""Functions that ClickHouse calls otherwise."""
CLICKHOUSE_SETTINGS: Final = {
    "join_use_nulls": 1, "aggregate_functions_null_for_empty": 1, "cast_keep_nullable": 1,
    "prefer_column_name_to_alias": 1, "session_timezone": "'UTC'",
}  # fmt: skip
"""Under these ClickHouse keeps null apart from zero, as SQL has it."""


@cache
def question(name: str) -> Question:
    """The question of a name of `ORDER` or `LISTS`.  Raises KeyError."""
    if name not in (*ORDER, *LISTS):
        raise KeyError(name)
    return _parsed(_file(name))


def questions() -> list[Question]:
    """All of them, in order, the lists first."""
    return [question(name) for name in (*LISTS, *ORDER)]


@cache
def views() -> tuple[str, ...]:
    """The statements that make the views over the tables, in order."""
    return tuple(_statements(_file("views")))


def composed(sql: str) -> str:
    """A statement of a question with the common table expressions that it needs in front."""
    parts = _common()
    needed: dict[str, None] = {}

    def need(text: str) -> None:
        for name, part in parts.items():
            if name not in needed and re.search(rf"\b(?:FROM|JOIN) {name}\b", text):
                need(part)
                needed[name] = None

    need(sql)
    in_front = ", ".join(parts[name] for name in needed)
    if not in_front:
        return sql
    return f"WITH {in_front}, {sql[len('WITH ') :]}" if sql.startswith("WITH ") else f"WITH {in_front}\n{sql}"


def named_parameters(sql: str) -> list[str]:
    """The parameters that a statement names, each once, in order."""
    return list(dict.fromkeys(_PARAMETER.findall(sql)))


def for_clickhouse(sql: str, parameters: tuple[Parameter, ...]) -> str:
    """A statement as ClickHouse takes it, its parameters typed, with the settings that nulls need.

    `label_value` goes with `label`.  Raises KeyError for a parameter that is not declared.
    """
    types = {one.name: _CLICKHOUSE_TYPES[one.type] for one in parameters}
    types |= {"label_value": types["label"], "limit": "UInt64"}
    for ours, theirs in CLICKHOUSE_NAMES.items():
        sql = sql.replace(ours, theirs)
    settings = ", ".join(f"{name} = {value}" for name, value in CLICKHOUSE_SETTINGS.items())
    return f"{_PARAMETER.sub(lambda m: f'{{{m[1]}:{types[m[1]]}}}', sql)}\nSETTINGS {settings}"


def bound(given: Mapping[str, object], sql: str) -> dict[str, object]:
    """The values that a statement takes, by name; `label` is split into its key and value.

    Raises KeyError where one is not given.
    """
    key, _, value = str(given.get("label") or "").partition("=")
    split = {"label": key or None, "label_value": value}
    return {name: split[name] if name in split else given[name] for name in named_parameters(sql)}


def clickhouse_values(values: Mapping[str, object]) -> dict[str, str]:
    """Values as ClickHouse takes a query's parameters: as in a tab-separated field, null as ``\\N``."""
    from datetime import datetime

    def field(value: object) -> str:
        if value is None:
            return "\\N"
        text = value.strftime("%Y-%m-%d %H:%M:%S.%f") if isinstance(value, datetime) else str(value)
        return text.translate({ord("\\"): "\\\\", ord("\t"): "\\t", ord("\n"): "\\n", ord("\r"): "\\r"})

    return {name: field(value) for name, value in values.items()}


def _file(name: str) -> str:
    return (files(__package__) / f"{name}.sql").read_text("utf-8")


def _statements(text: str) -> list[str]:
    lines = [line for line in text.splitlines() if not line.startswith("--")]
    return [one.strip() for one in "\n".join(lines).split(";\n") if one.strip()]


@cache
def _common() -> dict[str, str]:
    """The common table expressions by name; what one names stands before it."""
    whole = "\n".join(line for line in _file("common").splitlines() if not line.startswith("--"))
    parts = [part.strip() for part in whole.split("\n\n") if part.strip()]
    return {part.partition(" ")[0]: part for part in parts}


def _parsed(text: str) -> Question:
    said = [line[3:] for line in text.splitlines() if line.startswith("-- ")]
    known = ("counted: ", "silent: ", "texts: ", "detail: ")
    facts = dict(line.split(": ", 1) for line in said[2:] if line.startswith(known))
    columns = [_COLUMN.fullmatch(line) for line in said if line.startswith("column ")]
    own = [_OWN.fullmatch(line) for line in said if line.startswith("param ")]
    head, body = (one.rstrip(";") for one in _statements(text))
    return Question(
        said[0], said[1], facts["counted"], facts["silent"], "texts" in facts,
        tuple(
            Parameter(m[1], m[2], float(m[3]) if m[2] == "number" and m[3] else m[3], m[4], m[3] is None)  # type: ignore[arg-type]
            for m in own if m is not None
        ),
        tuple(AnswerColumn(m[1], m[2], m[3]) for m in columns if m is not None),  # type: ignore[arg-type]
        tuple(facts.get("detail", "").split()), head, body,
    )  # fmt: skip
