"""Makes parts of a request from what Gemini CLI keeps of messages (Gemini's `Part`s and texts)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ctxctl.ingest.build import VERSION_DIGITS, Json, canonical, digest_of
from ctxctl.ingest.parts import Part, call_title, count, nth, string, unused
from ctxctl.providers.usage import usage_record

_FILES: Final = "--- Content from referenced files ---"
_FILES_END: Final = "--- End of content ---"
_SNAPSHOT: Final = "<state_snapshot>"
_SNAPSHOT_END: Final = "</state_snapshot>"
"""The end of the summary in the message with which a compressed history begins."""
_MASKED: Final = "<tool_output_masked>"
"""What the CLI leaves of a result that it took out."""
_CONTEXT: Final = ("This is the Gemini CLI. We are setting up the context", "<session_context>")
"""How the message begins that tells the model of the folder, the date, the platform."""


class PartCutter:
    """Cuts messages into parts; a function's response gets the title of its call."""

    def __init__(self) -> None:
        self._calls: dict[str, tuple[str, str]] = {}
        """Key and title of the last call with an id, or with a name where there is no id."""
        self._taken: dict[str, int] = {}

    def user(self, content: Any, key: str | None) -> list[Part]:
        """Cut a user's message; files that were referred to (`@path`) and the set-up are parts of their
        own."""
        made: list[Part] = []
        quoted = False
        for piece in pieces(content):
            text = piece.get("text")
            own = nth(key, len(made))
            if isinstance(text, str):
                quoted = quoted or _FILES in text
                kind = "external_resource" if quoted else _kind(text)
                title = "compressed history" if kind == "thread_summary" else None
                made += [Part(kind, text, "user", key=own, title=title)] if text else []
                quoted = quoted and _FILES_END not in text
            else:
                made += self.piece(piece, "user", own)
        return made

    def model(self, content: Any, key: str | None) -> list[Part]:
        """Cut a model's message; its thoughts are left out, as in later requests."""
        made: list[Part] = []
        for piece in pieces(content):
            if piece.get("thought") is True:
                continue
            text = piece.get("text")
            own = nth(key, len(made))
            if isinstance(text, str):
                made += [Part("assistant_message", text, "assistant", key=own)] if text else []
            else:
                made += self.piece(piece, "assistant", own)
        return made

    def piece(self, piece: Json, role: str, key: str | None) -> list[Part]:
        """Read a part of a message that is not text."""
        call, response = piece.get("functionCall"), piece.get("functionResponse")
        if isinstance(call, dict):
            return [self.call(call.get("id"), call.get("name"), call.get("args"), key)]
        if isinstance(response, dict):
            return self.result(response.get("id"), response.get("name"), [piece])
        blob = piece.get("inlineData", piece.get("fileData"))
        if isinstance(blob, dict):
            return [_blob(blob, role, key)]
        return [Part("custom", canonical(piece), role, key=key)] if piece else []

    def call(self, native: Any, name: Any, arguments: Any, key: str | None = None) -> Part:
        """A call of a tool."""
        called = string(name) or "tool"
        title = call_title(called, arguments)
        identity = string(native)
        key = unused(identity, self._taken) if identity is not None else key
        if key is not None:
            self._calls[identity or called] = key, title
        text = f"{called} {canonical(arguments if arguments is not None else {})}"
        return Part("tool_call", text, "assistant", key=key, title=title)

    def result(self, native: Any, name: Any, content: Any, *, failed: bool = False) -> list[Part]:
        """What a tool gave back."""
        called = string(native) or string(name) or ""
        known, title = self._calls.get(called, (called, string(name)))
        key = unused(f"{known}/result", self._taken) if known else None
        marks = {"is_error": True} if failed else None
        made: list[Part] = []
        for piece in pieces(content):
            text = _response(piece)
            if text is not None:
                own = nth(key, len(made))
                masked = _MASKED in text
                made.append(
                    Part("tool_result", text, "tool", key=own, title=title, native=marks, truncated=masked)
                )
            elif isinstance(piece.get("text"), str):
                made.append(Part("tool_result", piece["text"], "tool", key=nth(key, len(made)), title=title))
            else:
                made += self.piece(piece, "tool", nth(key, len(made)))
        return made

    def told(self, piece: Json) -> Part:
        """The item of a function's response whose result was kept with the call already, as it was sent."""
        response = piece["functionResponse"]
        known, title = self._calls.get(string(response.get("id")) or "", ("", string(response.get("name"))))
        text = _response(piece) or ""
        key = f"{known}/result"
        return Part("tool_result", text, "tool", key=key, title=title, truncated=_MASKED in text)


def pieces(content: Any) -> Iterator[Json]:
    """The parts of a content, which is a text, a part, or a list of both."""
    for piece in content if isinstance(content, list) else [content]:
        if isinstance(piece, str):
            yield {"text": piece}
        elif isinstance(piece, dict):
            yield piece


def is_blob(piece: Json) -> bool:
    """Whether a part is a file's bytes, or its address."""
    return isinstance(piece.get("inlineData", piece.get("fileData")), dict)


def _kind(text: str) -> str:
    """The kind of a text in a user's message: the person's, unless the CLI put it there."""
    start = text.lstrip()
    if start.startswith(_CONTEXT):
        return "runtime_state"
    if start.startswith(_SNAPSHOT) or (_SNAPSHOT in text and _SNAPSHOT_END in text):
        return "thread_summary"
    return "policy_note" if start.startswith("<hook_context>") else "user_message"


def _response(piece: Json) -> str | None:
    """The text of a function's response; None for another part."""
    response = piece.get("functionResponse")
    if not isinstance(response, dict):
        return None
    body = response.get("response")
    if isinstance(body, dict) and len(body) == 1:
        for name in ("output", "error"):
            if isinstance(body.get(name), str):
                return str(body[name])
    return canonical(body)


def _blob(blob: Json, role: str, key: str | None) -> Part:
    data = string(blob.get("data"))
    mime = string(blob.get("mimeType"))
    kind = "image" if mime is not None and mime.startswith("image/") else "external_resource"
    version = digest_of(data or canonical(blob))[:VERSION_DIGITS]
    size = len(data) * 3 // 4 if data is not None else None
    return Part(kind, None, role, key=key, version=version, mime_type=mime, byte_size=size)


def bill(tokens: Any, model: str | None) -> Json | None:
    """The bill of a message; `input` holds what was cached, `output` no thoughts.  None where all is zero."""
    if not isinstance(tokens, dict):
        return None
    names = ("input", "output", "cached", "thoughts", "tool")
    fresh, output, cached, thoughts, tool = (count(tokens.get(name)) for name in names)
    if not any((fresh, output, cached, thoughts, tool)):
        return None
    return usage_record(
        input_tokens=(fresh or 0) + (tool or 0),
        output_tokens=(output or 0) + (thoughts or 0),
        cached=cached,
        reasoning=thoughts,
        provider="google",
        model=model,
        native=tokens,
    )


def is_billed(tokens: Any) -> bool:
    """Whether a message has a bill of its own."""
    return bill(tokens, None) is not None
