"""Sources that no answer uses, and items that are cited although they were removed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from ctxctl.engine.replay.item_table import base_id, version_of
from ctxctl.lint.rule import Hit, Rule
from ctxctl.model import vocab
from ctxctl.model.records import Assembly, Selection
from ctxctl.model.vocab import segment_of

if TYPE_CHECKING:
    from ctxctl.engine.replay.step_tracker import ThreadKey
    from ctxctl.lint.context import SeenRecord, StepContext, ThreadSums
    from ctxctl.model.results import Placement

_WORD: Final = re.compile(r"[^\W_][\w./:-]{5,60}")
_ANSWERS: Final = frozenset({"assistant_message", "tool_call"})
_SOURCES: Final = 256
_WORDS: Final = 2000
_READ: Final = 20_000
"""Characters of one text that are read."""


class _Source:
    """What one source put into the window, and whether anything went back to it."""

    def __init__(self, hit: Hit, running: ThreadSums) -> None:
        self.hit = hit
        self.running = running
        self.since = running.steps
        self.words: set[str] = set()
        self.tokens = 0
        self.answers = 0
        self.used = False


class UnreferencedSource(Rule):
    """A source's context is in request after request, and no answer or tool call ever takes up a word of it.

    Words that the user or another source has too are not counted for it.  Use cannot be proved by words, nor
    can its absence: a rule of style leaves no trace.  So this is off by default.
    """

    code = "CTX006"
    name = "unreferenced-source"
    severity = "info"
    default = False
    needs = "context items with sources, and texts of the answers"
    fix = "Detach the source, or fetch from it on demand."
    parameters = {  # noqa: RUF012
        "tokens": "smallest source that counts, in tokens",
        "answers": "answers that a session needs before it is judged",
    }
    tokens = 100
    answers = 5

    def __init__(self) -> None:
        self._threads: dict[ThreadKey, dict[str, _Source]] = {}

    def step(self, look: StepContext) -> Iterator[Hit]:
        """What sources brought, and what the answers say."""
        sources = self._threads.setdefault(look.key, {})
        for came in look.came:
            if came.source is not None and segment_of(came.kind) == "context" and not came.stale:
                self._bring(look, sources, came)
            elif came.kind in _ANSWERS and sources:
                text = look.text(came)
                if text is not None:
                    said = set(_WORD.findall(text[:_READ].lower()))
                    for name, source in sources.items():
                        source.answers += came.kind == "assistant_message"
                        source.used |= not said.isdisjoint(source.words) or name.lower() in text.lower()
            elif came.kind == "user_message" and sources:
                self._known(look, sources, came)
        return iter(())

    @staticmethod
    def _known(look: StepContext, sources: dict[str, _Source], came: Placement) -> None:
        """Words that the user says are nobody's."""
        text = look.text(came)
        if text is not None:
            words = set(_WORD.findall(text[:_READ].lower()))
            for source in sources.values():
                source.words -= words

    @staticmethod
    def _bring(look: StepContext, sources: dict[str, _Source], came: Placement) -> None:
        assert came.source is not None
        source = sources.get(came.source)
        if source is None:
            if len(sources) >= _SOURCES:
                return
            hit = Hit(came.source, "", look.place(came.line), came.item)
            source = sources[came.source] = _Source(hit, look.running)
        text = look.text(came)
        source.tokens = max(source.tokens, came.tokens)
        if text is not None and len(source.words) < _WORDS:
            source.words |= set(_WORD.findall(text[:_READ].lower()))
        if came.title:
            source.words.add(came.title.lower())

    def end(self) -> Iterator[Hit]:
        """Sources that were there for long enough and never used."""
        for sources in self._threads.values():
            for name, source in sources.items():
                steps = source.running.steps - source.since
                if source.used or source.answers < self.answers or source.tokens < self.tokens:
                    continue
                if not source.words:
                    continue
                tokens = f"{source.tokens:,} tokens in {steps} requests"
                message = f"{name}: {tokens}, and no answer uses a word of it"
                yield source.hit._replace(message=message, tokens=source.tokens * steps, steps=steps)


_MOST: Final = 1 << 14


class RemovedStillCited(Rule):
    """An item was removed, and a later assembly or selection names it.

    The model still reads what the user detached, or the record speaks of something that is not there.
    """

    code = "CTX019"
    name = "removed-still-cited"
    severity = "error"
    needs = "removals of items, and assemblies or selections"
    fix = "Take the item's blocks out of the assembly when the item is removed, or add the item again first."

    def __init__(self) -> None:
        self._gone: dict[ThreadKey, dict[str, int]] = {}
        """Removed items by thread, with the lines that removed them."""
        self._assembled: dict[ThreadKey, int] = {}
        """Line of the last assembly for the model."""

    def seen(self, seen: SeenRecord) -> Iterator[Hit]:
        """Removals, and refs to what was removed."""
        record, key = seen.record, seen.thread.key
        item = seen.item
        if item is not None:
            gone = self._gone.setdefault(key, {})
            if seen.event.event_type == vocab.ITEM_REMOVED:
                if len(gone) < _MOST:
                    gone[seen.thread.book.item_of(item.item_id)] = seen.event.line
            elif gone:
                gone.pop(base_id(item, version_of(item)), None)
        elif isinstance(record, Assembly):
            if record.target == vocab.MODEL:
                self._assembled[key] = seen.event.line
        elif isinstance(record, Selection) and seen.event.event_type == vocab.SELECTION_COMPLETED:
            gone = self._gone.get(key, {})
            for ref in record.selected if gone else ():
                name = seen.thread.book.item_of(ref.ref)
                if name in gone:
                    message = f"{name} was removed at line {gone[name]:,} and is selected again"
                    yield Hit(name, message, seen.place, name)

    @property
    def repeats(self) -> bool:
        """An item that was removed may come back in the very same record."""
        return any(self._gone.values())

    def step(self, look: StepContext) -> Iterator[Hit]:
        """Removed items in the frame of an assembly that came after."""
        gone = self._gone.get(look.key)
        if not gone or look.step.mode == "append" or look.step.basis != "assembly":
            return
        assembled = self._assembled.get(look.key, 0)
        for placement in look.placements:
            line = gone.get(placement.item)
            if line is not None and line < assembled and not placement.stale:
                name = placement.title or placement.item
                message = f"{name} was removed at line {line:,} and is in the window all the same"
                tokens = placement.tokens
                yield Hit(placement.item, message, look.place(), placement.item, tokens, look.money(tokens))
