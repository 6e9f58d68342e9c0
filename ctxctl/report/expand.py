"""Assemblies that list what changed become assemblies that list everything."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final

from ctxctl.model.event import Event
from ctxctl.model.records import Assembly

Json = dict[str, Any]
_KEPT: Final = 400_000
"""Blocks that the assemblies kept for later splices may hold together; as in the replay."""
_LEAST: Final = 2

Key = tuple[str | None, str | None, str]


class Blocks:
    """The blocks of the assemblies that later ones may build on."""

    def __init__(self) -> None:
        self._known: OrderedDict[Key, list[Any]] = OrderedDict()
        self._cells = 0

    def whole(self, event: Event, data: Json) -> Json:
        """The record with all its blocks; where its base is not known, as it is, and marked so."""
        record = event.record
        given = data.get("ordered_blocks")
        if not isinstance(record, Assembly) or not isinstance(given, list):
            return data
        blocks: list[Any] = given
        ours = _ours(data)
        if record.base is None:
            blocks = _in_order(blocks)
        else:
            base = self._base(event, record.base)
            if base is not None:
                blocks = _spliced(base, blocks, record)
                data = _without_splices(data)
            elif ours is not None:
                ours["unknown_base"] = True
        if record.assembly_id is not None:
            self._keep(self._key(event, record.assembly_id), blocks)
        return {**data, "ordered_blocks": _numbered(blocks)}

    def _base(self, event: Event, name: str) -> list[Any] | None:
        """The blocks of an assembly of this thread; of events that name no thread, the last of that name."""
        found = self._known.get(self._key(event, name))
        if found is not None or (event.session_id is not None and event.thread_id is not None):
            return found
        return next((blocks for key, blocks in reversed(self._known.items()) if key[2] == name), None)

    def _key(self, event: Event, name: str) -> Key:
        return event.session_id, event.thread_id, name

    def _keep(self, key: Key, blocks: list[Any]) -> None:
        before = self._known.pop(key, None)
        self._cells += len(blocks) - (len(before) if before is not None else 0)
        self._known[key] = blocks
        while self._cells > _KEPT and len(self._known) > _LEAST:
            self._cells -= len(self._known.popitem(last=False)[1])


def _spliced(base: list[Any], fresh: list[Any], record: Assembly) -> list[Any]:
    blocks: list[Any] = []
    at = taken = 0
    for splice in record.splices:
        blocks += base[at : splice.at]
        blocks += fresh[taken : taken + splice.inserted]
        at, taken = splice.at + splice.removed, taken + splice.inserted
    return blocks + base[at:]


def _position(block: Any) -> float | None:
    value = block.get("position") if isinstance(block, dict) else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _in_order(blocks: list[Any]) -> list[Any]:
    """By `position`; a block without one keeps its place."""
    places = [_position(block) for block in blocks]
    if all(place is None for place in places):
        return blocks
    rows = sorted((index if place is None else place, index) for index, place in enumerate(places))
    return [blocks[index] for _, index in rows]


def _numbered(blocks: list[Any]) -> list[Any]:
    """Positions that agree with the order; blocks that are no objects become ones."""
    made = [block if isinstance(block, dict) else {"item_refs": [block]} for block in blocks]
    if any("position" in block for block in made):
        made = [{**block, "position": n} for n, block in enumerate(made)]
    return made


def _ours(data: Json) -> Json | None:
    metadata = data.get("metadata")
    ours = metadata.get("ctxctl") if isinstance(metadata, dict) else None
    return ours if isinstance(ours, dict) else None


def _without_splices(data: Json) -> Json:
    ours = {name: value for name, value in (_ours(data) or {}).items() if name not in ("base", "splices")}
    metadata = {name: value for name, value in data["metadata"].items() if name != "ctxctl"}
    if ours:
        metadata["ctxctl"] = ours
    return {**data, "metadata": metadata}
