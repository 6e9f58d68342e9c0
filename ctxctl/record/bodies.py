"""Whole request bodies and answers, cut into items by the importers' dialects, without their secrets.

Loaded with the first request that is recorded.  Costs time linear in the body for copying and comparing it,
and more only for what is new in it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import orjson

from ctxctl.ingest.build import Json, Maker
from ctxctl.ingest.conversation import Conversation
from ctxctl.ingest.parts import Part
from ctxctl.listdiff import same_start
from ctxctl.model import vocab
from ctxctl.providers.dialects import by_name, of_body, of_response
from ctxctl.providers.dialects.base import CallTitles, Dialect, Unit
from ctxctl.providers.dialects.fingerprints import fingerprint
from ctxctl.record import values
from ctxctl.record.core import Core
from ctxctl.record.place import Place
from ctxctl.record.queue import Entry
from ctxctl.record.redact import Found, stubs_in

if TYPE_CHECKING:
    from ctxctl.ingest.build import Block

_TRIES: Final = 3
_THREADS: Final = 256
_CUT: Final = "[truncated: ~"
"""How a tool result begins that Amplifier's compaction has cut."""


class Sent(NamedTuple):
    """One request that is to be recorded."""

    body: Json
    dialect: Dialect | None
    step: str
    turn: str | None
    model: str | None = None
    native_id: str | None = None
    injected: bool = True
    """It went out; False: it is a view, and nobody knows whether it did."""
    compacts: bool = False
    """What is gone since the last view was left out by a compaction."""
    cause: str | None = None
    """Why what is gone is gone."""
    marks: Json | None = None
    acted: tuple[Json, ...] = ()
    """Compactions that the runtime told of since the last request: fields of each record."""
    reader: Reader | None = None
    """Reads the parts of a runtime's own messages."""


class Reader(Protocol):
    """What a runtime puts into messages, and what they were called before; one for each thread."""

    def cut(self, parts: list[Part]) -> list[Part]:
        """What a runtime put inside of parts, as parts of their own."""
        ...

    def give(self, parts: list[Part], held: Collection[str]) -> None:
        """Name parts that were there before; `held`: names of those that stand in front of them."""
        ...

    def learn(self, parts: list[Part]) -> None:
        """Remember what parts are called now."""
        ...


class Talks:
    """The conversations of one recorder; not for several threads at once.

    Args:
        core: Of the recorder.
        earlier: Gives the window that another writer of the file left in a thread; None where no other
            writer may record its session.
    """

    def __init__(self, core: Core, earlier: Callable[[Place], list[tuple[Block, str]] | None]) -> None:
        self._core = core
        self._earlier = earlier
        self._talks: OrderedDict[str, _Talk] = OrderedDict()

    def request(self, sent: Sent, place: Place) -> Place:
        """Record a request as items, an assembly and an injection; returns where it stands."""
        talk = self._talk(place)
        for _ in range(_TRIES):
            events, found = talk.request(sent, self._core)
            generation = self._core.journal.generation
            self._core.count(found)
            if self._core.journal.put(self._entries(events), generation) != "stale":
                break
            talk.unsay()
        talk.place.sealed = sent.injected
        return talk.place

    def respond(self, response: Json, place: Place, dialect: Dialect | None) -> None:
        """Record what a request was answered; it is in the window of the thread's next request."""
        talk = self._talk(place)
        dialect = dialect or of_response(response) or talk.dialect
        if dialect is None:
            return
        found = Found()
        events = talk.respond(dialect.reply(response), self._core, found)
        if events:
            self._core.journal.put(self._entries(events))
        self._core.count(found)

    def _talk(self, place: Place) -> _Talk:
        talk = self._talks.get(place.key)
        if talk is None:
            talk = self._talks[place.key] = _Talk(self._core, place)
            rows = self._earlier(place)
            if rows is not None:
                talk.conversation.mark = self._core.journal.mark
                talk.conversation.go_on_from(rows)
            if len(self._talks) > _THREADS:
                self._talks.popitem(last=False)
        self._talks.move_to_end(place.key)
        return talk

    def _entries(self, events: list[Json]) -> tuple[Entry, ...]:
        return entries_of(self._core, events, counted=True)


class _Talk:
    """One thread's conversation."""

    def __init__(self, core: Core, place: Place) -> None:
        self._make = Maker(core.source, "")
        self._out: list[Json] = []
        self._thread = place.thread or vocab.MAIN_THREAD
        self.conversation = Conversation(self._make, self._out, session=place.session, thread=self._thread)
        self.place = place
        """Of the last request."""
        self.dialect: Dialect | None = None
        self._names = CallTitles()
        self._prints: list[bytes] = []
        self._rows: list[int] = []
        """Items of each piece of the last body."""
        self._generation = core.journal.generation
        self._step = ""

    def request(self, sent: Sent, core: Core) -> tuple[list[Json], Found]:
        """The events of a request."""
        found = Found()
        self._make.at(core.journal.stamp())
        conversation = self.conversation
        if self._generation != core.journal.generation:
            self._generation = core.journal.generation
            self._prints, self._rows = [], []
            conversation.tell_anew()
        dialect = self.dialect = sent.dialect or of_body(sent.body) or by_name("openai-chat")
        before = [(block.item, block.ref) for block, _ in conversation.rows]
        self._set_window(dialect.units(sent.body), dialect, core, found, sent)
        if sent.compacts or sent.acted:
            self._left_out(before, sent.acted)
        conversation.turn = sent.turn
        self._step = sent.step
        self.place = Place(
            *conversation.request(
                sent.step, model=sent.model, native_id=sent.native_id,
                settings=_settings(dialect, sent, core), marks=sent.marks,
            )
        )  # fmt: skip
        return [
            e for e in self._drain() if sent.injected or e["event_type"] != vocab.INJECTION_APPLIED
        ], found

    def unsay(self) -> None:
        """The last request was not written after all."""
        self._generation = -1
        self.conversation.tell_anew(self._step)

    def respond(self, parts: list[Part], core: Core, found: Found) -> list[Json]:
        """The events of an answer."""
        self._make.at(core.journal.stamp())
        for part in parts:
            _redact(part, core, found)
        self.conversation.append(*parts)
        self.conversation.finish()
        return self._drain()

    def _drain(self) -> list[Json]:
        events = list(self._out)
        self._out.clear()
        return events

    def _set_window(self, units: list[Unit], dialect: Dialect, core: Core, found: Found, sent: Sent) -> None:
        """Make the window what the body carries; only what is new in it is cut."""
        prints = [fingerprint(unit)[0] for unit in units]
        shared = same_start(prints, self._prints)
        rows, parts = self._rows[:shared], []
        for unit in units[shared:]:
            cut = dialect.parts(_redacted(unit, core, found), self._names).parts
            cut = sent.reader.cut(cut) if sent.reader is not None else cut
            for part in cut:
                _redact(part, core, found)
                part.truncated = part.truncated or (part.text or "").startswith(_CUT)
            rows.append(len(cut))
            parts += cut
        at = sum(self._rows[:shared])
        if sent.reader is not None:
            sent.reader.give(parts, [block.item for block, _ in self.conversation.rows[:at]])
        self.conversation.replace(parts, at=at, cause=sent.cause)
        if sent.reader is not None:
            sent.reader.learn(parts)
        self._prints, self._rows = prints, rows

    def _left_out(self, before: list[tuple[str, str]], acted: tuple[Json, ...]) -> None:
        """Tell of what was in the last view and is not in this one: the last compaction left it out."""
        stays = {block.item for block, _ in self.conversation.rows}
        gone = [ref for item, ref in before if item not in stays]
        for at, record in enumerate(acted, 1):
            self.conversation.compacted(gone if at == len(acted) else [], None, **record)
        if gone and not acted:
            self.conversation.compacted(
                gone, None, replacement_policy="ephemeral_view_only", metadata={"ctxctl": {"derived": True}}
            )


def entries_of(core: Core, events: list[Json], *, counted: bool = False) -> tuple[Entry, ...]:
    """Events as the importers' kit makes them, as entries; `counted`: their secrets are counted already."""
    made: list[Entry] = []
    for event in events:
        record = event["data"]
        found, content = Found(), None
        if (value := record.get("content")) is not None:
            record = {n: inner for n, inner in record.items() if n not in ("content", "content_mode")}
            content = core.content(value, Found())
            if core.redactor is not None:
                found = stubs_in(content.raw)
                found.counted = found.count if counted else 0
        where = Place(*(event.get(name) for name in ("session_id", "thread_id", "turn_id", "step_id")))
        made.append(core.entry(event["event_type"], record, where, content=content, found=found))
    return tuple(made)


def body_of(given: dict[str, Any], body: Any) -> Json | None:
    """A request body as a copy of its own: from one that is whole (an object, JSON) or from its fields."""
    if body is not None:
        whole = _loaded(body)
        if not isinstance(whole, dict):
            return None
    else:
        whole = {}
    fields = {name: value for name, value in given.items() if value is not None}
    return {**whole, **orjson.loads(values.encoded(fields))} if fields else whole


def _loaded(body: Any) -> Any:
    if isinstance(body, bytes | bytearray | str):
        try:
            return orjson.loads(body)
        except orjson.JSONDecodeError:
            return None
    return orjson.loads(values.encoded(body))


def dialect_of(name: str | None, body: Json, url: str | None) -> Dialect | None:
    """The dialect that a caller names, else that of the address and the body."""
    if name is not None:
        try:
            return by_name(name)
        except KeyError:
            pass
    return of_body(body, url)


def ends_with_prompt(body: Json, dialect: Dialect | None) -> bool:
    """Whether the last thing in a request is a prompt of the user: then it begins a turn."""
    dialect = dialect or by_name("openai-chat")
    units = dialect.units(body)
    if not units or units[-1].head:
        return False
    kinds = {part.kind for part in dialect.parts(units[-1], CallTitles()).parts}
    return bool(kinds & {"user_message", "image"}) and "tool_result" not in kinds


def _redacted(unit: Unit, core: Core, found: Found) -> Unit:
    """A piece of a body without what its names give away and its texts hold."""
    redactor = core.redactor
    if redactor is None:
        return unit
    raw = orjson.dumps(unit.value)
    return unit._replace(value=redactor.value(unit.value, raw, found)) if redactor.worth_a_look(raw) else unit


def _settings(dialect: Dialect, sent: Sent, core: Core) -> Json | None:
    """The request's parameters, without what secrets they hold."""
    made = dialect.settings(sent.body)
    if made is None or core.redactor is None:
        return made
    cleaned: Json = core.redactor.value(made, orjson.dumps(made), Found())
    return cleaned


def _redact(part: Part, core: Core, found: Found) -> None:
    """Once more for what the cut has put together: a call's arguments, a text of several blocks."""
    if core.redactor is None or part.text is None:
        return
    text = core.redactor.text(part.text, found)
    if text is not part.text:
        part.reword(text)
