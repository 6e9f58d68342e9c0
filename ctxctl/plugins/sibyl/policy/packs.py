"""The policy `sibyl`: the limits of the layers, the order of facets, and the budget of the markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, NamedTuple

from msgspec import Meta

from ctxctl.model.fitting import Keeper
from ctxctl.model.recompute import Part, Recomputed, Recorded
from ctxctl.plugins.sibyl.policy.incremental import Packer
from ctxctl.plugins.sibyl.policy.markdown import (
    FIRST,
    RECEIPTS,
    SCOPES,
    Pack,
    Shown,
    Version,
    rendered,
)
from ctxctl.plugins.sibyl.policy.pieces import HEADER, SECTION
from ctxctl.policies.fitting.stepwise import StepwisePolicy

LAYERS: Final = {"wake": 8, "recall": 24, "deep_search": 50}
_HINT: Final = "\n_Hint: "
_BUDGET: Final = "markdown_token_budget"
_DEFAULT_TOKENS: Final = 4000
"""The markdown's budget where a call names none, since 1.2."""
_FIRST_RECEIPT: Final = "sibyl-context-render-v1"
"""Made before procedures stood whole."""


class Sibyl(StepwisePolicy, frozen=True, kw_only=True):
    """Sibyl's context packs: how many items a layer gives, and what of them the markdown has room for.

    Rules of its package `sibyl-core`, 1.2.2 to 1.4.10 (`tools/context.py`, `tools/context_rendering.py`):

    - Selection: at most the call's limit, and never more than its layer gives (wake 8, recall 24, deep search
      50). Items stand by facet; within one, work in progress that was looked up is first, the rest by score.
    - Markdown: four characters a token, 400 at least. Each item may take an equal share of 85 % of them, 280
      characters at least and 1,200 at most; a section up to its share of the items; 50 items in all.
    - Sections: work in progress first where the intent is `build` or `general`, then by their best score
      (recent memory 0.25 more). The first item that has no room ends the markdown, and a line says so; one
      item is always in it. Without a budget: 8 items, 3 of a section, 280 characters each.
      A call that names none has one of 4,000.
    - Since 1.4 a procedure stands whole or not at all, and a pack of no project says so.
    - What retrieval dropped before the pack is returned is not told, and cannot be recomputed.

    Under a supposed limit the rendered items are cut to their share, even where all have room, and the last
    ones leave; what the recorded markdown left out does not come back, for its text is not in the window.
    That is 1.2's way: of 1.4's, procedures passed over and the room that a scope keeps are not modelled.
    """

    name = "sibyl"
    early = True
    limit: Annotated[int, Meta(description="items asked for; 0: as recorded", ge=0)] = 0

    def recompute(self, recorded: Recorded) -> Mapping[str, Recomputed]:
        """Selection, budget and assembly of one pack."""
        if recorded.selection is None or not (recorded.selected or recorded.pieces):
            return {}  # a call that failed
        found = {"selection": self._selection(recorded)}
        told = _told(recorded)
        if recorded.budget is not None:
            found["budget"] = self._budget(recorded, told)
        if told is not None:
            found["assembly"] = _assembly(recorded, told)
        return found

    def keeper(self) -> Keeper:
        """Make a keeper that looks at the pack."""
        return Packer()

    def _selection(self, recorded: Recorded) -> Recomputed:
        native = recorded.budget or {}
        asked = self.limit or native.get("limit")
        layer = str((recorded.selection or {}).get("layer"))
        most = min(max(1, asked), LAYERS.get(layer, asked)) if isinstance(asked, int) else None
        order = [part.item for part in _by_facet(recorded.selected)][:most]
        given = [part.item for part in recorded.selected]
        return Recomputed(order, given, {"limit": asked, "layer": layer, "most": most})

    def _budget(self, recorded: Recorded, told: _Told | None) -> Recomputed:
        native = recorded.budget or {}
        asked, layer = self.limit or native.get("limit"), native.get("layer")
        most = min(max(1, asked), LAYERS.get(str(layer), asked)) if isinstance(asked, int) else None
        expected: dict[str, Any] = {"max_items": most}
        was: dict[str, Any] = {"max_items": recorded.max_items}
        inputs: dict[str, Any] = {"limit": asked, "layer": layer}
        if told is not None:
            names = {name for name, _ in told.shown.pieces}
            expected["dropped"] = sorted(p.item for p in recorded.selected if p.item not in names)
            expected["cut"] = sorted(told.shown.cut)
            was["dropped"], was["cut"] = sorted(recorded.dropped), sorted(recorded.cut)
            inputs["tokens"] = told.tokens
        return Recomputed(expected, was, inputs)


def _by_facet(parts: Sequence[Part]) -> list[Part]:
    """Facets in the order of their first item; within one what was looked up, then by score."""
    first: dict[str, int] = {}
    for part in parts:
        first.setdefault(str(part.native.get("facet")), len(first))

    def rank(part: Part) -> tuple[int, bool, float]:
        meta, score = part.native.get("metadata"), part.native.get("score")
        looked_up = isinstance(meta, dict) and bool(meta.get("active_lookup"))
        value = float(score) if isinstance(score, int | float) and abs(score) < 2**53 else 0.0
        return first[str(part.native.get("facet"))], not looked_up, -value

    return sorted(parts, key=rank)


class _Told(NamedTuple):
    """The markdown of a recorded pack, by the rules and the budget that it was made by."""

    shown: Shown
    tokens: int | None
    version: Version
    same: bool
    """It is what was recorded, byte for byte."""


def _told(recorded: Recorded) -> _Told | None:
    """The markdown of the recorded pack; None where none was recorded, or what it is made of is not known.

    What the record leaves open (a budget that no call names, the version of a pack that was stored without
    its receipt) has few values: the first with which the rules give the recorded markdown is taken.  Where
    none does, it is held against the likeliest; where nobody captured the call, nothing is said.
    """
    pack = _pack(recorded)
    if pack is None:
        return None
    text = [piece.read() for piece in recorded.pieces]
    written = None if None in text else "\n".join(one or "" for one in text)
    versions, budgets = _versions(recorded.selection or {}), _budgets(recorded.budget or {})
    for version in versions:
        for tokens in budgets:
            shown = rendered(pack, tokens, version)
            if shown.text == written:
                return _Told(shown, tokens, version, True)
    if written is None or _BUDGET not in (recorded.budget or {}):
        return None
    return _Told(rendered(pack, budgets[0], versions[0]), budgets[0], versions[0], False)


def _versions(native: Mapping[str, Any]) -> tuple[Version, ...]:
    """Which renderers may have made it."""
    if "scope" in native:
        return (SCOPES,)
    receipt = native.get("receipt")
    if receipt is None:
        return (FIRST, RECEIPTS, SCOPES)
    return (RECEIPTS if receipt != _FIRST_RECEIPT else RECEIPTS._replace(procedures=False),)


def _budgets(native: Mapping[str, Any]) -> tuple[int | None, ...]:
    """Which budgets it may have had; before 1.2 there was none by default."""
    if _BUDGET not in native:
        return (_DEFAULT_TOKENS, None)
    return (native[_BUDGET], None) if _BUDGET in native.get("defaults", ()) else (native[_BUDGET],)


def _pack(recorded: Recorded) -> Pack | None:
    """The recorded pack as it was rendered."""
    if not recorded.pieces or recorded.pieces[0].item != HEADER:
        return None
    if any(part.native.get("facet") is None or part.read() is None for part in recorded.selected):
        return None
    native = recorded.selection or {}
    sections: dict[str, list[Part]] = {}
    for part in recorded.selected:
        sections.setdefault(str(part.native["facet"]), []).append(part)
    titles = {
        piece.item.removeprefix(SECTION): (piece.read() or "").strip().removeprefix("## ")
        for piece in recorded.pieces
        if piece.item.startswith(SECTION)
    }
    total, hint = native.get("total_items"), native.get("usage_hint")
    if hint is None:
        last = recorded.pieces[-1].read() or ""
        hint = last.removeprefix(_HINT)[:-1] if last.startswith(_HINT) else None
    return Pack(
        goal=recorded.query or "",
        intent=str(native.get("intent")),
        layer=str(native.get("layer")),
        query=str(native.get("query")),
        domain=native.get("domain"),
        project=native.get("project"),
        sections=tuple((facet, tuple(parts)) for facet, parts in sections.items()),
        titles={**titles, **_titles(native)},
        total=total if isinstance(total, int) else len(recorded.selected),
        hint=hint,
    )


def _titles(native: Mapping[str, Any]) -> dict[str, str]:
    """Titles of sections by facet, as the pack has them."""
    given = native.get("titles")
    return {k: v for k, v in given.items() if isinstance(v, str)} if isinstance(given, dict) else {}


def _assembly(recorded: Recorded, told: _Told) -> Recomputed:
    """Piece by piece; where the whole text is the same, so are its pieces."""
    was = [[piece.item, piece.read()] for piece in recorded.pieces]
    ours = was if told.same else [[name, text] for name, text in told.shown.pieces]
    inputs = {"tokens": told.tokens, "items": len(recorded.selected), "version": told.version.name}
    return Recomputed(ours, was, inputs)
