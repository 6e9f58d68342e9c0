"""Reads what plug-ins of opencode log, a JSON array a line, and what `opencode run --format json` prints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ctxctl.importers.opencode.parts import NativePart
from ctxctl.importers.opencode.session import Bounds, Session, time_of
from ctxctl.ingest.build import Json, canonical
from ctxctl.ingest.lines import Report, values
from ctxctl.ingest.parents import Kinship, Lineage, circle, second
from ctxctl.ingest.parts import Part, count, moment, string
from ctxctl.ingest.run import Run
from ctxctl.model import vocab
from ctxctl.trace.source import Source

_NOT_SENT: Final = "invalid"
"""A tool that opencode defines for calls that failed to parse, and never offers."""
_TITLES: Final = "You are a title generator"


class _Message:
    """A message that is being written."""

    __slots__ = ("info", "number", "parts")

    def __init__(self, number: int) -> None:
        self.number = number
        """How many others of its session were mentioned before."""
        self.info: Json = {}
        self.parts: dict[str, NativePart] = {}


class _Thread:
    """What the events of a session have told so far."""

    def __init__(self) -> None:
        self.call: str | None = None
        """The parent's tool call that began it."""
        self.agent: str | None = None
        self.open: dict[str, _Message] = {}
        """The messages that are not taken yet, in order of their first mention."""
        self.ready: set[str] = set()
        """Those of them that have parts."""
        self.done: set[str] = set()
        self.tools: list[Part] = []
        self.prompt: list[Part] = []
        self.fresh = False
        """Whether tools or prompt are to be set before the next request."""
        self.limit: int | None = None
        self.barred: frozenset[str] = frozenset()
        """The tools that the user's message takes from the model."""
        self.session: Session | None = None
        self._mentioned = 0

    def mention(self, native: str) -> _Message:
        """The message under way with that id; a new one where there is none."""
        found = self.open.get(native)
        if found is None:
            found = self.open[native] = _Message(self._mentioned)
            self._mentioned += 1
        return found

    def close(self, native: str) -> _Message | None:
        """Take a message out of those under way."""
        self.ready.discard(native)
        return self.open.pop(native, None)


class Log(Run):
    """Reads a log; holds the messages under way."""

    def __init__(self, name: str, report: Report) -> None:
        super().__init__(name, report)
        self._threads: dict[str, _Thread] = {}
        self._lineage: Lineage[str] = Lineage()
        self._tools: dict[str, Part] = {}
        """The tools that were defined since the last system prompt."""
        self._opened = False

    def events(self, source: Source) -> Iterator[Json]:
        """The events of a log."""
        self._bounds = Bounds(self, source)
        for line, value in values(source, self.report):
            self.line = line
            if isinstance(value, list) and value and isinstance(value[0], str):
                self._hook(value[0], value[1:])
            elif isinstance(value, dict):
                self._printed(value)
            else:
                self.problem("not-a-record", "neither a hook's call nor an event; skipped")
            yield from self.drain()
            if self._bounds.exceeded():
                break
        else:
            for native in list(self._threads):
                self._settle(native, last=True)
        yield from self.finish()

    # -- what comes ---------------------------------------------------------------------------------------

    def _hook(self, name: str, arguments: list[Any]) -> None:
        given = [one if isinstance(one, dict) else {} for one in arguments] + [{}, {}]
        if name == "event":
            event = given[0].get("event")
            event = event if isinstance(event, dict) else given[0]
            self._event(event.get("type"), event.get("properties"))
        elif name == "chat.message":
            self._chat(given[1])
        elif name == "experimental.chat.system.transform":
            self._prompt(given[0], given[1].get("system"))
        elif name == "tool.definition":
            self._tool(string(given[0].get("toolID")), given[1])

    def _printed(self, record: Json) -> None:
        """Take a line of `opencode run --format json`, or an event by itself."""
        part = record.get("part")
        if isinstance(part, dict):
            native = string(part.get("messageID"))
            session = string(record.get("sessionID")) or string(part.get("sessionID"))
            if native is not None and session is not None:
                self._upsert(
                    session, native, {"role": "assistant", "time": {"created": record.get("timestamp")}}
                )
                self._part(part, session)
        else:
            self._event(record.get("type"), record.get("properties"))

    def _event(self, kind: Any, properties: Any) -> None:
        if not isinstance(properties, dict) or not isinstance(kind, str):
            return
        info, part = properties.get("info"), properties.get("part")
        session = string(properties.get("sessionID"))
        if kind in ("session.created", "session.updated") and isinstance(info, dict):
            self._session(info)
        elif kind == "message.updated" and isinstance(info, dict):
            self._info(info, session)
        elif kind == "message.part.updated" and isinstance(part, dict):
            self._part(part, session)
        elif kind == "message.part.delta":
            self._delta(properties, session)
        elif kind == "session.idle" and session is not None:
            self._settle(session)
        elif kind == "message.removed" and session is not None:
            self._removed(session, str(properties.get("messageID")))

    def _removed(self, session: str, native: str) -> None:
        thread = self._of(session)
        if thread.close(native) is None and thread.session is not None:
            self._settle(session)
            thread.session.remove(native)

    def _chat(self, output: Json) -> None:
        """Take a user's message whole, as it is about to be stored."""
        message, parts = output.get("message"), output.get("parts")
        if isinstance(message, dict):
            self._info(message, None)
            for part in parts if isinstance(parts, list) else []:
                if isinstance(part, dict):
                    self._part(part, string(message.get("sessionID")))

    def _session(self, info: Json) -> None:
        native = string(info.get("id"))
        if native is None:
            return
        self._of(native)
        self._descends(native, string(info.get("parentID")))
        if not self._opened and self._lineage.parent(native) is None:
            self._opened = True
            self.make.at(moment(time_of(info, "created")))
            self.make.by(info.get("version"))
            self.opened(session=native, version=string(info.get("version")))

    def _descends(self, session: str, parent: str | None) -> None:
        """Take in which session set one off; what cannot be is told and not believed."""
        if parent is None:
            return
        line, names = self.line, (f"session {session}", f"session {parent}")
        kinship = self._lineage.enter(session, parent)
        if kinship is Kinship.CIRCLE:
            self.report(circle(line.number, line.offset, *names, "begin a conversation"))
        elif kinship is Kinship.SECOND:
            self.report(second(line.number, line.offset, *names))

    def _info(self, info: Json, session: str | None) -> None:
        native, session = string(info.get("id")), string(info.get("sessionID")) or session
        if native is None or session is None:
            return
        thread = self._of(session)
        if native in thread.done:
            return
        self._upsert(session, native, info)

    def _upsert(self, session: str, native: str, info: Json) -> None:
        thread = self._of(session)
        if native in thread.done:
            return
        if native not in thread.open:
            # Earlier messages are over: parts may come after the event that a message is complete.
            self._settle(session)
        thread.mention(native).info.update({"id": native, **info})

    def _part(self, part: Json, session: str | None) -> None:
        native, session = string(part.get("messageID")), string(part.get("sessionID")) or session
        key = string(part.get("id"))
        if native is None or session is None or key is None:
            return
        thread = self._of(session)
        self._child(part, session)
        if native in thread.done:
            return
        message = thread.mention(native)
        message.info.setdefault("id", native)
        thread.ready.add(native)
        message.parts[key] = NativePart(part, self.line.number)

    def _child(self, part: Json, session: str) -> None:
        """Note a tool call that began a session of its own."""
        state = part.get("state")
        meta = state.get("metadata") if isinstance(state, dict) else None
        child = string(meta.get("sessionId")) if isinstance(meta, dict) else None
        if child is not None and child != session:
            found = self._of(child)
            if child not in self._lineage:
                self._descends(child, session)
            found.call = string(part.get("callID")) or found.call

    def _delta(self, properties: Json, session: str | None) -> None:
        native, key = properties.get("messageID"), properties.get("partID")
        delta, field = properties.get("delta"), properties.get("field")
        thread = self._of(session) if session is not None else None
        message = thread.open.get(str(native)) if thread is not None else None
        part = message.parts.get(str(key)) if message is not None else None
        if message is not None and part is not None and field == "text" and isinstance(delta, str):
            text = str(part.part.get("text") or "") + delta
            message.parts[str(key)] = NativePart({**part.part, "text": text}, self.line.number)

    def _tool(self, name: str | None, given: Json) -> None:
        """Take a tool as a plug-in may change it; its parameters are objects here, and not what is sent."""
        if name is None or name == _NOT_SENT:
            return
        described = given.get("description")
        text = canonical({"name": name, "description": described if isinstance(described, str) else ""})
        self._tools[name] = Part(
            "tool_definition",
            text,
            "system",
            key=f"tool:{name}",
            title=name,
            line=self.line.number,
            derived=True,
        )

    def _prompt(self, given: Json, system: Any) -> None:
        session = string(given.get("sessionID"))
        texts = [text for text in system if isinstance(text, str)] if isinstance(system, list) else []
        if session is None or (texts and texts[0].startswith(_TITLES)):
            return
        thread = self._of(session)
        thread.prompt = [
            Part("system_prompt", text, "system", key=f"system/{at}", line=self.line.number)
            for at, text in enumerate(texts, 1)
        ]
        if self._tools:
            thread.tools, self._tools = list(self._tools.values()), {}
        model = given.get("model")
        limit = model.get("limit") if isinstance(model, dict) else None
        thread.limit = count(limit.get("context")) if isinstance(limit, dict) else None
        thread.fresh = True

    # -- what becomes of it -------------------------------------------------------------------------------

    def _of(self, session: str) -> _Thread:
        return self._threads.setdefault(session, _Thread())

    def _settle(self, session: str, *, last: bool = False) -> None:
        """Take the messages of a session that are not yet taken; one without parts only at the end."""
        thread = self._of(session)
        among = thread.open if last else sorted(thread.ready, key=lambda native: thread.open[native].number)
        for native in list(among):
            message = thread.open.get(native)
            if message is None:
                continue
            # The message that it answers comes first, in whatever order the two were mentioned.
            for one in (str(message.info.get("parentID")), native):
                taken = thread.close(one)
                if taken is not None:
                    thread.done.add(one)
                    self._take(session, thread, taken)

    def _take(self, session: str, thread: _Thread, message: _Message) -> None:
        info = message.info
        if thread.session is None:
            thread.agent = string(info.get("agent"))
            thread.session = self._begin(session, thread)
        if info.get("role") == "assistant":
            self._set_head(thread.session, thread, info)
        elif isinstance(tools := info.get("tools"), dict):
            barred = frozenset(name for name, offered in tools.items() if offered is False)
            thread.fresh = thread.fresh or barred != thread.barred
            thread.barred = barred
        thread.session.message(info, list(message.parts.values()))

    def _begin(self, session: str, thread: _Thread) -> Session:
        self.session = root = self._lineage.top(session)
        origin: Json = {}
        if (parent := self._lineage.parent(session)) is not None:
            origin = {
                "parent_thread": vocab.MAIN_THREAD if parent == root else parent,
                "parent_tool_call": thread.call,
                "agent_type": thread.agent,
            }
        conversation = self.thread(None if session == root else session, origin=origin)
        return Session(self, conversation, self._bounds)

    def _set_head(self, session: Session, thread: _Thread, info: Json) -> None:
        """Set what stands in front of the messages of the next request."""
        if thread.fresh:
            thread.fresh = False
            offered = [part for part in thread.tools if part.title not in thread.barred]
            session.standing([*offered, *thread.prompt])
        if thread.limit is not None:
            session.limit(thread.limit, str(info.get("id")))
