"""``--oneline``: a line for each turn, step, change or stretch of a life, made for grep, cut and awk.

Fields are parted by tabs and always in the same columns; one that is empty or not known is a dash, numbers
are plain digits.  An address comes first, as a shell takes it.  On a terminal a line is as wide as that, at
most (`in_width`); anywhere else nothing is cut.
"""

from __future__ import annotations

import re
from typing import Final

from ctxctl.analysis.turn_sums import TurnSum
from ctxctl.engine.sizes.prefix import breaks_cache
from ctxctl.item_names import ItemNames, shortened_path
from ctxctl.model.addresses import prefix
from ctxctl.model.outline import Life
from ctxctl.model.results import Change, Step, Window
from ctxctl.report.bill_notes import turn_cost
from ctxctl.report.changes import short_version, tokens_text
from ctxctl.text import cells, clip, pasted, preview, visible
from ctxctl.wording import NOT_KNOWN, share

_NAME: Final = re.compile(r"[/\\]")
_TITLE = 400
"""Cells of a prompt's first words."""


_LEAST: Final = 8
"""Cells of a last field that is cut, at least."""


def in_width(line: str, width: int) -> str:
    """A line for a terminal: of an address that takes more than a third of it the end, of the last field the
    beginning.  A line that fits is as it was.
    """
    if cells(line.expandtabs()) <= width:
        return line
    address, _, rest = line.partition("\t")
    least = cells(_NAME.split(address)[-1]) + 2
    line = f"{shortened_path(address, max(width // 3, least))}\t{rest}"
    first, tab, last = line.rpartition("\t")
    room = width - cells(f"{first}{tab}".expandtabs())
    return f"{first}{tab}{clip(last, max(room, _LEAST))}"


def turn_line(path: str, row: TurnSum, *, several: bool) -> str:
    """Address, steps, tokens sent by the last one, their share of the cap, how they are known, new, freed,
    cost, what happened, prompt.
    """
    window = row.window
    assert window is not None
    marks = [("compactions", len(row.compactions)), ("breaks", row.breaks), ("misses", row.misses)]
    marks += [("over", row.over), *row.flags.items()]
    return _line(
        _address(path, row.session if several else None, row.thread, str(row.turn)), str(row.steps),
        *_sent(window), f"+{row.new}", f"-{row.freed}", turn_cost(row), _named(marks),
        preview(row.title or "", _TITLE),
    )  # fmt: skip


def step_line(path: str, step: Step, *, several: bool) -> str:
    """Address, tokens sent, their share of the cap, how they are known, new, freed, what happened, model."""
    marks = [(flag, 1) for flag in step.flags]
    marks += [("breaks", 1)] * breaks_cache(step) + [("misses", 1)] * (step.cache.miss is not None)
    marks += [("over", 1)] * bool(step.window.over)
    at = _address(path, step.session if several else None, step.thread, f"{step.turn}.{step.step}")
    ledger = step.ledger
    return _line(
        at,
        *_sent(step.window),
        f"+{ledger.new}",
        f"-{ledger.freed}",
        _named(marks),
        visible(step.model or ""),
    )


def change_line(change: Change, names: ItemNames) -> str:
    """Status, kind, tokens of the version, new, freed, cause, id, name."""
    return _line(
        visible(change.status), visible(change.kind), tokens_text(change).replace(",", ""), f"+{change.new}",
        f"-{change.freed}", visible(change.cause or ""), pasted(change.item),
        names.of(change.item, change.title),
    )  # fmt: skip


def life_line(path: str, first: Life, last: Life, *, several: bool) -> str:
    """Address, last step of the stretch, status, tokens, version, cause, reason, the summary it went into."""
    session = first.session if several else None
    return _line(
        _address(path, session, first.thread, f"{first.turn}.{first.step}"), f"{last.turn}.{last.step}",
        visible(first.status), "" if last.tokens is None else str(last.tokens),
        short_version(last.version) if last.version else "",
        visible(first.cause or ""), visible(first.reason or ""), pasted(first.into) if first.into else "",
    )  # fmt: skip


def _line(*fields: str) -> str:
    return "\t".join(field or NOT_KNOWN for field in fields)


def _address(path: str, session: str | None, thread: str, place: str) -> str:
    return pasted(f"{path}@{prefix(thread, session)}{place}")


def _sent(window: Window) -> tuple[str, str, str]:
    """Tokens sent, their share of the cap, and how they are known: `reported` by a bill, or `expected`; where
    only content is known they are not.
    """
    if window.used_method == "recorded":
        return NOT_KNOWN, NOT_KNOWN, window.used_method
    full = share(window.used, window.cap) if window.cap else NOT_KNOWN
    return str(window.used), full, window.used_method


def _named(marks: list[tuple[str, int]]) -> str:
    """``compactions=1,breaks=2``"""
    return ",".join(f"{visible(name)}={times}" for name, times in marks if times)
