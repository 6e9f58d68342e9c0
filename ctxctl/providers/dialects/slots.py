"""Where each item of a request stands in its JSON body, said so that the body can be put together again.

Every placement carries its place as `metadata.ctxctl.wire`, an object with these fields:

- `in`: the field of the body (`tools`, `system`, `messages`, `input`, `contents` …).
- `open`: JSON objects that begin with this item and hold the following ones (a message, a tool result).
- `at`: how many objects that were open before this item stay open around it; absent: none.
- `to`: which hole of the innermost open object it goes into; absent: `parts`.
- `leaf`: its own JSON.  `joins`: instead, its text continues that of the item before.

JSON here has holes: `{"$": NAME}` in an opened object is a list of what goes into it, `{"$1": NAME}` the one
thing that does.  In a leaf `{"$": "text"}` is the item's text, `{"$": "json"}` its text read as JSON,
`{"$": "call"}` a tool call's text less its name, read as JSON, and `{"$": "input"}` the text less the name as
it is (older traces have `{"$": "arguments"}`: the JSON in a string).  An opened object with `"$": "merge"` is
the union of what goes into it.  `{"#": SHA-256, "bytes": N}` stands for a string that is no text: an image, a
signature, sealed reasoning.  Cache markers are left out, they move from request to request; a plain string
stands as one text block.

Context that a harness put inside a message, between tags of its own; cut out without loss.
"""

from __future__ import annotations

import re
import sys
from typing import Any, Final, NamedTuple

import orjson

from ctxctl.ingest import build
from ctxctl.ingest.build import Json
from ctxctl.ingest.parts import Part, shallow

TEXT: Final = {"$": "text"}
JSON: Final = {"$": "json"}
CALL: Final = {"$": "call"}
INPUT: Final = {"$": "input"}
PARTS: Final = {"$": "parts"}
_SHORT: Final = 200
_LONGEST: Final = 1000
"""Characters of a parameter."""
_OPTIONS: Final = orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS
_SEALED: Final = (
    "signature",
    "encrypted_content",
    "encrypted_index",
    "thoughtSignature",
    "thought_signature",
)
"""Fields whose value no one but the provider can read."""
_CACHE: Final = "cache_control"


def compact_json(value: Any) -> str:
    """JSON with sorted keys; of what is none (YAML's dates, lone surrogates, bottomless nests) a string."""
    try:
        return orjson.dumps(value, option=_OPTIONS, default=str).decode()
    except (TypeError, ValueError, RecursionError):
        return orjson.dumps(build.digest_of(_repr(value))).decode()


def json_as_sent(value: Any) -> str:
    """JSON with its keys in the order that they were sent in, without spaces.

    A provider reads a body as JSON, so that spaces between its tokens reach no model; the order of keys in
    what a client made up itself (a schema, a call's arguments) does.
    """
    try:
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS, default=str).decode()
    except (TypeError, ValueError, RecursionError):
        return compact_json(value)


def short_parameter(value: Any) -> Any:
    """A parameter of a request as it stands there; of one that is long, a digest."""
    text = compact_json(plain(value))
    return orjson.loads(text) if len(text) <= _LONGEST else blob(text)


def structured(
    kind: str, value: Any, role: str, *, name: str = "", text: str | None = None, **fields: Any
) -> Part:
    """A part whose text is JSON as it was sent; its version is that of the canonical form.

    Args:
        kind: Context kind.
        value: What the JSON says.
        role: Of the block.
        name: What stands in front of it, with a space: a tool's name.
        text: The JSON as it was sent, where that was text already.
        fields: The part's.
    """
    head = f"{name} " if name else ""
    shown = head + (json_as_sent(value) if text is None else text)
    plainest = head + compact_json(value)
    if shown != plainest and fields.get("version") is None:
        fields["version"] = build.digest_of(plainest)[: build.VERSION_DIGITS]
    return Part(kind, shown, role, **fields)


def _repr(value: Any) -> str:
    try:
        return repr(value)
    except RecursionError:
        return repr(shallow(value))


def blob(value: str) -> Json:
    """What stands for a string that is no text."""
    return {"#": build.digest_of(value), "bytes": len(value)}


def is_data_url(value: Any) -> bool:
    """Whether a string carries data rather than names a place."""
    return isinstance(value, str) and value.startswith("data:")


def plain(value: Any, *, depth: int = 0) -> Any:
    """A value without cache markers, with digests in place of sealed fields and of binary data."""
    if isinstance(value, dict):
        if depth > 60:
            return compact_json(value)
        made: Json = {}
        binary = _is_binary(value)
        for name, inner in value.items():
            if name == _CACHE:
                continue
            if isinstance(inner, str):
                sealed = name in _SEALED or (binary and name in ("data", "file_data")) or is_data_url(inner)
                made[name] = blob(inner) if sealed and inner else inner
            else:
                made[name] = plain(inner, depth=depth + 1)
        return made
    if isinstance(value, list):
        return [plain(inner, depth=depth + 1) for inner in value] if depth <= 60 else compact_json(value)
    return value


def _is_binary(value: Json) -> bool:
    """Whether a `data` field of this object is data: it says its media type, or that it is base64."""
    return value.get("type") in ("base64", "redacted_thinking", "image", "audio", "blob") or any(
        name in value
        for name in ("media_type", "mimeType", "mime_type", "format", "file_data", "encoding", "displayName")
    )


def without_cache(value: Any, *, depth: int = 0) -> Any:
    """A value without cache markers."""
    if depth > 60:
        return value
    if isinstance(value, dict):
        return {n: without_cache(v, depth=depth + 1) for n, v in value.items() if n != _CACHE}
    return [without_cache(v, depth=depth + 1) for v in value] if isinstance(value, list) else value


class Slots:
    """Collects the items of one field of a request body, each with its place.

    Args:
        section: The field of the body.
        line: Line of the foreign file, given to every part.
    """

    def __init__(self, section: str, line: int = 0) -> None:
        self.section = section
        self.line = line
        self.parts: list[Part] = []
        self.marked: list[int] = []
        """Indexes of parts that carry a cache marker."""
        self._depth = 0
        self._fresh: list[Any] = []

    def enter(self, template: Any) -> None:
        """Open an object for the items that follow; at least one must."""
        self._fresh.append(template)
        self._depth += 1

    def leave(self) -> None:
        """Close the innermost open object."""
        self._depth -= 1
        if self._fresh:
            self._fresh.pop()

    def put(self, part: Part, leaf: Any, to: str | None = None) -> Part:
        """Place a part; `leaf` is its JSON with a hole for its text."""
        place: Json = {"in": self.section, "leaf": leaf}
        if to is not None:
            place["to"] = to
        self._place(part, place)
        return part

    def text(
        self, kind: str, text: str, role: str, leaf: Any = None, *, to: str | None = None, **fields: Any
    ) -> list[Part]:
        """Place a text; what a harness put into it becomes items of their own (`reminders`).

        `fields` are the part's; a key stays with the text that is the message's own.
        """
        leaf = {"type": "text", "text": TEXT} if leaf is None else leaf
        pieces = split(text)
        made: list[Part] = []
        key, again = fields.pop("key", None), 0
        for index, piece in enumerate(pieces):
            if piece.kind is None:
                again += 1
                name = key if key is None or again == 1 else f"{key}/{again}"
                part = Part(kind, piece.text, role, key=name, line=self.line, **fields)
            else:
                part = Part(
                    piece.kind, piece.text, role, source=piece.source, line=self.line, title=piece.source,
                    native={"type": piece.tag}, segment="system" if role == "system" else "",
                )  # fmt: skip
            if index == 0:
                self.put(part, leaf, to)
            else:
                self._place(part, {"in": self.section, "joins": True})
            made.append(part)
        return made

    def mark(self, native: Any) -> None:
        """Note that the last part carries a cache marker if its native block does."""
        if isinstance(native, dict) and native.get(_CACHE) is not None and self.parts:
            part = self.parts[-1]
            part.native = {**(part.native or {}), _CACHE: native[_CACHE]}
            self.marked.append(len(self.parts) - 1)

    def _place(self, part: Part, place: Json) -> None:
        if self._fresh:
            place["open"] = self._fresh
        outer = self._depth - len(self._fresh)
        if outer:
            place["at"] = outer
        part.wire = compact_json(place)
        if len(part.wire) < _SHORT:
            part.wire = sys.intern(part.wire)
        self._fresh = []
        self.parts.append(part)


KINDS: Final = {
    "system-reminder": "policy_note",
    "context_file": "external_resource",
    "environment_context": "runtime_state",
    "environment_details": "runtime_state",
    "user_instructions": "policy_note",
}
"""Context kind, by the tag that a harness puts its own context between."""
_TAG: Final = re.compile(
    r"<(/?)(" + "|".join(re.escape(tag) for tag in KINDS) + r")((?:\s++[^<>\n]*+)?)>",
)
_ATTRIBUTE: Final = re.compile(r"""\b(source|paths?)\s*=\s*(?:"([^"]*)"|'([^']*)')""")


class Piece(NamedTuple):
    """A stretch of a text."""

    text: str
    kind: str | None = None
    """Context kind of what a harness put in; None for the message's own text."""
    source: str | None = None
    """As its opening tag names it (`source=`, `paths=`)."""
    tag: str | None = None


def split(text: str) -> list[Piece]:
    """The text in stretches: joined in order they are the text, character by character.

    A stretch from an opening to its closing tag is cut out where the opening tag begins a line, the closing
    tag ends one, and the same tag does not stand between them; what else stands between them is its content.
    Blank space before and behind goes with it, so that the message's own text is the same with and without.
    If any tag is left over, nothing can be told apart for sure, and the text stays whole.
    """
    if "</" not in text:
        return [Piece(text)]
    spans = _spans(text)
    if not spans:
        return [Piece(text)]
    made: list[Piece] = []
    at = 0
    for start, end, tag, attributes in spans:
        own = text[at:start]
        if own and not own.isspace():
            kept = own.rstrip()
            made.append(Piece(kept))
            at += len(kept)
        tail = _after(text, end)
        made.append(Piece(text[at:tail], KINDS[tag], _source(attributes), tag))
        at = tail
    if at < len(text):
        made.append(Piece(text[at:]))
    return made


def _spans(text: str) -> list[tuple[int, int, str, str]] | None:
    """Start, end, tag and attributes of each stretch; None if they cannot be told apart."""
    found: list[tuple[int, int, str, str]] = []
    opened: re.Match[str] | None = None
    for match in _TAG.finditer(text):
        closing, tag = match.group(1) == "/", match.group(2)
        if opened is None:
            if closing:
                return None
            if not _begins_line(text, match.start()):
                return None
            opened = match
        elif tag == opened.group(2):
            if not closing:
                if _begins_line(text, match.start()):
                    return None
                continue
            if not _ends_line(text, match.end()):
                return None
            found.append((opened.start(), match.end(), tag, opened.group(3)))
            opened = None
    return None if opened is not None else found


def _begins_line(text: str, at: int) -> bool:
    # After another stretch on the same line too: some harnesses put nothing between them.
    before = text[max(0, at - 80) : at].rstrip(" \t")
    return not before or before.endswith(("\n", ">"))


def _ends_line(text: str, at: int) -> bool:
    behind = text[at : at + 80].lstrip(" \t")
    return not behind or behind[0] in "\r\n<"


def _after(text: str, end: int) -> int:
    """Where the blank space behind a stretch ends."""
    rest = len(text)
    at = end
    while at < rest and text[at] in " \t\r\n":
        at += 1
    return at


def _source(attributes: str) -> str | None:
    match = _ATTRIBUTE.search(attributes)
    if match is None:
        return None
    return (match.group(2) or match.group(3) or "").strip() or None
