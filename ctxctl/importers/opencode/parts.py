"""Makes parts of a request from opencode's messages: what its `toModelMessages` sends of each."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from ctxctl.ingest.build import VERSION_DIGITS, Json, canonical, digest_of
from ctxctl.ingest.parts import Part, call_title, count, mapping, string
from ctxctl.providers.usage import usage_record

CLEARED: Final = "[Old tool result content cleared]"
"""What opencode sends in the place of a tool result that it pruned."""
_INTERRUPTED: Final = "[Tool execution was interrupted]"
_QUESTION: Final = "What did we do so far?"
_EXECUTED: Final = "The following tool was executed by the user"
_AS_TEXT: Final = ("text/plain", "application/x-directory")
"""Files of these types reach the model as the text parts beside them."""


class NativePart(NamedTuple):
    """A part as opencode has it."""

    part: Json
    line: int
    """The line of the foreign file."""


class ClearedResult(NamedTuple):
    """A tool result that was pruned later."""

    time: int
    """Milliseconds since 1970: requests made from then on have it blank."""
    part: Part
    """The blank part."""


class AnswerStep(NamedTuple):
    """One request of an assistant's message, with its answer."""

    native: str | None
    answer: list[Part]
    results: list[Part]
    finish: Json | None
    """The tokens of its `step-finish`."""


NOTHING: Final = AnswerStep(None, [], [], None)
"""A request of which nothing is known but that it was made."""


def runs_a_tool(parts: list[NativePart]) -> bool:
    """Whether a user's message is a command that the person ran, or starts a sub-agent by one.

    opencode answers it with an assistant's message that holds that tool's call alone, and asks no model.
    """
    return any(
        part.get("type") == "subtask" or (part.get("synthetic") is True and part.get("text") == _EXECUTED)
        for part, _ in parts
    )


def is_a_tool_alone(parts: list[NativePart]) -> bool:
    """Whether an assistant's message holds nothing but a tool's call."""
    return bool(parts) and all(part.get("type") == "tool" for part, _ in parts)


def is_lost(info: Json, parts: list[NativePart]) -> bool:
    """Whether an assistant's message failed so that later requests leave it out."""
    error = info.get("error")
    if not error:
        return False
    aborted = isinstance(error, dict) and error.get("name") == "MessageAbortedError"
    return not (aborted and any(p.get("type") not in ("step-start", "reasoning") for p, _ in parts))


def is_prompt(parts: list[NativePart]) -> bool:
    """Whether a user's message is the person's: opencode also goes on by itself, in messages of this role."""
    return not parts or any(
        part.get("type") in ("file", "agent", "subtask")
        or (part.get("type") == "text" and part.get("synthetic") is not True)
        or (part.get("type") == "compaction" and part.get("auto") is not True)
        for part, _ in parts
    )


def of_user(parts: list[NativePart]) -> list[Part]:
    """The parts of a user's message that are sent."""
    return [made for part, line in parts for made in _at(line, _of_user(part))]


def _at(line: int, parts: list[Part]) -> list[Part]:
    for part in parts:
        part.line = line
    return parts


def _of_user(part: Json) -> list[Part]:
    kind, key = part.get("type"), string(part.get("id"))
    if kind == "text":
        text = string(part.get("text"))
        if text is None or part.get("ignored") is True:
            return []
        synthetic = part.get("synthetic") is True
        context = "policy_note" if synthetic else "user_message"
        return [Part(context, text, "user", key=key, native={"synthetic": True} if synthetic else None)]
    if kind == "file":
        return [] if part.get("mime") in _AS_TEXT else [_file(part, "user", key)]
    if kind == "compaction":
        return [Part("user_message", _QUESTION, "user", key=key, derived=True, native={"type": "compaction"})]
    if kind == "subtask":
        return [Part("user_message", _EXECUTED, "user", key=key, derived=True, native={"type": "subtask"})]
    return []


def steps(parts: list[NativePart]) -> tuple[list[AnswerStep], list[ClearedResult]]:
    """The requests of an assistant's message, and the results among theirs that were pruned."""
    made: list[AnswerStep] = []
    cleared: list[ClearedResult] = []
    for part, line in parts:
        kind = part.get("type")
        if kind == "step-start" or not made:
            made.append(AnswerStep(string(part.get("id")) if kind == "step-start" else None, [], [], None))
        step = made[-1]
        if kind == "step-finish":
            tokens = part.get("tokens")
            made[-1] = step._replace(finish=tokens if isinstance(tokens, dict) else None)
        elif kind == "tool":
            call, results, blank = _tool(part)
            step.answer.extend(_at(line, [call]))
            step.results.extend(_at(line, results))
            cleared += blank
        else:
            step.answer.extend(_at(line, _said(part)))
    return made, cleared


def _said(part: Json) -> list[Part]:
    kind, key = part.get("type"), string(part.get("id"))
    text = string(part.get("text"))
    if kind == "text":
        return [Part("assistant_message", text, "assistant", key=key)] if text is not None else []
    if kind != "reasoning":
        return []
    sealed = part.get("metadata")
    if text is None and not sealed:
        return []
    version = None if text is not None else digest_of(canonical(sealed))[:VERSION_DIGITS]
    return [Part("reasoning", text, "assistant", key=key, version=version)]


def _tool(part: Json) -> tuple[Part, list[Part], list[ClearedResult]]:
    """Take a call with its results, and the blank one that took their place."""
    name = string(part.get("tool")) or "tool"
    state = mapping(part.get("state"))
    arguments = state.get("input")
    title = call_title(name, arguments)
    key = string(part.get("callID")) or string(part.get("id"))
    text = f"{name} {canonical(arguments if arguments is not None else {})}"
    call = Part("tool_call", text, "assistant", key=key, title=title)
    into = f"{key}/result" if key is not None else None
    status = state.get("status")
    if status == "completed":
        output = state.get("output")
        output = output if isinstance(output, str) else canonical(output)
        results = [Part("tool_result", output, "tool", key=into, title=title)]
        results += _attachments(state.get("attachments"), into)
        time = state.get("time")
        pruned = count(time.get("compacted")) if isinstance(time, dict) else None
        if pruned is None:
            return call, results, []
        blank = Part("tool_result", CLEARED, "tool", key=into, title=title, truncated=True, derived=True)
        return call, results, [ClearedResult(pruned, blank)]
    error = state.get("error")
    meta = state.get("metadata")
    if status == "error" and isinstance(meta, dict) and meta.get("interrupted") is True:
        # In the place of the error, what the stopped tool had printed is sent.
        error = meta["output"] if isinstance(meta.get("output"), str) else error
    if status == "error" and isinstance(error, str):
        return (
            call,
            [Part("tool_result", error, "tool", key=into, title=title, native={"is_error": True})],
            [],
        )
    return call, [Part("tool_result", _INTERRUPTED, "tool", key=into, title=title, derived=True)], []


def _attachments(files: Any, key: str | None) -> list[Part]:
    made: list[Part] = []
    for at, part in enumerate(files if isinstance(files, list) else [], 1):
        if isinstance(part, dict):
            made.append(_file(part, "tool", f"{key}/{at}" if key is not None else None))
    return made


def _file(part: Json, role: str, key: str | None) -> Part:
    url = string(part.get("url")) or ""
    mime = string(part.get("mime"))
    kind = "image" if mime is not None and mime.startswith("image/") else "external_resource"
    size = len(url.partition(",")[2]) * 3 // 4 if url.startswith("data:") else None
    version = digest_of(url)[:VERSION_DIGITS]
    title = string(part.get("filename"))
    return Part(kind, None, role, key=key, version=version, title=title, mime_type=mime, byte_size=size)


def bill(tokens: Any, info: Json) -> Json | None:
    """The bill of one request; None where nothing was billed."""
    if not isinstance(tokens, dict):
        return None
    cache = mapping(tokens.get("cache"))
    read, written = count(cache.get("read")), count(cache.get("write"))
    fresh, output, thought = (count(tokens.get(name)) for name in ("input", "output", "reasoning"))
    if not any((fresh, output, read, written)):
        return None
    # Newer versions leave reasoning out of `output`; the total, where there is one, tells.
    parts = (fresh or 0) + (output or 0) + (read or 0) + (written or 0)
    if thought and tokens.get("total") == parts + thought:
        output = (output or 0) + thought
    return usage_record(
        input_tokens=fresh,
        output_tokens=output,
        cached=read,
        cache_write=written,
        reasoning=thought,
        excludes_cache=True,
        provider=string(info.get("providerID")),
        model=string(info.get("modelID")),
        native=tokens,
        stated=info.get("cost"),
    )
