"""The dataset against a dictionary: who adds, forgets, joins, removes, reads or dies, in whatever order.

CTXCTL_DATASET_RUNS=200 tries so many histories.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import pytest

pytest.importorskip("pyarrow", reason="needs the extra `fleet`")
pytest.importorskip("obstore", reason="needs the extra `fleet`")

import msgspec
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)

from ctxctl.dataset import add as adding
from ctxctl.dataset import log
from ctxctl.dataset.add import Comparison, add, planned, source_of
from ctxctl.dataset.batch import Batch, Capture, batch, worked
from ctxctl.dataset.captures import captures_at
from ctxctl.dataset.keys import digests_of
from ctxctl.dataset.known import KnownSources
from ctxctl.dataset.log import Snapshot, fold
from ctxctl.dataset.parquet import unpacked
from ctxctl.dataset.schema import TABLES
from ctxctl.dataset.store import DatasetStore
from ctxctl.dataset.upkeep import compact, erased, forget, outdated, vacuum
from ctxctl.errors import CtxctlError
from ctxctl.trace import inputs
from tests.unit.dataset.fleet_kit import opened, rows_in, session, write
from tests.unit.dataset.kit import WORDS

Rows = dict[str, list[tuple[Any, ...]]]
_LATER = timedelta(hours=2)
_NAMES = range(8)


class _Held(NamedTuple):
    """What was added of a capture."""

    turns: int
    is_whole: bool = True
    """False: its session was too old to be kept; the capture stays known."""


class _Died(BaseException):
    """The writer was killed."""


class _Watched(DatasetStore):
    """A store at a change of which something happens: just before it, or just after."""

    def __init__(self, place: str, at: int, act: Callable[[], None], *, after: bool) -> None:
        super().__init__(place)
        self._left, self._act, self._after = at, act, after

    def put(self, path: str, data: bytes) -> None:
        with self._change():
            super().put(path, data)

    def create(self, path: str, data: bytes) -> bool:
        with self._change():
            return super().create(path, data)

    def delete(self, path: str) -> None:
        with self._change():
            super().delete(path)

    @contextmanager
    def _change(self) -> Iterator[None]:
        self._left -= 1
        now = self._left == -1
        if now and not self._after:
            self._act()
        yield
        if now and self._after:
            self._act()


class _Add:
    """`fleet add` of all that is on the disk, which is looked at and read first."""

    def __init__(self, snapshot: Snapshot, home: Path, disk: Mapping[int, int]) -> None:
        self._snapshot, self._known = snapshot, KnownSources()
        beside = Comparison(self._known.at(snapshot), WORDS)
        found = captures_at([str(_path(home, one)) for one in disk], None, _fail, beside.of)
        self._plan = planned(found, beside, WORDS, snapshot.forgotten, again=False)
        sources = {one.source for asked in self._plan.batches for one in asked.captures}
        self.read = {one: _Held(turns) for one, turns in disk.items() if _key(one) in sources}
        self._made = [worked(msgspec.msgpack.encode(one)) for one in self._plan.batches]

    def finish(self) -> None:
        """Write and commit."""

        def made(work: str, pieces: Sequence[bytes], *, apart: bool = False) -> Iterator[tuple[int, bytes]]:
            assert work
            assert len(pieces) == len(self._made)
            assert not apart
            yield from enumerate(self._made)

        add(self._snapshot, self._plan, self._known, made, lambda _: None)


class _Do(NamedTuple):
    """Something that is done to a dataset."""

    what: Literal["grow", "add", "forget", "retain", "join"]
    one: int
    """Capture; of `retain` the month, from 0."""
    turns: int


def _some(*what: str) -> st.SearchStrategy[_Do]:
    return st.builds(_Do, st.sampled_from(what), st.sampled_from(_NAMES), st.integers(1, 3))


_CHANGE = _some("add", "add", "forget", "retain", "join")
_DONE = st.one_of(_CHANGE, _some("grow", "grow", "forget"))


class Datasets(RuleBasedStateMachine):
    """What a dataset holds is what its captures were when they were added last, less what is forgotten."""

    home: ClassVar[Path]
    rows: ClassVar[dict[tuple[int, int], Rows]]
    """By capture and turns, the rows that are right; over all examples."""

    def __init__(self) -> None:
        super().__init__()
        shutil.rmtree(self.home / "logs", ignore_errors=True)
        self.place = Path(tempfile.mkdtemp(prefix="dataset-", dir=self.home))
        self.disk: dict[int, int] = {}
        """By capture, its turns."""
        self.held: dict[int, _Held] = {}
        self.forgotten: set[int] = set()
        self.reading: list[tuple[Snapshot, Rows]] = []
        opened(self.place)

    def teardown(self) -> None:
        shutil.rmtree(self.place)

    def _now(self) -> Snapshot:
        return opened(self.place)

    @rule(one=st.sampled_from(_NAMES), turns=st.integers(1, 3))
    def grow(self, one: int, turns: int) -> None:
        """A capture is written, or written anew."""
        if self.disk.get(one) == turns:
            return
        write(_path(self.home, one), session(one, turns))
        self.disk[one] = turns
        if (one, turns) not in self.rows:
            self.rows[one, turns] = _alone(one)

    @rule(do=_DONE)
    def do(self, do: _Do) -> None:
        """Something is done, by nobody else at the same time."""
        self._do(do, self._now())

    @rule(do=_CHANGE, at=st.integers(0, 9), after=st.booleans())
    def die(self, do: _Do, at: int, after: bool) -> None:
        """Something is done by somebody who is killed at a change."""

        def act() -> None:
            raise _Died

        watched = self._now()._replace(store=_Watched(str(self.place), at, act, after=after))
        with suppress(_Died):
            self._do(do, watched)

    @rule(
        do=_CHANGE, at=st.integers(0, 9), after=st.booleans(), others=st.lists(_DONE, min_size=1, max_size=4)
    )
    def meanwhile(self, do: _Do, at: int, after: bool, others: list[_Do]) -> None:
        """Others do other things between two changes of somebody's, just after captures were written."""
        self.grow(do.one, do.turns)
        self.grow((do.one + 1) % len(_NAMES), do.turns)

        def act() -> None:
            rows_in(self._now())  # a reader meanwhile never fails
            for other in others:
                self._do(other, self._now())

        self._do(do, self._now()._replace(store=_Watched(str(self.place), at, act, after=after)))

    def _do(self, do: _Do, now: Snapshot) -> None:
        if do.what == "grow":
            self.grow(do.one, do.turns)
        elif do.what == "add":
            self._add(now)
        elif do.what == "forget":
            self._forget(do.one, now)
        elif do.what == "retain":
            self._retain(1 + do.one % 4, now)
        else:
            compact(now, 1 + do.turns)

    def _add(self, now: Snapshot) -> None:
        begun = _Add(now, self.home, self.disk)
        before, over = dict(self.held), False
        try:
            begun.finish()
            over = True
        finally:
            held = rows_in(self._now())
            for one in begun.read.keys() - self.forgotten:
                new, old = begun.read[one], self.held.get(one)
                if _own(held, one) == self._expected(one, new):
                    self.held[one] = new
                elif over and old == before.get(one):  # nobody else has touched it
                    raise AssertionError(f"{one} is not as it was read")

    def _forget(self, one: int, now: Snapshot) -> None:
        """For good, and where it was not added too."""
        self.reading = []  # files go at once
        try:
            forget(now, erased(now, [_session_key(one)], [_key(one)]))
        finally:
            if self._now().forgotten.issuperset({_key(one), _session_key(one)}):
                self.held.pop(one, None)
                self.forgotten.add(one)

    def _retain(self, month: int, now: Snapshot) -> None:
        """What is old goes; what others bring back meanwhile may go or stay, whole."""
        self.reading = []
        before, over = dict(self.held), False
        try:
            forget(now, outdated(now, datetime(2026, month, 1, tzinfo=UTC)))
            over = True
        finally:
            found = rows_in(self._now())
            for one, held in self.held.items():
                less = held._replace(is_whole=False)
                if 1 + one % 3 < month and _own(found, one) == self._expected(one, less):
                    self.held[one] = less
                elif 1 + one % 3 < month and over and before.get(one) == held:
                    raise AssertionError(f"{one} is kept")

    def _expected(self, one: int, held: _Held) -> Rows:
        rows = self.rows[one, held.turns]
        return {
            name: sorted(some) if held.is_whole or name == "sources" else [] for name, some in rows.items()
        }

    @rule()
    def remove_unused(self) -> None:
        """`fleet vacuum`, at once: what is read or about to be committed is too young to go."""
        assert vacuum(self._now(), datetime.now(UTC)).files == 0

    @rule()
    def remove_unused_later(self) -> None:
        """`fleet vacuum`, when nobody reads or writes any more: the live files are all that is left."""
        now = self._now()
        vacuum(now, datetime.now(UTC) + _LATER)
        left = {
            str(path.relative_to(self.place)) for path in (self.place / "data").rglob("*") if path.is_file()
        }
        assert left == set(now.files)
        self.reading = []

    @rule()
    def begin_to_read(self) -> None:
        """Somebody opens the version that there is."""
        now = self._now()
        self.reading.append((now, rows_in(now)))

    @rule(data=st.data())
    def read_any_version(self, data: st.DataObject) -> None:
        """Each reader sees what it saw, and so does who asks for its version by number."""
        if self.reading:
            then, seen = data.draw(st.sampled_from(self.reading))
            assert rows_in(then) == seen
            assert rows_in(fold(then.store, then.head, then.version)) == seen

    @invariant()
    def rows_are_right(self) -> None:
        """Every row once, none else."""
        expected: Rows = {table.name: [] for table in TABLES}
        for one, held in self.held.items():
            for name, rows in self._expected(one, held).items():
                expected[name] += rows
        assert rows_in(self._now()) == {name: sorted(rows) for name, rows in expected.items()}


def _path(home: Path, one: int) -> Path:
    return home / "logs" / f"s-{one}.jsonl"


def _key(one: int) -> int:
    return source_of(str(_path(Datasets.home, one)), WORDS)


def _session_key(one: int) -> int:
    return digests_of(WORDS.key).number("session", f"claude-code\0\0s-{one}".encode())


def _alone(one: int) -> Rows:
    """The rows of a capture as it is now, by the batch that it is alone in."""
    path = os.fsencode(_path(Datasets.home, one))
    made = batch(Batch([Capture(path, "claude-code", _key(one))], WORDS))
    assert not made.unread
    rows: Rows = {table.name: [] for table in TABLES}
    for file, data in made.files:
        columns = unpacked(data).to_pydict()
        columns.pop("inputs", None)
        rows[file.table] += [tuple(map(repr, row)) for row in zip(*columns.values(), strict=True)]
    return rows


def _own(rows: Rows, one: int) -> Rows:
    key = repr(_key(one))
    return {name: sorted(row for row in some if key in row) for name, some in rows.items()}


def _fail(place: str, error: Exception) -> None:
    raise AssertionError(f"{place}: {error}")


@pytest.fixture
def _small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of two captures, a commit each, in files whose times always tell."""
    monkeypatch.setattr(inputs, "YOUNG", -60.0)
    monkeypatch.setattr(adding, "_CAPTURES", 2)
    monkeypatch.setattr(adding, "_BATCHES", 1)
    monkeypatch.setattr(log, "_CHECKPOINT_EVERY", 4)
    monkeypatch.setattr(Datasets, "home", tmp_path, raising=False)
    monkeypatch.setattr(Datasets, "rows", {}, raising=False)


def _run(examples: int) -> None:
    run_state_machine_as_test(
        Datasets,
        settings=settings(
            max_examples=examples, stateful_step_count=25, deadline=None, derandomize=True, database=None,
            phases=(Phase.generate,), suppress_health_check=list(HealthCheck),
        ),
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.usefixtures("_small")
@pytest.mark.timeout(900)
def test_whatever_happens_every_row_is_there_once() -> None:
    _run(int(os.environ.get("CTXCTL_DATASET_RUNS", "16")))


@pytest.mark.slow
@pytest.mark.usefixtures("_small")
@pytest.mark.timeout(900)
def test_a_log_whose_commits_overwrite_one_another_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def overwrite(store: DatasetStore, path: str, data: bytes) -> bool:
        store.put(path, data)
        return True

    monkeypatch.setattr(DatasetStore, "create", overwrite)
    with pytest.raises((AssertionError, CtxctlError, ExceptionGroup)):  # also: a file is gone that counts
        _run(60)
