"""`POST /v1/events`: takes native events and calls of the recorder, one JSON object a line."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import suppress
from hashlib import blake2b
from typing import IO, TYPE_CHECKING, Any, Final, cast

import orjson

from ctxctl.errors import CtxctlError
from ctxctl.record.event_cleaner import EventCleaner, LineBuffer
from ctxctl.record.place import Place
from ctxctl.record.queue import Entry
from ctxctl.record.receive.replies import JSON, NotWrittenError, Reply, WriteGuard, error_reply, whole_seconds
from ctxctl.record.scopes import Scope, Step
from ctxctl.trace.depth import deeper_than
from ctxctl.trace.writer import TraceWriter

if TYPE_CHECKING:
    from collections.abc import Callable

    from ctxctl.record.recorder import Recorder


_TRIES: Final = 3
_TEXTS: Final = ("event_id", "source", "time", "session_id", "thread_id", "turn_id", "step_id")
_SHOWN: Final = 300


class BadEventError(ValueError):
    """An event can never be written; the text says why, without any of its content."""


class EventWriter:
    """Appends whole events with the recorder's journal; not safe for several threads at once.

    Missing fields of an event's envelope are filled in: `schema_version`, `event_id`, `time` (now), `source`,
    `session_id` (the recorder's), and in its record what the event's type implies (`TraceWriter`).
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._core = recorder._core
        self._cleaner = EventCleaner(self._core.redactor, self._core.redacted)
        self._made = LineBuffer()
        self._generation = -1
        self._writer = self._afresh()

    def write(self, event: Json) -> None:
        """Append one event; on return it is in the file, or counted as dropped.

        Raises:
            BadEventError: it is not valid, or could not be looked through for secrets.
        """
        complete = self._complete(event)
        try:
            clean = self._cleaner.clean(complete)
        except Exception as error:  # it may hold secrets: nothing of it may be written
            raise BadEventError(f"{type(error).__name__} while looking for secrets") from None
        journal = self._core.journal
        for _ in range(_TRIES):
            if self._generation != journal.generation:
                self._afresh()
            entry = Entry(str(event.get("event_type")), self._line(clean), Place(), whole=True)
            if journal.put((entry,), self._generation) != "stale":
                return

    def _afresh(self) -> TraceWriter:
        """Begin anew for another file, which must hold all that its events refer to."""
        journal = self._core.journal
        self._generation = journal.generation
        self._writer = TraceWriter(
            cast("IO[bytes]", self._made),
            source=self._core.source,
            clock=journal.stamp,
            prefix=f"{journal.writer[:16]}-n{self._generation}",
        )
        return self._writer

    def _line(self, event: Json) -> bytes:
        self._made.clear()
        try:
            self._writer.write(event)
        except CtxctlError as error:
            raise BadEventError(error.message.partition(" cannot be written: ")[2][:_SHOWN]) from None
        return bytes(self._made)

    def _complete(self, event: Json) -> Json:
        for name in _TEXTS:
            if event.get(name) is not None and not isinstance(event[name], str):
                raise BadEventError(f"{name} is not a text")
        session = event.get("session_id") or self._recorder.session
        return {**event, "session_id": session}


Json = dict[str, Any]
_RECORDS: Final = (
    "surface", "item", "remove", "selection", "budget", "assembly", "injection", "compaction", "missing",
    "redaction", "usage", "event",
)  # fmt: skip
_OF_STEP: Final = ("request", "response", "failed")
NAMES: Final = (*_RECORDS, *_OF_STEP, "end_session")
_AFTER: Final = frozenset(("response", "failed", "usage"))
"""Calls that belong to the thread's last request where they name no step."""
_PLACE: Final = ("session", "thread", "turn", "step")
_OWN: Final = frozenset(("call", "id", *_PLACE))
_PAIRS: Final = {"selection": ("omitted",), "budget": ("dropped", "truncated"), "assembly": ("blocks",)}
"""By call, the fields whose lists may hold pairs; JSON has no tuples."""
_OPEN: Final = 4096


class RecorderCalls:
    """Makes the recorder's calls that lines ask for (`{"call": "item", …}`), for clients without a recorder.

    It remembers the open steps that were used last.  Not safe for several threads at once.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._name = recorder._core.clean_id
        self._scopes: OrderedDict[tuple[str | None, ...], Scope] = OrderedDict()
        self._last: OrderedDict[str, Step] = OrderedDict()
        """By thread, the step of its last request."""

    def make(self, line: Json) -> None:
        """Make one call; on return what it records is in the file, or counted as dropped.

        Raises:
            BadEventError: there is no such call, or its fields do not fit.
        """
        name = line.get("call")
        if name not in NAMES:
            raise BadEventError(f"no such call; there are {', '.join(NAMES)}")
        for field in _PLACE:
            if line.get(field) is not None and not isinstance(line[field], str):
                raise BadEventError(f"{field} is not a text")
        fields = {key: value for key, value in line.items() if key not in _OWN and value is not None}
        for field in _PAIRS.get(name, ()):
            if isinstance(fields.get(field), list):
                fields[field] = [tuple(one) if isinstance(one, list) else one for one in fields[field]]
        if name == "response" and "body" in fields:
            fields["response"] = fields.pop("body")
        place = self._place(line)
        journal = self._recorder._core.journal
        before, journal.strict = journal.strict, True  # the sender must learn what is wrong
        try:
            self._make(name, place, fields)
        finally:
            journal.strict = before

    def _make(self, name: str, place: Place, fields: Json) -> None:
        if name == "end_session":
            _call(name, self._recorder.end_session, {"session": place.session})
        elif name == "request":
            self._request(place, fields)
        else:
            _call(name, getattr(self._scope(name, place), name), fields)

    def _place(self, line: Json) -> Place:
        session, thread, turn, step = (self._name(line.get(field)) for field in _PLACE)
        default = self._recorder._default
        return Place(session or default.session, thread or default.thread, turn, step)

    def _request(self, place: Place, fields: Json) -> None:
        recorder = self._recorder
        named = place.step is not None
        step = Step(recorder, place if named else recorder._step_place(place, None), None)
        _call("request", step.request, fields)
        _keep(self._last, place.key, step)
        if named:
            _keep(self._scopes, (place.session, place.thread, place.step), step)

    def _scope(self, name: str, place: Place) -> Scope:
        """Return the scope of a call; the same object each time, as a step remembers what it has sent."""
        if place.step is None and name in (*_AFTER, *_OF_STEP):
            last = self._last.get(place.key)
            if last is not None and place.turn in (None, last._place.turn):
                return last
        if place.step is not None:
            key: tuple[str | None, ...] = (place.session, place.thread, place.step)
        else:
            key = (place.session, place.thread, None, place.turn)
        found = self._scopes.get(key)
        if found is None:
            step = place.step is not None or name in _OF_STEP
            found = Step(self._recorder, place, None) if step else Scope(self._recorder, place)
        _keep(self._scopes, key, found)
        return found


def _keep(kept: OrderedDict[Any, Any], key: Any, value: Any) -> None:
    kept[key] = value
    kept.move_to_end(key)
    if len(kept) > _OPEN:
        kept.popitem(last=False)


def _call(name: str, call: Callable[..., Any], fields: Json) -> None:
    try:
        inspect.signature(call).bind(**fields)
    except TypeError as error:
        raise BadEventError(f"{name}: {error}") from None
    try:
        call(**fields)
    except (TypeError, ValueError, AttributeError, KeyError) as error:
        # Without its text, which may quote what was passed.
        raise BadEventError(
            f"{name}: a field has a value of the wrong type ({type(error).__name__})"
        ) from None


MEDIA: Final = frozenset(
    (
        "application/json",
        "application/jsonl",
        "application/ndjson",
        "application/x-ndjson",
        "application/x-jsonl",
    )
)
MAX_LINE: Final = 8 << 20
"""Bytes of one line at most."""
MAX_LINES: Final = 100_000
"""Lines of one request at most."""
_DEPTH: Final = 100
"""Levels of nesting of one event, as in `values`."""
_TOLD: Final = 100
_SEEN: Final = 200_000
"""Ids that are remembered, so that an event sent twice is written once."""


class EventsEndpoint:
    """Writes posted lines in their order; not safe for several threads at once."""

    def __init__(self, recorder: Recorder) -> None:
        self._guard = WriteGuard(recorder._core.journal)
        self._inbox = EventWriter(recorder)
        self._caller = RecorderCalls(recorder)
        self._default = recorder.session
        self._seen: OrderedDict[bytes, None] = OrderedDict()

    def take(self, body: bytes, media: str) -> Reply:
        """Write the lines of a body; acknowledged lines are in the file.

        200: all of them are.  422: those that `errors` lists are not and never will be, the others are.
        503: the trace cannot be written to; no line from `next` on is.
        """
        written = failed = repeated = 0
        errors: list[dict[str, Any]] = []
        try:
            lines = _lines(body, media)
        except BadEventError as error:
            return error_reply(400, str(error))
        for number, line in lines:
            try:
                if number > MAX_LINES:
                    raise BadEventError(f"more than {MAX_LINES} lines in one request")
                if self._write(line):
                    written += 1
                else:
                    repeated += 1
            except BadEventError as error:
                failed += 1
                if len(errors) < _TOLD:
                    errors.append({"line": number, "error": str(error)})
            except NotWrittenError as error:
                counts = {"written": written, "repeated": repeated, "failed": failed, "errors": errors}
                why = f"the trace cannot be written to: {error}"
                return error_reply(503, why, wait=self._guard.wait(), next=number, **counts)
        made: dict[str, Any] = {"written": written, "repeated": repeated, "failed": failed}
        if failed:
            made["errors"] = errors
        return Reply(422 if failed else 200, orjson.dumps(made), JSON)

    def wait(self) -> int | None:
        """Return the seconds until the trace may be writable again; None: it is writable."""
        wait = self._guard.wait()
        return whole_seconds(wait) if wait else None

    def _write(self, raw: bytes) -> bool:
        """Write one line; return False if it was written before."""
        line = _parsed(raw)
        if not isinstance(line, dict):
            raise BadEventError("not a JSON object")
        key = self._key(line)
        if key is not None and key in self._seen:
            return False
        with self._guard.attempt():
            if "event_type" in line:
                self._inbox.write(line)
            elif "call" in line:
                self._caller.make(line)
            else:
                raise BadEventError("neither an event (event_type) nor a call (call)")
        if key is not None:
            self._seen[key] = None
            if len(self._seen) > _SEEN:
                self._seen.popitem(last=False)
        return True

    def _key(self, line: dict[str, Any]) -> bytes | None:
        """Return the key by which a repeated line is recognised; None if it has no id."""
        event = "event_type" in line
        name = line.get("event_id" if event else "id")
        if not isinstance(name, str) or not name:
            return None
        where = (line.get("session_id") or self._default, line.get("source")) if event else ()
        return blake2b(repr((event, name, where)).encode("utf-8", "replace"), digest_size=16).digest()


def _lines(body: bytes, media: str) -> Iterator[tuple[int, bytes]]:
    """Return the numbered lines, from 1 on; of a JSON array, its elements."""
    if media == "application/json":
        if body[:64].lstrip().startswith(b"["):
            held = _parsed(body, len(body))
            return ((number, orjson.dumps(one)) for number, one in enumerate(held, 1))
        with suppress(BadEventError):  # it may be NDJSON, sent as JSON
            _parsed(body)
            return iter([(1, body)])
    return _split(body)


def _split(body: bytes) -> Iterator[tuple[int, bytes]]:
    at = number = 0
    while at < len(body):
        end = body.find(b"\n", at)
        end = len(body) if end < 0 else end
        number += 1
        line = body[at : min(end, at + MAX_LINE + 1)]
        at = end + 1
        if line.strip():
            yield number, line


def _parsed(line: bytes, limit: int = MAX_LINE) -> Any:
    if len(line) > limit:
        raise BadEventError(f"longer than {MAX_LINE >> 20} MiB")
    if deeper_than(_DEPTH, line):
        raise BadEventError(f"nested more than {_DEPTH} deep")
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise BadEventError(f"not JSON: {error.msg} (column {error.colno})") from None
