"""LangSmith runs."""

from __future__ import annotations

from typing import Final

from ctxctl.importers.shared_claims import SPAN_CLAIMS, SPAN_LIMITS
from ctxctl.ingest.about import About
from ctxctl.ingest.declaration import Format
from ctxctl.ingest.skim import layout_of_head

_SURE: Final = 95
_LIKELY: Final = 85
_INPUTS: Final = 60


ABOUT: Final = About(
    reads=(
        "Runs as clients send them (creations and patches, alone or in batches) and as the API exports "
        "them, with messages of LangChain, of its serialised constructors, and of wrapped clients."
    ),
    places=("run_ops_*.jsonl of a client", "Client().list_runs() or bulk exports as JSON lines"),
    turns="One step is one run of type llm; a turn is a trace.",
    claims=SPAN_CLAIMS,
    limits=(
        *SPAN_LIMITS,
        "tokens are those of llm runs; the sums on other runs repeat them",
        "inputs without their runs tell of no request",
    ),
    origin="langsmith-sdk 0.1 to 0.4",
)


def detect(head: bytes) -> int:
    """How sure the first bytes are runs."""
    shown = layout_of_head(head)
    for prefix in ("", "[].", "post[].", "[].post[].", "runs[].", "patch[]."):
        if shown.any(f"{prefix}run_type") and shown.any(f"{prefix}dotted_order", f"{prefix}trace_id"):
            return _SURE
        if shown.has(f"{prefix}dotted_order", f"{prefix}id"):
            return _LIKELY
    patched = shown.has("id", "end_time", "outputs", "error") or b'"run_type"' in head
    if patched and shown.has("id", "outputs") and (shown.any("run_type", "child_runs") or b'"lc"' in head):
        return _LIKELY
    return _INPUTS if _is_inputs(shown.paths) else 0


def _is_inputs(paths: frozenset[str]) -> bool:
    """Whether the lines are inputs of runs alone, with LangChain's messages in them."""
    return any(path.endswith("messages[].additional_kwargs") for path in paths) and not any(
        path in paths for path in ("role", "type", "run_type", "observations")
    )


FORMAT: Final = Format(
    name="langsmith",
    title="LangSmith runs",
    detect=detect,
    reader="ctxctl.importers.langsmith.reader:read",
    about=ABOUT,
)
