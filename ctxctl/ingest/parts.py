"""What importers make of a request's pieces before these have an identity, and helpers for native values and
times."""

from __future__ import annotations

import re
from typing import Any, Final

import orjson

from ctxctl.ingest import build
from ctxctl.ingest.about import wrong_keyword
from ctxctl.ingest.build import Json
from ctxctl.ingest.build import moment as moment
from ctxctl.model.numbers import count as count
from ctxctl.trace.depth import deeper_than, nests_deeper

_ARGUMENTS: Final = (
    "file_path", "filePath", "absolute_path", "target_file", "notebook_path", "pattern", "regex", "query",
    "path", "command", "cmd", "url", "skill", "description",
)  # fmt: skip
"""Arguments that tell one call of a tool from another, the most telling ones first: what is searched for goes
before where, and the path before an editor's `command`."""
TITLE: Final = 200
"""Characters of a title that an importer makes.  A view cuts it to its width, not the data."""
_PATCHED: Final = re.compile(r"^\*\*\* (?:Update|Add|Delete) File: (.+)$", re.MULTILINE)
"""A file in a patch as `apply_patch` takes it."""
_PATCH: Final = 4000
"""Characters of a patch in which its first file is looked for."""
_SHELL: Final = re.compile(r"(?:.*[/\\])?(?:ba|z|da|k|fi)?sh(?:\.exe)?")


_OPTIONS: Final = (
    "key", "source", "title", "native", "line", "version", "estimate", "truncated", "derived", "before",
    "segment", "wire",
)  # fmt: skip
_ITEM_FIELDS: Final = (
    "mime_type", "byte_size", "language", "priority", "source_refs", "content_ref", "freshness",
    "trust_level", "sensitivity", "redaction_state", "visibility",
)  # fmt: skip
_KNOWN_FIELDS: Final = frozenset(_ITEM_FIELDS)


class Part:
    """One piece of a request that has a place and, over several requests, an identity of its own.

    Args:
        kind: Context kind (`system_prompt`, `tool_definition`, `user_message`, `assistant_message`,
            `reasoning`, `tool_call`, `tool_result`, `image`, `thread_summary`, `policy_note`,
            `runtime_state`, `external_resource`, `file`, `custom` …); it decides the window segment.
        text: What the model got; None if the capture does not hold it.
        role: Role of the block: `system`, `user`, `assistant`, `tool`.
        key: The runtime's own id for it, unique in its thread and the same in each request that carries it;
            None if it has none, which makes identity derived.
        source: Where it comes from (a path, a server, a provider's id); the identity where there is no key.
        before: Text of the request in front of it, which is no part of it (a separator).
        segment: The window segment, where it is not that of the kind (a file in the system prompt).
        data: Further fields of the `context_item` (`mime_type`, `byte_size`, `priority` …); what a runtime
            knows beyond these goes to `native`.  Raises TypeError for any other name.
    """

    __slots__ = (
        "before", "data", "derived", "digest", "estimate", "item", "kind", "line", "native", "place", "role",
        "segment", "sent", "source", "text", "time", "title", "truncated", "version",
        "wire",
    )  # fmt: skip

    def __init__(
        self,
        kind: str,
        text: str | None,
        role: str,
        *,
        key: str | None = None,
        source: str | None = None,
        title: str | None = None,
        native: Json | None = None,
        line: int = 0,
        version: str | None = None,
        estimate: int | None = None,
        truncated: bool = False,
        derived: bool = False,
        before: str = "",
        segment: str = "",
        wire: str = "",
        **data: Any,
    ) -> None:
        if data and not data.keys() <= _KNOWN_FIELDS:
            raise wrong_keyword("Part", data, (*_OPTIONS, *_ITEM_FIELDS))
        self.before = before
        self.segment = segment
        self.kind = kind
        self.role = role
        self.item = key or ""
        """Identity; empty until a conversation gives one."""
        self.source = source
        self.place: str | None = None
        """Its place in a history that only grows, which is the derived identity where there is no key."""
        self.title = title
        self.native = native
        """The runtime's own fields that have no other home; kept under `metadata.native`."""
        self.line = line
        """Line of the foreign file; 0: the request's."""
        self.time: str | None = None
        self.text = text
        """The text, dropped once the item was emitted."""
        self.digest = build.digest_of(text) if text is not None else None
        """The SHA-256 of the text in hex."""
        self.version = version
        """The version that the runtime gives; None where the text's digest is the version."""
        self.estimate = estimate
        """The runtime's own count of its tokens, where recorded."""
        self.truncated = truncated
        """Whether it was cut or blanked to fit."""
        self.derived = derived
        """Whether the text was put together from several native facts."""
        self.wire = wire
        """Where it stands in the request's JSON (`providers.dialects.slots`); a fact of the placement."""
        self.sent = ""
        """The text as it was sent here, where the item was told in another rendering of the same version."""
        self.data = data
        """Further fields of the `context_item` (`mime_type`, `byte_size`, `priority` …)."""

    @property
    def mark(self) -> str:
        """What tells two versions of one item apart: the version as a block names it; empty if unknown."""
        if self.version is not None:
            return self.version
        return self.digest[: build.VERSION_DIGITS] if self.digest is not None else ""

    def reword(self, text: str) -> None:
        """Give it another text, such as one without secrets; its version is that text's."""
        self.text, self.digest, self.version = text, build.digest_of(text), None

    def block(self) -> build.Block:
        """Make its placement in a window."""
        item, mark = self.item, self.mark
        ref = f"{item}@{mark}" if mark else item
        return build.block(
            (ref, item, self.role, self.truncated, self.before, self.segment, self.wire, self.sent)
        )

    def record(self, *, derived_identity: bool) -> Json:
        """Make its `context_item`, with the text inline."""
        made = build.bare_item(self.item, self.kind, self.text)
        if self.title is not None:
            made["title"] = self.title
        if self.estimate is not None:
            made["token_estimate"] = self.estimate
        for name, value in self.data.items():
            if value is not None:
                made[name] = value
        if self.source is not None:
            made["source_refs"] = [{"schema_version": "0.1.1", "source_id": self.source}]
        meta = self._metadata(derived_identity)
        if meta:
            made["metadata"] = meta
        return made

    def _metadata(self, derived_identity: bool) -> Json:
        meta: Json = {}
        if self.version is not None:
            meta["version"] = self.version
        if self.native:
            meta["native"] = self.native
        if derived_identity or self.truncated or self.derived:
            marks = meta["ctxctl"] = {}
            if derived_identity:
                marks["identity"] = "derived"
            if self.truncated:
                marks["truncated"] = True
            if self.derived:
                marks["derived"] = True
        return meta


def parsed(arguments: Any) -> Any:
    """A call's arguments, read where they are JSON in a string; text that is none stays as it is."""
    if isinstance(arguments, str):
        try:
            return orjson.loads(arguments)
        except orjson.JSONDecodeError:
            return arguments
    return arguments


def call_title(name: str, arguments: Any) -> str:
    """One line that tells a tool call from others: the tool and its first telling argument."""
    said = _patched(arguments)
    if isinstance(arguments, dict):
        said = next((line for key in _ARGUMENTS if (line := _telling(arguments.get(key)))), said)
        if said is None:
            texts = [value for value in arguments.values() if isinstance(value, str)]
            said = _patched(texts[0]) or _telling(texts[0]) if len(texts) == 1 else None
    return f"{name}: {said}" if said else name


def first_line(text: Any) -> str | None:
    """The first line of a command, short enough for a title; None where there is none."""
    # The first characters of a long text hold all that is told.
    lines = text.strip()[: TITLE + 1].splitlines() if isinstance(text, str) else []
    return _short(lines[0]) if lines else None


def _telling(value: Any) -> str | None:
    """An argument as a title says it; a command that is a list of words, without the shell that runs it."""
    if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
        runs = len(value) == 3 and _SHELL.fullmatch(value[0]) and re.fullmatch(r"-\w*c", value[1])
        value = value[2] if runs else " ".join(value)
    return first_line(value)


def _patched(text: Any) -> str | None:
    """The first file that a patch is about."""
    found = _PATCHED.search(text, 0, _PATCH) if isinstance(text, str) and "*** " in text[:_PATCH] else None
    return first_line(found.group(1)) if found is not None else None


def _short(line: str) -> str:
    return line if len(line) <= TITLE else f"{line[: TITLE - 1]}…"


def string(value: Any) -> str | None:
    """The value if it is a non-empty string."""
    return value if isinstance(value, str) and value else None


LIMIT: Final = 100
"""The most levels that an importer takes over; a trace keeps 200, its own wrapping included."""
_DEEPER: Final = "…"


def listed(value: Any) -> list[Any]:
    """The value if it is a list, else no values."""
    return value if isinstance(value, list) else []


def mapping(value: Any) -> Json:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def objects_of(value: Any) -> list[Json]:
    """The objects of a list, in order; none where the value is no list."""
    return [one for one in listed(value) if isinstance(one, dict)]


def nth(name: str | None, index: int) -> str | None:
    """The id of one of several items that share a native id: the first keeps it, later ones get `/index`."""
    return name if name is None or index == 0 else f"{name}/{index}"


def unused(name: str, taken: dict[str, int]) -> str:
    """The name, or the first of `name~2`, `name~3` … that is not taken; it is taken now.

    `taken`: by name, how often it was asked for, so that the next time begins where this one ends.
    """
    found, again = name, taken.get(name, 0)
    while again and (found := f"{name}~{again + 1}") in taken:
        again += 1
    taken[name] = again + 1
    taken.setdefault(found, 1)
    return found


def shallow(value: Any, raw: bytes = b"") -> Any:
    """The value, with what lies below `LIMIT` levels replaced by an ellipsis.

    Args:
        value: As parsed.
        raw: The bytes that it was parsed from, if at hand: they tell faster that there is nothing to do.
    """
    if raw and not deeper_than(LIMIT, raw):
        return value
    return _cut(value, 0) if nests_deeper(LIMIT, value) else value


def _cut(value: Any, depth: int) -> Any:
    if not isinstance(value, dict | list):
        return value
    if depth >= LIMIT:
        return _DEEPER
    if isinstance(value, list):
        return [_cut(inner, depth + 1) for inner in value]
    return {key: _cut(inner, depth + 1) for key, inner in value.items()}
