"""How large a request was and how large it might be, in the words that all sentences share.

A size is never told without how it is known (DESIGN section 3, the true window): "40,831 billed",
"about 41,000 expected (±320)", "the 845 that are recorded".  A limit that no record says names who does:
"200,000 (from the model table)".
"""

from __future__ import annotations

from typing import Final

from ctxctl.model.results import Window
from ctxctl.model.vocab import LimitSource, UsedMethod
from ctxctl.wording import LIMIT_SOURCES, number, plural

_DIGITS: Final = 3
"""Digits of an expected size that mean something."""
NOT_KNOWN: Final = "what was sent besides them is not known"
"""Of a request that nothing was billed for, and of whose thread nothing was billed before."""


def rounded_size(tokens: int) -> int:
    """A size that is not known to the token, in three digits: for a sentence that says it alone.

    In a row of figures that add up it keeps its digits (`report.sent.size`).
    """
    scale: int = 10 ** max(0, len(str(abs(tokens))) - _DIGITS)
    return (abs(tokens) + scale // 2) // scale * scale * (1 if tokens >= 0 else -1)


def sent_words(used: int, method: UsedMethod, unrecorded: int | None, error: int | None = None) -> str:
    """What was sent, as it stands behind "of": a number of tokens and how it is known."""
    if method == "reported":
        return f"{used:,} billed"
    if method == "recorded" and unrecorded is None:
        return f"the {used:,} that are recorded"
    return f"about {rounded_size(used):,} expected" + (
        "" if error is None else f" (±{rounded_size(error):,})"
    )


def is_unsized(window: Window) -> bool:
    """Whether nothing tells its size: nobody billed it, and of what is recorded nothing could be counted."""
    return window.used_method == "recorded" and not window.used and window.uncounted > 0


def sent_of(window: Window) -> str:
    """The same of a step's window; of one of which nothing could be counted, how many items it has."""
    if is_unsized(window):
        return f"the {plural(window.uncounted, 'item')} of unknown size"
    return sent_words(window.used, window.used_method, window.unrecorded, window.used_error)


def only_recorded(method: UsedMethod, unrecorded: int | None) -> bool:
    """Whether the size is that of the record alone, so that shares of it are at most what they seem."""
    return method == "recorded" and unrecorded is None


def limit_words(tokens: int, source: LimitSource | None) -> str:
    """A limit, and who says so where that is no budget record of the trace."""
    if source is None or source == "recorded":
        return number(tokens)
    return f"{number(tokens)} ({LIMIT_SOURCES[source]})"
