"""Read what is readable of a line that is not valid JSON. Repairs keep every readable character.

Each repair yields a fault with its byte in the line as stored. Nothing is invented: unreadable parts become
U+FFFD, null or text, and are reported.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from ctxctl.trace.depth import DEPTH_LIMIT, deeper_than, flatten_below

REPAIR_BYTES = 64 << 20
SPLIT_BYTES = 8 << 20
"""Longest line that is searched for concatenated records."""
PIECES_PER_LINE = 50_000
"""Most records that are read from one line."""
CANDIDATES = 16
"""Places tried for the start of a record after a torn one."""
FAULTS_PER_LINE = 8

_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+(?P<end>")?|-?\b(?:NaN|Infinity)\b', re.DOTALL)
"""A string, and whether it ends; what is no JSON number.  A torn string is one match, for linear time."""
_SHAPE = re.compile(rb'"(?:[^"\\]++|\\.)*+(?P<end>")?|[\[\]{}]', re.DOTALL)
_MEMBER = re.compile(rb'"(?:[^"\\]++|\\.)*+"[ \t]*+:', re.DOTALL)
_NO_NUMBER = re.compile(rb"-?\b(?:NaN|Infinity)\b")
_SOUND_ESCAPE = (
    rb'\\["\\/bfnrt]'
    rb"|\\u(?:[0-9a-cA-CefEF][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2})"
    rb"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)
_SOUND = re.compile(
    rb'(?:[\[\]{}:, \t]++|"(?:[^"\\\x00-\x1f]++|' + _SOUND_ESCAPE + rb')*+"'
    rb"|-?[0-9][-+.eE0-9]*+(?!\w)|(?:true|false|null)\b)*+"
)
"""What needs no repair, as far as the first token that may; it ends where a word may begin."""
_ESCAPE = re.compile(
    rb"(?P<sound>(?:[^\\\x00-\x1f]++|" + _SOUND_ESCAPE + rb")*+)"
    rb"(?:(?P<lone>\\u[dD][89a-fA-F][0-9a-fA-F]{2})|(?P<bad>\\)|(?P<control>[\x00-\x1f])|\Z)"
)
"""A stretch of a string as far as the next thing to repair."""
_START = re.compile(r'\{\s*"(?:schema_version|event_id|event_type)"\s*:')
_START_BYTES = re.compile(_START.pattern.encode())
_SPACE = re.compile(r"[ \t\r\n\0]*")


class LineFault(NamedTuple):
    """One fault of a line; `at` is its byte in the line."""

    at: int
    slug: str
    message: str


class Piece(NamedTuple):
    """A stretch of a repaired line that holds one JSON value; `at`, `length` are bytes of the original."""

    text: bytes
    at: int
    length: int


def repair_line(line: bytes) -> tuple[bytes, int, list[LineFault]]:
    """Repair encoding, escapes, control characters, numbers and depth.

    Returns the repaired line, the byte of the original at which it starts (NULs in front are cut), and the
    faults, each at its byte, or at the record's first where repairs have moved it.  The result may still
    not be JSON.
    """
    faults: list[LineFault] = []
    body = line.strip(b"\0 \t\r")
    start = line.find(body[:1]) if body else len(line)
    if b"\0" in line[:start] or b"\0" in line[start + len(body) :]:
        count = len(line) - len(line.strip(NULS))
        what = f"{count} NUL bytes around the record" if body else f"{count} NUL bytes and nothing else"
        faults.append(LineFault(line.find(b"\0"), "nul-bytes", what))
    if not body:
        return b"", start, faults
    body, bad = _utf8(body, start)
    body = _tokens(body, start, faults)
    if bad is not None:
        # After it, the bytes differ from the line's: U+FFFD takes three.
        faults = [fault if fault.at < bad.at else fault._replace(at=start) for fault in faults]
        faults.append(bad)
    if deeper_than(DEPTH_LIMIT, body):
        body = flatten_below(body)
        message = f"nested more than {DEPTH_LIMIT} deep; what lies deeper is shown as text"
        faults.append(LineFault(start, "too-deep", message))
    return body, start, faults[:FAULTS_PER_LINE]


NULS = b"\0 \t\r"


def over_lines(line: bytes) -> bool:
    """Return whether a line is a sound part of a JSON value that extends over several lines."""
    body = line.strip()
    if body[:1] in (b"]", b"}"):
        return not body.strip(b"]}, \t")
    if body[:1] == b'"':
        return _MEMBER.match(body) is not None
    if _START_BYTES.match(body) is not None and body[-1:] == b",":
        return False  # an event is written on one line, so this one was cut
    return body[-1:] in (b"{", b"[", b",") and (nesting_balance(body) or 0) > 0


def nesting_balance(line: bytes) -> int | None:
    """Return how many more arrays and objects a line opens than it closes; None within a string."""
    depth = 0
    for token in _SHAPE.finditer(line):
        text = token[0]
        if text[:1] == b'"':
            if token["end"] is None:
                return None
        else:
            depth += 1 if text in b"[{" else -1
    return depth


def split_records(body: bytes, start: int, *, last: bool) -> tuple[list[Piece], list[LineFault]]:
    """Find the records of a line that is not one JSON value: concatenated ones, and those after a torn one.

    `last` means that the line ends the file without a line end, so it was probably cut off.
    """
    if len(body) > SPLIT_BYTES:
        return [], [
            LineFault(start, "bad-json", f"not valid JSON, and too long ({len(body)} bytes) to be searched")
        ]
    text = body.decode("utf-8", "replace")
    pieces: list[Piece] = []
    faults: list[LineFault] = []
    decoder = json.JSONDecoder()
    at, here = 0, start
    while True:
        skip = _SPACE.match(text, at)
        assert skip is not None
        at, here = skip.end(), here + len(text[at : skip.end()].encode())
        if at >= len(text):
            break
        end, reason = _value_end(decoder, text, at)
        if end is not None:
            raw = text[at:end].encode()
            if deeper_than(DEPTH_LIMIT, raw):
                raw = flatten_below(raw)
            if (pieces or faults) and len(faults) < FAULTS_PER_LINE:
                faults.append(LineFault(here, "glued-lines", "a second record begins on the same line"))
            if len(pieces) == PIECES_PER_LINE:
                message = f"more than {PIECES_PER_LINE} records on one line; the rest is skipped"
                faults.append(LineFault(here, "glued-lines", message))
                break
            length = len(text[at:end].encode())
            pieces.append(Piece(raw, here, length))
            at, here = end, here + length
            continue
        faults.append(_unreadable(here, reason, cut=last and _unclosed(text[at:])))
        found = _next_record(decoder, text, at + 1)
        if found is None:
            break
        here += len(text[at:found].encode())
        at = found
    return pieces, faults


def _utf8(body: bytes, start: int) -> tuple[bytes, LineFault | None]:
    try:
        body.decode()
    except UnicodeDecodeError as error:
        text = body.decode("utf-8", "replace")
        message = f"invalid UTF-8 (byte 0x{body[error.start]:02X}); shown as U+FFFD"
        return text.encode(), LineFault(start + error.start, "bad-utf8", message)
    return body, None


def _tokens(body: bytes, start: int, faults: list[LineFault]) -> bytes:
    seen: set[str] = set()
    found = _SOUND.match(body)
    sound = found.end() if found is not None else 0
    start += sound

    def say(at: int, slug: str, message: str) -> None:
        if slug not in seen:
            seen.add(slug)
            faults.append(LineFault(start + at, slug, message))

    def number(at: int, text: bytes) -> bytes:
        say(at, "bad-number", f"{text.decode()} is not JSON; read as null")
        return b"null"

    def token(match: re.Match[bytes]) -> bytes:
        text = match[0]
        if text[:1] != b'"':
            return number(match.start(), text)
        if match["end"] is None:
            after = match.start() + 1
            return b'"' + _NO_NUMBER.sub(lambda found: number(after + found.start(), found[0]), text[1:])
        base = match.start()

        def escape(found: re.Match[bytes]) -> bytes:
            kind = found.lastgroup
            if kind == "sound":
                return found[0]
            at = base + found.end("sound")
            if kind == "lone":
                say(at, "lone-surrogate", f"{found['lone'].decode()} is half a character; shown as U+FFFD")
                return found["sound"] + b"\\ufffd"
            if kind == "bad":
                say(at, "bad-escape", "a backslash that escapes nothing; kept as a backslash")
                return found["sound"] + b"\\\\"
            code = found["control"][0]
            if code:
                say(at, "control-character", f"a bare U+{code:04X} inside a string")
            else:
                say(at, "nul-bytes", "a NUL inside a string")
            return found["sound"] + b"\\u%04x" % code

        return _ESCAPE.sub(escape, text)

    return body[:sound] + _TOKEN.sub(token, body[sound:])


def _value_end(decoder: json.JSONDecoder, text: str, at: int) -> tuple[int | None, str]:
    try:
        return decoder.raw_decode(text, at)[1], ""
    except json.JSONDecodeError as error:
        return None, f"{error.msg.lower().removesuffix(' at')} at character {error.pos + 1}"
    except (ValueError, RecursionError) as error:
        return None, str(error).partition(";")[0].lower()


def _unreadable(at: int, reason: str, *, cut: bool) -> LineFault:
    if cut:
        return LineFault(at, "truncated-line", "the last line is cut off: its record is incomplete")
    return LineFault(at, "bad-json", f"not valid JSON: {reason}")


def _unclosed(text: str) -> bool:
    return text.startswith("{") and not text.rstrip().endswith("}}")


def _next_record(decoder: json.JSONDecoder, text: str, at: int) -> int | None:
    tried = 0
    for match in _START.finditer(text, at):
        tried += 1
        if tried > CANDIDATES:
            break
        try:
            value, _ = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and isinstance(value.get("event_type"), str):
            return match.start()
    return None
