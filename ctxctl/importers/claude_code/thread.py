"""One conversation of a session, the main one or a sub-agent's, and the events of its steps."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any, Final, NamedTuple

from ctxctl.importers.claude_code import blocks
from ctxctl.importers.claude_code.blocks import Entry
from ctxctl.importers.claude_code.chain import (
    ChainNode,
    ChainPath,
    ChainUnit,
    Compaction,
    LastRequest,
    RequestChange,
)
from ctxctl.importers.claude_code.requests import RecordedRequest, RequestRecords
from ctxctl.ingest import build
from ctxctl.ingest.build import Json, Maker, Place, Window
from ctxctl.ingest.parts import mapping
from ctxctl.model import vocab
from ctxctl.model.billed import fields_of
from ctxctl.providers.usage import hour_writes, miss_cause

_COUNTS = (
    ("input_tokens", "input_tokens"),
    ("cached_tokens", "cache_read_input_tokens"),
    ("cache_write_tokens", "cache_creation_input_tokens"),
)


class Origin(NamedTuple):
    """Where a sub-agent was started."""

    thread: str
    tool_call: str | None = None
    agent: str | None = None
    """Its type, where recorded (`Explore`)."""

    def metadata(self) -> Json:
        """For `metadata.ctxctl` of the thread's first assembly."""
        made: Json = {"parent_thread": self.thread}
        if self.tool_call is not None:
            made["parent_tool_call"] = self.tool_call
        if self.agent is not None:
            made["agent_type"] = self.agent
        return made


class Call:
    """One API call whose lines are still coming: the provider's numbers, merged."""

    __slots__ = (
        "cause", "has_ended", "line", "model", "output", "place", "prompt", "terms", "tier", "time", "told",
        "unit",
    )  # fmt: skip

    def __init__(self, unit: ChainUnit, place: Place, line: int, time: str) -> None:
        self.unit = unit
        self.place = place
        self.line = line
        self.time = time
        self.model: str | None = None
        self.told: Json | None = None
        """The usage of the last line."""
        self.prompt: dict[str, int] = {}
        self.output: int | None = None
        self.has_ended = False
        """A line of it has a `stop_reason`.  Without one, the log (Claude Code 1.0 to 2.1) has the usage from
        the start of the
        answer's stream."""
        self.tier: str | None = None
        self.terms: Json = {}
        """How it was served and what is billed apart, as the last line that tells says."""
        self.cause: str | None = None
        """Why the cache was not read, as the API told the client."""

    def merge(self, message: Json) -> None:
        """Take a line's usage: of the prompt's counts the last that are not all 0, of the output the
        largest."""
        model = message.get("model")
        if isinstance(model, str):
            self.model = model
        self.cause = miss_cause(message) or self.cause
        self.has_ended |= message.get("stop_reason") is not None
        usage = message.get("usage")
        if not isinstance(usage, dict) or usage == self.told:
            return  # each line of a message repeats its usage, and the last ones know more of it
        self.told = usage
        prompt = {name: count for name, key in _COUNTS if (count := _count(usage.get(key))) is not None}
        if not self.prompt or any(prompt.values()):
            self.prompt = prompt
            hour = hour_writes(usage)
            if hour is not None and "cache_write_tokens" in self.prompt:
                self.prompt["cache_write_1h_tokens"] = hour
        output = _count(usage.get("output_tokens"))
        if output is not None and (self.output is None or output > self.output):
            self.output = output
        tier = usage.get("service_tier")
        if isinstance(tier, str):
            self.tier = tier
        self.terms |= fields_of(usage)

    def usage(self) -> Json | None:
        """The record of `ctxctl.usage.reported`; None where the lines hold no usage."""
        if "input_tokens" not in self.prompt:
            return None
        cached = self.prompt.get("cached_tokens")
        written = self.prompt.get("cache_write_tokens")
        made: Json = {
            "provider": "anthropic",
            # The provider's own count leaves out what was read from or written to its cache.
            "input_tokens": self.prompt["input_tokens"] + (cached or 0) + (written or 0),
        }
        for name, value in (
            ("model", self.model),
            ("cached_tokens", cached),
            ("cache_write_tokens", written),
            ("cache_write_1h_tokens", self.prompt.get("cache_write_1h_tokens")),
            ("cache_miss_cause", self.cause),
            ("output_tokens", self.output),
        ):
            if value is not None:
                made[name] = value
        if self.output is not None and not self.has_ended:
            made["output_is_partial"] = True
        made |= self.terms
        if self.tier is not None:
            made["metadata"] = {"native": {"service_tier": self.tier}}
        return made


def _count(value: Any) -> int | None:
    """A token count, or None for what is not one."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else None


class Thread:
    """What an importer knows of one conversation while it reads."""

    def __init__(
        self,
        session: str | None,
        name: str,
        origin: Origin | None,
        lookup: Callable[[str], ChainNode | None],
        elsewhere: Callable[[str], ChainUnit | None],
    ) -> None:
        self.session = session
        self.name = name
        self.origin = origin
        self.path = ChainPath(lookup, self._holder(elsewhere))
        self.window = Window()
        self.view = LastRequest(self.path)
        self.requests: RequestRecords | None = None
        """The records of its requests, in versions that write such."""
        self.messages: dict[str, ChainUnit] = {}
        """The units by message id."""
        self.tools: dict[str, ChainUnit] = {}
        """The units by the tool use ids that they hold."""
        self.titles: dict[str, str | None] = {}
        """The title of each tool call, which its result shares."""
        self.pending: list[Entry] = []
        """The items that no step has announced yet."""
        self.retracted: list[Entry] = []
        self.foreign: set[Entry] = set()
        """The items of other threads that this one has announced as well."""
        self.last: ChainNode | None = None
        """The line read last."""
        self.call: Call | None = None
        self.started = False
        self.billed: int | None = None
        """Tokens of the last input that was billed."""
        self.compacted_at: int | None = None
        """Tokens at which the client first compacts this thread by itself."""
        self._cleared: dict[str, tuple[ChainNode | None, set[str]]] = {}
        """By kind, the node up to which the oldest calls or answers are cleared, and their keys."""
        self.carried = False
        """Whether some of its API calls are billed in another transcript."""
        self._turn: str | None = None
        self._native_turn: str | None = None
        self._turns: dict[str, int] = {}

    def _holder(self, elsewhere: Callable[[str], ChainUnit | None]) -> Callable[[str], ChainUnit | None]:
        return lambda tool: self.tools[tool] if tool in self.tools else elsewhere(tool)

    def brought(
        self, lookup: Callable[[str], ChainNode | None], elsewhere: Callable[[str], ChainUnit | None]
    ) -> None:
        """Go on, in another run than the one that began."""
        self.path.brought(lookup, self._holder(elsewhere))
        if self.requests is not None:
            self.requests.runs.brought()

    def records(self) -> RequestRecords:
        """The records of its requests; what lines hold is held against them from now on."""
        if self.requests is None:
            self.requests = RequestRecords(self, self.pending)
        return self.requests

    def place(self, step: str | None = None) -> Place:
        """The turn, step and thread of an event of this thread now."""
        return Place(self.session, self.name, self._turn if step is not None else None, step)

    def turn_to(self, turn: str | None) -> None:
        """Enter the turn of the next step; None stays in the present one.

        A turn that was left and is taken up again (a retry of an older prompt) is a turn of its own, named
        for the same prompt.
        """
        if turn is None or turn == self._native_turn:
            return
        self._native_turn = turn
        again = self._turns[turn] = self._turns.get(turn, 0) + 1
        self._turn = turn if again == 1 else f"{turn}~{again}"

    def add(self, unit: ChainUnit, entries: list[Entry], time: str, *, tail: bool) -> list[Entry]:
        """Add items to a unit and to what the next step announces; repeats of its own items are left out."""
        target = unit.tail if tail else unit.head
        added = []
        for entry in entries:
            if target and unit.holds_again(entry, tail=tail):
                continue
            entry.home = self
            entry.time = time
            if self.requests is not None:
                self.requests.sent.note(entry)
            target.append(entry)
            self.pending.append(entry)
            added.append(entry)
        if added:
            self.path.grow(unit)
        return added

    def clear(self, leaf: ChainNode | None, message: Json) -> None:
        """Remove what the provider cleared from a request: the oldest tool results, or turns of reasoning."""
        edits = mapping(message.get("context_management")).get("applied_edits")
        for edit in edits if isinstance(edits, list) else ():
            for name, kind in _CLEARED:
                if number := _count(mapping(edit).get(name)):
                    self._clear_oldest(leaf, kind, number)

    def _clear_oldest(self, leaf: ChainNode | None, kind: str, number: int) -> None:
        """Remove the items of a kind that belong to the first `number` calls or answers."""
        last, found = self._cleared.get(kind, (None, set()))
        nodes = self.path.way(leaf, last)
        if nodes[:1] != [last]:
            found = set()
        for node in nodes:
            if (unit := node.unit) is None:
                continue
            for entry in unit.head + unit.tail:
                if kind not in (entry.kind, entry.tool and "tool_result"):
                    continue
                key = entry.tool or unit.key
                if key not in found and len(found) >= number:
                    self._cleared[kind] = node, found
                    return
                found.add(key)
                if not entry.retracted:
                    entry.retracted = True
                    self.retracted.append(entry)
                    self.path.touch(unit)


_CLEARED: Final = (("cleared_tool_uses", "tool_result"), ("cleared_thinking_turns", "reasoning"))
"""The counts of the edits that a provider applied, and the kind of item that each took out."""


_NOTHING: Final = RequestChange([], [], [], [], None)
_TRIGGERS = {"auto": "token_pressure", "manual": "manual"}


class StepWriter:
    """Writes the steps of one import."""

    def __init__(self, make: Maker, out: list[Json]) -> None:
        self._make = make
        self._out = out
        self._reported: set[Compaction] = set()

    def open(
        self,
        thread: Thread,
        unit: ChainUnit,
        parent: ChainNode | None,
        message: Json,
        native: str | None,
        line: int,
        asked: RecordedRequest | None = None,
    ) -> None:
        """Write the step of a new API call whose request ended in `parent`, without its usage, which is still
        to come.

        `asked` is the request's own record, where there is one: then it tells the window, and not the lines.
        """
        self.usage(thread)
        if asked is not None:
            self._unanswered(thread, asked)
        thread.clear(parent, message)
        thread.turn_to(parent.turn if parent is not None else None)
        place = thread.place(unit.key)
        body = asked.body if asked is not None else None
        if body is None and thread.requests is not None:
            body = thread.requests.head(line)
        before = thread.view.blocks() if asked is not None else None
        advance = thread.view.advance(thread.path.advance(parent), before, body)
        retracted = {entry.item for entry in thread.retracted} if thread.retracted else frozenset()
        self._announce(thread, place)
        for entry in advance.fresh:
            if entry.home is not thread and entry not in thread.foreign:
                thread.foreign.add(entry)
                self._emit(vocab.ITEM_ADDED, entry.again(), place, entry.line, entry.time)
        for entry in advance.blanked:
            self._emit(vocab.ITEM_UPDATED, blocks.microcompacted(entry), place, entry.line)
        cause = self._cause(advance, retracted, place, thread.billed)
        call = Call(unit, place, line, self._make.time)
        call.merge(message)
        self._assemble(thread, advance, call, cause, native, asked)
        thread.call = call

    def _unanswered(self, thread: Thread, before: RecordedRequest | None = None) -> None:
        """Write the steps of requests that got no answer: those sent before one that did, or all at the
        end."""
        for asked in thread.requests.unanswered(before) if thread.requests is not None else ():
            if asked.body.messages is None:
                continue
            thread.turn_to(asked.turn)
            place = thread.place(asked.id)
            lines = thread.view.blocks()
            advance = thread.view.advance(_NOTHING, lines, asked.body)
            for entry in advance.fresh:
                self._announce_item(entry, place)
            unit = ChainUnit(asked.id)
            call = Call(unit, place, asked.line, asked.time)
            self._assemble(thread, advance, call, None, None, asked)
            failure = {"error": asked.error or "no answer to this request is recorded"}
            self._emit(vocab.STEP_FAILED, failure, place, asked.line, asked.time)

    def _announce(self, thread: Thread, place: Place) -> None:
        """Announce the items that were recorded since the step before."""
        for entry in thread.pending:
            self._announce_item(entry, place)
        thread.pending.clear()
        for entry in thread.retracted:
            gone = build.opaque_item(entry.item, entry.kind, None, metadata={"cause": "cleared"})
            self._emit(vocab.ITEM_REMOVED, gone, place, entry.line)
        thread.retracted.clear()

    def _announce_item(self, entry: Entry, place: Place) -> None:
        """Announce an item that no step has told yet."""
        if entry.record is not None:
            event_type = vocab.ITEM_UPDATED if entry.updates else vocab.ITEM_ADDED
            made = self._make.event(event_type, entry.record, place, entry.line, time=entry.time)
            self._out.append(made)
            entry.record = None

    def _emit(self, event_type: str, data: Json, place: Place, line: int, time: str | None = None) -> None:
        self._out.append(self._make.event(event_type, data, place, line, time=time))

    def _cause(
        self, advance: RequestChange, retracted: Container[str], place: Place, billed: int | None
    ) -> str | None:
        """Tell a new compaction; otherwise return why the window shrank, and None if it did not."""
        compaction = advance.compaction
        if compaction is not None and compaction not in self._reported:
            self._reported.add(compaction)
            self._compacted(compaction, advance, place, billed)
            return None
        if not advance.removed:
            return None
        return "branched" if any(block.item not in retracted for block in advance.removed) else None

    def _compacted(
        self, compaction: Compaction, advance: RequestChange, place: Place, billed: int | None
    ) -> None:
        inserted = {block.item for edit in advance.edits for block in edit.inserted}
        left = [block.ref for block in advance.removed]
        known = {block.item for block in advance.removed}
        known |= inserted
        left += [ref for item, ref in compaction.pending.items() if item not in known]
        summary = compaction.summary
        meta = compaction.meta
        native = {k: v for k, v in meta.items() if k not in ("preservedMessages", "preservedSegment")}
        trigger = meta.get("trigger")
        before = _count(meta.get("preTokens"))
        marks: Json = {"native": native} if native else {}
        own: Json = {"compacted_at": before} if before and trigger == "auto" else {}
        if summary is not None and not compaction.is_logged:
            own["request"] = {"billed": False, "input_tokens": before or billed or 0}
        if own:
            marks["ctxctl"] = own
        record = self._make.record(
            compaction_id=compaction.native,
            scope="session",
            source_item_refs=left,
            summary_ref=summary.block(set()).ref if summary is not None else None,
            method="abstractive_summary" if summary is not None else "custom",
            trigger=_TRIGGERS.get(trigger, "custom") if isinstance(trigger, str) else None,
            coverage={"items": len(left)},
            metadata=marks or None,
        )
        self._emit(vocab.COMPACTION_COMPLETED, record, place, compaction.line)

    def _assemble(
        self,
        thread: Thread,
        advance: RequestChange,
        call: Call,
        cause: str | None,
        native: str | None,
        asked: RecordedRequest | None = None,
    ) -> None:
        make, place, line = self._make, call.place, call.line
        name = f"asm-{thread.name}-{call.unit.key}"
        origin = thread.origin.metadata() if thread.origin is not None and not thread.started else {}
        if not thread.started and thread.compacted_at is not None:
            origin["compacted_at"] = thread.compacted_at
        thread.started = True
        model, settings = call.model, None
        if asked is not None:
            model, settings = asked.model or model, asked.settings
            origin |= _cache_points(thread, asked)
        assembly = thread.window.assemble(
            make, name, advance.edits, model=model, settings=settings, cause=cause, **origin
        )
        self._emit(vocab.ASSEMBLY_CREATED, assembly, place, line)
        injected = build.injection(
            make,
            f"inj-{thread.name}-{call.unit.key}",
            name,
            "message_history",
            native_id=native,
            model=model,
        )
        self._emit(vocab.INJECTION_APPLIED, injected, place, line)

    def usage(self, thread: Thread) -> None:
        """Report the usage of the thread's open call, whose lines have all come."""
        call = thread.call
        if call is None:
            return
        thread.call = None
        record = call.usage()
        if record is not None:
            thread.billed = record["input_tokens"]
            self._emit(vocab.USAGE_REPORTED, record, call.place, call.line, call.time)
        self._announce_answer(thread, call.unit)

    def _announce_answer(self, thread: Thread, unit: ChainUnit) -> None:
        """Announce a call's answer behind its bill, so that the two can be compared; it enters the next
        request's window."""
        if not thread.pending:
            return
        own = {entry for entry in unit.head if entry.kind in vocab.ANSWERS}
        if not own:
            return
        place, rest = thread.place(), []
        for entry in thread.pending:
            if entry not in own:
                rest.append(entry)
            else:
                self._announce_item(entry, place)
        thread.pending[:] = rest

    def over(self, thread: Thread) -> None:
        """End a sub-agent's thread, so that a watch need not wait for another step of it."""
        if thread.started:
            self._emit(vocab.SESSION_ENDED, {}, thread.place(), 0)

    def finish(self, thread: Thread) -> None:
        """End a thread: announce what its last call answered, and what no request has carried yet."""
        self.usage(thread)
        self._unanswered(thread)
        if thread.carried and not thread.started:
            thread.pending.clear()  # a copy that nothing was added to
        self._announce(thread, thread.place())
        if thread.started and thread.last is not None:
            advance = thread.path.advance(thread.last)
            self._cause(advance, (), thread.place(), thread.billed)


def _cache_points(thread: Thread, asked: RecordedRequest) -> Json:
    """Placements that carry the request's cache markers."""
    found: list[int] = []
    for marker in asked.markers:
        row = None
        match marker.get("path") if isinstance(marker, dict) else None:
            case ["messages", int(at), "content", int(block), *_]:
                row = thread.view.row(at, block)
            case [("system" | "tools") as section, int(at), *_]:
                row = asked.rows.get((section, at))
        if row is not None:
            found.append(row)
    return {"cache_points": found} if found else {}
