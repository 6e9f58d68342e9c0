"""A log that has grown: the next read goes on where the last one ended, and answers as a first one does."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ctxctl.cli.main import run
from ctxctl.engine.replay.run import Engine
from ctxctl.engine.replay.sums import RunningTotals
from ctxctl.model.event import Event
from ctxctl.session import Inspector, grown_replay, import_cache, import_mark, kept_replays
from ctxctl.session.store_rows import lives_of
from ctxctl.store.lives import Lives
from ctxctl.store.writer import RowWriter
from ctxctl.trace import inputs, writer
from ctxctl.trace.reader import Trace
from tests.unit.session.test_kept import FAULTS, answers, in_child, kept_files, without_cache

ROOT = Path(__file__).parents[3]
CLAUDE, CODEX = ROOT / "fixtures" / "claude_code", ROOT / "fixtures" / "codex"
LOGS = (
    ROOT / "traces" / "coding-agent.jsonl",
    ROOT / "traces" / "retrieval-agent.jsonl",
    CLAUDE / "compaction.jsonl",
    CLAUDE / "requests.jsonl",
    CLAUDE / "sidechain.jsonl",
    CODEX / "rollout.jsonl",
    CODEX / "compacted.jsonl",
    CODEX / "spawning.jsonl",
)
CODEX_LOGS = [CODEX / f"{name}.jsonl" for name in ("rollout", "compacted", "spawning", "legacy", "paginated")]
COMPACTION = CLAUDE / "compaction.jsonl"


@pytest.fixture(autouse=True)
def _everything_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """However small, however young, and however much has come."""
    monkeypatch.setattr(import_cache, "LEAST", 0)
    monkeypatch.setattr(kept_replays, "LEAST", 0)
    monkeypatch.setattr(inputs, "YOUNG", -1e9)
    monkeypatch.setattr(grown_replay, "MOST", 1.0)
    monkeypatch.setattr(grown_replay, "AGAIN", 0.0)
    monkeypatch.setattr(import_mark, "MOST", 1.0)
    monkeypatch.setattr(import_mark, "AGAIN", 0.0)


@pytest.fixture
def came(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """What came of each try to go on with a replay."""
    found: list[bool] = []
    bring_up = grown_replay.GrownReplay.bring_up

    def tried(self: Any, inspector: Inspector) -> bool:
        found.append(bring_up(self, inspector))
        return found[-1]

    monkeypatch.setattr(grown_replay.GrownReplay, "bring_up", tried)
    return found


@pytest.fixture
def imported(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each import into the cache, whether it went on with an earlier one."""
    found: list[bool] = []
    checkpoint = import_mark.MarkedImport.checkpoint

    def tried(self: Any, *args: Any) -> Any:
        made = checkpoint(self, *args)
        found.append(made is not None and made.offset > 0)
        return made

    monkeypatch.setattr(import_mark.MarkedImport, "checkpoint", tried)
    return found


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], None]]:
    """What happens while the next import writes its first events; each once."""
    waiting: list[Callable[[], None]] = []
    write = writer.TraceWriter.write

    def written(self: Any, event: Any) -> None:
        write(self, event)
        if waiting:
            waiting.pop()()

    monkeypatch.setattr(writer.TraceWriter, "write", written)
    return waiting


def native(log: Path) -> bytes:
    """The trace that a log is replayed as, what was reported of it, and what it is worth."""
    with Inspector.open(log) as inspector:
        source = inspector.trace.source
        return source.read(0, source.size) + repr(inspector.opened.problems).encode()


def test_an_import_during_which_its_log_grew_is_gone_on_with(
    tmp_path: Path, imported: list[bool], meanwhile: list[Callable[[], None]]
) -> None:
    data = COMPACTION.read_bytes()
    ends = ends_of_lines(data)
    log = tmp_path / "log.jsonl"
    log.write_bytes(data[: ends[-2]])

    def grow() -> None:
        with log.open("ab") as file:
            file.write(data[ends[-2] :])

    meanwhile.append(grow)
    answers(log)
    assert answers(log) == without_cache(log)
    assert imported == [False, True]


def test_the_step_index_of_a_log_that_grew_is_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, log = (CLAUDE / "session.jsonl").read_bytes(), tmp_path / "log.jsonl"
    log.write_bytes(data[: ends_of_lines(data)[-2]])
    answers(log)
    began: list[int] = []
    headers = Trace.headers

    def told(self: Trace, start: int = 0, first_line: int = 1, stop: int | None = None) -> Iterator[Event]:
        began.append(start)
        return headers(self, start, first_line, stop)

    monkeypatch.setattr(Trace, "headers", told)
    log.write_bytes(data)
    grown = answers(log)
    assert began
    assert began[0] > 0
    assert grown == without_cache(log)


def test_a_mark_that_still_holds_is_left_as_it_is(
    tmp_path: Path, imported: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_mark, "AGAIN", 0.9)
    data, log = COMPACTION.read_bytes(), tmp_path / "log.jsonl"
    cuts = ends_of_lines(data)[-4:]
    states = set()
    for cut in (*cuts, len(data)):
        log.write_bytes(data[:cut])
        answers(log)
        (mark,) = (path for path in kept_files(Path(os.environ["CTXCTL_CACHE_DIR"])) if path.name == "mark")
        states.add((mark.stat().st_ino, mark.read_bytes()))
    assert imported == [False, *[True] * len(cuts)]
    assert len(states) == 1
    assert answers(log) == without_cache(log)


def test_an_import_during_which_its_log_was_written_over_is_made_anew(
    tmp_path: Path, imported: list[bool], meanwhile: list[Callable[[], None]]
) -> None:
    data = COMPACTION.read_bytes()
    log = tmp_path / "log.jsonl"
    log.write_bytes(data)

    def write_over() -> None:
        with log.open("r+b") as file:
            file.write(data.replace(b"compact", b"tcapmoc") + b'{"type":"summary"}\n')

    meanwhile.append(write_over)
    answers(log)
    assert answers(log) == without_cache(log)
    assert imported == [False, False]


@pytest.mark.parametrize(
    "path", [path for path in LOGS if path.stem != "retrieval-agent"], ids=lambda path: path.stem
)
def test_what_became_of_each_item_is_gone_on_with(path: Path, tmp_path: Path, came: list[bool]) -> None:
    """But of a trace with redactions, which is read anew each time."""
    data = path.read_bytes()
    ends = ends_of_lines(data)
    log = tmp_path / path.name
    read_and_grown(log, data, ends[len(ends) // 3], ends[len(ends) // 2], ends[-3])
    assert came[-1], "the replay was gone on with"
    with Inspector.open(log) as inspector:
        assert inspector.problem_count == len(inspector.opened.problems)
        assert inspector.kept_replay() is not None
        kept = lives_in(lives_of(inspector))
    os.environ["CTXCTL_CACHE"] = "off"
    try:
        with Inspector.open(log) as inspector:
            fresh = lives_in(lives_of(inspector))
    finally:
        del os.environ["CTXCTL_CACHE"]
    assert kept == fresh
    assert len(kept[0]) > 2


def lives_in(lives: Lives) -> list[list[Any]]:
    """All that is asked of the lives of items."""
    ordinals = range(len(lives))
    return [
        list(lives.entries()),
        [lives.life(entry.number) for entry in lives.entries()],
        [lives.step(n) for n in ordinals],
        [lives.frame(n) for n in ordinals],
        [
            [lives.lacking(lives.thread_of(n), n), list(lives.surfaces(lives.thread_of(n), n))]
            for n in ordinals
        ],
    ]


def ends_of_lines(data: bytes) -> list[int]:
    """The places behind a file's lines, from the third on, without its end."""
    return [at + 1 for at, byte in enumerate(data) if byte == 10][2:-1]


def read_and_grown(log: Path, data: bytes, *cuts: int) -> bytes:
    """What is answered of a log of which a part was there at first, and then more and more of it."""
    log.unlink(missing_ok=True)
    log.write_bytes(b"")
    at = 0
    for cut in (*cuts, len(data)):
        with log.open("ab") as file:
            file.write(data[at:cut])
        at, told = cut, answers(log)
    return told


@pytest.mark.parametrize("most", [6, pytest.param(None, marks=pytest.mark.slow)], ids=["some", "every"])
@pytest.mark.parametrize("path", [*sorted(CLAUDE.glob("*.jsonl")), *CODEX_LOGS], ids=lambda path: path.stem)
def test_an_import_that_is_gone_on_with_gives_the_trace_of_one_made_anew(
    path: Path, most: int | None, tmp_path: Path, imported: list[bool]
) -> None:
    """Cut behind each of its lines, or behind some, and anywhere."""
    data, rng = path.read_bytes(), random.Random(path.name)
    log = tmp_path / path.name
    if path.with_suffix("").is_dir():
        shutil.copytree(path.with_suffix(""), log.with_suffix(""))
    ends = ends_of_lines(data)
    lines = ends if most is None else rng.sample(ends, min(most, len(ends)))
    cuts = [*lines, *(rng.randrange(ends[0], len(data)) for _ in range(10 if most is None else 3))]
    known: dict[int, bytes] = {}
    for cut in cuts:
        log.unlink(missing_ok=True)
        log.write_bytes(data[:cut])
        native(log)
        further = rng.choice([end for end in ends if end > cut] or [len(data)])
        for size in (further, len(data)):
            log.write_bytes(data[:size])
            if size not in known:
                os.environ["CTXCTL_CACHE"] = "off"
                known[size] = native(log)
                del os.environ["CTXCTL_CACHE"]
            assert native(log) == known[size], (cut, size)
    assert imported.count(True) > len(cuts)


@pytest.mark.parametrize("path", LOGS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_log_cut_anywhere_and_grown_answers_as_one_read_at_once(
    path: Path, tmp_path: Path, came: list[bool]
) -> None:
    data, rng = path.read_bytes(), random.Random(path.name)
    log = tmp_path / path.name
    log.write_bytes(data)
    expected = without_cache(log)
    ends = ends_of_lines(data)
    late = ends[-len(ends) // 3 :]
    assert read_and_grown(log, data, rng.choice(late)) == expected
    assert read_and_grown(log, data, *sorted(rng.sample(ends[len(ends) // 2 :], 2))) == expected
    assert read_and_grown(log, data, rng.randrange(ends[len(ends) // 2], len(data))) == expected
    assert any(came)


def test_sub_agents_of_which_one_comes_later(tmp_path: Path) -> None:
    shutil.copytree(CLAUDE / "agents", tmp_path / "agents")
    main = next(p for p in (tmp_path / "agents").rglob("*.jsonl") if not p.name.startswith("agent-"))
    data, expected = main.read_bytes(), without_cache(main)
    agents = sorted((tmp_path / "agents").rglob("agent-*.jsonl"))
    for cut in ends_of_lines(data)[::4]:
        moved = agents[-1].rename(tmp_path / "aside")
        main.write_bytes(data[:cut])
        answers(main)
        moved.rename(agents[-1])
        assert read_and_grown(main, data, cut) == expected


def test_a_log_that_grew_but_begins_otherwise_is_read_anew(tmp_path: Path, came: list[bool]) -> None:
    data = COMPACTION.read_bytes()
    log = tmp_path / "one.jsonl"
    log.write_bytes(data[: ends_of_lines(data)[-2]])
    answers(log)
    other = data.replace(b"compact", b"tcapmoc", 1)
    assert other.index(b"tcapmoc") < ends_of_lines(data)[-2]
    log.write_bytes(other)
    assert answers(log) == without_cache(log)
    assert not any(came)


def test_a_log_that_nobody_writes_to_is_not_marked(
    tmp_path: Path, came: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ctxctl.store.file.LATELY", 0.0)
    data = COMPACTION.read_bytes()
    assert read_and_grown(tmp_path / "one.jsonl", data, ends_of_lines(data)[-2])
    assert came == []


def test_what_commands_print_of_a_grown_log(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], came: list[bool]
) -> None:
    data = COMPACTION.read_bytes()
    log = tmp_path / "one.jsonl"

    def printed() -> list[tuple[int, bytes, bytes]]:
        found = []
        for command in ("replay --json {}", "cost --json {}", "show {}@-1", "log {}@-1"):
            code = run([word.replace("{}", str(log)) for word in command.split()])
            told = capfdbinary.readouterr()
            found.append((code, told.out, told.err))
        return found

    log.write_bytes(data[: ends_of_lines(data)[-3]])
    printed()
    log.write_bytes(data)
    grown = printed()
    os.environ["CTXCTL_CACHE"] = "off"
    assert printed() == grown
    assert came == [True]


def _no_turns(engine: Engine) -> None:
    engine.turns.clear()


def _no_totals(engine: Engine) -> None:
    engine.totals = RunningTotals()


def _no_windows(engine: Engine) -> None:
    for thread in engine.threads.values():
        thread.windows._resolved.clear()


def _no_items(engine: Engine) -> None:
    for thread in engine.threads.values():
        thread.book.latest.clear()


def _no_order(engine: Engine) -> None:
    for thread in engine.threads.values():
        thread.laid_out = []


@pytest.mark.parametrize("without", [_no_turns, _no_totals, _no_windows, _no_items, _no_order])
def test_a_mark_that_lacks_a_part_would_show(
    without: Callable[[Engine], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A control: each part of what is kept is needed."""
    whole = grown_replay.resume

    def lacking(*args: Any) -> Any:
        resumed = whole(*args)
        assert resumed is not None
        without(resumed.engine)
        return resumed

    monkeypatch.setattr(grown_replay, "resume", lacking)
    data, log = COMPACTION.read_bytes(), tmp_path / "one.jsonl"
    log.write_bytes(data)
    expected = without_cache(log)
    wrong = 0
    for cut in ends_of_lines(data)[::5]:
        try:
            wrong += read_and_grown(log, data, cut) != expected
        except (AssertionError, LookupError):
            wrong += 1
    assert wrong


@pytest.mark.parametrize("seed", range(12))
def test_damage_before_a_log_grows_gives_no_wrong_answer(seed: int, tmp_path: Path) -> None:
    rng, data, log = random.Random(seed), COMPACTION.read_bytes(), tmp_path / "one.jsonl"
    log.write_bytes(data)
    expected = without_cache(log)
    cut = rng.choice(ends_of_lines(data)[-8:])
    log.write_bytes(data[:cut])
    answers(log)
    files = [path for path in kept_files(Path(os.environ["CTXCTL_CACHE_DIR"])) if path.stat().st_size]
    assert any(path.name == "mark" for path in files)
    of = files
    if seed % 3 < 2:
        of = [path for path in files if (path.name, path.suffix)[seed % 3] == ("mark", ".steps")[seed % 3]]
    rng.choice(FAULTS)(rng.choice(of), rng)
    log.write_bytes(data)
    assert answers(log) == expected
    assert answers(log) == expected


@pytest.mark.skipif(sys.platform != "linux", reason="needs fork")
@pytest.mark.parametrize("at", [0, 1, 2, 3, 5, 9, 20, 40, 60])
def test_killed_while_it_goes_on(at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, log = COMPACTION.read_bytes(), tmp_path / "one.jsonl"
    log.write_bytes(data)
    expected = without_cache(log)
    log.write_bytes(data[: ends_of_lines(data)[-4]])
    answers(log)
    log.write_bytes(data)

    def killed() -> None:
        left = [at]

        def step(*_: Any) -> None:
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)

        def audit(event: str, _: Any) -> None:
            if event in ("os.rename", "os.remove", "sqlite3.connect", "tempfile.mkstemp", "shutil.copyfile"):
                step()

        put = RowWriter._put
        monkeypatch.setattr(RowWriter, "_put", lambda *args: (step(), put(*args))[1])
        sys.addaudithook(audit)
        answers(log)

    assert in_child(killed) in (-signal.SIGKILL, 0)
    assert answers(log) == expected
    assert answers(log) == expected
