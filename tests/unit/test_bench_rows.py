"""What the rows of the benchmark say, worked out by hand; and that nothing that fails ends the run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.bench import generate, report
from tools.bench.cases import Bench, Case, forget_all_but_counts
from tools.bench.load import Load, of_sessions, of_trace
from tools.bench.measure import Sample
from tools.bench.rows import Row, absent, against_work, measured, ratio
from tools.bench.section import Section
from tools.bench.sections import again, fleet, grow, importers, whatif
from tools.bench.sections.registry import SECTIONS, chosen
from tools.bench.sections.transcript import FIRST, ORJSON


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    return Bench(2, gigabyte=True, scratch=scratch, peers=tmp_path / "peers")


def ran(
    bench: Bench, name: str, *cpu: float, rss: int = 30_000_000, output: str = "", status: int = 0
) -> None:
    samples = [Sample(one, 2 * one, rss, status, output, "it broke" if status else "") for one in cpu]
    bench.cases[name] = Case(name, lambda: samples[0], len(cpu), samples)


def test_a_ratio_is_of_medians(bench: Bench) -> None:
    ran(bench, "slow", 1.0, 9.0, 1.5)
    ran(bench, "floor", 0.5)
    assert ratio(bench, "a", "slow", "floor", 3, "b") == Row("a", "≤ 3 × b", "3.0 ×", met=True)
    assert ratio(bench, "a", "slow", "floor", 2.9, "b").met is False


def test_a_reading_may_take_its_floors_and_a_share_of_a_start_for_each_request(bench: Bench) -> None:
    ran(bench, "pass", 0.1)
    ran(bench, "parse, x", 1.1)
    ran(bench, "count, x", 2.1)
    ran(bench, "all", 6.2)
    bench.loads["x"] = Load(requests=180)  # 18 starts; with 12 of the command itself and the floor 6.0
    row = against_work(bench, "a", "all", "x", "parse, x", "count, x")
    assert row.target == "≤ parse + count + 12 bare starts, and 1/10 a request"
    assert (row.reached, row.met) == ("6.20 s, 2.07 × the floor; 11.1 ms a request", False)
    bench.loads["x"] = Load(requests=180, sessions=8)
    assert against_work(bench, "a", "all", "x", "parse, x", "count, x").met is True
    bench.loads["x"] = Load(events=2000)
    assert (
        against_work(bench, "a", "all", "x", "parse, x").reached == "6.20 s, 6.20 × the floor; 2 ms an event"
    )


def test_what_a_capture_holds_is_counted(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"".join(generate.transcript(30_000, 1)))
    lines = (tmp_path / "a.jsonl").read_bytes().splitlines()
    answers = sum(b'"role":"assistant"' in line for line in lines)
    assert of_sessions(tmp_path / "a.jsonl") == Load(requests=answers)
    assert of_sessions(tmp_path) == Load(requests=answers, sessions=1)
    (tmp_path / "b.jsonl").write_bytes(b"".join(generate.repeating(300_000)))
    found = of_trace(tmp_path / "b.jsonl")
    assert found.events == (tmp_path / "b.jsonl").read_bytes().count(b"\n")
    assert 0 < found.requests < found.events / 20


def test_a_row_says_why_it_has_no_number(bench: Bench) -> None:
    ran(bench, "bad", 1.0, status=3)
    ran(bench, "floor", 0.0)
    ran(bench, "odd", 1.0, output="no number")
    assert absent(bench, "a", "b", "bad").reached == "not measured (it broke)"
    assert absent(bench, "a", "b", "never").reached == "not measured"
    assert "not understood" in ratio(bench, "a", "odd", "floor", 1, "b").reached

    def read() -> tuple[str, bool]:
        return f"{bench.cases['odd'].printed()}", True

    assert measured(bench, "a", "b", ("odd",), read).met is None


def test_an_answer_is_held_to_time_and_to_memory(bench: Bench) -> None:
    for name in ("pass", ORJSON):
        ran(bench, name, 0.01)
    ran(bench, again.name_of("show"), 0.38, rss=60_000_000)
    ran(bench, again.name_of("diff"), 0.39, rss=60_000_000)
    ran(bench, again.name_of("why"), 0.01, rss=60_500_001)
    rows = dict(zip(again.QUESTIONS, again.SECTION.rows(bench), strict=False))
    assert rows["show"].reached == "38.0 × (0.38 s, 38.0 orjson passes), 60 MB"
    assert [rows[name].met for name in ("show", "diff", "why", "log")] == [True, False, False, None]


def test_a_replay_again_is_held_to_parsing_and_writing(bench: Bench) -> None:
    ran(bench, ORJSON, 0.1)
    ran(bench, again.WRITING, 0.5, output="0.05 25000000")
    ran(bench, again.REPLAY, 0.3)
    assert again.SECTION.rows(bench)[-1].reached == "2.00 × (0.30 s for 25 MB)"


def test_a_grown_log_is_held_to_a_first_reading(bench: Bench) -> None:
    ran(bench, FIRST, 10.0)
    ran(bench, again.REPLAY, 0.5)
    ran(bench, "replay, 50 MB session, grown", 1.1, 1.3)
    row = grow.SECTION.rows(bench)[-1]
    assert row.reached == "0.07 × (1.20 of 10.00 s; unchanged 0.50 s)"
    assert (row.met, "1.0% of the session" in row.what) == (True, True)
    ran(bench, "replay, 50 MB session, grown", 2.1)
    assert grow.SECTION.rows(bench)[-1].met is False


def test_a_growing_log_becomes_the_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grow.time, "sleep", lambda seconds: None)
    lines = [b"%d\n" % number for number in range(1000)]
    session, path = tmp_path / "session", tmp_path / "log"
    session.write_bytes(b"".join(lines))
    log = grow.GrowingLog(session, path, 4)
    assert path.read_bytes() == b"".join(lines[:980])
    log.grow()
    assert path.read_bytes() == b"".join(lines[:985])
    for _ in range(3):
        log.grow()
    assert path.read_bytes() == session.read_bytes()


def test_a_directory_is_held_to_a_tool_only_where_that_is_here(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    assert "ccusage is not installed" in fleet.SECTION.rows(bench)[1].reached
    tool = bench.peers / "ccusage" / "node_modules" / ".bin" / "ccusage"
    tool.parent.mkdir(parents=True)
    tool.touch(mode=0o700)
    ran(bench, "cost, 240 sessions, again", 0.2)
    ran(bench, "ccusage: what did the sessions of a directory cost?, 240 sessions, again", 0.1)
    row = fleet.SECTION.rows(bench)[1]
    assert (row.reached, row.met) == ("2.00 × (0.20 of 0.10 s)", False)


def test_importers_and_what_ifs(bench: Bench) -> None:
    ran(bench, "pass", 0.015)
    ran(bench, "import, codex", 1.0, output="0.5 2.5 8000000 10000")
    ran(bench, whatif.PLAIN, 1.0)
    ran(bench, "what-if, fifo", 2.0)
    row = importers.SECTION.rows(bench)[1]
    assert (row.reached, row.met) == ("5.0 × (3 MB a second), 250 µs an event", True)
    ran(bench, "import, codex", 1.0, output="0.5 3.1 8000000 10000")
    assert importers.SECTION.rows(bench)[1].met is False
    assert whatif.SECTION.rows(bench)[1].met is False


def test_whatever_fails_is_said_and_the_rest_goes_on(bench: Bench) -> None:
    def broken() -> Sample:
        raise FileNotFoundError(f"{bench.scratch}/nothing")

    def unable(bench: Bench) -> None:
        raise RuntimeError("no input")

    def add(bench: Bench) -> None:
        bench.add_case("bad", broken)
        bench.add_case("good", lambda: Sample(1.0, 1.0, 1, 0, "", ""))
        bench.before(broken)

    def rows(bench: Bench) -> list[Row]:
        return [ratio(bench, name, name, "good", 2, "a | b") for name in ("bad", "good")]

    sections = (
        Section("one", "One?", "About.", add, rows),
        Section("two", "Two?", "About.", unable, lambda b: []),
    )
    for section in sections:
        bench.set_up(section.name, section.add)
    list(bench.prepare())
    assert [*bench.rounds(60.0)] == ["bad", "good", "bad", "good"]
    page = report.page(bench, sections, 0.1)
    assert "| good | ≤ 2 × a \\| b | 1.0 × | yes |" in page
    assert "not measured (FileNotFoundError: …/nothing)" in page
    assert "Not measured: RuntimeError: no input" in page
    assert "1 of 2 targets met, 0 missed, 1 not measured." in page
    assert str(bench.scratch) not in page


def test_after_the_time_is_up_each_case_has_still_one_run(bench: Bench) -> None:
    for name in ("a", "b"):
        bench.add_case(name, lambda: Sample(1.0, 1.0, 1, 0, "", ""))
    assert [*bench.rounds(0.0)] == ["a", "b"]


def test_a_case_that_took_long_is_not_run_again(bench: Bench) -> None:
    bench.add_case("long", lambda: Sample(100.0, 100.0, 1, 0, "", ""))
    assert len([*bench.rounds(1e6)]) == 2
    assert len(bench.cases["long"].samples) == 1


def test_what_the_user_has_set_reaches_no_program(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "CTXCTL_CACHE", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, "1")
    env = bench.env(bench.cache("x"))
    assert set(env) - {"PATH", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "PYTHONPATH"} == {
        "HOME", "CTXCTL_CACHE_DIR", "NO_COLOR",
    }  # fmt: skip
    assert env["CTXCTL_CACHE_DIR"].startswith(str(bench.scratch.resolve()))
    assert env["HOME"].startswith(str(bench.scratch))


def test_counts_are_all_that_a_counted_cache_holds(tmp_path: Path) -> None:
    (tmp_path / "captures").mkdir()
    for name in ("counts-1.sqlite3", "captures/a", "other"):
        (tmp_path / name).touch()
    forget_all_but_counts(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["counts-1.sqlite3"]


def test_sections_are_chosen_by_name_in_the_pages_order() -> None:
    assert [section.name for section in chosen("fleet, start")] == ["start", "fleet"]
    assert chosen(None) == SECTIONS
    for wrong in ("fleet,speed", ","):
        with pytest.raises(ValueError, match="again"):
            chosen(wrong)


def test_a_page_without_measurements_says_so(bench: Bench) -> None:
    page = report.page(bench, SECTIONS, 0.5)
    assert "0 of" in page
    assert "0 missed" in page


@pytest.mark.parametrize("section", SECTIONS, ids=[section.name for section in SECTIONS])
def test_each_row_has_the_cases_that_it_is_made_of(
    bench: Bench, section: Section, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small, ccusage = tmp_path / "inputs" / "small.jsonl", bench.peers / "ccusage" / "node_modules" / ".bin"
    small.parent.mkdir()
    small.write_bytes(b"".join(generate.transcript(400_000, 1)))
    ccusage.mkdir(parents=True)
    (ccusage / "ccusage").touch(mode=0o700)
    monkeypatch.setattr(generate, "ensure", lambda name, lines: small)
    monkeypatch.setattr(generate, "transcripts", lambda *made: small.parent)
    monkeypatch.setattr(importers, "CAPTURES", tmp_path / "captures")
    for _, folder in importers.FORMATS:
        (tmp_path / "captures" / folder).mkdir(parents=True, exist_ok=True)
    monkeypatch.setattr(bench, "run_once", lambda *words, **more: Sample(1.0, 1.0, 1, 0, "", ""))
    section.add(bench)
    assert [row.reached for row in section.rows(bench) if row.met is not None] == []
    for case in bench.cases.values():
        case.samples = [Sample(0.9 if case.name == "pass" else 1.0, 1.0, 1, 0, "1 " * 12, "")]
    assert [row for row in section.rows(bench) if row.met is None] == []


def test_the_committed_page_begins_as_it_is_written(bench: Bench) -> None:
    docs = Path(report.__file__).resolve().parents[2] / "docs"
    head = report.page(bench, [], 0.0).partition("**How.**")[0]
    assert (docs / "benchmarks.md").read_text(encoding="utf-8").startswith(head)
    assert "(benchmarks-soak.md)" in head
