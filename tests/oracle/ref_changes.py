"""The reference, part 4: statuses, causes, ledger and possible prefix."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from tests.oracle.build import Event
from tests.oracle.ref_frames import Key, Placed, Thread, chosen, drops
from tests.oracle.ref_items import name_of, ref_of, resolve
from tests.oracle.rules import Rules

FIRST_SEGMENTS = {"tool_definition": 0, "system_prompt": 1, "developer_instruction": 1}


def current(frame: Iterable[Placed]) -> dict[str, list[Placed]]:
    found: dict[str, list[Placed]] = {}
    for p in frame:
        if not p.stale:
            found.setdefault(p.item, []).append(p)
    return found


def rendered(placed: list[Placed]) -> set[tuple[str | None, ...]]:
    return {p.key[1:3] for p in placed}


def longest(old: tuple[Key, ...], new: tuple[Key, ...]) -> set[tuple[Key, ...]]:
    """All longest common subsequences, by comparing everything with everything."""
    ends: dict[tuple[int, int], set[tuple[Key, ...]]] = {}
    for i, j in product(range(len(old) + 1), range(len(new) + 1)):
        if not i or not j:
            found = {()}
        elif old[i - 1] == new[j - 1]:
            found = {(*run, old[i - 1]) for run in ends[i - 1, j - 1]}
        else:
            found = ends[i - 1, j] | ends[i, j - 1]
        most = max(map(len, found))
        ends[i, j] = {run for run in found if len(run) == most}
    return ends[len(old), len(new)]


def moves(before: list[Placed], now: list[Placed], rules: Rules) -> set[frozenset[str]]:
    """Items of which a kept placement is outside a longest common subsequence, for each there is."""
    old, new = tuple(p.key for p in before), tuple(p.key for p in now)
    kept = Counter(old) & Counter(new)
    if rules.moved_by_index:
        return {frozenset(a[0] for a, b in zip(new, old, strict=False) if a != b and a in kept)}
    return {frozenset(key[0] for key in kept - Counter(run)) for run in longest(old, new)}


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
    return sorted(frame, key=lambda p: rank(p, rules))


def rank(p: Placed, rules: Rules) -> int:
    """Tools, then the system prompt, then the rest; what a body has among its messages stays there."""
    if p.among == "messages" and not rules.speakers_first:
        return 2
    return FIRST_SEGMENTS.get(p.kind, 2)


LEVELS = {"speed": 1, "tool_choice": 2, "thinking": 2, "effort": 2}
"""What of Anthropic's cache a parameter breaks: 1 the system prompt and the messages, 2 the messages."""


def parameter(before: dict[str, Any], now: dict[str, Any], rules: Rules) -> tuple[str, int] | None:
    """The parameter whose change breaks most."""
    if rules.parameters_ignored or not before or not now:
        return None
    if before["model"] != now["model"] and None not in (before["model"], now["model"]):
        return "model", 0
    found = [(level, name) for name, level in LEVELS.items() if before.get(name) != now.get(name)]
    if not found or before.get("api") != "anthropic" or now.get("api") != "anthropic":
        return None
    level, name = min(found, key=lambda pair: pair[0])
    return name, 0 if rules.every_parameter_breaks_all else level


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
    shifted = min(moves(before, now, rules), key=sorted)
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
    item: str, placed: list[Placed], old: list[Placed] | None, shifted: frozenset[str], now: list[Placed]
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
    was = old[-1]
    another = copy.version is None or copy.version != was.version or copy.truncated or was.truncated
    said = None not in (was.rendering, copy.rendering) and was.rendering != copy.rendering
    if another or not (said or was.fields != copy.fields):  # one of several copies left, or another size
        return _change("updated", item, copy, flags=flags, previous_version=was.version)
    flags.append("rendering")
    one, other = json.loads(was.fields or "{}"), json.loads(copy.fields or "{}")
    differ = ["text"] if said else []
    differ += [name for name in sorted({*one, *other}) if one.get(name) != other.get(name)]
    reason = ", ".join(differ)
    return _change("updated", item, copy, flags=flags, previous_version=was.version, reason=reason)


def _change(status: str, item: str, copy: Placed | None, **more: Any) -> dict[str, Any]:
    made = {"status": status, "item": item, "version": copy.version if copy else None}
    known = copy is not None and copy.method != "uncounted"
    made |= {"tokens": copy.tokens if known else None, "kind": copy.kind if copy else "custom", "flags": []}
    return {**made, "cause": None, "reason": None, "into": None, "previous_version": None, **more}
