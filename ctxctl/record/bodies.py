"""Cuts whole request bodies and answers, streamed ones too, into items by the providers' dialects, redacted.

Loaded with the first request that is recorded.  Copying and comparing a body takes time linear in its size;
only what is new in it costs more.  A stream's pieces are joined first, as a secret may lie across two.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterable, AsyncIterator, Callable, Collection, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import orjson

from ctxctl.ingest.build import Json, Maker
from ctxctl.ingest.conversation import Conversation
from ctxctl.ingest.parts import Part
from ctxctl.listdiff import same_start
from ctxctl.model import vocab
from ctxctl.providers.dialects import by_name, of_body, of_response
from ctxctl.providers.dialects.base import CallTitles, Dialect, Unit
from ctxctl.providers.dialects.fingerprints import Request, request_of
from ctxctl.providers.dialects.units import LeftOut
from ctxctl.record import values
from ctxctl.record.calls import guarded
from ctxctl.record.core import Core
from ctxctl.record.place import Place
from ctxctl.record.queue import Entry
from ctxctl.record.redact import FoundSecrets, stubs_in
from ctxctl.record.seams import Follower

if TYPE_CHECKING:
    from ctxctl.ingest.build import Block


_TRIES: Final = 3
_THREADS: Final = 256
_CUT: Final = "[truncated: ~"
"""The beginning of a tool result that Amplifier's compaction has cut."""


class SentRequest(NamedTuple):
    """One request that is to be recorded."""

    body: Json
    dialect: Dialect | None
    step: str
    turn: str | None
    model: str | None = None
    native_id: str | None = None
    injected: bool = True
    """Whether it went out; False: it is a view, of which that is unknown."""
    compacts: bool = False
    """Whether items that are gone since the last view were left out by a compaction."""
    cause: str | None = None
    """Why items are gone (`cleared`, `branched`)."""
    marks: Json | None = None
    acted: tuple[Json, ...] = ()
    """Compactions that the runtime reported since the last request: the fields of each record."""
    reader: PartReader | None = None
    """Reads what a runtime puts into messages."""


class PartReader(Protocol):
    """Reads what a runtime puts into messages, and remembers their names; one for each thread."""

    def cut(self, parts: list[Part]) -> list[Part]:
        """Return the parts, with what a runtime put inside of them as parts of their own."""
        ...

    def give(self, parts: list[Part], held: Collection[str]) -> None:
        """Name the parts that were there before; `held`: names of the parts in front of them."""
        ...

    def learn(self, parts: list[Part]) -> None:
        """Remember the names of these parts."""
        ...


class ThreadConversations:
    """The conversations of one recorder, by thread; not safe for several threads at once.

    Args:
        core: The recorder's.
        earlier_window: Gives the last window that another writer of the file recorded in a thread; None where
            no other writer may record its session.
    """

    def __init__(self, core: Core, earlier_window: Callable[[Place], list[tuple[Block, str]] | None]) -> None:
        self._core = core
        self._earlier_window = earlier_window
        self._conversations: OrderedDict[str, _ThreadConversation] = OrderedDict()

    def request(self, sent: SentRequest, place: Place) -> Place:
        """Record a request as items, an assembly and an injection; return its place."""
        thread = self._of_thread(place)
        for _ in range(_TRIES):
            events, found = thread.request(sent, self._core)
            generation = self._core.journal.generation
            self._core.count(found)
            if self._core.journal.put(self._entries(events), generation) != "stale":
                break
            thread.request_unwritten()
        thread.place.sealed = sent.injected
        return thread.place

    def respond(self, response: Json, place: Place, dialect: Dialect | None) -> None:
        """Record the answer to a request, which is in the window of the thread's next request."""
        thread = self._of_thread(place)
        dialect = dialect or of_response(response) or thread.dialect
        if dialect is None:
            return
        found = FoundSecrets()
        events = thread.respond(response, dialect, self._core, found)
        if events:
            self._core.journal.put(self._entries(events))
        self._core.count(found)

    def _of_thread(self, place: Place) -> _ThreadConversation:
        thread = self._conversations.get(place.key)
        if thread is None:
            thread = self._conversations[place.key] = _ThreadConversation(self._core, place)
            rows = self._earlier_window(place)
            if rows is not None:
                thread.conversation.mark = self._core.journal.mark
                thread.conversation.go_on_from(rows)
            if len(self._conversations) > _THREADS:
                self._conversations.popitem(last=False)
        self._conversations.move_to_end(place.key)
        return thread

    def _entries(self, events: list[Json]) -> tuple[Entry, ...]:
        return entries_of(self._core, events, counted=True)


class _ThreadConversation:
    """One thread's conversation."""

    def __init__(self, core: Core, place: Place) -> None:
        self._make = Maker(core.source, "")
        self._out: list[Json] = []
        self._thread = place.thread or vocab.MAIN_THREAD
        self.conversation = Conversation(self._make, self._out, session=place.session, thread=self._thread)
        self.place = place
        """The place of the last request."""
        self.dialect: Dialect | None = None
        self._names = CallTitles()
        self._read: list[bytes] = []
        """Digests of what the model read of the last body, by unit."""
        self._rows: list[int] = []
        """The number of items of each."""
        self._left = LeftOut()
        self._summaries: set[str] = set()
        """Versions of the summaries that were met."""
        self._asked: tuple[SentRequest, Request] | None = None
        """The last request, if only its answer says what the model read."""
        self._generation = core.journal.generation
        self._step = ""

    def request(self, sent: SentRequest, core: Core) -> tuple[list[Json], FoundSecrets]:
        """Return the events of a request, and the secrets found in it."""
        found = FoundSecrets()
        self._make.at(core.journal.stamp())
        conversation = self.conversation
        if self._generation != core.journal.generation:
            self._generation = core.journal.generation
            self._read, self._rows = [], []
            conversation.tell_anew()
        dialect = self.dialect = sent.dialect or of_body(sent.body) or by_name("openai-chat")
        before = [(block.item, block.ref) for block, _ in conversation.rows]
        request = request_of(sent.body, dialect)
        self._asked = (sent, request) if dialect.may_edit(sent.body) else None
        self._set_window(request.reached(None, self._left), core, found, sent)
        if sent.compacts or sent.acted:
            self._record_compactions(before, sent.acted)
        conversation.turn = sent.turn
        self._step = sent.step
        self.place = Place(
            *conversation.request(
                sent.step, model=sent.model, native_id=sent.native_id,
                settings=_settings(dialect, sent, core), marks=sent.marks,
                awaits_answer=self._asked is not None,
            )
        )  # fmt: skip
        return [
            e for e in self._drain() if sent.injected or e["event_type"] != vocab.INJECTION_APPLIED
        ], found

    def request_unwritten(self) -> None:
        """Forget the last request, which was not written after all."""
        self._generation = -1
        self.conversation.tell_anew(self._step)

    def respond(self, response: Json, dialect: Dialect, core: Core, found: FoundSecrets) -> list[Json]:
        """Return the events of an answer."""
        self._make.at(core.journal.stamp())
        parts = dialect.reply(response)
        if core.redactor is not None:
            told = [part for part in parts if part.text is not None]
            for part, text in zip(
                told, Follower(core.redactor).value([p.text for p in told], found), strict=True
            ):
                if text is not part.text:
                    part.reword(text)
        for part in parts:
            _redact(part, core, found)
        summed = self._seal(response, dialect.summed_up(response, parts), parts, core, found)
        self._left.answered(response)
        self.conversation.append(*parts[summed:])
        self.conversation.finish()
        return self._drain()

    def _seal(self, response: Json, summed: int, parts: list[Part], core: Core, found: FoundSecrets) -> int:
        """Record what the model read of the last request, if only the answer says that; return the number of
        parts up to
        the answer's last summary."""
        if self._asked is None or self._generation != core.journal.generation:
            return 0
        sent, request = self._asked
        self._asked = None
        request = request.reached(response, self._left)
        if request.read != self._read:
            self._set_window(request, core, found, sent)
        self.conversation.sum_up(parts[:summed], at=sum(self._rows[: request.start]))
        if self._summaries_of(parts[:summed]):
            self._read, self._rows = self._read[: request.start], self._rows[: request.start]
        self.conversation.read()
        return summed

    def _drain(self) -> list[Json]:
        events = list(self._out)
        self._out.clear()
        return events

    def _set_window(self, request: Request, core: Core, found: FoundSecrets, sent: SentRequest) -> None:
        """Set the window to what the model read of the body; only new units are cut into items."""
        dialect, conversation = request.dialect, self.conversation
        shared = same_start(request.read, self._read)
        rows, parts = self._rows[:shared], []
        units = iter(_joined(request, shared, core, found))
        for piece, unit in zip(request.pieces[shared:], request.units[shared:], strict=True):
            clean = tuple(_redacted(one, core, found) for one in islice(units, len(piece)))
            cut = dialect.piece(clean, unit.section, self._names).parts
            cut = sent.reader.cut(cut) if sent.reader is not None else cut
            for part in cut:
                _redact(part, core, found)
                part.truncated = part.truncated or (part.text or "").startswith(_CUT)
            rows.append(len(cut))
            parts += cut
        at = sum(self._rows[:shared])
        if sent.reader is not None:
            sent.reader.give(parts, [block.item for block, _ in conversation.rows[:at]])
        before = conversation.rows[at:]
        edited = self._left.cleared or self._left.thinking
        conversation.replace(parts, at=at, cause=sent.cause or ("cleared" if edited else None))
        if sent.reader is not None:
            sent.reader.learn(parts)

        def cut_clean(unit: Unit) -> list[Part]:
            made = dialect.parts(_redacted(unit, core, found), self._names).parts
            for part in made:
                _redact(part, core, found)
            return made

        first = not self._read
        gone = request.tell_unread(conversation, self._left, cut_clean, first=first)
        self._read, self._rows = request.read, rows
        summaries = self._summaries_of(parts)
        stays = {part.item for part in parts}
        gone += [block.ref for block, _ in before if block.item not in stays]
        if summaries and gone and not (sent.compacts or sent.acted):
            marks = {"ctxctl": {"derived": True}}
            conversation.compacted(gone, summaries[0].block().ref, metadata=marks)

    def _summaries_of(self, parts: Iterable[Part]) -> list[Part]:
        """Return the summaries that were not met before."""
        found = [p for p in parts if p.kind == "thread_summary" and p.mark not in self._summaries]
        self._summaries.update(part.mark for part in found)
        return found

    def _record_compactions(self, before: list[tuple[str, str]], acted: tuple[Json, ...]) -> None:
        """Record compactions: the last one left out what is missing since the last view."""
        stays = {block.item for block, _ in self.conversation.rows}
        gone = [ref for item, ref in before if item not in stays]
        for at, record in enumerate(acted, 1):
            self.conversation.compacted(gone if at == len(acted) else [], None, **record)
        if gone and not acted:
            self.conversation.compacted(
                gone, None, replacement_policy="ephemeral_view_only", metadata={"ctxctl": {"derived": True}}
            )


def entries_of(core: Core, events: list[Json], *, counted: bool = False) -> tuple[Entry, ...]:
    """Turn events of `ctxctl.ingest` into entries; `counted`: their secrets were counted before."""
    made: list[Entry] = []
    for event in events:
        record = event["data"]
        found, content = FoundSecrets(), None
        if (value := record.get("content")) is not None:
            record = {n: inner for n, inner in record.items() if n not in ("content", "content_mode")}
            content = core.content(value, FoundSecrets())
            if core.redactor is not None:
                found = stubs_in(content.raw)
                found.counted = found.count if counted else 0
        where = Place(
            *(event.get(name) or None for name in ("session_id", "thread_id", "turn_id", "step_id"))
        )
        made.append(core.entry(event["event_type"], record, where, content=content, found=found))
    return tuple(made)


def body_of(given: dict[str, Any], body: Any) -> Json | None:
    """Return a copy of a body, from an object or JSON, from single fields, or from both; None: no object."""
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
    """Return the dialect that a caller names, else the one that the address and the body show."""
    if name is not None:
        try:
            return by_name(name)
        except KeyError:
            pass
    return of_body(body, url)


def ends_with_prompt(body: Json, dialect: Dialect | None) -> bool:
    """Whether a request ends with a prompt of the user, and so begins a turn."""
    dialect = dialect or by_name("openai-chat")
    units = dialect.units(body)
    if not units or units[-1].head:
        return False
    kinds = {part.kind for part in dialect.parts(units[-1], CallTitles()).parts}
    return bool(kinds & {"user_message", "image"}) and "tool_result" not in kinds


def _joined(request: Request, shared: int, core: Core, found: FoundSecrets) -> list[Unit]:
    """Return the units that are new without secrets that cross from one to the next."""
    new = [unit for piece in request.pieces[shared:] for unit in piece]
    if core.redactor is None or not new:
        return new
    follower = Follower(core.redactor)
    if shared:
        follower.value(request.units[shared - 1].value, FoundSecrets())
    values = follower.value([unit.value for unit in new], found)
    return [unit._replace(value=value) for unit, value in zip(new, values, strict=True)]


def _redacted(unit: Unit, core: Core, found: FoundSecrets) -> Unit:
    """Return a unit of a body without the secrets in its texts and under its field names."""
    redactor = core.redactor
    if redactor is None:
        return unit
    raw = orjson.dumps(unit.value)
    return unit._replace(value=redactor.value(unit.value, raw, found)) if redactor.worth_a_look(raw) else unit


def _settings(dialect: Dialect, sent: SentRequest, core: Core) -> Json | None:
    """Return the request's parameters without secrets."""
    made = dialect.settings(sent.body)
    if made is None or core.redactor is None:
        return made
    cleaned: Json = core.redactor.value(made, orjson.dumps(made), FoundSecrets())
    return cleaned


def _redact(part: Part, core: Core, found: FoundSecrets) -> None:
    """Redact a part again: its text may be joined from several pieces, such as a call's arguments."""
    if core.redactor is None or part.text is None:
        return
    text = core.redactor.text(part.text, found)
    if text is not part.text:
        part.reword(text)


_LIMIT: Final = 32 << 20
"""Bytes of one stream that are kept."""


class Stream:
    """Takes the pieces of one streamed answer; nothing is written before `close`.

    Memory: the pieces so far, up to 32 MB; what comes beyond is not recorded (`cut`).

    Args:
        core: The recorder's.
        record: Records the joined answer, once.
        dialect: The request's; None: the answer shows it.
    """

    def __init__(self, core: Core, record: Callable[[Any], None], dialect: Any) -> None:
        self._core = core
        self._record = record
        self._dialect = dialect
        self._parts: list[bytes] = []
        self._size = 0
        self.cut = False
        """Whether more came than is kept and recorded."""
        self.closed = False

    @guarded
    def feed(self, data: bytes | str) -> None:
        """Take the next bytes of a stream of server-sent events, cut anywhere."""
        self._add(data.encode("utf-8", "replace") if isinstance(data, str) else bytes(data))

    @guarded
    def chunk(self, chunk: Any) -> None:
        """Take the next chunk, as the provider's package gives it."""
        self._add(b"data: " + values.encoded(chunk) + b"\n\n")

    @guarded
    def text(self, delta: str) -> None:
        """Take the next piece of a plain text, where the program has nothing else of the answer."""
        self.chunk({"choices": [{"index": 0, "delta": {"role": "assistant", "content": delta}}]})

    @guarded
    def close(self) -> None:
        """Record the answer, which is over."""
        from ctxctl.providers.dialects.stream import streamed_response

        if self.closed:
            return
        self.closed = True
        text = b"".join(self._parts).decode("utf-8", "replace")
        self._parts = []
        whole = streamed_response(text, self._dialect)
        if whole is None and self._dialect is not None:
            whole = streamed_response(text)
        if whole is None and text:
            try:
                whole = orjson.loads(text)  # it was no stream after all
            except orjson.JSONDecodeError:
                whole = None
        if isinstance(whole, dict):
            self._record(whole)

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _add(self, data: bytes) -> None:
        if self._size + len(data) > _LIMIT:
            self.cut = True
            return
        self._size += len(data)
        self._parts.append(data)


def watched(stream: Stream, chunks: Iterable[Any] | AsyncIterable[Any]) -> Any:
    """Hand the chunks on and feed them to the stream; bytes and texts count as raw pieces."""
    if isinstance(chunks, AsyncIterable):
        return _async(stream, chunks)
    return _sync(stream, chunks)


def _take(stream: Stream, chunk: Any) -> None:
    if isinstance(chunk, bytes | str):
        stream.feed(chunk)
    else:
        stream.chunk(chunk)


def _sync(stream: Stream, chunks: Iterable[Any]) -> Iterator[Any]:
    try:
        for chunk in chunks:
            _take(stream, chunk)
            yield chunk
    finally:
        stream.close()


async def _async(stream: Stream, chunks: AsyncIterable[Any]) -> AsyncIterator[Any]:
    try:
        async for chunk in chunks:
            _take(stream, chunk)
            yield chunk
    finally:
        stream.close()
