"""OpenTelemetry's GenAI spans, events and log records."""

from __future__ import annotations

import re
from typing import Final

from ctxctl.importers.shared_claims import SPAN_CLAIMS, SPAN_LIMITS
from ctxctl.ingest.about import About
from ctxctl.ingest.declaration import Format
from ctxctl.ingest.skim import Layout, layout_of_head

_SURE: Final = 94
_BINARY: Final = 90
_LIKELY: Final = 70
_MAYBE: Final = 55
_OTLP: Final = re.compile(rb'"(?:resource_?[sS]pans|resource_?[lL]ogs)"\s*:\s*\[')
_METRICS: Final = re.compile(rb'"resource_?[mM]etrics"\s*:\s*\[')
_FILE: Final = re.compile(
    rb'"type"\s*:\s*"span"\s*,\s*"traceId"|"type"\s*:\s*"metric"\s*,\s*"name"[^\n]{0,600}?"dataPoints"\s*:'
    rb'|"type"\s*:\s*"log"\s*,[^\n]{0,600}?"(?:hrTime|timestamp|traceId|spanContext)"\s*:'
)
_MODEL: Final = re.compile(r"(?:[^\[\]]*\[\]\.)?attributes\.(?:gen_ai|ai|llm|traceloop)\.")
_BARE: Final = re.compile(
    r"(?:\[\]\.)?(?:gen_ai\.(?:operation|request|provider|system|usage|prompt)|llm\.usage\.)"
)
_SPAN: Final = re.compile(
    r"(?:[^\[\]]*\[\]\.)?(?:spanContext\.|context\.)?(?:parentSpanId|parent_span_id|spanId|span_id)"
)


ABOUT: Final = About(
    reads=(
        "Traces and log records of model calls: OTLP as JSON (one document, or an export on each line) "
        "and as protobuf, spans as SDKs write them to a file (GitHub Copilot's exporter among them), "
        "bare attributes. GenAI conventions from the first drafts to now, OpenLLMetry's, the AI SDK's, "
        "Logfire's."
    ),
    places=(
        "a collector's file exporter",
        "COPILOT_OTEL_FILE_EXPORTER_PATH of GitHub Copilot CLI",
        "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT switches content on",
    ),
    turns="One step is one inference span; a turn is a trace.",
    claims=SPAN_CLAIMS,
    limits=(
        *SPAN_LIMITS,
        "spans of agents and workflows repeat their calls' tokens and are not counted",
        "protobuf needs the extra `otlp`; metrics are not read",
    ),
    origin="OpenTelemetry semantic conventions for generative AI up to 1.43, OTLP 1.x",
)


def detect(head: bytes) -> int:
    """How sure the first bytes are spans or log records."""
    if head[:1] == b"\n":
        from ctxctl.providers.spans.protobuf import is_export

        if is_export(head):
            return _BINARY
    if _FILE.search(head[:16384]):
        return _SURE
    shown = layout_of_head(head)
    if not shown.paths:
        return 0
    if _OTLP.search(head):
        return _SURE if b"gen_ai." in head or b'"ai.' in head or b'"llm.' in head else _LIKELY
    if any(_MODEL.match(path) or _BARE.match(path) for path in shown.paths):
        return _SURE if not is_openinference(head) else _LIKELY
    if _METRICS.search(head) or _is_spans(shown):
        return _MAYBE
    return 0


def is_openinference(head: bytes) -> bool:
    """Whether the first bytes follow OpenInference's conventions."""
    return (
        b'"openinference.span.kind"' in head or b'"llm.input_messages' in head or b'"llm.token_count.' in head
    )


def _is_spans(shown: Layout) -> bool:
    spans = any(_SPAN.fullmatch(path) for path in shown.paths)
    timed = any(path.endswith(("startTime", "start_time", "startTimeUnixNano")) for path in shown.paths)
    return spans and timed and any(path.endswith("attributes") for path in shown.paths)


FORMAT: Final = Format(
    name="otel",
    title="OpenTelemetry GenAI",
    detect=detect,
    reader="ctxctl.providers.spans.files:Reader",
    about=ABOUT,
)
