"""Why an item is, or is not, in a window: the chain of decisions as plain text and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from ctxctl.item_names import NAMELESS, ItemNames
from ctxctl.model.vocab import MAIN_THREAD
from ctxctl.model.why import Link, Moment, Rest, WhatIf, Why
from ctxctl.report.paint import Paint
from ctxctl.report.tables import wrap
from ctxctl.text import cells, clip, pad, visible
from ctxctl.wording import plural, step_name

_SAYS: Final = {
    "current": "is in the window",
    "stale": "is there only as a stale copy",
    "out": "is not in the window: it was, and has left",
    "omitted": "is not in the window, and never was before",
    "untold": "may be in the window or not: what a compaction left of it is not recorded",
    "available": "is not in the window: it was available, and nothing named it",
    "later": "is not there yet",
    "unread": "is not known to be there: the capture holds it where ctxctl does not read it",
    "unknown": "is in nothing that was recorded",
}
_ROLES: Final = {"current": "added", "stale": "updated"}
_AT: Final = 7
_SENTENCE: Final = 2000
"""Characters of one sentence that are shown; ids and reasons of a trace may be of any length."""


def why_lines(
    why: Why, width: int, paint: Paint, names: ItemNames = NAMELESS, *, ids: bool = False
) -> Iterator[str]:
    """The answer, then the chain: a sentence each, with the line that it rests on; with `ids`, its id too."""
    yield from _head(why, width, paint, names, ids=ids)
    yield ""
    yield from _chain(why.links, width, paint, ids=ids)
    if why.left_out:
        more = f"{why.left_out:,} changes between the first and these are left out; --all lists them"
        yield from (" " * _AT + line for line in wrap(more, width - _AT))


def what_if_lines(found: WhatIf, width: int, paint: Paint, *, ids: bool = False) -> Iterator[str]:
    """What was found by supposing something else."""
    if not found.links:
        return
    yield ""
    by = f" (by {plural(found.replays, 'replay')} of the session)"
    yield paint("head", f"What it costs, and what it would take{by if found.replays else ''}")
    yield from _chain(found.links, width, paint, ids=ids)


def _head(why: Why, width: int, paint: Paint, names: ItemNames, *, ids: bool) -> Iterator[str]:
    name = names.of(why.item, why.title, width)
    of_version = visible(why.item) + (f"@{visible(why.version)}" if why.version else "")
    about = [f"id {of_version}"] if ids and name != of_version else []
    if not ids and why.version:
        about.append(f"version {visible(why.version)}")
    about += [visible(text) for text in (why.kind, why.source) if text]
    if why.tokens:
        about.append(f"{why.tokens:,} tokens")
    yield paint("head", name)
    if about:
        yield from (paint("dim", line) for line in wrap(", ".join(clip(a, 200) for a in about), width))
    if why.sources:
        yield from (paint("dim", line) for line in wrap(f"found {'; '.join(why.sources)}", width))
    where = f"turn {why.turn}" + (f", step {why.step}" if why.step != 1 else "")
    if why.thread != MAIN_THREAD:
        where += f" of thread {visible(why.thread)}"
    target = "" if why.target == "model" else f", for target {visible(why.target)},"
    text = f"At {where}{target} it {_SAYS[why.state]}."
    yield from (paint(_ROLES.get(why.state, "omitted"), line) for line in wrap(text, width))


def _chain(links: Iterable[Link], width: int, paint: Paint, *, ids: bool) -> Iterator[str]:
    before: Moment | None = None
    for link in links:
        same = link.at is not None and link.at == before
        before = link.at
        lead = pad("" if same or link.at is None else place(link.at), _AT)
        sentence = visible(" ".join(link.text.split())[:_SENTENCE])
        if link.event is None:
            sentence += f" ({link.provenance})"
        for line in wrap(sentence, max(20, width - _AT)):
            yield (lead + line).rstrip(" ")
            lead = " " * _AT
        if link.event is not None:
            yield " " * _AT + paint("dim", clip(rests_on(link, link.event, ids=ids), max(20, width - _AT)))


def place(moment: Moment) -> str:
    """A step as short as it can be: `3`, or `3.2`."""
    return step_name(moment.turn, moment.step)


def rests_on(link: Link, event: Rest, *, ids: bool) -> str:
    """What a sentence rests on, and whether it is derived from that or simulated."""
    text = event_text(event, ids=ids)
    return text if link.provenance == "native" else f"{link.provenance} from {text}"


def event_text(event: Rest, *, ids: bool) -> str:
    """An event by its line, of the capture where it is from one; with `ids` by all its lines and its id."""
    parts = [f"line {event.line:,}"] if ids or event.source_line is None else []
    if ids and event.event_id is not None:
        shown = visible(event.event_id)
        parts.append(f"id {shown if cells(shown) <= 60 else clip(shown, 60)}")
    if event.source_line is not None:
        file = f" of {visible(event.source_file)}" if event.source_file else " of the capture"
        parts.append(f"line {event.source_line:,}{file}")
    elif not ids:
        parts[0] += " of the trace"
    return ", ".join(parts)


def to_json(why: Why, supposed: WhatIf | None) -> dict[str, Any]:
    """The `why` line; `what_if` is null where it was not asked for."""
    return {
        "type": "why",
        "item": why.item,
        "version": why.version,
        "kind": why.kind,
        "title": why.title,
        "source": why.source,
        "found": list(why.sources),
        "session": why.session,
        "thread": why.thread,
        "turn": why.turn,
        "step": why.step,
        "target": why.target,
        "state": why.state,
        "present": why.present,
        "tokens": why.tokens,
        "in_window": why.in_window,
        "chain": [_link(link) for link in why.links],
        "left_out": why.left_out,
        "what_if": None
        if supposed is None
        else {"replays": supposed.replays, "chain": [_link(link) for link in supposed.links]},
    }


def _link(link: Link) -> dict[str, Any]:
    at, event = link.at, link.event
    return {
        "stage": link.stage,
        "verdict": link.verdict,
        "text": link.text,
        "turn": at.turn if at is not None else None,
        "step": at.step if at is not None else None,
        "event": None
        if event is None
        else {
            "line": event.line,
            "event_id": event.event_id,
            "event_type": event.event_type,
            "source_line": event.source_line,
            "source_file": event.source_file,
        },
        "numbers": link.numbers,
        "provenance": link.provenance,
    }
