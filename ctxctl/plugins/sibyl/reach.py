"""Whether and how much of a pack reached a model: its items looked for in the text of a captured request.

An item counts as there if its rendering stands in a text of the request as it is, or if the pack's JSON
does with the item's id and content.  A rendering that breaks off is there as far as it goes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from ctxctl.plugins.sibyl import records
from ctxctl.plugins.sibyl.pack import Item, Pack
from ctxctl.plugins.sibyl.rendering import Rendering

_MAX_DEPTH: Final = 32
_CUTS: Final = ("...", "\N{HORIZONTAL ELLIPSIS}", "[", "<", "(")
"""How what a client puts behind a text that it cut begins."""
_BULLET: Final = "- **"
"""Begins each item of a markdown."""
_SECTIONS: Final = '"sections"'
"""Stands in each pack's JSON."""


class PlacedPiece(NamedTuple):
    """One piece as the request holds it."""

    name: str
    text: str | None
    """None: the item's own content, in the pack's JSON."""
    truncated: bool = False


class ReachedPack(NamedTuple):
    """What of a pack was found in one request."""

    placed: tuple[PlacedPiece, ...]
    form: str
    """`markdown` or `json`."""
    model: str | None
    line: int
    file: str | None

    @property
    def names(self) -> frozenset[str]:
        """Names of what was found."""
        return frozenset(placed.name for placed in self.placed)


def texts_of(sent: records.SentRequest) -> list[str]:
    """The texts of a request that can hold anything of a pack."""
    return [text for text in _texts(sent.content) if _BULLET in text or _SECTIONS in text]


def find_pack(
    pack: Pack,
    rendering: Rendering | None,
    sent: records.SentRequest,
    texts: list[str],
    line: int,
    file: str | None,
) -> ReachedPack | None:
    """What of a pack a request holds in its `texts`; None if nothing."""
    by_json = [PlacedPiece(item.name, None) for item in pack.items if _in_json(item, texts)]
    by_text: list[PlacedPiece] = []
    if rendering is not None:
        by_text = [p for piece in rendering.pieces if (p := _in_text(piece.name, piece.text, texts))]
        if not any(rendering.items.get(placed.name) for placed in by_text):
            by_text = []
    items = sum(placed.name in rendering.items for placed in by_text) if rendering is not None else 0
    if len(by_json) > items:
        return ReachedPack(tuple(by_json), "json", sent.model, line, file)
    return ReachedPack(tuple(by_text), "markdown", sent.model, line, file) if by_text else None


def _texts(value: Any, depth: int = 0) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif depth < _MAX_DEPTH:
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        for one in inner:
            yield from _texts(one, depth + 1)


def _in_text(name: str, piece: str, texts: list[str]) -> PlacedPiece | None:
    """A piece in one of the texts, whole or cut off behind its first line."""
    wanted = piece.strip("\n")
    first = wanted.partition("\n")[0]
    if not first:
        return None
    best = ""
    for text in texts:
        at = text.find(first)
        if at < 0:
            continue
        if text.startswith(wanted, at) or wanted in text:
            return PlacedPiece(name, piece)
        found = _common(wanted, text[at : at + len(wanted)])
        if len(found) > len(best) and _breaks_off(text, at + len(found)):
            best = found
    return PlacedPiece(name, best, truncated=True) if best else None


def _common(wanted: str, found: str) -> str:
    """The longest start of `wanted` that `found` begins with."""
    low, high = 0, min(len(wanted), len(found))
    while low < high:
        middle = (low + high + 1) // 2
        if wanted[:middle] == found[:middle]:
            low = middle
        else:
            high = middle - 1
    return wanted[:low]


def _breaks_off(text: str, at: int) -> bool:
    """Whether a text ends at a place, or says there that it was cut; else it goes on with something else."""
    rest = text[at : at + 40].lstrip()
    return not rest or rest.startswith(_CUTS)


def _in_json(item: Item, texts: list[str]) -> bool:
    return any(_holds(item, text) for text in texts)


def _holds(item: Item, text: str) -> bool:
    """Whether a text is a pack's JSON, whole or cut off, with the item and its content in it."""
    if not item.content or _SECTIONS not in text:
        return False
    for ascii_only in (False, True):
        name = json.dumps(item.native_id, ensure_ascii=ascii_only)
        content = json.dumps(item.content, ensure_ascii=ascii_only)
        if (f'"id":{name}' in text or f'"id": {name}' in text) and content in text:
            return True
    return False
