"""What every import holds: its event maker, its conversations, and the line that is being read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from ctxctl.ingest import understood
from ctxctl.ingest.build import Json, Maker, Place
from ctxctl.ingest.conversation import Conversation
from ctxctl.ingest.lines import Line, Report, values
from ctxctl.model import vocab
from ctxctl.model.problem import Problem
from ctxctl.trace.source import Source

_NOWHERE = Line(0, 0, b"")
_LOST = ("unknown-record", "not-a-record")
"""Problems of a record that is left out whole, so that its bytes are not understood."""


WORK: Final = 300_000
"""Placements of earlier windows that an import may look at again, whatever the size of the capture."""
_BYTES_WORKED: Final = 4
"""Bytes of a capture that entitle it to one more."""
_ONCE_MORE: Final = 20_000
"""Placements that one record may look at beyond that: a large window, whatever its bytes entitle it to."""


def most_work(source: Source) -> int:
    """Placements of earlier windows that an import of a capture may look at again."""
    return most_work_of(source.size)


def most_work_of(size: int) -> int:
    """As `most_work`, of a capture of so many bytes."""
    return WORK + size // _BYTES_WORKED


def most_work_amid_a_record(size: int) -> int:
    """As `most_work_of`, amid a record: a line can go over its window once more than that allows, and a
    document is one record.
    """
    return most_work_of(size) + _ONCE_MORE + size // (2 * _BYTES_WORKED)


def too_much_work(most: int) -> str:
    """What is told where an import ends as its records go back to earlier windows too often."""
    return (
        f"the records up to here go back to earlier windows so often that {most:,} items of these had to"
        " be looked at again: the rest of the capture is not read"
    )


class Run:
    """The state that one import shares; importers hold one, or derive from it.

    Args:
        name: The format's name: the events' `source`.
        report: Takes problems.
        prefix: Start of event ids; the name unless given.
    """

    def __init__(self, name: str, report: Report, prefix: str | None = None) -> None:
        self.name = name
        self.out: list[Json] = []
        """Events made and not yet handed on, in order."""
        self.make = Maker(name, f"{prefix or name}-")
        self.make.waiting = self.out
        self.line = _NOWHERE
        """The line that is being read."""
        self.session: str | None = None
        self.threads: dict[tuple[str | None, str | None], Conversation] = {}
        self._report = report
        self.make.account = self.understood = understood.account_of(report)
        """The account of what was not understood of the capture."""

    def problem(self, slug: str, message: str, line: Line | None = None) -> None:
        """Report something wrong at the line that is being read."""
        at = line or self.line
        if slug in _LOST:
            self.understood.lost(len(at.data))
        if self.make.file is not None:
            message = f"{self.make.file}: {message}"
        self._report(Problem(at.number, at.offset, slug, message))

    def report(self, problem: Problem) -> None:
        """Pass a problem on; one in a sibling file names the file."""
        if self.make.file is not None:
            message = f"{self.make.file}: {problem.message}"
            problem = Problem(problem.line, problem.byte, problem.slug, message)
        self._report(problem)

    def records(self, source: Source, skip: Callable[[bytes], Any] | None = None) -> Iterator[Json]:
        """The JSON objects of a file of JSON lines (or of one document); sets `line`, reports the rest.

        Lines that `skip` says yes to, by their bytes, are not parsed.  Records of a type that the importer
        does not declare (`about.HeldAgainst`) are handed on too, and counted.
        """
        key, known = self.understood.key, self.understood.known
        most = most_work(source)
        for line, value in values(source, self.report, skip):
            self.line = line
            if isinstance(value, dict):
                if key is not None:
                    kind = value.get(key)
                    if not isinstance(kind, str) or kind not in known:
                        self.met(kind)
                yield value
                if self.make.work > most:
                    self.windows_too_large(most)
                    return
            else:
                self.problem("not-a-record", "not a JSON object; skipped")

    def windows_too_large(self, most: int) -> None:
        """Say that the rest of a capture is not read, as its records go back to earlier windows too often."""
        self.problem("windows-too-large", too_much_work(most))

    def met(self, kind: Any) -> bool:
        """Say of which type the record of this line is; whether that is declared (`Understood.met`)."""
        line = self.line
        return self.understood.met(kind, line.number, line.offset, len(line.data), self.make.file)

    def thread(self, thread: str | None = None, **options: Any) -> Conversation:
        """The conversation of a thread of the present session, made at its first mention with `options`."""
        key = self.session, thread
        found = self.threads.get(key)
        if found is None:
            name = self._told_apart(thread)
            found = Conversation(self.make, self.out, session=self.session, thread=name, **options)
            self.threads[key] = found
        return found

    def _told_apart(self, thread: str | None) -> str | None:
        """A thread's name; another one where a thread is called what those without a name are called."""
        same = {None: vocab.MAIN_THREAD, vocab.MAIN_THREAD: None}
        if thread in same and (self.session, same[thread]) in self.threads:
            return f"{vocab.MAIN_THREAD}~2"
        return thread

    def emit(self, event_type: str, data: Json, place: Place | None = None) -> None:
        """Emit an event of the line that is being read."""
        self.out.append(self.make.event(event_type, data, place or Place(self.session), self.line.number))

    def opened(self, **told: Any) -> None:
        """Say that a source, or a session of it, begins here; of `told`, what is known (not None) is kept."""
        known = {name: value for name, value in told.items() if value is not None}
        self.emit(vocab.SOURCE_OPENED, {"format": self.name, **known})

    def drain(self) -> Iterator[Json]:
        """Hand on the events made so far."""
        if self.out:
            yield from self.out
            self.out.clear()

    def end_thread(self, conversation: Conversation) -> None:
        """Close a conversation for good, and forget it: no later event belongs to its thread."""
        conversation.finish()
        place = Place(conversation.session, conversation.thread)
        self.threads = {key: one for key, one in self.threads.items() if one is not conversation}
        self.emit(vocab.SESSION_ENDED, {"final": True}, place)

    def end_session(self) -> Iterator[Json]:
        """Close the present session's conversations, say that it is over, hand the rest on, and forget them.

        For captures of several sessions one after the other: a replay finishes the session's last steps here.
        """
        own = [key for key in self.threads if key[0] == self.session]
        for key in own:
            self.threads.pop(key).finish()
        if own:
            self.emit(vocab.SESSION_ENDED, {})
        yield from self.drain()

    def finish(self) -> Iterator[Json]:
        """Close every conversation and hand on the rest."""
        for conversation in self.threads.values():
            conversation.finish()
        yield from self.drain()
