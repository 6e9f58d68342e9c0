"""The policy `sibyl`: the limits of the layers, the order of facets, and the budget of the markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from ctxctl.model.fitting import Candidate, Drop, Fit, Keeper, Moves, Outcome, Room, Seat, Swap, Verdict
from ctxctl.model.recompute import Part, Recomputed, Recorded
from ctxctl.policies.fitting.units import size
from ctxctl.policies.sibyl.markdown import Pack, Shown, compact, rendered, sizes, trailer

LAYERS: Final = {"wake": 8, "recall": 24, "deep_search": 50}
_KIND: Final = "durable_memory"
_SECTION: Final = "pack/section/"
_TRAILER: Final = "pack/trailer"
_MEMORY: Final = "  - Memory: "
_HINT: Final = "\n_Hint: "


class Sibyl(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Sibyl's context packs: how many items a layer gives, and what of them the markdown has room for.

    Rules of Sibyl 1.2.2 (`tools/context.py`, `tools/context_rendering.py`):

    - Selection: at most the call's limit, and never more than its layer gives (wake 8, recall 24, deep search
      50). Items stand by facet; within one, work in progress that was looked up is first, the rest by score.
    - Markdown: four characters a token, 400 at least. Each item may take an equal share of 85 % of them, 280
      characters at least and 1,200 at most; a section up to its share of the items; 50 items in all.
    - Sections: work in progress first where the intent is `build` or `general`, then by their best score
      (recent memory 0.25 more). The first item that has no room ends the markdown, and a line says so; one
      item is always in it. Without a budget: 8 items, 3 of a section, 280 characters each.
    - What retrieval dropped before the pack is returned is not told, and cannot be recomputed.

    Under a supposed limit the rendered items are cut to their share, and the last ones leave; what the
    recorded markdown left out does not come back, for its text is not in the window.
    """

    name = "sibyl"
    limit: Annotated[int, Meta(description="items asked for; 0: as recorded", ge=0)] = 0

    def recompute(self, recorded: Recorded) -> Mapping[str, Recomputed]:
        """Selection, budget and assembly of one pack."""
        if recorded.selection is None or not recorded.selected:
            return {}
        found = {"selection": self._selection(recorded)}
        shown = _shown(recorded)
        if recorded.budget is not None:
            found["budget"] = self._budget(recorded, shown)
        if shown is not None:
            found["assembly"] = _assembly(recorded, shown)
        return found

    def fit(self, candidates: Sequence[Candidate], room: Room, state: Any) -> Fit:
        """Linear in the candidates and their texts."""
        items = [at for at, c in enumerate(candidates) if c.kind == _KIND]
        sections = {c.segment for c in candidates if c.kind == _KIND}
        limit = sizes(room.cap, len(items), len(sections))
        assert limit.chars is not None
        pack = [*items, *_header(candidates), *_headings(candidates)]
        if not items or sum(candidates[at].chars + 1 for at in pack) <= limit.chars:
            # By characters, as Sibyl has it.
            return Fit("fits" if size(candidates) <= room.cap else "still_over")
        texts = {at: _shortened(candidates[at].read(), limit.content) for at in items}
        used = sum(candidates[at].chars + 1 for at in _header(candidates))
        kept: list[int] = []
        heads: dict[int, int] = {}
        heading: int | None = None
        for at, candidate in enumerate(candidates):
            if candidate.item.startswith(_SECTION):
                heading = at
            elif candidate.kind == _KIND:
                new = heading is not None and heading not in heads.values()
                text = texts[at]
                block = (candidate.chars if text is None else len(text)) + 1
                block += candidates[heading].chars + 1 if new and heading is not None else 0
                if kept and used + block > limit.chars:
                    break
                if heading is not None:
                    heads[at] = heading
                kept.append(at)
                used += block
        gone = set(items).difference(kept)
        swaps = {at: text for at in kept if (text := texts[at]) not in (None, candidates[at].read())}
        if gone:
            empty = set(_headings(candidates)).difference(heads.values())
            gone |= empty
            swaps |= {at: trailer(room.cap) for at, c in enumerate(candidates) if c.item == _TRAILER}
        return _fit(candidates, gone, swaps, room)

    def keeper(self) -> Keeper:
        """The same from step to step."""
        return _Packer(self)

    def _selection(self, recorded: Recorded) -> Recomputed:
        native = recorded.budget or {}
        asked = self.limit or native.get("limit")
        layer = str((recorded.selection or {}).get("layer"))
        most = min(max(1, asked), LAYERS.get(layer, asked)) if isinstance(asked, int) else None
        order = [part.item for part in _by_facet(recorded.selected)][:most]
        given = [part.item for part in recorded.selected]
        return Recomputed(order, given, {"limit": asked, "layer": layer, "most": most})

    def _budget(self, recorded: Recorded, shown: Shown | None) -> Recomputed:
        native = recorded.budget or {}
        asked, layer = self.limit or native.get("limit"), native.get("layer")
        most = min(max(1, asked), LAYERS.get(str(layer), asked)) if isinstance(asked, int) else None
        expected: dict[str, Any] = {"max_items": most}
        told: dict[str, Any] = {"max_items": recorded.max_items}
        if shown is not None:
            names = {name for name, _ in shown.pieces}
            expected["dropped"] = sorted(p.item for p in recorded.selected if p.item not in names)
            expected["cut"] = sorted(shown.cut)
            told["dropped"], told["cut"] = sorted(recorded.dropped), sorted(recorded.cut)
        return Recomputed(expected, told, {"limit": asked, "layer": layer, "tokens": recorded.max_tokens})


def _by_facet(parts: Sequence[Part]) -> list[Part]:
    """Facets in the order of their first item; within one what was looked up, then by score."""
    first: dict[str, int] = {}
    for part in parts:
        first.setdefault(str(part.native.get("facet")), len(first))

    def rank(part: Part) -> tuple[int, bool, float]:
        meta, score = part.native.get("metadata"), part.native.get("score")
        looked_up = isinstance(meta, dict) and bool(meta.get("active_lookup"))
        value = float(score) if isinstance(score, int | float) else 0.0
        return first[str(part.native.get("facet"))], not looked_up, 0.0 if looked_up else -value

    return sorted(parts, key=rank)


def _shown(recorded: Recorded) -> Shown | None:
    """The markdown of the recorded pack; None where none was recorded, or its texts are not known."""
    if not recorded.pieces or recorded.pieces[0].item != "pack/header":
        return None
    if any(part.native.get("facet") is None or part.read() is None for part in recorded.selected):
        return None
    native = recorded.selection or {}
    sections: dict[str, list[Part]] = {}
    for part in recorded.selected:
        sections.setdefault(str(part.native["facet"]), []).append(part)
    titles = {
        piece.item.removeprefix(_SECTION): (piece.read() or "").strip().removeprefix("## ")
        for piece in recorded.pieces
        if piece.item.startswith(_SECTION)
    }
    total = native.get("total_items")
    pack = Pack(
        goal=recorded.query or "",
        intent=str(native.get("intent")),
        layer=str(native.get("layer")),
        query=str(native.get("query")),
        domain=native.get("domain"),
        project=native.get("project"),
        sections=tuple((facet, tuple(parts)) for facet, parts in sections.items()),
        titles=titles,
        total=total if isinstance(total, int) else len(recorded.selected),
    )
    return rendered(pack, recorded.max_tokens)


def _assembly(recorded: Recorded, shown: Shown) -> Recomputed:
    """Piece by piece; the hint that ends a markdown with room to spare is the server's own text."""
    told = [[piece.item, piece.read()] for piece in recorded.pieces]
    if not shown.trimmed and told and told[-1][0] == _TRAILER and (told[-1][1] or "").startswith(_HINT):
        told.pop()
    ours = [[name, text] for name, text in shown.pieces]
    return Recomputed(ours, told, {"tokens": recorded.max_tokens, "items": len(recorded.selected)})


def _header(candidates: Sequence[Candidate]) -> list[int]:
    return [at for at, c in enumerate(candidates) if c.item == "pack/header"]


def _headings(candidates: Sequence[Candidate]) -> list[int]:
    return [at for at, c in enumerate(candidates) if c.item.startswith(_SECTION)]


def _shortened(text: str | None, most: int) -> str | None:
    if text is None:
        return None
    lines = text.split("\n")
    for at, line in enumerate(lines):
        if line.startswith(_MEMORY):
            lines[at] = _MEMORY + compact(line.removeprefix(_MEMORY), most)[0]
    return "\n".join(lines)


def _fit(candidates: Sequence[Candidate], gone: set[int], swaps: Mapping[int, str | None], room: Room) -> Fit:
    kept = size(candidates) - size(candidates, gone)
    verdict: Verdict = "fitted" if kept <= room.cap else "still_over"
    drops = tuple(Drop(at, "budget_limit") for at in sorted(gone))
    return Fit(verdict, drops, swaps=tuple(Swap(at, swaps[at] or "") for at in sorted(swaps)))


class _Packer:
    """The policy on one thread: it looks at the pack alone, however much else there is."""

    def __init__(self, policy: Sibyl) -> None:
        self._policy = policy
        self._tokens = 0
        self._pack: dict[Seat, None] = {}
        self._turned: list[Seat] = []
        """Those that have a fate."""

    def start(self, seats: Sequence[Seat], state: Any) -> None:
        """Take them in."""
        self._take(seats)

    def state(self) -> Any:
        """It has none."""
        return None

    def _take(self, seats: Sequence[Seat]) -> None:
        for seat in seats:
            self._tokens += seat.candidate.tokens
            if _packed(seat.candidate):
                self._pack[seat] = None

    def step(self, moves: Moves, room: Room | None) -> Outcome:
        """Decide one step: linear in the pack."""
        for seat in moves.left:
            self._tokens -= seat.candidate.tokens
            self._pack.pop(seat, None)
        self._take(moves.came)
        changed = dict.fromkeys(self._turned)
        for seat in self._turned:
            seat.fate = None
        self._turned = []
        if room is None:
            return Outcome("fits", changed)
        seats = sorted(self._pack, key=lambda seat: seat.place)
        pack = [seat.candidate for seat in seats]
        others = self._tokens - size(pack)
        fit = self._policy.fit(pack, room, None)
        for drop in fit.drops:
            seats[drop.at].fate = drop._replace(at=0)
        for swap in fit.swaps:
            seats[swap.at].fate = swap._replace(at=0)
        self._turned = [seat for seat in seats if seat.fate is not None]
        changed.update(dict.fromkeys(self._turned))
        kept = others + size(pack) - size(pack, [drop.at for drop in fit.drops])
        verdict: Verdict = fit.verdict
        if kept > room.cap:
            verdict = "still_over"
        return Outcome(verdict, changed, len(fit.drops), len(fit.swaps))


def _packed(candidate: Candidate) -> bool:
    """Whether it is in a pack of Sibyl's."""
    return candidate.kind == _KIND or candidate.item.startswith(_SECTION) or candidate.item in _ENDS


_ENDS: Final = frozenset({"pack/header", _TRAILER})
