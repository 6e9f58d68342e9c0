"""The log of requests: `TO LLM` with every message as it was sent, `LLM RESPONSE` with the answer.

Each line of a message is preceded by its role in capitals; messages are told apart by a rule of dashes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ctxctl.ingest.build import Json
from ctxctl.ingest.conversation import Conversation
from ctxctl.ingest.lines import Report
from ctxctl.ingest.lines import lines as lines_of
from ctxctl.ingest.parts import Part
from ctxctl.ingest.run import Run
from ctxctl.trace.source import Source

_MARK: Final = re.compile(r"(TO LLM|LLM RESPONSE) (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\s*\Z")
_RULE: Final = "-------"
_SAID: Final = re.compile(r"(SYSTEM|USER|ASSISTANT|TOOL|FUNCTION|DEVELOPER)(?: (.*))?\Z", re.DOTALL)
_KINDS: Final = {
    "SYSTEM": "system_prompt",
    "DEVELOPER": "developer_instruction",
    "USER": "user_message",
    "ASSISTANT": "assistant_message",
    "TOOL": "tool_result",
    "FUNCTION": "tool_result",
}
_ROLES: Final = {"DEVELOPER": "system", "FUNCTION": "tool"}


class Log:
    """One log; a request whose first message is new begins no session, as nothing says so."""

    def __init__(self, name: str, report: Report) -> None:
        self._run = Run(name, report)
        self._window: Conversation = self._run.thread()
        self._parts: list[Part] = []
        self._role: str | None = None
        self._text: list[str] = []
        self._at = 0
        self._mark: str | None = None
        self._mark_at = 0
        self._last: str | None = None
        self._turns = 0

    def events(self, source: Source) -> Iterator[Json]:
        """The log's steps, as its lines come."""
        self._run.opened()
        for line in lines_of(source, self._run.report):
            self._run.line = line
            text = line.data.decode("utf-8", "replace")
            mark = _MARK.match(text)
            if mark is not None:
                self._section()
                self._mark, self._mark_at = mark.group(1), line.number
                self._run.make.at(mark.group(2))
                yield from self._run.drain()
            else:
                self._line(text)
        self._section()
        yield from self._run.finish()

    def _line(self, text: str) -> None:
        if text.rstrip() == _RULE:
            self._message()
            return
        said = _SAID.match(text)
        if said is None:
            if self._role is not None:
                self._text.append(text)
            return
        if said.group(1) != self._role:
            self._message()
            self._role, self._at = said.group(1), self._run.line.number
        self._text.append(said.group(2) or "")

    def _message(self) -> None:
        if self._role is not None and self._text:
            role = _ROLES.get(self._role, self._role.lower())
            text = "\n".join(self._text)
            self._parts.append(Part(_KINDS[self._role], text, role, line=self._at))
        self._role, self._text = None, []

    def _section(self) -> None:
        """A request, or an answer, is complete."""
        self._message()
        parts, self._parts = self._parts, []
        if self._mark == "TO LLM" and parts:
            asked = next((part.digest for part in reversed(parts) if part.kind == "user_message"), None)
            if asked != self._last:
                self._turns += 1
                self._last = asked
            self._window.turn = f"turn-{self._turns}"
            self._window.replace(parts)
            self._window.request(line=self._mark_at)
        elif self._mark == "LLM RESPONSE":
            self._window.append(*parts)
        self._mark = None
