"""The provider's bill is right: sizes, partial outputs, and cuts without a record."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.analysis.costs import Costs, step_costs
from ctxctl.cli.main import run
from ctxctl.engine.replay.edits import SentPart
from ctxctl.engine.replay.frames import delta_of
from ctxctl.engine.sizes.bills import Answer, BilledStep, counted_output, cut_of, known_sent
from ctxctl.model.records import Usage
from ctxctl.model.results import Cut, Placement, Step
from ctxctl.session import Inspector
from ctxctl.tokens.catalogue.rates import RateBook
from tests.oracle.build import assembly, at, inject, item, lines

EACH = Path("fixtures/bills_and_content/each-kind.jsonl")


@pytest.mark.parametrize(
    ("reported", "is_partial", "answer", "counted"),
    [
        (5, True, Answer(1987), 1987),
        (5, False, Answer(1987), None),
        (50, True, Answer(100), None),
        (49, True, Answer(100, 30), 130),
        (3, True, Answer(7), None),  # a share of a handful of tokens says nothing
        (60, True, Answer(70, 900), None),  # providers sum up or drop reasoning
        (5, True, None, None),
        (None, True, Answer(70), None),
    ],
)
def test_an_output_is_counted_only_where_the_client_logged_it_before_the_end(
    reported: int | None, is_partial: bool, answer: Answer | None, counted: int | None
) -> None:
    assert counted_output(Usage(output_tokens=reported, output_is_partial=is_partial), answer) == counted


BEFORE = BilledStep(100_000, 60_000, "m", 10)


@pytest.mark.parametrize(
    ("before", "billed", "by_method", "explained", "expected"),
    [
        (None, 900, {"exact:o200k_base": 900}, False, None),
        (None, 880, {"exact:o200k_base": 900}, False, None),  # within the error of the count
        (None, 800, {"exact:o200k_base": 900}, False, (82, None, False)),
        (None, 800, {"calibrated:o200k_base": 900}, False, None),
        (None, 500, {"estimate:o200k_base": 1000}, False, None),
        (None, 400, {"estimate:o200k_base": 1000}, False, (100, None, False)),
        (None, 400, {"declared": 500, "exact:o200k_base": 500}, False, (340, None, False)),
        (BEFORE, 99_000, {"exact:o200k_base": 60_000}, False, None),  # providers leave out a little
        (BEFORE, 70_000, {"exact:o200k_base": 60_000}, False, (0, 100_000, False)),
        (BEFORE, 70_000, {"exact:o200k_base": 45_000}, False, None),  # what left is recorded
        (BEFORE, 70_000, {"exact:o200k_base": 60_000}, True, None),
        (BEFORE, 40_000, {"exact:o200k_base": 40_000}, False, (0, 100_000, False)),
        (BEFORE, 40_000, {"exact:o200k_base": 61_000}, False, (19_780, 100_000, True)),
        (BEFORE, 40_000, {"exact:o200k_base": 61_000}, True, (19_780, 100_000, False)),
    ],
)
def test_a_cut_without_a_record(
    before: BilledStep | None, billed: int, by_method: dict[str, int], explained: bool,
    expected: tuple[int, int | None, bool] | None,
) -> None:  # fmt: skip
    now = BilledStep(billed, sum(by_method.values()), "m", 25)
    found = cut_of(before, now, by_method, explained=explained)
    if expected is None:
        assert found is None
    else:
        unsent, last, is_compaction = expected
        lines = (before.line if before is not None else 25, 25)
        assert found == Cut(unsent, billed, last, is_compaction, lines)


def test_another_models_smaller_bill_is_no_cut() -> None:
    now = BilledStep(40_000, 30_000, "other", 25)
    assert cut_of(BEFORE, now, {"exact:o200k_base": 30_000}, explained=False) is None


def placement(name: str, tokens: int = 10, rank: int = 2) -> Placement:
    return Placement(
        name,
        None,
        "user_message",
        None,
        None,
        "user",
        tokens,
        "counted",
        None,
        name,
        hash(name),
        1,
        rank=rank,
    )


def test_a_cut_request_sent_what_entered_with_it_then_tools_and_system_as_far_as_the_bill_has_room() -> None:
    tool, old, new, newest = placement("t", rank=0), placement("o"), placement("n", 30), placement("x")
    frame = [tool, old, new, newest]
    assert known_sent(frame, [new, newest], 60) == {newest, new, tool}
    assert known_sent(frame, [new, newest], 45) == {newest, new}
    assert known_sent(frame, [new, newest], 25) == {newest, tool}
    assert known_sent(frame, [], 5) == set()


pool = [placement(f"p{n}") for n in range(8)]
frames = st.lists(st.lists(st.sampled_from(pool), max_size=6), min_size=1, max_size=8)


@given(frames, st.lists(st.none() | st.sets(st.sampled_from(pool)), max_size=8))
def test_a_frame_less_what_was_not_sent_is_that_of_the_plain_definition(
    windows: list[list[Placement]], cuts: list[set[Placement] | None]
) -> None:
    part, gone = SentPart(windows[0]), set[Placement]()
    shown, recorded = windows[0], windows[0]
    for window, sent in zip(windows[1:], cuts, strict=False):
        if sent is not None:
            part.keep(sent)
            gone |= {p for p in shown if p not in sent}
        delta = delta_of(recorded, window)
        made = part.frame(delta)
        now = [p for p in window if p not in gone]
        assert made.before == shown
        assert made.after == now
        gone -= {p for p in recorded if p not in window}
        shown, recorded = now, window


def transcript(tmp_path: Path, bills: list[int]) -> Path:
    """A transcript of Claude Code whose prompts are 300 words each, with these bills."""
    path, parent, lines = tmp_path / "11111111-1111-4111-8111-111111111111.jsonl", None, []
    for n, billed in enumerate(bills):
        same: dict[str, Any] = {
            "isSidechain": False, "sessionId": "11111111-1111-4111-8111-111111111111", "version": "2.1.62",
            "cwd": "/p", "userType": "external",
        }  # fmt: skip
        prompt = {"role": "user", "content": f"question {n} " + "boat pier crane " * 100}
        lines.append({
            "type": "user", "uuid": f"u{n}", "parentUuid": parent, "timestamp": f"2026-09-01T10:0{n}:00.000Z",
            "message": prompt, **same,
        })  # fmt: skip
        usage = {"input_tokens": billed, "output_tokens": 3}
        answer = {
            "id": f"msg_{n}", "type": "message", "role": "assistant", "model": "claude-opus-4-6",
            "content": [{"type": "text", "text": f"answer {n}"}], "stop_reason": "end_turn", "usage": usage,
        }  # fmt: skip
        lines.append({
            "type": "assistant", "uuid": f"a{n}", "parentUuid": f"u{n}", "requestId": f"r{n}",
            "timestamp": f"2026-09-01T10:0{n}:30.000Z", "message": answer, **same,
        })  # fmt: skip
        parent = f"a{n}"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_the_frame_after_a_cut_begins_from_what_is_known_to_be_there(tmp_path: Path) -> None:
    with Inspector.open(str(transcript(tmp_path, [5000, 6000, 7000, 8000, 600, 900]))) as inspector:
        steps = [found for found in inspector.replay() if isinstance(found, Step)]
        frames = [[p.title or p.item for p in inspector.frame(n).placements] for n in range(6)]
        assert inspector.capture_lines(steps[4].cut) == (7, 9)  # type: ignore[arg-type]
    assert [step.cut is not None for step in steps] == [False, False, False, False, True, False]
    cut, after = steps[4], steps[5]
    assert cut.window.used == 600
    assert cut.cut is not None
    assert cut.cut.is_unread_compaction
    assert 100 < cut.cut.unsent < cut.window.recorded - 600
    assert cut.window.unrecorded == 600 - cut.window.recorded
    assert "unrecorded_cut" in cut.flags
    assert [len(frame) for frame in frames] == [1, 3, 5, 7, 9, 3]
    assert frames[5][0] == frames[4][-1]
    left = [change for change in after.changes if change.status == "removed"]
    assert {change.cause for change in left} == {"unrecorded"}
    assert len(left) == 8
    ledger = after.ledger
    assert ledger.window_after == ledger.window_before + ledger.new - ledger.freed


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bills") / "trace.jsonl"


counts = st.one_of(st.none(), st.integers(0, 12), st.integers(0, 5000))


@given(st.lists(st.tuples(counts, counts, st.booleans()), min_size=1, max_size=5), st.integers(0, 60))
def test_every_sum_rests_on_the_bills_whatever_is_recorded(
    trace: Path, bills: list[tuple[int | None, int | None, bool]], said: int
) -> None:
    from tests.oracle.build import assembly, at, event, inject, item
    from tests.oracle.real import opened

    own = {"mine": {"window": 9000, "input_price": 3, "output_price": 15, "cache_read_price": 0.3}}
    events: list[dict[str, Any]] = []
    for n, (billed, output, is_partial) in enumerate(bills):
        usage = {"model": "mine", "input_tokens": billed, "output_tokens": output}
        fields = {name: value for name, value in usage.items() if value is not None}
        events += at(
            "1", str(n), item(f"u{n}", "boat pier crane " * said, kind="user_message"),
            assembly(f"w{n}", [f"u{k}" for k in range(n + 1)]), inject(f"w{n}"),
            event("ctxctl.usage.reported", {**fields, "output_is_partial": is_partial}),
            item(f"a{n}", "tide " * said, kind="assistant_message"),
        )  # fmt: skip
    with opened(trace, events) as inspector:
        costs = Costs(RateBook(own))
        found = list(step_costs(inspector, costs))
    for cost, (billed, output, is_partial) in zip(found, bills, strict=True):
        if billed:
            assert cost.step.window.used == billed
            assert cost.step.window.used_method == "reported"
            assert cost.sent_tokens.context == billed
            assert cost.believed_tokens is not None
            assert cost.believed_tokens.output in (output or 0, cost.step.usage.counted_output)  # type: ignore[union-attr]
            assert is_partial or cost.believed == cost.billed
        else:
            assert cost.billed is None
    assert costs.billed_tokens.context == sum(billed or 0 for billed, _, _ in bills)


def test_a_partial_output_is_shown_beside_the_bill(capsys: pytest.CaptureFixture[str]) -> None:
    own = {"claude-sonnet-4-5": {"window": 9, "input_price": 1, "output_price": 10, "cache_read_price": 0.1}}
    with Inspector.open(EACH) as inspector:
        costs = Costs(RateBook(own))
        found = list(step_costs(inspector, costs))
    assert found[1].billed_tokens is not None
    assert found[1].billed_tokens.output == 2
    assert found[1].believed_tokens == found[1].billed_tokens._replace(output=168)
    sums = costs.partial_outputs
    assert sums.money.output - costs.billed.output == Decimal(10) * (sums.counted - sums.reported) / 1_000_000
    assert run(["cost", str(EACH), "--json", "--calibration", "none"]) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    steps = [line for line in told if line["type"] == "step_cost"]
    assert "believed" not in steps[0]
    assert steps[1]["believed_tokens"]["output"] == 168
    whole = next(line for line in told if line["type"] == "cost")
    assert whole["partial_outputs"]["counted"] == sums.counted
    assert Decimal(whole["partial_outputs"]["believed"]["total"]) > Decimal(whole["billed"]["total"])
    assert run(["find", str(EACH), "partial", "--count"]) == 0
    partial = [cost for cost in found if cost.step.usage and cost.step.usage.believed_output is not None]
    assert int(capsys.readouterr().out.split()[0]) == len(partial) == 2


def test_a_content_larger_than_the_bill_explains_the_cut_and_all_else_was_sent() -> None:
    old, image, new = placement("o", 40), placement("base64", 100_000), placement("n", 30)
    assert known_sent([old, image, new], [image, new], 900) == {old, new}


def test_a_content_larger_than_the_models_window_was_not_sent_though_nobody_billed_the_request(
    tmp_path: Path,
) -> None:
    path = transcript(tmp_path, [5000, 6000])
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[2]["message"]["content"] += " " + " ".join(str(n * 7919) for n in range(250_000))
    del lines[3]["message"]["usage"]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with Inspector.open(str(path)) as inspector:
        steps = [found for found in inspector.replay() if isinstance(found, Step)]
    assert steps[1].cut is not None
    assert steps[1].cut.billed is None
    assert steps[1].window.limit == 200_000
    assert steps[1].window.used < 10_000
    assert steps[1].window.used == steps[1].window.recorded + (steps[1].window.unrecorded or 0)


def test_a_line_of_the_capture_that_is_no_number_is_the_line_of_the_trace(tmp_path: Path) -> None:
    marks: list[Any] = ["x", {"ctxctl": "x"}, {"ctxctl": {"source_line": "\x1b[2J"}}]
    path = tmp_path / "t.jsonl"
    steps = [item(f"i{n}", "one two three", metadata=told) for n, told in enumerate(marks)]
    path.write_bytes(lines(at("1", "1", *steps, assembly("w", ["i0"]), inject("w"))))
    with Inspector.open(str(path)) as inspector:
        starts = [0]
        for line in path.read_bytes().splitlines(keepends=True)[:2]:
            starts.append(starts[-1] + len(line))
        cuts = [Cut(1, 1, None, False, (n, n), (at, at)) for n, at in enumerate(starts, 1)]
        assert [inspector.capture_lines(cut) for cut in cuts] == [(1, 1), (2, 2), (3, 3)]
