"""Real compactions: what stands verbatim and in order is one item, and no compaction names it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ctxctl.importers import registry
from ctxctl.importers.capture import open_capture
from ctxctl.model import vocab
from tests.oracle.ref_identity import Piece, standing

PLACES = (
    "data/api-captures/badlogic__lemmy",
    "data/codex",
    "data/claude-stream-json",
    "data/pi",
    "data/cline-roo",
)
FEWEST = 15
"""Compactions that the captures at hand have."""


class Row(NamedTuple):
    item: str
    mark: str
    role: str


class Compacted(NamedTuple):
    before: list[Row]
    after: list[Row]
    gone: set[str]
    """Items that it names."""


def row(block: dict[str, Any]) -> Row:
    item, _, mark = block["item_refs"][0].rpartition("@")
    return Row(item or mark, mark if item else "", block["role"])


def compactions(path: Path) -> Iterator[Compacted]:
    windows: dict[Any, list[Row]] = {}
    named: dict[Any, set[str]] = {}
    with open_capture(str(path), None) as (opened, importer):
        if importer is None:
            return
        for event in registry.capture_events(importer, opened, lambda _: None):
            data, key = event["data"], (event.get("session_id"), event.get("thread_id"))
            if event["event_type"] == vocab.COMPACTION_COMPLETED:
                named.setdefault(key, set()).update(data["source_item_refs"])
            if event["event_type"] != vocab.ASSEMBLY_CREATED or data["target"] != vocab.MODEL:
                continue
            before, made = windows.get(key, []), [row(block) for block in data["ordered_blocks"]]
            ours = data["metadata"]["ctxctl"]
            windows[key] = after = _spliced(before, made, ours["splices"]) if "base" in ours else made
            if (gone := named.pop(key, None)) is not None:
                yield Compacted(before, after, gone)


def _spliced(before: list[Row], made: list[Row], splices: list[list[int]]) -> list[Row]:
    after: list[Row] = []
    at = taken = 0
    for start, removed, inserted in splices:
        after += before[at:start] + made[taken : taken + inserted]
        at, taken = start + removed, taken + inserted
    return after + before[at:]


def test_what_a_compaction_left_standing_stays_its_item(corpus: Path) -> None:
    seen = kept = 0
    for place in PLACES:
        for path in sorted(p for p in (corpus / place).rglob("*") if p.is_file()):
            for found in compactions(path):
                seen += 1
                kept += _check(found, path)
    print(f"\n{seen} compactions; {kept} items stand on both sides")
    assert seen >= FEWEST
    assert kept > 0


def _check(found: Compacted, path: Path) -> int:
    stays = {(r.item, r.mark) for r in found.after}
    assert not {ref for ref in found.gone if tuple(ref.rsplit("@", 1)) in stays}, path
    old, new = {r.item for r in found.before}, {r.item for r in found.after}
    # What has an id of the runtime's own is known by that.
    left = [r for r in found.before if r.item not in new and r.mark and _is_derived(r.item)]
    came = [r for r in found.after if r.item not in old and r.mark and _is_derived(r.item)]
    both = [r for r in found.after if r.item in old]
    whole = standing(*([Piece(r.role, r.mark) for r in rows] for rows in (found.before, found.after)))
    if left and came and {r[1:] for r in left} & {r[1:] for r in came}:
        # Texts that came back stand in another order: no longer common subsequence has them.
        assert whole <= len(both), (path, whole, len(both))
    return len(both)


def _is_derived(item: str) -> bool:
    """A name that an importer makes where the runtime has none: the kind and a number."""
    kind, _, number = item.rpartition("-")
    return number.isdigit() and kind.replace("_", "").isalpha()


@pytest.mark.parametrize("name", ["apps/claude-trace/test/test-traffic.jsonl"])
def test_the_clients_own_instructions_are_carried_over_its_compaction(corpus: Path, name: str) -> None:
    """1,108 tokens of instructions that the client puts before the first prompt, and before the summary."""
    (found,) = compactions(corpus / "data/api-captures/badlogic__lemmy" / name)
    note = found.before[19]
    assert note.item == found.after[19].item
    assert note.mark == found.after[19].mark
    assert not any(ref.startswith(f"{note.item}@") for ref in found.gone)
