"""One call of the tool and its answer, and what they say of it as a whole."""

from __future__ import annotations

from typing import Any, NamedTuple

from ctxctl.formats import build
from ctxctl.formats.kit.parts import string
from ctxctl.formats.sibyl.pack import LAYER_LIMITS, Pack, requested
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


def limits(found: Exchange) -> tuple[int | None, int | None, str | None]:
    """The limit that the call asked for, that limit cut to the layer's, and the layer; None: not told."""
    arguments = found.call.arguments if found.call is not None else {}
    asked = requested(arguments)
    layer = found.pack.layer or string(arguments.get("layer"))
    most = LAYER_LIMITS.get(layer or "")
    limit = min(n for n in (asked, most) if n is not None) if asked is not None else None
    return asked, limit, layer


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
