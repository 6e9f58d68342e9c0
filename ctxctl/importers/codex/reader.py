"""Reads a rollout line by line into one thread's requests, and tells what each was billed.

A request ends where the model's answer begins: everything before it was sent.  What the model made until the
next tool output, message or count of tokens is that answer.  A `token_count` whose total grew without any
answer logged (older versions log it first; a compaction logs none) is a request too.  Codex repeats the
event (after rate-limit news, at the start of a turn, after a compaction, on resume), so only one whose
running total changed stands for a request.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from ctxctl.importers.codex import texts
from ctxctl.importers.codex.forks import (
    CircularForkError,
    Fork,
    ForkBase,
    base_of,
    calls_plan_tool,
    copied_part,
    inherited,
)
from ctxctl.importers.codex.history import History
from ctxctl.importers.codex.parts import ItemReader, ReadItem, tools
from ctxctl.ingest.build import Json, Place
from ctxctl.ingest.checkpoint import checkpoint_of
from ctxctl.ingest.lines import Report
from ctxctl.ingest.parents import circle
from ctxctl.ingest.parts import Part, count, string
from ctxctl.ingest.run import Run
from ctxctl.model import vocab
from ctxctl.providers.usage import usage_record
from ctxctl.trace.source import Source

NAME: Final = "codex"
_ITEM_TYPES: Final = frozenset(
    {"message", "reasoning", "function_call", "function_call_output", "custom_tool_call",
     "custom_tool_call_output", "local_shell_call", "web_search_call"}
)  # fmt: skip
"""Types of items that stand bare on a line of the oldest rollouts."""
_NESTED: Final = ("event_msg", "response_item")
"""Types of records that name another type inside."""
_DISPLAY: Final = re.compile(
    rb'\{"timestamp":"[^"]*",(?:"ordinal":\d+,)?"type":"event_msg","payload":\{"type":"(?:agent_message|'
    rb"agent_reasoning|user_message|exec_command_end|patch_apply_end|mcp_tool_call_end|web_search_end|"
    rb"context_compacted|view_image_tool_call|item_completed|image_generation_end|"
    rb'dynamic_tool_call_response)"'
)
"""Types of events that a rollout with items can do without."""


class Rollout(Run):
    """One rollout: one thread of one session."""

    def __init__(self, name: str, report: Report) -> None:
        super().__init__(name, report)
        self._items = ItemReader()
        self._counts = Counts()
        self._fork: Fork | None = None
        self._source: Source | None = None
        self._known: History | None = None
        self._origin: Json | None = None
        self._met = False
        """Whether a `session_meta` was read."""
        self._model: str | None = None
        self._provider: str | None = None
        self._limit: int | None = None
        self._instructions: Part | None = None
        self._tools: list[Part] = []
        self._head_in_history: frozenset[str] = frozenset()
        """Which parts of the head were in the history itself when it was last set."""
        self._pending_head: list[Part] | None = None
        """The head, as long as the first request is still to come."""
        self._pending_instructions: dict[str, Part] = {}
        """Instructions that stand in metadata only, kept until a message is found that carries them."""
        self._answering = False
        self._counted = True
        """Whether the last request's bill is known, or there was none."""
        self._is_bare = False
        """Whether the last bill is of a request without an answer in the log, such as a compaction's."""
        self._unbilled: list[Place] = []
        """The places of the requests since the last bill that were stopped and got no bill."""
        self._inheriting = False
        """Whether the lines that are read are another rollout's, whose history this one begins with."""
        self._held_from: int | None = None
        """The index where the events of the request after a stopped one begin: they wait for the bill of the
        stopped one."""
        self._plan_tool_used: bool | None = None
        """Whether the model called Codex' tool for plans; None where nobody has looked."""
        self._recorded = False
        """Whether each request's bill is a record of its own, so that running totals stand for no request."""
        self._native_turns = False
        self._turns = 0
        self._asked = 0
        """The number of requests of the present turn."""
        self._asked_at = Place()
        self._logged = False
        """Whether the rollout holds response items, so that its display events tell nothing new."""
        self._displayed: list[tuple[Part, str]] = []
        """Prompts that were displayed before any item: they wait for the item that may be the same.  Each has
        the time at which it was written."""
        self._route()

    def _route(self) -> None:
        self._types: dict[str, Callable[[Json], None]] = {
            "session_meta": self._session_meta,
            "turn_context": self._turn_context,
            "response_item": self._response_item,
            "event_msg": self._event,
            "compacted": self._compacted,
            "inter_agent_communication": self._mail,
            "token_usage_record": self._usage_record,
            "dynamic_tools_updated": self._tools_updated,
        }

    def events(self, source: Source) -> Iterator[Json]:
        """The rollout's events; bounded by the ids in it, not by its texts."""
        self._source = source
        checkpoint = checkpoint_of(source)
        if checkpoint is not None:
            checkpoint.hand_in("reader", lambda: self)
        for record in self.records(source, self._is_display):
            self._record(record)
            if self.out and self._held_from is None:
                yield from self.drain()
        self._add_displayed()
        self._place_head()
        yield from self.finish()

    def still(self, source: Source) -> bool:
        """Whether the longer file says of itself as a whole what it said before."""
        return self._plan_tool_used is not False or not calls_plan_tool(source)

    def brought(self) -> None:
        """Go on, in another run than the one that began."""
        self._route()

    def _is_display(self, line: bytes) -> bool:
        """Whether a line only shows what items say too, as most do that are long."""
        return self._logged and _DISPLAY.match(line) is not None and line.endswith(b"}}")

    def _record(self, record: Json) -> None:
        time = record.get("timestamp")
        self.make.at(time)
        if self._fork is not None:
            self._fork.line(time, self.line.number, record.get("ordinal"))
        kind = record.get("type")
        payload = record.get("payload")
        inner = payload.get("type") if kind in _NESTED and isinstance(payload, dict) else None
        named = f"{kind}/{inner}" if isinstance(inner, str) else kind
        if not isinstance(named, str) or named not in self.understood.known:
            self.met(named)
        handler = self._types.get(kind) if isinstance(kind, str) else None
        if handler is not None:
            if isinstance(payload, dict):
                handler(payload)
            else:
                self.problem("unknown-record", f"a {kind} record without its payload; skipped")
        elif payload is None:
            self._bare(record, kind)

    def _bare(self, record: Json, kind: Any) -> None:
        """Take a line of the oldest rollouts, or of one that was taken apart."""
        if (isinstance(kind, str) and kind in _ITEM_TYPES) or (kind is None and "role" in record):
            self._response_item(record)
        elif kind is None and "record_type" not in record and string(record.get("id")) is not None:
            self._session_meta(record)

    # -- the session ----------------------------------------------------------------------------------------

    @property
    def _history(self) -> History:
        if self._known is None:
            self._known = History(self.thread(None, origin=self._origin), self.make)
        return self._known

    @property
    def _copying(self) -> bool:
        return self._inheriting or (self._fork is not None and self._fork.copying)

    def _session_meta(self, meta: Json) -> None:
        session = string(meta.get("id")) or string(meta.get("session_id"))
        if not self._met:
            self._met = True
            if self._known is None:
                self.session = session
                self._origin = _origin(meta)
            base = base_of(meta)
            parent = string(meta.get("forked_from_id"))
            if base is not None:
                self._inherit(base)
            elif parent is not None:
                self._begin_copy(parent, meta)
        elif session != self.session:
            # A sub-agent that was given its parent's history brings its parent's record along.
            if self._fork is None and self._origin is not None and not self._history.conversation.steps:
                self._begin_copy(session, {})
            if self._instructions is not None or self._copying:
                return
        self.make.by(meta.get("cli_version"))
        self._provider = string(meta.get("model_provider")) or self._provider
        self._model = self._model or string(meta.get("model"))
        given = meta.get("base_instructions")
        text = string(given.get("text")) if isinstance(given, dict) else string(given)
        origin = given.get("provenance") if isinstance(given, dict) else None
        own = isinstance(origin, dict) and origin.get("type") == "custom"
        self._set_instructions(text, own=own)
        self._set_aside("user_instructions", meta.get("instructions"))
        self._set_tools(meta.get("dynamic_tools"))

    def _begin_copy(self, parent: str | None, meta: Json) -> None:
        """Begin the copy of the parent's history, which goes up to where the two part."""
        until = count(meta.get("subagent_history_start_ordinal"))
        if (checkpoint := checkpoint_of(self._source)) is not None:
            checkpoint.pass_over()  # how far the copy goes, the whole file is asked for
        told = copied_part(self._source, parent) if self._source is not None and until is None else None
        self._fork = Fork(self.session, told, until=until)
        self._fork.line(meta.get("timestamp"), self.line.number, 0)

    def _inherit(self, base: ForkBase) -> None:
        """Read the history that this rollout begins with, which stands in another rollout only."""
        own, make = self.line, self.make
        self._inheriting = True
        try:
            path = self._source.path if self._source is not None else None
            for file, line, record in inherited(path, base, self.report):
                make.file, self.line = file, line
                self._record(record)
        except CircularForkError as again:
            self.line, make.file = own, None
            instead = "begin without that history"
            self.report(circle(own.number, own.offset, again.rollout, again.named, instead))
        except LookupError as missing:
            self.line, make.file = own, None
            self.problem(
                "history-elsewhere",
                f"this fork begins with the history of {missing}: the windows shown lack it",
            )
        finally:
            self._inheriting = False
            self.line, make.file = own, None

    def _tools_updated(self, payload: Json) -> None:
        self._set_tools(payload.get("dynamic_tools", payload.get("tools")))

    def _set_tools(self, given: Any) -> None:
        defined = tools(given or [], self.line.number)
        if defined:
            self._tools = defined
            self._set_head()

    def _set_instructions(self, text: str | None, *, own: bool = False) -> None:
        """Set the instructions of a session; `own` ones are a person's instead of the model's, and go out as
        they are."""
        if text is None:
            return
        shorter = None if own else texts.without_plans(text, self.make.client)
        if shorter is not None and self._plans_on():
            shorter = None
        part = Part("system_prompt", shorter or text, "system", key="base_instructions")
        part.line, part.derived = self.line.number, shorter is not None
        if self._instructions is None or self._instructions.mark != part.mark:
            self._instructions = part
            self._set_head()

    def _plans_on(self) -> bool:
        if self._plan_tool_used is None:
            self._plan_tool_used = self._source is not None and calls_plan_tool(self._source)
        return self._plan_tool_used

    def _set_head(self) -> None:
        """Set what comes before the history, without what stands in the history too."""
        holds = self._head_in_history = self._history.holds
        parts = list(self._tools) if "tools" not in holds else []
        if self._instructions is not None and "instructions" not in holds:
            parts.append(self._instructions)
        if self._history.conversation.steps or not texts.is_today(self.make.client):
            self._history.head(parts)
        else:
            self._pending_head = parts

    def _see_head(self) -> None:
        if self._head_in_history != self._history.holds:
            self._set_head()

    def _place_head(self) -> None:
        """Put the head before the history; it waited for the first request, as the history may bring it
        itself."""
        if self._pending_head is not None:
            self._history.head(self._pending_head)
            self._pending_head = None

    def _set_aside(self, name: str, text: Any) -> None:
        if isinstance(text, str) and text.strip() and name not in self._pending_instructions:
            kind = "durable_memory" if name == "user_instructions" else "developer_instruction"
            role = "user" if name == "user_instructions" else "developer"
            self._pending_instructions[name] = Part(
                kind, text, role, key=name, title=name, derived=True, line=self.line.number
            )

    def _turn_context(self, context: Json) -> None:
        self._items.policy = context.get("truncation_policy")
        self._model = string(context.get("model")) or self._model
        self._set_instructions(string(context.get("base_instructions")))
        for name in ("user_instructions", "developer_instructions"):
            self._set_aside(name, context.get(name))
        self._native_turn(context.get("turn_id"))

    def _native_turn(self, turn: Any) -> None:
        if not isinstance(turn, str) or not turn:
            return
        if self._fork is not None:
            self._fork.turn(turn)
        conversation = self._history.conversation
        if not self._copying and conversation.turn != turn:
            self._native_turns = True
            conversation.turn = turn
            self._asked = 0
            self._items.leave()

    # -- items ----------------------------------------------------------------------------------------------

    def _response_item(self, item: Json) -> None:
        self._logged = True
        read = self._items.read(item, self.line.number)
        for part in read.parts if self._displayed else ():
            same = (
                at
                for at, (shown, _) in enumerate(self._displayed)
                if (shown.kind, shown.mark) == (part.kind, part.mark)
            )
            at = next(same, None)
            if at is not None:
                del self._displayed[at]
        if read.parts:
            self._take(read)

    def _mail(self, mail: Json) -> None:
        """Take what another agent said, of versions that do not log it as an item."""
        self._logged = True
        self._take(self._items.mail(mail, self.line.number))

    def _take(self, read: ReadItem) -> None:
        if read.answer:
            self._add_displayed()
        if self._copying:
            self._history.add(read)
            self._see_head()
            self._settle(read)
            return
        if read.answer:
            self._is_bare = False
            if not self._answering:
                self._request()
        else:
            self._answering = False
            self._settle(read)
            if read.prompt:
                self._prompted()
        self._history.add(read)
        self._see_head()

    def _settle(self, read: ReadItem) -> None:
        """Drop the instructions of the metadata once a message carries them."""
        if self._pending_instructions and not self._asked:
            for part in read.parts:
                if part.kind == "durable_memory":
                    self._pending_instructions.pop("user_instructions", None)
                elif part.kind == "developer_instruction":
                    self._pending_instructions.pop("developer_instructions", None)

    def _prompted(self) -> None:
        """Begin a turn with a prompt, where the rollout does not name turns itself."""
        conversation = self._history.conversation
        if not self._native_turns and (conversation.turn is None or self._asked):
            self._turns += 1
            self._asked = 0
            conversation.turn = f"turn-{self._turns}"
            self._items.leave()

    def _request(self, **marks: Any) -> None:
        self._add_displayed()
        history = self._history
        if history.conversation.steps == 0 and self._pending_instructions:
            history.before_all(list(self._pending_instructions.values()))
        self._place_head()
        history.fill(self._items.unanswered())
        if self._limit is not None:
            budget = {
                "budget_id": "model_context_window",
                "target": vocab.MODEL,
                "max_tokens": self._limit,
            }
            history.conversation.tell(vocab.BUDGET_APPLIED, budget, line=self.line.number)
        self._held_from = None
        if not self._counted:
            self._unbilled.append(self._asked_at)
            self._held_from = len(self.out) if len(self._unbilled) == 1 else None
        self._asked_at = history.conversation.request(line=self.line.number, model=self._model, **marks)
        self._answering = True
        self._counted = False
        self._asked += 1

    # -- events ---------------------------------------------------------------------------------------------

    def _event(self, event: Json) -> None:
        kind = event.get("type")
        if kind == "token_count":
            self._token_count(event.get("info"))
        elif kind in ("task_started", "turn_started"):
            self._window(event.get("model_context_window"))
            self._native_turn(event.get("turn_id"))
            self._answering = False
        elif kind in ("task_complete", "turn_complete", "turn_aborted"):
            self._answering = False
        elif kind == "thread_rolled_back":
            self._add_displayed()
            self._answering = False
            self._history.roll_back(count(event.get("num_turns")) or 0)
        elif not self._logged:
            self._display(event, kind)

    def _window(self, limit: Any) -> None:
        self._limit = count(limit) or self._limit

    def _token_count(self, info: Any) -> None:
        if isinstance(info, dict):
            self._window(info.get("model_context_window"))
        record = self._counts.read(info, self._model, self._provider)
        if record is not None and not self._copying and not self._recorded:
            self._billed(record)

    def _usage_record(self, payload: Json) -> None:
        """Take the bill of one request, behind its answer if that is an item; a compaction's is left out."""
        if self._copying or string(payload.get("thread_id")) not in (None, self.session):
            return
        self._recorded = True
        record = recorded_usage(payload, self._model, self._provider)
        if record is not None:
            self._counts.unlogged = None
            self._billed(record)

    def _billed(self, record: Json) -> None:
        self._is_bare = self._counted
        if self._counted:
            self._request(derived=True)
        conversation = self._history.conversation
        rest = self._counts.unlogged
        if rest is not None and len(self._unbilled) == 1:
            # The total holds a stopped request too, whose own count was never logged.
            rest["metadata"] = {"ctxctl": {"derived": True}}
            conversation.usage(rest, line=self.line.number, place=self._unbilled[0])
            self.out.insert(len(self.out) - 1 if self._held_from is None else self._held_from, self.out.pop())
        self._held_from = None
        self._unbilled.clear()
        self._counted = True
        conversation.usage(record, line=self.line.number)

    def _display(self, event: Json, kind: Any) -> None:
        """Take a display event of a rollout without items, which is all there is of the conversation."""
        text = string(event.get("message")) or string(event.get("text"))
        if text is None or kind not in ("user_message", "agent_message", "agent_reasoning"):
            return
        line = self.line.number
        if kind == "user_message":
            found = texts.of_user(text)
            part = Part(found.kind, text, "user", title=found.title, line=line, derived=True)
            self._answering = False
            self._displayed.append((part, self.make.time))
        else:
            made = "assistant_message" if kind == "agent_message" else "reasoning"
            self._take(ReadItem([Part(made, text, "assistant", line=line, derived=True)], True))

    def _add_displayed(self) -> None:
        """Add the prompts that were only displayed behind the context, as they stand in the request."""
        shown, self._displayed = self._displayed, []
        now = self.make.time
        for part, time in shown:
            self.make.at(time)
            self._take(ReadItem([part], False, part.kind == "user_message"))
        self.make.at(now)

    def _compacted(self, payload: Json) -> None:
        self._add_displayed()
        self._answering = False
        tell = not self._copying
        self._history.compact(payload, self._items, self.line.number, tell=tell, is_logged=self._is_bare)
        self._is_bare = False
        self._see_head()


def _origin(meta: Json) -> Json | None:
    """The thread that started a sub-agent, and the sub-agent's type."""
    source = meta.get("source")
    inner = source.get("subagent") if isinstance(source, dict) else None
    if inner is None and string(meta.get("parent_thread_id")) is None:
        return None
    spawn = inner.get("thread_spawn") if isinstance(inner, dict) else None
    spawn = spawn if isinstance(spawn, dict) else {}
    other = inner.get("other") if isinstance(inner, dict) else inner
    made = {
        "parent_thread": string(meta.get("parent_thread_id")) or string(spawn.get("parent_thread_id")),
        "agent_type": string(meta.get("agent_role")) or string(spawn.get("agent_role")) or string(other)
        or string(meta.get("agent_nickname")),
    }  # fmt: skip
    return {name: value for name, value in made.items() if value is not None} or None


_FIELDS: Final = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens")
_WRITTEN: Final = "cache_write_input_tokens"


class Counts:
    """The running total of a thread."""

    def __init__(self) -> None:
        self._raw: Any = None
        self._total: Json | None = None
        self.unlogged: Json | None = None
        """By how much the total grew beyond the last bill: requests whose own event was never logged."""

    def read(self, info: Any, model: str | None, provider: str | None) -> Json | None:
        """The usage record of the request that an event's `info` tells of for the first time, else None.

        The bill is `last_token_usage`; where that is lacking, by how much the total grew.
        """
        self.unlogged = None
        if not isinstance(info, dict):
            return None
        raw = info.get("total_token_usage")
        if raw is not None and raw == self._raw:
            return None
        self._raw = raw
        total = _numbers(raw)
        last = _numbers(info.get("last_token_usage"))
        if total is None and last is None:
            return None
        before = self._total
        if total is not None:
            self._total = total
            if total == before or not any(total.values()):
                return None
            if last is None:
                last = _grown(total, before)
            elif before is not None and total["input_tokens"] > before["input_tokens"] + last["input_tokens"]:
                rest = _grown(_grown(total, before), last)
                self.unlogged = None if rest is None else _record(rest, model, provider)
        if last is None or not (last["input_tokens"] or last["output_tokens"]):
            return None
        return _record(last, model, provider)


def recorded_usage(payload: Json, model: str | None, provider: str | None) -> Json | None:
    """The usage record of a `token_usage_record` (from about 0.15), which is of one request; None where it
    has no counts."""
    usage = _numbers(payload.get("usage"))
    if usage is None or not (usage["input_tokens"] or usage["output_tokens"]):
        return None
    return _record(usage, model, provider)


def _record(usage: Json, model: str | None, provider: str | None) -> Json | None:
    return usage_record(
        input_tokens=usage["input_tokens"],
        cached=usage.get("cached_input_tokens"),
        cache_write=usage.get(_WRITTEN),
        output_tokens=usage.get("output_tokens"),
        reasoning=usage.get("reasoning_output_tokens"),
        provider=provider,
        model=model,
        bill=usage,
    )


def _numbers(value: Any) -> Json | None:
    """The token counts of a usage object; None for what is none."""
    if not isinstance(value, dict) or count(value.get("input_tokens")) is None:
        return None
    made: Json = {}
    for name in _FIELDS:
        found = value.get(name)
        made[name] = found if type(found) is int and found >= 0 else 0
    if _WRITTEN in value and count(value[_WRITTEN]) is not None:
        made[_WRITTEN] = value[_WRITTEN]
    return made


def _grown(total: Json | None, before: Json | None) -> Json | None:
    """By how much the total grew; None where it became smaller."""
    if before is None or total is None:
        return total
    grown = {name: value - before.get(name, 0) for name, value in total.items()}
    return grown if all(value >= 0 for value in grown.values()) else None
