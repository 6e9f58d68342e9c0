"""Luminarys: LLM context and tool result are one answer to the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from ctxctl.model.recompute import Part, Piece, Recomputed, Recorded

_CONTEXT, _RESULT = "llmctx-", "res-"
_BLOCK: Final = "content_block"
"""Names the separator of two that are content blocks of their own: no text stands between them."""
_SAID: Final = {
    "before": "the host's documentation (Context & State)",
    "after": "comments in the SDKs for Go and Rust",
    "block": "a comment in the SDK for AssemblyScript",
}
"""Who says of a placement that it is the host's."""


class Luminarys(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A skill's LLM context goes before its result, with a line of `---` between the two.

    - The documentation of the host: `<llm context lines>`, `---`, `<tool result>`; a result without LLM
      context, or LLM context without a result, stands alone.
    - Comments in the SDKs disagree (Go and Rust: behind the result; AssemblyScript: a second content block).
      The host is closed; where a capture holds what it returned, the assembly is recorded as it was, and this
      policy says whether the documentation was kept, and which of the three it was. `placement=after` and
      `placement=block` hold it to the comments instead.
    - How a result is written (a text, JSON) is the host's.
    - State goes to the skill and never to the model.

    It checks what was recorded, and leaves nothing out.
    """

    name = "luminarys"
    marker: Annotated[str, Meta(description="the line that stands between the two")] = "---"
    placement: Annotated[
        Literal["before", "after", "block"], Meta(description="where the host puts the LLM context")
    ] = "before"

    def recompute(self, recorded: Recorded) -> Mapping[str, Recomputed]:
        """The assembly of one call: order, separator, and the content blocks that come of them."""
        mine = {part.item: part for part in recorded.entered}
        given = [item for item in mine if _is_answer(item)]
        if not given:
            return {}  # before the pieces are looked at: they may be a whole window
        placed = [piece for piece in recorded.pieces if piece.item in mine and _is_answer(piece.item)]
        if not placed:
            return {}
        was = _separator(recorded, placed)
        order = sorted(given, key=lambda item: item.startswith(_CONTEXT) != (self.placement == "before"))
        between = self._between(was) if len(order) > 1 else None
        expected = {
            "order": order,
            "separator": between,
            "state": [],
            "content": _content([_written(item, mine, placed) for item in order], between),
        }
        told = {
            "order": [piece.item for piece in placed],
            "separator": was,
            "state": [piece.item for piece in recorded.pieces if piece.item.startswith("state:")],
            "content": _content([piece.read() for piece in placed], was),
        }
        inputs = {"marker": self.marker, "placement": self.placement, "given": given}
        if len(placed) > 1:
            found = _placement(placed, was)
            inputs |= {"recorded_placement": found, "said_by": _SAID[found]}
        return {"assembly": Recomputed(expected, told, inputs)}

    def _between(self, was: str | None) -> str | None:
        if self.placement == "block":
            return _BLOCK
        # What stands before a context behind the result, no comment says.
        return was if self.placement == "after" and was != _BLOCK else f"\n{self.marker}\n"


def _is_answer(item: str) -> bool:
    return item.startswith((_CONTEXT, _RESULT))


def _separator(recorded: Recorded, placed: Sequence[Piece]) -> str | None:
    named = recorded.separator
    return named if named != "none" and len(placed) > 1 else None


def _placement(placed: Sequence[Piece], separator: str | None) -> str:
    """Which of the three it was."""
    if separator == _BLOCK:
        return "block"
    return "before" if placed[0].item.startswith(_CONTEXT) else "after"


def _written(item: str, mine: Mapping[str, Part], placed: Sequence[Piece]) -> str | None:
    """The context as the skill set it; the result as it was returned beside it, or by itself."""
    whole = len(placed) == len([name for name in mine if _is_answer(name)])
    pieces = [piece for piece in placed if whole and piece.item == item and item.startswith(_RESULT)]
    return pieces[0].read() if pieces else mine[item].read()


def _content(texts: list[str | None], separator: str | None) -> list[str] | None:
    """The content blocks; None where a text is not known."""
    known = [text for text in texts if text is not None]
    if len(known) != len(texts):
        return None
    return known if separator == _BLOCK else [(separator or "").join(known)]
