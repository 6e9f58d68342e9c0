"""Takes the secrets out of whole events that somebody else made.

A digest of a text with a secret (a version, a reference to a content) would confirm a guess of the secret,
and would no longer fit the text that is written: digests are replaced with the texts.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Any, Final

import orjson

from ctxctl.record import values
from ctxctl.record.redact import FoundSecrets, SecretRedactor
from ctxctl.record.seams import Follower
from ctxctl.trace.contents import digest_of_raw

Json = dict[str, Any]
_DIGITS: Final = 16
_MOST: Final = 100_000
"""Replaced contents that are remembered at most."""
_DIGEST: Final = re.compile(rb'(?:"|@|sha256:)([0-9a-f]{64}|[0-9a-f]{16})"')


class LineBuffer(bytearray):
    """Takes the line that a `TraceWriter` writes, in the place of a file."""

    closed = False

    def write(self, line: bytes) -> int:
        """Append a line to the buffer."""
        self.extend(line)
        return len(line)


class EventCleaner:
    """Takes secrets out of one stream of events, and remembers what it replaced in it.

    Args:
        redactor: None: events are left as they are.
        replaced: Takes the counts of secrets, by kind.
    """

    def __init__(self, redactor: SecretRedactor | None, replaced: dict[str, int]) -> None:
        self._redactor = redactor
        self._replaced = replaced
        self._follower = Follower(redactor) if redactor is not None else None
        self._moved: dict[str, str] = {}
        """By old digest, whole or shortened, the new one."""

    def clean(self, event: Json) -> Json:
        """Return the event without secrets; the argument is not changed.

        Raises whatever a failed redaction raises: the event must not be written then.
        """
        redactor = self._redactor
        if redactor is None:
            return event
        raw, found = values.encoded(event), FoundSecrets()
        moved = bool(self._moved) and any(m[1].decode() in self._moved for m in _DIGEST.finditer(raw))
        joined = self._followed_on(event, found)
        if not moved and not found.count and not redactor.worth_a_look(raw):
            return event
        before: Json = orjson.loads(raw)
        if found.count:
            raw = values.encoded(joined)
        made: Json = redactor.value(orjson.loads(raw), raw, found)
        if found.count:
            made = {**made}
            self._count(found)
            self._move(before, made)
            _mark(made, found)
        return self._followed(made) if moved or found.count else made

    def _followed_on(self, event: Json, found: FoundSecrets) -> Json:
        """The event, whose content may begin with the rest of a secret of the content before it."""
        data = event.get("data")
        content = data.get("content") if isinstance(data, dict) else None
        if self._follower is None or not isinstance(content, str):
            return event
        made = self._follower.value(content, found)
        return event if made is content else {**event, "data": {**event["data"], "content": made}}

    def _count(self, found: FoundSecrets) -> None:
        for kind, n in found.kinds.items():
            self._replaced[kind] = self._replaced.get(kind, 0) + n

    def _move(self, before: Json, made: Json) -> None:
        """Remember the old and new digests of contents that were replaced."""
        for old, new in zip(_contents(before), _contents(made), strict=False):
            if old == new:
                continue
            if len(self._moved) > _MOST:
                self._moved.clear()
            was, now = _digest(old), _digest(new)
            self._moved[was] = now
            self._moved[was[:_DIGITS]] = now[:_DIGITS]

    def _followed(self, value: Any) -> Any:
        if isinstance(value, str):
            head, at, tail = value.rpartition("@" if "@" in value[-_DIGITS - 1 :] else "sha256:")
            now = self._moved.get(tail)
            return f"{head}{at}{now}" if now is not None else value
        if isinstance(value, dict):
            return {
                name: inner if name == "content" else self._followed(inner) for name, inner in value.items()
            }
        if isinstance(value, list):
            return [self._followed(inner) for inner in value]
        return value


def _mark(event: Json, found: FoundSecrets) -> None:
    metadata = event.get("metadata")
    metadata = dict(metadata) if isinstance(metadata, dict) else {}
    own = metadata.get("ctxctl")
    metadata["ctxctl"] = {**(own if isinstance(own, dict) else {}), "redacted": found.record()}
    event["metadata"] = metadata
    data = event.get("data")
    if isinstance(data, dict) and data.get("content") is not None:
        event["data"] = {"redaction_state": "masked", "redaction_method": "ctxctl", **data}


def _contents(event: Json) -> list[Any]:
    """Return the contents of an event in order: the item's own, and those of an assembly's blocks."""
    data = event.get("data")
    if not isinstance(data, dict):
        return []
    blocks = data.get("ordered_blocks")
    found = [data.get("content")]
    if isinstance(blocks, list):
        found += [block.get("content") if isinstance(block, dict) else None for block in blocks]
    return found


def _digest(content: Any) -> str:
    if isinstance(content, str):
        return sha256(content.encode("utf-8", "replace")).hexdigest()
    return digest_of_raw(orjson.dumps(content))
