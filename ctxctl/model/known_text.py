"""A text that stands in many places of a capture: its digest is taken once, and not in each of them."""

from __future__ import annotations

from hashlib import sha256


class KnownText(str):
    """A text like any other, that remembers its size and its digest."""

    __slots__ = ("_known",)

    _known: tuple[int, str] | None

    def size_and_digest(self) -> tuple[int, str]:
        """The length of its UTF-8, and the SHA-256 of that in hex; raises UnicodeEncodeError."""
        known = getattr(self, "_known", None)
        if known is None:
            data = self.encode()
            known = self._known = len(data), sha256(data).hexdigest()
        return known
