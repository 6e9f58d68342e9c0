"""Adds captures to a dataset: what is new or has changed is read, in batches, and committed in their order.

Files are written first; what counts is the one commit that names them.  Whoever is killed before it leaves
files that nobody reads, and whoever loses a race builds the commit anew on what the other has made.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from ctxctl.dataset.batch import WORK, Batch, Capture, Made, Unread, described, unchanged
from ctxctl.dataset.keys import digests_of
from ctxctl.dataset.known import KnownSource, KnownSources, files_with
from ctxctl.dataset.log import DataFile, Snapshot, commit, fold
from ctxctl.dataset.parquet import arrow, packed, unpacked, without
from ctxctl.dataset.rows.words import DatasetWords
from ctxctl.dataset.schema import table
from ctxctl.errors import UnavailableError, UnreadableError
from ctxctl.fleet.workers import work_through
from ctxctl.importers.transcript_folders import KnownFile
from ctxctl.text import visible

_CAPTURES: Final = 256
_BYTES: Final = 48 << 20
"""Of one batch, at most; a larger capture is one of its own."""
_BATCHES: Final = 4
"""Of one commit."""
_WAITED: Final = 1200.0
"""Seconds after which files that nothing names yet are put once more: a vacuum takes them for leavings."""
_TRIES: Final = 100
"""How often a commit is built anew because somebody else has committed."""


class Found(NamedTuple):
    """A capture in a directory."""

    path: str
    """Absolute."""
    format: str
    size: int
    """Bytes, about."""
    month: str
    """Of its last change: captures of one month are mostly beside one another."""
    settled: bool = True
    """Whether that lies so long back that the next change shows."""


class Plan(NamedTuple):
    """What is to be read."""

    changed: list[Batch]
    """Captures that the dataset has, as they were."""
    new: list[Batch]
    unchanged: int
    forgotten: int

    @property
    def batches(self) -> list[Batch]:
        """All of them, in the order in which they are committed."""
        return [*self.changed, *self.new]

    @property
    def captures(self) -> int:
        """How many are to be read."""
        return sum(len(one.captures) for one in self.batches)


class Added(NamedTuple):
    """What became of a run."""

    version: int
    sessions: int
    captures: int
    unread: list[tuple[str, Unread]]
    """Path and why."""


class Runner(Protocol):
    """Runs batches somewhere."""

    def __call__(
        self, work: str, pieces: Sequence[bytes], *, apart: bool = False
    ) -> Iterator[tuple[int, bytes | None]]:
        """Each piece's number and result, as they are done; None where it ended whoever did it.

        `apart`: never in this process.
        """
        ...


def in_processes(jobs: int) -> Runner:
    """Batches in so many processes of this machine; 1: this one alone."""

    def run(work: str, pieces: Sequence[bytes], *, apart: bool = False) -> Iterator[tuple[int, bytes | None]]:
        return work_through(work, pieces, jobs if len(pieces) > 1 else 1, _never if apart else None)

    return run


def _never() -> bool:
    return False


def source_of(path: str, words: DatasetWords) -> int:
    """The key of a capture: of its host and its path."""
    data = f"{words.host}\0".encode() + os.fsencode(path)
    return digests_of(words.key).number("source", data)


class Comparison:
    """What captures are beside what a dataset has of them; each is looked at once.

    Args:
        known: What the dataset has.
        words: What captures are read under.
    """

    def __init__(self, known: dict[int, KnownSource], words: DatasetWords) -> None:
        self._known = known
        self._words = words
        self._same: dict[int, bool] = {}

    def source(self, path: str) -> int:
        """The key of a capture."""
        return source_of(path, self._words)

    def __contains__(self, source: int) -> bool:
        return source in self._known

    def unchanged(self, source: int) -> bool:
        """Whether a capture that the dataset has is as it was."""
        if source not in self._same:
            self._same[source] = unchanged(self._known[source].sealed, self._words.key)
        return self._same[source]

    def of(self, path: str) -> KnownFile | None:
        """What is known of a file; None of one that is no capture of the dataset."""
        source = self.source(path)
        found = self._known.get(source)
        return None if found is None else KnownFile(found.format, self.unchanged(source))


def planned(
    found: Iterable[Found], beside: Comparison, words: DatasetWords, forgotten: frozenset[int], *,
    again: bool,
) -> Plan:  # fmt: skip
    """Which of the captures are read, in batches; `again`: the unchanged ones too."""
    changed: list[tuple[Found, int]] = []
    new: list[tuple[Found, int]] = []
    same = gone = 0
    seen: set[int] = set()
    for one in found:
        source = beside.source(one.path)
        if source in seen:
            continue
        seen.add(source)
        if source in forgotten:
            gone += 1
        elif source not in beside:
            new.append((one, source))
        elif again or not beside.unchanged(source):
            changed.append((one, source))
        else:
            same += 1
    return Plan(_batches(changed, words, known=True), _batches(new, words, known=False), same, gone)


def _batches(captures: list[tuple[Found, int]], words: DatasetWords, *, known: bool) -> list[Batch]:
    made: list[Batch] = []
    ordered = sorted(captures, key=lambda row: (row[0].format, row[0].month, row[0].path))
    for _, group in groupby(ordered, key=lambda row: row[0].format):
        held: list[Capture] = []
        size = 0
        for one, source in group:
            if held and (len(held) >= _CAPTURES or size + one.size > _BYTES):
                made.append(Batch(held, words))
                held, size = [], 0
            held.append(Capture(os.fsencode(one.path), one.format, source, one.settled, known=known))
            size += one.size
        made.append(Batch(held, words))
    return made


def add(
    snapshot: Snapshot, plan: Plan, known: KnownSources, run: Runner, progress: Callable[[float], None]
) -> Added:
    """Read what is planned and commit it.

    Args:
        snapshot: The dataset as it was when the plan was made.
        plan: What is read.
        known: What the dataset holds.
        run: Where batches run.
        progress: Told the share of the captures that were read.
    """
    batches = plan.batches
    ends = _commit_ends(len(plan.changed), len(plan.new))
    committer = Committer(snapshot, known)
    unread: list[tuple[str, Unread]] = []
    sessions = done = 0
    early: dict[int, Written] = {}
    names = {one.source: os.fsdecode(one.path) for asked in batches for one in asked.captures}
    for number, made in _made(batches, run):
        early[number] = committer.written(made)
        done += len(batches[number].captures)
        progress(done / max(1, plan.captures))
        while ends and all(one in early for one in range(ends[0][0], ends[0][1])):
            some = [early.pop(one) for one in range(*ends[0])]
            sources = {one.source for at in range(*ends[0]) for one in batches[at].captures}
            sources -= {lost.source for one in some for lost in one.made.unread if lost.kept}
            committer.commit(some, sources)
            sessions += sum(one.made.sessions for one in some)
            unread += [(names[lost.source], lost) for one in some for lost in one.made.unread]
            del ends[0]
    return Added(committer.snapshot.version, sessions, plan.captures, unread)


def _commit_ends(changed: int, new: int) -> list[tuple[int, int]]:
    """Which batches are committed together: first and one behind the last.

    All that replace rows at once: so each file that holds some is written anew once.
    """
    whole = changed + new
    starts = [*([0] if changed else []), *range(changed, whole, _BATCHES)]
    return list(pairwise([*starts, whole]))


def _made(batches: Sequence[Batch], run: Runner) -> Iterator[tuple[int, Made]]:
    """Each batch's files, as they are done; a capture that ends processes is told as unread."""
    lost = []
    for number, result in run(WORK, [msgspec.msgpack.encode(one) for one in batches]):
        if result is None:
            lost.append(number)
        else:
            yield number, msgspec.msgpack.decode(result, type=Made)
    for number in lost:
        yield number, _one_by_one(batches[number], run)


def _one_by_one(asked: Batch, run: Runner) -> Made:
    """The files of a batch of which a capture ends whoever reads it."""
    single = [Batch([one], asked.words) for one in asked.captures]
    pieces = [msgspec.msgpack.encode(one) for one in single]
    bad = {number for number, result in run(WORK, pieces, apart=True) if result is None}
    captures = [
        msgspec.structs.replace(one, read=number not in bad) for number, one in enumerate(asked.captures)
    ]
    ((_, result),) = run(WORK, [msgspec.msgpack.encode(Batch(captures, asked.words))])
    if result is None:
        raise UnavailableError("capture-failed", "a batch of captures ends every process that reads it")
    return msgspec.msgpack.decode(result, type=Made)


class Written(NamedTuple):
    """The files of a batch, put into the store and not committed yet."""

    made: Made
    forgotten: frozenset[int]
    """What was not to come back when they were written."""
    at: float
    """When that was: seconds of a clock that only goes on."""


class Committer:
    """Commits files, one version after the other.

    Args:
        snapshot: The dataset as it is known.
        known: What it holds.
    """

    def __init__(self, snapshot: Snapshot, known: KnownSources) -> None:
        self.snapshot = snapshot
        self._known = known

    def written(self, made: Made) -> Written:
        """Put the files of a batch into the store; of sessions that are not to come back without their rows.

        Their bytes are kept until they are committed: what others do meanwhile may make them be written anew.
        """
        forgotten = self.snapshot.forgotten
        if forgotten:
            made = msgspec.structs.replace(made, files=without_forgotten(made.files, forgotten))
        for file, data in made.files:
            self._put(file, data)
        return Written(made, forgotten, time.monotonic())

    def commit(self, some: Sequence[Written], sources: set[int]) -> None:
        """Make the version in which some captures have the rows of these batches and no others."""
        for _ in range(_TRIES):
            try:
                if self._committed(some, sources):
                    return
            except UnreadableError:  # a file that was removed for good while it was to be read
                if not self.moved():
                    raise
            else:
                self.moved()
        raise UnavailableError(
            "dataset-busy",
            f"others commit to {visible(self.snapshot.store.place)} all the time",
            hint="try again",
        )

    def moved(self) -> bool:
        """Look at the newest version; whether it is another."""
        before, self.snapshot = self.snapshot, fold(self.snapshot.store, self.snapshot.head)
        return self.snapshot.version != before.version

    def _committed(self, some: Sequence[Written], sources: set[int]) -> bool:
        """One attempt to commit."""
        files = [file for one in some for file in self._placed(one)]
        new = {one.path: one for one in files}
        known = self._known.at(self.snapshot)
        old = sources & known.keys()
        formats = {known[one].format for one in old}
        add = [one for one in files if one.path not in self.snapshot.files]
        remove = []
        for file, rows in files_with(self.snapshot, old, formats, new) if old else ():
            remove.append(file.path)
            add += self.rewritten(file, without(rows, old))
        if not add and not remove:
            return True
        after = commit(self.snapshot, add, remove)
        if after is not None:
            self.snapshot = after
        return after is not None

    def _placed(self, one: Written) -> list[DataFile]:
        """The files of a batch as they can be committed now, in the store."""
        files, found = one.made.files, []
        if self.snapshot.forgotten != one.forgotten:
            files = without_forgotten(files, self.snapshot.forgotten)
        there = {file.path for file, _ in one.made.files} if time.monotonic() - one.at < _WAITED else set()
        for file, data in files:
            placed = self.snapshot.placed(file)
            if placed.path not in there:
                self._put(placed, data)
            found.append(placed)
        return found

    def rewritten(self, file: DataFile, rows: Any) -> list[DataFile]:
        """A file in the place of another, with these rows, in the store; none where there are none."""
        if not len(rows):
            return []
        data = packed(table(file.table), rows)
        new = self.snapshot.placed(described(file.table, file.month, file.format, len(rows), data))
        self._put(new, data)
        return [new]

    def _put(self, file: DataFile, data: bytes) -> None:
        self.snapshot.store.put(file.path, data)


def without_forgotten(
    files: Sequence[tuple[DataFile, bytes]], forgotten: frozenset[int]
) -> list[tuple[DataFile, bytes]]:
    """The files of a batch without what is not to come back: sessions, captures, and their texts."""
    tables = [(file, data, unpacked(data)) for file, data in files]
    touched: set[int] = set()
    held: set[tuple[int, int]] = set()
    left: list[tuple[DataFile, bytes, Any, Any]] = []
    for file, data, rows in tables:
        some = without(rows, forgotten)
        some = without(some, forgotten, "session") if "session" in rows.column_names else some
        if file.table == "sessions":
            touched |= set(rows["source"].to_pylist()) if len(some) < len(rows) else set()
        if file.table == "stays":
            held |= set(zip(some["source"].to_pylist(), some["content"].to_pylist(), strict=True))
        left.append((file, data, rows, some))
    made = []
    for file, data, rows, some in left:
        if file.table == "contents" and touched:
            some = only_held(some, touched, held)
        if len(some) == len(rows):
            made.append((file, data))
        elif len(some):
            data = packed(table(file.table), some)
            made.append((described(file.table, file.month, file.format, len(some), data), data))
    return made


def only_held(rows: Any, touched: set[int], held: set[tuple[int, int]]) -> Any:
    """Rows of `contents` without those of some captures that are not among what these hold."""
    pairs = zip(rows["source"].to_pylist(), rows["content"].to_pylist(), strict=True)
    kept = [pair[0] not in touched or pair in held for pair in pairs]
    return rows.filter(arrow().array(kept, type=arrow().bool_()))
