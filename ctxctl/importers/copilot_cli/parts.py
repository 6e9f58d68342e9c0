"""Makes parts of a request from the events of a Copilot session; a prompt is cut at what was put around
it."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from ctxctl.ingest.build import VERSION_DIGITS, Json, canonical, digest_of
from ctxctl.ingest.parts import Part, call_title, count, parsed, string

_HUMAN: Final = frozenset({"user", "cli", "interactive"})
_NAME: Final = "rs_"
"""How a name begins that OpenAI gives to reasoning; some versions log it where others log the sealed text."""
_AGENT: Final = "agent-"
"""How the source of a prompt begins that another agent wrote."""


class UniqueKeys:
    """Numbers the ids that a log uses twice: of messages in pieces, and of calls that a model numbers
    anew."""

    def __init__(self) -> None:
        self._used: dict[str, int] = {}

    def unique(self, name: str | None, suffix: str = "") -> str | None:
        """The id, with a number behind it from its second use on."""
        if name is None:
            return None
        name = f"{name}/{suffix}" if suffix else name
        again = self._used.get(name, 0) + 1
        self._used[name] = again
        return name if again == 1 else f"{name}~{again}"


def is_injected(data: Json) -> bool:
    """Whether a user message is the runtime's (a skill's text, a follow-up), not a person's."""
    source = string(data.get("source"))
    return source is not None and source not in _HUMAN and not source.startswith(_AGENT)


def user_parts(data: Json, name: str | None, keys: UniqueKeys, line: int) -> list[Part]:
    """The parts of a user message as it was sent."""
    typed = string(data.get("content"))
    sent = string(data.get("transformedContent")) or typed
    made: list[Part] = []
    if sent is not None and is_injected(data):
        source = string(data.get("source")) or ""
        kind = "external_resource" if source.startswith("skill") else "policy_note"
        made.append(Part(kind, sent, "user", key=keys.unique(name), title=source, line=line))
    elif sent is not None:
        for piece in pieces(sent, typed):
            suffix = "" if piece.kind == "user_message" else piece.tag or "reminder"
            key = keys.unique(name, suffix)
            made.append(Part(piece.kind, piece.text, "user", key=key, title=piece.tag, line=line))
    attached = data.get("attachments")
    for index, one in enumerate(attached if isinstance(attached, list) else []):
        content = string(one.get("data")) if isinstance(one, dict) else None
        if content is not None:
            key = keys.unique(name, f"attachment-{index}")
            made.append(
                _blob(content, one.get("mimeType"), key, "user", string(one.get("displayName")), line)
            )
        elif isinstance(one, dict):
            made += _attached(one, name, index, keys, line)
    return made


def _attached(one: Json, name: str | None, index: int, keys: UniqueKeys, line: int) -> list[Part]:
    """A picture that is kept beside the log, and the line that Copilot puts before it (1.0.102)."""
    asset, path, mime = (string(one.get(field)) for field in ("assetId", "path", "mimeType"))
    if asset is None or mime is None or not mime.startswith("image/") or one.get("omittedReason") is not None:
        return []
    key = keys.unique(name, f"attachment-{index}")
    title = string(one.get("displayName"))
    version, size = asset.rpartition(":")[2][:VERSION_DIGITS], count(one.get("byteLength"))
    picture = Part(
        "image", None, "user", key=key, title=title, line=line, version=version, mime_type=mime,
        byte_size=size,
    )  # fmt: skip
    if path is None:
        return [picture]
    text = f"Image file at path {path}"
    key = keys.unique(name, f"attachment-{index}/path")
    return [Part("policy_note", text, "user", key=key, title=title, line=line, derived=True), picture]


def assistant_parts(
    data: Json, shown: str | None, keys: UniqueKeys, titles: dict[str, str], given: dict[str, str], line: int
) -> list[Part]:
    """The parts of a message of the model: reasoning, text, calls.

    Args:
        data: The event's data.
        shown: Reasoning that an event before it showed.
        keys: Keeps ids apart.
        titles: Gets the title of each call.
        given: Gets the prompt that a call gives to a sub-agent.
        line: Line of the file.
    """
    name = string(data.get("messageId"))
    made: list[Part] = []
    reasoning = string(data.get("reasoningText")) or shown
    sealed = string(data.get("reasoningOpaque"))
    if sealed is None or sealed.startswith(_NAME):
        sealed = string(data.get("encryptedContent")) or sealed
    if reasoning is not None:
        made.append(Part("reasoning", reasoning, "assistant", key=keys.unique(name, "reasoning"), line=line))
    if sealed is not None:
        # Its summary stands beside it in the request.
        key = keys.unique(name, "reasoning" if reasoning is None else "reasoning/sealed")
        version = digest_of(sealed)[:VERSION_DIGITS]
        native = {"sealed_bytes": len(sealed)}
        made.append(
            Part(
                "reasoning", None, "assistant", key=key, title="sealed reasoning", native=native, line=line,
                version=version,
            )
        )  # fmt: skip
    text = string(data.get("content"))
    if text is not None:
        made.append(Part("assistant_message", text, "assistant", key=keys.unique(name), line=line))
    requests = data.get("toolRequests")
    for request in requests if isinstance(requests, list) else []:
        if isinstance(request, dict):
            made.append(call_part(request, keys, titles, given, line))
    return made


def is_reply(data: Json) -> bool:
    """Whether a message is the answer to a request, or was written by the client in the model's place."""
    named = ("model", "turnId", "apiCallId", "requestId", "serviceRequestId", "interactionId")
    return any(data.get(name) is not None for name in named)


def is_left_behind(data: Json) -> bool:
    """Whether a client that goes on from the log leaves the reasoning of this message out of its requests.

    It does for OpenAI's Responses (1.0.102); what it does for others is not known.
    """
    held = data.get("reasoningBlocks")
    return isinstance(held, dict) and held.get("provider") == "openai-responses"


def call_part(
    request: Json, keys: UniqueKeys, titles: dict[str, str], given: dict[str, str], line: int
) -> Part:
    """The part of one call."""
    name = string(request.get("name")) or "tool"
    arguments = parsed(request.get("arguments"))
    call = string(request.get("toolCallId"))
    title = call_title(name, arguments)
    if call is not None:
        titles[call] = title
        prompt = string(arguments.get("prompt")) if isinstance(arguments, dict) else None
        if prompt is not None:
            given[call] = prompt
    text = f"{name} {arguments if isinstance(arguments, str) else canonical(arguments or {})}"
    return Part("tool_call", text, "assistant", key=keys.unique(call), title=title, line=line)


def result_parts(
    data: Json, keys: UniqueKeys, titles: dict[str, str], line: int, *, short: bool
) -> list[Part]:
    """The parts that the model got back from a tool: `result.content`, and not what was shown to the person.

    `short`: this version logs less of a failed call than it sends, so that the text is not known.
    """
    call = string(data.get("toolCallId"))
    title = titles.pop(call, None) if call is not None else None
    key = keys.unique(call, "result")
    given = data.get("result")
    content = given.get("content") if isinstance(given, dict) else given
    error = data.get("error")
    native: Json | None = {"success": False} if data.get("success") is False else None
    if content is None and isinstance(error, dict | str):
        told = string(error.get("message")) if isinstance(error, dict) else error
        content = told if not short else None
        native = {**(native or {}), "error": told} if short and told is not None else native
    text = content if isinstance(content, str) else canonical(content) if content is not None else None
    made = [Part("tool_result", text, "tool", key=key, title=title, native=native, line=line)]
    more = given.get("contents") if isinstance(given, dict) else None
    for index, block in enumerate(more if isinstance(more, list) else []):
        blob = string(block.get("data")) if isinstance(block, dict) else None
        if blob is not None:
            made.append(
                _blob(
                    blob, block.get("mimeType"), keys.unique(call, f"result/{index + 1}"), "tool", title, line
                )
            )
    return made


def _blob(data: str, mime: Any, key: str | None, role: str, title: str | None, line: int) -> Part:
    kind = "image" if not isinstance(mime, str) or mime.startswith("image/") else "external_resource"
    version = digest_of(data)[:VERSION_DIGITS]
    return Part(
        kind, None, role, key=key, title=title, line=line, version=version, mime_type=string(mime),
        byte_size=len(data) * 3 // 4,
    )  # fmt: skip


_TAGGED: Final = re.compile(r"\s*<([A-Za-z][A-Za-z0-9_-]*)(?: [^<>]*)?>.*?</\1>\s*", re.DOTALL)
_HARNESS: Final = (
    "current_datetime", "system_reminder", "system-reminder", "system_notification", "reminder",
    "reminderInstructions", "session_context", "todo_status",
)  # fmt: skip
_STATE: Final = frozenset({"current_datetime", "session_context", "todo_status"})


class Piece(NamedTuple):
    """A stretch of what was sent; the pieces put together are the whole."""

    text: str
    kind: str
    tag: str | None
    """Name of the element that wraps it; None for what the person typed."""


def pieces(sent: str, typed: str | None) -> list[Piece]:
    """The pieces of a prompt as it was sent.

    Where the typed text stands in it once, all around it is the harness'; otherwise only elements that
    Copilot is known to put before and after a prompt are.
    """
    if typed is not None and typed.strip() and sent != typed:
        at = sent.find(typed)
        if at >= 0 and sent.find(typed, at + 1) < 0:
            before, after = sent[:at], sent[at + len(typed) :]
            return [*_around(before), Piece(typed, "user_message", None), *_around(after)]
    return _by_tags(sent)


def _around(text: str) -> list[Piece]:
    """Cut a text that the harness wrote into its elements."""
    made: list[Piece] = []
    at = 0
    while at < len(text):
        match = _TAGGED.match(text, at)
        if match is None:
            break
        made.append(_piece(match.group(0), match.group(1)))
        at = match.end()
    rest = text[at:]
    if rest.strip():
        made.append(Piece(rest, "policy_note", None))
    return made


def _by_tags(text: str) -> list[Piece]:
    made: list[Piece] = []
    at = 0
    while (match := _TAGGED.match(text, at)) is not None and match.group(1) in _HARNESS:
        made.append(_piece(match.group(0), match.group(1)))
        at = match.end()
    end = len(text)
    tail: list[Piece] = []
    while (found := _last(text, at, end)) is not None:
        tail.append(_piece(text[found[0] : end], found[1]))
        end = found[0]
    rest = text[at:end]
    if rest.strip():
        made.append(Piece(rest, "user_message", None))
    return made + tail[::-1]


def _last(text: str, start: int, end: int) -> tuple[int, str] | None:
    """Where the element of the harness begins with which a stretch of a text ends, and its name; none of
    them is the whole of it."""
    while end > start and text[end - 1].isspace():
        end -= 1
    for tag in _HARNESS:
        if text.endswith(f"</{tag}>", start, end):
            at = text.rfind(f"<{tag}>", start, end)
            if at > start:
                return at, tag
    return None


def _piece(text: str, tag: str) -> Piece:
    return Piece(text, "runtime_state" if tag in _STATE else "policy_note", tag)
