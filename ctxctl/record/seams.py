"""Secrets that begin in one text and end in the next: in two blocks, two messages, two items.

Each text by itself shows half a key, which no rule knows.  So the end of a text is held against the beginning
of the one that follows it, and what belongs to a key that began before is replaced.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Final, NamedTuple

from ctxctl.record.redact import FoundSecrets, SecretRedactor

_TAIL: Final = 256
"""Bytes of a text's end that are held against the next one."""
_HEAD: Final = 1024
_TEXTS: Final = frozenset(
    ("text", "content", "output", "result", "thinking", "reasoning", "arguments", "input", "stdout", "parts", "messages")
)  # fmt: skip
"""Fields of a body that hold texts which somebody reads one after the other."""
_DEPTH: Final = 12


class Follower:
    """Takes texts in their order, and takes out of each what belongs to a secret that began before it."""

    def __init__(self, redactor: SecretRedactor) -> None:
        self._redactor = redactor
        self._before = b""

    @property
    def before(self) -> bytes:
        """The end of what came so far."""
        return self._before

    def continues(self, data: bytes) -> bool:
        """Whether the next text would begin with the rest of a secret."""
        return bool(self._before) and self._redactor.rest(self._before, data[:_HEAD]) is not None

    def data(self, data: bytes, found: FoundSecrets) -> bytes:
        """Return the next text without the rest of a secret; the same object if there is none."""
        rest = self._redactor.rest(self._before, data[:_HEAD]) if self._before else None
        self.passed(data)
        if rest is None:
            return data
        size, kind = rest
        return self._redactor.stub(kind, data[:size], found).encode() + data[size:]

    def passed(self, data: bytes) -> None:
        """Take in a text of which nothing is replaced."""
        self._before = data[-_TAIL:] if len(data) >= _TAIL else (self._before + data)[-_TAIL:]

    def value(self, value: Any, found: FoundSecrets, depth: int = 0) -> Any:
        """The same of the texts in a piece of a body, in their order; the same object if there is no secret."""
        if isinstance(value, str):
            data = value.encode("utf-8", "replace")
            made = self.data(data, found)
            return value if made is data else made.decode("utf-8", "replace")
        if depth < _DEPTH and isinstance(value, list):
            items = [self.value(one, found, depth + 1) if _may_hold(one) else one for one in value]
            return items if any(a is not b for a, b in zip(items, value, strict=True)) else value
        if depth < _DEPTH and isinstance(value, dict):
            fields = {
                name: self.value(one, found, depth + 1) if name in _TEXTS and _may_hold(one) else one
                for name, one in value.items()
            }
            return fields if any(fields[name] is not one for name, one in value.items()) else value
        return value


def _may_hold(value: Any) -> bool:
    return isinstance(value, str | list | dict)


class Ends(NamedTuple):
    """A piece of a body that was looked through before, and what joins it to its neighbours."""

    head: bytes
    tail: bytes
    whole: bool
    """Whether its parts hold no secret between them."""


class SeamCache:
    """Looks through the pieces of bodies, each once, however many bodies carry it."""

    def __init__(self, redactor: SecretRedactor) -> None:
        self._redactor = redactor
        self._ends: dict[bytes, Ends] = {}

    def values(self, pieces: list[tuple[Any, bytes]], found: FoundSecrets) -> list[Any]:
        """The pieces of one body, each with its JSON, without secrets that cross from one to the next."""
        follower, made = Follower(self._redactor), list[Any]()
        for value, raw in pieces:
            ends = self._ends_of(value, raw)
            if ends.whole and (not ends.head or not follower.continues(ends.head)):
                follower.passed(ends.tail)
                made.append(value)
            else:
                made.append(follower.value(value, found))
        return made

    def _ends_of(self, value: Any, raw: bytes) -> Ends:
        key = sha256(raw).digest()
        ends = self._ends.get(key)
        if ends is None:
            follower, found = _First(self._redactor), FoundSecrets()
            follower.value(value, found)
            if len(self._ends) >= _KEPT:
                self._ends.clear()
            ends = self._ends[key] = Ends(follower.head, follower.before, found.count == 0)
        return ends


_KEPT: Final = 4096


class _First(Follower):
    """Keeps the beginning of what came, too."""

    head = b""

    def passed(self, data: bytes) -> None:
        if len(self.head) < _HEAD:
            self.head += data[: _HEAD - len(self.head)]
        super().passed(data)
