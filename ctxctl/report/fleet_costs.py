"""What the sessions of a directory cost, in plain text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from ctxctl.analysis.cost_groups import CostGroups, Group
from ctxctl.model.money import Money
from ctxctl.report.bill_notes import sum_text
from ctxctl.report.catalogue import catalogue_line, catalogue_object
from ctxctl.report.cost_sums import cost_facts, sums_fields
from ctxctl.report.jsonout import VERSION
from ctxctl.report.tables import Column, labelled, table
from ctxctl.text import cells, clip, visible
from ctxctl.wording import APPROXIMATE, AT_LEAST, NOT_KNOWN, number, plural, share, short

_DAY: Final = 10
_BESIDE: Final = 54
"""Cells of all columns but the names, and that of the sessions."""
_SESSIONS: Final = 10
_LEAST: Final = 16


class FleetHeader(NamedTuple):
    """What was read, and under which parameters."""

    directory: str
    """As it was typed; with `is_directory` false, a file."""
    is_directory: bool
    captures: int
    failed: int
    formats: dict[str, int]
    """Captures by format."""
    shared: int
    """Requests of which several captures hold a copy."""
    target: str
    model: str | None
    encoding: str | None
    policy: str | None
    calibration: str
    version: str
    catalogue: str | None
    """Its day, where that is known."""
    contents: bool
    """Whether contents were read, and not the bills alone."""


def header_lines(header: FleetHeader, width: int) -> Iterator[str]:
    """The parameters as labelled lines."""
    formats = ", ".join(f"{visible(name)} {count:,}" for name, count in sorted(header.formats.items()))
    read = f"{plural(header.captures, 'capture')} ({formats})"
    if header.failed:
        read += f"; {header.failed:,} more could not be read"
    what = "directory" if header.is_directory else "file"
    facts = [(what, visible(header.directory)), ("read", read)]
    if header.shared:
        several = f"{plural(header.shared, 'request')} that several captures hold"
        facts.append(("shared", f"{several}: counted once"))
    facts += [("policy", visible(header.policy or "as recorded")), ("model", visible(header.model or ""))]
    facts += [("encoding", visible(header.encoding or "each model's own"))]
    for label, text in facts:
        if text:
            yield from labelled(label, text, width)
    yield from catalogue_line(width, header.catalogue)


def groups_table(by: str, groups: Sequence[Group], whole: Money, width: int, top: int) -> Iterator[str]:
    """One line for each group; the rest in one, so that the columns add up.  Of days the last ones."""
    shown, rest = (groups[-top:], groups[:-top]) if by == "day" else (groups[:top], groups[top:])
    room = max(_LEAST, width - _BESIDE - (0 if by == "session" else _SESSIONS))
    shorten = _tail if by in ("session", "project") else clip
    rows = [_row(shorten(visible(group.name), room), group, whole, by) for group in shown]
    if rest:
        others = Group("", captures=sum(group.captures for group in rest))
        for group in rest:
            others.sums.plus(group.sums)
        name = f"({len(rest):,} earlier)" if by == "day" else f"({plural(len(rest), 'other')})"
        rows.insert(0 if by == "day" else len(rows), _row(name, others, whole, by))
    columns = (
        Column(by, least=16), Column("sessions", right=True), Column("last"), Column("steps", right=True),
        Column("sent", right=True), Column("answers", right=True), Column("cost", right=True),
        Column("share", right=True),
    )  # fmt: skip
    listed = table(columns, rows, width)
    yield from listed.head
    yield from (line for lines in listed.rows for line in lines)


def _tail(name: str, room: int) -> str:
    """The end of a long name: sessions of one project differ there."""
    if cells(name) <= room:
        return name
    while cells(name) >= room:
        name = name[1:]
    return f"…{name}"


def _row(name: str, group: Group, whole: Money, by: str) -> tuple[str, ...]:
    sums = group.sums
    money = sums.sent.total
    unknown = sums.cost is None or (sums.at_least and not money)
    sent = sums.sent_tokens.context + sums.unsized_tokens
    about = AT_LEAST if sums.unsized else APPROXIMATE if sums.unreported else ""
    return (
        name, number(group.captures) if by != "session" else "",
        "" if by == "day" or group.last is None else visible(group.last[:_DAY]),
        number(sums.steps), f"{about}{short(sent)}",
        short(sums.sent_tokens.answer) if sums.is_sized else NOT_KNOWN,
        sum_text(sums),
        NOT_KNOWN if unknown else share(money, whole.total, fine=True),
    )  # fmt: skip


def summary(groups: CostGroups, width: int, contents: bool) -> Iterator[str]:
    """The sums over all captures, each with what it rests on."""
    for label, text in cost_facts(groups.whole.sums, contents):
        yield from labelled(label, text, width, tab=12)


def fleet_object(header: FleetHeader) -> dict[str, Any]:
    """The first line of JSON."""
    return {
        "type": "fleet",
        "version": VERSION,
        "ctxctl": header.version,
        "directory": header.directory,
        "captures": header.captures,
        "failed": header.failed,
        "formats": dict(sorted(header.formats.items())),
        "shared_requests": header.shared,
        "policy": header.policy,
        "model": header.model,
        "encoding": header.encoding,
        "target": header.target,
        "calibration": header.calibration,
    }


def group_object(by: str, group: Group, contents: bool) -> dict[str, Any]:
    """One group."""
    return {
        "type": "group_cost",
        "by": by,
        "name": group.name,
        "captures": group.captures,
        "formats": group.formats,
        "first": group.first,
        "last": group.last,
        "models": group.models,
        **sums_fields(group.sums, contents),
    }


def sum_object(groups: CostGroups, contents: bool) -> dict[str, Any]:
    """The sums over all, as of one trace."""
    return {
        "type": "cost",
        "currency": "USD",
        **sums_fields(groups.whole.sums, contents),
        "as_of": groups.as_of,
        "catalogue": catalogue_object(groups.catalogue),
    }
