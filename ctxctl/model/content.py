"""Content: a text that a trace holds, known by its digest and fetched only when somebody looks at it."""

from __future__ import annotations

from typing import Literal, Protocol

Form = Literal["text", "json"]


class Content:
    """One distinct content of a trace, or one text derived from it (wrapped, cut).

    Two contents are the same exactly if their digests are; a store hands out one object per digest, so
    identity comparison is enough inside one store.
    """

    __slots__ = ("count", "digest", "form", "origin", "size")

    def __init__(self, digest: str, size: int, form: Form, origin: object) -> None:
        self.digest = digest
        """SHA-256 of the UTF-8 text, 64 lower-case hex digits (structured content: of its canonical JSON)."""
        self.size = size
        """Length of the text in UTF-8 bytes."""
        self.form = form
        """`text`: a JSON string in the trace; `json`: any other value, whose text is its canonical JSON."""
        self.origin = origin
        """Where the store finds the text again; opaque to everyone else."""
        self.count: tuple[int, bool] | None = None
        """(tokens, whether exact for the session's encoding) once counted; filled by the inspector."""

    def __repr__(self) -> str:
        return f"Content({self.digest[:12]}, {self.size} bytes)"


class ContentStore(Protocol):
    """Gives contents their text back; implemented by `trace.contents`."""

    def text(self, content: Content) -> str:
        """The text of a content; a lone surrogate comes back as U+FFFD."""
        ...

    def by_digest(self, digest: str) -> Content | None:
        """The content whose SHA-256 hex digest this is, if the trace has shown it inline."""
        ...

    def derive(self, before: str, base: Content, after: str) -> Content:
        """The content `before + text(base) + after` (a wrapper around an item's text)."""
        ...

    def literal(self, text: str) -> Content:
        """A content made by us (a marker, a simulated text)."""
        ...
