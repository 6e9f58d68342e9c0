"""The reference, part 3: the frame of a step, built from nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from tests.oracle.build import Event
from tests.oracle.ref_items import ITEM_EVENTS, Said, name_of, ref_of, resolve, sha
from tests.oracle.ref_steps import places
from tests.oracle.rules import Rules

Count = Callable[[str], int]
NO_MATTER = ("type", "id", "role", "status")
"""Fields of a block that reach no model."""
Key = tuple[str, str | None, str | None, int]


@dataclass(frozen=True)
class Placed:
    """One copy of an item in a frame."""

    item: str
    version: str | None
    rendering: str | None
    tokens: int
    method: str
    kind: str
    stale: bool = False
    carried: bool = False
    truncated: bool = False
    fields: str = ""
    """JSON of what its block's own JSON says beside the text, in the request's body."""
    among: str | None = None
    """The field of the body that it stands in."""

    @property
    def key(self) -> Key:
        """Item, version and digest of what was sent (the rendered text, the block's own fields), and the
        tokens: they tell two opaque ones apart."""
        return (self.item, self.version, f"{self.rendering} {self.fields}", self.tokens)


@dataclass
class Thread:
    """All that is needed to build the frames of one thread."""

    target: str
    count: Count
    rules: Rules
    book: list[Said]
    inline: dict[str, str]
    mode: str
    declared: bool
    blocks: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def place(self, ref: str, line: int, block: dict[str, Any] | None = None) -> Placed:
        """A placement of what the ref means, rendered as the block says."""
        block = block or {}
        found = resolve(ref, line, self.book, self.rules)
        text = block.get("content", found.text if found else None)
        wrapper = block.get("wrapper", "")
        if text is not None and wrapper and not self.rules.wrapper_ignored:
            before, _, after = wrapper.partition("{content}")
            text = before + text + after
        cut = bool(block.get("metadata", {}).get("truncated"))
        wire = block.get("metadata", {}).get("ctxctl", {}).get("wire", {})
        said = {k: v for k, v in wire.get("leaf", {}).items() if k not in NO_MATTER and v != {"$": "text"}}
        fields = json.dumps(said, sort_keys=True) if said and not self.rules.only_texts else ""
        item, version = (found.item, found.version) if found else (ref, None)
        kind = found.kind if found else "custom"
        tokens, method = self._tokens(text, found.estimate if found else None)
        rendering = sha(text) if text is not None else found.digest if found else None
        among = wire.get("in")
        return Placed(
            item, version, rendering, tokens, method, kind, truncated=cut, fields=fields, among=among
        )

    def _tokens(self, text: str | None, estimate: int | None) -> tuple[int, str]:
        if text is not None and not (self.rules.estimate_first and estimate is not None):
            return self.count(text), "counted"
        if estimate is not None:
            return estimate, "declared"
        return 0, "counted" if self.rules.uncounted_unseen else "uncounted"

    def shows(self, found: Said) -> bool:
        return self.target in found.visibility or self.rules.visibility_ignored


def expand(thread: Thread, data: dict[str, Any]) -> list[dict[str, Any]]:
    """The blocks of an assembly in order, splices applied to those of its base."""
    given = list(data["ordered_blocks"])
    if not thread.rules.position_ignored:
        numbered = [(b.get("position", i), i, b) for i, b in enumerate(given)]
        given = [b for _, _, b in sorted(numbered, key=lambda entry: entry[:2])]
    ours = data.get("metadata", {}).get("ctxctl", {})
    if "base" in ours and not thread.rules.splices_ignored:
        base, out, done = thread.blocks[ours["base"]], [], 0
        for at, removed, inserted in ours["splices"]:
            out += base[done:at] + given[:inserted]
            given, done = given[inserted:], at + removed
        given = out + base[done:]
    thread.blocks[data["assembly_id"]] = given
    return given


def chosen(thread: Thread, events: list[tuple[int, Event]]) -> tuple[int, Event] | None:
    """The assembly that the step sends: the one its injection names, else the last."""
    found = [events[i] for i in places(events, "context.assembly.created", thread.target)]
    for _, event in found:
        expand(thread, event["data"])
    if not found:
        return None
    if thread.rules.first_assembly_wins:
        return found[0]
    injected = [events[i][1] for i in places(events, "context.injection.applied", thread.target)]
    named = [
        f for f in found if injected and f[1]["data"]["assembly_id"] == injected[0]["data"].get("assembly_id")
    ]
    return named[-1] if named else found[-1]


def assembled(thread: Thread, events: list[tuple[int, Event]]) -> list[Placed] | None:
    assembly = chosen(thread, events)
    if assembly is None:
        return None
    line, event = assembly
    return [
        thread.place(ref, line, block)
        for block in expand(thread, event["data"])
        for ref in block.get("item_refs", [])
    ]


def last_selection(events: list[tuple[int, Event]]) -> tuple[int, dict[str, Any]] | None:
    found = [(n, e["data"]) for n, e in events if e["event_type"] == "context.selection.completed"]
    return found[-1] if found else None


def drops(thread: Thread, events: list[tuple[int, Event]]) -> dict[str, str | None]:
    """Items that the target's budget dropped at this step, with the reason."""
    found = {}
    for line, event in events:
        if event["event_type"] == "context.budget.applied" and event["data"]["target"] == thread.target:
            for record in event["data"].get("truncation_records", []):
                if record.get("action") == "dropped":
                    name = name_of(record["item_ref"], line, thread.book, thread.rules)
                    found[name] = record.get("reason")
    return {} if thread.rules.budget_drops_ignored else found


def selected(thread: Thread, events: list[tuple[int, Event]]) -> list[Placed] | None:
    selection = last_selection(events)
    if selection is None:
        return None
    line, data = selection
    placed = [thread.place(ref_of(ref), line) for ref in data.get("selected_item_refs", [])]
    dropped = drops(thread, events)
    return [p for p in placed if p.item not in dropped]


def live(thread: Thread, events: list[tuple[int, Event]]) -> list[Placed]:
    """Items added or updated, not removed, not compacted away, visible, in order of first appearance.

    DESIGN leaves open whether an item that was gone and comes back appears anew; here it does.
    """
    alive: dict[str, None] = {}
    for line, event in events:
        kind, data = event["event_type"], event["data"]
        if kind in ITEM_EVENTS:
            ref = data.get("item_id", data.get("summary_id"))
            alive.setdefault(name_of(ref, line + 1, thread.book, thread.rules))
        elif kind == "context.item.removed":
            alive.pop(name_of(data["item_id"], line, thread.book, thread.rules), None)
        elif kind == "context.compaction.completed" and not thread.rules.compaction_ignored:
            for ref in data["source_item_refs"]:
                alive.pop(name_of(ref_of(ref), line, thread.book, thread.rules), None)
            into = data.get("summary_ref")
            if into and not thread.rules.summary_left_out:
                alive.setdefault(into)
            elif into:
                alive.pop(into, None)
    end = max((line for line, _ in events), default=0) + 1
    found = {name: resolve(name, end, thread.book, thread.rules) for name in alive}
    return [thread.place(name, end) for name, item in found.items() if item is None or thread.shows(item)]


def touched(thread: Thread, events: list[tuple[int, Event]]) -> list[Placed]:
    """Items added or updated at this step, visible, in order of their first event."""
    names: dict[str, None] = {}
    for line, event in events:
        if event["event_type"] in ITEM_EVENTS:
            data = event["data"]
            names[
                name_of(data.get("item_id", data.get("summary_id")), line + 1, thread.book, thread.rules)
            ] = None
        elif event["event_type"] == "context.item.removed":
            names.pop(name_of(event["data"]["item_id"], line, thread.book, thread.rules), None)
        elif event["event_type"] == "context.compaction.completed" and not thread.rules.compaction_ignored:
            for ref in event["data"]["source_item_refs"]:
                names.pop(name_of(ref_of(ref), line, thread.book, thread.rules), None)
    end = max((line for line, _ in events), default=0) + 1
    found = [resolve(name, end, thread.book, thread.rules) for name in names]
    return [thread.place(s.item, end) for s in found if s is not None and thread.shows(s)]


def window_frame(
    thread: Thread, past: list[tuple[int, Event]], events: list[tuple[int, Event]]
) -> tuple[str, list[Placed]]:
    """Basis and frame in window mode: assembly, else selection less drops, else live items."""
    blocks = assembled(thread, events)
    if blocks is not None:
        return "assembly", blocks
    kept = selected(thread, events)
    if kept is not None:
        return "selection", kept
    return "items", live(thread, past + events)


def append_frame(
    thread: Thread, before: list[Placed], past: list[tuple[int, Event]], events: list[tuple[int, Event]]
) -> tuple[str, list[Placed]]:
    """Basis and frame in append mode: the frame before, cut and marked, and what this step adds."""
    rules = thread.rules
    frame, summaries = cut_and_marked(thread, before, events)
    basis, added = "repeat", []
    for name, found in (("assembly", assembled(thread, events)), ("selection", selected(thread, events))):
        if basis == "repeat" and found is not None:
            basis, added = name, found
    frame += carried(thread, frame, events)
    if basis == "repeat":
        added = [p for p in touched(thread, events) if p.item not in summaries]
        basis = "items" if added or summaries else "repeat"
    for p in added:
        if p.item in summaries or rules.stale_dropped:
            frame = [q for q in frame if q.item != p.item]
        frame = [replace(q, stale=True) if q.item == p.item else q for q in frame] + [p]
    return basis, frame


def cut_and_marked(
    thread: Thread, before: list[Placed], events: list[tuple[int, Event]]
) -> tuple[list[Placed], set[str]]:
    """The frame before, what was compacted replaced by its summary, what was removed stale; the summaries."""
    frame, summaries, rules = list(before), set(), thread.rules
    for line, event in events:
        data = event["data"]
        if event["event_type"] == "context.compaction.completed" and not rules.compaction_ignored:
            gone = {name_of(ref_of(ref), line, thread.book, rules) for ref in data["source_item_refs"]}
            first = next((i for i, p in enumerate(frame) if p.item in gone), len(frame))
            into = data.get("summary_ref")
            summary = [thread.place(into, line)] if into and not rules.summary_left_out else []
            summaries |= {into} if into else set()
            # DESIGN does not say where the summary goes: here, where the first of its sources was.
            frame = frame[:first] + summary + [p for p in frame[first:] if p.item not in gone]
        elif event["event_type"] == "context.item.removed":
            name = name_of(data["item_id"], line, thread.book, rules)
            frame = [replace(p, stale=True) if p.item == name else p for p in frame]
            if rules.removed_is_cut:
                frame = [p for p in frame if p.item != name]
    return frame, summaries


def skips(thread: Thread, events: list[tuple[int, Event]]) -> list[tuple[str, int]]:
    """Refs that the selection left out as unchanged, with their line."""
    selection = last_selection(events)
    if selection is None:
        return []
    line, data = selection
    return [
        (entry["item_ref"], line)
        for entry in data.get("omitted_item_refs", [])
        if entry.get("reason") == "duplicate"
    ]


def carried(thread: Thread, frame: list[Placed], events: list[tuple[int, Event]]) -> list[Placed]:
    """Items skipped as unchanged that were never seen: they were there before the trace began."""
    out = []
    for ref, line in skips(thread, events):
        unseen = resolve(ref, line, thread.book, thread.rules) is None and all(p.item != ref for p in frame)
        if unseen and not thread.rules.carried_omitted:
            out.append(Placed(ref, None, None, 0, "uncounted", "custom", carried=True))
    return out
