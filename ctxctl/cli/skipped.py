"""A frame's changes with the skipped items among them, for commands that show one frame."""

from __future__ import annotations

from collections.abc import Iterable

from ctxctl.model.results import Change, Placement


def listed(changes: Iterable[Change], frame: Iterable[Placement]) -> tuple[Change, ...]:
    """The changes with a `skipped` one for every other item that is current in the frame."""
    placements = list(frame)
    present = {c.item: c for c in changes if c.status in ("added", "updated", "skipped")}
    held: dict[str, int] = {}
    stale: set[str] = set()
    for p in placements:
        held[p.item] = held.get(p.item, 0) + p.tokens
        if p.stale:
            stale.add(p.item)
    ordered: dict[str, Change] = {}
    for p in placements:
        if not p.stale and p.item not in ordered:
            ordered[p.item] = present.get(p.item) or _skipped(p, held[p.item], p.item in stale)
    rest = [c for c in changes if c.item not in ordered]
    return (*ordered.values(), *rest)


def _skipped(p: Placement, held: int, stale: bool) -> Change:
    flags = ("stale",) * stale + ("derived-identity",) * p.derived + ("carried-in",) * p.carried
    return Change(
        status="skipped", item=p.item, kind=p.kind, title=p.title, version=p.version,
        previous_version=p.version, tokens=p.tokens, in_window=held, new=0, freed=0, cause=None,
        reason=None, into=None, flags=flags, source=p.source,
        provenance="simulated" if p.simulated else "derived" if p.derived else "native", line=p.line,
    )  # fmt: skip
