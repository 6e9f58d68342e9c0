"""Mask redacted content in everything that a trace returns: texts, records, JSON."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from ctxctl.engine.replay.item_table import base_id, version_of
from ctxctl.model.content import Content
from ctxctl.model.event import Event
from ctxctl.model.problem import Problem
from ctxctl.model.records import Assembly, Item
from ctxctl.session.redaction.learning import CommonRun, RedactionLearner
from ctxctl.session.redaction.noticing import file_redacts
from ctxctl.session.redaction.secrets import LEAST, SPELT, Secrets, Unescaped, apart
from ctxctl.trace.growing import SCRATCH, GrowingTrace
from ctxctl.trace.reader import Trace

if TYPE_CHECKING:
    from ctxctl.session.params import Params

MASK: Final = "[redacted]"
_MAX_CACHED_CHARS: Final = 8 << 20
"""Most characters of masked texts that are cached."""
_MAX_CACHED_NAMES: Final = 1 << 16
"""Most masked names and records that are cached."""
_MAX_DEPTH: Final = 200
_DIGESTS: Final = frozenset({"content_digest", "source_digests", "digest", "hash", "content_ref"})
"""Fields used as keys: what looks like a digest stays, unless it is a secret itself."""
_DIGEST: Final = re.compile(r"(?:[a-z0-9-]+:)?[0-9A-Fa-f]+")
_TIME: Final = re.compile(r"[\d:.TZ+ -]+")
"""A value of the field `time`, which stays."""
_MODELS: Final = frozenset({"model", "provider", "client", "tokenizer_or_model"})
"""Fields that determine counts and prices. Only a whole secret is masked there, and neither a plain word nor
a known model."""
_PROVIDER: Final = re.compile(r"[a-z]+(?:[._-][a-z]+)*")
_WORDS: Final = frozenset(
    {
        "event_type", "context_kind", "content_mode", "redaction_state", "status", "severity", "target",
        "visibility", "mode", "role", "segment", "cause", "overflow_strategy", "injection_point",
        "surface_kind", "compacts_by", "schema_version", "lifecycle", "scope", "action", "reason",
    }
)  # fmt: skip
"""Fields with words of a vocabulary, which reveal nothing if they look like one."""
_WORD: Final = re.compile(r"[a-z]+(?:[_./:-][a-z]+)*|[\d.]+")
_TEXTS: Final = frozenset({"content", "text", "before", "after", "separator", "opens", "closes"})
"""Fields with a content's text. Records keep them unmasked, and the text is masked when read, so that its
tokens do not change."""
_Struct = TypeVar("_Struct", bound=msgspec.Struct)
_Kept = TypeVar("_Kept")


class RedactionFilter:
    """Masks the redacted content of one trace in all its texts and records.

    A trace on disk is learned when this is made, before anything is shown. A growing one is learned while it
    is read.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._learnt = RedactionLearner(trace.contents.text)
        self._upto = 0
        """Bytes of a growing trace that were learned from."""
        self._scanned = 0
        """Bytes of it that were searched for redactions."""
        self._live = isinstance(trace, GrowingTrace)
        self.news = 0
        """How often more was learned of a growing trace."""
        self._texts: OrderedDict[str, str] = OrderedDict()
        self._clean: set[str] = set()
        """Digests of texts without masked parts."""
        self._held = 0
        self._names: dict[str, str] = {}
        self._records: dict[int, tuple[Any, Any]] = {}
        if not self._live:
            self._learn()
        trace.redactor = self

    def __bool__(self) -> bool:
        return bool(self._learnt.hidden) or bool(self._learnt.whole)

    def _learn(self) -> None:
        for event in self._trace.events():
            self._learnt.see(event)
        if self._learnt.runs or self._learnt.parts:
            for event in self._trace.events():
                if event.offset > self._learnt.last:
                    break
                self._learnt.spare(event)

    # What was redacted.

    def hides(self, content: Content) -> bool:
        """Return whether a content is a text from before its item's redaction."""
        return content.digest in self._learnt.hidden

    def holds(self, text: str) -> bool:
        """Return whether a text is, or contains, redacted content."""
        if not self:
            return False
        return self._learnt.says_all(text) or self.words(text) != text

    def touches(self, content: Content) -> bool:
        """Return whether part of a content is masked."""
        if not self:
            return False
        self.text(content)
        return content.digest not in self._clean

    def returns(self, event: Event) -> Iterator[Problem]:
        """Yield a finding for each text of an event that repeats what an earlier line redacted."""
        record = event.record
        if not self:
            return
        if isinstance(record, Item) and record.content is not None:
            yield from self._returned(event, record.content, f"item {base_id(record, version_of(record))}")
        elif isinstance(record, Assembly):
            for block in record.blocks:
                if block.content is not None:
                    yield from self._returned(event, block.content, f"block {block.block_id}")

    def _returned(self, event: Event, content: Content, where: str) -> Iterator[Problem]:
        if not self.touches(content):
            return
        text = self._trace.contents.text(content)
        item = self._earlier(text, event.offset)
        if item is not None:
            message = f"{where} holds text of {self.name(item)} that was redacted before"
            yield Problem(event.line, event.offset, "redacted-content-returned", message)

    def _earlier(self, text: str, offset: int) -> str | None:
        """Return the item whose content, redacted before a byte of the trace, occurs in a text."""
        learnt = self._learnt
        for secrets in (learnt.whole, learnt.parts):
            for held in secrets.held_by(text):
                if learnt.redacted[secrets.of(held.secret)] < offset:
                    return secrets.of(held.secret)
        return next((run.name for run in learnt.runs.runs(text) if learnt.redacted[run.name] < offset), None)

    # Texts.

    def text(self, content: Content) -> str:
        """Return the text of a content as it may be shown."""
        text = self._trace.contents.text(content)
        if not self or content.digest in self._clean:
            return text
        masked = self._texts.get(content.digest)
        if masked is None:
            masked = MASK if self._all_hidden(content) else self.words(text)
            if masked == text:
                if len(self._clean) >= _MAX_CACHED_NAMES:
                    self._clean.clear()
                self._clean.add(content.digest)
                return text
            self._texts[content.digest] = masked
            self._held += len(masked)
            while self._held > _MAX_CACHED_CHARS and len(self._texts) > 1:
                self._held -= len(self._texts.popitem(last=False)[1])
        return masked

    def _all_hidden(self, content: Content) -> bool:
        base: Content | None = content
        while base is not None:
            if base.digest in self._learnt.hidden:
                return True
            base = self._trace.contents.inside(base)
        return False

    def words(self, text: str) -> str:
        """Return a free text with `MASK` in place of redacted content."""
        if not self or len(text) < LEAST:
            return text
        for secrets in (self._learnt.whole, self._learnt.parts):
            text = secrets.masked(text, lambda _: MASK)
        return self._without_runs(text, lambda _: MASK)

    def _without_runs(self, text: str, mask: Callable[[CommonRun], str]) -> str:
        found = self._learnt.runs.runs(text)
        if self._learnt.runs and SPELT.search(text) is not None:
            view = Unescaped(text)
            found += [
                run._replace(start=view.at(run.start), end=view.end(run.end))
                for run in self._learnt.runs.runs(view.text)
            ]
            found = list(apart(found))
        pieces, end = [], 0
        for run in found:
            pieces += [text[end : run.start], mask(run)]
            end = run.end
        return "".join([*pieces, text[end:]]) if pieces else text

    def name(self, text: str) -> str:
        """Return a name, a key or a title with numbered masks in place of redacted content."""
        if not self or len(text) < LEAST:
            return text
        found = self._names.get(text)
        if found is None:
            learnt = self._learnt
            found = _numbered(_numbered(text, learnt.whole, ""), learnt.parts, "p")
            found = self._without_runs(found, lambda run: f"[redacted w{run.number}]")
            if len(self._names) >= _MAX_CACHED_NAMES:
                self._names.clear()
            self._names[text] = found
        return found

    # Values.

    def value(self, value: Any, depth: int = 0) -> Any:
        """Return a JSON value, keys included, without redacted content; fields of the standard stay."""
        if not self:
            return value
        return self._value(value, "", depth)

    def _value(self, value: Any, key: str, depth: int) -> Any:
        if isinstance(value, str):
            return self._string(value, key)
        if depth > _MAX_DEPTH:
            return MASK if isinstance(value, dict | list | tuple | frozenset) else value
        if isinstance(value, dict):
            known = _fields()
            return {
                name if name in known or not isinstance(name, str) else self.name(name): self._value(
                    one, str(name), depth + 1
                )
                for name, one in value.items()
            }
        if isinstance(value, list | tuple):
            made = [self._value(one, key, depth + 1) for one in value]
            return made if isinstance(value, list) else tuple(made)
        if isinstance(value, frozenset):
            return self._ids(value, depth)
        return self.struct(value) if isinstance(value, msgspec.Struct) else value

    def _ids(self, value: frozenset[Any], depth: int) -> frozenset[Any]:
        """Return a set of ids, masked. It is cached, because consecutive steps have the same one."""
        known = self._records.get(id(value))
        if known is not None and known[0] is value:
            return known[1]  # type: ignore[no-any-return]
        made = frozenset(self._value(one, "id", depth + 1) for one in value)
        return self._kept(value, value if made == value else made)

    def _string(self, value: str, key: str) -> str:
        if (key in _WORDS and _WORD.fullmatch(value)) or (key == "time" and _TIME.fullmatch(value)):
            return value
        if key in _MODELS:
            made = _numbered(value, self._learnt.whole, "")
            return value if made == value or _PROVIDER.fullmatch(value) or _is_model(value) else made
        if key in _DIGESTS and _DIGEST.fullmatch(value):
            return _numbered(value, self._learnt.whole, "")
        return self.words(value) if key in _TEXTS else self.name(value)

    def struct(self, record: _Struct) -> _Struct:
        """Return a record with its texts masked; the same object if nothing is masked."""
        known = self._records.get(id(record))
        if known is not None and known[0] is record:
            return known[1]  # type: ignore[no-any-return]
        changed: dict[str, Any] = {}
        for field in record.__struct_fields__:
            value = getattr(record, field)
            if not value or field in _TEXTS or isinstance(value, int | float | Content):
                continue
            made = self._value(value, field, 0)
            if made is not value and made != value:
                changed[field] = made
        return self._kept(record, msgspec.structs.replace(record, **changed) if changed else record)

    def _kept(self, value: _Kept, masked: _Kept) -> _Kept:
        if len(self._records) >= _MAX_CACHED_NAMES:
            self._records.clear()
        self._records[id(value)] = (value, masked)
        return masked

    def params(self, params: Params) -> Params:
        """Return the replay parameters without a secret that is the name of its model."""
        name = params.first_model
        if not self or name is None or (shown := self._string(name, "model")) == name:
            return params
        return msgspec.structs.replace(params, first_model=shown, assumed=params.assumed.replace(name, shown))

    def events(self, events: list[Event]) -> list[Event]:
        """Return events that may be passed on. In a growing trace, new ones are learned from first."""
        if self._live:
            self._learn_on(events)
        if not self:
            return events
        return [self._event(event) for event in events]

    def _learn_on(self, events: list[Event]) -> None:
        """Learn from new events; if the rest of the file has a redaction, from all of it."""
        fresh = [event for event in events if event.offset >= self._upto]
        if not fresh:
            return
        size = self._trace.source.size
        first = fresh[0]
        if size > self._scanned and first.offset < SCRATCH:
            if file_redacts(self._trace.source, max(self._scanned, first.offset)):
                fresh = list(Trace(self._trace.source).events(first.offset, first.line))
            self._scanned = size
        for event in fresh:
            if self._learnt.see(event):
                self._forget()
            if event.offset < SCRATCH:
                self._upto = event.offset + 1

    def _event(self, event: Event) -> Event:
        changed: dict[str, Any] = {}
        for field in event.__struct_fields__:
            value = getattr(event, field)
            if isinstance(value, str):
                made: Any = self._value(value, field, 0)
            elif isinstance(value, msgspec.Struct):
                made = self.struct(value)
            else:
                continue
            if made is not value and made != value:
                changed[field] = made
        return msgspec.structs.replace(event, **changed) if changed else event

    def problem(self, problem: Problem) -> Problem:
        """Return a problem with its message masked, which may quote the fault."""
        return msgspec.structs.replace(problem, message=self.words(problem.message)) if self else problem

    def _forget(self) -> None:
        """Drop masked values from before more was known."""
        self.news += 1
        self._texts.clear()
        self._clean.clear()
        self._names.clear()
        self._records.clear()
        self._held = 0


def _numbered(text: str, secrets: Secrets, sort: str) -> str:
    mask: Callable[[str], str] = lambda secret: f"[redacted {sort}{secrets.number(secret)}]"  # noqa: E731
    return secrets.masked(text, mask)


def _is_model(name: str) -> bool:
    from ctxctl.tokens.catalogue.find import find_model

    return find_model(name).how != "unknown"


def _fields() -> frozenset[str]:
    from ctxctl.trace.validate import schema_fields

    return schema_fields()
