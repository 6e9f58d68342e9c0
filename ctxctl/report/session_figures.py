"""The figures of sessions of a dataset, in words: the columns that the UI's overview and the page share."""

from __future__ import annotations

from decimal import Decimal
from typing import Final, NamedTuple

from ctxctl.dataset.session_groups import By
from ctxctl.dataset.session_values import Figures
from ctxctl.wording import APPROXIMATE, AT_LEAST, NOT_KNOWN, cost_text, number, share, short

NOT_RECORDED: Final = "not recorded"
"""A project, client or time that no capture says."""


class FigureColumn(NamedTuple):
    """A column of figures."""

    name: str
    """What it is sorted by."""
    title: str
    says: str
    """What a figure is, in a sentence without a full stop."""


COLUMNS: Final = (
    FigureColumn("requests", "requests", "requests to a model, each once over all captures"),
    FigureColumn("sent", "sent", f"tokens sent; {APPROXIMATE}: some requests have no bill"),
    FigureColumn(
        "window", "window",
        f"share of its limit that the fullest request sent; {AT_LEAST}: some have no known limit",
    ),
    FigureColumn("read", "read", "share of the tokens sent that was read from a cache, if billed so"),
    FigureColumn(
        "misses", "misses",
        f"requests that missed the cache, unexplained by a recorded change; {AT_LEAST}: some sessions have no"
        " cache figures",
    ),
    FigureColumn("compactions", "compactions", "requests before which a compaction removed items"),
    FigureColumn(
        "cost", "cost",
        f"list price; {APPROXIMATE}: some requests have no bill, or a partial output; {AT_LEAST}:"
        " the size or price of some is not known",
    ),
)  # fmt: skip
GROUPED: Final[dict[By, str]] = {
    "project": "project", "client": "client", "week": "week of", "session": "session",
}  # fmt: skip
"""The title of the column that names what sessions are grouped by."""


def figure_words(figures: Figures) -> dict[str, str]:
    """What the columns say, by name; what nothing says is `-`."""
    read, filled = figure_value(figures, "read"), figure_value(figures, "window")
    return {
        "requests": number(figures.requests),
        "sent": sent_words(figures),
        "window": _known(None if filled is None else share(filled), figures.unlimited),
        "read": NOT_KNOWN if read is None else share(read),
        "misses": _known(None if figures.misses is None else number(figures.misses), figures.unread),
        "compactions": number(figures.compactions),
        "cost": cost_words(figures),
    }  # fmt: skip


def sent_words(figures: Figures) -> str:
    """Tokens that were sent; `-` where no request was, or of none a size is known."""
    if not figures.requests or not _is_sized(figures):
        return NOT_KNOWN
    return f"{APPROXIMATE if figures.unbilled else ''}{short(figures.sent)}"


def cost_words(figures: Figures) -> str:
    """What it cost; `-` where nothing has a price."""
    usd = None if figures.usd is None else Decimal(repr(figures.usd))
    return cost_text(usd, counted=bool(figures.counted), least=bool(figures.unpriced or figures.least))


def figure_value(figures: Figures, name: str) -> float | None:
    """What a column is sorted by; None comes last."""
    if name == "read":
        return None if figures.read is None or not figures.read_of else figures.read / figures.read_of
    if name in ("sent", "window") and not _is_sized(figures):
        return None
    value: float | None = {
        "requests": figures.requests, "sent": figures.sent, "window": figures.filled,
        "misses": figures.misses, "compactions": figures.compactions, "cost": figures.usd,
    }[name]  # fmt: skip
    return value


def _is_sized(figures: Figures) -> bool:
    """Whether a size is known of any request: each holds something, so that 0 unbilled was not counted."""
    return figures.sent > 0 or figures.unbilled < max(figures.requests, 1)


def _known(text: str | None, missing: int) -> str:
    if text is None:
        return NOT_KNOWN
    return f"{AT_LEAST}{text}" if missing else text
