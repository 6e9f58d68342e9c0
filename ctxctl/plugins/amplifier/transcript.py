"""Transcripts hold a session's messages without a word on requests; each answer had one.

The files of the system prompt come from what `mentions:resolved` tells of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from ctxctl.ingest.build import Json, digest_of
from ctxctl.ingest.lines import Report
from ctxctl.ingest.parts import Part, objects_of, string
from ctxctl.ingest.run import Run
from ctxctl.plugins.amplifier import parts
from ctxctl.plugins.amplifier.parts import Piece
from ctxctl.trace.source import Source

NAME: Final = "amplifier"
_ROLES: Final = ("user", "assistant", "tool", "system", "developer")


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
        origins = FileOrigins()
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
            elif parts.is_prompt(row):
                turns += 1
                told.turn = f"turn-{turns}"
            told.append(*with_titles(parts.message_parts(row, origins.of, line), titles))
        yield from self.finish()


def with_titles(found: list[Part], titles: dict[str, str | None]) -> list[Part]:
    """The parts, results with the titles of their calls."""
    for part in found:
        if part.kind == "tool_call" and part.item:
            titles[f"{part.item}/result"] = part.title
        elif part.kind == "tool_result" and part.item in titles:
            part.title = titles[part.item]
    return found


class TranscriptBeside:
    """A transcript beside a log that holds no messages' text: what entered before each request."""

    def __init__(self, rows: list[tuple[int, Json]]) -> None:
        self.answers = sum(row.get("role") == "assistant" for _, row in rows)
        self.prompts = [
            digest_of(parts.plain_text(row.get("content"))) for _, row in rows if parts.is_prompt(row)
        ]
        self.calls = {name for _, row in rows if (name := string(row.get("tool_call_id"))) is not None}
        self._rows = rows
        self._at = 0
        self._begun = False
        self._titles: dict[str, str | None] = {}

    def entered(self, origins: FileOrigins) -> tuple[list[Part], int]:
        """What entered since the last request, the answer to that one first; and how many prompts."""
        made: list[Part] = []
        prompts = 0
        first = self._at if self._begun else -1
        self._begun = True
        while self._at < len(self._rows):
            line, row = self._rows[self._at]
            if row.get("role") == "assistant" and self._at > first:
                break
            prompts += parts.is_prompt(row)
            made += with_titles(parts.message_parts(row, origins.of, line), self._titles)
            self._at += 1
        return made, prompts


def rows_of(run: Run, source: Source) -> list[tuple[int, Json]]:
    """The messages of a transcript with their lines."""
    return [(run.line.number, row) for row in run.records(source) if row.get("role") in _ROLES]


def _time(row: Json) -> Any:
    meta = row.get("metadata")
    return meta.get("timestamp") if isinstance(meta, dict) and "timestamp" in meta else row.get("timestamp")


_MASK: Final = re.compile(r"\[REDACTED(?::[A-Z_]+)?\]")
_MAX_MASKS: Final = 4


class FileOrigins:
    """Files by the digest of their content, by path and by mention."""

    def __init__(self) -> None:
        self._contents: dict[str, Json] = {}
        self._files: dict[str, Json] = {}
        self._mentions: dict[str, Json] = {}
        self.failed: list[Json] = []
        """Mentions that no file was found for, since they were last told."""

    def resolved(self, data: Json) -> None:
        """A `mentions:resolved` event."""
        for row in objects_of(data.get("resolutions")):
            path, mention = string(row.get("resolved_path")), string(row.get("mention"))
            if path is None:
                continue
            self._files[path] = row
            if (digest := string(row.get("content_hash"))) is not None:
                self._contents[digest] = row
            if mention is not None:
                self._mentions[mention.removeprefix("@")] = row
        self.failed += objects_of(data.get("failed"))

    def of(self, piece: Piece) -> tuple[str | None, Json | None]:
        """Path and source ref of a file in the system prompt; None where the piece names no path.

        A path with masked digits is the one that was resolved, if only one can be meant.
        """
        if piece.source is None:
            return None, None
        row = (
            self._contents.get(_digest(piece.text))
            or self._files.get(piece.source)
            or self._mentions.get(piece.mention or "")
            or self._masked(piece.source)
        )
        path = string(row.get("resolved_path")) if row is not None else None
        mention = piece.mention or (string(row.get("mention")) if row is not None else None)
        return path or piece.source, _ref(path or piece.source, mention, row)

    def parts(self, line: int) -> list[Part]:
        """The files as parts of a system prompt whose text is not recorded."""
        made: list[Part] = []
        for path, row in self._files.items():
            digest = string(row.get("content_hash"))
            mention = string(row.get("mention"))
            part = Part("external_resource", None, "system", key=path, title=mention or path, line=line)
            part.version = digest[:16] if digest is not None else None
            part.segment = "system"
            part.data["source_refs"] = [_ref(path, mention, row)]
            made.append(part)
        return made

    def _masked(self, path: str) -> Json | None:
        """The file that a path stands for whose digits were masked, if it can be only one."""
        pieces = _MASK.split(path)
        if not 1 < len(pieces) <= _MAX_MASKS + 1:
            return None
        found = [row for name, row in self._files.items() if _stands_for(path, name)]
        return found[0] if len(found) == 1 else None


def _stands_for(masked: str, name: str) -> bool:
    """Whether a path with masks in it may be this one; no mask covers a `/`."""
    wanted, given = masked.split("/"), name.split("/")
    return len(wanted) == len(given) and all(map(_fits, map(_MASK.split, wanted), given))


def _fits(pieces: list[str], name: str) -> bool:
    first, *middle = pieces
    if not middle:
        return name == first
    last = middle.pop()
    at, end = len(first), len(name) - len(last)
    if at > end or not name.startswith(first) or not name.endswith(last):
        return False
    for piece in middle:
        found = name.find(piece, at, end)
        if found < 0:
            return False
        at = found + len(piece)
    return True


def _digest(text: str) -> str:
    """Digest of a file's content: what stands between the tags, less the line ends that go with them."""
    start, end = text.find(">") + 1, text.rfind("</")
    return digest_of(text[start:end].removeprefix("\n").removesuffix("\n"))


def _ref(path: str, mention: str | None, row: Json | None) -> Json:
    made: Json = {"schema_version": "0.1.1", "source_id": path, "uri": path, "source_kind": "file"}
    digest = string(row.get("content_hash")) if row is not None else None
    if digest is not None:
        made["digest"] = f"sha256:{digest}"
    if mention is not None:
        made["metadata"] = {"mention": mention}
    return made
