"""A trace that is watched while it grows ends as one replay of the whole says, however it came in pieces."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxctl.errors import CtxctlError
from ctxctl.model.results import Step, Turn
from ctxctl.report import jsonout
from ctxctl.session import Inspector, live_capture
from ctxctl.session.live import LiveNews, LiveSession
from ctxctl.tui.outline import Grouping, Turns
from tests.oracle.build import Event, lines
from tests.oracle.random_traces import traces

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = settings.default.max_examples if settings.default else 100
FEWER = settings(max_examples=EXAMPLES // 2)
GROWING = (
    "claude_code", "codex", "pi", "copilot_cli", "gemini_cli", "opencode", "goose", "amplifier", "qwen_code",
    "kimi", "droid",
)  # fmt: skip
"""Formats of fixtures that runtimes write bit by bit."""


@pytest.fixture(scope="module")
def where(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("live")


def encoded(result: Step | Turn) -> bytes:
    return jsonout.line(
        jsonout.step(result, skipped=True) if isinstance(result, Step) else jsonout.turn(result, skipped=True)
    )


class Watched:
    """What a reader of the lines of a watch is left with: a line for the same step replaces the other."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: dict[tuple[object, ...], bytes] = {}
        self.epoch = 0
        self.live = LiveSession(path, take=self.take)
        self.grouping, self.turns, self.turns_epoch = Grouping(), Turns(), 0
        self.last: LiveNews | None = None

    def take(self, result: Step | Turn) -> None:
        if self.live.epoch != self.epoch:
            self.lines, self.epoch = {}, self.live.epoch
        key = (result.session, result.thread, result.turn, result.step if isinstance(result, Step) else 0)
        self.lines.pop(key, None)
        self.lines[key] = encoded(result)

    def poll(self) -> LiveNews:
        feed = self.live._feed
        if feed is not None and hasattr(feed, "_free_at"):
            feed._free_at = 0.0
        while (news := self.live.poll(0)).state == "reading" or self.live._unshown:
            self.group(news)
        self.group(news)
        return news

    def group(self, news: LiveNews) -> None:
        if news.epoch != self.turns_epoch:
            self.grouping, self.turns, self.turns_epoch = Grouping(), Turns(), news.epoch
        if news.changed:
            self.turns.grow(self.grouping.take(news.rows, kept=news.kept))

    def finish(self) -> LiveNews:
        news = self.live.finish()
        self.group(news)
        return news


def batch(path: Path) -> tuple[list[bytes], bytes, list[bytes], list[Step], Turns]:
    with Inspector.open(path) as inspector:
        results = [encoded(result) for result in inspector.replay()]
        assert inspector.summary is not None
        summary = jsonout.line(jsonout.summary(inspector.summary))
        problems = [jsonout.line(jsonout.problem(problem)) for problem in inspector.problems]
        rows = inspector.outline().rows
        turns = Turns()
        turns.grow(Grouping().take(rows))
        return results, summary, problems, [inspector.step(row.ordinal) for row in rows], turns


def said(turns: Turns, steps: list[Step]) -> list[object]:
    """Every turn that is shown, with its steps; in what order depends on when they were over."""
    return sorted(
        (
            repr((e.session, e.thread, e.turn, e.title, e.used)),
            [
                (steps[n].session, steps[n].thread, steps[n].turn, steps[n].step)
                for n in e.ordinals[: e.steps]
            ],
        )
        for e in turns.entries
    )


def by_thread(lines: Iterable[bytes]) -> dict[object, list[bytes]]:
    """A watch gives steps when they are over, a replay as they begin: of one thread that is the same."""
    found: dict[object, list[bytes]] = {}
    for line in lines:
        one = msgspec.json.decode(line)
        found.setdefault((one["session"], one["thread"]), []).append(line)
    return found


def grow(path: Path, data: bytes, cuts: Sequence[float]) -> None:
    """Write a file in pieces under the eyes of a watch, and hold what that ends in against a replay."""
    path.write_bytes(b"")
    watched = Watched(path)
    with watched.live:
        at = 0
        for cut in [*sorted(cuts), 1.0]:
            end = max(at, round(cut * len(data)))
            with path.open("ab") as file:
                file.write(data[at:end])
            at = end
            news = watched.poll()
            same_as_now(news)
        news = watched.finish()
        results, summary, problems, steps, turns = batch(path)
        inspector = news.inspector
        assert inspector is not None
        assert by_thread(watched.lines.values()) == by_thread(results)
        assert inspector.summary is not None
        assert jsonout.line(jsonout.summary(inspector.summary)) == summary
        assert [jsonout.line(jsonout.problem(problem)) for problem in inspector.problems] == problems
        shown = [inspector.step(row.ordinal) for row in news.rows]
        assert by_thread(map(encoded, shown)) == by_thread(map(encoded, steps))
        assert said(watched.turns, shown) == said(turns, steps)
        assert len(inspector.trace.contents) == inspector.summary.unique_contents
        for row in news.rows:
            inspector.turn(row.ordinal)
            frame = inspector.frame(row.ordinal)
            assert sum(p.tokens for p in frame.placements) == frame.step.window.recorded
            assert frame.step.window.used == row.used


def same_as_now(news: LiveNews) -> None:
    """Every step that is shown can be opened, and is the one that its row speaks of."""
    inspector = news.inspector
    if inspector is None:
        return
    for row in news.rows:
        step = inspector.step(row.ordinal)
        assert (step.thread, step.turn, step.step) == (row.thread, row.turn, row.step)
        assert step.window.used == row.used
        before = inspector.previous(row.ordinal)
        assert (before is None) == (step.ledger.window_before == 0) or before is not None
        assert inspector.turn(row.ordinal).turn == row.turn


@FEWER
@given(traces(), st.lists(st.floats(0, 1), max_size=6))
def test_a_trace_in_pieces_ends_as_one_replay(where: Path, events: list[Event], cuts: list[float]) -> None:
    grow(where / "trace.jsonl", lines(events), cuts)


@pytest.mark.parametrize("name", ["coding-agent", "notes-assistant", "retrieval-agent"])
def test_the_demo_traces_in_pieces(where: Path, name: str) -> None:
    data = (ROOT / "traces" / f"{name}.jsonl").read_bytes()[:200_000]
    data = data[: data.rfind(b"\n") + 1]
    grow(where / f"{name}.jsonl", data, [n / 9 + 0.013 for n in range(9)])


def fixtures() -> list[Path]:
    found = [
        path
        for folder in GROWING
        for path in sorted((ROOT / "fixtures" / folder).glob("*.jsonl"))
        if path.stat().st_size < 200_000
    ]
    assert len(found) > 5
    return found


@pytest.mark.parametrize("path", fixtures(), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_capture_in_pieces_ends_as_one_replay(where: Path, path: Path) -> None:
    data = path.read_bytes()
    try:
        with Inspector.open(path):
            pass
    except CtxctlError:
        pytest.skip("not to be opened by itself")
    grow(where / path.name, data, [n / 12 + 0.017 for n in range(12)])


OTHERWISE = {
    "codex/fork": "begins with another session's history, which is written in one piece",
    "copilot_cli/resumed": "what failed before is sent in other words once it is resumed: replayed anew",
    "amplifier/context-messages": "is known to be Amplifier's by its last line",
    "claude_code/requests": "its sub-agents have files of their own beside it",
}
"""Captures that do not grow line by line into what they are in the end, and why."""


@pytest.mark.parametrize("path", fixtures(), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_turn_is_told_once_and_whole(where: Path, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log grows line by line, each of which is looked at: what was told is what a replay has at the end."""
    try:
        with Inspector.open(path) as inspector:
            whole = {turn_key(turn): turn.steps for turn in inspector.replay() if isinstance(turn, Turn)}
    except CtxctlError:
        pytest.skip("not to be opened by itself")
    if why := OTHERWISE.get(f"{path.parent.name}/{path.stem}"):
        pytest.skip(why)
    monkeypatch.setattr(live_capture, "_TURN_END_SECONDS", 0.0)
    told: list[Turn] = []
    growing = where / f"turns-{path.parent.name}-{path.name}"
    growing.write_bytes(b"")
    with LiveSession(growing, take=lambda one: told.append(one) if isinstance(one, Turn) else None) as live:
        for line in path.read_bytes().splitlines(keepends=True):
            with growing.open("ab") as file:
                file.write(line)
            for _ in range(2):
                if isinstance(live._feed, live_capture.CaptureFeed):
                    live._feed._free_at = 0.0
                live.poll(0)
        live.finish()
    assert [turn_key(turn) for turn in told] == list(dict.fromkeys(turn_key(turn) for turn in told)), "again"
    assert {turn_key(turn): turn.steps for turn in told} == whole


def turn_key(turn: Turn) -> tuple[object, ...]:
    return turn.session, turn.thread, turn.turn


def test_a_capture_that_is_written_anew_each_time(where: Path) -> None:
    """As Gemini's JSON: the whole file, with one message more."""
    whole = next(
        found
        for path in sorted((ROOT / "fixtures" / "gemini_cli").glob("*.json"))
        if isinstance(found := msgspec.json.decode(path.read_bytes()), dict) and "messages" in found
    )
    path = where / "session-gemini.json"
    watched = Watched(path)
    with watched.live:
        for count in range(1, len(whole["messages"]) + 1):
            data = msgspec.json.encode({**whole, "messages": whole["messages"][:count]})
            (where / "tmp").write_bytes(data)
            (where / "tmp").replace(path)
            same_as_now(watched.poll())
        news = watched.finish()
        results, *_ = batch(path)
        assert by_thread(watched.lines.values()) == by_thread(results)
        assert news.epoch <= 1, "at most once: when it names a model for the first time"


def test_provisional_steps_do_not_outlive_the_look_that_made_them(where: Path) -> None:
    data = (ROOT / "traces" / "coding-agent.jsonl").read_bytes().splitlines(keepends=True)
    path = where / "provisional.jsonl"
    path.write_bytes(b"".join(data[:60]))
    watched = Watched(path)
    with watched.live:
        news = watched.poll()
        inspector = news.inspector
        assert inspector is not None
        first = news.rows.settled
        assert first < len(news.rows), "some step is still open"
        early = inspector.step(first)
        with path.open("ab") as file:
            file.write(b"".join(data[60:70]))
        later = watched.poll()
        assert later.inspector is inspector
        assert inspector.step(first).window.used == later.rows[first].used
        assert news.rows[first].used == early.window.used, "an older News has changed"
        assert len(inspector.trace.contents) <= 70


def test_the_end_takes_in_what_was_put_off(where: Path) -> None:
    """A capture that lost lines just now, or changed right after an import, is not left as it was."""
    data = (ROOT / "fixtures" / "claude_code" / "session.jsonl").read_bytes()
    lines = data.splitlines(keepends=True)
    path = where / "put-off.jsonl"
    for pieces in ((data, b"".join(lines[:-3])), (b"".join(lines[:-3]), data)):
        watched = Watched(path)
        with watched.live:
            for piece in pieces:
                path.write_bytes(piece)
                watched.live.poll(0)
            news = watched.finish()
            results, summary, *_ = batch(path)
            assert news.inspector is not None
            assert news.inspector.summary is not None
            assert jsonout.line(jsonout.summary(news.inspector.summary)) == summary
            assert [encoded(news.inspector.step(n)) for n in range(len(news.rows))] == [
                one for one in results if one.startswith(b'{"type":"step"')
            ]
