"""OpenInference spans, as Phoenix and its instrumentations write them."""

from __future__ import annotations

import re
from typing import Final

from ctxctl.importers.shared_claims import SPAN_CLAIMS, SPAN_LIMITS
from ctxctl.ingest.about import About
from ctxctl.ingest.declaration import Format
from ctxctl.ingest.skim import layout_of_head

_SURE: Final = 96
_KEYS: Final = re.compile(
    r"(?:[^\[\]]*\[\]\.)?(?:attributes\.)?(?:openinference\.span\.kind|llm\.input_messages|llm\.output_messages|"
    r"llm\.token_count)"
)
_OTLP: Final = re.compile(
    rb'"key"\s*:\s*"(?:openinference\.span\.kind|llm\.input_messages\.\d+\.|llm\.token_count\.)'
)


ABOUT: Final = About(
    reads=(
        "Spans with OpenInference's attributes: in OTLP JSON, as JSON documents and JSON lines of "
        "spans, as Phoenix exports them (rows with `attributes.…` columns, nested or flat)."
    ),
    places=(
        "GET /v1/projects/NAME/spans of Phoenix",
        "Client().get_spans_dataframe().to_json(orient='records', lines=True)",
    ),
    turns="One step is one span of kind LLM; a turn is a trace.",
    claims=SPAN_CLAIMS,
    limits=(*SPAN_LIMITS, "parquet and Arrow are not read"),
    origin="OpenInference semantic conventions, instrumentations up to 0.1.66",
)


def detect(head: bytes) -> int:
    """How sure the first bytes are OpenInference spans."""
    if _OTLP.search(head) and b"pans" in head:
        return _SURE
    return _SURE if any(_KEYS.match(path) for path in layout_of_head(head).paths) else 0


FORMAT: Final = Format(
    name="openinference",
    title="OpenInference (Phoenix)",
    detect=detect,
    reader="ctxctl.providers.spans.files:Reader",
    about=ABOUT,
)
