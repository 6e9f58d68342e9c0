"""A context pack with its fields checked: items in the pack's order, each with its facet and rank."""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

from ctxctl.ingest.build import Json, digest_of
from ctxctl.ingest.parts import count, string

LAYER_LIMITS: Final = {"wake": 8, "recall": 24, "deep_search": 50}
"""Most items by layer (Sibyl 1.2.2 to 1.4.10): a larger `limit` is cut to it without a word."""
DEFAULT_LAYER: Final = "recall"
DEFAULT_LIMIT: Final = 24
DEFAULT_TOKENS: Final = 4000
"""What the tool takes where a call names none (1.2.2 to 1.4.10; before 1.2 a markdown had no budget)."""
CHARS_PER_TOKEN: Final = 4
LEAST_CHARS: Final = 400
"""A budget of tokens is one of so many characters each, and of no fewer than that."""


class Item(NamedTuple):
    """One item of a pack."""

    name: str
    """Its identity: the entity's id; a second item of one id in a pack gets `~2`."""
    native_id: str
    title: str | None
    content: str | None
    """None where only the markdown was captured."""
    facet: str
    """Empty where only the id is known."""
    score: float | None
    record: Json
    """As the pack holds it."""
    digest: str | None
    """SHA-256 hex of the content."""
    at: int = 0
    """Its place in the pack, from 0."""


class Pack(NamedTuple):
    """A pack as returned."""

    items: tuple[Item, ...]
    titles: dict[str, str]
    """Facet by section title."""
    markdown: str | None
    skipped: int
    """Items without an id."""
    record: Json

    @property
    def layer(self) -> str | None:
        """`wake`, `recall` or `deep_search`."""
        return string(self.record.get("layer"))

    @property
    def receipt(self) -> str | None:
        """Which kind of render receipt it has (`sibyl-context-render-v2`); None: none (before 1.4)."""
        receipt = self.record.get("render_receipt")
        kind = receipt.get("schema_version") if isinstance(receipt, dict) else None
        return string(kind) or ("unnamed" if isinstance(receipt, dict) else None)

    def text(self, key: str) -> str | None:
        """A field of the pack that is a text."""
        return string(self.record.get(key))


def read_pack(record: Json) -> Pack:
    """The pack of a record; what has the wrong type counts as not there."""
    items: list[Item] = []
    titles: dict[str, str] = {}
    taken: dict[str, int] = {}
    skipped = 0
    at = -1
    sections = record.get("sections")
    for section in sections if isinstance(sections, list) else ():
        if not isinstance(section, dict):
            continue
        facet = string(section.get("facet")) or "custom"
        title = string(section.get("title"))
        if title is not None:
            titles.setdefault(title, facet)
        rows = section.get("items")
        for row in rows if isinstance(rows, list) else ():
            at += 1
            native = string(row.get("id")) if isinstance(row, dict) else None
            if native is None:
                skipped += 1
                continue
            again = taken[native] = taken.get(native, 0) + 1
            items.append(_item(row, native, native if again == 1 else f"{native}~{again}", facet, at))
    return Pack(tuple(items), titles, string(record.get("markdown")), skipped, record)


def of_ids(ids: list[str], details: Any) -> Pack:
    """A pack of which only the ids are known, as an audit row has them."""
    items = tuple(Item(name, name, None, None, "", None, {}, None) for name in dict.fromkeys(ids))
    return Pack(items, {}, None, 0, dict(details) if isinstance(details, dict) else {})


def _item(row: Json, native: str, name: str, facet: str, at: int) -> Item:
    content = row.get("content")
    return Item(
        name,
        native,
        string(row.get("name")),
        content if isinstance(content, str) else None,
        string(row.get("facet")) or facet,
        _score(row.get("score")),
        row,
        digest_of(content) if isinstance(content, str) else None,
        at,
    )


def _score(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        score = float(value)
    except OverflowError:
        return None
    return score if math.isfinite(score) else None


def requested_limit(arguments: Json) -> int | None:
    """The `limit` that a call names; None where it names none that is one."""
    limit = arguments.get("limit")
    # The tool takes anything below one as one.
    if isinstance(limit, int) and not isinstance(limit, bool):
        return count(max(1, limit))
    return None
