"""How large a request was, and the sign of how that is known.  Plain Python."""

from __future__ import annotations

from typing import Final

from ctxctl.model.results import Window
from ctxctl.model.vocab import UsedMethod
from ctxctl.text import preview
from ctxctl.wording import APPROXIMATE, number, share, short

EXPECTED: Final = APPROXIMATE
"""In front of a size that nobody billed, but that follows from the last bill or the API's rules."""
RECORDED: Final = "r"
"""In front of a size of what is recorded, in a list of sizes that were sent."""
NOTHING_KNOWN: Final = "what was sent is not known"
COMPACTS: Final = "┆"
"""In the bar: where the runtime compacts by itself."""


def method_of(window: Window) -> UsedMethod:
    """How a window's size is known; a what-if's with what was not recorded of the last bill is expected."""
    if window.used_method == "recorded" and window.unrecorded is not None:
        return "expected"
    return window.used_method


def is_unknown(used: int, uncounted: int, method: UsedMethod) -> bool:
    """Whether nothing at all is known of a size: nothing was billed, and nothing that is recorded counted."""
    return not used and uncounted > 0 and method == "recorded"


def share_of(window: Window, full: int) -> str | None:
    """How full a window is; None where nothing, or nearly nothing, of what was sent is known."""
    if method_of(window) == "recorded" and window.used * 2000 < full:
        return None  # at least under a tenth of a per cent: that says nothing
    return share(window.used, full)


def amount(tokens: int, method: UsedMethod, *, brief: bool = False, content: bool = True) -> str:
    """A size with the sign of how it is known; `content`: those of what is recorded stand among sizes that
    were sent, and need one."""
    sign = EXPECTED if method == "expected" else RECORDED if content and method == "recorded" else ""
    return sign + (short if brief else number)(tokens)


def capacity_of(window: Window) -> int | None:
    """What a request may hold: the cap, else the window."""
    return window.limit if window.cap is None else window.cap


def compaction_phrase(tokens: int, source: str | None) -> str:
    """Where a runtime compacts by itself, and which one; the rule itself is told with the stages."""
    said = f"compacts at {number(tokens)}"
    return f"{said} ({preview(source.partition(':')[0], 40)})" if source else said
