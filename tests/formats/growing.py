"""Captures of any size that cost time if work grows faster than they do: parents that cannot be, and rewinds.

Each function makes the bytes of one capture of about `count` records.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

Json = dict[str, Any]
_TIME = "2026-03-02T09:00:00.000Z"


def as_lines(values: Iterable[Json]) -> bytes:
    """Values as lines."""
    return b"".join(json.dumps(row, separators=(",", ":")).encode() + b"\n" for row in values)


# -- Claude Code ----------------------------------------------------------------------------------------


def asked(uuid: str, parent: str | None, text: str = "q", **fields: Any) -> Json:
    """A line that a person wrote."""
    message = {"role": "user", "content": text}
    return {"type": "user", "uuid": uuid, "parentUuid": parent, "sessionId": "s", "timestamp": _TIME,
            "message": message, **fields}  # fmt: skip


def answered(uuid: str, parent: str | None, message_id: str = "", **fields: Any) -> Json:
    """A line of an answer: an API call of its own, unless `message_id` is that of another."""
    message = {
        "id": message_id or f"m-{uuid}", "role": "assistant", "model": "claude-opus-4",
        "content": [{"type": "text", "text": f"a {uuid}"}], "usage": {"input_tokens": 3, "output_tokens": 1},
    }  # fmt: skip
    return {"type": "assistant", "uuid": uuid, "parentUuid": parent, "sessionId": "s", "timestamp": _TIME,
            "message": message, **fields}  # fmt: skip


def _turns(count: int, parent: Callable[[int], str | None]) -> bytes:
    """Lines 0 to `count`, by turns asked and answered; `parent` names the one that each follows."""
    return as_lines(
        (answered if at % 2 else asked)(str(at), parent(at), **({} if at % 2 else {"text": f"q {at}"}))
        for at in range(count)
    )


def straight(count: int) -> bytes:
    """A session that goes on and on: each line follows the one before."""
    return _turns(count, lambda at: str(at - 1) if at else None)


def of_itself(count: int) -> bytes:
    """Each line is its own parent."""
    return _turns(count, str)


def one_cycle(count: int) -> bytes:
    """Each line follows the next one, and the last one the first."""
    return _turns(count, lambda at: str((at + 1) % count))


def pairs(count: int) -> bytes:
    """Two by two, lines follow each other in a circle."""
    return _turns(count, lambda at: str(at ^ 1))


def children_first(count: int) -> bytes:
    """The file is upside down: each line follows the next one, and the last one is the root."""
    return _turns(count, lambda at: str(at + 1) if at + 1 < count else None)


def star(count: int) -> bytes:
    """A long conversation, and then as many answers to its first prompt."""
    half = count // 2
    return _turns(count, lambda at: (str(at - 1) if at else None) if at < half else "0")


def from_the_beginning(count: int) -> bytes:
    """A long conversation, whose last prompt and first prompt are answered by turns, again and again."""
    half = count // 2
    long = [asked(str(at), str(at - 1) if at else None, f"q {at}") for at in range(half)]
    again = [answered(str(half + at), str(half - 1) if at % 2 else "0") for at in range(half)]
    return as_lines([*long, *again])


def two_ends(count: int) -> bytes:
    """Two long conversations from one prompt, which are answered by turns."""
    half = count // 2
    long = [asked(str(at), str(max(at - 2, 0)) if at else None, f"q {at}") for at in range(half)]
    again = [answered(str(half + at), str(half - 1 - at % 2)) for at in range(half)]
    return as_lines([*long, *again])


def roots(count: int) -> bytes:
    """Each prompt begins anew, and each answer follows the prompt before its own."""
    return _turns(count, lambda at: str(max(at - 3, 0)) if at % 2 else None)


def same_uuid(count: int) -> bytes:
    """All lines have one id, and different contents."""
    return as_lines(
        answered("x", None, f"m-{at}") if at % 2 else asked("x", "x", f"q {at}") for at in range(count)
    )


def one_answer(count: int) -> bytes:
    """One answer of many lines, each with a text of its own."""
    lines = [answered(str(at), str(at - 1), "m") for at in range(1, count)]
    return as_lines([asked("0", None), *lines])


def one_line(count: int) -> bytes:
    """One answer of many blocks in one line."""
    line = answered("1", "0", "m")
    line["message"]["content"] = [{"type": "text", "text": f"a {at}"} for at in range(count)]
    return as_lines([asked("0", None), line, asked("2", "1"), answered("3", "2")])


def late_results(count: int) -> bytes:
    """One answer with many calls, each result followed by a request of its own."""
    line = answered("1", "0", "m")
    line["message"]["content"] = [
        {"type": "tool_use", "id": f"t{at}", "name": "Read", "input": {}} for at in range(count // 2)
    ]
    rows = [asked("0", None), line]
    last = "1"
    for at in range(count // 2):
        result = asked(f"r{at}", last)
        result["message"]["content"] = [{"type": "tool_result", "tool_use_id": f"t{at}", "content": str(at)}]
        last = f"a{at}"
        rows += [result, answered(last, f"r{at}")]
    return as_lines(rows)


# -- OpenTelemetry --------------------------------------------------------------------------------------


def span(number: int, parent: str | None, kind: str = "chat", **fields: Any) -> Json:
    """One span, alone on its line."""
    asked = json.dumps([{"role": "user", "content": f"q {number}"}])
    answer = json.dumps([{"role": "assistant", "content": f"a {number}"}])
    attributes: Json = {"gen_ai.operation.name": kind, "gen_ai.agent.name": "agent"}
    if kind == "chat":
        attributes = {
            "gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.usage.input_tokens": 3,
            "gen_ai.usage.output_tokens": 1, "gen_ai.input.messages": asked, "gen_ai.output.messages": answer,
        }  # fmt: skip
    made: Json = {"traceId": "t", "spanId": str(number), "name": f"{kind} {number}", "attributes": attributes,
                  "startTimeUnixNano": str(1_780_000_000_000_000_000 + number)}  # fmt: skip
    if parent is not None:
        made["parentSpanId"] = parent
    return {**made, **fields}


def spans_of_themselves(count: int) -> bytes:
    """Each span is its own parent."""
    return as_lines(span(at, str(at)) for at in range(count))


def spans_in_a_circle(count: int) -> bytes:
    """Each span is around the one before, and the first one around the last."""
    return as_lines(span(at, str((at + 1) % count)) for at in range(count))


def spans_in_a_chain(count: int) -> bytes:
    """Each span is inside the one before."""
    return as_lines(span(at, str(at - 1) if at else None) for at in range(count))


def agents_in_agents(count: int) -> bytes:
    """Each run of an agent is inside the one before, and has a call of its own."""
    rows: list[Json] = []
    for at in range(0, count, 2):
        rows += [span(at, str(at - 2) if at else None, "invoke_agent"), span(at + 1, str(at))]
    return as_lines(rows)


def agents_beside_agents(count: int) -> bytes:
    """Runs of one agent, all inside another one, each with a call."""
    rows = [span(0, None, "invoke_agent"), span(1, "0")]
    for at in range(2, count, 2):
        rows += [span(at, "0", "invoke_agent"), span(at + 1, str(at))]
    return as_lines(rows)


def one_span_again(count: int) -> bytes:
    """One id, and each time another parent."""
    return as_lines([span(0, None), *(span(0, str(at)) for at in range(1, count))])


def one_long_run(count: int) -> bytes:
    """One run of an agent whose span holds all of its messages, as pydantic-ai tells it."""
    said = [
        {"role": "assistant" if at % 2 else "user", "parts": [{"type": "text", "content": f"{at}"}]}
        for at in range(count)
    ]
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a",
                  "pydantic_ai.all_messages": json.dumps(said)}  # fmt: skip
    return as_lines([span(0, None, "invoke_agent", attributes=attributes)])


SPANS = (
    spans_of_themselves, spans_in_a_circle, spans_in_a_chain, agents_in_agents, agents_beside_agents,
    one_span_again, one_long_run,
)  # fmt: skip


# -- pi -------------------------------------------------------------------------------------------------


def _entry(at: int, parent: int | None, role: str = "user", **fields: Any) -> Json:
    message: Json = {"role": role, "content": [{"type": "text", "text": f"{role} {at}"}]}
    if role == "assistant":
        message |= {"model": "m", "provider": "p", "usage": {"input": 3, "output": 1}, "stopReason": "stop"}
    return {"type": "message", "id": f"e{at}", "parentId": None if parent is None else f"e{parent}",
            "timestamp": _TIME, "message": message, **fields}  # fmt: skip


_HEADER: Json = {"type": "session", "version": 3, "id": "s", "timestamp": _TIME, "cwd": "/x"}


def _tree(count: int, parent: Callable[[int], int | None]) -> bytes:
    rows = (_entry(at, parent(at), "assistant" if at % 2 else "user") for at in range(count))
    return as_lines([_HEADER, *rows])


def pi_straight(count: int) -> bytes:
    """Each entry follows the one before."""
    return _tree(count, lambda at: at - 1 if at else None)


def pi_of_itself(count: int) -> bytes:
    """Each entry is its own parent."""
    return _tree(count, lambda at: at)


def pi_circle(count: int) -> bytes:
    """Each entry follows the next one, and the last one the first."""
    return _tree(count, lambda at: (at + 1) % count)


def pi_children_first(count: int) -> bytes:
    """The file is upside down."""
    return _tree(count, lambda at: at + 1 if at + 1 < count else None)


def pi_from_the_beginning(count: int) -> bytes:
    """A long session, whose last and first entries are gone on from by turns, and then answered."""
    half = count // 2
    ends = (half - 1, 0)
    long = [_entry(at, at - 1 if at else None) for at in range(half)]
    again = [_entry(half + at, ends[at % 2], "assistant") for at in range(half)]
    return as_lines([_HEADER, *long, *again])


def pi_asked_anew(count: int) -> bytes:
    """As `pi_from_the_beginning`, and nothing is ever answered."""
    half = count // 2
    ends = (half - 1, 0)
    long = [_entry(at, at - 1 if at else None) for at in range(half)]
    again = [_entry(half + at, ends[at % 2]) for at in range(half)]
    return as_lines([_HEADER, *long, *again])


def pi_compacted(count: int) -> bytes:
    """Compactions behind each other, each of which keeps everything from the beginning on."""
    half = count // 2
    long = [_entry(at, at - 1 if at else None) for at in range(half)]
    again = [
        {"type": "compaction", "id": f"e{half + at}", "parentId": f"e{half + at - 1}", "timestamp": _TIME,
         "summary": f"s {at}", "firstKeptEntryId": "e0", "tokensBefore": 9}
        for at in range(half)
    ]  # fmt: skip
    return as_lines([_HEADER, *long, *again])


def pi_edited(count: int) -> bytes:
    """One entry after the other is sent with another text."""
    half = count // 2
    long = [_entry(at, at - 1 if at else None) for at in range(half)]
    again = [
        {"type": "context_edit", "id": f"e{half + at}", "parentId": f"e{half + at - 1}", "timestamp": _TIME,
         "targetId": f"e{at}", "replacement": {"content": f"new {at}"}}
        for at in range(half)
    ]  # fmt: skip
    return as_lines([_HEADER, *long, *again])


PI = (
    pi_straight, pi_of_itself, pi_circle, pi_children_first, pi_from_the_beginning, pi_asked_anew,
    pi_compacted, pi_edited,
)  # fmt: skip


# -- opencode -------------------------------------------------------------------------------------------


def _hooked(kind: str, **properties: Any) -> Any:
    return ["event", {"event": {"type": kind, "properties": {"sessionID": "s", **properties}}}]


def _said(at: int, role: str, *parts: Json, **info: Any) -> list[Any]:
    """A message of a log, with its parts."""
    own = {"id": f"m{at}", "sessionID": "s", "role": role, "time": {"created": 1000 + at}, **info}
    told = [
        {"id": f"p{at}-{n}", "messageID": f"m{at}", "sessionID": "s", **part} for n, part in enumerate(parts)
    ]
    return [
        _hooked("message.updated", info=own),
        *(_hooked("message.part.updated", part=part) for part in told),
    ]


def _log(rows: Iterable[Any]) -> bytes:
    return as_lines([_hooked("session.created", info={"id": "s", "version": "1.2.27"}), *rows])


_TEXT: Json = {"type": "text", "text": "x"}


def oc_unknown_removed(count: int) -> bytes:
    """A session of prompts, and as many removals of messages that never were."""
    said = [row for at in range(count // 2) for row in _said(at, "user", _TEXT)]
    gone = [_hooked("message.removed", messageID=f"x{at}") for at in range(count // 2)]
    return _log([*said, *gone, *_said(count, "assistant", _TEXT)])


def oc_removed(count: int) -> bytes:
    """A session of prompts that are all taken back, the first one first."""
    said = [row for at in range(count // 2) for row in _said(at, "user", _TEXT)]
    gone = [_hooked("message.removed", messageID=f"m{at}") for at in range(count // 2)]
    return _log([*said, *gone, *_said(count, "assistant", _TEXT)])


def oc_planned(count: int) -> bytes:
    """Prompts and answers in plan mode: each request has its reminder."""
    return _log(
        row for at in range(count) for row in _said(at, ("user", "assistant")[at % 2], _TEXT, agent="plan")
    )


def oc_one_prompt(count: int) -> bytes:
    """A prompt, and answers without end in plan mode."""
    return _log(
        row for at in range(count) for row in _said(at, "assistant" if at else "user", _TEXT, agent="plan")
    )


def oc_mentioned(count: int) -> bytes:
    """Messages of which nothing comes but that they are there."""
    return _log(row for at in range(count) for row in _said(at, "user"))


def oc_pruned(count: int) -> bytes:
    """Results of tools, each of which is pruned before another request; nothing else comes by then."""
    half = count // 2
    done = {"status": "completed", "input": {}, "output": "x"}
    calls = [
        {"type": "tool", "tool": "read", "callID": f"c{at}",
         "state": {**done, "time": {"compacted": 1000 + half + at}}}
        for at in range(half)
    ]  # fmt: skip
    given = [row for at in range(half) for row in _said(at, "assistant", calls[at])]
    asked = [row for at in range(half, count) for row in _said(at, "assistant", {"type": "step-start"})]
    return _log([*given, *asked])


OPENCODE = (oc_unknown_removed, oc_removed, oc_planned, oc_one_prompt, oc_mentioned, oc_pruned)


# -- Copilot CLI ----------------------------------------------------------------------------------------


def _session_of(rows: Iterable[tuple[str, Json]]) -> bytes:
    """A session with these types of events and their data."""
    start: Json = {"sessionId": "s", "version": 1, "copilotVersion": "1.0.10", "selectedModel": "m"}
    told = enumerate([("session.start", start), *rows])
    return as_lines(
        {"type": kind, "id": f"e{at}", "timestamp": _TIME, "data": data} for at, (kind, data) in told
    )


def _calls(count: int, order: Iterable[int]) -> bytes:
    """An answer with as many calls, whose results come in that order."""
    calls = [{"toolCallId": f"c{at}", "name": "b", "arguments": {}} for at in range(count)]
    given = [
        ("tool.execution_complete", {"toolCallId": f"c{at}", "success": True, "result": {"content": "ok"}})
        for at in order
    ]
    asked = ("assistant.message", {"messageId": "m", "content": "", "toolRequests": calls})
    return _session_of([("user.message", {"content": "hi"}), ("assistant.turn_start", {}), asked, *given])


def copilot_reversed(count: int) -> bytes:
    """Results that come in the reverse order of their calls."""
    return _calls(count, range(count - 1, -1, -1))


def copilot_last_first(count: int) -> bytes:
    """Results that come in the order of their calls, but for the last one, which comes first."""
    return _calls(count, [count - 1, *range(count - 1)])


def copilot_compacting(count: int) -> bytes:
    """Prompts, and as many compactions that begin."""
    half = count // 2
    said = [("user.message", {"content": f"hi {at}"}) for at in range(half)]
    return _session_of([*said, *[("session.compaction_start", {})] * half])


COPILOT = (copilot_reversed, copilot_last_first, copilot_compacting)


# -- Codex ----------------------------------------------------------------------------------------------


def _rollout(rows: Iterable[Json]) -> bytes:
    meta = {
        "id": "00000000-0000-4000-8000-000000000001",
        "timestamp": _TIME,
        "cwd": "/",
        "cli_version": "0.92.0",
    }
    told = [{"timestamp": _TIME, "type": "response_item", "payload": row} for row in rows]
    return as_lines([{"timestamp": _TIME, "type": "session_meta", "payload": meta}, *told])


def _wrote(role: str, text: str) -> Json:
    kind = "input_text" if role == "user" else "output_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def _called(at: int) -> Json:
    return {"type": "function_call", "name": "b", "arguments": "{}", "call_id": f"c{at}"}


def codex_unanswered(count: int) -> bytes:
    """Calls without an output, and two turns behind them."""
    turns = [_wrote(role, f"{role} {at}") for at in range(2) for role in ("user", "assistant")]
    return _rollout([_wrote("user", "hi"), *map(_called, range(count)), *turns])


def codex_unanswered_by_turns(count: int) -> bytes:
    """Turns of one call without an output each."""
    return _rollout(row for at in range(count // 2) for row in (_wrote("user", f"hi {at}"), _called(at)))


CODEX = (codex_unanswered, codex_unanswered_by_turns)


CLAUDE_CODE = (
    straight, of_itself, one_cycle, pairs, children_first, star, from_the_beginning, two_ends, roots,
    same_uuid, one_answer, one_line, late_results,
)  # fmt: skip


# -- Records that name many others without listing them --------------------------------------------------


def openhands_forgotten(count: int) -> bytes:
    """Condensations that each forget a million events, of which there is one."""
    first = {"id": 0, "source": "user", "action": "message", "args": {"content": "q"}}
    gone = {"forgotten_events_start_id": 0, "forgotten_events_end_id": 999_998}
    forgets = {"source": "agent", "action": "condensation", "args": gone}
    return json.dumps([first, *({"id": at, **forgets} for at in range(1, count))]).encode()


def _inspect_sample(**sample: Any) -> bytes:
    task = {"task": "t", "model": "acme/large", "created": _TIME}
    return json.dumps(
        {"version": 2, "status": "success", "eval": task, "samples": [{"id": 1, "epoch": 1, **sample}]}
    ).encode()


def inspect_named_again(count: int) -> bytes:
    """Requests that each name all messages of the pool."""
    half = count // 2
    pool = [{"role": "user", "id": f"m{at}", "content": "x"} for at in range(half)]
    asked = [
        {"event": "model", "model": "m", "uuid": f"u{at}", "input_refs": [[0, half]], "output": {}}
        for at in range(half)
    ]
    return _inspect_sample(events=asked, events_data={"messages": pool})


def inspect_open_steps(count: int) -> bytes:
    """Steps that are begun and never ended, and events amid them."""
    begun = [{"event": "step", "action": "begin", "name": f"s{at}"} for at in range(count // 2)]
    return _inspect_sample(events=[*begun, *([{"event": "info"}] * (count // 2))])


def pi_never_a_sum(count: int) -> bytes:
    """Bills, and reports of runs that come to more than all of them."""
    whole = dict.fromkeys(("input", "output", "cacheRead", "cacheWrite"), 10**12)

    def entry(at: int) -> Json:
        usage, api = ({"input": 1, "output": 0}, "x") if at < count // 2 else (whole, "cli")
        message = {
            "role": "assistant",
            "content": [],
            "model": "m",
            "provider": "p",
            "api": api,
            "usage": usage,
        }
        return {
            "type": "message",
            "id": f"a{at}",
            "parentId": f"a{at - 1}" if at else None,
            "message": message,
        }

    head = {"type": "session", "version": 3, "id": "s", "timestamp": _TIME, "cwd": "/"}
    return as_lines([head, *map(entry, range(count))])


def snapshot_choices(count: int) -> bytes:
    """One answer in many choices, each with a field of its own."""
    choices = "".join(f"      - {{role: assistant, k{at}: 1}}\n" for at in range(count))
    head = "models:\n  - m\nconversations:\n  - messages:\n"
    head += "      - {role: system, content: x}\n      - {role: user, content: q}\n"
    return (head + choices).encode()


NAMING = {
    "openhands": (openhands_forgotten,),
    "inspect-ai": (inspect_named_again, inspect_open_steps),
    "pi": (pi_never_a_sum,),
    "copilot-snapshots": (snapshot_choices,),
}
"""By format."""


# -- Documents and batches, which are one record ---------------------------------------------------------


def atif_summaries(count: int) -> bytes:
    """A prompt of many blocks, and as many summaries of all before."""
    blocks = [{"type": "text", "text": f"rule {n}"} for n in range(count)]
    summary = {"source": "system", "message": "Performed context summarization"}
    turn: list[Json] = [{"source": "user", "message": "q"}, {"source": "agent", "message": "a"}]
    steps = [*turn, {"source": "system", "message": blocks}, *([summary] * count), *turn]
    numbered = [{"step_id": n, **step} for n, step in enumerate(steps, 1)]
    agent = {"name": "helper", "version": "1", "model_name": "acme/large"}
    return json.dumps(
        {"schema_version": "ATIF-v1.7", "session_id": "s", "agent": agent, "steps": numbered}
    ).encode()


def goose_summaries(count: int) -> bytes:
    """Many messages, and as many summaries of all before."""

    def message(name: str, *, agent: bool = True, user: bool = True) -> Json:
        content = [{"type": "text", "text": name}]
        seen = {"userVisible": user, "agentVisible": agent}
        return {"id": name, "role": "user", "created": 1_750_000_000, "content": content, "metadata": seen}

    messages = [
        message("q"),
        {**message("a"), "role": "assistant"},
        *[message(f"m{n}") for n in range(count)],
    ]
    for n in range(count):
        messages += [message(f"h{n}", agent=False), message(f"s{n}", user=False)]
    head = {
        "id": "20260201_3",
        "working_dir": "/home/ada/bees",
        "name": "Honey",
        "created_at": "2026-02-01T07:00:00Z",
        "updated_at": "2026-02-01T07:10:00Z",
        "extension_data": {},
    }
    return json.dumps({**head, "message_count": len(messages), "conversation": messages}).encode()


def mcp_batch(count: int) -> bytes:
    """One line with many tools, and as many answers after each of which all of these are offered."""
    tools = [{"name": f"t{n}", "inputSchema": {}} for n in range(count)]
    again = {"jsonrpc": "2.0", "id": 1, "result": {"serverInfo": {"name": "a"}, "instructions": "x"}}
    batch: list[Json] = [
        {"jsonrpc": "2.0", "id": 0, "method": "tools/list"},
        {"jsonrpc": "2.0", "id": 0, "result": {"tools": tools}},
        *([again] * count),
    ]
    first = {"jsonrpc": "2.0", "id": 0, "method": "initialize"}
    return b"".join(json.dumps(line).encode() + b"\n" for line in (first, batch))
