"""What a policy would have sent at a step, and whether the trace recorded the same (DESIGN section 4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from ctxctl.engine.replay.step_facts import FactsReading, StepFacts
from ctxctl.model.policy import Offered, Plan, Policy, Situation
from ctxctl.model.results import Placement, StageView
from ctxctl.model.vocab import APPEND_POINTS

if TYPE_CHECKING:
    from ctxctl.engine.replay.thread_data import ThreadData


class Simulation:
    """Runs a policy on one thread."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self._seen: Mapping[str, Offered] = {}
        self._attached: tuple[str, ...] | None = None

    def copy(self) -> Simulation:
        """Return an independent copy, for a snapshot of a replay."""
        twin = Simulation(self.policy)
        twin._seen, twin._attached = self._seen, self._attached
        return twin

    def send(self, thread: ThreadData, facts: StepFacts) -> SentStep:
        """Plan one step and turn the plan into placements. The policy's own are marked as simulated."""
        for surface in facts.surfaces:
            self._attached = surface.available_source_refs
        dropped = thread.editing.dropped if thread.editing is not None else frozenset[str]()
        offered = tuple(
            Offered(v.item, thread.placer.version(v), v.record.title, v.record.source)
            for v in thread.book.live.values()
            if v.visible and v.item not in dropped
        )
        questions = [m.question or "" for m in facts.missing]
        sources = {o.source for o in offered if o.source is not None}.union(self._attached or ())
        silent = frozenset(s for s in sources if any(_speaks_of(q, s) for q in questions))
        plan = self.policy.plan(Situation(self._attached, offered, silent, self._seen))
        decided = {act.item for act in plan.acts} | set(self._seen) | set(plan.seen)
        own = _unattached(thread, facts, decided, self._attached)
        self._seen = plan.seen
        return SentStep(_behind_the_prompt(own, _placements(thread, plan)), plan)


class SentStep(NamedTuple):
    """What a step adds to the history, and the plan that it follows."""

    placements: list[Placement]
    plan: Plan

    @property
    def removed(self) -> list[str]:
        """Items that the plan removes."""
        return [act.item for act in self.plan.acts if act.action == "removed"]

    @property
    def skipped(self) -> list[str]:
        """Items that the plan leaves unchanged."""
        return [act.item for act in self.plan.acts if act.action == "skipped"]


def _speaks_of(question: str, source: str) -> bool:
    rest = question.removeprefix(source)
    return rest != question and not rest[:1].isalnum() and rest[:1] not in {"-", "_", "/", ":"}


def _unattached(
    thread: ThreadData, facts: StepFacts, decided: set[str], attached: tuple[str, ...] | None
) -> list[Placement]:
    """Return items of this step that the policy does not decide (messages, tool results), as recorded."""
    found = []
    for item in facts.entered:
        version = thread.book.live.get(item)
        if version is None or not version.visible or item in decided:
            continue
        if version.record.context_kind == "marker":
            # The policy adds its own marker instead of the runtime's.
            continue
        if attached is not None and version.record.source in attached:
            continue
        found.append(thread.placer.plain(version))
    return found


def _placements(thread: ThreadData, plan: Plan) -> list[Placement]:
    placer, placements = thread.placer, []
    for act in plan.acts:
        if act.action == "removed":
            placements.append(placer.marker(act.item, act.before))
        elif act.action != "skipped":
            version = thread.book.live[act.item]
            placements.append(placer.wrapped(version, act.before))
    if placements:
        placements[0] = msgspec.structs.replace(placements[0], opens=plan.opening)
        placements[-1] = msgspec.structs.replace(placements[-1], closes=plan.closing)
    return placements


def _behind_the_prompt(own: list[Placement], injected: list[Placement]) -> list[Placement]:
    """Put injected placements after the step's last human message; without one, at the end."""
    prompts = [at for at, placement in enumerate(own) if placement.kind == "user_message"]
    at = prompts[-1] + 1 if prompts else len(own)
    return own[:at] + injected + own[at:]


def verified_stages(
    views: dict[str, StageView], sent: SentStep, reading: FactsReading
) -> dict[str, StageView]:
    """Compare the recorded stages with the plan: `matches`, `differs` or `not_recorded`."""
    facts = reading.facts
    expected: dict[str, list[str]] = {"selected": [], "unchanged": []}
    for act in sent.plan.acts:
        if act.action in ("added", "updated"):
            expected["selected"].append(act.item)
        elif act.action == "skipped":
            expected["unchanged"].append(act.item)
    out = dict(views)
    if facts.selection is not None:
        recorded = {
            "selected": [reading.item_of(r.ref) for r in facts.selection.selected],
            "unchanged": [reading.item_of(r.ref) for r in reading.unchanged()],
        }
        same = all(sorted(expected[k]) == sorted(recorded[k]) for k in expected)
        out["selection"] = _held(views["selection"], same, expected, recorded)
    if facts.assembly is not None and facts.assembly.blocks:
        ours = [p.digest for p in sent.placements if p.simulated]
        theirs = [p.digest for p in reading.assembled if p.digest is not None]
        if theirs:
            out["assembly"] = _held(views["assembly"], set(ours) <= set(theirs), ours, theirs)
    appendix = any(i.injection_point in APPEND_POINTS for i in facts.injections)
    injects = any(act.action != "skipped" for act in sent.plan.acts)
    if facts.injections and (appendix or injects):
        out["injection"] = _held(views["injection"], appendix == injects, injects, appendix)
    return out


def _held(view: StageView, same: bool, expected: Any, recorded: Any) -> StageView:
    if same:
        return msgspec.structs.replace(view, verdict="matches")
    facts = {**view.facts, "expected": expected, "recorded": recorded}
    return StageView("differs", facts)
