"""``ctxctl replay --compare``: recorded and simulated side by side, in one pass over the trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ctxctl.analysis.comparison import Comparison
    from ctxctl.cli.only import Only
    from ctxctl.cli.session import Manner
    from ctxctl.model.turnpairs import TurnPair
    from ctxctl.model.whatif import Supposition
    from ctxctl.report.header import Header
    from ctxctl.session import Inspector


def compare(
    inspector: Inspector, how: Manner, supposition: Supposition, chosen: Only, turn: str | None
) -> int:
    """Replay both sides and print them; the exit code.

    Raises UsageError for what is supposed and does not exist.
    """
    from ctxctl.analysis.whatif import WhatIfs
    from ctxctl.cli.session import header, tell_problems, verdict
    from ctxctl.tokens.catalogue.rates import RateBook

    whatifs = WhatIfs(inspector)
    supposed = whatifs.resolve(supposition)
    book = RateBook(how.settings.models)
    comparison = whatifs.compare(supposed, book=book, wanted=chosen.__call__, settle=True)
    head = header(inspector, thread=chosen.thread, turn=turn)
    pairs = _turns(inspector, how, comparison, chosen, turn)
    if how.json:
        _json(how, comparison, head, pairs, lambda: tell_problems(inspector, how))
    else:
        _plain(how, comparison, head, pairs)
    whatifs.close()
    if not how.json:
        tell_problems(inspector, how)
    return verdict(inspector, how)


def _turns(
    inspector: Inspector, how: Manner, comparison: Comparison, chosen: Only, turn: str | None
) -> Iterator[TurnPair]:
    """The turns; an error behind the last if what was asked for is not in the trace."""
    from ctxctl.cli.only import nothing_there

    yield from comparison.turns(how.out.progressed)
    if not comparison.recorded.steps and (turn is not None or chosen.thread is not None):
        raise nothing_there(turn, chosen.thread, inspector.places().spans)


def _plain(how: Manner, comparison: Comparison, head: Header, turns: Iterator[TurnPair]) -> None:
    from ctxctl.report import sidebyside

    out = how.out
    addresses = sidebyside.Addresses()
    rows = [sidebyside.turn_cells(one, addresses.of(one)) for one in turns]
    out.lines([*sidebyside.heading(head, comparison, out.width), ""])
    out.lines(sidebyside.turn_table(rows, out.width, out.paint))
    out.lines(sidebyside.sums(comparison, addresses, out.width, out.paint))


def _json(
    how: Manner, comparison: Comparison, head: Header, turns: Iterator[TurnPair], tell: Callable[[], None]
) -> None:
    from ctxctl.report import sidebyside

    count = 0
    how.out.json(sidebyside.trace(head, comparison))
    how.out.json(sidebyside.supposition(comparison))
    for one in turns:
        count += 1
        how.out.json(sidebyside.turn(one))
    tell()
    how.out.json(sidebyside.summary(comparison, count))
