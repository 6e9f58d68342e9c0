"""Langfuse traces with their observations."""

from __future__ import annotations

from typing import Final

from ctxctl.importers.shared_claims import SPAN_CLAIMS, SPAN_LIMITS
from ctxctl.ingest.about import About
from ctxctl.ingest.declaration import Format
from ctxctl.ingest.skim import layout_of_head

_SURE: Final = 96
_LIKELY: Final = 80
_OWN: Final = ("parentObservationId", "usageDetails", "modelParameters", "completionStartTime", "promptName",
               "costDetails", "statusMessage")  # fmt: skip


ABOUT: Final = About(
    reads=(
        "Traces as the API and the UI export them (`{trace, observations}`, a trace with its "
        "observations, lists of either), observations as JSON or JSON lines, events of the ingestion "
        "API, and ChatML renderings. Inputs and outputs of every framework, encoded as JSON once or more."
    ),
    places=("GET /api/public/traces/ID", "Traces > Export", "GET /api/public/observations"),
    turns="One step is one observation of type GENERATION; a turn is a trace.",
    claims=SPAN_CLAIMS,
    limits=(
        *SPAN_LIMITS,
        "a generation around another one repeats it and is not counted",
        "prompts that a framework wrote down as text are taken apart by their roles",
        "ChatML renderings tell neither the order of calls nor their kinds, times and tokens",
    ),
    origin="Langfuse 3",
)


def detect(head: bytes) -> int:
    """How sure the first bytes are a trace or observations."""
    shown = layout_of_head(head)
    for prefix in ("observations[].", "[].observations[].", "[].", "", "data[].", "trace.observations[].",
                   "[].body.", "batch[].body.", "body."):  # fmt: skip
        own = sum(1 for name in _OWN if f"{prefix}{name}" in shown.paths)
        traced = shown.any(f"{prefix}traceId", f"{prefix}trace_id")
        if traced and own >= 2 and shown.any(f"{prefix}type", f"{prefix}input"):
            return _SURE
    for prefix in ("", "trace.", "[].trace.", "[]."):
        if shown.has(f"{prefix}projectId", f"{prefix}sessionId", f"{prefix}bookmarked"):
            return _LIKELY
    return _LIKELY if b'"success"' in head and _is_chatml(shown.paths) else 0


def _is_chatml(paths: frozenset[str]) -> bool:
    """Whether every entry has an `input` or an `output` that says whether it could be read."""
    told = {path[: -len("success")] for path in paths if path.endswith((".input.success", ".output.success"))}
    return any(
        path.startswith(tuple(f"{one}{end}" for one in told for end in ("data", "error"))) for path in paths
    )


FORMAT: Final = Format(
    name="langfuse",
    title="Langfuse trace",
    detect=detect,
    reader="ctxctl.importers.langfuse.reader:read",
    about=ABOUT,
)
