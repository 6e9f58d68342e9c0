"""Dollars by part of each capture with bills: an independent reader and price list find the same."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from ctxctl.analysis.costs import Costs, step_costs
from ctxctl.errors import CtxctlError
from ctxctl.model.money import ZERO, Money
from ctxctl.session import Inspector
from ctxctl.tokens.catalogue.rates import RateBook

sys.path.insert(0, str(Path(__file__).parents[2] / "tools" / "independent"))

import dollars as independent

Reader = Callable[[Path], Iterator[independent.Bill]]
RECORDED = ("vcr", "claude-trace", "openhands-completions", "swe-agent-calls")
"""Formats whose bills are the provider's own answers."""


def ours(path: Path, formats: tuple[str, ...]) -> tuple[Money, int] | None:
    """The sum of the bills that have a price, and how many have none; None for what is no such capture."""
    money, unpriced = Money(), 0
    try:
        with Inspector.open(path, calibration="saved") as inspector:
            if inspector.format not in formats:
                return None
            for cost in step_costs(inspector, Costs(RateBook(as_of=independent.DAY))):
                money = money.plus(cost.billed) if cost.billed is not None else money
                unpriced += cost.billed is None and cost.billed_tokens is not None
    except CtxctlError:
        return None
    return money, unpriced


def agree(paths: list[Path], formats: tuple[str, ...], reader: Reader) -> tuple[int, Decimal]:
    """Hold every capture against the reader; how many there were, and their dollars."""
    count, whole, differing = 0, ZERO, []
    for path in paths:
        bills = list(reader(path))
        told = ours(path, formats) if bills else None
        if told is None:
            continue
        money, unpriced = told
        theirs, unknown = independent.summed(iter(bills))
        mine = {part: getattr(money, part) for part in independent.PARTS}
        if mine != theirs or unpriced != sum(unknown.values()) or sum(mine.values()) != money.total:
            differing.append((str(path), mine, theirs, unpriced, unknown))
        count, whole = count + 1, whole + money.total
    assert differing == []
    return count, whole


def files(corpus: Path, *parts: str) -> list[Path]:
    root = corpus / "data" if (corpus / "data").is_dir() else corpus
    return sorted(path for part in parts for path in (root / part).rglob("*") if path.is_file())


@pytest.mark.slow
def test_claude_code(corpus: Path) -> None:
    count, whole = agree(files(corpus, "claude-code", "clients"), ("claude-code",), independent.claude_code)
    assert count >= 220
    assert whole > 320


@pytest.mark.slow
def test_codex(corpus: Path) -> None:
    count, whole = agree(files(corpus, "codex", "clients"), ("codex",), independent.codex)
    assert count >= 30
    assert whole > 100


@pytest.mark.slow
def test_runs_of_claude_code_cost_no_more_than_the_client_says(corpus: Path) -> None:
    """Its total has calls and answers that its stream does not show."""
    count = 0
    for path in files(corpus, "claude-stream-json"):
        said = list(independent.claude_stream(path))
        told = ours(path, ("claude-stream-json",)) if len(said) == 1 else None
        if told is None:
            continue
        (((_, money),), (mine, unpriced)) = said, told
        assert unpriced == 0
        assert 0 < mine.total <= money, path
        assert mine.total > money * Decimal("0.8"), path
        count += 1
    assert count >= 5


@pytest.mark.slow
def test_recorded_answers(corpus: Path) -> None:
    count, whole = agree(files(corpus, "api-captures"), RECORDED, independent.answers)
    assert count >= 40
    assert whole > 1
