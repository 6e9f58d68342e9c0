"""OpenTelemetry's completion hook for GenAI: records every instrumented model call, exported or not.

`CTXCTL_TRACE=run.jsonl OTEL_INSTRUMENTATION_GENAI_COMPLETION_HOOK=ctxctl opentelemetry-instrument app`
"""

from __future__ import annotations

import os
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, Final

from ctxctl.record.exchange import Exchanges
from ctxctl.record.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctxctl.ingest.build import Json

TRACE: Final = "CTXCTL_TRACE"
"""The variable that names the trace."""
DEFAULT: Final = "ctxctl-trace.jsonl"
_CONTENT: Final = {
    "gen_ai.input.messages": "inputs",
    "gen_ai.output.messages": "outputs",
    "gen_ai.system_instructions": "system_instruction",
    "gen_ai.tool.definitions": "tool_definitions",
}
_CALLS: Final = ("chat", "generate_content", "text_completion")
"""Operations that are single model calls; an agent's operation is the sum of several."""


class CompletionHook:
    """Records model calls as their instrumentation reports them, when they are over.

    The entry point `ctxctl` of `opentelemetry_genai_completion_hook`.  It gets parts in the convention's own
    shape, so a frame has the items, texts and order of the request, but not its JSON.

    Args:
        to: The trace, or a recorder; None: what `CTXCTL_TRACE` names, else `ctxctl-trace.jsonl` here.
        options: Options of `Recorder`, where a trace is named.
    """

    def __init__(self, to: str | os.PathLike[str] | Recorder | None = None, **options: Any) -> None:
        named = to if to is not None else os.environ.get(TRACE) or DEFAULT
        self.recorder = named if isinstance(named, Recorder) else Recorder(named, **options)
        self._exchanges = Exchanges(self.recorder)

    def on_completion(
        self,
        *,
        inputs: Any,
        outputs: Any,
        system_instruction: Any = (),
        tool_definitions: Any = None,
        span: Any = None,
        log_record: Any = None,
        **_: Any,
    ) -> None:
        """Record a call that is over."""
        given = (inputs, outputs, system_instruction, tool_definitions)
        attributes = {**_attributes(log_record), **_attributes(span)}
        if attributes.get("gen_ai.operation.name", "chat") in _CALLS:
            content = dict(zip(_CONTENT, (_plain(one) for one in given), strict=True))
            self._record({**attributes, **content})

    def _record(self, attributes: Json) -> None:
        from ctxctl.ingest.parts import string
        from ctxctl.providers.spans.billing import of_span, provider_of
        from ctxctl.providers.spans.content import content
        from ctxctl.providers.spans.inferences import CollectedDialect, request
        from ctxctl.providers.spans.span import Span

        held = content(Span("chat", attributes))
        asked = string(attributes.get("gen_ai.request.model"))
        exchange = self._exchanges.begin_from_body(
            request(held.asked, asked),
            CollectedDialect(),
            session=string(attributes.get("gen_ai.conversation.id")),
        )
        if exchange is None:
            return
        model = string(attributes.get("gen_ai.response.model")) or asked
        error = string(attributes.get("error.type"))
        exchange.answered(
            {"messages": held.answer, "id": attributes.get("gen_ai.response.id")} if held.answer else None,
            bill=of_span(attributes, provider_of(attributes), model) or {},
            failure=error or (None if held.answer else "no answer was told of"),
            cut=error is not None,
        )


def _attributes(of: Any) -> Mapping[str, Any]:
    """Return the attributes of a span or a log record; one that is not recorded has none."""
    found = getattr(of, "attributes", None)
    return dict(found) if found else {}


def _plain(value: Any, depth: int = 0) -> Any:
    """Return the convention's own objects as JSON, and anything else as it is."""
    if depth > 20:
        return None
    if isinstance(value, list | tuple):
        return [_plain(one, depth + 1) for one in value]
    if is_dataclass(value) and not isinstance(value, type):
        held = {field.name: getattr(value, field.name) for field in fields(value)}
        return {name: _plain(one, depth + 1) for name, one in held.items() if one is not None}
    if isinstance(value, bytes):
        from base64 import b64encode

        return b64encode(value).decode()
    return value
