"""An item's tabs, asked of an inspector.  Runs in the loader's threads; no widget, no state of a view."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ctxctl.errors import CtxctlError
from ctxctl.labels import number
from ctxctl.model.content import Content
from ctxctl.model.outline import Life
from ctxctl.model.results import Change, Frame, Placement
from ctxctl.tui import jsontext, opaque, record, syntax, words
from ctxctl.tui.document import Document
from ctxctl.tui.state import ItemKey, ItemText
from ctxctl.tui.tabs import Compared

if TYPE_CHECKING:
    from ctxctl.inspector import Inspector

Check = Callable[[], None]

_REDACTED: Final = "It was redacted: what it said before is not shown."
_NOT_BOTH: Final = "The trace does not hold both texts."


class _Pair(NamedTuple):
    """An item's copy in the frame looked at, and in the frame before."""

    frame: Frame
    after: Placement | None
    before: Placement | None
    withheld: bool

    @property
    def shown(self) -> Placement | None:
        """The copy that is spoken of: of what has left, the one that left."""
        return self.before if self.after is None else self.after


def _pair(inspector: Inspector, key: ItemKey) -> _Pair:
    change = key.change
    frame = inspector.frame(key.target.ordinal)
    after = None if change.status == "removed" else _placement(frame, change.item, change.version)
    before_at = inspector.previous(key.target.first)
    before = None
    if before_at is not None:
        version = change.previous_version or change.version
        before = _placement(inspector.frame(before_at), change.item, version)
    return _Pair(frame, after, before, change.item in frame.step.told.withheld)


def _placement(frame: Frame, item_id: str, version: str | None) -> Placement | None:
    """The item's current copy in a frame, else one of that version, else any."""
    found = [placement for placement in frame.placements if placement.item == item_id]
    if not found:
        return None
    return max(found, key=lambda p: (not p.stale, p.version == version))


# Content ----------------------------------------------------------------------------------------------------


def item(inspector: Inspector, key: ItemKey, check: Check) -> ItemText:
    """The text of an item's change, and its unified diff to the text it had in the frame before."""
    pair = _pair(inspector, key)
    if pair.withheld:
        # The copy of the redacted version alone: `_placement` prefers it, and what it says is no secret.
        after = pair.after
        if after is None or after.content is None:
            return ItemText(key, None, None, _REDACTED, _REDACTED)
        return ItemText(key, _content(inspector, after, check), None, "", _REDACTED)
    text, note = _text(inspector, pair.shown, key.change, check)
    if pair.after is None:
        return ItemText(key, text, None, note, "not in this frame: there is nothing to compare with")
    if pair.before is None:
        return ItemText(key, text, None, note, "It is new in this frame: there is nothing to compare with.")
    diff, why = _diff(inspector, pair.before, pair.after, "The same text as in the frame before.", check)
    return ItemText(key, text, diff, note, why)


def _text(
    inspector: Inspector, placement: Placement | None, change: Change, check: Check
) -> tuple[Document | None, str]:
    if placement is not None and placement.content is not None:
        return _content(inspector, placement, check), ""
    data = _data(inspector, placement.line if placement is not None and placement.line else change.line)
    content = data.get("content") if placement is None else None
    if content is not None:
        text = content if isinstance(content, str) else jsontext.dumped(content)
        json = jsontext.is_json(text, check=check)
        mime = data.get("mime_type")
        return _document(text, json, change.kind, mime, change.title, change.source, check), ""
    note = _why_none(placement, change)
    method = "" if placement is None else placement.method
    lines = opaque.lines(data, change.kind, change.tokens, method, note)
    return (Document.of_lines(lines) if len(lines) > 1 else None), note


def _why_none(placement: Placement | None, change: Change) -> str:
    if placement is not None and placement.carried:
        return "It was in the window before the trace begins, and the trace does not hold its text."
    if change.tokens:
        return "The trace holds no text of it, only its size."
    return "The trace holds no text of it."


def _data(inspector: Inspector, line: int) -> dict[str, Any]:
    """The record on a line of the trace; empty where there is none."""
    try:
        data = inspector.native(line).get("data") if line else None
    except CtxctlError:
        return {}
    return data if isinstance(data, dict) else {}


def _content(inspector: Inspector, placement: Placement, check: Check) -> Document:
    assert placement.content is not None
    text = inspector.text(placement.content)
    json = placement.content.form == "json" or jsontext.is_json(text, check=check)
    found = _document(text, json, placement.kind, None, placement.title, placement.source, check)
    image = opaque.image_in(text)
    if image is not None:
        found.remark = "; ".join(part for part in (opaque.said(image), found.remark) if part)
    return found


def _document(
    text: str, json: bool, kind: str, mime: Any, title: str | None, source: str | None, check: Check
) -> Document:
    """A text with the colours of its language; JSON laid out."""
    if json:
        laid = jsontext.laid_out(text, check=check)
        if laid is not None:
            remark = "base64 cut" if laid.elided else ""
            return Document(laid.text, numbered=True, spans=laid.spans, folds=laid.folds, remark=remark)
        return Document(text, numbered=True, remark="too large to lay out")
    name = syntax.language(text, kind, mime if isinstance(mime, str) else None, title, source)
    spans, remark = syntax.coloured(text, name, check)
    return Document(text, numbered=True, spans=spans, remark=remark)


# Diff -------------------------------------------------------------------------------------------------------


def _diff(
    inspector: Inspector, before: Placement, after: Placement, same: str, check: Check
) -> tuple[Document | None, str]:
    if before.content is None or after.content is None:
        return None, _NOT_BOTH
    if before.content is after.content or before.content.digest == after.content.digest:
        return None, same
    from ctxctl.engine.textdiff import unified

    old, new = _comparable(inspector, before.content, check), _comparable(inspector, after.content, check)
    check()
    found = unified(old, new)
    check()
    lines: list[tuple[str, str]] = [
        (line.kind, f"@@ {line.text} @@" if line.kind == "@" else line.text) for line in found.lines
    ]
    if found.degraded:
        lines.insert(0, ("!", "too large for the shortest diff: some equal lines may be shown as changed"))
    if not lines:
        return None, same
    document = Document.of_lines(lines)
    document.spans = words.emphasised(lines, check)
    return document, ""


def _comparable(inspector: Inspector, content: Content, check: Check) -> str:
    """A content's text; structured content over lines."""
    text = inspector.text(content)
    if content.form == "json" or jsontext.is_json(text, check=check):
        laid = jsontext.laid_out(text, check=check)
        return text if laid is None or laid.elided else laid.text
    return text


class Held(NamedTuple):
    """A version of an item, and the last step at which it was in the window."""

    version: str | None
    at: Life


def earlier(moments: Iterable[Life], ordinal: int) -> list[Held]:
    """The versions that were in the window before the one at a step, each once, the latest first."""
    runs: list[Held] = []
    for moment in moments:
        if moment.ordinal > ordinal:
            break
        if moment.status == "removed" or moment.status == "omitted":
            continue
        if runs and runs[-1].version == moment.version:
            runs[-1] = Held(moment.version, moment)
        else:
            runs.append(Held(moment.version, moment))
    if not runs:
        return []
    now = runs[-1].version
    latest: dict[str | None, Held] = {}
    for run in runs:
        if run.version != now:
            latest.pop(run.version, None)
            latest[run.version] = run
    return list(reversed(latest.values()))


def compared(
    inspector: Inspector, key: ItemKey, back: int, moments: Sequence[Life], check: Check
) -> Compared:
    """The diff to the `back`-th (from 1) version before the one that the text is compared with by itself."""
    pair = _pair(inspector, key)
    after = pair.shown
    choices = earlier(moments, key.target.ordinal)
    if pair.before is not None and pair.after is not None and choices:
        usual = pair.before.version
        if usual != pair.after.version:
            choices = [held for held in choices if held.version != usual]
    if after is None or not choices:
        return Compared(0, "", None, "There is no older version of it in the trace.", oldest=True)
    at = min(back, len(choices))
    held = choices[at - 1]
    label = f"{record.brief(held.version)} of {held.at.turn}.{held.at.step}"
    label += f" ({number(at)} of {number(len(choices))})"
    oldest = at == len(choices)
    if pair.withheld:
        return Compared(at, label, None, _REDACTED, oldest)
    before = _placement(inspector.frame(held.at.ordinal), key.change.item, held.version)
    if before is None:
        return Compared(at, label, None, _NOT_BOTH, oldest)
    document, note = _diff(inspector, before, after, "The same text as in that version.", check)
    return Compared(at, label, document, note, oldest)


# Record -----------------------------------------------------------------------------------------------------


def whole_record(inspector: Inspector, key: ItemKey, check: Check) -> Document:
    """Where an item comes from, and every field of its record."""
    pair = _pair(inspector, key)
    change, placement = key.change, pair.shown
    line = change.line or (placement.line if placement is not None else 0)
    event = None
    if line:
        try:
            event = inspector.native(line)
        except CtxctlError:
            event = None
    return record.document(_facts(change, placement, line), event, withheld=pair.withheld, check=check)


def _facts(change: Change, placement: Placement | None, line: int) -> list[tuple[str, str]]:
    method = "" if placement is None else placement.method
    tokens = f"{number(change.tokens)} ({method})" if method else number(change.tokens)
    facts = [
        ("item", change.item),
        ("kind", change.kind),
        ("source", change.source or "not recorded"),
        ("provenance", change.provenance),
        ("version", change.version or change.previous_version or "not recorded"),
        ("before", change.previous_version or ""),
        ("tokens", "uncounted" if method == "uncounted" else tokens),
        ("line", f"{number(line)} of the trace" if line else "none: no record is about it"),
    ]
    if placement is not None:
        facts += [
            ("digest", placement.digest or ""),
            ("size", "" if placement.content is None else f"{number(placement.content.size)} bytes"),
            ("segment", placement.segment),
            ("role", placement.role or ""),
            ("redaction", placement.redaction or ""),
            ("", "the text is its block's, not the item's" if placement.own else ""),
        ]
    same = change.previous_version == change.version
    return [(label, value) for label, value in facts if value and not (label == "before" and same)]
