"""Transcripts: the messages of a session, without a word on requests; each answer had one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ctxctl.formats.amplifier import parts as shapes
from ctxctl.formats.amplifier.origins import Origins
from ctxctl.formats.build import Json, digest_of
from ctxctl.formats.kit.parts import Part, string
from ctxctl.formats.kit.run import Run
from ctxctl.formats.lines import Report
from ctxctl.trace.source import Source

NAME: Final = "amplifier"
_ROLES: Final = frozenset({"user", "assistant", "tool", "system", "developer"})


class Transcript(Run):
    """One import of `transcript.jsonl` or `context-messages.jsonl`.

    Both hold the full history; what compaction left out of a request is not recorded there.
    """

    def __init__(self, report: Report, session: str | None = None, prefix: str = "amp") -> None:
        super().__init__(NAME, report, prefix)
        self.session = session

    def events(self, source: Source) -> Iterator[Json]:
        """The window before each answer, as far as the messages tell it."""
        told = self.thread()
        told.injected = {"derived": True, "turn": "derived", "lacks": ["wrapper"]}
        origins = Origins()
        turns = 0
        titles: dict[str, str | None] = {}
        for row in self.records(source):
            if row.get("role") not in _ROLES:
                self.problem("unknown-record", "not a message: no role that is known; skipped")
                continue
            self.make.at(_time(row))
            line = self.line.number
            if row.get("role") == "assistant":
                told.request(line=line, derived=True)
                yield from self.drain()
            elif shapes.is_prompt(row):
                turns += 1
                told.turn = f"turn-{turns}"
            told.append(*titled(shapes.message(row, origins.of, line), titles))
        yield from self.finish()


def titled(found: list[Part], titles: dict[str, str | None]) -> list[Part]:
    """The parts, results with the titles of their calls."""
    for part in found:
        if part.kind == "tool_call" and part.item:
            titles[f"{part.item}/result"] = part.title
        elif part.kind == "tool_result" and part.item in titles:
            part.title = titles[part.item]
    return found


class Script:
    """A transcript beside a log that holds no messages' text: what entered before each request."""

    def __init__(self, rows: list[tuple[int, Json]]) -> None:
        self.answers = sum(row.get("role") == "assistant" for _, row in rows)
        self.prompts = [
            digest_of(shapes.plain(row.get("content"))) for _, row in rows if shapes.is_prompt(row)
        ]
        self.calls = {name for _, row in rows if (name := string(row.get("tool_call_id"))) is not None}
        self._rows = rows
        self._at = 0
        self._begun = False
        self._titles: dict[str, str | None] = {}

    def entered(self, origins: Origins) -> tuple[list[Part], int]:
        """What entered since the last request, the answer to that one first; and how many prompts."""
        made: list[Part] = []
        prompts = 0
        first = self._at if self._begun else -1
        self._begun = True
        while self._at < len(self._rows):
            line, row = self._rows[self._at]
            if row.get("role") == "assistant" and self._at > first:
                break
            prompts += shapes.is_prompt(row)
            made += titled(shapes.message(row, origins.of, line), self._titles)
            self._at += 1
        return made, prompts


def rows_of(run: Run, source: Source) -> list[tuple[int, Json]]:
    """The messages of a transcript with their lines."""
    return [(run.line.number, row) for row in run.records(source) if row.get("role") in _ROLES]


def _time(row: Json) -> Any:
    meta = row.get("metadata")
    return meta.get("timestamp") if isinstance(meta, dict) and "timestamp" in meta else row.get("timestamp")
