"""Words, signs, numbers, money, shares and plurals: the one place that decides how a view words a value.

Every view (text, HTML, Markdown, findings, the command line, the UI) takes its wording from here, so that the
same value reads the same wherever it is met.  Where a column is narrow, the narrow form is here too.
`tests/guards/test_one_wording.py` finds a second formatter.  The script of the HTML report mirrors
the functions that it needs (``report/html/assets/base.js``) and gets the tables from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from typing import Any, Final

from ctxctl.kinds import brief_kind as brief_kind
from ctxctl.kinds import short_kind as short_kind

MINUS: Final = "\u2212"
"""The sign of what is below zero or was taken away; as wide as a plus."""
NOT_KNOWN: Final = "-"
"""Stands for a figure that nobody knows."""

# Signs ------------------------------------------------------------------------------------------------------

SIGNS: Final[Mapping[str, str]] = {
    "added": "+",
    "updated": "~",
    "removed": MINUS,
    "skipped": "=",
    "omitted": "∅",
}
"""What the status of a change looks like without colour."""
COMPACTION: Final = "◇"
BREAK: Final = "↯"
"""A request that shares less than nine tenths of the one before with a prompt cache."""
FINDING: Final = "⚑"
WARNING: Final = "!"
WRITTEN: Final = "…"
"""A step that is still being written."""
APPROXIMATE: Final = "≈"
"""Precedes a figure that nobody billed, or in which an output is as counted."""
AT_LEAST: Final = "≥"
"""Precedes a sum that leaves out something of unknown price or size."""
AT_MOST: Final = "≤"
STATED: Final = "†"
"""Follows a cost that the runtime states, where no request has a bill of its own, or a known price."""

# Names ------------------------------------------------------------------------------------------------------

LIMIT_SOURCES: Final[Mapping[str, str]] = {
    "recorded": "recorded",
    "runtime": "said by the client",
    "client": "the client's own",
    "catalogue": "from the model table",
    "supposed": "supposed",
}
"""Who says a limit, in words."""
FLAGS: Final[Mapping[str, str]] = {
    "unrecorded_cut": "cut without a record",
    "still_over_budget": "over budget after all cuts",
    "unknown_base": "built on an assembly that is not known",
}
"""Flags whose names do not say enough; the others read as they are."""
UNCHANGED: Final[Mapping[str, str]] = {"window": "unchanged, sent again", "append": "not sent"}
"""What became of an item whose status is `skipped`, in words, by `Mode`: a window is sent whole each time."""
KNOWN_BY: Final[Mapping[str, str]] = {
    "reported": "billed",
    "expected": "expected, not billed",
    "recorded": "only what is recorded: no bill was read",
}
"""How the size of a request is known, in words, by `UsedMethod`."""


def flag_words(flag: str) -> str:
    """A flag of a step or a change for people."""
    return FLAGS.get(flag, flag.replace("_", " "))


def step_name(turn: int, step: int) -> str:
    """A step as short as it can be: `3` for the first of a turn, else `3.2`."""
    return str(turn) if step == 1 else f"{turn}.{step}"


# Numbers ----------------------------------------------------------------------------------------------------


def number(n: int | None) -> str:
    """With thousands separated: `41,204`; `-` where it is not known."""
    return NOT_KNOWN if n is None else f"{n:,}".replace("-", MINUS)


def short(n: int) -> str:
    """At most five characters up to a hundred million: `812`, `41.2k`, `1.3M`; cut, never rounded up."""
    size = abs(n)
    sign = MINUS if n < 0 else ""
    for unit, letter in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if size >= unit:
            whole, tenths = divmod(size * 10 // unit, 10)
            return f"{sign}{whole}{letter}" if whole >= 100 else f"{sign}{whole}.{tenths}{letter}"
    return f"{sign}{size}"


def mean(value: float) -> str:
    """A mean or a rate: with one digit below a hundred, `12.3`, else whole: `1,204`."""
    return number(round(value)) if abs(value) >= 100 else f"{value:.1f}".replace("-", MINUS)


def signed(n: int, *, brief: bool = False) -> str:
    """With its sign, also a plus: `+946`; 0 is `0`.  `brief` is the form of `short`."""
    text = short(n) if brief else number(n)
    return f"+{text}" if n > 0 else text


def file_size(count: int) -> str:
    """A size on disk, in powers of 1024: `812 B`, `26.1 MiB`."""
    size, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 999.5:
            break
        size, unit = size / 1024, larger
    return f"{count} B" if unit == "B" else f"{size:.3g} {unit}"


def plural(n: int, one: str, many: str | None = None) -> str:
    """A number of things: `1 step`, `2 steps`; `many` where an s at the end does not do."""
    return f"{number(n)} {noun(n, one, many)}"


def unshown(named: int) -> str:
    """What a compaction took that names so many items, where no request was sent after it."""
    if not named:
        return "what it took is not recorded"
    return f"{plural(named, 'item')} went; no later request shows it"


def noun(n: int, one: str, many: str | None = None) -> str:
    """The word alone, as it stands behind a number of them."""
    return one if n == 1 else many or one + "s"


def duration(seconds: float) -> str:
    """A length of time in its largest unit: `8 s`, `4.5 min`, `12 h`, `3 d`."""
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            amount = f"{seconds / size:.1f}" if seconds < 10 * size else f"{seconds / size:.0f}"
            return f"{amount.removesuffix('.0')} {unit}"
    return f"{seconds:.0f} s"


def methods(by_method: dict[str, int]) -> str:
    """The counting methods of a sum, the largest first: `exact:o200k_base + declared`."""
    found: list[str] = sorted(by_method, key=lambda m: (-by_method[m], m))
    if len(found) > 2:
        return f"{found[0]} + {len(found) - 1} more"
    return " + ".join(found)


# Shares -----------------------------------------------------------------------------------------------------

_TENTH: Final = Decimal("0.1")


def share(part: float | Decimal, whole: float | Decimal = 1, *, fine: bool = False) -> str:
    """A part of a whole in per cent: `14%`, and with one digit below ten `1.5%`; `-` of nothing.

    What is there is never told as none (`under 0.1%`), and nothing but the whole as the whole: 99.96 % is
    `99.9%`, 100.04 % `100.1%`.

    Args:
        part: Of the same unit as `whole`.
        whole: What 100 % is.
        fine: Keep one digit also from ten per cent on: for columns whose shares add up, and for the border
            that a query such as `window>80%` is about.
    """
    return _per_cent(part, whole, fine=fine) if whole else NOT_KNOWN


def signed_share(part: float | Decimal, whole: float | Decimal = 1) -> str:
    """A change as a part of what was before, with its sign and one digit: `+4.9%`; no change is `0%`."""
    return _per_cent(part, whole, fine=True, plus="+") if whole else NOT_KNOWN


def _per_cent(part: float | Decimal, whole: float | Decimal, *, fine: bool, plus: str = "") -> str:
    value = Decimal(100 * part / whole)  # type: ignore[operator]  # both of one kind
    if not value:
        return "0%"
    size, sign = abs(value), MINUS if value < 0 else plus
    if size < _TENTH / 2:
        return f"{'above' if value < 0 else 'under'} {sign}0.1%"
    rounded = size.quantize(_TENTH, ROUND_HALF_UP)
    if rounded >= 10 and not fine:
        rounded = size.quantize(Decimal(1), ROUND_HALF_UP)
    if rounded == 100 != size:
        rounded = size.quantize(_TENTH, ROUND_HALF_UP)
    if rounded == 100 != size:
        rounded += _TENTH if size > 100 else -_TENTH
    return f"{sign}{rounded:,f}%"


def error_share(part: float) -> str:
    """How far a prediction was off, in per cent: `0.42%`, `3.10%`, `14%`.

    Two digits below ten, as two fits differ in the second one.
    """
    value = 100 * part
    return f"{value:.2f}%" if value < 10 else f"{value:,.0f}%"


def progress(part: float) -> str:
    """How far something has come, `part` from 0 to 1: whole per cent, and `100%` only at the end."""
    return f"{int(100 * part)}%"


def given_share(part: float) -> str:
    """A share that somebody set, with the digits that they gave it: `5%`, `12.5%`."""
    return f"{100 * part:g}%"


# Money ------------------------------------------------------------------------------------------------------

_CENTIMILLE: Final = Decimal("0.0001")


def dollars(amount: Decimal | None, *, signed: bool = False, bare: bool = False) -> str:
    """US dollars to a hundredth of a cent: `$1,204.0310`; `-` where nobody knows.

    Money that is there is never told as none: less than a hundredth of a cent is `under $0.0001`.

    Args:
        amount: US dollars.
        signed: With its sign, also a plus: a difference.
        bare: Without the dollar sign, for a narrow column whose title has it; tiny amounts are `<0.0001`.
    """
    if amount is None:
        return NOT_KNOWN
    unit = "" if bare else "$"
    sign = MINUS if amount < 0 else "+" if signed and amount else ""
    if amount and abs(amount) < _CENTIMILLE:
        least = f"{sign}{unit}{_CENTIMILLE}"
        if bare:
            return f"{'>' if amount < 0 else '<'}{least}"
        return f"{'above' if amount < 0 else 'under'} {least}"
    return f"{sign}{unit}{abs(amount).quantize(_CENTIMILLE, ROUND_HALF_UP):,f}"


def cost_text(cost: Decimal | None, *, counted: bool, least: bool) -> str:
    """What requests cost, with the sign of how it is known, in every view; `-` where nobody knows.

    Args:
        cost: US dollars, as far as they are known.
        counted: A part of it nobody billed, or a client logged an output too early: it is an estimate.
        least: Something that was sent or answered is not in it.  Then how the rest is known matters less.
    """
    if cost is None:
        return NOT_KNOWN
    if least and 0 < cost < _CENTIMILLE:  # its first digit, because "at least under" says nothing
        return f"{AT_LEAST}${cost.quantize(Decimal(1).scaleb(cost.adjusted()), ROUND_DOWN):f}"
    return f"{AT_LEAST if least else APPROXIMATE if counted else ''}{dollars(cost)}"


def stated_text(usd: Decimal, *, priced: bool, least: bool = False) -> str:
    """A cost that the runtime states; `priced`: a part of it is the table's price for stated tokens."""
    return f"{cost_text(usd, counted=priced, least=least)}{STATED}"


def exact(value: Decimal) -> str:
    """A figure with the digits that it was stored with: `41,204`, `0.0125`; for one compared to the digit."""
    return f"{value:,f}".replace("-", MINUS)


def price(amount: float | Decimal, *, bare: bool = False) -> str:
    """A price or a limit that somebody set, with the digits that they gave it: `$0.3`, `$15`."""
    text = f"{amount.normalize():,f}" if isinstance(amount, Decimal) else f"{amount:g}"
    return text if bare else f"${text}"


def tables() -> dict[str, Any]:
    """The tables that the HTML report's script words values by, as JSON values."""
    marks = {"compaction": COMPACTION, "cacheBreak": BREAK, "warning": WARNING}
    return {**marks, "signs": SIGNS, "limits": LIMIT_SOURCES, "knownBy": list(KNOWN_BY.values())}
