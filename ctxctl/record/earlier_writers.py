"""Reads what earlier writers left in the file: a session's highest turn and step, and its threads' windows.

A session that is recorded twice into one file goes on where it stopped: its turns and steps count on, and its
first request is compared with the window that was recorded last.  The file is read once, when a writer first
needs it, and only its end, so that a large file costs no more.
"""

from __future__ import annotations

import os
import re
from array import array
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from ctxctl.ingest.build import Block
from ctxctl.model import vocab

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxctl.record.journal import Journal
    from ctxctl.record.place import Place

TAIL: Final = 80 << 20
"""Bytes at the file's end that are read; every writer writes its windows anew more often than that."""
_BLOCK: Final = 4 << 20
_LONGEST: Final = 8 << 20
"""Bytes of a line; longer ones are passed over."""
_THREADS: Final = 10_000
_DATA: Final = b',"data":{'
_ITEM: Final = re.compile(rb'"item_id":"((?:[^"\\]|\\.)*)"')
_KIND: Final = re.compile(rb'"context_kind":"([^"\\]*)"')
_NEAR: Final = 4096
_ITEMS: Final = (vocab.ITEM_ADDED, vocab.ITEM_UPDATED)
_LINKS: Final = 20_000
"""Assemblies that are put together for one window at most."""
Row = tuple[Block, str]
"""A block and its item's kind, as a `Conversation` has them."""
Json = dict[str, Any]


class _Thread:
    """Where the lines of one thread stand, and the highest numbers in its names."""

    __slots__ = ("assemblies", "items", "numbers")

    def __init__(self) -> None:
        self.assemblies = array("q")
        """Offsets and lengths of lines, alternating."""
        self.items = array("q")
        self.numbers: dict[str, int] = {}


class EarlierWriters:
    """What other writers left in the file; nothing for its first writer."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._threads: dict[str, dict[str, _Thread]] | None = None

    def number(self, place: Place, what: str) -> int:
        """Return the highest number in a thread's names of this kind (`turn-7`); 0: there is none."""
        thread = self._threads_of(place.session).get(place.thread or vocab.MAIN_THREAD)
        return thread.numbers.get(what, 0) if thread is not None else 0

    def threads(self, session: str | None) -> list[str]:
        """Return the names of a session's threads, in the order in which they began."""
        return list(self._threads_of(session))

    def rows(self, place: Place) -> list[Row]:
        """Return a thread's last recorded window; empty where it began before what is read."""
        thread = self._threads_of(place.session).get(place.thread or vocab.MAIN_THREAD)
        if thread is None or not thread.assemblies:
            return []
        try:
            with _File(self._journal.path) as file:
                return _window(file, thread)
        except (OSError, ValueError, TypeError, KeyError, AttributeError, IndexError):
            return []  # not as a recorder writes it: nothing is known of it

    def _threads_of(self, session: str | None) -> dict[str, _Thread]:
        if self._threads is None:
            self._threads = {}
            if self._journal.mark:
                try:
                    with _File(self._journal.path) as file:
                        self._read(file)
                except OSError:
                    pass
        return self._threads.get(session or "", {})

    def _read(self, file: _File) -> None:
        assert self._threads is not None
        made = 0
        for line in file.lines():
            head = _head(line.raw)
            session, thread = head.get("session_id"), head.get("thread_id", vocab.MAIN_THREAD)
            if not isinstance(session, str) or not isinstance(thread, str):
                continue
            threads = self._threads.setdefault(session, {})
            known = threads.get(thread)
            if known is None:
                if made >= _THREADS:
                    continue
                made += 1
                known = threads[thread] = _Thread()
            for what in ("turn", "step"):
                _count(known.numbers, what, head.get(f"{what}_id"))
            if head.get("event_type") == vocab.ASSEMBLY_CREATED:
                known.assemblies.extend((line.offset, len(line.raw)))
            elif head.get("event_type") in _ITEMS:
                known.items.extend((line.offset, len(line.raw)))


class _Line(NamedTuple):
    offset: int
    raw: bytes


class _File:
    """The end of a file."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)

    def __enter__(self) -> _File:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)

    def read(self, offset: int, length: int) -> bytes:
        """Return bytes of the file."""
        return os.pread(self._fd, length, offset)

    def lines(self) -> Iterator[_Line]:
        """Yield the whole lines of the file's end, in order."""
        end = os.fstat(self._fd).st_size
        at = max(0, end - TAIL)
        rest, skip = b"", at > 0
        while at + len(rest) < end:
            data = os.pread(self._fd, min(_BLOCK, end - at - len(rest)), at + len(rest))
            if not data:
                return
            block = rest + data
            cut = block.rfind(b"\n") + 1
            offset = at
            for raw in block[:cut].split(b"\n")[:-1]:
                if not skip and raw:
                    yield _Line(offset, raw)
                skip = False
                offset += len(raw) + 1
            at, rest = at + cut, block[cut:]
            if len(rest) > _LONGEST:
                at, rest, skip = at + len(rest), b"", True


def _head(raw: bytes) -> Json:
    """Return the fields of an event in front of its record."""
    cut = raw.find(_DATA, 0, _NEAR)
    try:
        found = orjson.loads(raw[:cut] + b"}") if cut > 0 else orjson.loads(raw)
    except orjson.JSONDecodeError:
        if cut <= 0:
            return {}
        try:
            found = orjson.loads(raw)
        except orjson.JSONDecodeError:
            return {}
    return found if isinstance(found, dict) else {}


def _count(numbers: dict[str, int], what: str, name: Any) -> None:
    """Note the number in a name that a recorder made: `step-12`, `step-12-1a2b3c4d`."""
    if not isinstance(name, str) or not name.startswith(f"{what}-"):
        return
    number = name[len(what) + 1 :].partition("-")[0].partition("~")[0]
    if number.isascii() and number.isdigit() and len(number) < 10:
        numbers[what] = max(numbers.get(what, 0), int(number))


# -- a window ------------------------------------------------------------------------------------------------


def _window(file: _File, thread: _Thread) -> list[Row]:
    """Return the blocks of the last window that went to the model."""
    chain: list[Json] = []
    wanted: str | None = None
    lines = thread.assemblies
    for index in range(len(lines) - 2, -1, -2):
        record = orjson.loads(file.read(lines[index], lines[index + 1]))["data"]
        if record.get("target") != vocab.MODEL or (wanted and record["assembly_id"] != wanted):
            continue
        chain.append(record)
        wanted = _marks(record).get("base")
        if wanted is None:
            return _rows(file, thread, _blocks(chain[::-1]))
        if len(chain) >= _LINKS:
            break
    return []  # it began before the part of the file that is read


def _marks(record: Json) -> Json:
    marks = (record.get("metadata") or {}).get("ctxctl")
    return marks if isinstance(marks, dict) else {}


def _blocks(chain: list[Json]) -> list[Json]:
    blocks: list[Json] = []
    for record in chain:
        given, marks = record["ordered_blocks"], _marks(record)
        if "base" not in marks:
            blocks = list(given)
            continue
        at = 0
        made: list[Json] = []
        taken = 0
        for start, removed, inserted in marks["splices"]:
            made += blocks[at:start]
            made += given[taken : taken + inserted]
            at, taken = start + removed, taken + inserted
        blocks = made + blocks[at:]
    return blocks


def _rows(file: _File, thread: _Thread, blocks: list[Json]) -> list[Row]:
    refs = [(block, block["item_refs"][0]) for block in blocks if block.get("item_refs")]
    # Where the block is not named after its item, it is unknown which part of the ref is the version.
    named = [(block, ref, str(block.get("block_id"))) for block, ref in refs]
    kinds = _kinds(file, thread, {item for _, _, item in named})
    return [
        (Block(ref, item, str(block.get("role") or "")), kinds.get(item, "custom"))
        for block, ref, item in named
        if ref == item or ref.startswith(f"{item}@")
    ]


def _kinds(file: _File, thread: _Thread, wanted: set[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    lines = thread.items
    for index in range(len(lines) - 2, -1, -2):
        if len(found) == len(wanted):
            break
        head = file.read(lines[index], min(lines[index + 1], _NEAR))
        start = max(head.find(_DATA), 0)
        item, kind = _ITEM.search(head, start), _KIND.search(head, start)
        if item is None or kind is None:
            continue
        name = orjson.loads(b'"' + item[1] + b'"')
        if name in wanted:
            found.setdefault(name, kind[1].decode("utf-8", "replace"))
    return found
