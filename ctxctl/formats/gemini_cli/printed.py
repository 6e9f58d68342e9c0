"""What `gemini --output-format stream-json` prints."""

from __future__ import annotations

from ctxctl.formats.build import Json, canonical
from ctxctl.formats.gemini_cli.contents import Cutter
from ctxctl.formats.kit.parts import Part, string
from ctxctl.formats.kit.run import Run
from ctxctl.model import vocab


class Printed:
    """Puts pieces of texts together; an answer begins where the model speaks after anything else."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._cutter = Cutter()
        self._model: str | None = None
        self._answering = False
        self._turns = 0
        self._text: list[str] = []
        self._at = 0
        """Line of the last piece."""
        self._calls: list[Part] = []

    def take(self, record: Json) -> None:
        """One event."""
        kind = record.get("type")
        self._run.make.at(record.get("timestamp"))
        if kind == "init":
            self._run.session = string(record.get("session_id"))
            self._model = string(record.get("model"))
            told = {"format": self._run.name, "session": self._run.session}
            self._run.emit(vocab.SOURCE_OPENED, {name: value for name, value in told.items() if value})
        elif kind == "message":
            self._message(record)
        elif kind == "tool_use":
            self._answer()
            call = self._cutter.call(record.get("tool_id"), record.get("tool_name"), record.get("parameters"))
            call.line = self._run.line.number
            self._calls.append(call)
        elif kind == "tool_result":
            self._result(record)

    def finish(self) -> None:
        """The end of the stream."""
        self._settle()

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
        """The model speaks: the window as it is was its request."""
        if not self._answering:
            self._answering = True
            self._run.thread().request(line=self._run.line.number, model=self._model, derived=True)

    def _settle(self) -> None:
        """The answer is over."""
        self._flush()
        self._answering = False

    def _flush(self) -> None:
        pieces, self._text = self._text, []
        calls, self._calls = self._calls, []
        text, line, several = "".join(pieces), self._at, len(pieces) > 1
        parts = [Part("assistant_message", text, "assistant", line=line, derived=several)] if text else []
        self._run.thread().append(*parts, *calls)
