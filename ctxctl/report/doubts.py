"""Bills that cannot be true, in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from ctxctl.labels import APPROXIMATE, plural
from ctxctl.model.money import BILL_PARTS

if TYPE_CHECKING:
    from ctxctl.analysis.costs import DoubtedSums
    from ctxctl.model.results import Doubt

_WHY: Final = {
    "zero": "nothing is billed for it",
    "below_content": "the trace holds more of it",
    "repeated": "the same to the token as the last one, though the window changed",
}


def marked(text: str, is_counted: bool) -> str:
    """A figure, with the mark before it where part of it is as counted."""
    return f"{APPROXIMATE}{text}" if is_counted else text


def doubt_text(doubt: Doubt) -> str:
    """One doubt as a clause."""
    why = _WHY.get(doubt.why, doubt.why)
    return f"{doubt.part} of {doubt.reported:,} cannot be true ({why}): {doubt.counted:,} counted"


def doubted_lines(sums: DoubtedSums) -> Iterator[str]:
    """A sentence for each part of the bills that cannot be true."""
    for part in reversed(BILL_PARTS):
        told = sums.parts.get(part)
        if told is not None:
            yield (
                f"{part} of {plural(told.requests, 'request')} cannot be true: {told.reported:,} reported, "
                f"{told.counted:,} counted; priced as counted"
            )
    if sums.repeated:
        yield (
            f"input of {plural(sums.repeated, 'request')} is billed as that of the request before, to the "
            "token, though the window changed; priced as billed"
        )
