"""Contents that another process counts while a trace is read: the same replay, whatever becomes of it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ctxctl.errors import UnreadableError
from ctxctl.model.content import Content
from ctxctl.model.event import Event
from ctxctl.model.records import Item
from ctxctl.session import Inspector, counting, counting_beside
from ctxctl.session.counting import CountingRoom
from ctxctl.session.counting_beside import CountingBeside
from ctxctl.tokens import counting_process
from ctxctl.tokens.chunks import count_tokens
from ctxctl.tokens.counting_process import CountingProcess
from ctxctl.trace.reader import Trace
from ctxctl.trace.source import Source, open_source
from tests.bench import generate


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("counting") / "trace.jsonl"
    path.write_bytes(b"".join(generate.working(60)))
    return path


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[CountingProcess]:
    """The processes that were started; however little there is to count, one is, and the cache is empty."""
    processes: list[CountingProcess] = []

    def start(base: str) -> CountingProcess:
        processes.append(CountingProcess(base))
        return processes[-1]

    monkeypatch.setenv("CTXCTL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(counting, "_PAYS", 1)
    monkeypatch.setattr(counting_process, "may_start", lambda: True)
    monkeypatch.setattr(counting_process, "CountingProcess", start)
    return processes


def _plain(trace: Path, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    with monkeypatch.context() as alone:
        alone.setattr(counting_process, "may_start", lambda: False)
        alone.setenv("CTXCTL_CACHE", "off")
        with Inspector.open(trace) as inspector:
            return list(inspector.replay())


def _here(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that this process counts from now on."""
    texts: list[str] = []

    def counted(*args: object) -> tuple[int, bool]:
        texts.append(str(args[-1]))
        return count_tokens(*args)  # type: ignore[arg-type]

    monkeypatch.setattr("ctxctl.tokens.chunks.count_tokens", counted)
    return texts


@pytest.mark.parametrize("open_step", [False, True])
@pytest.mark.parametrize("slow", [False, True])
def test_a_replay_is_the_same_and_counts_nothing_here(
    trace: Path, started: list[CountingProcess], monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
    open_step: bool, slow: bool,
) -> None:  # fmt: skip
    part = tmp_path / "part.jsonl"
    lines = trace.read_bytes().splitlines(keepends=True)
    if open_step:  # its items are counted when nothing more comes
        lines = lines[: max(n for n, line in enumerate(lines, 1) if b'"context.item.added"' in line)]
    part.write_bytes(b"".join(lines))
    expected = _plain(part, monkeypatch)
    here = _here(monkeypatch)
    take: Callable[..., list[tuple[int, bool]] | None] = CountingProcess.take
    if slow:  # no count is there before somebody waits for it, and for each anew
        monkeypatch.setattr(counting_beside, "_JOB", 1)
        monkeypatch.setattr(
            CountingProcess, "take", lambda self, *, wait: take(self, wait=True) if wait else None
        )
    with Inspector.open(part) as inspector:
        assert list(inspector.replay()) == expected
    assert len(started) == 1
    assert not here


@pytest.mark.parametrize("after", [1, 2, 4])
def test_a_process_that_is_killed_costs_time_and_nothing_else(
    trace: Path, started: list[CountingProcess], monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    expected = _plain(trace, monkeypatch)
    here = _here(monkeypatch)
    put = CountingBeside.put
    calls: list[CountingBeside] = []

    def kill_and_put(self: CountingBeside, *args: object) -> int:
        calls.append(self)
        if len(calls) == after:
            os.kill(started[0].pid, signal.SIGKILL)
        return put(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(CountingBeside, "put", kill_and_put)
    with Inspector.open(trace) as inspector:
        assert list(inspector.replay()) == expected
    assert started[0].lost
    assert here


def test_nonsense_from_the_process_is_not_believed(
    trace: Path, started: list[CountingProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = _plain(trace, monkeypatch)
    take: Callable[..., list[tuple[int, bool]] | None] = CountingProcess.take

    def nonsense(self: CountingProcess, *, wait: bool) -> list[tuple[int, bool]] | None:
        found = take(self, wait=wait)
        return None if found is None else [(0, True) for _ in found]

    monkeypatch.setattr(CountingProcess, "take", nonsense)
    with Inspector.open(trace) as inspector:
        assert list(inspector.replay()) == expected


def test_what_it_counted_is_in_the_cache_for_the_next_run(
    trace: Path, started: list[CountingProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Inspector.open(trace) as inspector:
        first = list(inspector.replay())
    here = _here(monkeypatch)
    with Inspector.open(trace) as inspector:
        assert list(inspector.replay()) == first
    assert len(started) == 1
    assert not here


def test_a_text_that_nobody_foresaw_is_counted_there_too(
    trace: Path, started: list[CountingProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    here = _here(monkeypatch)
    monkeypatch.setattr("ctxctl.tokens.counter.is_loaded", lambda _: False)
    with Inspector.open(trace) as inspector:
        room = inspector._counter
        batches = inspector.counted()
        next(batches)
        assert len(started) == 1
        assert room.count("a text that is in no line") == (7, True)
        assert not here
        os.kill(started[0].pid, signal.SIGKILL)
        assert room.count("another one of those") == (4, True)
        assert here == ["another one of those"]
        list(batches)


@pytest.mark.parametrize("first", [1, 40])
def test_passes_beside_one_another_are_the_same(
    trace: Path, started: list[CountingProcess], monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    expected = _plain(trace, monkeypatch)
    with Inspector.open(trace) as inspector:
        one, other = inspector.replay(), inspector.replay()
        both = [[next(one) for _ in range(first)], [next(other)]]
        both[1] += other
        both[0] += one
    assert both == [expected, expected]
    assert len(started) == 1


def test_an_inspector_that_is_closed_in_the_middle_of_a_pass_ends_the_process(
    trace: Path, started: list[CountingProcess]
) -> None:
    inspector = Inspector.open(trace)
    batches = inspector.counted()
    next(batches)
    inspector._counter.close()
    assert started[0]._process.poll() is not None
    assert len(list(batches)) > 1
    inspector.close()


def test_a_walk_that_is_left_ends_the_process(trace: Path, started: list[CountingProcess]) -> None:
    with Inspector.open(trace) as inspector:
        assert inspector.at(1).step.turn
        process = started[0]._process
        assert process.poll() is None
    assert process.poll() is not None


def test_what_was_read_before_a_fault_is_given_before_it_is_raised(
    trace: Path, started: list[CountingProcess]
) -> None:
    source = Source.from_bytes("trace", trace.read_bytes())
    read = list(Trace(source).batches())
    assert len(read) > 2

    def batches() -> Iterator[list[Event]]:
        yield from read[:-1]
        raise UnreadableError("read-failed", "gone")

    opened = Trace(source)
    room = CountingRoom("o200k_base")
    given: list[list[Event]] = []
    with pytest.raises(UnreadableError):
        given.extend(room.counted(batches(), opened.contents, source.size))
    assert given == read[:-1]
    room.close()


@pytest.mark.parametrize("least", [1, 1 << 30])
def test_nothing_is_read_beyond_an_empty_batch_before_that_is_passed_on(
    trace: Path, started: list[CountingProcess], monkeypatch: pytest.MonkeyPatch, least: int
) -> None:
    """One process counts on both sides of it."""
    monkeypatch.setattr(counting, "_PAYS", least)
    with open_source(trace) as source:
        opened = Trace(source)
        parts = [batch[at : at + 5] for batch in opened.batches() for at in range(0, len(batch), 5)]
        read: list[int] = []

        def batches() -> Iterator[list[Event]]:
            for number, batch in enumerate([*parts[:6], [], *parts[6:]]):
                read.append(number)
                yield batch

        room = CountingRoom("o200k_base")
        passed = []
        for batch in room.counted(batches(), opened.contents, source.size):
            if not batch:
                assert read == list(range(7))
                assert passed == parts[:6]
                ahead = [one for one in opened.contents.known() if _met(one, parts[:6])]
                assert ahead
                if least == 1:
                    assert all(one.count is not None for one in ahead)
            else:
                passed.append(batch)
        room.close()
    assert passed == parts
    assert len(started) == (least == 1)


def _met(content: Content, batches: list[list[Event]]) -> bool:
    """Whether a content is one of those that are counted ahead."""
    return any(type(e.record) is Item and e.record.content is content for batch in batches for e in batch)


def test_little_is_counted_here(
    trace: Path, started: list[CountingProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "_PAYS", 1 << 30)
    with Inspector.open(trace) as inspector:
        list(inspector.replay())
    assert not started


def test_where_a_process_is_refused_this_one_counts(
    trace: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    expected = _plain(trace, monkeypatch)
    monkeypatch.setenv("CTXCTL_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(counting, "_PAYS", 1)
    monkeypatch.setattr(counting_process, "may_start", lambda: True)

    def refused(*_: object, **__: object) -> None:
        raise BlockingIOError

    monkeypatch.setattr("subprocess.Popen", refused)
    with Inspector.open(trace) as inspector:
        assert list(inspector.replay()) == expected
