"""Cache misses of every Claude Code capture: an independent reader finds the same, and the same money."""

from __future__ import annotations

import sys
from decimal import Decimal
from pathlib import Path

import pytest

from ctxctl.analysis.costs import Costs, step_costs
from ctxctl.errors import CtxctlError
from ctxctl.session import Inspector
from ctxctl.tokens.catalogue.rates import RateBook

sys.path.insert(0, str(Path(__file__).parents[2] / "tools" / "independent"))

import misses as independent

LARGE = 40_000
LEAST = 130
"""Misses that there are at least in the captures at hand."""


def captures(corpus: Path) -> list[Path]:
    root = corpus / "data" / "claude-code" if (corpus / "data").is_dir() else corpus / "claude-code"
    return sorted(root.rglob("*.jsonl"))


def ours(path: Path, book: RateBook) -> dict[str, tuple[int, Decimal]]:
    """Tokens and money by message; empty for what is no capture of one conversation."""
    found: dict[str, tuple[int, Decimal]] = {}
    try:
        with Inspector.open(path, calibration="saved") as inspector:
            if inspector.format != "claude-code":
                return {}
            for cost in step_costs(inspector, Costs(book)):
                miss = cost.step.cache.miss
                if miss is not None:
                    assert cost.missed is not None
                    found[str(cost.step.step_id)] = miss.tokens, cost.missed
    except CtxctlError:
        return {}
    return found


@pytest.mark.slow
def test_a_plain_reader_finds_the_same_steps_and_the_same_money(corpus: Path) -> None:
    book = RateBook()
    money, theirs, count, large = Decimal(0), Decimal(0), 0, 0
    for path in captures(corpus):
        known = ours(path, book)
        told = {miss.ident: miss for miss in independent.misses(path)}
        assert set(known) == set(told), path
        for ident, (tokens, usd) in known.items():
            assert abs(tokens - told[ident].tokens) <= max(8, told[ident].tokens // 100), (path, ident)
            count, large = count + 1, large + (tokens > LARGE)
            money, theirs = money + usd, theirs + told[ident].money
    assert count >= LEAST
    assert large >= LEAST // 2
    assert abs(money - theirs) <= theirs / 100
