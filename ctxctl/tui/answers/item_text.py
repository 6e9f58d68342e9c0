"""An item's text, record and diffs, asked of an inspector.  Runs in a thread; no widget, no view state."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ctxctl.errors import CtxctlError
from ctxctl.model.annotations import UNREDACTED
from ctxctl.model.content import Content
from ctxctl.model.outline import Life
from ctxctl.model.results import Change, Frame, Placement
from ctxctl.text import visible
from ctxctl.tui import binary, jsontext, syntax
from ctxctl.tui.document import Document
from ctxctl.tui.jsontext import dumped, laid_out
from ctxctl.tui.screens.turns.state import ItemKey, ItemText
from ctxctl.tui.spans import Spans
from ctxctl.tui.tabs import Compared
from ctxctl.tui.versions import named
from ctxctl.wording import number

if TYPE_CHECKING:
    from ctxctl.session import Inspector

_WORD: Final = re.compile(r"\w+|\s+|[^\w\s]")
_LONGEST: Final = 2000
"""Characters of a line up to which its words are compared."""
_PAIRS: Final = 2000
"""Pairs of lines that are compared, of one diff."""
_RUN: Final = 50
"""Lines of one change up to which they are taken for pairs."""
_ALIKE: Final = 0.4
"""Part of the longer line that both must share: of lines that share less, nothing stands out."""
_CHECK: Final = 64


def emphasised(lines: Sequence[tuple[str, str]], check: Callable[[], None] | None = None) -> Spans:
    """The changed words of (kind, text) lines as stretches of the lines joined by line feeds."""
    starts = []
    at = 0
    for _, text in lines:
        starts.append(at)
        at += len(text) + 1
    spans = []
    for n, (old, new) in enumerate(_pairs(lines)):
        if n >= _PAIRS:
            break
        if check is not None and n % _CHECK == 0:
            check()
        gone, come = changed_words(lines[old][1], lines[new][1])
        spans += [(starts[old] + a, starts[old] + b, "del-word") for a, b in gone]
        spans += [(starts[new] + a, starts[new] + b, "add-word") for a, b in come]
    return Spans(sorted(spans))


def _pairs(lines: Sequence[tuple[str, str]]) -> Iterator[tuple[int, int]]:
    """Removed and added lines that stand for each other: the n-th of each, of every change."""
    n = 0
    while n < len(lines):
        if lines[n][0] != "-":
            n += 1
            continue
        first = n
        while n < len(lines) and lines[n][0] == "-":
            n += 1
        middle = n
        while n < len(lines) and lines[n][0] == "+":
            n += 1
        if n - first <= 2 * _RUN:
            yield from zip(range(first, middle), range(middle, n), strict=False)


def changed_words(old: str, new: str) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """What only the old line has, and what only the new one has, as stretches; nothing where too much is."""
    from rapidfuzz.distance import LCSseq

    if max(len(old), len(new)) > _LONGEST:
        return [], []
    a, b = _WORD.findall(old), _WORD.findall(new)
    at_a, at_b = _offsets(a), _offsets(b)
    gone: list[tuple[int, int]] = []
    come: list[tuple[int, int]] = []
    shared = 0
    for step in LCSseq.opcodes(a, b):
        a0, a1, b0, b1 = step.src_start, step.src_end, step.dest_start, step.dest_end
        if step.tag == "equal":
            shared += sum(len(word) for word in a[a0:a1] if not word.isspace())
            continue
        if a1 > a0:
            _extend(gone, at_a[a0], at_a[a1], old)
        if b1 > b0:
            _extend(come, at_b[b0], at_b[b1], new)
    longer = max(len("".join(old.split())), len("".join(new.split())))
    return (gone, come) if shared >= _ALIKE * longer else ([], [])


def _extend(found: list[tuple[int, int]], start: int, end: int, text: str) -> None:
    """One more stretch; joined to the one before where only blanks are between."""
    if found and not text[found[-1][1] : start].strip():
        start = found.pop()[0]
    found.append((start, end))


def _offsets(words: Sequence[str]) -> list[int]:
    offsets = [0]
    for word in words:
        offsets.append(offsets[-1] + len(word))
    return offsets


_LONG: Final = 4000
"""Characters of a string from which only the beginning is shown: the text itself has a tab of its own."""
_KEPT: Final = 400
_DEEP: Final = 200
_FOLDED: Final = 12
"""Lines from which something in the record's data begins folded."""
_OPEN: Final = frozenset(
    {"schema_version", "item_id", "context_kind", "content_mode", "visibility", "priority", "created_at",
     "updated_at", "byte_size", "token_estimate", "mime_type", "redaction_state", "redaction_method",
     "redaction_actor", "policy_refs", "event_type", "event_id", "event_class", "time", "session_id",
     "thread_id", "turn_id", "step_id", "context_id", "run_id", "task_id", "runtime_id", "data"}
)  # fmt: skip
"""Fields that say nothing of what an item said."""
_WITHHELD: Final = "withheld: redacted later"


def record_document(
    facts: Sequence[tuple[str, str]],
    event: dict[str, Any] | None,
    *,
    withheld: bool = False,
    check: Callable[[], None] | None = None,
) -> Document:
    """(label, value) facts, then the event with every field.

    `withheld`: the item has been redacted, and of a record that is not itself a redacted one nothing is shown
    that could hold its text.
    """
    wide = max((len(label) for label, _ in facts), default=0)
    head = "".join(f"{label:<{wide}}  {visible(value)}\n" for label, value in facts)
    hangs = [wide + 2] * len(facts)
    spans = Spans()
    at = 0
    for line in head.splitlines():
        spans.add(at, at + wide, "muted")
        at += len(line) + 1
    if event is None:
        return Document(head + "\nNo line of the trace is about it.", spans=spans, hangs=hangs)
    if withheld and not _is_redacted(event):
        event = _open_only(event)
    event, clipped = _clipped(event, 0)
    text = dumped(event)
    laid = laid_out(text, check=check, before=head + "\n", spans=spans)
    remark = "long texts cut" if clipped else ""
    if laid is None:
        return Document(head + "\n" + text, spans=spans, hangs=hangs, remark="too large to lay out")
    return Document(
        laid.text,
        spans=laid.spans,
        fold_regions=laid.fold_regions,
        folded=laid.fold_regions.deeper(2, _FOLDED),
        hangs=hangs,
        remark=remark,
    )


def _is_redacted(event: dict[str, Any]) -> bool:
    """Whether a record holds the item's text as it is after the redaction."""
    data = event.get("data")
    state = data.get("redaction_state") if isinstance(data, dict) else None
    return isinstance(state, str) and state not in UNREDACTED


def _open_only(fields: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, value in fields.items():
        if name == "data" and isinstance(value, dict):
            made[name] = _open_only(value)
        else:
            made[name] = value if name in _OPEN and not isinstance(value, dict) else _WITHHELD
    return made


def _clipped(value: Any, depth: int) -> tuple[Any, bool]:
    """The same value with long strings cut, and whether any was cut."""
    if isinstance(value, str):
        if len(value) <= _LONG:
            return value, False
        return f"{value[:_KEPT]}… ({len(value):,} characters in all)", True
    if depth > _DEEP:
        return value, False
    if isinstance(value, dict):
        pairs = {key: _clipped(one, depth + 1) for key, one in value.items()}
        return {key: one for key, (one, _) in pairs.items()}, any(cut for _, cut in pairs.values())
    if isinstance(value, list):
        found = [_clipped(one, depth + 1) for one in value]
        return [one for one, _ in found], any(cut for _, cut in found)
    return value, False


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
        """The copy that the pane shows: of an item that has left, the one that left."""
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
    return _Pair(frame, after, before, change.item in frame.step.annotations.withheld)


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
    lines = binary.binary_lines(data, change.kind, change.tokens, method, note)
    return (Document.of_lines(lines) if len(lines) > 1 else None), note


def _why_none(placement: Placement | None, change: Change) -> str:
    if placement is not None and placement.carried:
        return "It was in the window before the trace begins, and the trace does not hold its text."
    if change.tokens:
        return "The trace holds no text of it, only its size; :about says what such captures hold."
    return "The trace holds no text of it; :about says what such captures hold."


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
    image = binary.image_in(text)
    if image is not None:
        found.remark = "; ".join(part for part in (binary.image_phrase(image), found.remark) if part)
    return found


def _document(
    text: str, json: bool, kind: str, mime: Any, title: str | None, source: str | None, check: Check
) -> Document:
    """A text with the colours of its language; JSON is laid out over lines."""
    if json:
        laid = jsontext.laid_out(text, check=check)
        if laid is not None:
            remark = "base64 cut" if laid.elided else ""
            return Document(
                laid.text, numbered=True, spans=laid.spans, fold_regions=laid.fold_regions, remark=remark
            )
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
    from ctxctl.engine.textdiff.unified import unified_diff

    old, new = _comparable(inspector, before.content, check), _comparable(inspector, after.content, check)
    check()
    found = unified_diff(old, new)
    check()
    lines: list[tuple[str, str]] = [
        (line.kind, f"@@ {line.text} @@" if line.kind == "@" else line.text) for line in found.lines
    ]
    if found.degraded:
        lines.insert(0, ("!", "too large for the shortest diff: some equal lines may be shown as changed"))
    if not lines:
        return None, same
    document = Document.of_lines(lines)
    document.spans = emphasised(lines, check)
    return document, ""


def _comparable(inspector: Inspector, content: Content, check: Check) -> str:
    """The text of a content; structured content is laid out over lines."""
    text = inspector.text(content)
    if content.form == "json" or jsontext.is_json(text, check=check):
        laid = jsontext.laid_out(text, check=check)
        return text if laid is None or laid.elided else laid.text
    return text


class Held(NamedTuple):
    """A version of an item, and the last step at which it was in the window."""

    version: str | None
    at: Life


def earlier_versions(moments: Iterable[Life], ordinal: int) -> list[Held]:
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


def compare_versions(
    inspector: Inspector, key: ItemKey, back: int, moments: Sequence[Life], check: Check
) -> Compared:
    """The diff to the `back`-th (from 1) version before the one that the text is compared with by itself."""
    pair = _pair(inspector, key)
    after = pair.shown
    choices = earlier_versions(moments, key.target.ordinal)
    if pair.before is not None and pair.after is not None and choices:
        usual = pair.before.version
        if usual != pair.after.version:
            choices = [held for held in choices if held.version != usual]
    if after is None or not choices:
        return Compared(0, "", None, "There is no older version of it in the trace.", oldest=True)
    at = min(back, len(choices))
    held = choices[at - 1]
    said = named(held.version)
    label = f"{f'version {said}' if said else 'its text'} of {held.at.turn}.{held.at.step}"
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
    return record_document(_facts(change, placement, line), event, withheld=pair.withheld, check=check)


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
