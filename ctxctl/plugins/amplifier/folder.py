"""Session directories: the events are the truth, a transcript fills in what they do not say."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final, NamedTuple

import orjson

from ctxctl.errors import UnreadableError
from ctxctl.ingest.build import Json, digest_of
from ctxctl.ingest.folder import Folder
from ctxctl.ingest.lines import WHOLE_FILE, Line, Report
from ctxctl.ingest.parts import string
from ctxctl.model.problem import Problem
from ctxctl.plugins.amplifier import detection
from ctxctl.plugins.amplifier.parts import plain_text
from ctxctl.plugins.amplifier.reader import Log
from ctxctl.plugins.amplifier.records import Record, record
from ctxctl.plugins.amplifier.transcript import Transcript, TranscriptBeside, rows_of

_SURE: Final = 92
_HEAD: Final = 16 * 1024
_SECOND: Final = "context-intelligence"
"""Subdirectory of the second logger's copy."""
_EVENTS: Final = "events.jsonl"
_TRANSCRIPTS: Final = ("transcript.jsonl", "context-messages.jsonl")
_NOWHERE: Final = Line(0, 0, b"")
_MAX_LOOKED_AT: Final = 6


class _Session(NamedTuple):
    """The files of one session, by name in the folder."""

    place: str
    events: tuple[str, ...]
    transcript: str | None
    name: str | None
    parent: str | None


def detect(folder: Folder) -> int:
    """How sure a directory holds Amplifier's sessions and nothing else: 0 to 100; reads few heads."""
    names = [name for name in folder.files if name.endswith(".jsonl")]
    ours = [name for name in names if name.rpartition("/")[2] in (_EVENTS, *_TRANSCRIPTS)]
    if not ours or len(ours) < len(names):
        return 0
    for name in ours[:_MAX_LOOKED_AT]:
        head = folder.head(name, _HEAD)
        if head and not detection.log_score(head) and not detection.transcript_score(head):
            return 0
    return _SURE


def events(folder: Folder, report: Report) -> Iterator[Json]:
    """The sessions of a directory, parents before those that they set off."""
    log = Log(report)
    apart: list[_Session] = []
    for session in _ordered(log, _sessions(folder)):
        if not session.events:
            apart.append(session)
            continue
        yield from _read(log, folder, session, report)
    yield from log.end()
    for number, session in enumerate(apart):
        yield from _alone(folder, session, number, report)


def _sessions(folder: Folder) -> list[_Session]:
    found: dict[str, list[str]] = {}
    for name in folder.files:
        place, _, last = name.rpartition("/")
        if last in (_EVENTS, "metadata.json", *_TRANSCRIPTS):
            if place.rpartition("/")[2] == _SECOND:
                place = place[: -len(_SECOND)].rstrip("/")
            found.setdefault(place, []).append(name)
    return [made for place, names in found.items() if (made := _session(folder, place, names)) is not None]


def _session(folder: Folder, place: str, names: list[str]) -> _Session | None:
    logs = tuple(sorted((n for n in names if n.endswith(_EVENTS)), key=lambda n: (n.count("/"), n)))
    scripts = [name for name in names if name.endswith(_TRANSCRIPTS)]
    if not logs and not scripts:
        return None
    script = max(scripts, key=lambda name: name.endswith(_TRANSCRIPTS[0]), default=None)
    session, parent = _told(folder, names, logs)
    return _Session(place, logs, script, session or place.rpartition("/")[2] or None, parent)


def _told(folder: Folder, names: list[str], logs: tuple[str, ...]) -> tuple[str | None, str | None]:
    """Name and parent of a session, by its metadata, else by the first event of its log."""
    session = parent = None
    for name in names:
        if name.endswith("metadata.json"):
            told = _document(folder.head(name, _HEAD))
            session = session or string(told.get("session_id"))
            parent = parent or string(told.get("parent_id"))
    for name in logs:
        first = next(
            (value for line in folder.head(name, _HEAD).split(b"\n") if (value := _document(line))), {}
        )
        found = record("", first, _NOWHERE)
        session, parent = session or found.session, parent or found.parent
    return session, parent


def _document(head: bytes) -> Json:
    try:
        value = orjson.loads(head)
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}


def _ordered(log: Log, sessions: list[_Session]) -> list[_Session]:
    """Parents first, else by place; where they go round in a circle, its last session is none's child."""
    for session in sessions:
        if session.name is not None:
            log.descends(session.name, session.parent, WHOLE_FILE, session.place)
    waiting = {session.name or session.place: session for session in sessions}
    made: list[_Session] = []
    for session in sessions:
        chain: list[_Session] = []
        now: _Session | None = session
        while now is not None and waiting.pop(now.name or now.place, None) is not None:
            chain.append(now)
            parent = log.lineage.parent(now.name) if now.name is not None else None
            now = waiting.get(parent) if parent is not None else None
        made += reversed(chain)
    return made


def _read(log: Log, folder: Folder, session: _Session, report: Report) -> Iterator[Json]:
    if session.transcript is not None:
        log.scripts[session.name] = _script(folder, session, report)
    with ExitStack() as files:
        streams: list[Iterator[Record]] = []
        for name in session.events:
            if streams and not _has_times(folder, name):
                # Nothing says which of the first log's events its lines are copies of.
                continue
            try:
                source = files.enter_context(folder.open(name))
            except UnreadableError as error:
                report(Problem(0, 0, error.slug, f"{name}: {error.message}"))
                continue
            streams.append(log.of(source, name))
        yield from log.read(_merged(streams))


def _merged(streams: list[Iterator[Record]]) -> Iterator[Record]:
    """Two loggers' copies side by side, so that one of each can be left out."""
    if len(streams) == 1:
        return streams[0]
    timed = [_timed(stream) for stream in streams]
    return (found for _, found in heapq.merge(*timed, key=lambda pair: pair[0]))


def _has_times(folder: Folder, name: str) -> bool:
    for line in folder.head(name, _HEAD).split(b"\n"):
        value = _document(line)
        if value:
            return record("", value, _NOWHERE).emitted is not None
    return True


def _timed(stream: Iterator[Record]) -> Iterator[tuple[str, Record]]:
    last = ""
    for found in stream:
        last = max(last, found.emitted or found.time or "")
        yield last, found


def _script(folder: Folder, session: _Session, report: Report) -> TranscriptBeside | None:
    """The transcript, if the log holds no request's body and the two tell of the same requests."""
    assert session.transcript is not None
    ignore: Report = lambda problem: None  # noqa: E731
    dry = Log(ignore)
    outline = _Outline()
    try:
        with folder.open(session.transcript) as source:
            script = TranscriptBeside(rows_of(Transcript(ignore), source))
        for name in session.events[:1]:
            with folder.open(name) as source:
                for _ in dry.read(outline.see(dry.of(source))):
                    if any(one.bodies for one in dry.sessions.values()):
                        return None
    except UnreadableError as error:
        report(Problem(0, 0, error.slug, f"{session.transcript}: {error.message}"))
        return None
    told = list(dry.sessions.values())
    if not told:
        return None
    if len(told) == 1 and told[0].conversation.steps == script.answers and outline.fits(script):
        return script
    if not outline.messages:
        message = (
            f"{session.transcript}: {script.answers} answers, where the events tell of "
            f"{told[0].conversation.steps} requests; its messages are not shown"
        )
        report(Problem(0, 0, "transcript-differs", message))
    return None


class _Outline:
    """What a log says that a transcript must agree with."""

    def __init__(self) -> None:
        self._prompts: list[str] = []
        self._calls: set[str] = set()
        self.messages = 0

    def see(self, records: Iterator[Record]) -> Iterator[Record]:
        """The records, noted in passing."""
        for found in records:
            if found.event == "prompt:submit":
                digest = digest_of(plain_text(found.data.get("prompt")))
                if not self._prompts or self._prompts[-1] != digest:
                    self._prompts.append(digest)
            elif found.event == "tool:post" and (call := string(found.data.get("tool_call_id"))) is not None:
                self._calls.add(call)
            self.messages += found.event in ("prompt:submit", "content_block:end", "tool:post")
            yield found

    def fits(self, script: TranscriptBeside) -> bool:
        """Whether each prompt and each call of the log is in the transcript, prompts in the same order."""
        prompts = iter(script.prompts)
        return self._calls <= script.calls and all(prompt in prompts for prompt in self._prompts)


def _alone(folder: Folder, session: _Session, number: int, report: Report) -> Iterator[Json]:
    assert session.transcript is not None
    reader = Transcript(report, session.name, f"amp-{number + 1}")
    reader.make.file = session.transcript
    try:
        with folder.open(session.transcript) as source:
            yield from reader.events(source)
    except UnreadableError as error:
        report(Problem(0, 0, error.slug, f"{session.transcript}: {error.message}"))
