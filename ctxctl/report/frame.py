"""One frame in plain text: the step's facts, its stages, and the placements in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ctxctl.item_names import NAMELESS, ItemNames
from ctxctl.model.results import Change, Frame, Placement, StageView, Step
from ctxctl.model.vocab import STAGES
from ctxctl.report.changes import changes_table, rows, short_version, with_names
from ctxctl.report.paint import Paint
from ctxctl.report.step import annotation_facts, facts, heading, segment_lines
from ctxctl.report.tables import Column, labelled, table
from ctxctl.text import clip, preview, visible
from ctxctl.wording import number, plural, short_kind

_COLUMNS = (
    Column("#", right=True),
    Column("segment", least=8),
    Column("kind", least=9),
    Column("item", least=24),
    Column("id", least=14),
    Column("version", least=8),
    Column("tokens", right=True),
    Column("state"),
    Column("from", least=8),
    Column("notes", least=10),
)


_ITEM = 3
"""The column with the names."""
_UNBOUNDED = 1 << 20
_SHORT = 40
"""Characters up to which a list stands in one line."""


def frame_lines(
    frame: Frame, width: int, paint: Paint, names: ItemNames, *, changes: Sequence[Change] | None = None
) -> Iterator[str]:
    """The whole frame; `changes`, if given, are listed in place of the step's, skipped ones too."""
    step = frame.step
    yield ""
    yield paint("head", clip(f"turn {step.turn}, {heading(step, ids=names.ids)}", width))
    for label, text in facts(step, names):
        yield from labelled(label, text, width, indent=2, tab=9)
    yield from segment_lines(step, width, indent=2)
    yield ""
    yield paint("head", "stages")
    for name in STAGES:
        yield from stage_line(name, step.stages.get(name), width, ids=names.ids)
    changed = rows(step.changes if changes is None else changes, skipped=changes is not None)
    if changed:
        yield ""
        yield paint("head", "changes since the frame before")
        yield from changes_table(changed, width, paint, names, indent=2)
    yield ""
    yield from placement_lines(frame.placements, width, paint, names)


def stage_line(name: str, view: StageView | None, width: int, *, ids: bool = False) -> Iterator[str]:
    """One stage: its verdict, and its facts in one paragraph; its records' own ids only with `ids`."""
    text = "not recorded"
    if view is not None:
        facts = [(key, value) for key, value in view.facts.items() if ids or not _is_id(key)]
        said = ", ".join(f"{key.replace('_', ' ')} {value_text(value)}" for key, value in facts)
        text = view.verdict.replace("_", " ") + (f": {said}" if said else "")
    yield from labelled(name, text, width, indent=2, tab=11)


def _is_id(key: str) -> bool:
    return key.endswith("_id") or key == "spliced_onto"


def stages_text(step: Step) -> Iterator[str]:
    """Every stage with a line for each of its facts, then what the step tells beside its frame.

    Lines are as long as they are: whoever shows them wraps them.
    """
    for name in STAGES:
        yield from stage_lines(step, name, _UNBOUNDED)
        yield ""
    for label, text in annotation_facts(step, NAMELESS._replace(ids=True)):
        yield f"{label}: {text}"


def stage_lines(step: Step, name: str, width: int) -> Iterator[str]:
    """One stage with a line for each of its facts."""
    view = step.stages.get(name)
    yield f"{name}: {view.verdict.replace('_', ' ') if view is not None else 'not recorded'}"
    for key, value in (view.facts if view is not None else {}).items():
        label = visible(key)
        for part in _each(value):
            yield from labelled(label, value_text(part), width, indent=2, tab=20)
            label = ""


def _each(value: Any) -> Sequence[Any]:
    """What gets a line of its own: refs that in one paragraph could not be told apart."""
    several = isinstance(value, (list, tuple)) and len(value) > 1
    return value if several and len(value_text(value)) > _SHORT else [value]


def value_text(value: Any) -> str:
    """A fact for people: numbers with separators, lists and tables in a line."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "-"}[value]
    if isinstance(value, int):
        return number(value)
    if isinstance(value, dict):
        return " ".join(f"{visible(str(k))}={value_text(v)}" for k, v in value.items()) or "none"
    if isinstance(value, (list, tuple)):
        return " ".join(value_text(v) for v in value) or "none"
    return clip(visible(str(value)[:1000]), 200)


def notes(placement: Placement, usual: str = "counted") -> str:
    """What has to be said about one copy beside its numbers; not how it was counted, if that is `usual`."""
    said = []
    if placement.method != usual:
        said.append(visible(placement.method))
    if placement.truncated:
        said.append("truncated")
    if placement.redaction:
        said.append(visible(placement.redaction))
    if placement.carried:
        said.append("carried in")
    if placement.simulated:
        said.append("simulated")
    elif placement.derived:
        said.append("derived")
    return ", ".join(said)


def placement_lines(
    placements: tuple[Placement, ...], width: int, paint: Paint, names: ItemNames
) -> Iterator[str]:
    """The placements as a table, numbered from 1, with their sum."""
    methods = {p.method for p in placements}
    usual = methods.pop() if len(methods) == 1 else "counted"
    stale = sum(p.stale for p in placements)
    total = f"{plural(len(placements), 'placement')}, {sum(p.tokens for p in placements):,} tokens"
    total += f", {visible(usual)}" if usual != "counted" else ""
    yield paint("head", total + (f", {stale:,} stale" if stale else ""))
    if not placements:
        return
    named = [names.row(p.item, p.title, f"{p.segment} {p.kind}") for p in placements]
    body = [
        (
            number(n),
            visible(p.segment),
            visible(short_kind(p.kind)),
            name,
            visible(p.item) if names.ids else "",
            short_version(p.version) if names.ids else "",
            "-" if p.method == "uncounted" else number(p.tokens),
            "stale" if p.stale else "",
            preview(p.source, 60) if p.source and p.source != p.item else "",
            notes(p, usual),
        )
        for n, (p, name) in enumerate(zip(placements, names.listed(named), strict=True), 1)
    ]
    found = table(_COLUMNS, with_names(_COLUMNS, body, _ITEM, names, named, width - 2), width - 2)
    for line in found.head:
        yield "  " + paint("dim", line)
    for p, lines in zip(placements, found.rows, strict=True):
        yield from ("  " + (paint("dim", line) if p.stale else line) for line in lines)
