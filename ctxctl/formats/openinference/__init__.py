"""OpenInference spans, as Phoenix and its instrumentations write them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from ctxctl.formats.fidelity import About
from ctxctl.formats.kit.skim import skim
from ctxctl.formats.lines import Report
from ctxctl.formats.spans.about import CLAIMS, LIMITS
from ctxctl.trace.source import Source

_SURE: Final = 96
_KEYS: Final = re.compile(
    r"(?:[^\[\]]*\[\]\.)?(?:attributes\.)?(?:openinference\.span\.kind|llm\.input_messages|llm\.output_messages|"
    r"llm\.token_count)"
)
_OTLP: Final = re.compile(
    rb'"key"\s*:\s*"(?:openinference\.span\.kind|llm\.input_messages\.\d+\.|llm\.token_count\.)'
)


class OpenInference:
    """The importer for OpenInference."""

    name: str = "openinference"
    title: str = "OpenInference (Phoenix)"
    default_policy: str = "recorded"
    about: About = About(
        reads=(
            "Spans with OpenInference's attributes: in OTLP JSON, as JSON documents and JSON lines of "
            "spans, as Phoenix exports them (rows with `attributes.…` columns, nested or flat)."
        ),
        places=(
            "GET /v1/projects/NAME/spans of Phoenix",
            "Client().get_spans_dataframe().to_json(orient='records', lines=True)",
        ),
        turns="One step is one span of kind LLM; a turn is a trace.",
        claims=CLAIMS,
        limits=(*LIMITS, "parquet and Arrow are not read"),
        origin="OpenInference semantic conventions, instrumentations up to 0.1.66",
    )

    def detect(self, head: bytes) -> int:
        """How sure the first bytes are OpenInference spans."""
        if _OTLP.search(head) and b"pans" in head:
            return _SURE
        return _SURE if any(_KEYS.match(path) for path in skim(head).paths) else 0

    def events(self, source: Source, report: Report) -> Iterator[dict[str, Any]]:
        """The file's events."""
        from ctxctl.formats.spans.reader import read

        return read(self.name, source, report)
