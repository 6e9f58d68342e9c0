"""What a step tells beside its frame, as labelled lines: ids, limits, gaps, compactions, redactions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ctxctl.labels import plural
from ctxctl.model.annotations import Bound, Compacted, Ids, MissingContext, Redacted
from ctxctl.model.results import Step
from ctxctl.text import clip, visible

_SHOWN = 8
"""Names listed of one kind; the rest are counted."""


def told(step: Step) -> Iterator[tuple[str, str]]:
    """Labels and texts, in the order in which they are read; nothing where nothing was told."""
    found = step.told
    ids = ids_text(found.ids)
    if ids:
        yield "for", ids
    chosen = [one for one in _facts(step, "selection").get("selected_refs", ()) if one.get("reason")]
    if chosen:
        yield "chosen", _names([f"{one['item']} ({one['reason']})" for one in chosen])
    yield from limits(step)
    for cut in _facts(step, "budget").get("truncations", ()):
        yield "cut", cut_text(cut)
    yield from (("compact", compacted_text(one)) for one in found.compactions)
    yield from (("lacking", missing_text(one)) for one in found.missing)
    yield from (("redacted", redacted_text(one)) for one in found.redactions)
    yield from (("envelope", bound_text(one)) for one in found.envelopes)


def _facts(step: Step, stage: str) -> dict[str, Any]:
    view = step.stages.get(stage)
    return view.facts if view is not None else {}


def ids_text(ids: Ids) -> str:
    """``context ctx-1, task t1, run r1, attempt a2``."""
    named = (("context", ids.context_id), ("task", ids.task_id), ("run", ids.run_id))
    return ", ".join(f"{what} {_say(name)}" for what, name in (*named, ("attempt", ids.attempt_id)) if name)


def limits(step: Step) -> Iterator[tuple[str, str]]:
    """Budgets in items, bytes, characters and time, each as used of allowed."""
    facts = _facts(step, "budget")
    said = []
    chars = "characters" + (f" ({_say(by)})" if (by := facts.get("chars_by")) else "")
    for unit, noun in (("items", "items"), ("bytes", "bytes"), ("chars", chars), ("time_ms", "ms")):
        limit = facts.get(f"max_{unit}")
        used = facts.get(f"actual_{unit}", facts.get(f"counted_{unit}"))
        if limit is None:
            continue
        text = f"{_number(used)} of {limit:,} {noun}"
        over = facts.get(f"over_{unit}")
        said.append(f"{text}, OVER BY {over:,}" if over else text)
    if said:
        yield "limits", "; ".join(said)


def _number(n: int | None) -> str:
    return "?" if n is None else f"{n:,}"


def cut_text(cut: dict[str, Any]) -> str:
    """What the budget record says that it did to one item."""
    text = f"{_say(cut['item'])} {cut['action']}"
    if cut.get("tokens_left") is not None:
        text += f" to {cut['tokens_left']:,} tokens"
    return f"{text} ({_say(cut['reason'])})" if cut.get("reason") else text


def compacted_text(one: Compacted) -> str:
    """What was replaced, by what, what it covers and what it lost."""
    how = ", ".join(_say(word) for word in (one.scope, one.method, one.trigger) if word)
    parts = [f"{_say(one.compaction_id or 'a compaction')}" + (f" ({how})" if how else "")]
    into = f" into {_say(one.summary)}" if one.summary else ""
    named = f": {_names(one.source_item_refs)}" if one.source_item_refs else " named"
    parts.append(f"{plural(len(one.source_item_refs), 'item')}{into}{named}")
    if one.coverage:
        parts.append("coverage " + ", ".join(f"{_say(k)} {_say(v)}" for k, v in one.coverage.items()))
    parts += [f"lost: {_say(note)}" for note in one.loss_notes]
    if one.validation:
        parts.append(f"validation {_say(one.validation)}")
    if one.replacement_policy:
        parts.append(f"replacement policy {_say(one.replacement_policy)}")
    return "; ".join(parts)


def missing_text(one: MissingContext) -> str:
    """What is lacking, how badly, who was asked for what, and what became of it."""
    state = ", ".join(_say(word) for word in (one.severity, one.status) if word)
    parts = [f"{_say(one.missing_id or 'something')}" + (f" [{state}]" if state else "")]
    if one.question:
        parts[0] += f": {_say(one.question)}"
    for label, value in (
        ("for the user", one.summary),
        ("needed for", one.needed_for),
        ("asked of", one.requested_from),
        ("action", one.requested_action),
    ):
        if value:
            parts.append(f"{label}: {_say(value)}")
    for label, values in (
        ("may come from", one.candidate_sources),
        ("blocks", one.blocked_actions),
        ("resolved by", one.resolution_refs),
    ):
        if values:
            parts.append(f"{label}: {_names(values)}")
    return "; ".join(parts)


def redacted_text(one: Redacted) -> str:
    """Which item, what was done to it, why, and by which policy; never what it said."""
    parts = [f"{_say(one.item)} {_say(one.state or 'redacted')}"]
    if one.method:
        parts[0] += f" by {_say(one.method)}"
    if one.reason:
        parts.append(f"because {_say(one.reason)}")
    if one.fields:
        parts.append(f"in {_names(one.fields)}")
    if one.policy_refs:
        parts.append(f"policy {_names(one.policy_refs)}")
    if one.actor:
        parts.append(f"by {_say(one.actor)}")
    if one.replacement:
        parts.append(f"replaced by {_say(one.replacement)}")
    return "; ".join(parts)


def bound_text(one: Bound) -> str:
    """An envelope's state and the records that it binds."""
    state = ", ".join(_say(word) for word in (one.scope, one.lifecycle) if word)
    text = _say(one.context_id or "unnamed") + (f" [{state}]" if state else "")
    kinds = ((name.removesuffix("_refs").removesuffix("_ref"), refs) for name, refs in one.refs.items())
    bound = "; ".join(f"{kind.replace('_', ' ')} {_names(refs)}" for kind, refs in kinds)
    return f"{text} binds {bound}" if bound else text


def _names(values: Sequence[str]) -> str:
    shown: Iterable[str] = (_say(value) for value in values[:_SHOWN])
    rest = len(values) - _SHOWN
    return ", ".join(shown) + (f" and {rest:,} more" if rest > 0 else "")


def _say(value: Any) -> str:
    """A value of the trace, shown and bounded."""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return clip(visible(str(value)[:1000]), 300)
