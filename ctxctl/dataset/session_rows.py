"""Every session of a dataset with its figures, a row each: what the overview groups, filters and sorts.

A request that several captures hold counts once where sessions are summed up (the view `copies`), so a row
has its session's own figures and, beside them, the part of them that counts in another capture.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from ctxctl.dataset.duck import Asked
from ctxctl.dataset.questions import tables_of
from ctxctl.dataset.session_values import Figures, Places, SessionRow, SessionRows
from ctxctl.model.addresses import prefix

if TYPE_CHECKING:
    from ctxctl.dataset.opening import OpenDataset

MOST_SESSIONS: Final = 100_000
"""Sessions that are held at once, the newest."""


def session_tables() -> set[str]:
    """The tables that `session_rows` reads."""
    return tables_of(_sql()) | {"sessions"}


def session_rows(opened: OpenDataset, most: int = MOST_SESSIONS) -> SessionRows:
    """The newest sessions of a version that was opened with `session_tables`.  Raises as `Asked` does."""
    with Asked(opened.files) as asked:
        found = asked.select(_sql(), {}, most)
        total = int(asked.select("SELECT count(DISTINCT session) FROM sessions", {}).rows[0][0])
    return SessionRows(opened.place, opened.version, tuple(map(_row, found.rows)), total, found.more)


@cache
def _sql() -> str:
    return (files(__package__) / "session_rows.sql").read_text("utf-8")


_TEXTS: Final = ("name", "title", "project", "branch", "client", "client_version", "model", "format")
_FACTS: Final = 15
_OWN: Final = 14
_COPIED: Final = (
    "requests",
    "sent",
    "unbilled",
    "read",
    "read_of",
    "usd",
    "unpriced",
    "least",
    "counted",
    "misses",
    "compactions",
)


def _row(found: tuple[Any, ...]) -> SessionRow:
    started, turns, labels, path, sessions = found[10:_FACTS]
    copies_at = _FACTS + _OWN
    places_at = copies_at + len(_COPIED)
    copied = {
        name: value
        for name, one in zip(_COPIED, found[copies_at:places_at], strict=True)
        if (value := _plain(one)) is not None
    }
    return SessionRow(
        key=f"{found[0]:016x}", source=f"{found[1]:016x}", started=started, turns=turns,
        labels=tuple(sorted((labels or {}).items())), path=path, sessions=sessions,
        own=Figures(*map(_plain, found[_FACTS:copies_at])), copied=Figures(**copied),
        places=Places(*map(_address, found[places_at:])),
        **dict(zip(_TEXTS, found[2:10], strict=True)),
    )  # fmt: skip


def _plain(value: Any) -> Any:
    """Sums of integers come as ones of any size."""
    return value if value is None or isinstance(value, float) else int(value)


def _address(place: Any) -> str | None:
    return None if place is None else f"{prefix(place['thread'])}{place['turn']}.{place['step']}"
