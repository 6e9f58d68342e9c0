"""Reads the entries of an LLM HTTP archive: bodies where it holds them, else what its collector counted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ctxctl.ingest.build import Json, canonical
from ctxctl.ingest.document import document
from ctxctl.ingest.lines import Report
from ctxctl.ingest.parts import Part, count, mapping, string
from ctxctl.ingest.run import Run
from ctxctl.model import vocab
from ctxctl.providers.calls.http import Call, Calls
from ctxctl.providers.usage import usage_record
from ctxctl.trace.source import Source

NAME: Final = "lhar"
_HEAD: Final = 512
_KINDS: Final = {
    "system_prompt": "system_prompt",
    "tool_definitions": "tool_definition",
    "tool_results": "tool_result",
    "tool_calls": "tool_call",
    "assistant_text": "assistant_message",
    "user_text": "user_message",
    "thinking": "reasoning",
    "system_injections": "policy_note",
    "images": "image",
}
_FIRST: Final = ("tool_definitions", "system_prompt")
_ROLES: Final = {
    "tool_definition": "system",
    "system_prompt": "system",
    "tool_result": "tool",
    "tool_call": "assistant",
    "assistant_message": "assistant",
    "reasoning": "assistant",
}
_EXCLUDES_CACHE: Final = ("anthropic", "google", "gemini", "vertex")
"""Providers whose input count the collector tells without cached tokens; OpenAI's includes them."""


def read(source: Source, report: Report) -> Iterator[Json]:
    """The archive's events; JSON lines are streamed, a wrapped archive is read whole."""
    run = Run(NAME, report)
    calls = Calls(run)
    wrapped = b'"lhar"' in source.read(0, _HEAD)
    counted = 0
    for record in _wrapped(source, run) if wrapped else run.records(source):
        kind = record.get("type", "entry" if "gen_ai" in record else None)
        if kind != "entry":
            if kind is None:
                run.problem("unknown-record", "neither a session nor an entry; skipped")
            elif wrapped:
                run.met(kind)
            continue
        raw = record.get("raw")
        bodies: Json = raw if isinstance(raw, dict) else {}
        if bodies.get("request_body") is None:
            _tell_sizes(record, run)
            counted += 1
        else:
            calls.take(_call(record, bodies, run))
        yield from run.drain()
    if counted and not calls.asked:
        calls.asked = counted
    yield from calls.finish()


def _wrapped(source: Source, run: Run) -> Iterator[Json]:
    found = document(source, run.report)
    archive = found.get("lhar") if isinstance(found, dict) else None
    run.understood.version(archive.get("version") if isinstance(archive, dict) else None)
    entries = archive.get("entries") if isinstance(archive, dict) else None
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict):
            yield entry
        else:
            run.problem("not-a-record", "not a JSON object; skipped")


def _call(record: Json, bodies: Json, run: Run) -> Call:
    http = record.get("http")
    seen: Json = http if isinstance(http, dict) else {}
    return Call(
        url=seen.get("url"),
        method=seen.get("method", "POST"),
        request=bodies.get("request_body"),
        response=bodies.get("response_body"),
        status=seen.get("status_code"),
        headers=seen.get("response_headers"),
        line=run.line.number,
        time=record.get("timestamp"),
        native_id=string(record.get("id")),
        session=string(record.get("trace_id")),
        error=None if bodies.get("response_body") is not None else "no response recorded",
        limit=mapping(record.get("context_lens")).get("window_size"),
    )


# -- entries without bodies -----------------------------------------------------------------------------


def _tell_sizes(record: Json, run: Run) -> None:
    """Tell a request of which the archive holds only sizes: one item for each category, with the collector's
    count."""
    run.session = string(record.get("trace_id"))
    run.make.at(record.get("timestamp"))
    source = mapping(record.get("source"))
    thread = "subagent" if source.get("agent_role") == "subagent" else None
    conversation = run.thread(thread)
    lens = mapping(record.get("context_lens"))
    gen_ai = mapping(record.get("gen_ai"))
    conversation.replace(_composition(lens))
    limit = count(lens.get("window_size"))
    if limit:
        budget = {"budget_id": f"window-{record.get('id')}", "target": "model", "max_tokens": limit}
        conversation.tell(vocab.BUDGET_APPLIED, budget, line=run.line.number)
    model = string(mapping(gen_ai.get("request")).get("model"))
    sequence = count(record.get("sequence"))
    conversation.request(
        f"entry-{sequence}" if sequence is not None else None,
        line=run.line.number,
        model=model,
        native_id=string(record.get("id")),
        derived=True,
    )
    conversation.usage(_usage_of(record, gen_ai, model), line=run.line.number)


def _composition(lens: Json) -> list[Part]:
    found = lens.get("composition")
    rows = [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []
    rows.sort(key=_rank)
    made: list[Part] = []
    for row in rows:
        category, tokens = string(row.get("category")), count(row.get("tokens"))
        if category is None or category == "cache_markers":
            continue
        kind = _KINDS.get(category, "custom")
        blocks = count(row.get("count"))
        many = f"{category}: {blocks} blocks" if blocks else category
        made.append(
            Part(
                kind,
                None,
                _ROLES.get(kind, "user"),
                key=f"category/{category}",
                title=f"{many}, text not recorded",
                version=f"{tokens}-tokens",
                estimate=tokens,
                derived=True,
            )
        )
    if not any(part.kind == "tool_definition" for part in made):
        made[0:0] = _named_tools(lens)
    return made


def _rank(row: Json) -> int:
    """A sort key that puts tools and the system prompt first, as providers order them."""
    category = row.get("category")
    return _FIRST.index(category) if category in _FIRST else len(_FIRST)


def _named_tools(lens: Json) -> list[Part]:
    """The tools by name and description, as far as the archive tells them."""
    found = lens.get("tool_definitions")
    made: list[Part] = []
    for tool in found if isinstance(found, list) else []:
        name = string(tool.get("name")) if isinstance(tool, dict) else None
        if name is not None:
            key = f"tool/{name}"
            made.append(Part("tool_definition", canonical(tool), "system", key=key, title=name, derived=True))
    return made


def _usage_of(record: Json, gen_ai: Json, model: str | None) -> Json | None:
    """The provider's bill; None where it answered nothing: the collector's own estimate stands there then."""
    usage = mapping(gen_ai.get("usage"))
    if not count(usage.get("output_tokens")):
        return None
    extra = mapping(record.get("usage_ext"))
    system = string(gen_ai.get("system")) or ""
    return usage_record(
        input_tokens=usage.get("input_tokens"),
        output_tokens=usage.get("output_tokens"),
        cached=extra.get("cache_read_tokens"),
        cache_write=extra.get("cache_write_tokens"),
        reasoning=extra.get("thinking_tokens"),
        excludes_cache=system.startswith(_EXCLUDES_CACHE),
        provider=system or None,
        model=string(mapping(gen_ai.get("response")).get("model")) or model,
        native={"usage": usage, "usage_ext": extra},
        bill={**extra, **usage},
    )
