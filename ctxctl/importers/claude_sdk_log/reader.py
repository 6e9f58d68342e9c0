"""Reads messages of the control protocol: what came back is a stream, and the prompts were sent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ctxctl.importers.claude_stream.reader import Stream
from ctxctl.ingest.build import Json
from ctxctl.ingest.document import document
from ctxctl.ingest.lines import Report
from ctxctl.ingest.parts import string
from ctxctl.ingest.run import Run
from ctxctl.trace.source import Source

NAME: Final = "claude-sdk-log"


def read(source: Source, report: Report) -> Iterator[Json]:
    """The log's events."""
    run = Run(NAME, report)
    log = _Log(run)
    log.stream.look_ahead(source)
    for record in _records(source, run):
        message = record.get("message")
        if isinstance(message, dict):
            log.take(message, sent=record.get("direction") == "send")
        else:
            run.problem("not-a-record", "no message in it; skipped")
        yield from run.drain()
    log.flush()
    yield from log.stream.finish()


def _records(source: Source, run: Run) -> Iterator[Json]:
    if b'"messages"' not in source.read(0, 8192):
        yield from run.records(source)
        return
    found = document(source, run.report)
    records = found.get("messages") if isinstance(found, dict) else None
    for record in records if isinstance(records, list) else []:
        if isinstance(record, dict):
            yield record
        else:
            run.problem("not-a-record", "not a JSON object; skipped")


class _Log:
    def __init__(self, run: Run) -> None:
        self._run = run
        self.stream = Stream(run, repeats=False)
        self._waiting: list[Json] = []
        """The prompts that were sent before the session had its id."""

    def take(self, message: Json, *, sent: bool) -> None:
        """The next message."""
        if sent:
            if message.get("type") == "user":
                self._waiting.append(message)
                if self._run.session is not None:
                    self.flush()
            return
        session = string(message.get("session_id"))
        if session is not None:
            self._run.session = session
            self.flush()
        self.stream.take(message)

    def flush(self) -> None:
        """Tell the prompts that wait for the session to have its id."""
        waiting, self._waiting = self._waiting, []
        for message in waiting:
            said = message.get("message")
            if isinstance(said, dict):
                self.stream.user(message, said)
