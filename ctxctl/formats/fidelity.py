"""What a format says about each fact of context assembly: declared by its importer, measured on each import.

A fact is `native` (the capture holds it), `derived` (computed from what it holds), `simulated` (rebuilt
from rules) or `not recorded`.  The declaration says what a format can tell at best; the measurement counts
what one capture told.  Where the capture has something that looks like the fact, and the importer did not
take it, the fact is `not understood`: only a measurement says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any, Final, NamedTuple

from ctxctl.formats.understood import Understood
from ctxctl.model import vocab
from ctxctl.model.vocab import Stage

Json = dict[str, Any]


class Level(StrEnum):
    """How a fact is known, best first."""

    NATIVE = "native"
    DERIVED = "derived"
    SIMULATED = "simulated"
    NOT_RECORDED = "not recorded"
    NOT_UNDERSTOOD = "not understood"


class Fact(NamedTuple):
    """One thing that a capture may or may not tell."""

    name: str
    stage: Stage
    asks: str
    """What it is, as a noun phrase for people."""


FACTS: Final = (
    Fact("candidates", "surface", "what was available before selection"),
    Fact("sources", "surface", "where items come from (files, servers, providers)"),
    Fact("item_ids", "surface", "identity of items"),
    Fact("selected", "selection", "which candidates were kept"),
    Fact("omitted", "selection", "which candidates were left out, and why"),
    Fact("limit", "budget", "the window or input limit"),
    Fact("reserved", "budget", "room kept for the answer"),
    Fact("truncation", "budget", "what was cut or dropped to fit"),
    Fact("system_prompt", "window", "the system prompt"),
    Fact("tool_definitions", "window", "the tool definitions"),
    Fact("messages", "window", "user and assistant messages, tool calls and results"),
    Fact("reasoning", "window", "the text of the model's reasoning"),
    Fact("reminders", "window", "context that the harness injects (reminders, files, notes)"),
    Fact("compaction", "window", "that history was compacted, and what left"),
    Fact("summary", "window", "the text that replaced it"),
    Fact("order", "assembly", "the order of blocks in the request"),
    Fact("wrapper", "assembly", "text and markup around items"),
    Fact("requests", "injection", "where one model request ends and the next begins"),
    Fact("turns", "injection", "which prompt set a request off"),
    Fact("threads", "injection", "which conversation a request belongs to"),
    Fact("model", "injection", "the model that was asked"),
    Fact("times", "injection", "when it happened"),
    Fact("input_tokens", "evidence", "what the provider billed as input"),
    Fact("cached_tokens", "evidence", "how much of it came from the provider's cache"),
    Fact("output_tokens", "evidence", "what it billed as output"),
)
FACT_NAMES: Final = tuple(fact.name for fact in FACTS)


class Claim(NamedTuple):
    """What a format says of one fact at best."""

    level: Level
    note: str = ""
    """When, where or why; one short phrase."""
    beside: tuple[str, ...] = ()
    """Keys that look like the fact and are known to be none: a session's total is no bill of a request.

    Each from the outermost key on, dots between them, lists left out; what stands under it counts too.
    """


class HeldAgainst(NamedTuple):
    """What an importer was held against: whose versions, and which types of records."""

    client: str = ""
    """Whose versions these are: a program or a schema, as people call it."""
    newest: str = ""
    """The newest version of which real captures were read; empty where captures name none."""
    oldest: str = ""
    """The oldest one; empty where nobody noted it."""
    records: frozenset[str] = frozenset()
    """The types of records that the importer knows, those that it passes over on purpose included.

    Empty where records have no type.  `""` stands for a record without one.
    """
    key: str = "type"
    """The key of a record that says its type; empty where the importer tells of types by itself."""


class About(NamedTuple):
    """A format's declaration: what is read, from where, by which rules, and how far it can be trusted."""

    reads: str
    """What a capture of this format is, and which versions or variants are read; a sentence or two."""
    places: tuple[str, ...]
    """Where on disk, or by which command, people find such a capture."""
    turns: str
    """The rule by which turns and steps are told apart."""
    claims: Mapping[str, Claim]
    """By fact name; a fact that is not named is not recorded."""
    limits: tuple[str, ...] = ()
    """What is not read, or read only in part."""
    origin: str = ""
    """Where the facts about the format come from: a project, a specification, a version."""
    held_against: HeldAgainst | None = None
    """What the importer was held against; None where captures have neither versions nor types of records."""

    def claim(self, fact: str) -> Claim:
        """The claim about a fact; `not recorded` where the format makes none."""
        return self.claims.get(fact, _SILENT)


_SILENT = Claim(Level.NOT_RECORDED)


def sentence(limit: str) -> str:
    """A limit as a sentence: declarations also hold fragments."""
    started = limit[:1].upper() + limit[1:]
    return started if started.endswith((".", "!", "?")) else f"{started}."


def native(note: str = "", beside: tuple[str, ...] = ()) -> Claim:
    """The capture holds it."""
    return Claim(Level.NATIVE, note, beside)


def derived(note: str = "", beside: tuple[str, ...] = ()) -> Claim:
    """It is computed from what the capture holds."""
    return Claim(Level.DERIVED, note, beside)


def simulated(note: str = "") -> Claim:
    """It is rebuilt from the runtime's rules."""
    return Claim(Level.SIMULATED, note)


def absent(note: str = "", beside: tuple[str, ...] = ()) -> Claim:
    """The capture does not hold it; the note says what it holds instead, if anything."""
    return Claim(Level.NOT_RECORDED, note, beside)


# -- measuring ------------------------------------------------------------------------------------------

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
IN_USAGE: Final = ("input_tokens", "cached_tokens", "output_tokens")
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
