"""Reads what ``gemini -p … --output-format stream-json`` prints: a run's messages, and its totals."""

from __future__ import annotations

from typing import Any

from ctxctl.importers.gemini_cli.parts import PartCutter
from ctxctl.ingest.build import Json, canonical
from ctxctl.ingest.parts import Part, mapping, string
from ctxctl.ingest.run import Run
from ctxctl.providers.usage import stated_total


class PrintedStream:
    """Puts pieces of texts together; an answer begins where the model speaks after anything else."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._cutter = PartCutter()
        self._model: str | None = None
        self._answering = False
        self._turns = 0
        self._text: list[str] = []
        self._at = 0
        """The line of the last piece."""
        self._calls: list[Part] = []

    def take(self, record: Json) -> None:
        """Take one event of the stream."""
        kind = record.get("type")
        self._run.make.at(record.get("timestamp"))
        if kind == "init":
            self._run.session = string(record.get("session_id"))
            self._model = string(record.get("model"))
            self._run.opened(session=self._run.session)
        elif kind == "message":
            self._message(record)
        elif kind == "tool_use":
            self._answer()
            call = self._cutter.call(record.get("tool_id"), record.get("tool_name"), record.get("parameters"))
            call.line = self._run.line.number
            self._calls.append(call)
        elif kind == "tool_result":
            self._result(record)
        elif kind == "result":
            self._totals(record)

    def finish(self) -> None:
        """End what the stream left open."""
        self._settle()

    def _totals(self, record: Json) -> None:
        """Report the totals at the end of a run."""
        self._settle()
        stats = mapping(record.get("stats"))
        models = mapping(stats.get("models"))
        by_model = [_total(one, model=name) for name, one in models.items() if isinstance(one, dict)]
        total = _total(stats, by_model=by_model)
        window = self._run.thread()
        if total is not None and not window.steps:  # no answer was printed
            window.request(line=self._run.line.number, model=self._model, derived=True)
        window.stated(total, line=self._run.line.number)

    def _message(self, record: Json) -> None:
        content = record.get("content")
        if record.get("role") == "assistant":
            self._answer()
            if self._calls:
                self._flush()
            self._at = self._run.line.number
            self._text.append(content if isinstance(content, str) else canonical(content))
        else:
            self._settle()
            self._turns += 1
            window = self._run.thread()
            window.turn = f"turn-{self._turns}"
            parts = self._cutter.user(content, None)
            for part in parts:
                part.line = self._run.line.number
            window.append(*parts)

    def _result(self, record: Json) -> None:
        self._settle()
        error, output = record.get("error"), record.get("output")
        failed = record.get("status") == "error"
        if isinstance(error, dict) and not isinstance(output, str):
            output = string(error.get("message")) or canonical(error)
        text = output if isinstance(output, str) else ""
        parts = self._cutter.result(record.get("tool_id"), None, text, failed=failed)
        for part in parts:
            part.line = self._run.line.number
        self._run.thread().append(*parts)

    def _answer(self) -> None:
        """Seal the window as it is: the model speaks now."""
        if not self._answering:
            self._answering = True
            self._run.thread().request(line=self._run.line.number, model=self._model, derived=True)

    def _settle(self) -> None:
        """End the answer."""
        self._flush()
        self._answering = False

    def _flush(self) -> None:
        pieces, self._text = self._text, []
        calls, self._calls = self._calls, []
        text, line, several = "".join(pieces), self._at, len(pieces) > 1
        parts = [Part("assistant_message", text, "assistant", line=line, derived=several)] if text else []
        self._run.thread().append(*parts, *calls)


def _total(stats: Json, **more: Any) -> Json | None:
    return stated_total(
        "turn", input_tokens=stats.get("input_tokens"), cached=stats.get("cached"),
        output_tokens=stats.get("output_tokens"), **more,
    )  # fmt: skip
