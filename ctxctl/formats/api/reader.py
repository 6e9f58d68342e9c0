"""A file of bodies: its requests with their answers, as calls."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from ctxctl.formats import wire
from ctxctl.formats.api import detecting
from ctxctl.formats.api.shapes import Shape, requests_of, shape
from ctxctl.formats.api.waiting import MAX_WAITING, Asked, Waiting
from ctxctl.formats.build import Json, Place
from ctxctl.formats.calls import answers, bodies
from ctxctl.formats.calls.http import Call, Calls
from ctxctl.formats.calls.kinds import is_answer
from ctxctl.formats.kit.run import Run
from ctxctl.formats.lines import Line, Report, values
from ctxctl.formats.wire import stream
from ctxctl.model.problem import Problem
from ctxctl.trace.source import Source

NAME: Final = "api"
MAX_EVENTS: Final = 1_000_000
"""Events of one answer's stream, one a line, that are put together."""
MAX_STREAM: Final = 64 << 20
"""Bytes of an event stream that is a file by itself."""


class Log:
    """Takes bodies in their order and pairs each answer with its request: by its id, else the one before it.

    Problems: `unknown-record`, `no-request`, `waited-too-long`.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.calls = Calls(run)
        self._waiting = Waiting()
        self.lone = 0
        """Answers without a request so far."""

    def take(self, record: Any, line: Line) -> Iterator[Json]:
        """The next record of a log; gives the events of what need not wait any longer."""
        for one in requests_of(record):
            found = shape(one)
            if found is None:
                self.run.problem("unknown-record", "no body of a request or of an answer; skipped", line)
                continue
            self._take(found, line)
            yield from self._hand_on()

    def _take(self, found: Shape, line: Line) -> None:
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
        """Hand on the requests that no answer came for."""
        yield from self._hand_on(all_of_them=True)

    def _call(self, asked: Asked) -> None:
        """A request with what is known of it."""
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

    def answer(self, found: Shape, line: int) -> None:
        """An answer without its request: what was said, outside any window."""
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
        dialect = wire.of_response(first)
        name = dialect.name if dialect is not None else stream.dialect_of(first)
        if name is None:
            return
        dialect = wire.by_name(name)
        body = answers.final(found.response, dialect)
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
        """Hand on the rest."""
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
    yield from feed(log, source)
    yield from log.finish()


def framed(source: Source, run: Run) -> list[Any] | None:
    """The events of one answer as it came over a socket, one a line; None for any other file."""
    if not detecting.frames(source.read(0, 1 << 10)):
        return None
    found = [record for _, record in islice(values(source, run.report), MAX_EVENTS)]
    return found if len(found) > 1 and is_answer(found) else None


def feed(log: Log, source: Source) -> Iterator[Json]:
    """Take every record of a file."""
    head = source.read(0, 1 << 10)
    if bodies.is_stream(head.decode("utf-8", "replace")):
        text = source.read(0, MAX_STREAM).decode("utf-8", "replace").removeprefix("\ufeff")
        yield from log.take(text, Line(1, 0, b""))
        return
    run = log.run
    found: list[Problem] = []
    answer = framed(source, Run(NAME, found.append))
    if answer is not None:
        for problem in found:
            run.report(problem)
        yield from log.take(answer, Line(1, 0, b""))
        return
    for line, value in values(source, run.report):
        run.line = line
        for record in value if isinstance(value, list) else [value]:
            yield from log.take(record, line)
        yield from run.drain()
