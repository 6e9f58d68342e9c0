"""Texts that come back after they were redacted: in a summary, another item, a block, a later version.

A redaction makes a secret of what the item's earlier versions said and its redacted ones do not.  Only exact
occurrences of such a stretch are found; a paraphrase is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from ctxctl.engine.book import base_id, version_of
from ctxctl.engine.told import UNREDACTED
from ctxctl.inspector.secrets import LEAST, Secrets
from ctxctl.model.content import Content
from ctxctl.model.event import Event
from ctxctl.model.problem import Problem
from ctxctl.model.records import Assembly, Item, Redaction
from ctxctl.trace.reader import Trace

_WORDS: Final = 4000
"""Words up to which two versions are compared; of longer ones the whole text is the secret."""
_VERSIONS: Final = 16
"""Texts remembered of an item until it is redacted."""
_ITEMS: Final = 1 << 16
_PIECES = re.compile(r"\s+|[^\s]+")


def leaks(trace: Trace) -> Iterator[Problem]:
    """One finding for each record in which redacted text stands again; reads the whole trace."""
    watch = Watch(trace)
    for event in trace.events():
        yield from watch.see(event)


class Watch:
    """What has been redacted in the part of a trace that it has seen."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._said: dict[str, list[Content]] = {}
        """Texts of items that nobody has redacted yet."""
        self._whole: dict[str, list[str]] = {}
        """By redacted item, its texts as long as no redacted version tells which part was secret."""
        self._secrets = Secrets()
        """Secret stretches, with the item that they are of."""
        self._clean: set[str] = set()
        """Digests of texts that hold none of them."""

    def secret_in(self, text: str) -> str | None:
        """The item of which a text holds something redacted; None if it holds nothing of the kind."""
        return self._secrets.first(text)

    def masked(self, text: str, mask: str) -> str:
        """A text with everything redacted masked."""
        return self._secrets.masked(text, mask)

    def __bool__(self) -> bool:
        return bool(self._secrets)

    def see(self, event: Event) -> Iterator[Problem]:
        """Take one event in; findings about it."""
        record = event.record
        if isinstance(record, Redaction):
            if record.redaction_state not in UNREDACTED:
                self._redact(record.item_id)
        elif isinstance(record, Item):
            yield from self._item(event, record)
        elif isinstance(record, Assembly) and (self._secrets or self._whole):
            for block in record.blocks:
                if block.content is not None:
                    for ref in block.refs:
                        self._learn(ref, block.content)
                    yield from self._check(event, block.content, f"block {block.block_id}")

    def _item(self, event: Event, record: Item) -> Iterator[Problem]:
        name = base_id(record, version_of(record))
        if record.redaction is not None:
            self._redact(name)
            if record.content is not None:
                self._learn(name, record.content)
        if record.content is None:
            return
        yield from self._check(event, record.content, f"item {name}")
        if record.redaction is None and len(self._said) < _ITEMS:
            said = self._said.setdefault(name, [])
            if len(said) < _VERSIONS:
                said.append(record.content)

    def _redact(self, ref: str) -> None:
        item = ref if ref in self._said else ref.rpartition("@")[0]
        texts = [self._trace.contents.text(content) for content in self._said.pop(item, ())]
        texts = [text for text in texts if len(text) >= LEAST]
        if texts:
            self._whole.setdefault(item, []).extend(texts)
            self._keep(item, texts)

    def _learn(self, ref: str, redacted: Content) -> None:
        """A redacted version shows which part of an item's earlier texts was the secret."""
        item = ref if ref in self._whole else ref.rpartition("@")[0]
        texts = self._whole.get(item)
        if texts is None:
            return
        shown = self._trace.contents.text(redacted)
        if any(text in shown for text in texts):
            return
        del self._whole[item]
        for text in texts:
            self._secrets.discard(text.strip())
        self._keep(item, [piece for text in texts for piece in _taken(text, shown)])

    def _keep(self, item: str, pieces: Iterable[str]) -> None:
        for piece in pieces:
            self._secrets.add(piece.strip(), item)
        self._clean.clear()

    def _check(self, event: Event, content: Content, where: str) -> Iterator[Problem]:
        if not self._secrets or content.digest in self._clean:
            return
        text = self._trace.contents.text(content)
        item = self.secret_in(text)
        if item is None:
            self._clean.add(content.digest)
            return
        message = f"{where} holds text of {item} that was redacted before"
        yield Problem(event.line, event.offset, "redacted-content-returned", message)


def _taken(text: str, shown: str) -> list[str]:
    """The stretches of a text that its redacted version does not have."""
    from difflib import SequenceMatcher

    old, new = _PIECES.findall(text), _PIECES.findall(shown)
    if len(old) > _WORDS or len(new) > _WORDS:
        return [text]
    blocks = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return ["".join(old[a:b]) for tag, a, b, _, _ in blocks if tag in ("delete", "replace")]
