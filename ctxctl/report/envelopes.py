"""Context envelopes of the Agent Context draft: one a step, which binds its records and items together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Any, Final

import orjson

from ctxctl.model.problem import Problem
from ctxctl.model.results import Placement, Step
from ctxctl.model.vocab import NO_TIME, SCHEMA_VERSION
from ctxctl.session import Inspector
from ctxctl.text import json_safe

Json = dict[str, Any]
_MOST_REFS: Final = 10_000_000
"""Items that all envelopes of a file may name together: some 300 MB."""
_REFS: Final = (
    ("surface_refs", "surface", "surface_id"),
    ("selection_refs", "selection", "selection_id"),
    ("assembly_refs", "assembly", "assembly_id"),
    ("injection_refs", "injection", "injection_id"),
)
"""A field of the envelope, and the stage and its fact that name the record."""


def envelope_lines(
    inspector: Inspector,
    version: str,
    progress: Callable[[float], None],
    report: Callable[[Problem], None] = lambda _: None,
) -> Iterator[bytes]:
    """One envelope a line, in the order of the steps; each follows the published schema.

    Each names all items of its window, so where windows grow the file grows with the square of the steps:
    it ends with the step that would make it name more than `_MOST_REFS` (the first one is always there), and
    `report` is told.

    `version` is ctxctl's.
    """
    time, named = NO_TIME, 0
    for ordinal, at in enumerate(inspector.steps(progress)):
        named += len(at.placements)
        if ordinal and named > _MOST_REFS:
            where = f"turn {at.step.turn}, step {at.step.step} of thread {at.step.thread}"
            what = f"the envelopes end before {where}: together they would name over {_MOST_REFS:,} items"
            hint = "`ctxctl show TRACE@TURN.STEP --json` has the items of each later step"
            report(Problem(at.step.first_line, at.step.first_byte, "export-cut", f"{what}; {hint}"))
            return
        time = at.step.time or time
        envelope = _envelope(ordinal, at.step, at.placements, time, version)
        try:
            yield json_safe(orjson.dumps(envelope)) + b"\n"
        except orjson.JSONEncodeError:  # lone surrogates
            import json

            yield json.dumps(envelope, separators=(",", ":"), default=str).encode() + b"\n"


def _envelope(ordinal: int, step: Step, placements: list[Placement], time: str, version: str) -> Json:
    made: Json = {
        "schema_version": SCHEMA_VERSION,
        "context_id": step.annotations.ids.context_id or _derived(ordinal, step),
        "scope": "turn",
        "lifecycle": step.layer,
        "created_at": time,
        "producer": {"name": "ctxctl", "version": version},
        "item_refs": list(dict.fromkeys(_ref(p) for p in placements if not p.stale)),
    }
    for field, stage, name in _REFS:
        view = step.stages.get(stage)
        found = view.facts.get(name) if view is not None else None
        if isinstance(found, str):
            made[field] = [found]
    compactions = [c.compaction_id for c in step.annotations.compactions if c.compaction_id is not None]
    missing = [m.missing_id for m in step.annotations.missing if m.missing_id is not None]
    if compactions:
        made["compaction_refs"] = compactions
    if missing:
        made["missing_context_refs"] = missing
    made["metadata"] = {"ctxctl": _about(ordinal, step)}
    return made


def _about(ordinal: int, step: Step) -> Json:
    """Where the envelope is from, and the size that it stands for."""
    return {
        "ordinal": ordinal, "session_id": step.session, "thread_id": step.thread, "turn": step.turn,
        "step": step.step, "turn_id": step.turn_id, "step_id": step.step_id, "target": step.target,
        "tokens": step.window.used, "tokens_method": step.window.used_method,
        "recorded_tokens": step.window.recorded, "uncounted": step.window.uncounted, "provenance": "derived",
    }  # fmt: skip


def _ref(placement: Placement) -> str:
    version = placement.version
    return placement.item if version is None else f"{placement.item}@{version}"


def _derived(ordinal: int, step: Step) -> str:
    """An id where the runtime gave none: the same for the same step of the same session."""
    name = "\0".join((step.session or "", step.thread, str(ordinal)))
    return f"ctx-{sha256(name.encode('utf-8', 'replace')).hexdigest()[:16]}"
