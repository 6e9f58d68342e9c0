"""A set of items learned of one client version, as a value and as stored bytes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from ctxctl.ingest.build import digest_of
from ctxctl.typed_decoding import from_json

FORMAT: Final = 1
MAIN: Final = "main"
"""Kind of the main thread. A sub-agent's kind is `agent:TYPE`."""


class LearnedItem(msgspec.Struct, frozen=True):
    """One item at the start of every request of a kind of thread."""

    kind: str
    """Context kind."""
    role: str
    digest: str
    """SHA-256 hex of its text."""
    title: str | None = None
    segment: str = ""
    """Window segment, if it is not the kind's."""
    varies: bool = False
    """Whether recordings of this client version differ here. The text is the last recording's."""


class LearnedSet(msgspec.Struct, frozen=True):
    """What is known of a client's requests. Texts are inline, by digest."""

    client: str
    version: str
    threads: dict[str, tuple[LearnedItem, ...]]
    """Items in the order of sending, by kind of thread."""
    contents: dict[str, str]
    """Texts by SHA-256 hex."""
    recordings: int = 1
    requests: int = 0
    redacted: int = 0
    """Number of secrets that were masked before it was stored."""
    format: int = FORMAT

    @property
    def name(self) -> str:
        """`CLIENT VERSION`, for display."""
        return f"{self.client} {self.version}"

    @property
    def items(self) -> int:
        """Number of items of all kinds of threads."""
        return sum(len(items) for items in self.threads.values())

    @property
    def digest(self) -> str:
        """16 hex digits over kinds, places and texts."""
        lines = "\n".join(
            f"{thread}\t{item.kind}\t{item.role}\t{item.segment}\t{item.digest}"
            for thread, items in sorted(self.threads.items())
            for item in items
        )
        return digest_of(lines)[:16]

    def encode(self) -> bytes:
        """Return the bytes for the store."""
        return msgspec.json.encode({"digest": self.digest, **msgspec.to_builtins(self)})


def decode_set(raw: bytes) -> LearnedSet:
    """Return a set from its bytes. Raises ValueError if they are invalid or were changed."""
    try:
        found = from_json(raw, LearnedSet)
        written = from_json(raw, dict[str, msgspec.Raw]).get("digest")
        said = from_json(written, str) if written is not None else None
    except msgspec.DecodeError as error:
        raise ValueError(str(error)) from None
    if found.format != FORMAT:
        raise ValueError(f"it is of format {found.format}, and {FORMAT} is read")
    for items in found.threads.values():
        for item in items:
            text = found.contents.get(item.digest)
            if text is None or digest_of(text) != item.digest:
                raise ValueError("it was changed: a text is not that of its digest")
    if said != found.digest:
        raise ValueError("it was changed: its items are not those of its digest")
    return found


def joined_sets(first: LearnedSet, *later: LearnedSet) -> LearnedSet:
    """Return one set from recordings of one client version, with the newest texts and order.

    Tools and system prompts with varying texts are kept and marked. Other items (reminders, a project's
    instructions) are kept only if all recordings have the same text.
    """
    sets = (first, *later)
    threads: dict[str, tuple[LearnedItem, ...]] = {}
    contents: dict[str, str] = {}
    for one in sets:
        contents.update(one.contents)
        for kind, items in one.threads.items():
            before = threads.get(kind)
            threads[kind] = items if before is None else tuple(_agreed(before, items))
    used = {item.digest for items in threads.values() for item in items}
    return LearnedSet(
        sets[-1].client,
        sets[-1].version,
        threads,
        {digest: text for digest, text in contents.items() if digest in used},
        recordings=sum(one.recordings for one in sets),
        requests=sum(one.requests for one in sets),
        redacted=sum(one.redacted for one in sets),
    )


def _agreed(old: Iterable[LearnedItem], new: Iterable[LearnedItem]) -> Iterable[LearnedItem]:
    known = {(item.kind, item.digest): item for item in old}
    for item in new:
        before = known.get((item.kind, item.digest))
        if before is not None:
            yield before
        elif item.kind in STANDING:
            yield msgspec.structs.replace(item, varies=True)


STANDING: Final = frozenset(("tool_definition", "system_prompt", "developer_instruction"))
"""Kinds that come from the client itself, whatever the project."""
