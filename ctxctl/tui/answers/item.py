"""Answers for the item pane: an item's texts, its record, and its life, step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ctxctl.item_names import REF
from ctxctl.model.outline import Life
from ctxctl.session.item_words import names_in_frames
from ctxctl.text import cells, visible
from ctxctl.tui.answers import item_text
from ctxctl.tui.answers.context import AnswerContext
from ctxctl.tui.document import Document
from ctxctl.tui.screens.turns import requests
from ctxctl.tui.screens.turns.state import ItemKey, ItemText
from ctxctl.tui.spans import Spans
from ctxctl.tui.versions import named
from ctxctl.wording import SIGNS, number, plural, progress, signed

if TYPE_CHECKING:
    from ctxctl.tui.answers.context import Answer
    from ctxctl.tui.requests import Request

_MOST: Final = 40
"""Changes named in the first line, at most."""
_FEW: Final = 8
"""Events up to which nothing is to be gained by naming the changes first: all of them are seen."""
_LINES: Final = 5000
"""Lines at most; of a longer life the beginning and the end are shown."""
_STATUS: Final = 9
_DIGITS: Final = 6
"""Cells of the numbers of tokens at least."""


class Event(NamedTuple):
    """A change, or a run of steps (`until`) through which the item stayed as it was."""

    moment: Life
    until: Life | None
    steps: int
    difference: int | None
    """Tokens more than before, of an update."""


def life_events(moments: Sequence[Life]) -> list[Event]:
    """The changes, and between them the steps without one as one event each."""
    found: list[Event] = []
    tokens: int | None = None
    for moment in moments:
        if moment.status == "skipped":
            last = found[-1] if found else None
            if last is not None and last.moment.status == "skipped" and last.moment.version == moment.version:
                found[-1] = last._replace(until=moment, steps=last.steps + 1)
            else:
                found.append(Event(moment, None, 1, None))
            tokens = moment.tokens
            continue
        more = None
        if moment.status == "updated" and tokens is not None and moment.tokens is not None:
            more = moment.tokens - tokens
        found.append(Event(moment, None, 1, more))
        tokens = None if moment.status in ("removed", "omitted") else moment.tokens
    return found


Called = Callable[[int, str], str]
"""What an item is called in the frame of a step, by the step's ordinal and the item's id."""


def _by_id(_ordinal: int, item: str) -> str:
    return item


def life_document(
    moments: Sequence[Life], here: int, *, part: float | None = None, called: Called = _by_id
) -> Document:
    """The timeline, each line leading to its step; `here`: the ordinal of the frame in view; `part`: how much
    of the trace has been looked through, 0 to 1, while it goes on.
    """
    found = life_events(moments)
    made = _TimelineLines()
    changes = [event.moment for event in found if event.moment.status != "skipped"]
    if len(found) > _FEW:
        brief = "  ".join(f"{m.turn}.{m.step}{_sign(m.status)}" for m in changes[:_MOST])
        rest = len(changes) - _MOST
        more = f"  and {number(rest)} more" if rest > 0 else ""
        made.line([(f"{plural(len(changes), 'change')}: {brief}{more}", "strong")])
        made.line([])
    digits = max((cells(_place(event)) for event in found), default=0)
    for event in _kept(found, made):
        _add(made, event, digits, here, called)
    if part is not None:
        made.line([(f"one moment… {progress(part)} of the trace", "remark")])
    elif not found:
        made.line([("No step of this thread has it.", "remark")])
    return made.document()


def _kept(found: list[Event], made: _TimelineLines) -> list[Event]:
    if len(found) <= _LINES:
        return found
    made.line([(f"{number(len(found) - _LINES)} events in the middle are left out", "remark")])
    return found[: _LINES // 2] + found[-_LINES // 2 :]


def _place(event: Event) -> str:
    first, last = event.moment, event.until
    if last is None:
        return f"{first.turn}.{first.step}"
    return f"{first.turn}.{first.step}…{last.turn}.{last.step}"


def _add(made: _TimelineLines, event: Event, digits: int, here: int, called: Called) -> None:
    moment = event.moment
    place = _place(event)
    last = event.until or moment
    current = moment.ordinal <= here <= last.ordinal
    version = ""
    parts = [(place + " " * (digits - cells(place)) + "  ", "strong")]
    if moment.status == "skipped":
        parts.append((f"{SIGNS['skipped']} unchanged in {plural(event.steps, 'step')}", "muted"))
    else:
        sign = _sign(moment.status)
        version = named(moment.version)
        parts.append((f"{sign} {moment.status:<{_STATUS}}", f"sign-{moment.status}"))
        parts.append((f"{number(moment.tokens):>{_DIGITS}}", ""))
        parts.append((f" ({signed(event.difference)})" if event.difference else "", "new"))
        said = _why(moment, called)
        parts.append((f"  {said}" if said else "", ""))
    parts.append(("  ◂ here" if current else "", "mark"))
    parts.append((f"  {version}" if version else "", "muted"))
    made.line(parts, moment.ordinal, digits + _STATUS + _DIGITS + 6)


def _sign(status: str) -> str:
    return next((sign for name, sign in SIGNS.items() if name == status), "?")


def _why(moment: Life, called: Called) -> str:
    said = ": ".join(dict.fromkeys(word for word in (moment.cause, moment.reason) if word))
    into = f" into {called(moment.ordinal, moment.into)}" if moment.into else ""
    return visible(said + into)


class _TimelineLines:
    """Lines being made, with their styles and where they lead."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._spans = Spans()
        self._links: list[int] = []
        self._hangs: list[int] = []
        self._at = 0

    def line(self, parts: Sequence[tuple[str, str]], link: int = -1, hang: int = 0) -> None:
        at = self._at
        for text, style in parts:
            if style:
                self._spans.add(at, at + len(text), style)
            at += len(text)
        self._texts.append("".join(text for text, _ in parts))
        self._links.append(link)
        self._hangs.append(hang)
        self._at = at + 1

    def document(self) -> Document:
        return Document("\n".join(self._texts), spans=self._spans, links=self._links, hangs=self._hangs)


_UPDATE: Final = 0.3
"""Seconds between two tellings of what is known so far."""


def _item(context: AnswerContext, request: requests.ItemRequest) -> ItemText:
    return item_text.item(context.inspector, request.key, context.check)


def _record(context: AnswerContext, request: requests.RecordRequest) -> requests.ItemRecord:
    return requests.ItemRecord(
        request.key, item_text.whole_record(context.inspector, request.key, context.check)
    )


def _life(context: AnswerContext, request: requests.LifeRequest) -> requests.ItemLife:
    moments = _moments(context, request.key, telling=True)
    return requests.ItemLife(
        request.key, life_document(moments, request.key.target.ordinal, called=_called(context))
    )


def _version(context: AnswerContext, request: requests.VersionRequest) -> requests.VersionDiff:
    moments = _moments(context, request.key, telling=False)
    found = item_text.compare_versions(context.inspector, request.key, request.back, moments, context.check)
    return requests.VersionDiff(request.key, found)


def _called(context: AnswerContext) -> Called:
    """Calls a summary by its title or first words."""

    def called(ordinal: int, ref: str) -> str:
        context.check()
        frame = context.inspector.frame(ordinal)
        found = next((p for p in frame.placements if p.item in (ref, ref.rpartition("@")[0])), None)
        if found is None:
            return "a summary"
        return names_in_frames((context.inspector, frame)).of(found.item, found.title, REF)

    return called


def _moments(context: AnswerContext, key: ItemKey, *, telling: bool) -> list[Life]:
    """An item's life in the thread of the frame in view; kept for the next time."""
    step = context.inspector.step(key.target.ordinal)
    name = (key.change.item, step.session, step.thread)
    found: list[Life] = context.kept(("life", *name), lambda: _replayed(context, key, name, telling))
    return found


def _replayed(
    context: AnswerContext, key: ItemKey, name: tuple[str, str | None, str], telling: bool
) -> list[Life]:
    moments: list[Life] = []
    sent_at = monotonic()

    def progress(part: float) -> None:
        nonlocal sent_at
        context.check()
        if telling and monotonic() - sent_at > _UPDATE:
            context.tell(requests.ItemLife(key, life_document(moments, key.target.ordinal, part=part)))
            sent_at = monotonic()

    item_id, session, thread = name
    for moment in context.inspector.moments(item_id, session=session, thread=thread, progress=progress):
        moments.append(moment)
    return moments


ANSWERS: Final[dict[type[Request], Answer[Any]]] = {
    requests.ItemRequest: _item,
    requests.LifeRequest: _life,
    requests.RecordRequest: _record,
    requests.VersionRequest: _version,
}
