"""What providers billed, read from the clients' own logs: one bill a request, and no token counted.

`sent` is the whole context everywhere: Anthropic, pi and opencode tell cache reads and writes beside the
plain input; OpenAI, Codex, Gemini and the OpenAI-like tell a whole of which the cached part is named.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tools.independent.forks import inherited, running
from tools.independent.raw import Object, at, lines, number, objects, values


class Bill(NamedTuple):
    """What one request was billed; None: its log does not tell."""

    sent: int
    """The whole context, cache reads and writes included."""
    cached: int | None
    written: int | None
    output: int | None
    ident: str | None = None
    """The request's or its answer's own id."""
    size: int | None = None
    """What its last pass read; None: it was sampled once."""
    further: tuple[tuple[str, int, int], ...] = ()
    """Passes of other models: the model, what it read and what it wrote."""
    is_partial: bool = False
    """No line of the answer was logged after its end: its output is a placeholder."""


def of_anthropic(usage: Any, ident: str | None = None) -> Bill | None:
    """A bill in Anthropic's words: the three parts of the input lie side by side.

    Where a request was answered in several passes they are listed, and all of them are billed; those of
    another model (an advisor) are no part of this one's bill.
    """
    passes = at(usage, "iterations")
    if isinstance(passes, list) and (len(passes) > 1 or at(passes, 0, "type") == "compaction"):
        own, further, answered = [], [], []
        for one in passes:
            bill = of_anthropic({**one, "iterations": None}, ident)
            if bill is None:
                continue
            if at(one, "type") == "advisor_message":
                further.append((str(at(one, "model")), bill.sent, bill.output or 0))
                continue
            own.append(bill)
            answered += [bill] if at(one, "type") != "compaction" else []
        sums = [sum(bill[part] or 0 for bill in own) for part in range(4)]
        return Bill(*sums, ident, (answered or own)[-1].sent, tuple(further)) if own else None
    plain = number(at(usage, "input_tokens"))
    if plain is None:
        return None
    read = number(at(usage, "cache_read_input_tokens"))
    written = number(at(usage, "cache_creation_input_tokens"))
    return Bill(
        plain + (read or 0) + (written or 0), read, written, number(at(usage, "output_tokens")), ident
    )


def of_openai(usage: Any, ident: str | None = None) -> Bill | None:
    """A bill in OpenAI's words, of either interface: the cached part is in the input."""
    sent = number(at(usage, "prompt_tokens"))
    old = sent is not None
    if sent is None:
        sent = number(at(usage, "input_tokens"))
    if sent is None:
        return None
    details = at(usage, "prompt_tokens_details" if old else "input_tokens_details")
    output = number(at(usage, "completion_tokens" if old else "output_tokens"))
    written = number(at(usage, "cache_creation_input_tokens"))  # a gateway's, in Anthropic's words
    return Bill(sent, number(at(details, "cached_tokens")), written, output, ident)


def of_gemini(usage: Any, ident: str | None = None) -> Bill | None:
    """A bill in Gemini's words: thoughts lie beside the candidates; what tools put in is input too."""
    sent = number(at(usage, "promptTokenCount"))
    if sent is None:
        return None
    cached = number(at(usage, "cachedContentTokenCount"))
    sent += number(at(usage, "toolUsePromptTokenCount")) or 0
    output, thought = number(at(usage, "candidatesTokenCount")), number(at(usage, "thoughtsTokenCount"))
    said = None if output is None and thought is None else (output or 0) + (thought or 0)
    return Bill(sent, cached, None, said, ident)


PI = ("input", "cacheRead", "cacheWrite", "output")
"""The parts of a bill in pi's words."""


def claude_code(path: Path) -> list[Bill]:
    """Claude Code: the lines of one message id are one request; a session's helpers lie beside it."""
    found: list[Bill] = []
    told: set[str] = set()
    for part in (path, *_helpers(path)):
        here = _messages(part)
        found += [bill for ident, bill in here.items() if ident not in told]
        told |= set(here)
    return found


def _helpers(path: Path) -> list[Path]:
    """The files of a session's sub-agents: in its own folder, or (until 2.0) side by side with it."""
    own = sorted((path.with_suffix("") / "subagents").glob("**/agent-*.jsonl"))
    if path.name.startswith("agent-"):
        return own
    beside = [one for one in sorted(path.parent.glob("agent-*.jsonl")) if _session(one) == path.stem]
    return own + beside


def _session(path: Path) -> Any:
    return next((line["sessionId"] for line in lines(path) if at(line, "sessionId")), None)


def _messages(path: Path) -> dict[str, Bill]:
    """Bills by message: the largest input and output of any of its lines."""
    found: dict[str, Bill] = {}
    for line in lines(path):
        message = at(line, "message")
        ident, usage = at(message, "id"), at(message, "usage")
        if at(line, "type") != "assistant" or not isinstance(ident, str) or not isinstance(usage, dict):
            continue
        bill = of_anthropic(usage, ident)
        if bill is None or not bill.sent:  # nothing was asked: the client's own words, or a placeholder
            continue
        known = found.setdefault(ident, bill._replace(is_partial=True))
        # The list of passes is whole on the last line alone.
        bill = bill if len(bill.further) >= len(known.further) and bill.sent >= known.sent else known
        found[ident] = bill._replace(
            output=max(known.output or 0, bill.output or 0),
            is_partial=known.is_partial and at(message, "stop_reason") is None,
        )
    return found


def codex(path: Path) -> list[Bill]:
    """Codex: a change of the running total is a request, and what its last part leaves of it another.

    A fork repeats its parent's, which are bills of the parent's.
    """
    records = [at(one, "payload", "usage") for one in lines(path) if at(one, "type") == "token_usage_record"]
    if records:  # since 0.154: each request's own
        return [bill for usage in records if (bill := of_codex(usage)) is not None]
    found: list[Bill] = []
    copied = inherited(path, lines)
    before: list[int] | None = None
    for line in lines(path):
        info = at(line, "payload", "info")
        if at(line, "type") != "event_msg" or at(line, "payload", "type") != "token_count":
            continue
        total, last = (_codex(at(info, name)) for name in ("total_token_usage", "last_token_usage"))
        if total is None or last is None or total == before:
            continue
        if running(line) in copied:
            before = total
            continue
        if before is not None:
            lost = [all_ - one - old for all_, one, old in zip(total, last, before, strict=True)]
            if lost[0] > 0 and min(lost) >= 0:
                found.append(Bill(lost[0], lost[1], None, lost[2]))
        before = total
        if last[0]:
            found.append(Bill(last[0], last[1], None, last[2]))
    return found


def of_codex(usage: Any) -> Bill | None:
    """A request's own record."""
    bill = of_openai({**usage, "input_tokens_details": {"cached_tokens": usage.get("cached_input_tokens")}})
    return bill and bill._replace(written=number(usage.get("cache_write_input_tokens")))


def _codex(usage: Any) -> list[int] | None:
    if not isinstance(usage, dict):
        return None
    return [number(usage.get(n)) or 0 for n in ("input_tokens", "cached_input_tokens", "output_tokens")]


def pi(path: Path) -> list[Bill]:
    """pi: a message of the assistant is a request; the parts of its input lie side by side.

    OpenClaw writes an answer again when it is delivered: without the provider's id, with its turn's bill.
    """
    found: list[Bill] = []
    named = False
    for line in objects(path) if path.suffix == ".json" else lines(path):
        message = at(line, "message") if at(line, "type") == "message" else line
        if at(message, "role") != "assistant":
            continue
        bill = apart(at(message, "usage"), *PI, at(message, "responseId"))
        again = bill is not None and bill.ident is None and named
        if bill is not None and bill.sent and not again:
            found.append(bill)
            named = named or bill.ident is not None
    return found


def apart(usage: Any, plain: str, read: str, written: str, output: str, ident: Any) -> Bill | None:
    """A bill whose three parts of input lie side by side under the names given."""
    first = number(at(usage, plain))
    if first is None:
        return None
    back, kept = number(at(usage, read)), number(at(usage, written))
    return Bill(first + (back or 0) + (kept or 0), back, kept, number(at(usage, output)), ident)


def opencode(path: Path) -> list[Bill]:
    """opencode: each finished step of an export, a database or a plugin's event log is a request."""
    parts: dict[str, Object] = {}
    if path.suffix == ".db":
        with sqlite3.connect(f"file:{path}?immutable=1", uri=True) as database:
            parts = {ident: json.loads(data) for ident, data in database.execute("SELECT id, data FROM part")}
        return _steps(parts)
    for line in lines(path) if path.read_bytes()[:1] == b"[" else objects(path):
        for message in at(line, "messages") or ():
            parts.update({str(p.get("id")): p for p in at(message, "parts") or () if isinstance(p, dict)})
        part = at(line, 1, "event", "properties", "part")
        if isinstance(part, dict):
            parts[str(part.get("id"))] = part
    return _steps(parts)


def _steps(parts: dict[str, Object]) -> list[Bill]:
    found = []
    for part in parts.values():
        tokens = part.get("tokens")
        if part.get("type") != "step-finish" or not isinstance(tokens, dict):
            continue
        flat = {**tokens, **{f"cache {name}": count for name, count in (tokens.get("cache") or {}).items()}}
        bill = apart(flat, "input", "cache read", "cache write", "output", part.get("messageID"))
        if bill is not None and bill.sent:
            found.append(bill)
    return found


def gemini_cli(path: Path) -> list[Bill]:
    """Gemini CLI: each answer has its tokens; `output` leaves the thoughts out, and the bill has both."""
    found = []
    for session in objects(path):
        if isinstance(told := session.get("response"), (dict, list)):  # a recorded answer, or its chunks
            usages = [at(one, "usageMetadata") for one in (told if isinstance(told, list) else [told])]
            bill = next((made for usage in reversed(usages) if (made := of_gemini(usage)) is not None), None)
            found += [bill] if bill is not None else []
        for message in at(session, "messages") or ():
            tokens = at(message, "tokens")
            sent = number(at(tokens, "input"))
            if at(message, "type") == "gemini" and sent:
                output = (number(at(tokens, "output")) or 0) + (number(at(tokens, "thoughts")) or 0)
                sent += number(at(tokens, "tool")) or 0
                found.append(Bill(sent, number(at(tokens, "cached")), None, output, at(message, "id")))
    return found


def roo(path: Path) -> list[Bill]:
    """Roo, a task's folder: `api_req_started` among its messages tells what the request was billed."""
    found = []
    for message in objects(path / "ui_messages.json"):
        if message.get("say") != "api_req_started":
            continue
        for told in _parsed(message.get("text")):
            sent, read, written = (number(told.get(n)) for n in ("tokensIn", "cacheReads", "cacheWrites"))
            if sent is None:
                continue
            beside = (read or 0) + (written or 0)
            if told.get("apiProtocol") == "anthropic" or beside > sent:
                sent += beside
            if sent:
                found.append(Bill(sent, read, written, number(told.get("tokensOut"))))
    return found


def _parsed(text: Any) -> Iterator[Object]:
    """The object that a string holds, if it is one."""
    if isinstance(text, str):
        yield from (one for one in values(text) if isinstance(one, dict))
