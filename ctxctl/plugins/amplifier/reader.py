"""Reads Amplifier's event logs: the turns, tool calls and answers of each session."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from ctxctl.ingest.build import Json, canonical, digest_of
from ctxctl.ingest.conversation import Conversation
from ctxctl.ingest.lines import Line, Report
from ctxctl.ingest.parents import Kinship, Lineage, circle
from ctxctl.ingest.parts import Part, call_title, string
from ctxctl.ingest.run import Run
from ctxctl.model import vocab
from ctxctl.model.problem import Problem
from ctxctl.plugins.amplifier import detection, parts
from ctxctl.plugins.amplifier.parts import plain_text
from ctxctl.plugins.amplifier.records import Record, body, distinct_records, record, reported_usage
from ctxctl.plugins.amplifier.requests import Requests
from ctxctl.plugins.amplifier.transcript import NAME, Transcript, TranscriptBeside
from ctxctl.trace.source import Source

if TYPE_CHECKING:
    from ctxctl.providers.dialects.base import Dialect


class Session(Requests):
    """The state of one session while its log is read."""

    def turn(self, text: Any, line: int) -> None:
        """A person's prompt begins a turn."""
        self.turns += 1
        self.submitted = True
        self.conversation.turn = f"turn-{self.turns}"
        self.stage = "idle"
        self.settle()
        self.waiting.append(parts.prompt_part(parts.plain_text(text), line))

    def call(self, found: Record) -> None:
        """A tool is about to run; loops that log no content blocks tell of the call here alone."""
        name = string(found.field("tool_name")) or "tool"
        key = string(found.data.get("tool_call_id"))
        if self.replied or (key is None and self.said) or (key is not None and key in self.calls):
            return
        if key is not None:
            self.calls[key] = len(self.calls)
        self.waiting.append(parts.call_part(key, name, found.data.get("tool_input"), found.line.number))

    def result(self, found: Record) -> None:
        """A tool has run; results join in the order of their calls, whichever finished first."""
        given = found.field("result")
        if given is None:
            given = found.field("error")
        key = string(found.data.get("tool_call_id")) or self._answered_call(found)
        structured = not isinstance(given, str)
        part = parts.result_part(key, None, given, found.line.number, derived=structured)
        part.title = call_title(string(found.field("tool_name")) or "tool", found.data.get("tool_input"))
        order = self.calls.get(key, len(self.calls)) if key is not None else len(self.calls)
        self.results.append((order, part))
        if part.item:
            self.stored[part.item] = parts.stored_results(given)
        self._delegated(key, found)

    def _answered_call(self, found: Record) -> str | None:
        """The call that a result is of where the loop names none: the first of its words without a result."""
        name, given = string(found.field("tool_name")), found.data.get("tool_input")
        wanted = name, canonical(given)
        for part in self.waiting:
            waits = part.kind == "tool_call" and part.item and f"{part.item}/result" not in self.stored
            if waits and part.text is not None and parts.call_spelling(part.text) == wanted:
                return part.item
        return None

    def _delegated(self, key: str | None, found: Record) -> None:
        given, asked = found.field("result"), found.data.get("tool_input")
        output = given.get("output") if isinstance(given, dict) else None
        child = string(output.get("session_id")) if isinstance(output, dict) else None
        if child is not None and key is not None:
            self.children[child] = (key, string(asked.get("agent")) if isinstance(asked, dict) else None)

    # -- answers -----------------------------------------------------------------------------------------

    def answered(self, found: Record) -> None:
        """The provider's answer: its usage, and its text where the log holds it."""
        if self.stage == "idle" or self.responded:
            self.request(found, None)
        sent = body(found)
        model = string(found.field("model")) or self.model
        if not self.billed:
            own, told = _own_bill(sent, model), self._reported(found.field("usage"), model)
            if own is not None and told is not None and "stated_usd" in told:
                own.setdefault("stated_usd", told["stated_usd"])
            self._bill(own or told, found)
        if found.field("status") != "error" and not found.field("error"):
            self.stage = "answered"
            self.responded = True
            dialects = _dialect(sent)
            if dialects is not None and sent is not None and not self.said:
                self._reply(dialects.reply(sent), found)

    def raw_answer(self, found: Record) -> None:
        """The provider's answer in an event of its own, beside `llm:response`."""
        sent = body(found)
        dialects = _dialect(sent)
        if self.stage != "idle" and not self.replied and not self.said and dialects and sent:
            self._reply(dialects.reply(sent), found)

    def block(self, found: Record) -> None:
        """A content block as the loop tells it; usage is repeated on each one."""
        if self.stage == "idle":
            self.request(found, None)
        self.stage = "answered"
        if not self.billed:
            self._bill(self._reported(found.field("usage"), self.model), found)
        one = found.data.get("block")
        if isinstance(one, dict) and not self.replied:
            part = parts.block_part(one, found.line.number)
            if part is not None:
                self.said = True
                self._add(part)

    def loop_answer(self, found: Record) -> None:
        """The loop's own record of an answer, with the usage in print."""
        if self.stage == "idle":
            self.request(found, None)
        self.stage = "answered"
        if not self.billed:
            self._bill(self._reported(found.field("usage"), self.model), found)

    def completed(self, found: Record) -> None:
        """The turn's last answer, where nothing else holds its text."""
        text = string(found.data.get("response"))
        preview = string(found.data.get("response_preview"))
        if text is None and preview is not None and found.data.get("length") == len(preview):
            text = preview
        said = any(part.kind == "assistant_message" for part in self.waiting)
        if text is not None and not said and not self.replied:
            self.say(Part("assistant_message", text, "assistant", line=found.line.number))

    def _reported(self, usage: Any, model: str | None) -> Json | None:
        return reported_usage(usage, self.provider, model)

    def _bill(self, record: Json | None, found: Record) -> None:
        if record is not None:
            self.billed = True
            self.told.usage(record, line=found.line.number)

    def _reply(self, made: list[Part], found: Record) -> None:
        for part in parts.parts_with_reminders(made, self.origins.of):
            part.line = found.line.number
            self._add(part)
        self.replied = True

    def _add(self, part: Part) -> None:
        if self.told is not self.conversation:
            return
        if part.kind == "tool_call" and part.item:
            self.calls[part.item] = len(self.calls)
        self.waiting.append(part)

    def finish(self) -> None:
        """The log ends: the last answer is known, and no request carried it."""
        self.seal()
        self.settle()
        self.read_script()
        self.conversation.append(*self.waiting)
        self.waiting.clear()


def _dialect(sent: Json | None) -> Dialect | None:
    """The API that a response's body speaks; None if the log holds none, or one that nobody knows."""
    if sent is None:
        return None
    # The dialects are slow to import, and many logs hold no body.
    from ctxctl.providers import dialects

    return dialects.of_response(sent)


def _own_bill(sent: Json | None, model: str | None) -> Json | None:
    """The provider's own bill in its own words: no convention of Amplifier's can shift it."""
    dialects = _dialect(sent)
    return dialects.usage(sent, model) if dialects is not None and sent is not None else None


_HEAD: Final = 64 * 1024
_JOINS: Final = ("llm:request:raw", "llm:request:debug")
"""Events that belong to the request announced before them."""
_Handler = Callable[[Session, Record], None]


class Log(Run):
    """One import of one or more logs."""

    def __init__(self, report: Report) -> None:
        super().__init__(NAME, report, "amp")
        self.sessions: dict[str | None, Session] = {}
        self.scripts: dict[str | None, TranscriptBeside | None] = {}
        """Transcripts that fill in what the logs do not say, by session."""
        self.lineage: Lineage[str] = Lineage()
        """Which session set which one off."""
        self._roots: dict[str | None, str | None] = {}
        self._threads: dict[str | None, str | None] = {}
        self._last: str | None = None
        self._handlers: dict[str, _Handler] = {
            "prompt:submit": lambda s, r: s.turn(r.data.get("prompt"), r.line.number),
            "provider:request": lambda s, r: s.asked(r),
            "llm:request": self._request,
            "llm:request:raw": self._raw_request,
            "llm:request:debug": self._raw_request,
            "llm:response": lambda s, r: s.answered(r),
            "llm:response:raw": lambda s, r: s.raw_answer(r),
            "provider:response": lambda s, r: s.loop_answer(r),
            "content_block:end": lambda s, r: s.block(r),
            "prompt:complete": lambda s, r: s.completed(r),
            "tool:pre": lambda s, r: s.call(r),
            "tool:post": lambda s, r: s.result(r),
            "tool:error": lambda s, r: s.result(r),
            "mentions:resolved": self._mentions,
            "context:compaction": lambda s, r: s.compacted(s.counters.read(r.data, r.line.number)),
            "context:pre_compact": self._announced,
            "context:post_compact": lambda s, r: s.compacted(s.counters.completed(r.data, r.line.number)),
            "context:budget": lambda s, r: s.budget(r.data),
            "context:tool_result_ingress_truncated": lambda s, r: s.ingress(r.data, r.line.number),
            "context:include": self._include,
            "context:clear": lambda s, r: s.clear(r.data),
            "context:cleared": lambda s, r: s.clear(r.data),
            "clear": lambda s, r: s.clear(r.data),
            "orchestrator:steering_injected": self._steered,
        }

    def events(self, source: Source) -> Iterator[Json]:
        """Yield the events of everything in one log."""
        yield from self.read(self.of(source))
        yield from self.end()

    def of(self, source: Source, file: str | None = None) -> Iterator[Record]:
        """The records of a log that tell of its context; what is no event is reported.

        `file`: the log's name, where it is one of several.
        """
        self.make.file = file
        for value in self.records(source):
            event = string(value.get("event")) or string(value.get("type"))
            schema = value.get("schema")
            if isinstance(schema, dict):
                self.understood.version(schema.get("ver"), self.line.number, self.line.offset)
            if event is None:
                self.problem("unknown-record", "not an event: neither `event` nor `type`; skipped")
            elif self.met(event) and event in self._handlers:
                yield record(event, value, self.line, file)
                # Another file may have been read meanwhile.
                self.make.file = file

    def read(self, records: Iterable[Record]) -> Iterator[Json]:
        """The events of records in order, each once; copies are left out."""
        for found in distinct_records(records):
            self.take(found)
            if self.out:
                yield from self.drain()

    def take(self, found: Record) -> None:
        """One record of an event that is read."""
        session = self._session(found)
        if session.held is not None and found.event not in _JOINS:
            session.seal()
        self.line = found.line
        self.make.file = found.file
        self.make.at(found.time)
        self._handlers[found.event](session, found)

    def end(self) -> Iterator[Json]:
        """The last answers, and what no request has carried."""
        for session in self.sessions.values():
            session.finish()
        yield from self.finish()

    # -- sessions ----------------------------------------------------------------------------------------

    def _session(self, found: Record) -> Session:
        name = found.session if found.session is not None else self._last
        self._last = name
        known = self.sessions.get(name)
        if known is None:
            known = self.sessions[name] = self._open(name, found.parent, found.line)
        return known

    def _open(self, name: str | None, parent: str | None, line: Line) -> Session:
        """A session of its own, or, where the one that set it off is here too, a thread of that one."""
        origin: Json = {}
        root, thread = name, None
        if name is not None:
            if name not in self.lineage:
                self.descends(name, parent, line)
            parent = self.lineage.parent(name)
        above = self.sessions.get(parent) if parent is not None else None
        if above is not None and name is not None:
            root, thread = self._roots[parent], name
            origin["parent_thread"] = self._threads[parent] or vocab.MAIN_THREAD
            call, agent = above.children.get(name, (None, None))
            if call is not None:
                origin["parent_tool_call"] = call
            agent = agent or name.rpartition("_")[2]
            if agent != name:
                origin["agent_type"] = agent
        self._roots[name], self._threads[name] = root, thread
        aside = f"{thread or vocab.MAIN_THREAD}/internal"
        here: Json = {"parent_thread": thread or vocab.MAIN_THREAD}
        made = self._conversation(root, thread, origin)
        return Session(made, lambda: self._conversation(root, aside, here), self.scripts.get(name))

    def descends(self, name: str, parent: str | None, line: Line, place: str = "") -> None:
        """Take in which session set one off; a circle is told and its last session is none's child.

        `place`: the folder of the session, where it is one of several.
        """
        if self.lineage.enter(name, parent) is Kinship.CIRCLE and parent is not None:
            where = "" if not place else f"{place}: "
            names = f"{where}session {name}", f"session {parent}"
            self.report(circle(line.number, line.offset, *names, "be one of its own"))

    def _conversation(self, root: str | None, thread: str | None, origin: Json) -> Conversation:
        self.session = root
        return self.thread(thread, origin=origin)

    # -- events ------------------------------------------------------------------------------------------

    def _request(self, session: Session, found: Record) -> None:
        session.held = found, body(found)

    def _raw_request(self, session: Session, found: Record) -> None:
        """The request's body in an event of its own; the one for debugging holds shortened texts."""
        sent = body(found) if found.event == "llm:request:raw" else None
        if session.held is None:
            session.held = found, sent
        elif session.held[1] is None:
            session.held = session.held[0], sent

    def _mentions(self, session: Session, found: Record) -> None:
        session.mentioned(found.data)
        for row in session.origins.failed:
            mention, reason = string(row.get("mention")) or "?", string(row.get("reason"))
            self._missing(session, mention, reason)
        session.origins.failed.clear()

    def _missing(self, session: Session, mention: str, reason: str | None) -> None:
        session.conversation.tell(
            vocab.MISSING_DETECTED,
            {
                "scope": "session",
                "missing_id": f"mention-{digest_of(mention)[:12]}",
                "question": f"{mention}: {reason}" if reason else mention,
                "severity": "info",
                "status": "open",
            },
            line=self.line.number,
        )

    def _announced(self, session: Session, found: Record) -> None:
        session.counters.announced(found.data)
        native = {k: v for k, v in found.data.items() if k not in ("parent_id", "timestamp")}
        session.conversation.tell(
            vocab.COMPACTION_STARTED,
            {
                "compaction_id": f"started-{found.line.number}",
                "scope": "session",
                "source_item_refs": [],
                "method": "custom",
                "metadata": {"native": native},
            },
            line=found.line.number,
        )

    def _include(self, session: Session, found: Record) -> None:
        source = string(found.data.get("source"))
        text = found.data.get("content")
        key = f"include:{source}" if source is not None else None
        shown = None if text is None else plain_text(text)
        session.say(
            Part("external_resource", shown, "user", source=key, title=source, line=found.line.number)
        )

    def _steered(self, session: Session, found: Record) -> None:
        session.say(
            Part("user_message", plain_text(found.data.get("content")), "user", line=found.line.number)
        )


def read(source: Source, report: Report) -> Iterator[Json]:
    """The file's events: of a log, each request with its window, usage, budget and compactions; streams."""
    head = source.read(0, _HEAD)
    if detection.metadata_score(head):
        message = "the card of a session; what models saw is in the files beside it: open the directory"
        report(Problem(1, 0, "no-model-calls", message))
        return iter(())
    if detection.log_score(head) < detection.transcript_score(head):
        return Transcript(report).events(source)
    return Log(report).events(source)
