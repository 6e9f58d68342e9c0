"""A second engine: DESIGN sections 2 and 3 said again, slowly and plainly, to hold the real one against.

Nothing is shared with `ctxctl.engine`, nothing is incremental: every step looks at all lines of its thread up
to its own seal and builds its frame from nothing.  `Rules` has a flag for each way to be wrong that a weak
test suite would not notice; `mutants` turns them on.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from tests.oracle.build import Event
from tests.oracle.case import Replayed

Count = Callable[[str], int]
Key = tuple[str, str | None, str | None, int]

APPEND_POINTS = {"user_message_appendix", "peer_agent_message"}
FIRST_SEGMENTS = {"tool_definition": 0, "system_prompt": 1, "developer_instruction": 1}
ITEM_EVENTS = ("context.item.added", "context.item.updated", "context.summary.created")
CUT_RATIO = 0.7


@dataclass(frozen=True)
class Rules:
    """The rules of DESIGN, each with the wrong rule that a flag puts in its place."""

    net_ledger: bool = False
    silent_changes: bool = False
    moved_by_index: bool = False
    prefix_by_item: bool = False
    shared_items: bool = False
    visibility_ignored: bool = False
    every_live_omitted: bool = False
    first_assembly_wins: bool = False
    position_ignored: bool = False
    version_ref_ignored: bool = False
    budget_drops_ignored: bool = False
    suffix_always_stripped: bool = False
    suffix_never_stripped: bool = False
    latest_at_the_seal: bool = False
    duplicates_kept: bool = False
    late_in_its_own_step: bool = False
    seal_ignored: bool = False
    always_window: bool = False
    declared_ignored: bool = False
    stale_dropped: bool = False
    removed_is_cut: bool = False
    carried_omitted: bool = False
    estimate_first: bool = False
    uncounted_unseen: bool = False
    wrapper_ignored: bool = False
    splices_ignored: bool = False
    summary_left_out: bool = False
    compaction_ignored: bool = False
    trace_order_prefix: bool = False
    usage_to_next: bool = False
    sessions_mixed: bool = False
    by_time: bool = False
    turn_nets: bool = False
    set_ledger: bool = False
    declared_version_ignored: bool = False
    branch_ignored: bool = False
    cause_by_selection_first: bool = False


@dataclass(frozen=True)
class Said:
    """One version of an item, as one line states it."""

    line: int
    item: str
    written: str
    version: str | None
    kind: str
    text: str | None
    digest: str | None
    estimate: int | None
    visibility: tuple[str, ...]


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

    @property
    def key(self) -> Key:
        """Item, version and digest of the rendered text, and the tokens: they tell two opaque ones apart."""
        return (self.item, self.version, self.rendering, self.tokens)


@dataclass
class Group:
    """One step: the events that belong to it, and what it was billed."""

    session: str | None
    thread: str
    turn: int
    turn_id: str | None
    step: int
    step_id: str | None
    events: list[tuple[int, Event]] = field(default_factory=list)
    usage: dict[str, Any] | None = None
    has_assembly: bool = False
    sealed: bool = False


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


# Section 2: which step an event belongs to.


def unique(events: list[Event], rules: Rules, problems: list[dict[str, Any]]) -> list[tuple[int, Event]]:
    """The events with their lines; a second one with the same id in one session and source is reported."""
    seen: set[tuple[Any, ...]] = set()
    kept = []
    for line, event in enumerate(events, 1):
        key = (event.get("session_id", "s"), event["source"], event.get("event_id", f"e{line}"))
        if key in seen and not rules.duplicates_kept:
            problems.append({"line": line})
            continue
        seen.add(key)
        kept.append((line, event))
    return sorted(kept, key=lambda pair: pair[1]["time"]) if rules.by_time else kept


def group(events: list[tuple[int, Event]], rules: Rules, problems: list[dict[str, Any]]) -> list[Group]:
    """The steps of all threads, in the order in which they begin."""
    groups: list[Group] = []
    for line, event in events:
        session = "s" if rules.sessions_mixed else event.get("session_id", "s")
        thread = event.get("thread_id") or "main"
        mine = [g for g in groups if (g.session, g.thread) == (session, thread)]
        if event["event_type"] == "ctxctl.usage.reported" and _billed(event, mine, rules):
            continue
        at = _step_of(event, mine, line, problems, rules)
        if at is None:
            at = _new(event, mine, session, thread)
            groups.append(at)
        if event["event_type"] == "ctxctl.usage.reported":
            at.usage = event["data"]
            continue
        at.events.append((line, event))
        if event["data"].get("target") == "model":
            at.has_assembly |= event["event_type"] == "context.assembly.created"
            at.sealed |= event["event_type"] == "context.injection.applied"
    return groups


def _billed(event: Event, mine: list[Group], rules: Rules) -> bool:
    """Attach usage to the step it names, else to the last one; False if there is no such step yet."""
    billed = [g for g in mine if event.get("step_id") in (None, g.step_id)]
    if not billed:
        return False
    following = mine.index(billed[-1]) + 1
    if not rules.usage_to_next:
        billed[-1].usage = event["data"]
    elif following < len(mine):
        mine[following].usage = event["data"]
    return True


def _step_of(
    event: Event, mine: list[Group], line: int, problems: list[dict[str, Any]], rules: Rules
) -> Group | None:
    """The step of this thread that the event belongs to, or None if it opens one."""
    if not mine:
        return None
    now = mine[-1]
    turn, step = event.get("turn_id"), event.get("step_id")
    named = [g for g in mine if g.turn_id == (turn or now.turn_id) and g.step_id == step and step]
    if named:
        late = named[-1] is not now or now.sealed
        if late:
            problems.append({"line": line})
        return named[-1] if late and rules.late_in_its_own_step else now
    if turn and now.turn_id and turn != now.turn_id:
        return None
    if step and now.step_id:
        return None
    requests = event["event_type"] in ("context.assembly.created", "context.injection.applied")
    for_model = requests and event["data"].get("target") == "model"
    again = now.has_assembly and event["event_type"] == "context.assembly.created"
    if not step and for_model and (now.sealed or again):
        return None
    if step and now.sealed:
        return None
    # "what precedes a turn's first step id belongs to that step"
    now.turn_id, now.step_id = now.turn_id or turn, now.step_id or step
    return now


def _new(event: Event, mine: list[Group], session: str | None, thread: str) -> Group:
    turn, step = event.get("turn_id"), event.get("step_id")
    if not mine:
        return Group(session, thread, 1, turn, 1, step)
    last = mine[-1]
    if turn and turn != last.turn_id:
        return Group(session, thread, last.turn + 1, turn, 1, step)
    return Group(session, thread, last.turn, last.turn_id, last.step + 1, step)


def seal(groups: list[Group], target: str, rules: Rules) -> list[list[tuple[int, Event]]]:
    """The events that take effect in each step of one thread: what comes after a seal is the next one's."""
    effective = []
    carry: list[tuple[int, Event]] = []
    for g in groups:
        events = carry + g.events
        injections = _places(events, "context.injection.applied", target)
        assemblies = _places(events, "context.assembly.created", target)
        end = injections[0] if injections else assemblies[-1] if assemblies else len(events) - 1
        if rules.seal_ignored:
            end = len(events) - 1
        effective.append(events[: end + 1])
        carry = events[end + 1 :]
    return effective


def _places(events: list[tuple[int, Event]], kind: str, target: str) -> list[int]:
    return [
        i for i, (_, e) in enumerate(events) if e["event_type"] == kind and e["data"].get("target") == target
    ]


# Section 2: identity, versions, refs.


def digests(data: dict[str, Any], content_digest: str | None) -> list[str]:
    """Every digest of an item, without the name of its algorithm."""
    found = [content_digest] if content_digest else []
    found += [ref["digest"].split(":")[-1] for ref in data.get("source_refs", []) if "digest" in ref]
    return found


def said(line: int, event: Event, inline: dict[str, str], rules: Rules) -> Said:
    """What an item event (or a summary) says."""
    data = event["data"]
    summary = event["event_type"] == "context.summary.created"
    written = data["summary_id"] if summary else data["item_id"]
    ref = data.get("content_ref")
    text = text_of(data["content"]) if "content" in data else inline.get(ref) if ref else None
    digest = sha(text) if text is not None else ref.removeprefix("sha256:") if ref else None
    known = digests(data, digest)
    declared = data.get("metadata", {}).get("version")
    if rules.declared_version_ignored:
        declared = None
    version = declared or (digest[:16] if digest else known[0] if known else None)
    name, _, suffix = written.rpartition("@")
    strip = name and suffix and (suffix == version or any(d.startswith(suffix) for d in known))
    if (strip or (name and rules.suffix_always_stripped)) and not rules.suffix_never_stripped:
        item = name
    else:
        item = written
    return Said(
        line,
        item,
        written,
        version,
        "thread_summary" if summary else data["context_kind"],
        text,
        digest,
        data.get("token_estimate"),
        tuple(data.get("visibility", ["model"])),
    )


def resolve(ref: str, line: int, book: list[Said], rules: Rules) -> Said | None:
    """The version that a ref at this line means, or None if it is unknown."""
    before = [s for s in book if s.line < line or rules.latest_at_the_seal]
    latest = [s for s in before if s.item == ref]
    if latest:
        return latest[-1]
    name, _, version = ref.rpartition("@")
    exact = [s for s in before if s.written == ref or (s.item == name and s.version == version)]
    if rules.version_ref_ignored:
        exact = [s for s in before if s.item == name]
    return exact[-1] if exact else None


def name_of(ref: str, line: int, book: list[Said], rules: Rules) -> str:
    found = resolve(ref, line, book, rules)
    return found.item if found else ref


def ref_of(entry: Any) -> str:
    return entry if isinstance(entry, str) else entry["item_ref"]


# Section 3: frames.


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
        item, version = (found.item, found.version) if found else (ref, None)
        kind = found.kind if found else "custom"
        tokens, method = self._tokens(text, found.estimate if found else None)
        rendering = sha(text) if text is not None else found.digest if found else None
        return Placed(item, version, rendering, tokens, method, kind, truncated=cut)

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
    found = [events[i] for i in _places(events, "context.assembly.created", thread.target)]
    for _, event in found:
        expand(thread, event["data"])
    if not found:
        return None
    if thread.rules.first_assembly_wins:
        return found[0]
    injected = [events[i][1] for i in _places(events, "context.injection.applied", thread.target)]
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


# Section 3: statuses, ledger, prefix.


def current(frame: Iterable[Placed]) -> dict[str, list[Placed]]:
    found: dict[str, list[Placed]] = {}
    for p in frame:
        if not p.stale:
            found.setdefault(p.item, []).append(p)
    return found


def rendered(placed: list[Placed]) -> set[tuple[str | None, str | None]]:
    return {(p.version, p.rendering) for p in placed}


def increasing(places: list[int]) -> set[int]:
    """Indexes of one longest increasing subsequence, by trying every way to end one."""
    best: list[list[int]] = []
    for i, place in enumerate(places):
        ends = [run for run in best if places[run[-1]] < place]
        best.append([*max(ends, key=len, default=[]), i])
    return set(max(best, key=len, default=[]))


def moved(before: list[Placed], now: list[Placed], rules: Rules) -> set[str]:
    """Items of which a kept placement is outside the longest increasing subsequence."""
    where: dict[Key, list[int]] = {}
    for i, p in enumerate(before):
        where.setdefault(p.key, []).append(i)
    kept = [(i, p, where[p.key].pop(0)) for i, p in enumerate(now) if where.get(p.key)]
    if rules.moved_by_index:
        return {p.item for i, p, old in kept if i != old}
    steady = increasing([old for _, _, old in kept])
    return {p.item for n, (_, p, _) in enumerate(kept) if n not in steady}


def total(counter: Counter[Key]) -> int:
    return sum(key[3] * times for key, times in counter.items())


def differ(before: list[Placed], now: list[Placed], rules: Rules) -> tuple[Counter[Key], Counter[Key]]:
    """What entered and what left, as multisets of placements."""
    old, new = Counter(p.key for p in before), Counter(p.key for p in now)
    if rules.set_ledger:
        old, new = Counter(set(old)), Counter(set(new))
    return new - old, old - new


def in_provider_order(frame: list[Placed], rules: Rules) -> list[Placed]:
    if rules.trace_order_prefix:
        return frame
    return sorted(frame, key=lambda p: FIRST_SEGMENTS.get(p.kind, 2))


def prefix(before: list[Placed], now: list[Placed], rules: Rules) -> tuple[int, int | None]:
    """Tokens of the longest common run, and the position of the first placement it could not keep."""
    old, new = in_provider_order(before, rules), in_provider_order(now, rules)
    tokens = 0
    for i, p in enumerate(old):
        same = i < len(new) and (p.key == new[i].key or (rules.prefix_by_item and p.item == new[i].item))
        if not same:
            return tokens, i
        tokens += p.tokens
    return tokens, None


@dataclass
class Facts:
    """What a step's records say about items that are not in the window, by item."""

    recorded: dict[str, str | None] = field(default_factory=dict)
    gone: bool = False
    because: str | None = None
    compacted: dict[str, str | None] = field(default_factory=dict)
    omitted: dict[str, str | None] = field(default_factory=dict)
    dropped: dict[str, str | None] = field(default_factory=dict)
    redacted: set[str] = field(default_factory=set)
    candidates: list[str] = field(default_factory=list)
    branched: bool = False

    def cause(self, item: str, rules: Rules) -> tuple[str, str | None, str | None]:
        """Cause, reason and summary of a removal: the recorded one wins, then in the order of DESIGN."""
        if rules.cause_by_selection_first and item in self.omitted:
            return "omitted", self.omitted[item], None
        if self.recorded.get(item):
            return str(self.recorded[item]), None, None
        if self.because:
            return self.because, None, None
        if item in self.compacted:
            return "compacted", None, self.compacted[item]
        if item in self.omitted:
            return "omitted", self.omitted[item], None
        if item in self.dropped:
            return "truncated", self.dropped[item], None
        if item in self.redacted:
            return "redacted", None, None
        if self.branched and not rules.branch_ignored:
            return "branched", None, None
        return "unrecorded", None, None

    def named(self) -> dict[str, str | None]:
        """Items named as candidate, omitted or dropped, with a reason where there is one."""
        found = dict.fromkeys(self.candidates)
        return {**found, **self.dropped, **self.omitted}


def facts(thread: Thread, events: list[tuple[int, Event]], root: str | None) -> Facts:
    found = Facts(dropped=drops(thread, events))
    for line, event in events:
        kind, data = event["event_type"], event["data"]
        if kind == "context.item.removed":
            name = name_of(data["item_id"], line, thread.book, thread.rules)
            found.recorded[name] = data.get("metadata", {}).get("cause")
        elif kind == "context.redaction.applied":
            found.redacted.add(name_of(data["item_id"], line, thread.book, thread.rules))
        elif kind == "context.compaction.completed":
            for ref in data["source_item_refs"]:
                found.compacted[name_of(ref_of(ref), line, thread.book, thread.rules)] = data.get(
                    "summary_ref"
                )
        elif kind == "context.selection.completed":
            for entry in data.get("omitted_item_refs", []):
                name = name_of(ref_of(entry), line, thread.book, thread.rules)
                found.omitted[name] = entry.get("reason")
            refs = data.get("candidate_item_refs", [])
            found.candidates += [name_of(ref_of(ref), line, thread.book, thread.rules) for ref in refs]
    assembly = chosen(thread, events)
    ours = assembly[1]["data"].get("metadata", {}).get("ctxctl", {}) if assembly else {}
    found.because = ours.get("cause")
    found.branched = root is not None and ours.get("root") not in (None, root)
    return found


def changes(thread: Thread, before: list[Placed], now: list[Placed], found: Facts) -> list[dict[str, Any]]:
    """One change for each item, in the order of DESIGN section 6."""
    rules = thread.rules
    old, new = current(before), current(now)
    entered, left = differ(before, now, rules)
    shifted = moved(before, now, rules)
    out = []
    for item, placed in new.items():
        out.append(_present(item, placed, old.get(item), shifted, now))
    for item, placed in old.items():
        if item not in new:
            cause, reason, into = found.cause(item, rules)
            out.append(_change("removed", item, placed[-1], cause=cause, reason=reason, into=into))
    named = found.named()
    if rules.every_live_omitted:
        named = {**dict.fromkeys(s.item for s in thread.book), **named}
    for item, reason in named.items():
        if item not in new and item not in old:
            version = resolve(item, 10**9, thread.book, rules)
            copy = thread.place(item, 10**9) if version else None
            out.append(_change("omitted", item, copy, reason=reason))
    for change in out:
        change["in_window"] = sum(p.tokens for p in now if p.item == change["item"])
        for name, ledger in (("new", entered), ("freed", left)):
            mine = Counter({key: times for key, times in ledger.items() if key[0] == change["item"]})
            change[name] = 0 if rules.silent_changes else total(mine)
    return out


def _present(
    item: str, placed: list[Placed], old: list[Placed] | None, shifted: set[str], now: list[Placed]
) -> dict[str, Any]:
    copy = placed[-1]
    flags = ["moved"] if item in shifted else []
    if any(p.stale for p in now if p.item == item):
        flags.append("stale")
    if old is None:
        return _change("skipped" if copy.carried else "added", item, copy, flags=flags)
    if rendered(placed) == rendered(old):
        return _change("skipped", item, copy, flags=flags)
    flags += ["truncated"] if copy.truncated else []
    return _change("updated", item, copy, flags=flags, previous_version=old[-1].version)


def _change(status: str, item: str, copy: Placed | None, **more: Any) -> dict[str, Any]:
    made = {"status": status, "item": item, "version": copy.version if copy else None}
    made |= {"tokens": copy.tokens if copy else 0, "kind": copy.kind if copy else "custom", "flags": []}
    return {**made, "cause": None, "reason": None, "into": None, "previous_version": None, **more}


# The replay.


def mode_of(groups: list[Group], target: str, rules: Rules) -> tuple[str, bool]:
    """The mode of a thread and target, and whether it was declared."""
    events = [event for g in groups for _, event in g.events if event["data"].get("target") == target]
    declared = [
        e["data"].get("metadata", {}).get("ctxctl", {}).get("mode")
        for e in events
        if e["event_type"] == "context.assembly.created"
    ]
    declared = [mode for mode in declared if mode]
    if rules.always_window:
        return "window", bool(declared)
    if declared and not rules.declared_ignored:
        return declared[0], True
    points = {e["data"]["injection_point"] for e in events if e["event_type"] == "context.injection.applied"}
    return ("append" if points and points <= APPEND_POINTS else "window"), False


def inline_contents(events: list[tuple[int, Event]]) -> dict[str, str]:
    """Every inline content of the file by its ref."""
    texts = [text_of(e["data"]["content"]) for _, e in events if "content" in e["data"]]
    return {f"sha256:{sha(text)}": text for text in texts}


def replay(
    events: list[Event],
    count: Count,
    *,
    target: str = "model",
    model: str | None = None,
    rules: Rules | None = None,
) -> Replayed:
    """Replay a trace made of these events."""
    rules = rules or Rules()
    problems: list[dict[str, Any]] = []
    given = unique(events, rules, problems)
    inline = inline_contents(given)
    groups = group(given, rules, problems)
    items = [
        (g.session, g.thread, said(line, e, inline, rules))
        for g in groups
        for line, e in g.events
        if e["event_type"] in ITEM_EVENTS
    ]
    items.sort(key=lambda entry: entry[2].line)
    steps: list[dict[str, Any]] = []
    turns: list[dict[str, Any]] = []
    for session, thread in dict.fromkeys((g.session, g.thread) for g in groups):
        mine = [g for g in groups if (g.session, g.thread) == (session, thread)]
        book = [s for *where, s in items if where == [session, thread] or rules.shared_items]
        mode, declared = mode_of(mine, target, rules)
        state = Thread(target, count, rules, book, inline, mode, declared)
        method = "exact:o200k_base" if model else "estimate:o200k_base"
        others = [pair for g in groups if g not in mine for pair in g.events] if rules.shared_items else []
        _thread(state, mine, method, others, steps, turns)
    return Replayed(steps, turns, problems)


def _thread(
    thread: Thread,
    groups: list[Group],
    method: str,
    others: list[tuple[int, Event]],
    steps: list[dict[str, Any]],
    turns: list[dict[str, Any]],
) -> None:
    past: list[tuple[int, Event]] = []
    before: list[Placed] | None = None
    turn_start: list[Placed] = []
    root: str | None = None
    billed: int | None = None
    own: list[dict[str, Any]] = []
    everything: list[tuple[int, Event]] = []
    for g, events in zip(groups, seal(groups, thread.target, thread.rules), strict=True):
        elsewhere = [(n, e) for n, e in others if n < max((line for line, _ in events), default=0)]
        if thread.mode == "append":
            basis, frame = append_frame(thread, before or [], past, events)
        else:
            basis, frame = window_frame(thread, sorted(elsewhere + past, key=lambda pair: pair[0]), events)
        found = facts(thread, events, root)
        step = _step(thread, g, events, before, frame, found, basis, method)
        cut = _unrecorded_cut(g.usage, billed, step, found)
        step["flags"] += ["unrecorded_cut"] if cut else []
        billed = g.usage.get("input_tokens", billed) if g.usage else billed
        steps.append(step)
        own.append(step)
        everything += events
        last = g is groups[-1] or groups[groups.index(g) + 1].turn != g.turn
        if last:
            turns.append(_turn(thread, own, turn_start, frame, facts(thread, everything, None)))
            own, everything, turn_start = [], [], frame
        assembly = chosen(thread, events)
        ours = assembly[1]["data"].get("metadata", {}).get("ctxctl", {}) if assembly else {}
        root = ours.get("root", root)
        past += events
        before = frame


def _unrecorded_cut(
    usage: dict[str, Any] | None, billed: int | None, step: dict[str, Any], found: Facts
) -> bool:
    if usage is None or billed is None or found.compacted:
        return False
    explained = step["ledger"]["freed"]
    return usage["input_tokens"] + explained < billed * CUT_RATIO


def _step(
    thread: Thread,
    g: Group,
    events: list[tuple[int, Event]],
    before: list[Placed] | None,
    frame: list[Placed],
    found: Facts,
    basis: str,
    method: str,
) -> dict[str, Any]:
    ledger = _ledger(thread, before or [], frame, events)
    listed = changes(thread, before or [], frame, found)
    injected = bool(_places(events, "context.injection.applied", thread.target))
    flags = [] if injected else ["injection_not_recorded"]
    window = _window(thread, frame, events, ledger, method)
    flags += ["still_over_budget"] if window["over"] and found.dropped else []
    return {
        "type": "step",
        "session": g.session,
        "thread": g.thread,
        "turn": g.turn,
        "step": g.step,
        "turn_id": g.turn_id,
        "step_id": g.step_id,
        "target": thread.target,
        "mode": thread.mode,
        "mode_declared": thread.declared,
        "basis": basis,
        "layer": "injected" if injected else "view",
        "window": window,
        "ledger": ledger,
        "counts": {
            name: sum(change["status"] == name for change in listed)
            for name in ("added", "updated", "removed", "skipped", "omitted")
        },
        "changes": listed,
        "stages": _stages(events, thread.target, g.usage),
        "cache": _cache(thread, before, frame, listed, g.usage),
        "usage": _usage(g.usage, ledger["window_after"]),
        "flags": flags,
    }


def _window(
    thread: Thread, frame: list[Placed], events: list[tuple[int, Event]], ledger: dict[str, Any], method: str
) -> dict[str, Any]:
    found = [e["data"] for _, e in events if e["event_type"] == "context.budget.applied"]
    data = [d for d in found if d["target"] == thread.target and "max_tokens" in d]
    limit = data[-1]["max_tokens"] if data else None
    reserved = data[-1].get("reserved_tokens") if data else None
    cap = None if limit is None else limit - (reserved or 0)
    most = data[-1].get("metadata", {}).get("ctxctl", {}).get("max_input") if data else None
    if cap is not None and most is not None:
        cap = min(cap, most)
    used = ledger["window_after"]
    methods = Counter[str]()
    for p in frame:
        methods[{"counted": method}.get(p.method, p.method)] += p.tokens
    return {
        "limit": limit,
        "reserved": reserved,
        "cap": cap,
        "used": used,
        "free": None if cap is None else max(cap - used, 0),
        "over": None if cap is None else max(used - cap, 0),
        "uncounted": ledger["uncounted"],
        "by_method": {name: tokens for name, tokens in methods.items() if name != "uncounted"},
    }


def _ledger(
    thread: Thread, before: list[Placed], frame: list[Placed], events: list[tuple[int, Event]]
) -> dict[str, Any]:
    entered, left = differ(before, frame, thread.rules)
    first, last = sum(p.tokens for p in before), sum(p.tokens for p in frame)
    new, freed = total(entered), total(left)
    if thread.rules.net_ledger:
        new, freed = max(0, last - first), max(0, first - last)
    names = {name_of(ref, line, thread.book, thread.rules) for ref, line in skips(thread, events)}
    saved = sum(p.tokens for p in frame if p.item in names and not p.stale)
    return {
        "window_before": first,
        "new": new,
        "freed": freed,
        "window_after": last,
        "saved": saved if thread.mode == "append" else None,
        "stale": sum(p.tokens for p in frame if p.stale),
        "uncounted": sum(p.method == "uncounted" for p in frame),
    }


def _stages(events: list[tuple[int, Event]], target: str, usage: dict[str, Any] | None) -> dict[str, Any]:
    kinds = {e["event_type"] for _, e in events if e["data"].get("target", target) == target}
    names = {
        "selection": "context.selection.completed",
        "budget": "context.budget.applied",
        "assembly": "context.assembly.created",
        "injection": "context.injection.applied",
    }
    there = {name: kind in kinds for name, kind in names.items()} | {"evidence": usage is not None}
    return {name: {"verdict": "recorded" if is_there else "not_recorded"} for name, is_there in there.items()}


def _cache(
    thread: Thread,
    before: list[Placed] | None,
    frame: list[Placed],
    listed: list[dict[str, Any]],
    usage: dict[str, Any] | None,
) -> dict[str, Any]:
    billed = usage or {}
    out: dict[str, Any] = {"possible_prefix": None, "broken_by": None}
    out |= {
        "reported_cached": billed.get("cached_tokens"),
        "reported_cache_write": billed.get("cache_write_tokens"),
    }
    if before is None:
        return out
    tokens, broken = prefix(before, frame, thread.rules)
    out["possible_prefix"] = tokens
    if broken is not None:
        out["broken_by"] = _broken_by(thread, before, frame, listed, broken)
    return out


def _broken_by(
    thread: Thread, before: list[Placed], frame: list[Placed], listed: list[dict[str, Any]], at: int
) -> dict[str, Any]:
    """What changed there: the placement that was lost, or the one that came in front of it unchanged."""
    old, new = in_provider_order(before, thread.rules), in_provider_order(frame, thread.rules)
    by_item = {change["item"]: change for change in listed}
    breaker, change = old[at], by_item.get(old[at].item, {})
    if change.get("status") == "skipped" and at < len(new):
        breaker, change = new[at], by_item.get(new[at].item, {})
    status = "moved" if "moved" in change.get("flags", []) else change.get("status")
    return {"item": breaker.item, "position": at, "status": status, "cause": change.get("cause")}


def _usage(usage: dict[str, Any] | None, counted: int) -> dict[str, Any] | None:
    if usage is None:
        return None
    reported = usage.get("input_tokens")
    return {
        "reported_input": reported,
        "reported_cached": usage.get("cached_tokens"),
        "reported_output": usage.get("output_tokens"),
        "counted_input": counted,
        "difference": None if reported is None else counted - reported,
    }


def _turn(
    thread: Thread, own: list[dict[str, Any]], start: list[Placed], end: list[Placed], found: Facts
) -> dict[str, Any]:
    listed = [c for c in changes(thread, start, end, found) if c["status"] != "omitted"]
    first, last = own[0], own[-1]
    new, freed = (sum(step["ledger"][name] for step in own) for name in ("new", "freed"))
    if thread.rules.turn_nets:
        entered, left = differ(start, end, thread.rules)
        new, freed = total(entered), total(left)
    return {
        "type": "turn",
        **{name: last[name] for name in ("session", "thread", "turn", "turn_id", "target")},
        "steps": len(own),
        "ledger": {
            "window_before": first["ledger"]["window_before"],
            "new": new,
            "freed": freed,
            "window_after": last["ledger"]["window_after"],
        },
        "counts": {
            name: sum(change["status"] == name for change in listed)
            for name in ("added", "updated", "removed", "skipped")
        },
        "changes": listed,
    }
