"""A context as it is committed beside a test: one item a line, so that a review sees what changed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ctxctl.errors import CtxctlError, UnreadableError
from ctxctl.text import visible

if TYPE_CHECKING:
    from ctxctl.inspector import Inspector
    from ctxctl.model.results import Placement

_VERSION: Final = 1
_MOST: Final = 64 << 20
_DIGITS: Final = 16
_HINT: Final = "write it anew with `pytest --ctxctl-update` or CTXCTL_UPDATE=1"


class Kept(msgspec.Struct, frozen=True, omit_defaults=True):
    """One copy of an item in a window."""

    segment: str
    kind: str
    item: str
    tokens: int
    method: str
    digest: str | None = None
    """The first 16 hex digits of the digest of its rendered text; None: the trace has no text."""
    title: str | None = None
    source: str | None = None
    role: str | None = None
    stale: bool = False
    text: str | None = None
    """Kept only where the test asks for it, and never of a redacted item."""


class Context(msgspec.Struct, frozen=True):
    """A whole window in order."""

    encoding: str
    used: int
    """Tokens of its items; what was sent beside them is no part of it."""
    items: tuple[Kept, ...]


def taken(inspector: Inspector, ordinal: int, *, texts: bool) -> Context:
    """The context of a step, by its ordinal."""
    from ctxctl.inspector.assembly import text_of

    frame = inspector.frame(ordinal)
    withheld = frame.step.told.withheld
    kept = []
    for p in frame.placements:
        hidden = not texts or p.content is None or p.item in withheld or p.redaction is not None
        kept.append(_kept(p, None if hidden else text_of(inspector.text, p)))
    return Context(inspector.params.encoding, frame.step.window.recorded, tuple(kept))


def _kept(p: Placement, text: str | None) -> Kept:
    return Kept(
        segment=p.segment, kind=p.kind, item=p.item, tokens=p.tokens, method=p.method,
        digest=_short(p.digest), title=p.title, source=p.source, role=p.role, stale=p.stale, text=text,
    )  # fmt: skip


def _short(digest: str | None) -> str | None:
    """Without the name of the algorithm, as reports show it."""
    return None if digest is None else digest.rpartition(":")[2][:_DIGITS]


def read(path: Path) -> Context | None:
    """A committed context; None: there is none yet.  Raises UnreadableError("bad-golden")."""
    shown = visible(str(path))
    try:
        with path.open("rb") as file:
            data = file.read(_MOST)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "not a usable name"
        raise UnreadableError("bad-golden", f"{shown}: {why}") from None
    try:
        table: Any = msgspec.json.decode(data)
        if table["version"] != _VERSION:
            raise ValueError
        return msgspec.convert(table, Context)
    except (ValueError, TypeError, KeyError, RecursionError):
        raise UnreadableError(
            "bad-golden", f"{shown} is no kept context of this version", hint=_HINT
        ) from None


def write(path: Path, context: Context) -> None:
    """Write it, whole or not at all; raises CtxctlError("write-failed")."""
    head = {"version": _VERSION, "encoding": context.encoding, "used": context.used}
    opening = json.dumps(head, indent=1)[:-2] + ',\n "items": ['
    lines = [json.dumps(msgspec.to_builtins(kept), ensure_ascii=True) for kept in context.items]
    body = ",\n  ".join(lines)
    text = f"{opening}\n  {body}\n ]\n}}\n" if lines else f"{opening}]\n}}\n"
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(text, encoding="ascii")
        partial.replace(path)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "not a usable name"
        raise CtxctlError("write-failed", f"{visible(str(path))}: {why}") from None
