"""Luminarys: LLM context and tool result are one answer to the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from ctxctl.model.recompute import Recomputed, Recorded

_CONTEXT, _RESULT = "llmctx-", "res-"


class Luminarys(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A skill's LLM context goes before its result, with a line of `---` between the two.

    - The documentation of the host: `<llm context lines>`, `---`, `<tool result>`; a result without LLM
      context, or LLM context without a result, stands alone.
    - Comments in the SDKs disagree (Go and Rust: behind the result; AssemblyScript: a block of its own). The
      host is closed; where a capture holds what it returned, the assembly is recorded as it was, and this
      policy says whether the documentation was kept.
    - State goes to the skill and never to the model.

    It checks what was recorded, and leaves nothing out.
    """

    name = "luminarys"
    marker: Annotated[str, Meta(description="the line that stands between the two")] = "---"

    def recompute(self, recorded: Recorded) -> Mapping[str, Recomputed]:
        """The assembly of one call: order, separator, and the text that comes of them."""
        between = f"\n{self.marker}\n"
        mine = {part.item: part for part in recorded.entered}
        given = [item for item in mine if _is_answer(item)]
        if not given:
            return {}  # before the pieces are looked at: they may be a whole window
        placed = [piece for piece in recorded.pieces if piece.item in mine and _is_answer(piece.item)]
        if not placed:
            return {}
        order = sorted(given, key=lambda item: not item.startswith(_CONTEXT))
        both = len(order) > 1
        expected = {
            "order": order,
            "separator": between if both else None,
            "state": [],
            "text": _joined([mine[item].read() for item in order], between),
        }
        separator = recorded.separator if recorded.separator != "none" else None
        told = {
            "order": [piece.item for piece in placed],
            "separator": separator,
            "state": [piece.item for piece in recorded.pieces if piece.item.startswith("state:")],
            "text": _joined([piece.read() for piece in placed], separator or ""),
        }
        inputs = {"marker": self.marker, "given": given}
        return {"assembly": Recomputed(expected, told, inputs)}


def _is_answer(item: str) -> bool:
    return item.startswith((_CONTEXT, _RESULT))


def _joined(texts: list[str | None], separator: str) -> str | None:
    known = [text for text in texts if text is not None]
    return separator.join(known) if len(known) == len(texts) else None
