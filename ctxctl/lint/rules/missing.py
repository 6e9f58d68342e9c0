"""Context that was asked for and did not come."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from ctxctl.lint.rule import Hit, Rule
from ctxctl.model import vocab
from ctxctl.model.records import Item, Missing

if TYPE_CHECKING:
    from ctxctl.engine.replay.step_tracker import ThreadKey
    from ctxctl.lint.context import SeenRecord, StepContext

_OVER: Final = frozenset({"resolved", "declined", "expired"})
_MOST: Final = 4096
_NULL: Final = frozenset({"", "null", "None", "undefined", "{}", "[]"})


class MissingUnresolved(Rule):
    """A gap was recorded and never closed, and the session went on.

    What was asked for never came, and nobody said that it is not needed any more.
    """

    code = "CTX021"
    name = "missing-unresolved"
    needs = "records of missing context"
    fix = "Close the gap with missing.resolved, or record that it was declined or has expired."

    def __init__(self) -> None:
        self._open: dict[ThreadKey, dict[str, Hit]] = {}
        self._passed: dict[ThreadKey, set[str]] = {}

    def seen(self, seen: SeenRecord) -> Iterator[Hit]:
        """A record of missing context opens a gap or closes it."""
        record = seen.record
        if not isinstance(record, Missing) or record.missing_id is None:
            return
        gaps = self._open.setdefault(seen.thread.key, {})
        over = record.status in _OVER or seen.event.event_type == vocab.MISSING_RESOLVED
        if over or record.scope == "turn" or record.severity == "info":
            gaps.pop(record.missing_id, None)
            self._passed.get(seen.thread.key, set()).discard(record.missing_id)
        elif record.missing_id not in gaps and len(gaps) < _MOST:
            what = record.question or record.missing_id
            blocks = ", ".join(record.blocked_actions[:3])
            message = f"missing context was never resolved: {what}" + (
                f" (blocks {blocks})" if blocks else ""
            )
            gaps[record.missing_id] = Hit(record.missing_id, message, seen.place)
        return
        yield

    def step(self, look: StepContext) -> Iterator[Hit]:
        """The session goes on."""
        gaps = self._open.get(look.key)
        if gaps:
            now = (look.step.turn, look.step.step)
            passed = self._passed.setdefault(look.key, set())
            passed.update(n for n, hit in gaps.items() if (hit.place.turn, hit.place.step) != now)
        return iter(())

    def end(self) -> Iterator[Hit]:
        """Gaps that are open and that some later step passed over."""
        for key, gaps in self._open.items():
            passed = self._passed.get(key, set())
            yield from (hit for name, hit in gaps.items() if name in passed)


class NullWhileAttached(Rule):
    """A provider gave nothing while it was attached: null, an empty text, or a failure.

    The model goes on with the last thing that it was told, or with a gap that it does not know of.  Sanqian's
    diff does not say what `getCurrent() → null` means for a context that is still attached.
    """

    code = "CTX025"
    name = "null-while-attached"
    needs = "items of context providers, or records of missing context that name them"
    fix = "Say that there is nothing (a marker, or an item with the words), or take the context away."

    def seen(self, seen: SeenRecord) -> Iterator[Hit]:
        """A live item without content, or a gap that names a live item."""
        record = seen.record
        if isinstance(record, Missing):
            yield from self._gap(seen, record)
        elif isinstance(record, Item) and seen.event.event_type == vocab.ITEM_UPDATED:
            content = record.content
            if content is None or content.size > 9 or record.redaction is not None:
                return
            name = seen.thread.book.item_of(record.item_id)
            if vocab.segment_of(record.context_kind) == "context":
                text = seen.around.text(content)
                version = seen.thread.book.known.get(record)
                older = version.older if version is not None else None
                had = older is not None and older.content is not None and older.content.size > content.size
                if text.strip() in _NULL and had:
                    message = f"{record.title or name} became empty ({text!r}) while it is attached"
                    yield Hit(name, message, seen.place, name)

    @staticmethod
    def _gap(seen: SeenRecord, record: Missing) -> Iterator[Hit]:
        if seen.event.event_type != vocab.MISSING_DETECTED or record.status in _OVER:
            return
        live = seen.thread.book.live
        named = [*record.candidate_sources, record.needed_for or ""]
        for name, version in live.items():
            stated = version.record
            if name in named or (stated.title in named and stated.title) or (stated.source in named):
                if vocab.segment_of(stated.context_kind) != "context":
                    continue
                message = (
                    f"{stated.title or name} gave nothing while it is attached: {record.question or 'null'}"
                )
                yield Hit(name, message, seen.place, name)
                return
