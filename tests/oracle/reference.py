"""A second engine: DESIGN sections 2 and 3 said again, slowly and plainly, to hold the real one against.

Nothing is shared with `ctxctl.engine`, nothing is incremental: every step looks at all lines of its thread up
to its own seal and builds its frame from nothing.  The parts are `ref_steps`, `ref_items`, `ref_frames`,
`ref_changes` and `ref_sizes`; `Rules` has a flag for each way to be wrong that a weak test suite would not
notice, and `mutants` turns them on.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from tests.oracle.build import Event
from tests.oracle.case import Replayed
from tests.oracle.ref_changes import (
    Facts,
    changes,
    differ,
    facts,
    in_provider_order,
    moves,
    parameter,
    prefix,
    rank,
    total,
)
from tests.oracle.ref_frames import Count, Placed, Thread, append_frame, chosen, skips, window_frame
from tests.oracle.ref_items import ITEM_EVENTS, name_of, said, sha, text_of
from tests.oracle.ref_sizes import limits, segments, sizes, sound
from tests.oracle.ref_steps import Group, group, places, seal, unique
from tests.oracle.rules import Rules

APPEND_POINTS = {"user_message_appendix", "peer_agent_message"}
CUT_RATIO = 0.7


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
    asked: dict[str, Any] = {}
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
        was, asked = asked, _asked(thread, events, asked)
        step = _step(thread, g, events, before, frame, found, basis, method)
        if before is not None and step["cache"]["possible_prefix"] is not None:
            _broken_by_parameter(thread, step["cache"], before, parameter(was, asked, thread.rules))
        bill = g.usage.get("input_tokens") if g.usage else None
        bill = sound(bill, step["window"]["recorded"], replace(thread, target="model"))
        cut = _unrecorded_cut(bill, billed, step, found) or _above_the_bill(bill, step["window"]["by_method"])
        step["flags"] += ["unrecorded_cut"] if cut and thread.target == "model" else []
        billed = billed if bill is None else bill
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


def _unrecorded_cut(bill: int | None, billed: int | None, step: dict[str, Any], found: Facts) -> bool:
    if bill is None or billed is None or found.compacted:
        return False
    return bill + step["ledger"]["freed"] < billed * CUT_RATIO


def _above_the_bill(bill: int | None, by_method: dict[str, int]) -> bool:
    """Whether more is recorded than was billed, whatever the error of the counts."""
    error = {"exact": 0.02, "calibrated": 0.15}
    least = sum(int(n * (1 - error.get(name.split(":")[0], 0.5))) for name, n in by_method.items())
    return bill is not None and least - bill >= 5


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
    injected = bool(places(events, "context.injection.applied", thread.target))
    flags = [] if injected else ["injection_not_recorded"]
    window = _window(thread, frame, events, g.usage, method)
    if window["over"]:
        acted = found.dropped or found.compacted
        flags += ["still_over_budget" if acted else "over_budget"]
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
        "moves": moves(before or [], frame, thread.rules) if thread.mode == "window" else None,
        "stages": _stages(events, thread.target, g.usage),
        "segments": segments(thread, frame, window),
        "cache": _cache(thread, before, frame, listed, g.usage),
        "usage": _usage(g.usage, ledger["window_after"]),
        "flags": flags,
    }


def _window(
    thread: Thread,
    frame: list[Placed],
    events: list[tuple[int, Event]],
    usage: dict[str, Any] | None,
    method: str,
) -> dict[str, Any]:
    found = [e["data"] for _, e in events if e["event_type"] == "context.budget.applied"]
    data = [d for d in found if d["target"] == thread.target and "max_tokens" in d]
    size = sizes(thread, frame, usage)
    methods = Counter[str]()
    for p in frame:
        methods[{"counted": method}.get(p.method, p.method)] += p.tokens
    return {
        **size,
        **limits(thread, data[-1] if data else None, size),
        "uncounted": sum(p.method == "uncounted" for p in frame),
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
        "reported_cache_write_1h": billed.get("cache_write_1h_tokens"),
        "miss": None,  # bills here are below the smallest miss; see tests/unit/engine/test_misses.py
    }
    if before is None or (thread.target != "model" and not thread.rules.prefix_for_every_target):
        return out
    tokens, broken = prefix(before, frame, thread.rules)
    out["possible_prefix"] = tokens
    if broken is not None:
        out["broken_by"] = _broken_by(thread, before, frame, listed, broken)
    return out


def _asked(thread: Thread, events: list[tuple[int, Event]], before: dict[str, Any]) -> dict[str, Any]:
    """The model and the parameters of a step's request: as told, else as before."""
    assembly = chosen(thread, events)
    ours = assembly[1]["data"].get("metadata", {}).get("ctxctl", {}) if assembly else {}
    told = ours.get("request") or {name: value for name, value in before.items() if name != "model"}
    return {**told, "model": ours.get("model", before.get("model"))}


def _broken_by_parameter(
    thread: Thread, cache: dict[str, Any], before: list[Placed], by: tuple[str, int] | None
) -> None:
    """A parameter ends the prefix where its level begins, unless a placement did in front of that."""
    if by is None:
        return
    order = in_provider_order(before, thread.rules)
    left = [p for p in order if rank(p, thread.rules) < by[1]]
    broken = cache["broken_by"]
    if len(left) == len(order) or (broken is not None and broken["position"] < len(left)):
        return
    cache["possible_prefix"] = sum(p.tokens for p in left)
    level = ("tools", "system", "messages")[by[1]]
    cache["broken_by"] = {
        "item": None, "version": None, "position": len(left), "status": "updated", "cause": None,
        "setting": by[0], "level": level,
    }  # fmt: skip


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
        "provenance": "native",
        "provider": usage.get("provider"),
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
