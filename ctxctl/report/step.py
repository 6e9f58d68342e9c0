"""One step as labelled plain lines: frame, changes, window arithmetic, budget, usage, cache, flags.

Then what the step tells beside its frame: ids, limits, gaps, compactions, redactions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from ctxctl.engine.sizes.bills import billed_size
from ctxctl.item_names import NAMELESS, ItemNames
from ctxctl.model.annotations import Bound, Compacted, Ids, MissingContext, Redacted
from ctxctl.model.missed import unrecorded_cut
from ctxctl.model.results import BrokenBy, Cache, Ledger, Step, Window
from ctxctl.model.terms import Pass
from ctxctl.model.vocab import MODEL, UNRECORDED
from ctxctl.report.bill_notes import miss_text, partial_text
from ctxctl.report.changes import changes_table, counts_line, rows, titles_of
from ctxctl.report.compaction_words import taken_facts
from ctxctl.report.cost_sums import total_text
from ctxctl.report.paint import Paint
from ctxctl.report.sent import known_by, limit_text, size_of_limit, threshold_text, unrecorded_text
from ctxctl.report.tables import bar, labelled, letters, ordered_segments, wrap
from ctxctl.session.item_words import broken_name
from ctxctl.text import clip, visible
from ctxctl.wording import MINUS, flag_words, plural, signed, signed_share

BASES = {
    "assembly": "from the recorded assembly",
    "selection": "from the recorded selection",
    "items": "from the items (no assembly or selection recorded)",
    "repeat": "repeated (nothing recorded)",
    "policy": "simulated by the policy",
    "none": "empty (nothing recorded)",
}
DERIVED = {
    "derived": "from an assembly derived from the capture",
    "simulated": "from an assembly simulated by the importer",
}
"""What is said in place of "from the recorded assembly" where the capture holds none."""
LAYERS = {"available": "layer available", "view": "layer view", "injected": "layer injected"}
_BAR_LIMIT = 100
_SHOWN_PASSES = 3
"""Passes of a request that are listed; the others are counted."""
_LEVELS = {"tools": "all", "system": "system and messages", "messages": "messages"}
"""What of a prompt cache is broken from a level on."""


def heading(step: Step, *, ids: bool = False) -> str:
    """Number, time and model of a step; its id if `ids` are asked for."""
    parts = [f"step {step.step}"]
    if step.step_id and ids:
        parts[0] += f" ({visible(step.step_id)})"
    if step.time:
        parts.append(visible(step.time))
    if step.model:
        parts.append(f"model {visible(step.model)}")
    return "  ".join(parts)


def step_lines(
    step: Step, width: int, paint: Paint, names: ItemNames, *, skipped: bool = False
) -> Iterator[str]:
    """The whole block of one step, indented by two."""
    for n, line in enumerate(wrap(heading(step, ids=names.ids), width - 4)):
        yield "  " + "  " * bool(n) + paint("head", line)
    for label, text in facts(step, names):
        yield from labelled(label, text, width, indent=4, tab=9)
    yield from segment_lines(step, width)
    yield from changes_table(rows(step.changes, skipped=skipped), width, paint, names, indent=4)


def facts(step: Step, names: ItemNames = NAMELESS) -> Iterator[tuple[str, str]]:
    """The labelled facts of a step, in the order in which they are read."""
    declared = "declared" if step.mode_declared else "inferred"
    basis = derived_basis(step) or BASES[step.basis]
    yield "frame", f"{step.mode} mode ({declared}), {basis}, {LAYERS[step.layer]}"
    yield "changes", counts_line(step.counts, step.mode)
    said = sent_text(step.window, billed=has_bill(step))
    yield "sent", said + ("; simulated" if limits_are_supposed(step) else "")
    yield "window", window_text(step)
    if (fitted := fitted_text(step)) is not None:
        yield "policy", fitted
    if step.usage is not None:
        yield "usage", usage_text(step)
    for one in step.stated:
        which = "this request alone" if one.scope == "request" else f"the {one.scope} up to here"
        yield "stated", f"{total_text(one)} by the runtime's own account, for {which}"
    if (failed := failed_text(step)) is not None:
        yield "failed", failed
    if (retried := retried_text(step)) is not None:
        yield "retried", retried
    broken = broken_name(step, names)
    yield "cache", cache_text(step.cache, broken) if step.target == MODEL else _NO_CACHE
    missing = ["limit unknown"] * (step.window.cap is None) + ["usage not reported"] * (
        step.usage is None and not step.stated
    )
    if missing:
        yield "missing", ", ".join(missing)
    if step.cut is not None:
        yield "cut", unrecorded_cut(step.cut)
    if step.flags:
        yield "flags", ", ".join(visible(flag_words(flag)) for flag in step.flags)
    yield from annotation_facts(step, names)


_VERDICTS = {
    "fits": "everything fits",
    "fitted": "made to fit",
    "still_over": "still over the cap",
    "rejected": "does not fit: the request is rejected",
    "asks": "does not fit: somebody is asked what to leave out",
    "blocked": "does not fit: the request is blocked",
    "unknown": "no cap is known: nothing is left out",
}


def fitted_text(step: Step) -> str | None:
    """What a fitting policy made of the window; None without one, and where nothing is otherwise."""
    facts = step.stages["budget"].facts.get("simulated")
    if facts is None or (facts["verdict"] == "fits" and not facts.get("restored")):
        return None
    parts = [_VERDICTS[facts["verdict"]]]
    if facts["dropped"] or facts["cut"]:
        parts.append(f"{facts['dropped']:,} left out, {facts['cut']:,} cut, of {facts['wanted']:,} tokens")
    if facts.get("level") is not None:
        parts.append(f"level {facts['level']}")
    if facts.get("restored"):
        parts.append(f"{facts['restored']:,} recorded omissions undone")
    return f"{visible(facts['policy'])}: {'; '.join(parts)}; simulated"


def failed_text(step: Step) -> str | None:
    """Why there was no answer, or not all of it; None where nothing says so."""
    view = step.stages.get("evidence")
    if view is None or "failed" not in view.facts:
        return None
    times = view.facts.get("failures")
    return visible(str(view.facts["failed"])) + (f" (the last of {times:,} failures)" if times else "")


def retried_text(step: Step) -> str | None:
    """How often the request failed before it was answered; None where it did not."""
    view = step.stages.get("evidence")
    times = view.facts.get("retried") if view is not None else None
    if not times:
        return None
    assert view is not None
    return f"answered after {plural(times, 'failure')}, the last {visible(str(view.facts['retried_after']))}"


def limits_are_supposed(step: Step) -> bool:
    """Whether the step's limits are those of a what-if."""
    view = step.stages.get("budget")
    return view is not None and "supposed" in view.facts


def derived_basis(step: Step) -> str | None:
    """What to say of a frame whose assembly the importer put together; None where it was recorded."""
    view = step.stages.get("assembly") if step.basis == "assembly" else None
    return DERIVED.get(view.facts.get("provenance", "")) if view is not None else None


def ledger_sum(before: int, new: int, freed: int, reweighed: int) -> str:
    """The left side of a ledger's sum, in tokens; what another model's encoding makes of the window before
    only where it makes something else of it."""
    again = f" {signed(reweighed)} counted anew" if reweighed else ""
    return f"{before:,} before{again} + {new:,} new {MINUS} {freed:,} freed"


def ledger_flow(ledger: Ledger) -> str:
    """The left side of a step's or a turn's sum."""
    return ledger_sum(ledger.window_before, ledger.new, ledger.freed, ledger.reweighed)


def window_text(step: Step) -> str:
    """The ledger's arithmetic in one line: what is recorded of the window, and what is not."""
    ledger, window = step.ledger, step.window
    text = f"{ledger_flow(ledger)} = {ledger.window_after:,} recorded"
    if (rest := unrecorded_text(window)) is not None and window.unrecorded:
        text += f"; {rest}"
    notes = []
    if ledger.stale:
        notes.append(f"{ledger.stale:,} stale")
    if ledger.saved:
        notes.append(f"{ledger.saved:,} saved by skipping")
    if ledger.uncounted:
        notes.append(f"{plural(ledger.uncounted, 'placement')} uncounted")
    if len(window.by_method) > 1 or ledger.reweighed:
        notes.append(methods(window.by_method))
    elif window.counted is not None and window.counted != window.recorded:
        notes.append(f"{next(iter(window.by_method), '')}, {window.counted:,} as counted".lstrip(", "))
    return f"{text} ({', '.join(notes)})" if notes else text


def methods(by_method: dict[str, int]) -> str:
    """``estimate:o200k_base 120, declared 40``."""
    return ", ".join(f"{visible(name)} {tokens:,}" for name, tokens in sorted(by_method.items()))


def has_bill(step: Step) -> bool:
    """Whether the provider's bill says how large the request was."""
    return billed_size(step.usage) is not None


def sent_text(window: Window, *, billed: bool = False) -> str:
    """What was sent, of how much, how that is known, and who says the limit."""
    parts = [size_of_limit(window), known_by(window, billed=billed)]
    if window.used_method == "recorded":
        parts = ["not known: no bill was read", size_of_limit(window)]
    parts += [said for said in (limit_text(window), threshold_text(window)) if said is not None]
    return "; ".join(parts)


def _passes(passes: Sequence[Pass]) -> str:
    sizes = [f"{one.input_tokens:,}" for one in passes[:_SHOWN_PASSES]]
    if len(passes) > len(sizes):
        sizes = [", ".join(sizes), f"{len(passes) - len(sizes):,} others"]
    return f"passes of {' and '.join(sizes)}"


def usage_text(step: Step) -> str:
    """What the provider billed, beside what was to be expected."""
    usage, parts = step.usage, []
    assert usage is not None
    if usage.reported_input is not None:
        notes = [] if usage.reported_cached is None else [f"{usage.reported_cached:,} cached"]
        if usage.terms.passes:
            notes.append(_passes(usage.terms.passes))
        how = "billed" if usage.provenance == "native" else usage.provenance
        inside = f" ({'; '.join(notes)})" if notes else ""
        parts.append(f"{how} {usage.reported_input:,} in{inside}")
    if usage.reported_output is not None:
        parts.append(f"{usage.reported_output:,} out")
    for one in usage.terms.further:
        read, wrote = f"{one.input_tokens:,} in", f"{one.output_tokens:,} out"
        parts.append(f"other model {visible(one.model or one.type)}: {read}, {wrote}")
    if usage.terms.cleared_tokens:
        parts.append(f"{usage.terms.cleared_tokens:,} cleared by the provider")
    said = ", ".join(parts) or "no input billed"
    found = step.stages["evidence"].facts if "evidence" in step.stages else {}
    expected, error = found.get("expected_input"), found.get("expected_error")
    if isinstance(expected, int) and usage.sent:
        off = expected - usage.sent
        within = f" ±{error:,}" if isinstance(error, int) else ""
        said += f"; {expected:,}{within} was expected ({signed(off)}, {signed_share(off, usage.sent)})"
    partial = partial_text(usage)
    return said if partial is None else f"{said}; {partial}"


_NO_CACHE: Final = "not applicable: prompt caches are of a model's requests"


def cache_text(cache: Cache, broken_by: str | None = None) -> str:
    """The possible prefix, what broke it (`broken_by`, by default its id), and what the provider says it had
    cached."""
    parts = []
    if cache.possible_prefix is None:
        parts.append("no request before this one")
    else:
        parts.append(f"possible prefix {cache.possible_prefix:,}")
        broken = cache.broken_by
        if broken is None:
            parts.append("unbroken")
        else:
            parts.append(f"broken at position {broken.position} by {broken_text(broken, broken_by)}")
        if cache.compared == "content":
            parts.append("compared by content")
    if cache.reported_cached is not None:
        parts.append(f"reported cached {cache.reported_cached:,}")
    if cache.reported_cache_write is not None:
        hour = f" ({cache.reported_cache_write_1h:,} for an hour)" if cache.reported_cache_write_1h else ""
        parts.append(f"written {cache.reported_cache_write:,}{hour}")
    if cache.miss is not None:
        parts.append(miss_text(cache.miss))
    return "; ".join(parts)


def broken_text(broken: BrokenBy, name: str | None = None) -> str:
    """What broke it, and how: an item, or a parameter with the level from which on it breaks."""
    said = [broken.status]
    if broken.setting is not None and broken.level is not None:
        said.append(f"breaks {_LEVELS[broken.level]}")
    said += [visible(what) for what in (broken.cause, broken.change) if what]
    return f"{visible(broken.name) if name is None else name} ({', '.join(said)})"


def segment_lines(step: Step, width: int, *, indent: int = 4) -> Iterator[str]:
    """The bar of the window by segment, and its legend."""
    held = {name: tokens for name, tokens in step.segments.items() if tokens > 0}
    if not held:
        return
    room = min(width - indent - 9 - 2, _BAR_LIMIT)
    drawn = bar(held, step.window.cap or 0, room)
    yield " " * indent + "segments " + f"[{drawn}]"
    signs = letters(held)
    names = {UNRECORDED: "not recorded"}
    legend = [
        f"{signs[name]} {visible(names.get(name, name))} {held[name]:,}" for name in ordered_segments(held)
    ]
    if step.window.free:
        most = "≤" if step.window.used_method == "recorded" else ""  # what was sent beside it is not known
        legend.append(f". free {most}{step.window.free:,}")
    yield from labelled("", ", ".join(legend), width, indent=indent, tab=9)


_SHOWN = 8
"""Names listed of one kind; the rest are counted."""


def annotation_facts(step: Step, names: ItemNames = NAMELESS) -> Iterator[tuple[str, str]]:
    """What the step tells beside its frame, as labels and texts in the order of reading."""
    found = step.annotations
    ids = ids_text(found.ids)
    if ids:
        yield "for", ids
    chosen = [one for one in _facts(step, "selection").get("selected_refs", ()) if one.get("reason")]
    if chosen:
        yield "chosen", _names([f"{one['item']} ({one['reason']})" for one in chosen])
    yield from limit_facts(step)
    for cut in _facts(step, "budget").get("truncations", ()):
        yield "cut", cut_text(cut)
    titles = titles_of(step.changes)
    yield from (("compact", compacted_text(one, names, titles)) for one in found.compactions)
    if found.compactions:
        from ctxctl.analysis.compacting import compacting

        yield from taken_facts(compacting(step), names)
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


def limit_facts(step: Step) -> Iterator[tuple[str, str]]:
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


def compacted_text(one: Compacted, names: ItemNames, titles: Mapping[str, str | None]) -> str:
    """What was replaced, by what, what it covers and what it lost; `titles` are those at hand."""
    how = ", ".join(_say(word) for word in (one.scope, one.method, one.trigger) if word)
    into = f" into {names.of_ref(one.summary, titles)}" if one.summary else ""
    parts = [f"{plural(len(one.source_item_refs), 'item')}{into}" + (f" ({how})" if how else "")]
    if not one.source_item_refs:
        parts[0] = parts[0].replace("0 items", "no item named", 1)
    elif names.ids:
        parts.append(f"{_say(one.compaction_id or 'a compaction')} of {_names(one.source_item_refs)}")
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
    return "; ".join(
        [
            *parts,
            *_clause("for the user:", one.summary),
            *_clause("needed for:", one.needed_for),
            *_clause("asked of:", one.requested_from),
            *_clause("action:", one.requested_action),
            *_clause("may come from:", one.candidate_sources),
            *_clause("blocks:", one.blocked_actions),
            *_clause("resolved by:", one.resolution_refs),
        ]
    )


def redacted_text(one: Redacted) -> str:
    """Which item, what was done to it, why, and by which policy; never what it said."""
    what = f"{_say(one.item)} {_say(one.state or 'redacted')}"
    return "; ".join(
        [
            " ".join([what, *_clause("by", one.method)]),
            *_clause("because", one.reason),
            *_clause("in", one.fields),
            *_clause("policy", one.policy_refs),
            *_clause("by", one.actor),
            *_clause("replaced by", one.replacement),
        ]
    )


def _clause(words: str, value: str | Sequence[str] | None) -> list[str]:
    """The words before a name, or before a list of names; nothing where there is none."""
    if not value:
        return []
    return [f"{words} {_say(value) if isinstance(value, str) else _names(value)}"]


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
