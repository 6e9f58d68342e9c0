"""What turns and steps cost: the column of the list, and what it is fed with."""

from __future__ import annotations

from decimal import Decimal

from fake import FakeInspector, Request, Thing, notes_agent
from helpers import LARGE, made, running

from ctxctl.analysis.request_cost import cost_of
from ctxctl.analysis.turn_sums import TurnSums
from ctxctl.model.cost_sums import Paid
from ctxctl.report.bill_notes import paid_text
from ctxctl.tokens.catalogue.rates import RateBook
from ctxctl.tui.cost_column import CostColumn, Paids
from ctxctl.tui.series import size_bar


def priced(inspector: FakeInspector) -> TurnSums:
    """The turns as the short report sums them up."""
    sums = TurnSums(RateBook())
    rows = inspector.outline().rows
    for n, row in enumerate(rows):
        sums.step(inspector.step(n))
        if all((other.thread, other.turn) != (row.thread, row.turn) for other in rows[n + 1 :]):
            sums.turn(inspector.turn(n))
    return sums


async def test_turns_and_steps_cost_what_the_short_report_says() -> None:
    inspector = FakeInspector(notes_agent())
    expected = {
        row.turn: Paid(row.steps, row.cost, row.unpriced, row.is_counted) for row in priced(inspector).turns
    }
    async with running(made(FakeInspector(notes_agent())), LARGE) as session:
        await session.press("l")
        text = session.text
        (second,) = (line for line in session.lines if line[1:].split()[:2] == ["2", "▃"])
        assert second[1:].split("┃")[0].split()[-1] == paid_text(expected[2])
        assert paid_text(expected[1]) in text.splitlines()[0], "the head tells it too"
        state = session.app.turns.state
        for n in range(4):
            step = cost_of(inspector.step(n), RateBook())
            assert step.sent is not None
            paid = state.costs.step(n)
            assert paid is not None
            assert paid.cost == (step.sent.total if step.is_sized else 0)
            assert paid.unpriced == (not step.is_sized)
        for turn, paid in expected.items():
            assert state.costs.sum(("s1", "main", turn), paid.steps) == paid


async def test_what_has_no_price_has_no_column() -> None:
    requests = [Request(n + 1, (Thing("a", "text " * 9),), model="no-such-model") for n in range(3)]
    async with running(made(FakeInspector(requests)), LARGE) as session:
        assert len(session.app.turns.state.costs) == 3
        assert " cost" not in session.text
        assert "$" not in session.text


async def test_one_model_without_a_price_is_told_by_a_dash() -> None:
    models = ("gpt-4o", "no-such-model")
    thing = Thing("a", "text " * 9)
    requests = [Request(n + 1, (thing,), model=model, reported=20) for n, model in enumerate(models)]
    async with running(made(FakeInspector(requests)), LARGE) as session:
        second = next(line for line in session.lines if line[1:].split()[:1] == ["2"])
        assert second[1:].split("┃")[0].split()[-1] == "-"


def test_a_column_keeps_what_it_was_told() -> None:
    rows = FakeInspector(notes_agent()).outline().rows
    paid = [
        Paid(1, Decimal("0.0000000375")), Paid(1, unpriced=1), Paid(1, Decimal("12.5"), is_counted=True),
        Paid(1, Decimal("3"), is_least=True),
    ]  # fmt: skip
    column = CostColumn()
    assert not column.is_priced
    column.take(Paids.of(0, paid[:3]), rows)
    column.take(Paids.of(2, paid[2:]), rows)  # does not follow on what is known
    column.take(Paids.of(3, paid[3:]), rows)
    assert [column.step(n) for n in range(5)] == [*paid, None]
    whole = column.sum(None, 4)
    assert whole == Paid(4, Decimal("15.5000000375"), 1, is_counted=True, is_least=True)
    assert column.sum(None, 5) is None, "not all of five steps are known"
    assert paid_text(whole) == "≥$15.5000"
    column.cut(4)
    assert len(column) == 4
    column.cut(2)
    assert (len(column), column.sum(None, 4)) == (0, None)


def test_a_size_bar_is_in_proportion_and_never_nothing() -> None:
    assert [size_bar(n, 800, 2) for n in (0, 1, 50, 51, 400, 800)] == ["", "▏", "▏", "▎", "█", "██"]
    assert size_bar(5, 0, 4) == ""
