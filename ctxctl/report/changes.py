"""The changes between two frames as a table grouped by status."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ctxctl.model.results import Change, Counts
from ctxctl.model.vocab import STATUSES
from ctxctl.report.paint import Paint
from ctxctl.report.tables import Column, number, table
from ctxctl.text import preview, visible

SIGNS = {"added": "+", "updated": "~", "removed": "-", "skipped": "=", "omitted": "!"}
_IMPLIED = {"derived-identity", "carried-in"}
_COLUMNS = (
    Column("status"),
    Column("item", least=12),
    Column("title", least=10),
    Column("window", right=True),
    Column("new", right=True),
    Column("freed", right=True),
    Column("cause", least=12),
)


def counts_line(counts: Counts) -> str:
    """``+1 added  ~0 updated  -0 removed  =2 skipped  !0 omitted``."""
    return "  ".join(f"{SIGNS[s]}{getattr(counts, s):,} {s}" for s in STATUSES)


def short(version: str | None) -> str:
    """A version short enough to be read beside another; `?` where there is none."""
    if version is None:
        return "?"
    return visible(version if len(version) <= 12 else version[:8])


def why(change: Change) -> str:
    """Cause, reason, versions and flags of one change, in words."""
    said = []
    if change.status == "updated" and change.previous_version != change.version:
        said.append(f"{short(change.previous_version)} -> {short(change.version)}")
    if change.cause and not (change.status == "omitted" and change.cause == "omitted" and change.reason):
        said.append(visible(change.cause))
    if change.reason:
        reason = visible(change.reason)
        said.append(reason if change.status == "omitted" else f"({reason})")
    if change.into:
        said.append(f"into {visible(change.into)}")
    if "carried-in" in change.flags:
        said.append("carried in")
    said += [f"[{visible(flag)}]" for flag in change.flags if flag not in _IMPLIED]
    if change.provenance != "native":
        said.append(f"[{change.provenance}]")
    return " ".join(said)


def rows(changes: Iterable[Change], *, skipped: bool = False) -> list[Change]:
    """The changes grouped by status, in the order of `STATUSES`; skipped ones only if asked for."""
    wanted = [s for s in STATUSES if skipped or s != "skipped"]
    return sorted((c for c in changes if c.status in wanted), key=lambda c: STATUSES.index(c.status))


def changes_table(changes: Sequence[Change], width: int, paint: Paint, *, indent: int) -> Iterator[str]:
    """Head line and one line a change; nothing for no changes."""
    if not changes:
        return
    body = [
        (
            f"{SIGNS[c.status]} {c.status}",
            visible(c.item),
            preview(c.title, 60) if c.title and c.title != c.item else "",
            number(c.in_window),
            number(c.new),
            number(c.freed),
            why(c),
        )
        for c in changes
    ]
    lines = table(_COLUMNS, body, width - indent)
    margin = " " * indent
    yield margin + paint("dim", next(lines))
    for change, line in zip(changes, lines, strict=True):
        end = len(change.status) + 2
        yield margin + paint(change.status, line[:end]) + line[end:]
