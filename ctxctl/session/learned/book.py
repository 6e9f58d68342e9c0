"""A set of items learned of one client in one version, as a value and as the bytes that it is kept as."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from ctxctl.ingest.build import digest_of
from ctxctl.typed_decoding import from_json

FORMAT: Final = 1
MAIN: Final = "main"
"""Kind of the main thread; sub-agents' is `agent:TYPE`."""


class LearnedItem(msgspec.Struct, frozen=True):
    """One item at the head of every request of a kind of thread."""

    kind: str
    """Context kind."""
    role: str
    digest: str
    """SHA-256 hex of its text."""
    title: str | None = None
    segment: str = ""
    """Window segment, where it is not that of the kind."""
    varies: bool = False
    """Another recording of this client and version has another text in its place; this is the last's."""


class LearnedSet(msgspec.Struct, frozen=True):
    """What is known of a client's requests; texts are inline, by digest."""

    client: str
    version: str
    threads: dict[str, tuple[LearnedItem, ...]]
    """By kind of thread: items in the order in which they were sent."""
    contents: dict[str, str]
    """By SHA-256 hex."""
    recordings: int = 1
    requests: int = 0
    redacted: int = 0
    """Secrets that were taken out before it was kept."""
    format: int = FORMAT

    @property
    def name(self) -> str:
        """`CLIENT VERSION`, for people."""
        return f"{self.client} {self.version}"

    @property
    def items(self) -> int:
        """Items of all kinds of threads."""
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
        """Return the bytes that the store keeps."""
        return msgspec.json.encode({"digest": self.digest, **msgspec.to_builtins(self)})


def decode_set(raw: bytes) -> LearnedSet:
    """Return a set from its bytes; raises ValueError where they are no set, or were changed."""
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
    """One set of recordings of the same client and version; the newest one's texts and order.

    Tools and system prompts whose text is another each time are kept and marked; other items (reminders, a
    project's instructions) are kept only where all recordings have the very same text.
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
"""Kinds that a client brings itself, whatever the project."""
