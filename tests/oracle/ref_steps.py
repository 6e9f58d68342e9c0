"""The reference, part 1: which step an event belongs to, and where a step is sealed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.oracle.build import Event
from tests.oracle.rules import Rules


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
        injections = places(events, "context.injection.applied", target)
        assemblies = places(events, "context.assembly.created", target)
        end = injections[0] if injections else assemblies[-1] if assemblies else len(events) - 1
        if rules.seal_ignored:
            end = len(events) - 1
        effective.append(events[: end + 1])
        carry = events[end + 1 :]
    return effective


def places(events: list[tuple[int, Event]], kind: str, target: str) -> list[int]:
    return [
        i for i, (_, e) in enumerate(events) if e["event_type"] == kind and e["data"].get("target") == target
    ]
