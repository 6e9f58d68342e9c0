"""The contents of one trace: each distinct text is stored once and read from the file on demand."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock
from typing import IO, Any, NamedTuple

import msgspec
import orjson
import xxhash

from ctxctl.model.content import Content, Form
from ctxctl.trace.depth import DEPTH_LIMIT, deeper_than
from ctxctl.trace.encode import without_surrogates
from ctxctl.trace.source import Source
from ctxctl.trace.utf8 import place

Fault = Callable[[str, str], None]
"""Called with a problem's slug and message."""

SEED = int.from_bytes(os.urandom(8), "little")
"""Random, so that nobody can prepare two texts with one key. No output depends on it."""

_MAX_FAILED_SEARCHES = 8
"""Most failed searches for contents in one repaired line. After that, no search is made in it."""
KEYS = 1 << 16
"""Raw spellings remembered per generation. Forgetting one only costs a decode."""
CACHE_BYTES = 8 << 20
LITERAL_BYTES = 4 << 10
PARSE_BYTES = 16 << 20
"""Larger structured contents are kept as written, not parsed (which takes 20 times their size), in bytes."""

_LONG_NUMBER = re.compile(rb"\d{16}")
_decode_text = msgspec.json.Decoder(str).decode


class _Shown:
    """A text inline in the trace: `offset` and `length` of its JSON, `first` its lowest known offset."""

    __slots__ = ("first", "length", "offset", "spilled")

    def __init__(self, first: int, offset: int, length: int, spilled: bool) -> None:
        self.first = first
        self.offset = offset
        self.length = length
        self.spilled = spilled


class _Derived:
    __slots__ = ("after", "base", "before")

    def __init__(self, before: str, base: Content, after: str) -> None:
        self.before = before
        self.base = base
        self.after = after


class StoredContent(msgspec.Struct, frozen=True, array_like=True):
    """A stored content: where its text is, or what it is made of."""

    digest: str
    size: int
    form: Form
    count: tuple[int, bool] | None
    first: int = 0
    """Lowest known offset of an inline text, with `offset` and `length`."""
    offset: int = 0
    length: int = -1
    base: int | None = None
    """Number of the content that it wraps, with `before` and `after`."""
    before: str = ""
    after: str = ""
    text: str | None = None
    """The text itself, if ctxctl made it."""


class ContentMark(NamedTuple):
    """The extent of a store at some time."""

    digests: int
    raws: int
    derived: int
    generation: int


class Contents:
    """The content store of one source, with one `Content` object per digest. Thread-safe.

    Memory is one `Content` per distinct content and a bounded cache. Texts are read again from the source or,
    if the line was damaged and repaired, from an unlinked spill file.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._lock = RLock()
        self._by_digest: dict[str, Content] = {}
        self._by_raw: dict[bytes, Content] = {}
        self._by_raw_old: dict[bytes, Content] = {}
        self._derived: dict[tuple[str, str, str], Content] = {}
        self._texts: OrderedDict[str, str] = OrderedDict()
        self._cached = 0
        self._spill: IO[bytes] | None = None
        self._spill_size = 0
        self._line = b""
        """The line of the last search, and where the search continues."""
        self._goes_on = 0
        self._strays = 0
        """Number of contents not found in this line as written."""
        self._generation = 0
        """How often one of the two bounded tables was restarted."""
        self._shown: list[tuple[Content, object]] | None = None
        """In `aside`: known contents that are now inline too, each with its previous origin."""

    def __len__(self) -> int:
        """Return the number of distinct contents so far, including derived ones."""
        return len(self._by_digest)

    def intern(self, raw: bytes, line: bytes, offset: int, fault: Fault | None = None) -> Content:
        """Return the content with the JSON `raw`, inline in `line`, which starts at byte `offset`.

        `raw` is well-formed JSON. If a repaired line does not hold `raw` as written, its text goes to the
        spill file. `fault` is called for contents that are kept as written.
        """
        key = xxhash.xxh3_128_digest(raw, SEED)
        content = self._by_raw.get(key) or self._by_raw_old.get(key)
        if content is not None and isinstance(content.origin, _Shown):
            if offset < content.origin.first:
                content.origin.first = offset
            return content
        text, form = _read(raw, fault)
        data = _utf8(text)
        digest = hashlib.sha256(data).hexdigest()
        with self._lock:
            at = self._place(line, raw)
            content = self._by_digest.get(digest)
            if content is None or not isinstance(content.origin, _Shown):
                if at >= 0:
                    origin = _Shown(offset, offset + at, len(raw), False)
                else:
                    origin = _Shown(offset, self._spilled(data), len(data), True)
                if content is None:
                    content = self._by_digest[digest] = Content(digest, len(data), form, origin)
                else:
                    if self._shown is not None:
                        self._shown.append((content, content.origin))
                    content.origin = origin
            elif offset < content.origin.first:
                content.origin.first = offset
            if len(self._by_raw) >= KEYS:
                self._by_raw_old, self._by_raw = self._by_raw, {}
                self._generation += 1
            self._by_raw[key] = content
            self._remember(digest, text, len(data))
        return content

    def _place(self, line: bytes, raw: bytes) -> int:
        """Return where a content begins in its line, or -1. One scan serves all contents of a line."""
        if line is not self._line:
            self._line, self._goes_on, self._strays = line, 0, 0
        if self._strays > _MAX_FAILED_SEARCHES:
            return -1
        at = place(line, raw, self._goes_on)
        if at >= 0:
            self._goes_on = at + len(raw)
        else:
            self._strays += 1
        return at

    def resolve(self, digest: str, before: int) -> Content | None:
        """Return the content of this digest if it was inline at an offset below `before`."""
        content = self._by_digest.get(digest)
        if content is not None and isinstance(content.origin, _Shown) and content.origin.first < before:
            return content
        return None

    def by_digest(self, digest: str) -> Content | None:
        """Return the content of this digest if it was inline in the part of the trace read so far."""
        content = self._by_digest.get(digest)
        return content if content is not None and isinstance(content.origin, _Shown) else None

    def derive(self, before: str, base: Content, after: str) -> Content:
        """Return the content `before + text(base) + after`, stored as a recipe."""
        key = (before, base.digest, after)
        content = self._derived.get(key)
        if content is not None:
            return content
        text = without_surrogates(before + self.text(base) + after)
        content = self._made(text, _Derived(before, base, after))
        with self._lock:
            if len(self._derived) >= KEYS:
                self._derived.clear()
                self._generation += 1
            self._derived[key] = content
        return content

    def literal(self, text: str) -> Content:
        """Return a content made by ctxctl itself. Short ones are held in memory."""
        text = without_surrogates(text)
        return self._made(text, text)

    def text(self, content: Content) -> str:
        """Return the text of a content of this store. A lone surrogate is returned as U+FFFD.

        Raises:
            UnreadableError: `read-failed`.
        """
        with self._lock:
            cached = self._texts.get(content.digest)
            if cached is not None:
                self._texts.move_to_end(content.digest)
                return cached
        text = self._load(content)
        with self._lock:
            self._remember(content.digest, text, content.size)
        return text

    def inside(self, content: Content) -> Content | None:
        """Return the content that a derived one wraps; None for any other."""
        return content.origin.base if isinstance(content.origin, _Derived) else None

    def stored(self, content: Content, base: int | None) -> StoredContent | None:
        """Return a content in stored form; `base` is the caller's number of what `inside` returns for it.

        None if its text is in no permanent file.
        """
        origin = content.origin
        plain = content.digest, content.size, content.form, content.count
        if isinstance(origin, str):
            return StoredContent(*plain, text=origin)
        if isinstance(origin, _Derived):
            return StoredContent(*plain, base=base, before=origin.before, after=origin.after)
        if not isinstance(origin, _Shown) or origin.spilled:
            return None
        return StoredContent(*plain, first=origin.first, offset=origin.offset, length=origin.length)

    def restored(self, stored: StoredContent, base: Content | None) -> Content:
        """Return a stored content as one of this store; `base` is what it wraps."""
        with self._lock:
            content = self._by_digest.get(stored.digest)
            if content is None:
                origin: object = stored.text
                if base is not None:
                    origin = _Derived(stored.before, base, stored.after)
                elif stored.text is None:
                    origin = _Shown(stored.first, stored.offset, stored.length, False)
                content = Content(stored.digest, stored.size, stored.form, origin)
                self._by_digest[stored.digest] = content
            content.count = content.count or stored.count
            return content

    def known(self) -> list[Content]:
        """Return all contents so far. A wrapped content precedes its wrapper."""
        with self._lock:
            found = dict.fromkeys(c for c in self._by_digest.values() if not isinstance(c.origin, _Derived))
            for content in self._by_digest.values():
                self._with_base(content, found)
        return list(found)

    def _with_base(self, content: Content, found: dict[Content, None]) -> None:
        chain = [content]
        while isinstance(origin := chain[-1].origin, _Derived) and origin.base not in found:
            chain.append(origin.base)
        found.update(dict.fromkeys(reversed(chain)))

    def mark(self) -> ContentMark:
        """Return the current extent; `forget` goes back to it."""
        return ContentMark(len(self._by_digest), len(self._by_raw), len(self._derived), self._generation)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Forget contents added within this context. Their holders can still read them."""
        with self._lock:
            mark = self.mark()
            self._shown = []
        try:
            yield
        finally:
            with self._lock:
                for content, origin in reversed(self._shown):
                    content.origin = origin
                self._shown = None
                self.forget(mark)

    def forget(self, mark: ContentMark) -> None:
        """Forget contents added since a mark. Their holders can still read them."""
        with self._lock:
            known = self._by_digest
            while len(known) > mark.digests:
                known.popitem()
            if mark.generation == self._generation:
                while len(self._by_raw) > mark.raws:
                    self._by_raw.popitem()
                while len(self._derived) > mark.derived:
                    self._derived.popitem()
                return
            # A table was restarted since the mark, so search what is left of it.
            self._by_raw = {k: c for k, c in self._by_raw.items() if known.get(c.digest) is c}
            self._by_raw_old = {k: c for k, c in self._by_raw_old.items() if known.get(c.digest) is c}
            self._derived = {k: c for k, c in self._derived.items() if known.get(c.digest) is c}

    def close(self) -> None:
        """Drop the spill file and the cache."""
        with self._lock:
            self._texts.clear()
            self._cached = 0
            if self._spill is not None:
                self._spill.close()
                self._spill = None

    def _made(self, text: str, origin: object) -> Content:
        data = text.encode()
        digest = hashlib.sha256(data).hexdigest()
        with self._lock:
            content = self._by_digest.get(digest)
            if content is None:
                if isinstance(origin, str) and len(data) > LITERAL_BYTES:
                    origin = _Shown(_NEVER, self._spilled(data), len(data), True)
                content = self._by_digest[digest] = Content(digest, len(data), "text", origin)
            self._remember(digest, text, len(data))
        return content

    def _load(self, content: Content) -> str:
        origin = content.origin
        if isinstance(origin, str):
            return origin
        if isinstance(origin, _Derived):
            return without_surrogates(origin.before + self.text(origin.base) + origin.after)
        assert isinstance(origin, _Shown), "a content of another store"
        if origin.spilled:
            with self._lock:
                if self._spill is None:
                    return ""
                return os.pread(self._spill.fileno(), origin.length, origin.offset).decode("utf-8", "replace")
        raw = self._source.read(origin.offset, origin.length)
        try:
            return _read(raw, None)[0]
        except (msgspec.DecodeError, ValueError, RecursionError):
            return raw.decode("utf-8", "replace")

    def _spilled(self, data: bytes) -> int:
        if self._spill is None:
            import tempfile

            self._spill = tempfile.TemporaryFile(prefix="ctxctl-", buffering=0)  # noqa: SIM115 - lives on
        at = self._spill_size
        view = memoryview(data)
        while view:
            done = os.pwrite(self._spill.fileno(), view, self._spill_size)
            self._spill_size += done
            view = view[done:]
        return at

    def _remember(self, digest: str, text: str, size: int) -> None:
        """Cache a text. The newest stays whatever its size, because it is about to be counted."""
        texts = self._texts
        if digest in texts:
            texts.move_to_end(digest)
            return
        texts[digest] = text
        self._cached += len(text)
        while self._cached > CACHE_BYTES and len(texts) > 1:
            self._cached -= len(texts.popitem(last=False)[1])


_NEVER = 1 << 62
"""Offset of a content that no line of the trace shows."""


def digest_of_raw(raw: bytes) -> str:
    """Return the SHA-256 hex digest of a content given as well-formed JSON; see `Content.digest`."""
    return hashlib.sha256(_utf8(_read(raw, None)[0])).hexdigest()


def canonical(value: object) -> str:
    """Return canonical JSON: sorted keys, no spaces, no escapes; lone surrogates become U+FFFD."""
    return without_surrogates(json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":")))


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        return without_surrogates(text).encode()


def _read(raw: bytes, fault: Fault | None) -> tuple[str, Form]:
    if raw[:1] == b'"':
        return _decode_text(raw), "text"
    if len(raw) > PARSE_BYTES:
        if fault is not None:
            fault("record-too-large", f"a structured content of {len(raw)} bytes is shown as written")
        return raw.decode("utf-8", "replace"), "json"
    if deeper_than(DEPTH_LIMIT, raw):
        if fault is not None:
            fault("too-deep", f"a content nested more than {DEPTH_LIMIT} deep is shown as written")
        return raw.decode("utf-8", "replace"), "json"
    return canonical(_parse(raw)), "json"


def _parse(raw: bytes) -> Any:
    """Parse with exact integers of any size, which orjson rounds above 64 bits."""
    if not _LONG_NUMBER.search(raw):
        try:
            return orjson.loads(raw)
        except orjson.JSONDecodeError:
            pass
    try:
        return json.loads(raw)
    except ValueError:
        return raw.decode("utf-8", "replace")
