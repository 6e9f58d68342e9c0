"""The log of a dataset: which files count, version by version.

A commit is one object that is made only if there is none of its number: that is the atomic act, and of two
writers one has it.  It names what it adds and what it removes; readers fold the commits up to a version and
so have one consistent state, whatever is written meanwhile.  What no commit names does not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import msgspec

from ctxctl.dataset.schema import SCHEMA_VERSION
from ctxctl.dataset.store import DatasetStore
from ctxctl.errors import UnreadableError, UsageError
from ctxctl.text import visible

if TYPE_CHECKING:
    from datetime import datetime

HEAD: Final = "dataset.json"
_LOG: Final = "log"
_T = TypeVar("_T")
_NAME: Final = re.compile(r"log/(\d{20})\.(checkpoint\.)?json")
_DEEP: Final = 8
"""No file of a dataset lies more folders deep in it."""
_HEAD_BYTES: Final = 1 << 16
_CHECKPOINT_EVERY: Final = 32
"""Commits from one list of all that counts to the next."""
LATELY: Final = 32
"""Commits for which a name that was taken out is not used again."""


class Head(msgspec.Struct, frozen=True):
    """What a dataset is, written once."""

    id: str
    """Random: 32 hex digits."""
    key_check: str
    """What tells its key from others (`KeyedDigests.check`)."""
    texts: bool
    """Whether redacted texts are kept."""
    paths: bool
    """Whether paths are."""
    schema: int = SCHEMA_VERSION
    ctxctl_dataset: int = 1


class DataFile(msgspec.Struct, frozen=True):
    """One file of a table."""

    table: str
    path: str
    month: str
    format: str
    rows: int
    bytes: int
    sha256: str


class Commit(msgspec.Struct, frozen=True):
    """One version: what it adds to the one before, and what it takes out."""

    version: int
    add: list[DataFile]
    remove: list[str]
    """Paths."""
    forget: list[int] = []
    """Keys of sessions and captures that are not to come back."""


class _Checkpoint(msgspec.Struct, frozen=True):
    version: int
    files: list[DataFile]
    forgotten: list[int]
    removed: dict[str, int] = {}
    """Paths that the last commits took out, each with its version (`Snapshot.removed`)."""


class Snapshot(NamedTuple):
    """A dataset at one version."""

    store: DatasetStore
    head: Head
    version: int
    """0: nothing was committed yet."""
    files: Mapping[str, DataFile]
    """By path, what counts."""
    forgotten: frozenset[int] = frozenset()
    removed: Mapping[str, int] = {}
    """Paths that the last `LATELY` commits took out, each with its version: whoever made one may be about to
    delete the files."""

    def of(self, table: str) -> list[DataFile]:
        """The files of a table, by path."""
        return [self.files[path] for path in sorted(self.files) if self.files[path].table == table]

    def placed(self, file: DataFile) -> DataFile:
        """A file under a name that nobody is about to delete: its own, or where that was taken out lately,
        the next one."""
        number, placed = 0, file
        while placed.path in self.removed and placed.path not in self.files:
            number += 1
            stem = file.path.removesuffix(".parquet")
            placed = msgspec.structs.replace(file, path=f"{stem}-{number}.parquet")
        return placed

    def urls(self, table: str) -> list[str]:
        """How engines are told to read a table."""
        return [self.store.url(one.path) for one in self.of(table)]


def head_of(store: DatasetStore) -> Head:
    """What the dataset is.

    Raises UnreadableError: `no-dataset`, `newer-dataset` and `older-dataset` (another ctxctl made it),
    `dataset-damaged`.
    """
    data = store.get(HEAD)
    if data is None:
        raise UnreadableError(
            "no-dataset", f"there is no dataset at {visible(store.place)}",
            hint="`ctxctl fleet add DIR --to DATASET` makes one",
        )  # fmt: skip
    try:
        told = msgspec.json.decode(data)
        newer = told["ctxctl_dataset"] != 1 or told["schema"] > SCHEMA_VERSION
        older = not newer and told["schema"] < SCHEMA_VERSION
        head = None if newer else msgspec.convert(told, Head)
    except (msgspec.MsgspecError, ValueError, KeyError, TypeError):
        raise UnreadableError(
            "dataset-damaged", f"{visible(store.url(HEAD))} is no head of a dataset"
        ) from None
    if head is None:
        raise UnreadableError(
            "newer-dataset", f"{visible(store.place)} was made by a newer ctxctl", hint="update ctxctl"
        )
    if older:
        raise UnreadableError(
            "older-dataset", f"{visible(store.place)} was made by an older ctxctl, and has other columns",
            hint="add the captures to a new one: `ctxctl fleet add DIR --to ANOTHER`",
        )  # fmt: skip
    return head


def dataset_of(path: Path) -> Path | None:
    """The folder of the dataset on this machine that a file is a part of; None where it is of none."""
    for folder in tuple(path.parents)[:_DEEP]:
        with suppress(OSError, msgspec.MsgspecError, ValueError):
            with (folder / HEAD).open("rb") as file:
                told = msgspec.json.decode(file.read(_HEAD_BYTES))
            if isinstance(told, dict) and "ctxctl_dataset" in told:
                top = path.relative_to(folder).parts[0]
                return folder if top in (HEAD, _LOG, "data") else None
    return None


def create_head(store: DatasetStore, head: Head) -> Head:
    """Make a dataset, unless there is one; what the dataset is."""
    store.make()
    data = msgspec.json.format(msgspec.json.encode(head, order="sorted"), indent=1) + b"\n"
    return head if store.create(HEAD, data) else head_of(store)


def live(place: str | DatasetStore, version: int | None = None) -> Snapshot:
    """A dataset at a version, else as it is now.

    Raises UsageError (`no-such-version`) and what `head_of` raises.
    """
    store = DatasetStore(place) if isinstance(place, str) else place
    return fold(store, head_of(store), version)


def fold(store: DatasetStore, head: Head, version: int | None = None) -> Snapshot:
    """As `live`, of a dataset whose head is known."""
    commits: set[int] = set()
    checkpoints: set[int] = set()
    for one in store.objects(_LOG):
        match = _NAME.fullmatch(one.path)
        if match is not None:
            (checkpoints if match[2] else commits).add(int(match[1]))
    newest = max(commits, default=0)
    wanted = newest if version is None else version
    if not 0 <= wanted <= newest:
        raise UsageError(
            "no-such-version", f"the dataset has no version {wanted}", hint=f"the last is {newest}"
        )
    start = max((one for one in checkpoints if one <= wanted), default=0)
    whole = _decoded(store, _checkpoint_path(start), _Checkpoint) if start else _Checkpoint(0, [], [])
    found = Snapshot(
        store, head, start, {one.path: one for one in whole.files}, frozenset(whole.forgotten), whole.removed
    )
    return _with(found, [read_commit(store, number) for number in range(start + 1, wanted + 1)])


def _with(before: Snapshot, commits: Iterable[Commit]) -> Snapshot:
    """A version with the next ones."""
    files, removed, forgotten = dict(before.files), dict(before.removed), set(before.forgotten)
    version = before.version
    for commit in commits:
        version = commit.version
        for path in commit.remove:
            files.pop(path, None)
        removed |= dict.fromkeys(commit.remove, version)
        files |= {one.path: one for one in commit.add}
        forgotten.update(commit.forget)
    lately = {path: at for path, at in removed.items() if at > version - LATELY}
    return before._replace(version=version, files=files, forgotten=frozenset(forgotten), removed=lately)


def read_commit(store: DatasetStore, number: int) -> Commit:
    """A commit; raises UnreadableError("dataset-damaged")."""
    return _decoded(store, _commit_path(number), Commit)


def _decoded(store: DatasetStore, path: str, kind: type[_T]) -> _T:
    data = store.get(path)
    try:
        if data is None:
            raise ValueError("it is not there")
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, ValueError) as error:
        said = visible(str(error)[:200])
        raise UnreadableError("dataset-damaged", f"{visible(store.url(path))}: {said}") from None


def data_of(store: DatasetStore, path: str) -> bytes:
    """A file of data; raises UnreadableError("dataset-damaged") where it is gone."""
    data = store.get(path)
    if data is None:
        raise UnreadableError("dataset-damaged", f"{visible(store.url(path))}: it is not there")
    return data


def commit(
    before: Snapshot, add: Iterable[DataFile], remove: Iterable[str], forget: Iterable[int] = ()
) -> Snapshot | None:
    """Make the next version; None where somebody else has made one since `before`.

    The files must be there already.
    """
    store, number = before.store, before.version + 1
    made = Commit(number, sorted(add, key=_path), sorted(remove), sorted(forget))
    if not store.create(_commit_path(number), msgspec.json.encode(made) + b"\n"):
        return None
    after = _with(before, [made])
    if number % _CHECKPOINT_EVERY == 0:
        files = sorted(after.files.values(), key=_path)
        whole = _Checkpoint(number, files, sorted(after.forgotten), dict(sorted(after.removed.items())))
        store.create(_checkpoint_path(number), msgspec.json.encode(whole) + b"\n")
    return after


def removed_at(store: DatasetStore) -> tuple[dict[str, datetime], set[str]]:
    """By path, when a commit has taken it out last; and all paths that commits have ever named."""
    gone: dict[str, datetime] = {}
    named: set[str] = set()
    for one in sorted(store.objects(_LOG)):
        match = _NAME.fullmatch(one.path)
        if match is None or match[2]:
            continue
        commit = read_commit(store, int(match[1]))
        gone |= dict.fromkeys(commit.remove, one.written)
        named.update(commit.remove, (added.path for added in commit.add))
    return gone, named


def _path(file: DataFile) -> str:
    return file.path


def _commit_path(number: int) -> str:
    return f"{_LOG}/{number:020}.json"


def _checkpoint_path(number: int) -> str:
    return f"{_LOG}/{number:020}.checkpoint.json"


def data_path(table: str, month: str, format_name: str, sha256: str) -> str:
    """Where a file of these contents is: the same rows always have the same name."""
    return f"data/{table}/{month}/{format_name}/{sha256[:32]}.parquet"


def sizes(files: Sequence[DataFile]) -> tuple[int, int]:
    """Rows and bytes of some files."""
    return sum(one.rows for one in files), sum(one.bytes for one in files)
