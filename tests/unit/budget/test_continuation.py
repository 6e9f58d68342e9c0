"""Plans that go on from where a session is."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from budget_help import worked_out

from ctxctl.budget.continuation import SessionSoFar, continuation_plan, session_so_far
from ctxctl.budget.estimate import estimate
from ctxctl.budget.fitted import Session
from ctxctl.budget.growth import between, grown_runs
from ctxctl.budget.measure import Reader
from ctxctl.budget.observe import Observed, SessionGrowth
from ctxctl.budget.plan import parse, policy_of
from ctxctl.budget.sessions import session
from ctxctl.cli.main import run
from ctxctl.errors import UsageError
from ctxctl.model.fitting import Room
from ctxctl.model.results import Placement, Step
from ctxctl.model.vocab import rank_of, segment_of
from ctxctl.session import Inspector
from ctxctl.tokens.counter import Counter

HAND = """
policy = "fifo"
runs = 3
[model]
window = 1000
[[part]]
name = "rules"
segment = "system"
tokens = { p50 = 700 }
now = 100
[start]
trace = "run.jsonl"
turn = 40
history = [[300, 0, 0, 0], [0, 20, 10, 170]]
[conversation]
turns = 6
drift = 0
seen = [[[50, 0, 0, 0], [0, 20, 10, 20]]]
"""
"""By hand: 600 to begin with, and each turn brings 100: turn 44 has 1000, and turn 45 is over."""


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = run(["budget", *arguments])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def chat(path: Path, turns: int, rounds: int = 1) -> Path:
    """Write a conversation; each turn is as long as any other."""
    told: list[dict[str, Any]] = [{"role": "system", "content": "You are terse."}]
    for turn in range(turns):
        told.append({"role": "user", "content": "Look at this, please."})
        for n in range(rounds):
            call = {"id": f"c{turn}.{n}", "type": "function", "function": {"name": "look", "arguments": "{}"}}
            told.append({"role": "assistant", "content": None, "tool_calls": [call]})
            told.append({"role": "tool", "tool_call_id": call["id"], "content": "line " * 50})
        told.append({"role": "assistant", "content": "That is fine."})
    path.write_text(json.dumps(told))
    return path


def certain(text: str, cap: int) -> str:
    """Return a plan whose sessions are all alike."""
    text = text.replace("drift = 0.4", "drift = 0").replace("runs = 200", "runs = 4")
    return text.replace("[model]", f"[model]\nwindow = {cap}")


def used(path: Path, address: str) -> int:
    with Inspector.open(path, calibration="saved") as inspector:
        return inspector.step(inspector.resolve(address)).window.used


def test_turns_are_counted_on_and_the_overflow_is_where_the_hand_says() -> None:
    found = worked_out(HAND)
    assert found.start_tokens == 600
    assert [turn.turn for turn in found.turns] == [41, 42, 43, 44, 45, 46]
    assert [turn.p50 for turn in found.turns] == [700, 800, 900, 1000, 1100, 1200]
    assert found.first_between == (45, 45, 45)
    assert found.first_acted == (45, 45, 45)
    assert found.left_out[0].name == "user messages"  # the oldest of the history
    assert found.shrunk[0].name == "user messages"


def test_requests_of_a_recorded_turn_come_one_by_one() -> None:
    plan = parse(HAND, "plan")
    parts = worked_out(HAND).parts
    one = Session(parts, policy_of(plan, "plan"), Room(100_000), len, plan.start)
    made = one.run(session(plan, parts, 0), 10_000)
    assert made is not None
    assert [(r.turn, r.sent, r.prefix) for r in made.requests[:3]] == [
        (41, 650, 600), (41, 700, 650), (42, 750, 700),
    ]  # fmt: skip


def test_what_changes_later_begins_as_it_is() -> None:
    text = HAND.replace("now = 100", "now = 100\nchanges = 1.0").replace("700", "700, min = 700")
    assert [turn.p50 for turn in worked_out(text).turns][:3] == [700, 1400, 1500]


def test_a_pace_of_its_own_makes_sessions_differ_and_the_seed_makes_them_alike() -> None:
    wide = HAND.replace("drift = 0", "drift = 0.6").replace("runs = 3", "runs = 60")
    wide = wide.replace("turns = 6", "turns = 25")
    early, middle, late = worked_out(wide).first_between
    assert early is not None
    assert middle is not None
    assert late is not None
    assert 41 < early < middle < late
    assert 43 <= middle <= 47
    assert worked_out(wide).turns == worked_out(wide).turns
    assert worked_out("seed = 2" + wide).turns != worked_out(wide).turns


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (HAND.replace("drift = 0", "user = 5"), "seen stands in place of user"),
        (HAND[: HAND.index("[start]")] + "[conversation]\nturns = 2", "now is for parts"),
        ('[model]\nwindow = 9\n[conversation]\nunit = "request"', "needs seen"),
        (HAND + "[limits]\nheadroom = [ { turn = 40, free = 1 } ]", "no turn 40, only 41 to 46"),
        (HAND.replace("[[50, 0, 0, 0]", "[[50, 0, 0]"), "seen"),
        (HAND.replace("[[50, 0, 0, 0]", "[[-50, 0, 0, 0]"), "seen"),
        (HAND.replace("seen = [[", "seen = [[], ["), "seen"),
        (HAND.replace("drift = 0", "drift = nan"), "drift"),
    ],
)
def test_plans_that_cannot_be(wrong: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        parse(wrong, "plan")


def test_a_plan_begins_with_the_window_as_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = chat(tmp_path / "run.json", 14)
    code, text, err = said(capsys, "--from", f"{path}@12")
    assert (code, err) == (0, "")
    assert "# Nothing was billed, so sizes are those of the record alone.\n" in text
    window = used(path, "12")
    each = used(path, "14") - used(path, "13")
    text = certain(text, window + 3 * each)
    found = estimate(parse(text, "plan"), "plan", tmp_path, {})
    assert (found.start_tokens, found.plan.first, found.unit) == (window, 13, "turn")
    # Three more turns fill it to the last token.
    assert found.first_between == (16, 16, 16)
    (tmp_path / "onward.toml").write_text(text)
    code, out, _ = said(capsys, str(tmp_path / "onward.toml"))
    assert f"starts        after turn 12 of run.json, with {window:,} tokens" in out
    assert "next turn     fits" in out
    assert "overflow      at turn 16 (p50), 16 to 16 (p5 to p95)" in out
    row = json.loads(said(capsys, str(tmp_path / "onward.toml"), "--json")[1].splitlines()[0])
    assert row["start"] == {"trace": "run.json", "turn": 12, "tokens": window}
    assert row["first_overflow_between"] == {"early": 16, "middle": 16, "late": 16}


def test_what_was_billed_beside_the_record_is_a_part(capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(__file__).parents[3] / "traces/coding-agent.jsonl"
    with Inspector.open(path, calibration="saved") as inspector:
        window = inspector.step(inspector.resolve("12")).window
    code, text, _ = said(capsys, "--from", f"{path}@12")
    assert code == 0
    assert "# Billed in addition to what is recorded, at turn 12.\n" in text
    assert "# Limits: recorded\n" in text
    found = worked_out(text.replace("runs = 200", "runs = 2"))
    assert window.unrecorded is not None
    assert window.unrecorded > 0
    part = found.parts[0].part
    assert (part.name, part.where, part.now, part.rate) == ("not recorded", "system", window.unrecorded, 0.0)
    assert found.start_tokens == window.used


def test_a_bill_below_the_count_makes_the_history_smaller() -> None:
    course, observed = SessionGrowth(), Observed()
    frame = [
        placed("t", "tool_definition", 50),
        placed("u", "user_message", 30),
        placed("r", "tool_result", 20),
    ]
    made = step(used=90, beside=-10)
    course.add(made, 1)
    observed.add(made, frame, 1)
    course._came.update({"u": 1, "r": 1})
    text = continuation_plan(SessionSoFar(observed, course, "turn", 1, made, frame), "x", "o200k_base")
    assert "# Billed were 10 fewer than counted: the history is made smaller by as much." in text
    assert "not billed: its size is expected from the bill before, off by 7 at most" in text
    plan = parse(text, "x")
    assert plan.start is not None
    assert plan.start.history == ((24, 0, 0, 16),)
    assert "not recorded" not in [part.name for part in plan.part]


def test_of_one_prompt_requests_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = chat(tmp_path / "one.json", 1, rounds=30)
    text = said(capsys, "--from", f"{path}@1.20")[1]
    window = used(path, "1.20")
    each = used(path, "1.22") - used(path, "1.21")
    text = certain(text, window + 3 * each)
    found = estimate(parse(text, "plan"), "plan", tmp_path, {})
    assert (found.unit, found.start_tokens, found.first_between.middle) == ("request", window, 24)
    (tmp_path / "one.toml").write_text(text + "[limits]\noverflow_turn = 30\n")
    code, out, _ = said(capsys, str(tmp_path / "one.toml"), "--check")
    assert code == 1
    assert "after request 20 of one.json" in out
    assert "request 24 overflows at p95, request 30 may be the first" in out


def test_one_session_goes_on_and_an_address_has_to_be_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = chat(tmp_path / "run.json", 3)
    code, _, err = said(capsys, "--from", f"{path}@2", "--from", str(path))
    assert code == 2
    assert "only a single trace" in err
    assert said(capsys, "--from", f"{path}@9")[0] == 2
    assert said(capsys, "--from", f"{path}@end")[0] == 2
    assert said(capsys, "--from", f"{tmp_path}/none.json@2")[0] == 3
    # A file that is called so is that file.
    named = chat(tmp_path / "run@2", 3)
    assert "[start]" not in said(capsys, "--from", str(named))[1]
    assert "after" not in said(capsys, "--from", f"{named}@2")[1].splitlines()[0]


def test_a_name_that_would_break_a_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = chat(tmp_path / 'a"]\n[x]\u202e.json', 3)
    plan = parse(said(capsys, "--from", f"{path}@2")[1].replace("[model]", "[model]\nwindow = 9000"), "plan")
    assert plan.start is not None
    assert "\n" not in (plan.start.trace or "")


def test_the_manual_shows_what_is_said_of_a_trace_of_ours() -> None:
    root = Path(__file__).resolve().parents[3]
    with Inspector.open(root / "traces" / "coding-agent.jsonl", calibration="saved") as inspector:
        text = continuation_plan(
            session_so_far(inspector, "12"), "coding-agent.jsonl", inspector.params.encoding
        )
        window = inspector.step(inspector.resolve("12")).window
    plan = parse(text, "plan")
    parts = Reader(root, Counter("o200k_base", None), exact=False).measure(plan)
    early, middle, late = between(grown_runs(plan, parts).first_over(window.cap or 0))
    manual = (root / "docs" / "budget.md").read_text()
    assert f"after turn 12 of coding-agent.jsonl, with {window.used:,} tokens" in manual
    assert f"at turn {middle} (p50), {early} to {late} (p5 to p95)" in manual


def placed(name: str, kind: str, tokens: int) -> Placement:
    segment = segment_of(kind)
    return Placement(
        item=name, version=None, kind=kind, title=None, source=None, segment=segment, tokens=tokens,
        method="counted", content=None, digest=None, key=hash(name), line=0, rank=rank_of(segment),
    )  # fmt: skip


def changed(*changes: tuple[str, str, str, int, int]) -> Step:
    told = [SimpleNamespace(status=s, item=i, kind=k, new=n, freed=f) for s, i, k, n, f in changes]
    window = SimpleNamespace(used=0, unrecorded=None)
    return cast("Step", SimpleNamespace(changes=told, window=window))


def test_what_comes_back_is_not_new_and_what_grew_is() -> None:
    course = SessionGrowth()
    course.add(changed(("added", "u1", "user_message", 5, 0), ("added", "t", "tool_definition", 50, 0)), 1)
    course.add(changed(("added", "r1", "tool_result", 70, 0), ("removed", "u1", "user_message", 0, 5)), 2)
    course.add(changed(("added", "u1", "user_message", 5, 0), ("updated", "r1", "tool_result", 90, 70)), 2)
    assert course.arrivals == [(5, 0, 0, 0), (0, 0, 0, 70), (0, 0, 0, 20)]
    assert course.seen() == [((0, 0, 0, 70), (0, 0, 0, 20))]
    window = [
        placed("sum", "thread_summary", 9),
        placed("u1", "user_message", 5),
        placed("r1", "tool_result", 90),
    ]
    assert course.history(window, 10) == ([(5, 0, 0, 0), (0, 0, 0, 90)], 9)
    assert course.history(window, 1) == ([(5, 0, 0, 90)], 9)


def test_the_beginning_of_a_session_is_left_out() -> None:
    course = SessionGrowth()
    for number in range(1, 41):
        course.add(changed(("added", f"u{number}", "user_message", number, 0)), number)
    assert [unit[0][0] for unit in course.seen()] == [*range(5, 40), 39]  # the largest is cut
    alone = SessionGrowth()
    alone.add(changed(("added", "u", "user_message", 3, 0)), 1)
    assert alone.seen() == [((3, 0, 0, 0),)]


def step(used: int, beside: int | None, *changes: tuple[str, str, str, int, int]) -> Step:
    made = changed(*changes)
    window = SimpleNamespace(
        used=used, unrecorded=beside, cap=None, limit=None, reserved=None, over=None, threshold=None,
        used_method="expected", used_error=7,
    )  # fmt: skip
    return cast("Step", SimpleNamespace(changes=made.changes, window=window, turn=1, model=None, usage=None))


def test_growth_is_what_the_bill_grew_by() -> None:
    course = SessionGrowth()
    course.add(step(1000, 400, ("added", "u", "user_message", 50, 0)), 1)
    course.add(step(1150, 450, ("added", "c", "tool_call", 30, 0), ("added", "r", "tool_result", 70, 0)), 1)
    course.add(step(1200, 500), 2)  # 50 more, and nothing that is recorded
    course.add(
        step(700, 480, ("removed", "r", "tool_result", 0, 500), ("added", "a", "user_message", 20, 0)), 3
    )
    assert course.arrivals == [
        (50, 0, 0, 0),
        (0, 0, 45, 105),
        (0, 50, 0, 0),
        (20, 0, 0, 0),
    ]  # a cut says nothing
    course.add(step(720, 440), 3)  # 40 fewer are not recorded
    course.add(step(780, 440, ("added", "b", "user_message", 60, 0)), 3)
    assert course.arrivals[-2:] == [(0, 0, 0, 0), (20, 0, 0, 0)]


def test_a_unit_that_is_larger_than_nearly_all_counts_as_large_as_the_largest_of_these() -> None:
    course = SessionGrowth()
    for number in range(1, 61):
        sizes = {30: 9_000, 31: 600, 32: 500, 33: 400}
        course.add(changed(("added", f"u{number}", "user_message", sizes.get(number, 100), 0)), number)
    seen = [unit[0][0] for unit in course.seen()]
    assert len(seen) == 54
    assert sorted(seen)[-5:] == [100, 400, 500, 500, 500]
