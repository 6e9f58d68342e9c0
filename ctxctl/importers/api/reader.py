"""Reads files and directories of API bodies as calls.

An answer may stand in any order beside its request, or lines or files later.  In a directory, the files'
names tell which two are a pair and in what order they were sent.
"""

from __future__ import annotations

import re
from collections import OrderedDict, deque
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, NamedTuple

import orjson

from ctxctl.errors import CtxctlError
from ctxctl.importers.api import detection, is_body_file
from ctxctl.importers.api.records import BodyRecord, body_record, requests_of
from ctxctl.ingest.build import Json, Place
from ctxctl.ingest.document import document
from ctxctl.ingest.folder import Folder
from ctxctl.ingest.lines import WHOLE_FILE, Line, Report, ignore_problem, lines, values
from ctxctl.ingest.run import Run
from ctxctl.model.problem import Problem
from ctxctl.providers import dialects
from ctxctl.providers.calls import answers, encodings
from ctxctl.providers.calls.http import Call, Calls
from ctxctl.providers.calls.recognise import is_answer
from ctxctl.providers.dialects import stream
from ctxctl.trace.source import Source

NAME: Final = "api"
MAX_EVENTS: Final = 1_000_000
"""The most events of one answer's stream, one a line, that are put together."""
MAX_STREAM: Final = 64 << 20
"""The most bytes that are read of an event stream that is a file by itself."""


class Log:
    """Takes bodies in their order and pairs each answer with its request: by its id, else the one before it.

    Problems: `unknown-record`, `no-request`, `waited-too-long`.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.calls = Calls(run)
        self._waiting = PendingCalls()
        self.lone = 0
        """Answers without a request so far."""

    def take(self, record: Any, line: Line) -> Iterator[Json]:
        """Take the next record; yield the events of calls that need not wait any longer."""
        for one in requests_of(record):
            found = body_record(one, self.calls.unpacker)
            if found is None:
                self.run.problem("unknown-record", "no body of a request or of an answer; skipped", line)
                continue
            self._take(found, line)
            yield from self._hand_on()

    def _take(self, found: BodyRecord, line: Line) -> None:
        if found.request is None:
            if not self._waiting.answer(found, line.number, self.run.make.file):
                self.answer(found, line.number)
        elif found.response is None:
            self._waiting.ask(found, line.number, self.run.make.file)
        else:
            self._waiting.pair(found, line.number, self.run.make.file)

    def _hand_on(self, *, all_of_them: bool = False) -> Iterator[Json]:
        """Hand on the requests that need not wait."""
        before = self._waiting.dropped
        present = self.run.make.file
        for asked, file in self._waiting.ready(all_of_them=all_of_them):
            self.run.make.file = file
            self._call(asked)
            self.run.make.file = present
            yield from self.run.drain()
        if before == 0 < self._waiting.dropped:
            limit = MAX_WAITING >> 20
            message = f"more than {limit} MiB of requests wait for answers: the first ones are read without"
            self.run.problem("waited-too-long", message)

    def flush(self) -> Iterator[Json]:
        """Hand on the requests that got no answer."""
        yield from self._hand_on(all_of_them=True)

    def _call(self, asked: PendingCall) -> None:
        """Make the call of a request, with what is known of it."""
        found = asked.shape
        self.calls.take(
            Call(
                url=found.url,
                method=found.method,
                request=found.request,
                response=found.response,
                status=found.status,
                line=asked.line,
                time=found.time,
                native_id=found.id,
                session=found.session,
                thread=found.thread or found.batch,
                turn=found.turn,
                error=found.error,
                answer_line=asked.answer_line,
                answer_file=asked.answer_file,
            )
        )

    def answer(self, found: BodyRecord, line: int) -> None:
        """Take an answer without its request: what was said, outside any window."""
        failed = found.failure()
        if failed is not None:
            message = f"a request that has no answer ({failed}); the request is not in the file"
            self.run.problem("no-request", message, Line(line, 0, b""))
            return
        self.lone += 1
        if self.lone == 1:
            message = "an answer without its request: the request is not in the file"
            self.run.problem("no-request", message, Line(line, 0, b""))
        first = found.response[0] if isinstance(found.response, list) else found.response
        if isinstance(first, str):
            first = next(stream.events(first), {})
        dialect = dialects.of_response(first)
        name = dialect.name if dialect is not None else stream.dialect_of(first)
        if name is None:
            return
        dialect = dialects.by_name(name)
        body = answers.final_response(found.response, dialect)
        if body is None:
            return
        parts = dialect.reply(body)
        for part in parts:
            part.line = line
        # Another request must not be billed for it: it stands in a thread of its own.
        first_of_all = self.lone == 1 and not self.calls.asked
        thread = found.thread or found.batch or (None if first_of_all else f"answer-{self.lone}")
        conversation = self.run.thread(thread)
        conversation.append(*parts)
        bill = dialect.usage(body)
        if bill is not None:
            conversation.usage(bill, line=line, place=Place(self.run.session, thread))

    def finish(self) -> Iterator[Json]:
        """Make the calls that still wait for an answer and hand on the rest."""
        yield from self.flush()
        for found, line, file in self._waiting.alone():
            self.run.make.file = file
            self.answer(found, line)
            yield from self.run.drain()
        if self.lone and not self.calls.asked:
            self.calls.exchanges.finish()
            yield from self.run.finish()
            return
        yield from self.calls.finish()


def read(source: Source, report: Report) -> Iterator[Json]:
    """The file's events."""
    run = Run(NAME, report)
    log = Log(run)
    yield from take_records(log, source)
    yield from log.finish()


def framed_events(source: Source, run: Run) -> list[Any] | None:
    """The events of one answer as it came over a socket, one a line; None for any other file."""
    if not detection.frame_score(source.read(0, 1 << 10)):
        return None
    found = [record for _, record in islice(values(source, run.report), MAX_EVENTS)]
    return found if len(found) > 1 and is_answer(found) else None


def take_records(log: Log, source: Source) -> Iterator[Json]:
    """Take every record of a file."""
    head = source.read(0, 1 << 10)
    if encodings.is_stream(head.decode("utf-8", "replace")):
        text = source.read(0, MAX_STREAM).decode("utf-8", "replace").removeprefix("\ufeff")
        yield from log.take(text, WHOLE_FILE)
        return
    run = log.run
    found: list[Problem] = []
    answer = framed_events(source, Run(NAME, found.append))
    if answer is not None:
        for problem in found:
            run.report(problem)
        yield from log.take(answer, WHOLE_FILE)
        return
    for line, value in values(source, run.report):
        run.line = line
        for record in value if isinstance(value, list) else [value]:
            yield from log.take(record, line)
        yield from run.drain()


MAX_WAITING: Final = 64 << 20
"""The most bytes of waiting requests (and of answers behind them), as JSON."""
_UNPACKED_SIZE: Final = 1 << 16
"""The bytes that a record counts for when it cannot be packed."""


class PendingCall(NamedTuple):
    """A request, with its answer if that has come."""

    shape: BodyRecord
    line: int
    answer_line: int = 0
    answer_file: str | None = None


class _PackedCall:
    """An entry of the queue; what waits is kept as JSON, which takes a fraction of the memory."""

    __slots__ = (
        "_answer",
        "_request",
        "answer_file",
        "answer_line",
        "answered",
        "file",
        "id",
        "line",
        "size",
    )

    def __init__(self, shape: BodyRecord, line: int, file: str | None) -> None:
        self.line = line
        self.file = file
        self.answer_line = 0
        self.answer_file: str | None = None
        self.id = shape.id
        self.answered = False
        self._request: bytes | BodyRecord = _packed(shape)
        self._answer: bytes | BodyRecord | None = None
        self.size = _size(self._request)

    def shape(self) -> BodyRecord:
        return _unpacked(self._request)

    def answer(self, shape: BodyRecord, line: int, file: str | None) -> int:
        """Take the answer; return the bytes that it adds."""
        self._answer, self.answered = _packed(shape), True
        self.answer_line, self.answer_file = line, file
        added = _size(self._answer)
        self.size += added
        return added

    def asked(self) -> PendingCall:
        shape = _unpacked(self._request)
        if self._answer is not None:
            answer = _unpacked(self._answer)
            status = shape.status if shape.status is not None else answer.status
            shape = shape._replace(response=answer.response, status=status, error=shape.error or answer.error)
        return PendingCall(shape, self.line, self.answer_line, self.answer_file)


class PendingCalls:
    """Requests in their order, each handed on once it is answered or given up."""

    def __init__(self) -> None:
        self._queue: OrderedDict[int, _PackedCall] = OrderedDict()
        self._named: dict[str, deque[int]] = {}
        self._early: OrderedDict[str, _PackedCall] = OrderedDict()
        """Answers of a batch whose requests have not come yet."""
        self._last: int | None = None
        """The request that an answer without an id answers."""
        self._next = 0
        self._size = 0
        self.dropped = 0
        """Requests that were handed on without an answer because too much waited."""

    def ask(self, shape: BodyRecord, line: int, file: str | None = None) -> None:
        """Add a request; an earlier one without an id is given up."""
        key, held = self._put(shape, line, file)
        early = self._early.pop(shape.id or "", None)
        if early is not None:
            self._size += held.answer(early.shape(), early.line, early.file) - early.size
            return
        self._last = key
        if shape.id is not None:
            self._named.setdefault(shape.id, deque()).append(key)

    def pair(self, shape: BodyRecord, line: int, file: str | None = None) -> None:
        """Add a request that has its answer already, behind those that wait."""
        self._put(shape, line, file)[1].answered = True

    def answer(self, shape: BodyRecord, line: int, file: str | None = None) -> bool:
        """Take an answer; False if no request waits for it, and none may come yet."""
        key = self._named[shape.id][0] if shape.id in self._named else self._last
        held = self._queue.get(key) if key is not None else None
        if key is not None and held is not None and (None in (held.id, shape.id) or held.id == shape.id):
            self._forget(key, held)
            self._size += held.answer(shape, line, file)
            return True
        if shape.batch is None or shape.batch in self._early or self._size > MAX_WAITING:
            return False
        early = self._early[shape.batch] = _PackedCall(shape, line, file)
        self._size += early.size
        return True

    def _put(self, shape: BodyRecord, line: int, file: str | None) -> tuple[int, _PackedCall]:
        last = self._queue.get(self._last) if self._last is not None else None
        if last is not None and last.id is None:
            last.answered = True
        key, self._next = self._next, self._next + 1
        held = self._queue[key] = _PackedCall(shape, line, file)
        self._size += held.size
        return key, held

    def alone(self) -> Iterator[tuple[BodyRecord, int, str | None]]:
        """Take out the answers of batches whose requests never came, with their lines and files."""
        while self._early:
            _, early = self._early.popitem(last=False)
            self._size -= early.size
            yield early.shape(), early.line, early.file

    def ready(self, *, all_of_them: bool = False) -> Iterator[tuple[PendingCall, str | None]]:
        """Hand on what need not wait any longer, in the order asked, with the file that each is from."""
        while self._queue:
            key, held = next(iter(self._queue.items()))
            if not held.answered and not all_of_them:
                if self._size <= MAX_WAITING:
                    return
                self.dropped += 1
            del self._queue[key]
            self._forget(key, held)
            self._size -= held.size
            yield held.asked(), held.file

    def _forget(self, key: int, held: _PackedCall) -> None:
        """Take care that no answer goes to this entry any more."""
        if key == self._last:
            self._last = None
        keys = self._named.get(held.id) if held.id is not None else None
        if keys is not None and held.id is not None and key in keys:
            keys.remove(key)
            if not keys:
                del self._named[held.id]


def _packed(shape: BodyRecord) -> bytes | BodyRecord:
    try:
        # Copied, because the encoder's bytes keep a larger buffer alive.
        return memoryview(orjson.dumps(shape._asdict())).tobytes()
    except TypeError:
        # Nested too deep, or characters that no UTF-8 has: what was salvaged of a damaged line.
        return shape


def _unpacked(held: bytes | BodyRecord) -> BodyRecord:
    return held if isinstance(held, BodyRecord) else BodyRecord(**orjson.loads(held))


def _size(held: bytes | BodyRecord) -> int:
    return len(held) if isinstance(held, bytes) else _UNPACKED_SIZE


_ASKED: Final = re.compile(r"(?<![a-z])(?:requests?|req|prompt|input|in|sent)(?![a-z])")
_ANSWERED: Final = re.compile(
    r"(?<![a-z])(?:responses?|resp?|reply|answer|output|out|completion|received|stream)(?![a-z])"
)
_ENDS: Final = re.compile(r"(?:\.(?:json|jsonl|ndjson|sse|txt|body|gz|zst|event-stream))+\Z")
_NUMBER: Final = re.compile(r"\d+")


class _Name(NamedTuple):
    """A file by its name."""

    stem: str
    """What the names of a request and of its answer share."""
    answer: bool | None
    """None: the name does not say."""
    file: str


def _named(file: str) -> _Name:
    folder, slash, base = file.rpartition("/")
    base = _ENDS.sub("", base.lower())
    kind: bool | None = None
    if _ANSWERED.search(base):
        kind = True
        base = _ANSWERED.sub("", base)
    elif _ASKED.search(base):
        kind = False
        base = _ASKED.sub("", base)
    if kind is None and slash:
        # Requests are in one directory and answers in another, with the same names in both.
        last = folder.rpartition("/")[2].lower()
        if _ANSWERED.fullmatch(last) or _ASKED.fullmatch(last):
            kind = _ANSWERED.fullmatch(last) is not None
            folder = folder.rpartition("/")[0]
    return _Name(f"{folder}/{base.strip('-_. ')}", kind, file)


def _order(stem: str) -> tuple[tuple[int, Any], ...]:
    """A sort key that orders names by the numbers in them."""
    made: list[tuple[int, Any]] = []
    at = 0
    for match in _NUMBER.finditer(stem):
        made += [(1, stem[at : match.start()]), (0, int(match.group()[:18]))]
        at = match.end()
    return (*made, (1, stem[at:]))


def read_folder(folder: Folder, report: Report) -> Iterator[Json]:
    """The directory's events; problems and events name the file they are from."""
    run = Run(NAME, report)
    log = Log(run)
    groups: dict[str, list[_Name]] = {}
    for file in folder.files:
        if is_body_file(file):
            name = _named(file)
            groups.setdefault(name.stem, []).append(name)
    for stem in sorted(groups, key=_order):
        names = sorted(groups[stem], key=lambda name: (name.answer is True, name.file))
        for name in names:
            run.make.file = name.file
            for record, line in _records(folder, name, log):
                yield from log.take(record, line)
        if len(names) > 1:
            yield from log.flush()
        yield from run.drain()
    yield from log.finish()


def _records(folder: Folder, name: _Name, log: Log) -> Iterator[tuple[Any, Line]]:
    """The bodies of a file, with the lines that they are on."""
    run, unpacker = log.run, log.calls.unpacker
    try:
        source = folder.open(name.file)
    except CtxctlError as error:
        run.report(Problem(0, 0, error.slug, str(error)))
        return
    with source:
        head = source.read(0, 1 << 10).decode("utf-8", "replace")
        if encodings.is_stream(head):
            yield source.read(0, MAX_STREAM).decode("utf-8", "replace").removeprefix("\ufeff"), WHOLE_FILE
            return
        if _is_lines(source):
            answer = framed_events(source, run) if name.answer else None
            if answer is not None:
                yield answer, WHOLE_FILE
            else:
                yield from ((record, line) for line, record in values(source, run.report))
            return
        value = document(source, run.report)
    records = value if isinstance(value, list) and not is_answer(value) else [value]
    for record in records:
        if record is not None and (body_record(record, unpacker) is not None or name.answer is not None):
            yield record, WHOLE_FILE


def _is_lines(source: Source) -> bool:
    """Whether a file is JSON lines: more follows what is a whole object already."""
    first, *more = [*islice(lines(source, ignore_problem), 2)] or [WHOLE_FILE]
    try:
        return bool(more) and isinstance(orjson.loads(first.data), dict)
    except orjson.JSONDecodeError:
        return False
