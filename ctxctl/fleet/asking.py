"""One question asked of many captures, of worker processes where it is not kept what they answered before.

An answer is kept with the state of every file that was read for it, or looked for.  Every doubt is a reason
to ask again: another state, other first or last bytes, a change so young that the clock would not tell the
next one, code or settings that are others.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from ctxctl.entry_points import loaded
from ctxctl.errors import CtxctlError
from ctxctl.fleet.captures import UNREAD, CaptureFile, captures_in, of_bytes
from ctxctl.fleet.store import AnswerStore
from ctxctl.fleet.workers import processes_for, work_through
from ctxctl.ingest.folder import unread_words
from ctxctl.trace.cache_files import only_reading
from ctxctl.trace.inputs import FileState, Inputs, file_state, files_under, recording

_WORK: Final = "ctxctl.fleet.asking:answered"
_END: Final = 4096
"""Bytes at either end of a file of which a digest is kept."""


class Question(NamedTuple):
    """What is asked of each capture."""

    work: str
    """`module:name` of a function of a path, a format's name, `words` and what is said of this capture alone,
    that returns what an `Answer` holds.

    It may raise CtxctlError."""
    words: bytes
    """All that the question says, as `work` reads it."""
    rests_on: str
    """Changes with whatever else the answer depends on (`surroundings`)."""


class Answer(NamedTuple):
    """What was found out about one capture."""

    data: bytes
    keep: bool
    """Whether it is the same tomorrow, as long as no file changes."""


class Failed(msgspec.Struct, frozen=True, array_like=True):
    """Why there is no answer."""

    slug: str
    message: str
    code: int
    """As the exit code of a command that asks this capture alone."""


class _Piece(msgspec.Struct, frozen=True, array_like=True):
    """What a worker is asked."""

    work: str
    path: bytes
    format: str
    words: bytes
    more: bytes = b""


class _Kept(msgspec.Struct, frozen=True, array_like=True):
    """An answer with what it rests on."""

    data: bytes
    files: dict[str, FileState | None]
    listings: list[tuple[str, str, str]]
    """Directory, pattern, digest."""
    ends: bytes
    """Digest of the capture's first and last bytes; empty for a directory."""


class _Done(msgspec.Struct, frozen=True, array_like=True):
    """What a worker returns."""

    found: _Kept | None
    keep: bool
    failed: Failed | None = None


class Asker:
    """Asks captures under one directory.

    Args:
        directory: As the user typed it.
        store: Where answers are kept; None: nowhere.
        progress: Told the share of the bytes that were gone through, now and then.
    """

    def __init__(
        self, directory: str, store: AnswerStore | None, progress: Callable[[float], None] = lambda _: None
    ) -> None:
        self._top = os.path.realpath(directory)
        self._store = store
        self._progress = progress

    def captures(self, format_name: str | None, rests_on: str) -> list[CaptureFile]:
        """What `captures_in` gives, kept as answers are."""
        words = msgspec.msgpack.encode(format_name)
        question = Question("ctxctl.fleet.captures:by_bytes", words, rests_on)
        ((_, data),) = self.ask(question, [CaptureFile("", "")])
        if isinstance(data, Failed):
            return captures_in(self._top, format_name)
        return of_bytes(data)

    def ask(
        self,
        question: Question,
        captures: Iterable[CaptureFile],
        more: Mapping[str, bytes] | None = None,
        *,
        largest_first: bool = True,
        stop: Callable[[], bool] | None = None,
    ) -> Iterator[tuple[CaptureFile, bytes | Failed]]:
        """Each capture's answer, those that are kept first, the others as they come.

        Args:
            question: What is asked.
            captures: Whom.
            more: By name, what the question says of single captures beside its words.
            largest_first: Read them in the order of their sizes, so that all processes end at about the same
                time; else in the order given.
            stop: Where given, one other process reads and this one waits; it is left as soon as this says so.
        """
        further = more or {}
        pieces = {one: self._piece(question, one, further.get(one.name, b"")) for one in captures}
        keys = {one: _key(piece, question.rests_on) for one, piece in pieces.items()}
        waiting = dict(pieces)
        if self._store is not None:
            named = {key: one for one, key in keys.items()}
            for key, row in self._store.get_all(keys.values()):
                one = named[key]
                data = _still_true(row, pieces[one].path)
                if data is not None:
                    del waiting[one]
                    yield one, data
        for one in [one for one in waiting if one.format == UNREAD]:
            del waiting[one]
            yield one, Failed("not-readable", unread_words(Path(self._top, one.name)), 3)
        for one, done in self._answers(waiting, largest_first=largest_first, stop=stop):
            if done.found is None:
                yield one, done.failed or Failed("capture-failed", "a process that read it ended", 3)
                continue
            if self._store is not None and done.keep:
                self._store.put(keys[one], msgspec.msgpack.encode(done.found))
            yield one, done.found.data

    def _piece(self, question: Question, one: CaptureFile, more: bytes = b"") -> _Piece:
        path = os.path.join(self._top, *one.name.split("/"))
        return _Piece(question.work, os.fsencode(path), one.format, question.words, more)

    def _answers(
        self,
        pieces: Mapping[CaptureFile, _Piece],
        *,
        largest_first: bool,
        stop: Callable[[], bool] | None,
    ) -> Iterator[tuple[CaptureFile, _Done]]:
        sizes = {one: _size(piece.path) if one.name else 0 for one, piece in pieces.items()}
        order = sorted(pieces, key=lambda one: (-sizes[one], one.name)) if largest_first else list(pieces)
        whole, done = max(1, sum(sizes.values())), 0
        data = [msgspec.msgpack.encode(pieces[one]) for one in order]
        processes = processes_for(whole, len(data)) if stop is None else 1
        for number, result in work_through(_WORK, data, processes, stop):
            done += sizes[order[number]]
            self._progress(done / whole)
            yield order[number], _Done(None, keep=False) if result is None else _done(result)


def answered(data: bytes) -> bytes:
    """What a worker does with a piece; never raises."""
    piece = msgspec.msgpack.decode(data, type=_Piece)
    try:
        with recording() as inputs, only_reading():
            work = loaded(piece.work)
            made = Answer(*work(os.fsdecode(piece.path), piece.format, piece.words, piece.more))
            ends = _ends(piece.path)
        keep = made.keep and inputs.settled and bool(inputs.files) and inputs.unchanged()
        listings = [(*key, digest) for key, digest in inputs.listings.items()]
        done = _Done(_Kept(made.data, inputs.files, listings, ends), keep)
    except CtxctlError as error:
        path = os.fsdecode(piece.path)
        message = error.message.replace(path, os.path.basename(path))
        done = _Done(None, keep=False, failed=Failed(error.slug, message, int(error.exit_code)))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of a native library is no Exception
        if os.environ.get("CTXCTL_TRACEBACK"):
            raise
        done = _Done(None, keep=False, failed=Failed("capture-failed", _told(error), 3))
    try:
        return msgspec.msgpack.encode(done)
    except UnicodeEncodeError:  # a file's name is no text
        assert done.found is not None
        return msgspec.msgpack.encode(_Done(_Kept(done.found.data, {}, [], b""), keep=False))


def _told(error: BaseException) -> str:
    """An error that nobody raises on purpose, and where it came from, without the data that caused it."""
    if isinstance(error, MemoryError):
        return "out of memory"
    trace, place = error.__traceback__, ""
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename.replace(os.sep, "/").rpartition("/ctxctl/")
        if name[1]:
            place = f" at {name[2]}:{trace.tb_lineno}"
        trace = trace.tb_next
    return f"a bug in ctxctl: {type(error).__name__}{place}"


def _key(piece: _Piece, rests_on: str) -> bytes:
    digest = blake2b(rests_on.encode(), digest_size=16)
    digest.update(msgspec.msgpack.encode(piece))
    return digest.digest()


def _done(result: bytes) -> _Done:
    return msgspec.msgpack.decode(result, type=_Done)


def _still_true(row: bytes, path: bytes) -> bytes | None:
    """What a kept answer says; None where something that it rests on has changed, or it cannot be read."""
    try:
        kept = msgspec.msgpack.decode(row, type=_Kept)
    except (msgspec.MsgspecError, ValueError):
        return None
    inputs = Inputs()
    inputs.files = kept.files
    inputs.listings = {(directory, pattern): digest for directory, pattern, digest in kept.listings}
    return kept.data if inputs.unchanged() and _ends(path) == kept.ends else None


def _ends(path: bytes) -> bytes:
    """A digest of a file's first and last bytes; empty where it is none."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        digest = sha256(os.pread(file, _END, 0))
        if (size := os.fstat(file).st_size) > _END:
            digest.update(os.pread(file, _END, max(_END, size - _END)))
        return digest.digest()
    except OSError:
        return b""
    finally:
        os.close(file)


def _size(path: bytes) -> int:
    """Bytes to be read, about."""
    name = os.fsdecode(path)
    if os.path.isdir(name):
        states = (file_state(os.path.join(name, inside)) for inside in files_under(Path(name)).files)
        return sum(state.size for state in states if state is not None)
    found = file_state(name)
    return 0 if found is None else found.size
