"""The events that pi prints (`--mode json`, `--mode rpc`), also where a test runner wrapped them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from ctxctl.importers.pi.reader import Session
from ctxctl.ingest.build import Json
from ctxctl.ingest.lines import Line, Report, values_of_line
from ctxctl.ingest.parts import moment, string
from ctxctl.trace.source import Source

RAW: Final = "agentv.raw_provider_log_line"
_STAMP = re.compile(r"\[\+[\d:.]+\] \[(?:stdout|stderr)\] ?")
_MAX_LOG: Final = 64 << 20
"""The most characters of a log that is put together in memory."""


class Stream(Session):
    """Reads a stream, by its `message_end` events, as the others repeat the same."""

    def __init__(self, name: str, report: Report) -> None:
        super().__init__(name, report)
        self._messages = 0
        """The messages since the agent began."""
        self._log: list[str] = []
        self._log_size = 0

    def events(self, source: Source) -> Iterator[Json]:
        """The events of a stream, or of what a runner kept of one."""
        for record in self.records(source):
            if str(record.get("schema_version")).startswith(RAW):
                self._hold(record)
                continue
            logged = _logged(record)
            if logged is None:
                self._one(record)
            else:
                self._text(logged)
            yield from self.drain()
        if self._log:
            self._text("".join(self._log))
        yield from self.finish()

    def _hold(self, record: Json) -> None:
        """Take a line of a log, in which each event that pi printed stands behind a time, laid out over
        lines."""
        text = record.get("content")
        if not isinstance(text, str) or self._log_size > _MAX_LOG:
            return
        self._log_size += len(text)
        stamp = _STAMP.match(text)
        if stamp is not None:
            self._log.append("\n" + text[stamp.end() :])
        elif not text.startswith("#"):
            self._log.append(text)

    def _text(self, text: str) -> None:
        """Read what was printed, an event a line."""
        found = 0
        for row in text.split("\n"):
            if not row.lstrip().startswith("{"):
                continue
            for value in values_of_line(
                Line(self.line.number, self.line.offset, row.encode("utf-8", "replace")), self.report
            ):
                if isinstance(value, dict):
                    found += 1
                    self._one(value)
        if not found and text.strip():
            self.problem("unknown-record", "a log of what happened, without the messages: nothing to replay")

    def _one(self, record: Json) -> None:
        kind = record.get("type")
        message = record.get("message")
        if kind == "agent_start":
            self._messages = 0
        elif kind == "message_end" and isinstance(message, dict):
            self._said(message)
        elif kind == "agent_end" and not self._messages:
            said = record.get("messages")
            for one in said if isinstance(said, list) else []:
                if isinstance(one, dict):
                    self._said(one)
        elif kind in ("compaction_end", "auto_compaction_end"):
            result = record.get("result")
            if isinstance(result, dict) and string(result.get("summary")) is not None:
                self.summary(result)
        elif kind in ("session", "model_change"):
            self.take(record)

    def _said(self, message: Json) -> None:
        self._messages += 1
        self.make.at(moment(message.get("timestamp")))
        self.message(message, None)


def _logged(record: Json) -> str | None:
    """The command's output that a runner kept; None for a record that is no runner's."""
    inner: Any = record.get("target_execution", record)
    logs = inner.get("logs") if isinstance(inner, dict) else None
    out = logs.get("stdout") if isinstance(logs, dict) else None
    text = out.get("text") if isinstance(out, dict) else None
    return text if isinstance(text, str) else None
