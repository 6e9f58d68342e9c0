"""Answers of a dataset, in plain text, as JSON and as CSV; names in them are a stranger's."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from ctxctl.dataset.duck import Answer, values_of
from ctxctl.dataset.questions import COMMON, AnswerColumn, Question
from ctxctl.dataset.schema import TABLES
from ctxctl.item_names import shortened_path
from ctxctl.report.jsonout import VERSION
from ctxctl.report.paint import Paint
from ctxctl.report.tables import Column, fits, layout, table, wrap
from ctxctl.report.tabular import csv_cell
from ctxctl.text import cells, visible
from ctxctl.wording import NOT_KNOWN, cost_text, dollars, mean, number, plural, share, short

if TYPE_CHECKING:
    from ctxctl.dataset.opening import OpenDataset

_DIGESTS = {column.name for table in TABLES for column in table.columns if column.type == "uint64"}
_PATHS = ("path", "item_path")
_WORDS = 20
"""Cells that words keep, however narrow the line is."""
_RIGHT = ("int", "number", "share", "usd", "tokens", "token-steps")


def cell(value: Any, kind: str) -> str:
    """A value of a column of this type in words; null is `-`."""
    if value is None:
        return NOT_KNOWN
    if kind == "share":
        return share(value)
    if kind == "usd":
        return dollars(Decimal(repr(float(value))))
    if kind == "digest":
        return f"{int(value):016x}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if kind in ("tokens", "token-steps"):
        return short(round(value))
    if isinstance(value, float):
        return mean(value)
    return number(value) if isinstance(value, int) else visible(str(value))


def row_cells(row: Sequence[Any], columns: Sequence[AnswerColumn]) -> list[str]:
    """A row in words.  A sum `usd` says by the columns beside it whether all is in it, and was billed."""
    beside = {one.name: value for one, value in zip(columns, row, strict=True)}
    least, counted = bool(beside.get("unpriced")), bool(beside.get("expected"))
    return [
        cost_text(Decimal(repr(float(value))), counted=counted, least=least)
        if one.name == one.type == "usd" and value is not None
        else cell(value, one.type)
        for one, value in zip(columns, row, strict=True)
    ]


def plain_value(value: Any, kind: str) -> Any:
    """A value as JSON and CSV have it: digests as hexadecimal digits, all else as it is."""
    return f"{int(value):016x}" if kind == "digest" and value is not None else value


def title(name: str) -> str:
    """A column's name as the title of a column."""
    return visible(name.replace("_", " "))


def head_line(question: Question, answer: Answer) -> str:
    """Over what the answer is, and how much of it cannot say."""
    head = answer.head
    assert head is not None
    over = f"over {plural(head.sessions, 'session')}"
    if question.counted != "sessions":
        over += f", {number(head.counted)} {question.counted}"
    if head.silent:
        silent = f"{number(head.silent)} of the {question.counted} ({share(head.silent, head.counted)})"
        over += f"; {silent} do not say: {question.silent}"
    return over


def filter_words(given: Mapping[str, Any]) -> str:
    """The filters that were given, in words; nothing where there is none."""
    said = [
        f"{one.name.replace('_', ' ')} {_filter_value(given[one.name])}"
        for one in COMMON
        if one.name != "limit" and given.get(one.name) is not None
    ]
    return ", ".join(said)


def _filter_value(value: Any) -> str:
    return f"{value:%Y-%m-%d %H:%M} UTC" if isinstance(value, datetime) else visible(str(value))


def answer_lines(
    question: Question, answer: Answer, given: Mapping[str, Any], width: int, paint: Paint
) -> Iterator[str]:
    """The question, over what it was asked, and a row a line."""
    yield from (paint("head", line) for line in wrap(question.asks, width))
    yield from wrap(head_line(question, answer), width)
    if filters := filter_words(given):
        yield from wrap(f"only {filters}", width)
    yield ""
    yield from rows_table(question.columns, answer, width, paint, question.detail)


def rows_table(
    columns: Sequence[AnswerColumn], answer: Answer, width: int, paint: Paint, detail: Sequence[str] = ()
) -> Iterator[str]:
    """The rows alone, and behind them what is not shown: columns that are null in every row, and of `detail`
    and the others as many as a narrow line has no room for.
    """
    values = list(values_of(answer.rows))
    if not values:
        yield "nothing of the kind"
        return
    said = [n for n in range(len(columns)) if any(row[n] is not None for row in values)]
    cut = _left_out(columns, said, values, width, detail)
    shown = [n for n in said if n not in cut]
    kinds = [columns[n] for n in shown]
    rows = [[words[n] for n in shown] for words in (row_cells(row, columns) for row in values)]
    laid = [_column(one, [row[k] for row in rows]) for k, one in enumerate(kinds)]
    for k, cells_of in enumerate(layout(laid, rows, width)):
        if kinds[k].name in _PATHS:
            rows = [[*row[:k], shortened_path(row[k], cells_of), *row[k + 1 :]] for row in rows]
    listed = table(laid, rows, width)
    yield from (paint("dim", line) for line in listed.head)
    yield from (line for lines in listed.rows for line in lines)
    notes = [f"{plural(len(rows), 'row')} shown, there are more: --limit"] * answer.more
    if silent := [title(one.name) for n, one in enumerate(columns) if n not in said]:
        notes.append(f"not known of any: {', '.join(silent)}")
    if cut:
        names = ", ".join(title(columns[n].name) for n in sorted(cut))
        notes.append(f"a wider terminal, --csv and --json have {plural(len(cut), 'more column')}: {names}")
    yield from wrap(f"({'; '.join(notes)})", width) if notes else ()


def _left_out(
    columns: Sequence[AnswerColumn], said: Sequence[int], values: Sequence[tuple[Any, ...]], width: int,
    detail: Sequence[str],
) -> set[int]:  # fmt: skip
    """Which columns have no room: those of `detail` in their order, then from the right."""
    places = {one.name: n for n, one in enumerate(columns)}
    going = [places[name] for name in detail if places[name] in said]
    going += [n for n in reversed(said[1:]) if n not in going]
    words = [row_cells(row, columns) for row in values]
    shown = {n: [row[n] for row in words] for n in said}
    laid = {n: _column(columns[n], shown[n]) for n in said}
    cut: set[int] = set()
    for n in going:
        kept = [m for m in said if m not in cut]
        if fits([laid[m] for m in kept], list(zip(*(shown[m] for m in kept), strict=True)), width):
            break
        cut.add(n)
    return cut


def _column(column: AnswerColumn, shown: Sequence[str]) -> Column:
    """A column of a table; words that are longer than `_WORDS` may be cut to it."""
    right = column.type in _RIGHT
    long = not right and any(cells(one) > _WORDS for one in shown)
    return Column(title(column.name), right, _WORDS if long else 0)


def columns_of(answer: Answer) -> list[AnswerColumn]:
    """The columns of an answer to SQL of somebody's own, by what is in them."""
    kinds: list[Any] = []
    for n in range(len(answer.columns)):
        values = [row[n] for row in answer.rows if row[n] is not None]
        numeric = bool(values) and all(
            isinstance(one, int | float | Decimal) and not isinstance(one, bool) for one in values
        )
        digest = numeric and answer.columns[n] in _DIGESTS and all(isinstance(one, int) for one in values)
        kinds.append("digest" if digest else "number" if numeric else "text")
    return [AnswerColumn(name, kind, "") for name, kind in zip(answer.columns, kinds, strict=True)]


def question_lines(questions: Sequence[Question], width: int, paint: Paint) -> Iterator[str]:
    """The questions by name."""
    columns = [Column("name"), Column("question", least=20)]
    listed = table(columns, [(one.name, one.asks) for one in questions], width)
    yield from (paint("dim", line) for line in listed.head)
    yield from (line for lines in listed.rows for line in lines)


def question_object(question: Question) -> dict[str, Any]:
    """A question as JSON."""
    return {
        "type": "question",
        "name": question.name,
        "asks": question.asks,
        "needs_texts": question.texts,
        "parameters": [
            {
                "name": one.name,
                "type": one.type,
                "default": one.default,
                "required": one.required,
                "says": one.says,
            }
            for one in question.all_parameters
        ],
        "columns": [{"name": one.name, "type": one.type, "says": one.says} for one in question.columns],
    }


def answer_objects(
    question: Question | None, columns: Sequence[AnswerColumn], answer: Answer, given: Mapping[str, Any],
    snapshot: OpenDataset, release: str,
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """The head of an answer, then a line a row; `release` is ctxctl's own version."""
    head = answer.head
    yield {
        "type": "answer",
        "version": VERSION,
        "ctxctl": release,
        "dataset": snapshot.id,
        "dataset_version": snapshot.version,
        "question": None if question is None else question.name,
        "parameters": {
            name: value.isoformat() if isinstance(value, datetime) else value for name, value in given.items()
        },
        "sessions": None if head is None else head.sessions,
        "counted": None if head is None else head.counted,
        "silent": None if head is None else head.silent,
        "counted_what": None if question is None else question.counted,
        "silent_why": None if question is None else question.silent,
        "columns": [{"name": one.name, "type": one.type} for one in columns],
        "more": answer.more,
    }
    for row in values_of(answer.rows):
        pairs = zip(columns, row, strict=True)
        yield {"type": "row", "values": {one.name: plain_value(value, one.type) for one, value in pairs}}


def answer_csv(columns: Sequence[AnswerColumn], answer: Answer) -> bytes:
    """The rows as CSV with a line of names; null is empty, and text is shown text."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([visible(one.name) for one in columns])
    for row in values_of(answer.rows):
        pairs = zip(columns, row, strict=True)
        writer.writerow([csv_cell(plain_value(value, one.type)) for one, value in pairs])
    return buffer.getvalue().encode()
