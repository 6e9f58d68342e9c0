"""What the panes show, asked of an inspector.  Runs in the loader's thread; no widget, no state."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from ctxctl.model.content import Content
from ctxctl.model.problem import Problem
from ctxctl.model.results import Change, Frame, Placement, Step, Summary
from ctxctl.report.frame import stages_text
from ctxctl.report.step import derived_basis
from ctxctl.report.told import told
from ctxctl.tui.changes import ChangeTable, Note, grouped
from ctxctl.tui.document import Document
from ctxctl.tui.figures import number
from ctxctl.tui.outline import WARNINGS
from ctxctl.tui.state import Detail, ItemKey, ItemText, Target, Trace

if TYPE_CHECKING:
    from ctxctl.inspector import Inspector

_PRETTY: Final = 1 << 20
"""Bytes of JSON up to which structured content is shown indented."""

_WIDE: Final = 76
"""Columns of what the capture told: what the narrowest usual screen holds."""
_LABELS: Final = 300
_WORDS: Final = 200
"""Items whose first words are read for the list, and characters of each."""

_NOTES: Final = {
    "unrecorded_cut": "the provider's usage shows a cut that nothing in the trace records",
    "still_over_budget": "still over budget after everything that was cut",
    "over_budget": "over the budget",
    "unknown_base": "it builds on an assembly that the trace does not hold: the frame may lack items",
    "missing_context": "the runtime found context missing",
    "redacted": "something was redacted",
    "branched": "the conversation went on from an earlier point",
    "cleared": "the conversation was cleared",
    "injection_not_recorded": "injection not recorded: what was selected may not have been sent",
    "simulated": "simulated: rebuilt from rules, not recorded",
}
_WARNED: Final = frozenset({"lacking"})
_BASIS: Final = {
    "repeat": "nothing was recorded for this step: it repeats the frame before",
    "policy": "simulated: this is what the policy would have sent",
    "none": "nothing was recorded for this step",
}


def trace(inspector: Inspector) -> Trace:
    """Name, parameters and number of problems so far."""
    params = inspector.params
    return Trace(
        name=inspector.name,
        format=inspector.format,
        encoding=f"{'estimate' if params.assumed else 'exact'}:{params.encoding}",
        assumed=params.assumed,
        policy=params.policy,
        problems=inspector.problem_count,
    )


def detail(inspector: Inspector, target: Target, with_skipped: bool) -> Detail:
    """A frame's facts and changes; a whole turn's are from the previous turn's last frame to its own."""
    step = inspector.step(target.ordinal)
    turn = inspector.turn(target.ordinal) if target.whole_turn else None
    changes = step.changes if turn is None else turn.changes
    counts = step.counts if turn is None else turn.counts
    skipped = _skipped(inspector.frame(target.ordinal), changes) if with_skipped else None
    groups = grouped(changes, skipped, counts.skipped, step.window.used)
    labels = _labels(inspector, target, [*changes, *(skipped or ())])
    return Detail(target, step, turn, ChangeTable.of(groups, notes(step), labels), with_skipped)


def _labels(inspector: Inspector, target: Target, changes: list[Change]) -> dict[str, str]:
    """The first words of items without a title; of the first few hundred, whose texts are read for it."""
    nameless = {change.item for change in changes if not change.title}
    if not nameless:
        return {}
    nameless -= inspector.step(target.ordinal).told.withheld
    labels: dict[str, str] = {}
    before = inspector.previous(target.first)
    for ordinal in (target.ordinal, before):
        if ordinal is None or len(labels) == len(nameless):
            continue
        for placement in inspector.frame(ordinal).placements:
            if len(labels) >= _LABELS:
                return labels
            if placement.item in nameless and placement.content and placement.item not in labels:
                labels[placement.item] = inspector.text(placement.content)[:_WORDS]
    return labels


def notes(step: Step) -> list[Note]:
    """What a reader of the frame should know before its changes."""
    basis = _BASIS.get(step.basis) or derived_basis(step)
    found = [Note(basis)] if basis is not None else []
    flags = [flag for flag in step.flags if not (flag == "simulated" and step.basis == "policy")]
    found += [Note(_NOTES[flag], warning=flag in WARNINGS) for flag in flags if flag in _NOTES]
    # Ids are the same in step after step: they stand with the stages.
    said = [(label, text) for label, text in told(step) if label != "for"]
    found += [Note(f"{label}: {text}", warning=label in _WARNED) for label, text in said]
    differing = [name for name, stage in step.stages.items() if stage.verdict == "differs"]
    if differing:
        found.append(Note(f"not what was recorded: {', '.join(differing)}", warning=True))
    return sorted(found, key=lambda note: not note.warning)


def _skipped(frame: Frame, changes: Sequence[Change]) -> list[Change]:
    """The items of a frame that did not change, in its order, with the tokens of all their copies.

    What `changes` says of some of them is kept.
    """
    noted = {change.item: change for change in changes if change.status == "skipped"}
    changed = {change.item for change in changes if change.status not in ("skipped", "omitted")}
    held: dict[str, int] = {}
    current: dict[str, Placement] = {}
    for placement in frame.placements:
        held[placement.item] = held.get(placement.item, 0) + placement.tokens
        if not placement.stale and placement.item not in changed:
            current.setdefault(placement.item, placement)
    return [
        noted[item] if item in noted else _unchanged(placement, held[item])
        for item, placement in current.items()
    ]


def _unchanged(placement: Placement, in_window: int) -> Change:
    return Change(
        status="skipped",
        item=placement.item,
        kind=placement.kind,
        title=placement.title,
        version=placement.version,
        previous_version=placement.version,
        tokens=placement.tokens,
        in_window=in_window,
        new=0,
        freed=0,
        cause=None,
        reason=None,
        into=None,
        flags=("carried-in",) if placement.carried else (),
        source=placement.source,
        provenance="simulated" if placement.simulated else "derived" if placement.derived else "native",
        line=placement.line,
    )


# An item's text ---------------------------------------------------------------------------------------------


def item(inspector: Inspector, key: ItemKey) -> ItemText:
    """The text of an item's change, and its unified diff to the text it had in the frame before."""
    change = key.change
    frame = inspector.frame(key.target.ordinal)
    after = _placement(frame, change.item, change.version)
    if change.item in frame.step.told.withheld:
        return _redacted(inspector, key, after)
    before_at = inspector.previous(key.target.first)
    before = None
    if before_at is not None:
        version = change.previous_version or change.version
        before = _placement(inspector.frame(before_at), change.item, version)
    if change.status == "removed" or after is None:
        text, note = _text(inspector, before, change)
        return ItemText(key, text, None, note, "not in this frame: there is nothing to compare with")
    text, note = _text(inspector, after, change)
    diff, diff_note = _diff(inspector, before, after)
    return ItemText(key, text, diff, note, diff_note)


def _redacted(inspector: Inspector, key: ItemKey, after: Placement | None) -> ItemText:
    """An item that was redacted: what it said before is not shown any more."""
    note = "It was redacted: what it said before is not shown."
    if after is None or after.content is None:
        return ItemText(key, None, None, note, note)
    return ItemText(key, Document(_shown(inspector, after.content), numbered=True), None, "", note)


def _placement(frame: Frame, item_id: str, version: str | None) -> Placement | None:
    """The item's current copy in a frame, else one of that version, else any."""
    found = [placement for placement in frame.placements if placement.item == item_id]
    if not found:
        return None
    return max(found, key=lambda p: (not p.stale, p.version == version))


def _text(inspector: Inspector, placement: Placement | None, change: Change) -> tuple[Document | None, str]:
    if placement is not None and placement.content is not None:
        return Document(_shown(inspector, placement.content), numbered=True), ""
    if placement is None and change.line:
        recorded = _recorded(inspector, change.line)
        if recorded is not None:
            return Document(recorded, numbered=True), ""
    if placement is not None and placement.carried:
        return None, "It was in the window before the trace begins, and the trace does not hold its text."
    if change.tokens:
        return None, "The trace holds no text of it, only its size."
    return None, "The trace holds no text of it."


def _recorded(inspector: Inspector, line: int) -> str | None:
    """The text of an item record that no frame holds, from its line of the trace."""
    data = inspector.native(line).get("data")
    content = data.get("content") if isinstance(data, dict) else None
    if content is None or isinstance(content, str):
        return content
    return json.dumps(content, ensure_ascii=False, indent=2)


def _shown(inspector: Inspector, content: Content) -> str:
    """A content's text; structured content indented."""
    text = inspector.text(content)
    if content.form == "json" and content.size <= _PRETTY:
        try:
            return json.dumps(json.loads(text), ensure_ascii=False, indent=2)
        except (ValueError, RecursionError):
            return text
    return text


def _diff(inspector: Inspector, before: Placement | None, after: Placement) -> tuple[Document | None, str]:
    if before is None:
        return None, "It is new in this frame: there is nothing to compare with."
    if before.content is None or after.content is None:
        return None, "The trace does not hold both texts."
    if before.content is after.content or before.content.digest == after.content.digest:
        return None, "The same text as in the frame before."
    from ctxctl.engine.textdiff import unified

    found = unified(_shown(inspector, before.content), _shown(inspector, after.content))
    lines: list[tuple[str, str]] = [
        (line.kind, f"@@ {line.text} @@" if line.kind == "@" else line.text) for line in found.lines
    ]
    if found.degraded:
        lines.insert(0, ("!", "too large for the shortest diff: some equal lines may be shown as changed"))
    return Document.of_lines(lines), ""


def stages(inspector: Inspector, ordinal: int) -> Document:
    """All stages of a step with what is known of each, and what its records tell beside the frame."""
    return Document.of_lines((" ", line) for line in stages_text(inspector.step(ordinal)))


# Whole texts ------------------------------------------------------------------------------------------------


def assembled(inspector: Inspector, ordinal: int) -> Document:
    """The assembled text of a step."""
    return Document(inspector.assembled(ordinal), numbered=True)


def problems(found: Iterable[Problem], total: int) -> Document:
    """The problems of a trace, one a line; how many more there are than were kept."""
    lines = [(" ", f"line {number(p.line)}, byte {number(p.byte)}  {p.slug}  {p.message}") for p in found]
    if not lines:
        lines = [(" ", "Every line of the trace could be read.")]
    elif total > len(lines):
        lines.append(("!", f"and {number(total - len(lines))} more"))
    return Document.of_lines(lines)


def about(format_name: str, summary: Summary | None) -> Document:
    """What the format can tell of each fact, and what the capture held of it once it was read whole."""
    from ctxctl.formats.registry import available
    from ctxctl.report.fidelity import declared_lines, measured_lines

    measured = summary.fidelity if summary is not None else ()
    if measured and measured[0].format is not None:
        format_name = measured[0].format
    lines = [("@", f"format {format_name}")]
    declared = next((f.about for f in available() if f.name == format_name), None)
    if declared is None and not measured:
        lines.append((" ", "A trace as it was recorded: each step's stages say what was not recorded of it."))
    if measured:
        lines += [(" ", ""), ("@", "what the capture told")]
        lines += [(" ", line) for line in measured_lines(measured, _WIDE, indent=0)]
    elif declared is not None:
        lines += [(" ", ""), ("!", "what this capture told is known once it was read whole")]
    if declared is not None:
        lines += [(" ", ""), ("@", "what such captures tell at best")]
        lines += [(" ", line) for line in declared_lines(declared, _WIDE)]
    return Document.of_lines(lines)
