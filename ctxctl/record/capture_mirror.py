"""Keeps the import of one foreign capture in a trace, while the capture grows.

The same beginning of a capture always gives the same events.  So the capture is imported again whenever
it has changed, and its lines are compared with those that the trace has of it: new ones are appended, and
those that have changed (an answer that had only begun) are blanked first.  A restart works likewise: nothing
is kept beside the trace.
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
"""Events that importers write where a capture ends; they wait while it grows."""
_LOST: Final = 0.8
"""A capture that gives less than this share of its former events was written anew."""
_TAG: Final = 5


def _no() -> bool:
    return False


class RecordedCaptures:
    """The lines that a trace holds of captures, by the captures' tags; read once."""

    def __init__(self, target: AppendTarget) -> None:
        self.lines: dict[str, list[WrittenLine]] = {}
        self.owners: dict[str, str] = {}
        """By session, the tag of the capture that has its name."""
        for offset, line in target.lines():
            name = event_id(line)
            tag, colon, _ = (name or "").partition(":")
            if colon and _is_tag(tag):
                self.lines.setdefault(tag, []).append(WrittenLine(offset, len(line), line_mark(line)))
                if (session := session_id(line)) is not None:
                    self.owners.setdefault(session, tag)


def tag_of(identity: bytes) -> str:
    """Return the tag with which the ids of a capture's events begin."""
    return f"x{blake2b(identity, digest_size=_TAG).hexdigest()}"


def _is_tag(text: str) -> bool:
    stem = text.partition("~")[0]
    return len(stem) == 1 + 2 * _TAG and stem[0] == "x" and all(c in "0123456789abcdef" for c in stem[1:])


class CaptureMirror:
    """Keeps the events of one capture in a trace as an import of it gives them.

    Args:
        target: The trace.
        known: The lines that it holds already.
        identity: What recognises the capture after a restart.
        session: The session of events that name none.
        report: Takes problems with events.
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
        """The lines that the trace has of the capture, in order."""
        self._begin()

    def _begin(self) -> None:
        """Forget what this process has imported."""
        self._raws: list[bytes] = []
        """Digests of the imported events that gave the first of these lines."""
        self._refused: set[bytes] = set()
        """Digests of the imported events that give no line."""
        self._starts: list[int] = []
        """Offsets that the lines would have in a file of their own."""
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
        """Make the trace hold what an import gives now.

        Args:
            events: The import.
            sure: Whether a capture that has lost much is taken as it is; see `doubtful`.
            open_end: Says whether the event just given may still change, such as an answer that may go on:
                it waits for `finish`, or for an import where it no longer may.

        Returns `doubtful` where the capture has lost much and may be half written: nothing was done.  Returns
        `again` where it counts as another capture now: import it once more; what was recorded stays.
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
        """Whether events wait for the capture's end."""
        return any(event["event_type"] not in _ENDS for event in self._ends)

    def finish(self) -> None:
        """Write the events that waited for the capture's end.  Raises OSError."""
        ends, self._ends = self._ends, []
        for event in ends:
            self._append(event)

    def _rewrite_from(self, at: int, rest: list[Json], ends: list[Json], *, sure: bool) -> Result:
        """Replace the lines from `at` on, where the capture differs from the trace."""
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
        """Return 1 if an event gives line `at`, 0 if it gives no line at all, None if it gives another."""
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
        """Return the line of an event, without secrets; None if it gives none, which is remembered."""
        start = self._writer.written
        try:
            event = self._cleaner.clean(self._with_own_ids(event))
        except Exception as error:  # it may hold secrets: nothing of it may be written
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
        """Return the event with an id and a session that no other capture has."""
        tag = self._tag
        session = event.get("session_id")
        session = session if isinstance(session, str) and session else self._session
        if self._known.owners.setdefault(session, tag) != tag:
            session = f"{session}~{tag[1:5]}{tag[1 + 2 * _TAG :]}"
        return {**event, "session_id": session, "event_id": f"{tag}:{event.get('event_id')}"}


def _without_open_end(
    events: Iterable[Json], ends: list[Json], open_end: Callable[[], bool]
) -> Iterator[Json]:
    """Yield the events, without those at the end that may still change: these are in `ends` afterwards."""
    for event in events:
        if event["event_type"] in _ENDS or open_end():
            ends.append(event)
            continue
        yield from ends
        ends.clear()
        yield event


def _event_mark(event: Json) -> bytes:
    """Return the digest of an event as the importer gave it."""
    try:
        return line_mark(orjson.dumps(event))
    except orjson.JSONEncodeError:
        return line_mark(repr(event).encode("utf-8", "replace"))
