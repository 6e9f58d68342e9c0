"""Keeps the import of one foreign capture in a trace, while the capture grows.

What importers write is the same for the same beginning of a capture.  So the capture is imported again
whenever it has changed, and its lines are held against those that the trace has of it: what is new is
appended, and what turned out otherwise (an answer that was only begun) is taken back first.  That also is all
there is to a restart: nothing is kept beside the trace.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import IO, TYPE_CHECKING, Any, Final, Literal, cast

import orjson

from ctxctl.model import vocab
from ctxctl.record.append_target import AppendTarget, WrittenLine, event_id, line_mark, session_id
from ctxctl.record.event_cleaner import EventCleaner, LineBuffer
from ctxctl.trace.writer import TraceWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ctxctl.model.problem import Problem

Json = dict[str, Any]
Result = Literal["done", "doubtful", "again"]
_ENDS: Final = frozenset((vocab.SESSION_ENDED, vocab.FIDELITY_MEASURED))
"""What importers write where a capture ends: no news while it grows."""
_LOST: Final = 0.8
"""A capture that gives fewer than this share of its events was written anew: what was recorded stays."""
_TAG: Final = 5


def _no() -> bool:
    return False


class RecordedCaptures:
    """What a trace holds of captures, by their tags; read once."""

    def __init__(self, target: AppendTarget) -> None:
        self.lines: dict[str, list[WrittenLine]] = {}
        self.owners: dict[str, str] = {}
        """The tag that has a session's name."""
        for offset, line in target.lines():
            name = event_id(line)
            tag, colon, _ = (name or "").partition(":")
            if colon and _is_tag(tag):
                self.lines.setdefault(tag, []).append(WrittenLine(offset, len(line), line_mark(line)))
                if (session := session_id(line)) is not None:
                    self.owners.setdefault(session, tag)


def tag_of(identity: bytes) -> str:
    """What the ids of a capture's events begin with."""
    return f"x{blake2b(identity, digest_size=_TAG).hexdigest()}"


def _is_tag(text: str) -> bool:
    stem = text.partition("~")[0]
    return len(stem) == 1 + 2 * _TAG and stem[0] == "x" and all(c in "0123456789abcdef" for c in stem[1:])


class CaptureMirror:
    """One capture in a trace.

    Args:
        target: The trace.
        known: What it holds already.
        identity: What the capture is known by after a restart.
        session: The session of events that name none.
        report: Takes what is wrong with events.
    """

    def __init__(
        self,
        target: AppendTarget,
        known: RecordedCaptures,
        identity: bytes,
        session: str,
        report: Callable[[Problem], None],
    ) -> None:
        self._target = target
        self._known = known
        self._stem = tag_of(identity)
        self._session = session
        self._report = report
        self._generation = 1
        while f"{self._stem}~{self._generation + 1}" in known.lines:
            self._generation += 1
        self._held = known.lines.get(self._tag, [])
        """The lines that the trace has, in order."""
        self._begin()

    def _begin(self) -> None:
        """Nothing was imported yet by this process."""
        self._raws: list[bytes] = []
        """What the events are known by that gave the first of the lines."""
        self._refused: set[bytes] = set()
        """The same of events that give no line."""
        self._starts: list[int] = []
        """Where the lines would begin in a file of their own."""
        self._cleaner = EventCleaner(self._target.redactor, self._target.redacted)
        self._made = LineBuffer()
        self._writer = TraceWriter(cast("IO[bytes]", self._made), report=self._report)
        self._ends: list[Json] = []

    @property
    def _tag(self) -> str:
        return self._stem if self._generation == 1 else f"{self._stem}~{self._generation}"

    def update(
        self, events: Iterable[Json], *, sure: bool, open_end: Callable[[], bool] | None = None
    ) -> Result:
        """Bring the trace to what an import gives now.

        Args:
            events: The import.
            sure: See `doubtful`.
            open_end: Whether what the import gives from here on stands for a beginning only, such as an
                answer that may go on: it waits for `finish`, or for an import that is sure of it.

        `doubtful`: the capture has lost much, and may be half written; nothing was done unless `sure`.
        `again`: what was recorded stays, and the capture is another one now: import it once more.
        Raises OSError where the trace cannot be written; the next call goes on from there.
        """
        at = 0
        ends: list[Json] = []
        stream = _without_open_end(events, ends, open_end or _no)
        for event in stream:
            if at >= len(self._held):
                at += self._append(event)
            elif (same := self._gives_line(at, event)) is not None:
                at += same
            else:
                return self._rewrite_from(at, [event, *stream], ends, sure=sure)
        while ends and at < len(self._held) and (same := self._gives_line(at, ends[0])) is not None:
            at += same
            ends.pop(0)
        if at < len(self._held):
            return self._rewrite_from(at, [], ends, sure=sure)
        self._ends = ends
        return "done"

    @property
    def waits(self) -> bool:
        """Whether there are events that wait for the end."""
        return any(event["event_type"] not in _ENDS for event in self._ends)

    def finish(self) -> None:
        """The capture is over: write what is said at its end.  Raises OSError."""
        ends, self._ends = self._ends, []
        for event in ends:
            self._append(event)

    def _rewrite_from(self, at: int, rest: list[Json], ends: list[Json], *, sure: bool) -> Result:
        """From line `at` on the capture says something else than the trace."""
        if at + len(rest) + len(ends) < _LOST * len(self._held):
            if not sure:
                return "doubtful"
            self._generation += 1
            self._held = []
            self._begin()
            return "again"
        self._target.blank_out(self._held[at:])
        del self._held[at:], self._raws[at:]
        if at < len(self._starts):
            self._writer.back(self._starts[at])
            del self._starts[at:]
        self._ends = ends
        for event in rest:
            self._append(event)
        return "done"

    def _gives_line(self, at: int, event: Json) -> int | None:
        """Whether an event gives line `at`: 1; 0 for one that gives no line at all; None: it does not."""
        raw = _event_mark(event)
        if raw in self._refused:
            return 0
        if at < len(self._raws):
            return 1 if self._raws[at] == raw else None
        line = self._line(event, raw)
        if line is None:
            return 0
        if self._held[at].mark != line_mark(line):
            self._writer.back(self._starts.pop())
            return None
        self._raws.append(raw)
        return 1

    def _append(self, event: Json) -> int:
        raw = _event_mark(event)
        if raw in self._refused:
            return 0
        line = self._line(event, raw)
        if line is None:
            return 0
        try:
            self._target.write(line)
        except OSError:
            self._writer.back(self._starts.pop())
            raise
        self._held.append(self._target.find_line(line))
        self._raws.append(raw)
        return 1

    def _line(self, event: Json, raw: bytes) -> bytes | None:
        """The line of an event, without secrets; None if there is none, which is remembered."""
        start = self._writer.written
        try:
            event = self._cleaner.clean(self._with_own_ids(event))
        except Exception as error:  # then nothing of it may be written
            self._target.count_lost(f"{type(error).__name__} while looking for secrets")
            self._refused.add(raw)
            return None
        self._made.clear()
        if not self._writer.write(event):
            self._refused.add(raw)
            return None
        self._starts.append(start)
        return bytes(self._made)

    def _with_own_ids(self, event: Json) -> Json:
        """The event, told apart from those of other captures."""
        tag = self._tag
        session = event.get("session_id")
        session = session if isinstance(session, str) else self._session
        if self._known.owners.setdefault(session, tag) != tag:
            session = f"{session}~{tag[1:5]}{tag[1 + 2 * _TAG :]}"
        return {**event, "session_id": session, "event_id": f"{tag}:{event.get('event_id')}"}


def _without_open_end(
    events: Iterable[Json], ends: list[Json], open_end: Callable[[], bool]
) -> Iterator[Json]:
    """The events but those at the end that may still change; afterwards these are in `ends`."""
    for event in events:
        if event["event_type"] in _ENDS or open_end():
            ends.append(event)
            continue
        yield from ends
        ends.clear()
        yield event


def _event_mark(event: Json) -> bytes:
    """What an event is known by as the importer gave it."""
    try:
        return line_mark(orjson.dumps(event))
    except orjson.JSONEncodeError:
        return line_mark(repr(event).encode("utf-8", "replace"))
