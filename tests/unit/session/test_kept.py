"""What is kept of captures and replays: found again while it holds, and never a wrong answer."""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxctl.analysis.blame import blame_frame
from ctxctl.analysis.where import steps_where
from ctxctl.engine.query import parse_query
from ctxctl.model.results import Step
from ctxctl.report import jsonout
from ctxctl.session import Inspector, import_cache, kept_replays
from ctxctl.session.cache_room import cache_entries, prune_cache
from ctxctl.session.store_rows import lives_of
from ctxctl.session.walked import walked
from ctxctl.store import file as store_file
from ctxctl.store.writer import RowWriter
from ctxctl.trace import inputs
from ctxctl.trace.cache_files import only_reading

ROOT = Path(__file__).parents[3]
CLAUDE = ROOT / "fixtures" / "claude_code"
CAPTURES = (CLAUDE / "session.jsonl", CLAUDE / "compaction.jsonl", ROOT / "fixtures" / "otel" / "otlp.json")


@pytest.fixture(autouse=True)
def _everything_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """However small, and however young."""
    monkeypatch.setattr(import_cache, "LEAST", 0)
    monkeypatch.setattr(kept_replays, "LEAST", 0)
    monkeypatch.setattr(inputs, "YOUNG", -1e9)


@pytest.fixture
def cache() -> Path:
    return Path(os.environ["CTXCTL_CACHE_DIR"])


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    shutil.copy(CLAUDE / "compaction.jsonl", tmp_path / "one.jsonl")
    return tmp_path / "one.jsonl"


def answers(path: Path) -> bytes:
    """All that is asked of a trace: every step and turn, frames with their texts, problems, totals."""
    with Inspector.open(path) as inspector:
        return answers_of(inspector)


def answers_of(inspector: Inspector) -> bytes:
    inspector.read_whole()
    frames: list[Any] = []
    steps = len(inspector.places().spans)
    for ordinal in (0, steps // 2, steps - 1):
        at = inspector.at(ordinal)
        frames += [step_of(at.step), [jsonout.placement(p, n) for n, p in enumerate(at.placements)]]
        frames.append(inspector.assembled(ordinal))
        blamed = blame_frame(inspector, ordinal)
        frames.append([[block.since, block.entered, block.age] for block in blamed.blocks])
    where = [
        [one.ordinal, one.held.truth, [change.item for change in one.held.changes]]
        for text in ("compacted", "segment:user", "the")
        for one in steps_where(inspector, parse_query(text), frames=False)
    ]
    results = [repr(result) for result in inspector.replay()]
    steps_walked = [
        [
            [repr(one.at.step), repr(one.at.turn), [placement_of(p) for p in one.at.placements]],
            [[placement_of(p) for p in which] for which in (one.delta.inserted, one.delta.removed)],
            one.delta.reordered,
            [[*name, content.digest, inspector.text(content)] for name, content in one.omitted.items()],
        ]
        for one in walked(inspector)
    ]
    return orjson.dumps(
        [results, steps_walked, where, frames, list(map(str, inspector.problems)), repr(inspector.summary)],
        default=str,
    )


def step_of(step: Any) -> str:
    return repr(jsonout.step(step))


def placement_of(placement: Any) -> list[Any]:
    return [getattr(placement, name) for name in placement.__struct_fields__]


def without_cache(path: Path) -> bytes:
    os.environ["CTXCTL_CACHE"] = "off"
    try:
        return answers(path)
    finally:
        del os.environ["CTXCTL_CACHE"]


class Counted:
    """How often captures were imported and replays made."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from ctxctl.session import facade, opening

        self.imports = self.replays = 0
        write, walk = opening.write_native, facade.Inspector.walk

        def written(*args: Any, **kwargs: Any) -> None:
            self.imports += 1
            write(*args, **kwargs)

        def walked(*args: Any, **kwargs: Any) -> Any:
            self.replays += 1
            return walk(*args, **kwargs)

        monkeypatch.setattr(opening, "write_native", written)
        monkeypatch.setattr(facade.Inspector, "walk", walked)


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name)
def test_a_second_question_reads_and_a_third_answers_alike(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = without_cache(path)
    counted = Counted(monkeypatch)
    assert answers(path) == expected
    assert counted.imports == 1
    replays = counted.replays
    assert answers(path) == expected
    assert (counted.imports, counted.replays) == (1, replays)


def test_who_only_reads_takes_what_is_kept_and_keeps_nothing(
    capture: Path, monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    with only_reading():
        found = answers(capture)
    assert not (cache / "captures").exists()
    assert answers(capture) == found
    counted = Counted(monkeypatch)
    with only_reading():
        assert answers(capture) == found
    assert counted.imports == 0


def test_a_native_trace_is_replayed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    path = ROOT / "traces" / "coding-agent.jsonl"
    expected = without_cache(path)
    assert answers(path) == expected
    counted = Counted(monkeypatch)
    assert answers(path) == expected
    assert counted.replays == 0


def timeless(monkeypatch: pytest.MonkeyPatch, *, young: bool) -> None:
    """Let files change in their middle without their times telling, as a coarse clock would."""
    real = inputs.file_state

    def state(path: str) -> inputs.FileState | None:
        found = real(path)
        now = time.time_ns() if young else 10**18
        return found and msgspec.structs.replace(found, mtime_ns=now // 10**15 * 10**15, ctime_ns=0)

    monkeypatch.setattr(inputs, "YOUNG", 1e9 if young else 2.0)
    monkeypatch.setattr(inputs, "file_state", state)
    monkeypatch.setattr(import_cache, "file_state", state)
    monkeypatch.setattr(import_cache, "_ends", lambda _: "")


def test_a_young_file_is_trusted_by_what_it_holds(capture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    timeless(monkeypatch, young=True)
    first = answers(capture)
    counted = Counted(monkeypatch)
    assert answers(capture) == first
    assert counted.imports == 0
    capture.write_bytes(capture.read_bytes().replace(b"compact", b"tcapmoc"))
    assert answers(capture) == without_cache(capture) != first


def test_the_times_of_an_old_file_are_believed(capture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: without the digest of what is young, the test above would see the first answer again."""
    timeless(monkeypatch, young=False)
    first = answers(capture)
    capture.write_bytes(capture.read_bytes().replace(b"compact", b"tcapmoc"))
    assert answers(capture) == first != without_cache(capture)


def test_a_young_file_too_large_to_digest_is_not_trusted(
    capture: Path, monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    monkeypatch.setattr(inputs, "YOUNG", 2.0)
    monkeypatch.setattr(inputs, "DIGESTED", 10)
    os.utime(capture, (1e9, 1e9))  # its inode changed just now all the same
    answers(capture)
    assert [entry for entry in cache_entries() if entry.kind == "imports" and entry.size] == []


def test_a_file_that_is_replaced_with_its_size_and_time_is_read_again(capture: Path) -> None:
    first = answers(capture)
    before = capture.stat()
    data = capture.read_bytes()
    word = b"compact"
    assert word in data
    capture.write_bytes(data.replace(word, b"tcapmoc"))
    os.utime(capture, ns=(before.st_atime_ns, before.st_mtime_ns))
    now = capture.stat()
    assert (now.st_size, now.st_mtime_ns, now.st_ino) == (before.st_size, before.st_mtime_ns, before.st_ino)
    assert answers(capture) == without_cache(capture) != first


def test_a_log_that_grew_is_read_again(capture: Path) -> None:
    data = capture.read_bytes()
    cut = data[: data.rindex(b"\n", 0, len(data) * 2 // 3) + 1]
    capture.write_bytes(cut)
    first = answers(capture)
    capture.write_bytes(data)
    assert answers(capture) == without_cache(capture) != first


def test_a_native_trace_that_changed_is_kept_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "one.jsonl"
    lines = (ROOT / "traces" / "coding-agent.jsonl").read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:60]))
    answers(path)
    path.write_bytes(b"".join(lines))
    expected = without_cache(path)
    assert answers(path) == expected
    counted = Counted(monkeypatch)
    assert answers(path) == expected
    assert counted.replays == 0


def test_a_replay_is_written_down_once(capture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = []
    put = RowWriter._put
    monkeypatch.setattr(RowWriter, "_put", lambda self, *row: (written.append(row), put(self, *row))[1])
    with Inspector.open(capture) as inspector:
        for _ in range(3):
            deque(inspector.walk(), 0)
    steps = [row[1] for row in written if row[0] == "steps"]
    assert steps
    assert len(steps) == len(set(steps))


def test_files_beside_it_count(tmp_path: Path) -> None:
    shutil.copytree(CLAUDE / "agents", tmp_path / "agents")
    main = next(p for p in (tmp_path / "agents").rglob("*.jsonl") if not p.name.startswith("agent-"))
    whole = answers(main)
    agents = sorted((tmp_path / "agents").rglob("agent-*.jsonl"))
    moved = tmp_path / "aside"
    agents[0].rename(moved)
    less = answers(main)
    assert less == without_cache(main) != whole
    moved.rename(agents[0])
    assert answers(main) == whole
    agents[0].write_bytes(agents[0].read_bytes()[:-200] + b"\n")
    assert answers(main) == without_cache(main)


def test_each_parameter_has_its_own() -> None:
    path = ROOT / "traces" / "coding-agent.jsonl"

    def used(**more: Any) -> list[int]:
        with Inspector.open(path, **more) as inspector:
            return [result.window.recorded for result in inspector.replay() if hasattr(result, "window")]

    plain = used()
    other = used(encoding="cl100k_base")
    assert other != plain
    assert (used(), used(encoding="cl100k_base")) == (plain, other)
    dropped = used(drop=["kind:tool_result"])
    assert dropped != plain
    assert (used(), used(drop=["kind:tool_result"])) == (plain, dropped)


# Faults ------------------------------------------------


def kept_files(cache: Path) -> list[Path]:
    found = sorted(path for path in (cache / "captures").rglob("*") if path.is_file())
    assert {path.suffix.split("-")[0] for path in found} >= {"", ".jsonl", ".steps", ".replay"}
    return found


def flip(path: Path, rng: random.Random) -> None:
    data = bytearray(path.read_bytes())
    for _ in range(rng.randint(1, 3)):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(data)


def cut(path: Path, rng: random.Random) -> None:
    os.truncate(path, rng.randrange(path.stat().st_size))


def tear(path: Path, rng: random.Random) -> None:
    """A page that was never written."""
    at = rng.randrange(path.stat().st_size) // 4096 * 4096
    with path.open("r+b") as file:
        file.seek(at)
        file.write(bytes(min(4096, path.stat().st_size - at)))


def lose(path: Path, rng: random.Random) -> None:
    path.unlink()


def link(path: Path, rng: random.Random) -> None:
    moved = path.with_name(f"{path.name}.elsewhere")
    path.rename(moved)
    path.symlink_to(moved)


def foreign(path: Path, rng: random.Random) -> None:
    path.write_bytes(b"SQLite format 3\0" + rng.randbytes(5000))


FAULTS: tuple[Callable[[Path, random.Random], None], ...] = (flip, cut, tear, lose, link, foreign)


_DAMAGE = {
    "seed": st.integers(0, 1 << 30),
    "faults": st.lists(st.sampled_from(FAULTS), min_size=1, max_size=3),
}


def answers_after(
    folder: Path, seed: int, faults: list[Callable[[Path, random.Random], None]]
) -> Iterator[tuple[bytes, bytes]]:
    """After each damage to a capture's cache, what is answered, and what was before."""
    path, rng = folder / "one.jsonl", random.Random(seed)
    shutil.copy(CLAUDE / "compaction.jsonl", path)
    before = os.environ["CTXCTL_CACHE_DIR"]
    os.environ["CTXCTL_CACHE_DIR"] = str(folder / "cache")
    try:
        expected = answers(path)
        for fault in faults:
            files = [file for file in kept_files(folder / "cache") if file.stat().st_size]
            fault(rng.choice(files), rng)
            yield answers(path), expected
            yield answers(path), expected
    finally:
        os.environ["CTXCTL_CACHE_DIR"] = before


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(**_DAMAGE)
def test_a_damaged_cache_gives_no_wrong_answer(
    tmp_path_factory: pytest.TempPathFactory, seed: int, faults: list[Callable[[Path, random.Random], None]]
) -> None:
    for found, expected in answers_after(tmp_path_factory.mktemp("one"), seed, faults):
        assert found == expected


@pytest.mark.slow
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(**_DAMAGE)
def test_however_a_cache_is_damaged(
    tmp_path_factory: pytest.TempPathFactory, seed: int, faults: list[Callable[[Path, random.Random], None]]
) -> None:
    for found, expected in answers_after(tmp_path_factory.mktemp("one"), seed, faults):
        assert found == expected


def test_what_is_not_checked_would_give_wrong_answers(
    capture: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A control: the same damage, unnoticed, shows."""
    expected = answers(capture)
    (path,) = (path for path in kept_files(cache) if path.suffix.startswith(".replay"))
    data = path.read_bytes()
    path.write_bytes(data.replace(b"user_message", b"user_massage"))
    assert answers(capture) == expected
    answers(capture)
    (path,) = (path for path in kept_files(cache) if path.suffix.startswith(".replay"))
    path.write_bytes(path.read_bytes().replace(b"user_message", b"user_massage"))
    monkeypatch.setattr(store_file, "is_whole", lambda file: True)
    assert answers(capture) != expected


def test_a_replay_of_another_capture_is_not_taken(tmp_path: Path, cache: Path) -> None:
    one, two = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    shutil.copy(CLAUDE / "compaction.jsonl", one)
    shutil.copy(CLAUDE / "session.jsonl", two)
    expected = answers(one), answers(two)
    folders = sorted((cache / "captures").iterdir())
    assert len(folders) == 2
    moved = tmp_path / "moved"
    folders[0].rename(moved)
    folders[1].rename(folders[0])
    moved.rename(folders[1])
    assert (answers(one), answers(two)) == expected
    for a, b in pairwise(sorted((cache / "captures").iterdir())):
        for kind in (".replay", ".steps"):
            (left,) = (path for path in a.iterdir() if path.suffix.startswith(kind))
            (right,) = (path for path in b.iterdir() if path.suffix.startswith(kind))
            right.write_bytes(left.read_bytes())
    assert (answers(one), answers(two)) == expected


def test_a_store_that_another_run_replaces_is_not_mixed_with_the_one_before(tmp_path: Path) -> None:
    """What is told at the end is about the steps that were told."""
    lines = (ROOT / "traces" / "coding-agent.jsonl").read_bytes().splitlines(keepends=True)
    path = tmp_path / "one.jsonl"
    path.write_bytes(b"".join(lines[: len(lines) // 2]))
    answers(path)
    with Inspector.open(path) as inspector:
        assert inspector.kept_replay() is not None
        path.write_bytes(b"".join(lines))
        expected = answers(path)
        steps = [one for one in inspector.replay() if isinstance(one, Step)]
        assert inspector.summary is not None
        assert inspector.summary.steps == len(steps)
        assert len(lives_of(inspector)) == len(steps)
    assert answers(path) == expected
    with Inspector.open(path) as inspector:
        assert inspector.kept_replay() is not None


def in_child(work: Callable[[], None]) -> int:
    """The exit status of a child that does some work."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException:
            os._exit(3)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.skipif(sys.platform != "linux", reason="needs fork")
@pytest.mark.parametrize("at", [0, 1, 2, 5, 20, 60, 61, 62, 200])
def test_killed_at_any_point_of_a_write(capture: Path, at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = without_cache(capture)

    def killed() -> None:
        left = [at]

        def step(*_: Any) -> None:
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)

        def audit(event: str, _: Any) -> None:
            if event in ("open", "os.rename", "os.remove", "os.mkdir", "sqlite3.connect", "tempfile.mkstemp"):
                step()

        put = RowWriter._put
        monkeypatch.setattr(RowWriter, "_put", lambda *args: (step(), put(*args))[1])
        sys.addaudithook(audit)
        answers(capture)

    assert in_child(killed) in (-signal.SIGKILL, 0)
    assert answers(capture) == expected
    assert answers(capture) == expected


@pytest.mark.skipif(sys.platform != "linux", reason="needs fork")
@pytest.mark.parametrize("more", [0, 100, 5_000, 20_000, 60_000, 200_000])
def test_a_disk_that_is_full(capture: Path, more: int) -> None:
    """There is room for a copy of the trace, which is needed anyway, and for little more."""
    expected = without_cache(capture)
    with Inspector.open(capture) as inspector:
        most = inspector.trace.source.size + more

    def full() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        assert answers(capture) == expected
        assert answers(capture) == expected

    assert in_child(full) == 0
    assert answers(capture) == expected


@pytest.mark.parametrize("most", [0, 1, 7, 19])
def test_a_disk_that_is_full_while_it_imports(
    capture: Path, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = without_cache(capture)
    real = os.fdopen

    class Full:
        def __init__(self, file: Any) -> None:
            self._file, self._left = file, most

        def __getattr__(self, name: str) -> Any:
            return getattr(self._file, name)

        def __enter__(self) -> Full:
            return self

        def __exit__(self, *_: object) -> None:
            self._file.close()

        def write(self, data: bytes) -> int:
            self._left -= 1
            if self._left < 0:
                raise OSError(28, "No space left on device")
            written: int = self._file.write(data)
            return written

    monkeypatch.setattr(import_cache, "open", lambda fd, mode, **_: Full(real(fd, mode)), raising=False)
    assert answers(capture) == expected
    monkeypatch.undo()
    assert answers(capture) == expected


def test_a_home_that_cannot_be_written(
    capture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = without_cache(capture)
    (tmp_path / "file").write_text("no directory")
    monkeypatch.setenv("CTXCTL_CACHE_DIR", str(tmp_path / "file" / "cache"))
    assert answers(capture) == expected


@pytest.mark.skipif(sys.platform != "linux", reason="needs fork")
def test_many_writers(capture: Path) -> None:
    expected = without_cache(capture)

    def work() -> None:
        for _ in range(4):
            assert answers(capture) == expected

    children = []
    for _ in range(4):
        child = os.fork()
        if child == 0:
            try:
                work()
                os._exit(0)
            except BaseException:
                os._exit(3)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
    assert answers(capture) == expected


# Who may read it, and how much there is ------------------------------------------------


def test_only_the_user_reads_it(capture: Path, cache: Path) -> None:
    answers(capture)
    for path in (cache / "captures").rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path


def test_room_is_made_of_what_was_not_used_for_longest(tmp_path: Path, cache: Path) -> None:
    paths = [tmp_path / f"{n}.jsonl" for n in range(3)]
    for path in paths:
        shutil.copy(CLAUDE / "session.jsonl", path)
        answers(path)
    entries = [entry for entry in cache_entries() if entry.kind == "imports"]
    assert len(entries) == 3
    for number, entry in enumerate(entries):
        for file in entry.path.iterdir():
            os.utime(file, (number, number))
    oldest = next(entry.path for entry in cache_entries() if entry.kind == "imports")
    total = sum(entry.size for entry in cache_entries())
    freed = prune_cache(total - 1)
    assert freed == entries[0].size
    assert not oldest.exists()
    assert prune_cache(0) > 0
    assert {entry.kind for entry in cache_entries()} <= {"counts"}
    assert answers(paths[0]) == without_cache(paths[0])


# What an import looks at ------------------------------------------------


_LOOKED: list[str] | None = None


def _hook(event: str, args: tuple[Any, ...]) -> None:
    if _LOOKED is not None and event in ("open", "os.listdir", "os.scandir", "sqlite3.connect"):
        _LOOKED.append(os.fsdecode(args[0]) if isinstance(args[0], str | bytes | os.PathLike) else "")


def captures() -> Iterator[Path]:
    for folder in sorted((ROOT / "fixtures").iterdir()):
        yield folder
        yield from sorted(path for path in folder.rglob("*") if path.is_file())


def test_everything_that_an_import_opens_is_noted() -> None:
    """No importer reads a file that is not looked at again before its import is used."""
    global _LOOKED
    from ctxctl.errors import CtxctlError
    from ctxctl.importers.capture import open_capture
    from ctxctl.session.opening import convert

    sys.addaudithook(_hook)
    seen = 0
    for path in captures():
        with inputs.recording() as noted:
            _LOOKED = []
            try:
                with open_capture(path) as opened:
                    if opened.format is not None:
                        convert(opened.source, opened.format, []).close()
                        seen += 1
            except CtxctlError:
                pass
            finally:
                looked, _LOOKED = _LOOKED, None
        folders = {directory for directory, _ in noted.listings}
        for name in looked:
            name = os.path.abspath(name.removeprefix("file://").partition("?")[0])
            if not name.startswith(str(ROOT / "fixtures")):
                continue
            assert name in noted.files or any(name.startswith(folder) for folder in folders), (path, name)
    assert seen > 100
