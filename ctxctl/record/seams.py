"""Secrets that begin in one text and end in the next: in two blocks, two messages, two items.

Each text by itself shows half a key, which no rule knows.  So the end of a text is held against the beginning
of the one that follows it, and what belongs to a key that began before is replaced.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from ctxctl.record.redact import FoundSecrets, SecretRedactor

_TAIL: Final = 256
"""Bytes of a text's end that are held against the next one."""
_HEAD: Final = 1024
_TEXTS: Final = frozenset(
    ("text", "content", "output", "result", "thinking", "reasoning", "arguments", "input", "stdout", "parts",
     "messages")
)  # fmt: skip
"""Fields of a body that hold texts which somebody reads one after the other."""
_DEPTH: Final = 12


class Follower:
    """Takes texts in their order, and takes out of them what of a secret stands in one and in the next."""

    def __init__(self, redactor: SecretRedactor, before: bytes = b"") -> None:
        self._redactor = redactor
        self._before = before

    @property
    def before(self) -> bytes:
        """The end of what came so far."""
        return self._before

    def continues(self, data: bytes) -> bool:
        """Whether the next text would begin with the rest of a secret."""
        return bool(self._before) and self._redactor.across(self._before, data[:_HEAD]) is not None

    def data(self, data: bytes, found: FoundSecrets) -> bytes:
        """Return the next text without the rest of a secret; the same object if there is none."""
        return self.texts([data], found)[0]

    def passed(self, data: bytes) -> None:
        """Take in a text of which nothing is replaced."""
        self._before = data[-_TAIL:] if len(data) >= _TAIL else (self._before + data)[-_TAIL:]

    def texts(self, texts: list[bytes], found: FoundSecrets) -> list[bytes]:
        """Return the next texts without secrets that stand in more than one of them.

        Of the text that came before them nothing can be taken any more, as it is written.
        """
        made = list(texts)
        for at, data in enumerate(texts):
            across = self._redactor.across(self._before, data[:_HEAD]) if self._before and data else None
            if across is not None:
                start, size, kind = across
                made[at] = self._redactor.stub(kind, data[:size], found).encode() + data[size:]
                left = len(self._before) - start
                for n in range(at - 1, -1, -1):
                    own = min(left, len(texts[n]))
                    half = texts[n][len(texts[n]) - own :]
                    if own and made[n].endswith(half):
                        stub = self._redactor.stub(kind, half, FoundSecrets()).encode()
                        made[n] = made[n][: len(made[n]) - own] + stub
                    left -= own
                    if left <= 0:
                        break
            self.passed(data)
        return made

    def value(self, value: Any, found: FoundSecrets) -> Any:
        """The same of the texts in a piece of a body; the same object if there is no secret."""
        texts: list[bytes] = []

        def taken(text: str) -> str:
            texts.append(text.encode("utf-8", "replace"))
            return text

        _each_text(value, taken)
        made = self.texts(texts, found)
        if all(a is b for a, b in zip(made, texts, strict=True)):
            return value
        rest = iter(zip(made, texts, strict=True))

        def replaced(text: str) -> str:
            now, then = next(rest)
            return text if now is then else now.decode("utf-8", "replace")

        return _each_text(value, replaced)


def _each_text(value: Any, change: Callable[[str], str], depth: int = 0) -> Any:
    """A piece of a body with each of its texts changed, in their order."""
    if isinstance(value, str):
        return change(value)
    if depth >= _DEPTH:
        return value
    if isinstance(value, list):
        return [_each_text(one, change, depth + 1) for one in value]
    if isinstance(value, dict):
        return {
            name: _each_text(one, change, depth + 1) if name in _TEXTS else one for name, one in value.items()
        }
    return value


class Piece(NamedTuple):
    """A piece of a body."""

    value: Any
    digest: bytes
    """Of its JSON."""


class SeamCache:
    """Looks through the pieces of bodies, each once, however many bodies carry it."""

    def __init__(self, redactor: SecretRedactor) -> None:
        self._redactor = redactor
        self._clean: dict[int, bytes] = {}
        """By pieces in a row, known to hold no secret between them, the end of what they say."""

    def values(self, pieces: list[Piece], found: FoundSecrets) -> list[Any]:
        """The pieces of one body without secrets that cross from one to the next."""
        values = [piece.value for piece in pieces]
        row = 0
        rows = [row := hash((row, piece.digest)) for piece in pieces]
        known = next((n for n, row in enumerate(rows) if row not in self._clean), len(rows))
        follower = Follower(self._redactor, self._clean[rows[known - 1]] if known else b"")
        for row, value in zip(rows[known:], values[known:], strict=True):
            if follower.value(value, found) is not value:
                made: list[Any] = Follower(self._redactor).value(values, found)
                return made
            if len(self._clean) >= _KEPT:
                self._clean.clear()
            self._clean[row] = follower.before
        return values


_KEPT: Final = 4096
