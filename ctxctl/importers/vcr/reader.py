"""Reads the interactions of a cassette as HTTP calls: vcrpy, Ruby VCR, PHP-VCR, go-vcr, Betamax, nock."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ctxctl.ingest.build import Json
from ctxctl.ingest.document import document
from ctxctl.ingest.lines import Report
from ctxctl.ingest.run import Run
from ctxctl.providers.calls import encodings, yaml_cassettes
from ctxctl.providers.calls.http import Call, Calls
from ctxctl.trace.source import Source

NAME: Final = "vcr"
LISTS: Final = ("interactions", "http_interactions")
_BOM: Final = b"\xef\xbb\xbf"
_SPACE: Final = b" \t\r\n"
_ENVELOPE: Final = (
    "content", "data", "text", "body_segments", "bodySegments", "base64_string", "base64", "encoding",
    "content_encoding", "is_base64", "isBase64Encoded",
)  # fmt: skip
"""Fields that a message without `body` may hold its body in, and those that say how it is encoded."""


def read(source: Source, report: Report) -> Iterator[Json]:
    """The cassette's events.

    Raises:
        UnavailableError: `needs-yaml`.
    """
    run = Run(NAME, report)
    calls = Calls(run)
    for piece in _pieces(source, run):
        call = _call(piece, calls)
        if call is not None:
            calls.take(call)
            yield from run.drain()
        else:
            run.problem("not-a-record", "not an HTTP interaction; skipped")
    yield from calls.finish()


def _pieces(source: Source, run: Run) -> Iterator[yaml_cassettes.Piece]:
    head = source.read(0, 64).removeprefix(_BOM).lstrip(_SPACE)
    if head.startswith((b"{", b"[")):
        found = document(source, run.report)
        for name in LISTS:
            if isinstance(found, dict) and name in found:
                found = found[name]
        for entry in found if isinstance(found, list) else []:
            yield yaml_cassettes.Piece(0, entry)
        return
    loaded = yaml_cassettes.load(source, LISTS, run.report)
    yield from loaded.pieces if loaded is not None else ()


def _call(piece: yaml_cassettes.Piece, calls: Calls) -> Call | None:
    entry = piece.value
    if not isinstance(entry, dict):
        return None
    request, response = entry.get("request"), entry.get("response")
    if not isinstance(request, dict):
        return _nock(entry, piece.line) if "scope" in entry else None
    answer: Json = response if isinstance(response, dict) else {}
    body = _body(request)
    return Call(
        url=request.get("uri", request.get("url")),
        method=request.get("method", "POST"),
        request=body,
        response=_body(answer),
        status=answer.get("code", answer.get("status_code", answer.get("status"))),
        headers=answer.get("headers"),
        line=piece.line,
        time=entry.get("recorded_at"),
        session=calls.session_of(body),
        error=None if answer else "no response recorded",
    )


def _body(message: Json) -> Any:
    """The body of a message: parsed, as text or bytes, or in one of the wrappers that tell the encoding."""
    parsed = message.get("parsed_body")
    if parsed is not None:
        return encodings.plain(parsed, bytes_too=True)
    if "body" not in message:
        # An envelope by itself: `content`, segments, with what tells their encoding beside them.
        held = {name: message[name] for name in _ENVELOPE if name in message}
        return encodings.plain(held) if held else None
    body = message["body"]
    if not isinstance(body, dict):
        return body
    if "base64_string" in body and isinstance(body["base64_string"], str):
        return encodings.unbase64(body["base64_string"])
    if "string" in body and set(body) <= {"string", "encoding"}:
        return body["string"]
    if isinstance(body.get("type"), str) and set(body) <= {"type", "content", "encoding"}:
        content = body.get("content")
        if body["type"] in ("base64", "binary") and isinstance(content, str):
            return encodings.unbase64(content)
        return encodings.plain(content, bytes_too=True) if isinstance(content, dict | list) else content
    return encodings.plain(body, bytes_too=True)


def _nock(entry: Json, line: int) -> Call:
    """The call that nock recorded; compressed answers are lists of hexadecimal text."""
    response: Any = entry.get("response")
    if isinstance(response, list) and response and all(isinstance(piece, str) for piece in response):
        text = "".join(response)
        try:
            response = bytes.fromhex(text)
        except ValueError:
            response = text
    scope, path = entry.get("scope"), entry.get("path")
    return Call(
        url=f"{scope}{path}" if isinstance(scope, str) and isinstance(path, str) else None,
        method=entry.get("method", "POST"),
        request=entry.get("body"),
        response=response,
        status=entry.get("status"),
        headers=entry.get("rawHeaders") if isinstance(entry.get("rawHeaders"), dict) else None,
        line=line,
    )
