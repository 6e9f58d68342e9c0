"""Measures, on each import, how often a capture told each fact of context assembly, and at which level.

What a format can tell at best is declared (`about.About`); the measurement counts what one capture told.
Where the capture has something that looks like the fact, and the importer did not take it, the fact is
`not understood`: only a measurement says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from ctxctl.ingest.about import FACT_NAMES, IN_USAGE, About, Level
from ctxctl.ingest.build import Json
from ctxctl.ingest.understood import Understood
from ctxctl.model import vocab

_OF_KIND: Final = {
    "system_prompt": "system_prompt",
    "developer_instruction": "system_prompt",
    "tool_definition": "tool_definitions",
    "user_message": "messages",
    "assistant_message": "messages",
    "tool_call": "messages",
    "tool_result": "messages",
    "reasoning": "reasoning",
    "thread_summary": "summary",
}
_STANDING: Final = ("system_prompt", "tool_definitions")
"""Facts that every request should have: counted by request, the others by occurrence."""
SOUGHT: Final = ("system_prompt", "tool_definitions", "model", *IN_USAGE)
"""Facts that the file is looked through for, before it is said that they are not recorded."""
_OF_THE_FORMAT: Final = ("threads", "wrapper")
"""Facts that every request of a format tells or none does."""


class Meter:
    """Counts over the events of one import how often each fact was native, derived, simulated or lacking.

    Nothing is counted as better than the format declares it.
    """

    def __init__(self, about: About, understood: Understood | None = None) -> None:
        self.requests = 0
        self._about = about
        self._understood = understood or Understood(about.held_against)
        claims = about.claims
        self._of_the_format = tuple(
            fact for fact in _OF_THE_FORMAT if fact in claims and claims[fact].level is not Level.NOT_RECORDED
        )
        self._counts: dict[str, dict[str, int]] = {}
        self._billed_model = False
        """Whether a bill names its model: then that was taken, be it of no request."""
        self._standing: dict[tuple[str | None, str | None], dict[str, Level]] = {}
        self._unsent: dict[str, dict[tuple[bool, bool], int]] = {}
        """By event type, what was put together or offered: whether it names its turn, and its time."""
        self._handlers: dict[str, Callable[[Json, Json], None]] = {
            vocab.ITEM_ADDED: self._item,
            vocab.ITEM_UPDATED: self._item,
            vocab.SURFACE_CREATED: self._surface,
            vocab.SURFACE_UPDATED: self._surface,
            vocab.SELECTION_COMPLETED: self._selection,
            vocab.BUDGET_APPLIED: self._budget,
            vocab.ASSEMBLY_CREATED: self._assembly,
            vocab.INJECTION_APPLIED: self._injection,
            vocab.COMPACTION_COMPLETED: self._compaction,
            vocab.USAGE_REPORTED: self._usage,
        }

    def see(self, event: Json) -> None:
        """Take one event into account; it is not changed."""
        handler = self._handlers.get(event.get("event_type", ""))
        data = event.get("data")
        if handler is not None and isinstance(data, dict):
            handler(event, data)

    def measured(self, not_understood: Iterable[str] = ()) -> dict[str, dict[str, int]]:
        """By fact, in the order of `FACTS`: how often at which level.  Facts never met are left out.

        `system_prompt` and `tool_definitions` are counted by request, usage by request too; the other facts
        by occurrence.  `not recorded` counts the requests that lack a fact which every request has.

        Args:
            not_understood: Facts among `missing` that the file seems to hold nevertheless.
        """
        if not self.requests:
            for known in self._standing.values():
                for fact, level in known.items():
                    self._add(fact, level)
            places = self._unsent.get(vocab.ASSEMBLY_CREATED) or self._unsent.get(vocab.SURFACE_CREATED, {})
            for (turned, timed), times in places.items():
                self._place(turned, timed, times)
        for fact in IN_USAGE:
            told = sum(self._counts.get(fact, {}).values())
            if self.requests > told:
                self._add(fact, Level.NOT_RECORDED, self.requests - told)
        for fact in not_understood:
            levels = self._counts.setdefault(fact, {})
            lacking = levels.pop(Level.NOT_RECORDED.value, 0)
            levels[Level.NOT_UNDERSTOOD.value] = lacking or max(1, self.requests)
        return {fact: self._counts[fact] for fact in FACT_NAMES if fact in self._counts}

    @property
    def empty(self) -> bool:
        """Whether nothing that a request holds was met, and no request."""
        return not (self.requests or self._standing or "messages" in self._counts)

    def missing(self) -> tuple[str, ...]:
        """The facts of `SOUGHT` that no request has.

        Of a capture without requests, those that its format can tell, the messages among them.
        """
        told = {fact for fact, levels in self._counts.items() if set(levels) - {Level.NOT_RECORDED.value}}
        # What was announced anywhere was taken, be it of no request.
        told |= {fact for known in self._standing.values() for fact in known}
        told |= {"model"} if self._billed_model else set()
        if self.requests:
            return tuple(fact for fact in SOUGHT if fact not in told)
        claimed = {
            fact for fact, claim in self._about.claims.items() if claim.level is not Level.NOT_RECORDED
        }
        return tuple(fact for fact in ("messages", *SOUGHT) if fact in claimed - told)

    def beside(self, facts: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """By fact, the keys that its claim knows to be something else."""
        return {fact: self._about.claim(fact).beside for fact in facts}

    def _add(self, fact: str, level: Level, count: int = 1) -> None:
        if level is Level.NATIVE:
            best = self._about.claim(fact).level
            level = level if best is Level.NOT_RECORDED else best
        found = self._counts.setdefault(fact, {})
        found[level.value] = found.get(level.value, 0) + count

    def _item(self, event: Json, data: Json) -> None:
        marks = _marks(data)
        level = _level(marks)
        kind = data.get("context_kind")
        fact = _OF_KIND.get(kind, "reminders") if isinstance(kind, str) else "reminders"
        if data.get("content_mode") == "opaque" and "content" not in data:
            level = Level.NOT_RECORDED
        if fact in _STANDING:
            thread = (event.get("session_id"), event.get("thread_id"))
            self._standing.setdefault(thread, {})[fact] = level
        else:
            self._add(fact, level)
        self._add("item_ids", Level.DERIVED if marks.get("identity") == "derived" else Level.NATIVE)
        if data.get("source_refs"):
            self._add("sources", level if level is not Level.NOT_RECORDED else Level.NATIVE)
        if marks.get("truncated") is True:
            self._add("truncation", level)

    def _surface(self, event: Json, data: Json) -> None:
        self._add("candidates", _level(_marks(data)))
        self._note_place(event)

    def _selection(self, _event: Json, data: Json) -> None:
        level = _level(_marks(data))
        self._add("selected", level)
        if data.get("omitted_items") or data.get("omitted_refs") or data.get("omitted_item_refs"):
            self._add("omitted", level)

    def _budget(self, _event: Json, data: Json) -> None:
        level = _level(_marks(data))
        if any(data.get(name) is not None for name in ("max_tokens", "max_bytes", "max_items")):
            self._add("limit", level)
        if data.get("reserved_tokens") is not None:
            self._add("reserved", level)
        if data.get("truncation_records"):
            self._add("truncation", level)

    def _assembly(self, event: Json, data: Json) -> None:
        if data.get("target", vocab.MODEL) == vocab.MODEL:
            self._add("order", _level(_marks(data)))
            marks = _marks(data)
            if "model" in marks:
                self._add("model", Level.NATIVE)
            if "client_version" in marks:
                self._understood.version(marks["client_version"], _line(event))
            self._note_place(event)

    def _injection(self, event: Json, data: Json) -> None:
        if data.get("target", vocab.MODEL) != vocab.MODEL:
            return
        self.requests += 1
        marks = _marks(data)
        self._add("requests", _level(marks))
        self._place(*_told_place(event), 1, derived=marks.get("turn") == "derived")
        lacks = marks.get("lacks")
        for fact in self._of_the_format:
            lacking = isinstance(lacks, list) and fact in lacks
            self._add(fact, Level.NOT_RECORDED if lacking else Level.NATIVE)
        known = self._standing.get((event.get("session_id"), event.get("thread_id")), {})
        for fact in _STANDING:
            self._add(fact, known.get(fact, Level.NOT_RECORDED))

    def _note_place(self, event: Json) -> None:
        """Remember a place for the case that nothing tells of requests."""
        if not self.requests:
            found = self._unsent.setdefault(event["event_type"], {})
            place = _told_place(event)
            found[place] = found.get(place, 0) + 1

    def _place(self, turned: bool, timed: bool, count: int, *, derived: bool = False) -> None:
        known = Level.DERIVED if derived else Level.NATIVE
        self._add("turns", known if turned else Level.NOT_RECORDED, count)
        self._add("times", Level.NATIVE if timed else Level.NOT_RECORDED, count)

    def _compaction(self, _event: Json, data: Json) -> None:
        self._add("compaction", _level(_marks(data)))
        self._add("summary", Level.NATIVE if data.get("summary_ref") else Level.NOT_RECORDED)

    def _usage(self, _event: Json, data: Json) -> None:
        self._billed_model = self._billed_model or data.get("model") is not None
        for fact in IN_USAGE:
            if data.get(fact) is not None:
                self._add(fact, _level(_marks(data)))


def _line(event: Json) -> int:
    marks = event.get("metadata", {}).get("ctxctl", {})
    line = marks.get("source_line") if isinstance(marks, dict) else None
    return line if isinstance(line, int) else 0


def _told_place(event: Json) -> tuple[bool, bool]:
    return event.get("turn_id") is not None, event.get("time") not in (None, vocab.NO_TIME)


def _marks(data: Json) -> Json:
    metadata = data.get("metadata")
    marks = metadata.get("ctxctl") if isinstance(metadata, dict) else None
    return marks if isinstance(marks, dict) else {}


def _level(marks: Json) -> Level:
    if marks.get("simulated"):
        return Level.SIMULATED
    return Level.DERIVED if marks.get("derived") else Level.NATIVE
