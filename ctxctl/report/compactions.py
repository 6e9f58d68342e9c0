"""What compactions took and what of it is handed on, in plain text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from ctxctl.analysis.handed_on import KEPT, KINDS, LATER, NOWHERE, SUMMARY, UNKNOWN, Compaction, Handed
from ctxctl.item_names import ItemNames, fitted, local
from ctxctl.model.addresses import prefix
from ctxctl.report.compaction_words import taken_facts, triggers_text
from ctxctl.report.paint import Paint
from ctxctl.report.tables import Column, labelled, table
from ctxctl.text import cells, preview, visible
from ctxctl.wording import COMPACTION, noun, number, plural, unshown

UNREAD_SUMMARY: Final = "its text is not recorded: what it carries over is not known"
_LISTED: Final = 8
"""Things of a kind that are listed unless all are asked for."""
_PLACES: Final = (
    (SUMMARY, "in the summary"), (KEPT, "still there"), (LATER, "only later"), (NOWHERE, "nowhere"),
)  # fmt: skip
_UNREAD: Final = (
    (SUMMARY, "in the summary"), (KEPT, "still there"), (LATER, "again later"), (UNKNOWN, "not known"),
)  # fmt: skip
"""Where the text of a summary is not recorded."""
NOTE: Final = "Only the words count: what is said in other words counts as nowhere (docs/compactions.md)."


def compaction_lines(
    found: Sequence[Compaction], width: int, paint: Paint, names: ItemNames, *, everything: bool = False
) -> Iterator[str]:
    """A paragraph for each, and what the figures mean; a line where there is none."""
    if not found:
        yield "no compaction is recorded in this trace"
        return
    several = len({one.session for one in found}) > 1
    for one in found:
        yield from _paragraph(one, width, paint, names, several=several, everything=everything)
        yield ""
    yield from labelled("", NOTE, width, tab=0)


def _paragraph(
    one: Compaction, width: int, paint: Paint, names: ItemNames, *, several: bool, everything: bool
) -> Iterator[str]:
    where = visible(prefix(one.thread, one.session if several else None))
    title = f"{where}{one.taken.turn}.{one.taken.step}{triggers_text(one.taken)}: "
    for n, line in enumerate(labelled(COMPACTION, title + flow_text(one), width, tab=2)):
        yield paint("head", line) if not n else line
    for label, text in taken_facts(one.taken, names):
        yield from labelled(label, text, width, indent=2, tab=9)
    if one.unread:
        text = unread_text(one.unread)
        yield from labelled("unread", text, width, indent=2, tab=9)
    if not one.is_summary_read:
        yield from labelled("summary", UNREAD_SUMMARY, width, indent=2, tab=9)
    if not one.facts:
        return
    yield ""
    columns = (Column("of what went"), *(Column(title, right=True) for _, title in places_of(one)))
    listed = table(columns, list(_rows(one)), width - 2)
    for n, line in enumerate([*listed.head, *(line for lines in listed.rows for line in lines)]):
        yield "  " + (paint("dim", line) if listed.head and not n else line)
    for kind in KINDS:
        yield from _gone(one, kind, width, names.directory, everything=everything)


def unread_text(items: int) -> str:
    """That items are recorded without their text, and what follows."""
    whose = "its" if items == 1 else "their"
    return f"{plural(items, 'item')} without a recorded text: {whose} content is not known"


def flow_text(one: Compaction) -> str:
    """How much went, and how large a summary came."""
    taken = one.taken
    if not taken.items:
        return unshown(taken.named)
    text = f"{plural(taken.items, 'item')}, {plural(taken.tokens, 'token')} went"
    if not one.summary:
        return f"{text}; no summary is recorded"
    if not one.is_summary_read:
        return f"{text}; a summary without a text came"
    return f"{text}; a summary of {plural(one.summary_tokens, 'token')} came"


def places_of(one: Compaction) -> tuple[tuple[str, str], ...]:
    """Where things of a compaction may stand, and how that is called."""
    return _PLACES if one.is_summary_read else _UNREAD


def _rows(one: Compaction) -> Iterator[tuple[str, ...]]:
    for kind in KINDS:
        if facts := one.of(kind):
            counts = (number(len(one.of(kind, place))) for place, _ in places_of(one))
            more = one.unsought.get(kind)
            name = f"{number(len(facts))} {noun(len(facts), 'open task' if kind == 'task' else kind)}"
            yield (name + (f" (and {number(more)} not looked for)" if more else ""), *counts)


def _gone(
    one: Compaction, kind: str, width: int, directory: str | None, *, everything: bool
) -> Iterator[str]:
    """What of a kind stands nowhere, and what only came back later."""
    for place, title in places_of(one)[1:]:
        facts = one.of(kind, place)
        if not facts:
            continue
        label = f"{noun(len(facts), 'open task' if kind == 'task' else kind)} {title}"
        yield f"  {label}"
        shown = facts if everything else facts[:_LISTED]
        for fact in shown:
            yield f"    {_line(fact, width - 4, directory)}"
        if len(facts) > len(shown):
            yield f"    and {number(len(facts) - len(shown))} more (--all)"


def _line(one: Handed, width: int, directory: str | None) -> str:
    notes = [f"{number(one.mentions)} times"] if one.mentions > 1 else []
    if one.turn is not None:
        notes.append(f"again at {one.turn}.{one.step}")
    end = f"  ({', '.join(notes)})" if notes else ""
    room = max(20, min(width, 400) - cells(end))
    if one.fact.kind == "path":
        return fitted(visible(local(one.fact.text, directory)), room) + end
    return preview(one.fact.text, room) + end


def to_json(one: Compaction) -> dict[str, Any]:
    """One compaction as a line of JSON."""
    taken = one.taken
    return {
        "type": "compaction",
        "session": one.session,
        "thread": one.thread,
        "turn": taken.turn,
        "step": taken.step,
        "triggers": list(taken.triggers),
        "items": taken.items,
        "tokens": taken.tokens,
        "by_kind": [{"kind": kind, "items": items, "tokens": tokens} for kind, items, tokens in taken.kinds],
        "largest": [item._asdict() for item in taken.largest],
        "summary": list(one.summary),
        "summary_tokens": one.summary_tokens if one.summary and one.is_summary_read else None,
        "without_text": one.unread,
        "facts": [
            {
                "kind": handed.fact.kind, "text": handed.fact.text, "mentions": handed.mentions,
                "where": handed.where, "turn": handed.turn, "step": handed.step,
            }
            for handed in one.facts
        ],
        "not_looked_for": dict(one.unsought),
    }  # fmt: skip
