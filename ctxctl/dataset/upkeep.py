"""What keeps a dataset in order: small files joined, files that nobody needs removed, rows gone for good."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from ctxctl.dataset.add import Committer, only_held
from ctxctl.dataset.known import KnownSources, read_file
from ctxctl.dataset.log import DataFile, Snapshot, commit, removed_at
from ctxctl.dataset.parquet import joined, without
from ctxctl.dataset.schema import table
from ctxctl.errors import UnavailableError, UnreadableError
from ctxctl.text import visible

TARGET: Final = 24 << 20
"""Bytes of a file from which on it is joined with no other."""
GRACE: Final = timedelta(hours=1)
"""How long what counts no more stays for those who still read it."""
MANY: Final = 8
"""Small files of one table, month and format from which on they are joined when captures are added."""
_TRIES: Final = 100


class Joined(NamedTuple):
    """What a compaction did."""

    before: int
    after: int
    """Files."""
    snapshot: Snapshot


def compact(snapshot: Snapshot, least: int = 2, progress: Callable[[float], None] = lambda _: None) -> Joined:
    """Join small files: the same rows in fewer files, each partition by a commit of its own.

    Args:
        snapshot: The dataset.
        least: Small files of a partition from which on they are joined.
        progress: Told the share of the partitions that were gone through.
    """
    before = len(snapshot.files)
    committer = Committer(snapshot, KnownSources())
    partitions = sorted({(one.table, one.month, one.format) for one in snapshot.files.values()})
    for number, partition in enumerate(partitions):
        for group in _groups(committer.snapshot, partition, least):
            _join(committer, group)
        progress((number + 1) / len(partitions))
    return Joined(before, len(committer.snapshot.files), committer.snapshot)


def _groups(snapshot: Snapshot, partition: tuple[str, str, str], least: int) -> list[list[DataFile]]:
    """The small files of a partition that become one each."""
    small = [
        one
        for one in snapshot.of(partition[0])
        if (one.table, one.month, one.format) == partition and one.bytes < TARGET // 2
    ]
    if len(small) < least:
        return []
    groups: list[list[DataFile]] = [[]]
    for one in sorted(small, key=lambda file: (file.bytes, file.path)):
        if groups[-1] and sum(file.bytes for file in groups[-1]) + one.bytes > TARGET:
            groups.append([])
        groups[-1].append(one)
    return [group for group in groups if len(group) > 1]


def _join(committer: Committer, group: list[DataFile]) -> None:
    shape = table(group[0].table)
    made: list[DataFile] | None = None
    for _ in range(_TRIES):
        now = committer.snapshot
        if any(one.path not in now.files for one in group):
            return  # somebody else has changed them
        if made is None or any(one.path in now.removed for one in made):
            try:
                rows = joined(shape, [read_file(now, one) for one in group])
            except UnreadableError:  # removed for good in this moment
                if not committer.moved():
                    raise
                continue
            made = committer.rewritten(group[0], rows)
        after = commit(now, made, [one.path for one in group])
        if after is not None:
            committer.snapshot = after
            return
        committer.moved()
    raise _busy(committer.snapshot)


def _busy(snapshot: Snapshot) -> UnavailableError:
    where = visible(snapshot.store.place)
    return UnavailableError("dataset-busy", f"others commit to {where} all the time", hint="try again")


class Vacuumed(NamedTuple):
    """What a vacuum removed, and what it left for now."""

    files: int
    bytes: int
    young: int
    """Files that nothing names, too young to be anybody's leavings."""


def vacuum(snapshot: Snapshot, now: datetime, grace: timedelta = GRACE) -> Vacuumed:
    """Remove files that do not count: those that a commit took out longer ago than `grace`, and those that no
    commit ever named and that are older.
    """
    store = snapshot.store
    gone, _ = removed_at(store)
    files = size = young = 0
    for one in list(store.objects("data")):
        if one.path in snapshot.files:
            continue
        last = max(one.written, gone.get(one.path, one.written))
        again = store.written(one.path)  # it may have been written anew a moment ago
        if now - last < grace or again is None or now - again < grace:
            young += 1
            continue
        store.delete(one.path)
        files += 1
        size += one.size
    for path in store.unfinished():
        if now - datetime.fromtimestamp(path.stat().st_mtime, UTC) >= grace:
            path.unlink(missing_ok=True)
            files += 1
        else:
            young += 1
    return Vacuumed(files, size, young)


class Selected(NamedTuple):
    """What is to be gone."""

    sessions: frozenset[int]
    sources: frozenset[int]
    """Captures of which nothing is to stay."""
    returns: bool
    """Whether what is read of them later may come in again."""


def sessions_table(snapshot: Snapshot, columns: Iterable[str]) -> list[dict[str, Any]]:
    """Columns of all sessions."""
    found: list[dict[str, Any]] = []
    for one in snapshot.of("sessions"):
        found += read_file(snapshot, one, tuple(columns)).to_pylist()
    return found


def erased(snapshot: Snapshot, sessions: Iterable[int], sources: Iterable[int] = ()) -> Selected:
    """Sessions, captures, and captures that hold nothing else, never to come back."""
    gone, whole = set(sessions), set(sources)
    held: dict[int, set[int]] = defaultdict(set)
    for row in sessions_table(snapshot, ("session", "source")):
        held[row["source"]].add(row["session"])
    for source, own in held.items():
        if source in whole:
            gone |= own
    whole |= {source for source, own in held.items() if own <= gone}
    return Selected(frozenset(gone), frozenset(whole), returns=False)


def outdated(snapshot: Snapshot, before: datetime) -> Selected:
    """Sessions that ended before a time; their captures stay known, so that they are not read again."""
    found = sessions_table(snapshot, ("session", "ended"))
    gone = {row["session"] for row in found if row["ended"] is not None and row["ended"] < before}
    kept = {row["session"] for row in found if row["ended"] is None or row["ended"] >= before}
    return Selected(frozenset(gone - kept), frozenset(), returns=True)


class Forgotten(NamedTuple):
    """What was removed."""

    sessions: int
    rows: int
    files: int
    """Files that held it, removed from the store."""
    snapshot: Snapshot


def forget(snapshot: Snapshot, selected: Selected) -> Forgotten:
    """Make the version without some sessions, and remove every file that holds a row of them."""
    committer = Committer(snapshot, KnownSources())
    for _ in range(_TRIES):
        try:
            done = _forgotten(committer, selected)
        except UnreadableError:  # somebody else forgets
            if not committer.moved():
                raise
            continue
        if done is not None:
            return done
        committer.moved()
    raise _busy(committer.snapshot)


def _forgotten(committer: Committer, selected: Selected) -> Forgotten | None:
    """One attempt to forget; None where somebody else has committed meanwhile."""
    now = committer.snapshot
    touched = {
        row["source"]
        for row in sessions_table(now, ("session", "source"))
        if row["session"] in selected.sessions
    }
    add, remove, rows = _rewritten(committer, selected, touched - selected.sources)
    sticky = () if selected.returns else selected.sessions | selected.sources
    if not remove and now.forgotten.issuperset(sticky):
        return Forgotten(0, 0, 0, now)
    after = commit(now, add, remove, sticky)
    if after is None:
        return None
    for path in remove:
        if path not in after.files:
            now.store.delete(path)
    return Forgotten(len(selected.sessions), rows, len(remove), after)


def _rewritten(
    committer: Committer, selected: Selected, touched: set[int]
) -> tuple[list[DataFile], list[str], int]:
    """The files that take the place of those with such rows, these, and how many rows are gone."""
    now = committer.snapshot
    kept = _kept_contents(now, selected, touched) if touched else None
    add: list[DataFile] = []
    remove: list[str] = []
    gone = 0
    for path in sorted(now.files):
        file = now.files[path]
        rows = read_file(now, file)
        left = without(rows, selected.sources)
        if "session" in left.column_names:
            left = without(left, selected.sessions, "session")
        if file.table == "contents" and kept is not None:
            left = only_held(left, touched, kept)
        if len(left) < len(rows):
            gone += len(rows) - len(left)
            remove.append(path)
            add += committer.rewritten(file, left)
    return add, remove, gone


def _kept_contents(now: Snapshot, selected: Selected, touched: set[int]) -> set[tuple[int, int]]:
    """Capture and content of what other sessions of some captures hold."""
    kept: set[tuple[int, int]] = set()
    for one in now.of("stays"):
        found = read_file(now, one, ("session", "source", "content"))
        found = without(found, selected.sessions, "session").to_pydict()
        for source, content in zip(found["source"], found["content"], strict=True):
            if source in touched and content is not None:
                kept.add((source, content))
    return kept
