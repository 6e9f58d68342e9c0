"""A file of bodies: its requests with their answers, as calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ctxctl.formats import wire
from ctxctl.formats.api.shapes import Shape, shape
from ctxctl.formats.build import Json, Place
from ctxctl.formats.calls import answers, bodies
from ctxctl.formats.calls.http import Call, Calls
from ctxctl.formats.kit.run import Run
from ctxctl.formats.lines import Line, Report, values
from ctxctl.formats.wire import stream
from ctxctl.trace.source import Source

NAME: Final = "api"
MAX_STREAM: Final = 64 << 20
"""Bytes of an event stream that is a file by itself."""


class Log:
    """Takes bodies in their order and pairs each answer with the request before it."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.calls = Calls(run)
        self._open: tuple[Shape, int] | None = None
        self.lone = 0
        """Answers without a request so far."""

    def take(self, record: Any, line: Line) -> None:
        """The next record of a log."""
        found = shape(record)
        if found is None:
            self.run.problem("unknown-record", "no body of a request or of an answer; skipped", line)
        elif found.request is not None and found.response is not None:
            self.flush()
            self.pair(found, line.number)
        elif found.request is not None:
            self.flush()
            self._open = found, line.number
        elif self._open is not None and self._fits(self._open[0], found):
            asked, number = self._open
            self._open = None
            both = asked._replace(response=found.response, status=asked.status or found.status)
            self.pair(both, number, line.number)
        else:
            self.answer(found, line)

    def flush(self) -> None:
        """Hand on a request that no answer came for."""
        if self._open is not None:
            asked, number = self._open
            self._open = None
            self.pair(asked, number)

    def pair(self, found: Shape, number: int, answered: int = 0) -> None:
        """A request with what is known of it."""
        self.calls.take(
            Call(
                url=found.url,
                request=found.request,
                response=found.response,
                status=found.status,
                line=number,
                time=found.time,
                native_id=found.id,
                session=found.session,
                thread=found.thread,
                turn=found.turn,
                error=found.error,
                answer_line=answered,
            )
        )

    def answer(self, found: Shape, line: Line) -> None:
        """An answer without its request: what was said, outside any window."""
        self.lone += 1
        if self.lone == 1:
            message = "an answer without its request: what it was given is not recorded"
            self.run.problem("no-request", message, line)
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
            part.line = line.number
        conversation = self.run.thread()
        conversation.append(*parts)
        bill = dialect.usage(body)
        if bill is not None:
            conversation.usage(bill, line=line.number, place=Place(self.run.session))

    def finish(self) -> Iterator[Json]:
        """Hand on the rest."""
        self.flush()
        if self.lone and not self.calls.asked:
            self.calls.exchanges.finish()
            yield from self.run.finish()
            return
        yield from self.calls.finish()

    @staticmethod
    def _fits(asked: Shape, found: Shape) -> bool:
        return asked.id is None or found.id is None or asked.id == found.id


def read(source: Source, report: Report) -> Iterator[Json]:
    """The file's events."""
    run = Run(NAME, report)
    log = Log(run)
    yield from feed(log, source)
    yield from log.finish()


def feed(log: Log, source: Source) -> Iterator[Json]:
    """Take every record of a file."""
    head = source.read(0, 1 << 10)
    if bodies.is_stream(head.decode("utf-8", "replace")):
        text = source.read(0, MAX_STREAM).decode("utf-8", "replace").removeprefix("\ufeff")
        log.take(text, Line(1, 0, b""))
        return
    run = log.run
    for line, value in values(source, run.report):
        run.line = line
        for record in value if isinstance(value, list) else [value]:
            log.take(record, line)
        yield from run.drain()
