"""What providers billed, read from the logs of further agents, from trajectories and from spans."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tools.independent.bills import Bill, apart, of_anthropic, of_gemini, of_openai
from tools.independent.raw import Object, at, lines, number, objects, values
from tools.independent.samples import samples


def stream_json(path: Path) -> list[Bill]:
    """Claude Code's printed stream: the lines of a message id are one request.

    The lines carry the output as it was when the message began: no output is told but by the run's last line.
    """
    found: dict[str, Bill] = {}
    for line in objects(path):
        message = at(line, "message")
        ident, usage = at(message, "id"), at(message, "usage")
        if at(line, "type") == "stream_event" or not isinstance(ident, str) or ident in found:
            continue
        bill = of_anthropic(usage, ident)
        if at(line, "type") == "assistant" and bill is not None and bill.sent:
            found[ident] = bill._replace(output=None, is_partial=at(message, "stop_reason") is None)
    return list(found.values())


def chatreplay(path: Path) -> list[Bill]:
    """VS Code's chat replay: each request of a prompt's log has its usage."""
    logs = [log for one in objects(path) for p in at(one, "prompts") or () for log in at(p, "logs") or ()]
    return _of(of_openai(at(log, "metadata", "usage")) for log in logs)


def copilot(path: Path) -> list[Bill]:
    """Copilot's events tell an answer's output and no input, but for a session of one request."""
    said = [
        number(at(o, "data", "outputTokens")) for o in lines(path) if at(o, "type") == "assistant.message"
    ]
    return [Bill(-1, None, None, output) for output in said if output is not None]


def mini_swe(path: Path) -> list[Bill]:
    """mini-swe-agent keeps the provider's answer with each message of its own."""
    answers = [at(m, "extra", "response") for one in objects(path) for m in at(one, "messages") or ()]
    return _of(of_openai(at(answer, "usage"), at(answer, "id")) for answer in answers)


def openhands(path: Path) -> list[Bill]:
    """OpenHands: the answer that an action came from, once by its id; of an evaluation the metrics' list."""
    found: dict[Any, Bill] = {}
    for one in objects(path):
        listed = at(one, "metrics", "token_usages")
        for place, usage in enumerate(listed if isinstance(listed, list) else ()):
            sent = number(at(usage, "prompt_tokens"))
            if sent:
                found[id(one), place] = Bill(
                    sent, number(at(usage, "cache_read_tokens")), number(at(usage, "cache_write_tokens")),
                    number(at(usage, "completion_tokens")),
                )  # fmt: skip
        for event in (one, *(at(one, "history") or ())):
            answer = at(event, "tool_call_metadata", "model_response")
            usage = at(answer, "usage")
            bill = of_openai(usage, at(answer, "id"))
            if bill is not None and not listed:
                written = number(at(usage, "cache_creation_input_tokens"))
                read = number(at(usage, "cache_read_input_tokens"))
                found[at(answer, "id")] = bill._replace(written=written, cached=read or bill.cached)
    return list(found.values())


def inspect(path: Path) -> list[Bill]:
    """Inspect: the usage of each model event; Anthropic's cache reads and writes lie beside the input."""
    found = []
    for sample in samples(path):
        events = at(sample, "events") or at(sample, "transcript", "events")
        if not any(at(event, "event") == "model" for event in events or ()):
            events = [{"event": "model", "output": at(sample, "output")}]  # an early log: the answer alone
        for event in events:
            usage = at(event, "output", "usage")
            if at(event, "event") != "model" or not isinstance(usage, dict):
                continue
            raw = at(event, "call", "response")
            usage_raw = at(raw, "usage") if isinstance(raw, dict) else None
            read, kept = (
                number(at(usage, "input_tokens_cache_read")),
                number(at(usage, "input_tokens_cache_write")),
            )
            sent = number(at(usage, "input_tokens")) or 0
            if at(usage_raw, "cache_read_input_tokens") is not None:  # Anthropic's words: side by side
                sent += (read or 0) + (kept or 0)
            if sent:
                found.append(Bill(sent, read, kept, number(at(usage, "output_tokens"))))
    return found


def atif(path: Path) -> list[Bill]:
    """ATIF: the metrics of each step of the agent; the cached part is in the prompt."""
    found = []
    for one in objects(path):
        for step in at(one, "steps") or ():
            held = at(step, "metrics")
            sent = number(at(held, "prompt_tokens"))
            if sent:
                found.append(
                    Bill(sent, number(at(held, "cached_tokens")), None, number(at(held, "completion_tokens")))
                )
    return found


def cursor(path: Path) -> list[Bill]:
    """Cursor's hooks: what an answer's hook tells, once by generation."""
    found = {}
    for line in lines(path):
        held = at(line, "payload") if isinstance(at(line, "payload"), dict) else line
        sent = number(at(held, "input_tokens"))
        if sent and at(held, "hook_event_name") == "afterAgentResponse":
            found[at(held, "generation_id")] = Bill(
                sent, number(at(held, "cache_read_tokens")), number(at(held, "cache_write_tokens")),
                number(at(held, "output_tokens")),
            )  # fmt: skip
    return list(found.values())


def kimi(path: Path) -> list[Bill]:
    """Kimi: a record of usage a request; its parts lie side by side."""
    names = ("inputOther", "inputCacheRead", "inputCacheCreation", "output")
    records = [at(line, "usage") for line in lines(path) if at(line, "type") == "usage.record"]
    return _of(apart(usage, *names, None) for usage in records)


def amplifier(path: Path) -> list[Bill]:
    """Amplifier: the provider's own words where the log has them, else the log's four parts side by side."""
    found = []
    for line in lines(path):
        if "llm:response" in (at(line, "event"), at(line, "type")):
            data = at(line, "data")
            own = of_anthropic(at(data, "raw", "usage"))
            found.append(
                own or apart(at(data, "usage"), "input", "cache_read", "cache_write", "output", None)
            )
    return _of(found)


def langfuse(path: Path) -> list[Bill]:
    """Langfuse: generations with no other below them; the parts that begin with `input` are the input."""
    found = []
    for one in objects(path):
        listed = at(one, "observations") or at(one, "data") or ()
        seen = [o for o in listed if isinstance(o, dict)]
        bills = {o.get("id"): bill for o in seen if (bill := _langfuse(o)) is not None}
        parents = {o.get("id"): o.get("parentObservationId") for o in seen}
        above = {parent for ident in bills for parent in _above(ident, parents)}
        found += [bill for ident, bill in bills.items() if ident not in above]
    return found


def _above(ident: Any, parents: dict[Any, Any]) -> Iterator[Any]:
    passed = {ident}
    while (ident := parents.get(ident)) is not None and ident not in passed:
        passed.add(ident)
        yield ident


def _langfuse(observation: Object) -> Bill | None:
    usage = observation.get("usageDetails")
    old = number(observation.get("inputUsage")), number(observation.get("outputUsage"))
    if not isinstance(usage, dict) and old[0]:
        return Bill(old[0], None, None, old[1])
    if not isinstance(usage, dict) or observation.get("type") not in {"GENERATION", "AGENT"}:
        return None
    parts = {name: number(count) or 0 for name, count in usage.items()}
    total = parts.pop("total", 0) or parts.pop("total_tokens", 0)
    output = sum(count for name, count in parts.items() if name.startswith("output"))
    output = output or parts.get("completion_tokens", 0)
    cached = {name: count for name, count in parts.items() if "cache" in name or "ephemeral" in name}
    read = sum(count for name, count in cached.items() if "read" in name or "cached" in name)
    # The same write may be told in sum and by how long it lasts.
    lasting = {name for name in cached if "ephemeral" in name or name.endswith(("_1h", "_5m"))}
    whole = {name for name in cached if "creation" in name} - lasting
    written = max(sum(cached[name] for name in names) for names in (lasting, whole))
    plain = sum(count for name, count in parts.items() if name.startswith(("input", "prompt")))
    plain -= sum(count for name, count in cached.items() if name.startswith(("input", "prompt")))
    sent = plain + read + written
    if total and sent + output > total:  # the cached part is in the input too
        sent = total - output
    return Bill(sent, read or None, written or None, output) if sent else None


def langsmith(path: Path) -> list[Bill]:
    """LangSmith: the usage of each run of a model, in OpenAI's or LangChain's words."""
    runs: dict[Any, Object] = {}
    for one in objects(path):
        for run in [*(at(one, "post") or ()), *(at(one, "patch") or ())] or [one]:
            ident = run.get("id") or run.get("dotted_order")  # a patch may name its place alone
            known = next((held for name, held in runs.items() if str(name) in str(ident)), None)
            known = runs.setdefault(ident, {}) if known is None else known
            known.update({name: value for name, value in run.items() if value is not None})
    found = []
    for run in runs.values():
        outputs = at(run, "outputs") if at(run, "run_type") == "llm" else None
        message = at(outputs, "generations", 0, 0, "message", "kwargs")
        usage = at(message, "usage_metadata") or at(outputs, "usage_metadata") or at(outputs, "usage")
        details = at(usage, "input_token_details") or {}
        lasting = sum(number(count) or 0 for name, count in details.items() if "ephemeral" in name)
        written = lasting or number(details.get("cache_creation"))
        bill = of_openai(usage)
        if bill is not None:
            read = number(details.get("cache_read")) or bill.cached
            beside = (read or 0) + (written or 0)
            sent = bill.sent + (beside if beside > bill.sent else 0)
            found.append(bill._replace(sent=sent, cached=read, written=written))
    return _of(found)


def qwen(path: Path) -> list[Bill]:
    """Qwen Code: each answer has Gemini's usage; thoughts are in the candidates, as OpenAI counts them."""
    usages = [at(one, "usageMetadata") for one in lines(path) if at(one, "type") == "assistant"]
    return _of(of_gemini({**usage, "thoughtsTokenCount": 0}) for usage in usages if isinstance(usage, dict))


def spans(path: Path) -> list[Bill]:
    """OpenTelemetry: leaves among the spans that tell an input; the conventions' names, one after another."""
    found: dict[Any, Bill] = {}
    parents: dict[Any, Any] = {}
    objects_: set[Any] = set()
    inside = False
    for one in objects(path):
        for span in _spans(one):
            held = _attributes(span)
            ident = span.get("spanId") or span.get("span_id") or at(span, "context", "span_id")
            ident = ident or at(span, "spanContext", "spanId") or id(span)
            above = (
                span.get("parentSpanId") or span.get("parent_id") or at(span, "parentSpanContext", "spanId")
            )
            parents[ident] = above
            sent = _first(held, *_INPUT)
            output = _first(held, "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens",
                            "llm.token_count.completion", "ai.usage.completionTokens",
                            "ai.usage.outputTokens")  # fmt: skip
            cached = _first(held, "gen_ai.usage.cache_read.input_tokens", "ai.usage.cachedInputTokens")
            inside = inside or str(span.get("name")).endswith((".doGenerate", ".doStream"))
            if sent and not _OUTER.fullmatch(str(span.get("name"))):
                found[ident] = Bill(sent, cached, None, output)
                if _OBJECT.fullmatch(str(span.get("name"))):
                    objects_.add(ident)
    for ident in objects_ if inside else ():
        del found[ident]
    above = {parent for ident in found for parent in _above(ident, parents)}
    return [bill for ident, bill in found.items() if ident not in above]


_INPUT = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt",
          "ai.usage.promptTokens", "ai.usage.inputTokens")  # fmt: skip
_OUTER = re.compile(r"ai\.embed\S*|ai\.(?:generate|stream)Text")
"""Spans of the AI SDK that are no request to a model: they embed something, or sum up those below."""
_OBJECT = re.compile(r"ai\.(?:generate|stream)Object")
"""An object is made by one request: its span has that one's bill where the capture has no span for it."""


def _first(held: Object, *names: str) -> int | None:
    return next((count for name in names if (count := number(held.get(name))) is not None), None)


def _spans(value: Any) -> Iterator[Object]:
    """All objects that look like a span, at whatever depth."""
    if isinstance(value, dict):
        if any(str(name).startswith(("gen_ai.", "llm.")) for name in value):  # attributes by themselves
            yield {"attributes": value}
            return
        if "attributes" in value and any(name in value for name in ("spanId", "span_id", "name", "context")):
            yield value
            return
        for held in value.values():
            yield from _spans(held)
    elif isinstance(value, list):
        for held in value:
            yield from _spans(held)


def _attributes(span: Object) -> Object:
    held = span.get("attributes")
    if isinstance(held, list):  # OTLP
        pairs = {one["key"]: one.get("value") for one in held if isinstance(at(one, "key"), str)}
        return {key: next(iter(v.values()), None) if isinstance(v, dict) else v for key, v in pairs.items()}
    return held if isinstance(held, dict) else {}


def _of(found: Any) -> list[Bill]:
    return [bill for bill in found if bill is not None and bill.sent]


def pi_rpc(path: Path) -> list[Bill]:
    """pi's events over a pipe: the message that an answer ended with."""
    found = []
    told = objects(path)
    if at(told, 0, "schema_version") == "agentv.raw_provider_log_line.v1":  # its lines, each in a string
        printed = (str(one["content"]).rpartition("[stdout] ")[2] for one in told)
        told = [*values("\n".join(line for line in printed if not line.startswith("#")))]
    for line in told:
        message = at(line, "message")
        if at(line, "type") == "message_end" and at(message, "role") == "assistant":
            found.append(apart(at(message, "usage"), "input", "cacheRead", "cacheWrite", "output", None))
        held = at(line, "target_execution", "transcript") or at(line, "transcript")
        for message in at(held, "messages") or ():
            usage = at(message, "metadata", "usage")
            found.append(apart(usage, "input", "cache_read", "cache_write", "output", None))
    return _of(found)


READERS: dict[str, Callable[[Path], list[Bill]]] = {
    "claude-stream-json": stream_json, "copilot-chatreplay": chatreplay, "mini-swe-agent": mini_swe,
    "openhands": openhands, "inspect-ai": inspect, "atif": atif, "cursor": cursor, "kimi": kimi,
    "amplifier": amplifier, "langfuse": langfuse, "langsmith": langsmith, "otel": spans,
    "openinference": spans, "pi-rpc": pi_rpc, "qwen-code": qwen,
}  # fmt: skip
"""By the name that ctxctl gives the format."""
