"""One call of the tool and its answer, and what they say of it as a whole."""

from __future__ import annotations

from typing import Any, NamedTuple

from ctxctl.formats import build
from ctxctl.formats.kit.parts import string
from ctxctl.formats.sibyl.pack import (
    CHARS_PER_TOKEN,
    DEFAULT_LAYER,
    DEFAULT_LIMIT,
    DEFAULT_TOKENS,
    LAYER_LIMITS,
    LEAST_CHARS,
    Pack,
    requested,
)
from ctxctl.formats.sibyl.reach import Reached
from ctxctl.formats.sibyl.rendering import Rendering
from ctxctl.formats.sibyl.shapes import TITLE, Answer, Call

Json = dict[str, Any]


class Exchange(NamedTuple):
    """One call and its answer, with what was found beside it."""

    call: Call | None
    answer: Answer
    pack: Pack
    rendering: Rendering | None
    line: int
    file: str | None
    reached: Reached | None = None
    searched: int = 0
    """Requests beside it in which it was looked for."""
    audits: tuple[Json, ...] = ()


class Asked(NamedTuple):
    """What a call asked for, with the tool's own defaults where it named nothing; None: not told."""

    limit: int | None
    most: int | None
    """The limit cut to its layer's."""
    layer: str | None
    tokens: int | None
    """The budget of the markdown, in the tool's tokens of four characters."""
    told: bool
    """Whether the budget is known; it may be none."""
    defaults: tuple[str, ...]
    """Which of these the tool added."""

    @property
    def chars(self) -> int | None:
        """The budget of the markdown as the tool keeps it."""
        return None if self.tokens is None else max(LEAST_CHARS, self.tokens * CHARS_PER_TOKEN)

    @property
    def words(self) -> str:
        """That budget as it was asked for, and how it becomes characters."""
        least = f", {LEAST_CHARS} at least" if self.chars == LEAST_CHARS else ""
        whose = ", by default" if "markdown_token_budget" in self.defaults else ""
        return f"{self.tokens or 0:,} of the tool's tokens{whose}, {CHARS_PER_TOKEN} characters each{least}"


def asked(found: Exchange) -> Asked:
    """The limits of one call: as a receipt has them, as it named them, else the tool's defaults.

    Without a call only what the pack says of itself is known.
    """
    arguments = found.call.arguments if found.call is not None else {}
    whole = found.call is not None and found.call.whole
    defaults = []
    limit, layer = requested(arguments), found.pack.layer or string(arguments.get("layer"))
    if layer is None and whole and "layer" not in arguments:
        layer = DEFAULT_LAYER
        defaults.append("layer")
    if limit is None and whole and "limit" not in arguments:
        limit = DEFAULT_LIMIT
        defaults.append("limit")
    most = LAYER_LIMITS.get(layer or "")
    cut = min(n for n in (limit, most) if n is not None) if limit is not None else None
    tokens, told = _budget(found, arguments)
    if not told and whole and "markdown_token_budget" not in arguments:
        tokens, told = DEFAULT_TOKENS, True
        defaults.append("markdown_token_budget")
    return Asked(limit, cut, layer, tokens, told, tuple(defaults))


def _budget(found: Exchange, arguments: Json) -> tuple[int | None, bool]:
    """The markdown's budget in the tool's tokens, and whether anything tells of it."""
    receipt = found.pack.record.get("render_receipt")
    options = receipt.get("options") if isinstance(receipt, dict) else None
    for holder, key in ((options, "token_budget"), (arguments, "markdown_token_budget")):
        value = holder.get(key, False) if isinstance(holder, dict) else False
        if value is None:
            return None, True
        # No limit is larger than what a file can hold; a negative one counts as none left.
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53:
            return value, True
    trimmed = found.rendering.trimmed if found.rendering is not None else None
    return trimmed, trimmed is not None


def goal(found: Exchange) -> str | None:
    """The goal: as the pack says, as the call said, or as the markdown's title has it."""
    goal = found.pack.text("goal")
    if goal is None and found.call is not None:
        goal = string(found.call.arguments.get("goal"))
    markdown = found.pack.markdown
    if goal is None and markdown is not None and markdown.lstrip().startswith(TITLE):
        goal = markdown.lstrip().removeprefix(TITLE).partition("\n")[0].strip() or None
    return goal


def receipt_id(pack: Pack) -> str | None:
    """The id of the request that a pack's receipt names."""
    receipt = pack.record.get("render_receipt")
    return string(receipt.get("request_id")) if isinstance(receipt, dict) else None


def faults(found: Exchange) -> list[str]:
    """The error of a call, and the lanes of a retrieval that a pack says failed."""
    told = [found.answer.error] if found.answer.error is not None else []
    record = found.pack.record
    for holder in (record, record.get("usage_metadata"), record.get("evidence")):
        for key in ("errors", "failed_lanes", "lane_errors"):
            rows = holder.get(key) if isinstance(holder, dict) else None
            for row in rows if isinstance(rows, list) else [rows] if isinstance(rows, str) else ():
                told.append(row if isinstance(row, str) else build.canonical(row))
    return told
