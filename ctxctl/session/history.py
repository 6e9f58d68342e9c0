"""What became of every item of a trace, in some bytes a change: what `why` looks a life up in.

It is written while a trace is replayed, is kept beside the step index, and takes some 47 bytes a row.  A row
is a change of one item in one thread's frame; a run of steps in which an item was left out for the same
reason is one row.  What was said of a change (scores, limits) is read from the step's own lines again.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

import msgspec

from ctxctl.engine.replay.frames import FrameState
from ctxctl.engine.replay.run import Engine
from ctxctl.engine.replay.step_tracker import ThreadKey
from ctxctl.model.results import Change, Step, Turn
from ctxctl.model.vocab import CAUSES, LimitSource, UsedMethod

STATUSES: Final = ("added", "updated", "removed", "skipped", "omitted", "gone")
"""Of rows; `gone`: stale copies of an item that is not current have left, all if it holds nothing more."""
_FLAGS: Final = ("stale", "truncated", "moved", "rescored", "redacted", "carried-in", "derived-identity")
SIMULATED: Final = 1 << len(_FLAGS)
_CAUSE: Final = {name: number for number, name in enumerate(CAUSES, 1)}
_STATUS: Final = {name: number for number, name in enumerate(STATUSES)}
_BIT: Final = {name: 1 << number for number, name in enumerate(_FLAGS)}
ROWS: Final = {
    "item": "I", "status": "B", "cause": "B", "flags": "B", "first": "I", "last": "I", "count": "I",
    "tokens": "q", "held": "q", "line": "q", "before": "i",
}  # fmt: skip
ITEMS: Final = {
    "id": "I", "title": "I", "source": "I", "kind": "I", "thread": "I", "line": "q", "newest": "q",
    "visible": "B", "row": "i",
}  # fmt: skip
STEPS: Final = {
    "thread": "I", "used": "q", "cap": "q", "limit": "q", "reserved": "q", "billed": "q", "cached": "q",
    "written": "q", "written_1h": "q", "model": "I", "provider": "I", "day": "I", "basis": "I",
    "mode": "I", "flags": "B", "current": "I", "rows": "I",
    "recorded": "q", "method": "I", "source": "I", "note": "I", "threshold": "q", "line": "I", "error": "q",
}  # fmt: skip
TOLD_MISSING: Final = 1
INJECTED: Final = 2
SURFACE: Final = 4
UNRECORDED_KNOWN: Final = 8
"""How much was sent beside the record is known."""
NOT_KNOWN: Final = -1
_DAY: Final = 10


_State = tuple[
    list[str],
    list[tuple[str | None, str]],
    tuple[list[bytes], list[bytes], list[bytes]],
    list[tuple[int, dict[str, int]]],
    list[tuple[int, int]],
]
"""Strings, threads, the columns of rows, items and steps; by thread its stale copies, and its last step."""


class HistoryRow(NamedTuple):
    """One change of one item."""

    number: int
    item: int
    status: str
    cause: str | None
    flags: tuple[str, ...]
    simulated: bool
    first: int
    """Ordinal of the step."""
    last: int
    """Of a run of omissions, the ordinal of its last step; else the same."""
    steps: int
    """How many steps the run has."""
    tokens: int
    held: int
    """Tokens that all copies of the item hold behind the change."""
    line: int
    """Line of the item record; 0: never described."""


class ItemEntry(NamedTuple):
    """An item of one thread."""

    number: int
    item: str
    title: str | None
    source: str | None
    kind: str
    thread: int
    line: int
    """Line of its first record; 0: never described."""
    newest: int
    """Line of its last record that says something new."""
    visible: bool
    """The target can see it, by its last record."""


class StepRow(NamedTuple):
    """What is kept of a step; -1 and None: the trace does not say."""

    thread: int
    used: int
    """What was sent; how that is known is its `method`."""
    cap: int | None
    limit: int | None
    reserved: int | None
    billed: int | None
    cached: int | None
    written: int | None
    written_1h: int | None
    """How much of `written` was written for an hour."""
    model: str | None
    provider: str | None
    day: str | None
    basis: str
    mode: str
    flags: int
    current: int
    """Items that are current."""
    rows: int
    """Rows up to this step, its own included."""
    recorded: int
    """How much of `used` the frame holds."""
    method: UsedMethod
    source: LimitSource | None
    """Who says the limit."""
    note: str | None
    """How it was found, or why there is none."""
    threshold: int | None
    """Where the runtime compacts by itself, in tokens that are sent."""
    line: str | None
    """Where the rule of `threshold` is from."""
    error: int | None
    """Tokens by which nine of ten expected sizes are off at the most; None where the size is not expected."""

    @property
    def unrecorded(self) -> int | None:
        """What was sent beside the frame; None: not known."""
        return self.used - self.recorded if self.flags & UNRECORDED_KNOWN else None


class ItemHistory:
    """All rows of a trace in the order of its steps; one writer, and readers once it is finished."""

    def __init__(self) -> None:
        self.strings: list[str] = [""]
        self.threads: list[ThreadKey] = []
        self.rows = {name: array(code) for name, code in ROWS.items()}
        self.items = {name: array(code) for name, code in ITEMS.items()}
        self.steps = {name: array(code) for name, code in STEPS.items()}
        self._append_row = [column.append for column in self.rows.values()]
        self._append_step = [column.append for column in self.steps.values()]
        self.covered = 0
        """Bytes of the trace that it speaks of, once it is whole."""
        self._string: dict[str, int] = {"": 0}
        self._thread: dict[ThreadKey, int] = {}
        self._item: dict[tuple[int, str], int] = {}
        self._stale: dict[int, dict[str, int]] = {}
        self._last_step: dict[int, int] = {}

    def restored(self, covered: int) -> ItemHistory:
        """This one, with its columns read from disk, ready to be asked."""
        self.covered = covered
        self._string = {text: number for number, text in enumerate(self.strings)}
        self._thread = {key: number for number, key in enumerate(self.threads)}
        ids, threads = self.items["id"], self.items["thread"]
        self._item = {(threads[number], self.strings[ids[number]]): number for number in range(len(ids))}
        return self

    # Writing

    def state(self) -> bytes:
        """All that `going_on` needs, before it is finished."""
        tables = [
            [column.tobytes() for column in table.values()] for table in (self.rows, self.items, self.steps)
        ]
        stale = [(thread, known) for thread, known in self._stale.items()]
        return msgspec.msgpack.encode(
            (self.strings, self.threads, tables, stale, list(self._last_step.items()))
        )

    @classmethod
    def going_on(cls, state: bytes) -> ItemHistory:
        """A history to write on with; raises ValueError where the state is none."""
        strings, threads, tables, stale, last_step = msgspec.msgpack.decode(state, type=_State)
        made = cls()
        made.strings, made.threads = strings, [ThreadKey(*key) for key in threads]
        for table, columns in zip((made.rows, made.items, made.steps), tables, strict=True):
            for column, data in zip(table.values(), columns, strict=True):
                column.frombytes(data)
        made._stale, made._last_step = dict(stale), dict(last_step)
        return made.restored(0)

    def noting(self, done: Iterable[Step | Turn], engine: Engine) -> Iterator[Step | Turn]:
        """Pass results on, each noted as it is taken: the engine is then at that very step."""
        for result in done:
            if isinstance(result, Step):
                self.note(result, engine)
            yield result

    def note(self, step: Step, engine: Engine) -> None:
        """Take in what changed at a step, which the engine has just finished."""
        key = ThreadKey(step.session, step.thread)
        thread = self._thread.get(key)
        if thread is None:
            thread = self._thread[key] = len(self.threads)
            self.threads.append(key)
        ordinal = len(self.steps["thread"])
        for change in step.changes:
            self._change(thread, ordinal, change)
        state = engine.threads[key].frame
        if step.ledger.reweighed:
            self._reweighed(thread, ordinal, state)
        if step.mode == "append":
            self._stale_copies(thread, ordinal, state)
        self._last_step[thread] = ordinal
        window, usage, cache = step.window, step.usage, step.cache
        flags = bool(step.annotations.missing) * TOLD_MISSING | (step.layer == "injected") * INJECTED
        flags |= (step.stages["surface"].verdict != "not_recorded") * SURFACE
        flags |= (window.unrecorded is not None) * UNRECORDED_KNOWN
        text = self._text
        values = (
            thread, window.used, _or_not(window.cap), _or_not(window.limit), _or_not(window.reserved),
            _or_not(usage.reported_input if usage is not None else None),
            _or_not(cache.reported_cached), _or_not(cache.reported_cache_write),
            _or_not(cache.reported_cache_write_1h), text(step.model),
            text(usage.provider if usage is not None else None), text((step.time or "")[:_DAY]),
            text(step.basis), text(step.mode), flags, len(state.current), len(self.rows["item"]),
            window.recorded, text(window.used_method), text(window.limit_source), text(window.limit_note),
            _or_not(window.threshold), text(window.threshold_source), _or_not(window.used_error),
        )  # fmt: skip
        for append, value in zip(self._append_step, values, strict=True):
            append(value)

    def _reweighed(self, thread: int, ordinal: int, state: FrameState) -> None:
        """Rows for items that only have another size, in the encoding of another model."""
        rows = self.rows
        for item, p in {p.item: p for p in state.placements if not p.stale}.items():
            entry = self._entry(thread, item)
            row = self.items["row"][entry]
            if row < 0 or rows["last"][row] != ordinal:
                flags = rows["flags"][row] if row >= 0 else 0
                self._row(entry, ordinal, "skipped", 0, flags, p.tokens, state.held.get(item, 0), p.line)

    def _stale_copies(self, thread: int, ordinal: int, state: FrameState) -> None:
        """Rows for items whose stale copies have come or gone: where nothing else did, no change says so."""
        known, stale = self._stale.get(thread, {}), state.stale_copies
        if known == stale:
            return
        rows = self.rows
        for item in dict.fromkeys((*known, *stale)):
            if known.get(item) == stale.get(item):
                continue
            entry = self._entry(thread, item)
            row = self.items["row"][entry]
            if row >= 0 and rows["last"][row] == ordinal:
                continue
            status = "skipped" if item in state.current else "gone"
            tokens, line = (rows["tokens"][row], rows["line"][row]) if row >= 0 else (0, 0)
            flags = _BIT["stale"] if item in stale else 0
            self._row(entry, ordinal, status, 0, flags, tokens, state.held.get(item, 0), line)
        self._stale[thread] = dict(stale)

    def _change(self, thread: int, ordinal: int, change: Change) -> None:
        item = self._item.get((thread, change.item))
        if item is None:
            item = self._entry(thread, change.item)
            self._describe(item, change.title, change.source, change.kind)
        flags = sum(_BIT.get(flag, 0) for flag in change.flags) if change.flags else 0
        if change.provenance == "simulated":
            flags |= SIMULATED
        cause = _CAUSE.get(change.cause or "", 0)
        if change.status == "omitted" and self._runs_on(item, thread, ordinal, flags):
            return
        self._row(item, ordinal, change.status, cause, flags, change.tokens, change.in_window, change.line)

    def _runs_on(self, item: int, thread: int, ordinal: int, flags: int) -> bool:
        """Whether an item was left out at the thread's step before, too; that row then goes on."""
        row, rows = self.items["row"][item], self.rows
        if row < 0 or rows["status"][row] != _STATUS["omitted"] or rows["flags"][row] != flags:
            return False
        if rows["last"][row] != self._last_step.get(thread):
            return False
        rows["last"][row] = ordinal
        rows["count"][row] += 1
        return True

    def _row(
        self, item: int, ordinal: int, status: str, cause: int, flags: int, tokens: int, held: int, line: int
    ) -> None:
        number = len(self.rows["item"])
        before = self.items["row"][item]
        values = (item, _STATUS[status], cause, flags, ordinal, ordinal, 1, tokens, held, line, before)
        for append, value in zip(self._append_row, values, strict=True):
            append(value)
        self.items["row"][item] = number

    def _entry(self, thread: int, item: str) -> int:
        number = self._item.get((thread, item))
        if number is None:
            number = self._item[thread, item] = len(self.items["id"])
            for name, value in zip(ITEMS, (self._text(item), 0, 0, 0, thread, 0, 0, 1, -1), strict=True):
                self.items[name].append(value)
        return number

    def _describe(self, item: int, title: str | None, source: str | None, kind: str) -> None:
        for name, text in (("title", title), ("source", source), ("kind", kind)):
            if text:
                self.items[name][item] = self._text(text)

    def _text(self, text: str | None) -> int:
        number = self._string.get(text or "")
        if number is None:
            number = self._string[text or ""] = len(self.strings)
            self.strings.append(text or "")
        return number

    def finish(self, engine: Engine, covered: int) -> ItemHistory:
        """Take in, at the end of the trace, the items that no frame ever had: the engine knows them."""
        for key, state in engine.threads.items():
            thread = self._thread.get(key)
            if thread is None:
                continue
            for name, version in state.book.newest.items():
                item = self._entry(thread, name)
                record = version.record
                self._describe(item, record.title, record.source, record.context_kind)
                oldest = version
                while oldest.older is not None:
                    oldest = oldest.older
                self.items["line"][item] = oldest.line
                self.items["newest"][item] = version.line
                self.items["visible"][item] = version.visible
        self.covered = covered
        return self

    # Asking

    def __len__(self) -> int:
        return len(self.steps["thread"])

    def thread_of(self, ordinal: int) -> int:
        """Number of the thread that a step is of."""
        return self.steps["thread"][ordinal]

    def step(self, ordinal: int) -> StepRow:
        """What is kept of a step."""
        raw: dict[str, Any] = {name: column[ordinal] for name, column in self.steps.items()}
        for name in (
            "cap",
            "limit",
            "reserved",
            "billed",
            "cached",
            "written",
            "written_1h",
            "threshold",
            "error",
        ):
            raw[name] = None if raw[name] == NOT_KNOWN else raw[name]
        for name in ("model", "provider", "day", "basis", "mode", "method", "source", "note", "line"):
            raw[name] = self.strings[raw[name]] or None
        return StepRow(**raw)

    def find(self, thread: int, item: str) -> ItemEntry | None:
        """The item of a thread that has exactly this id."""
        number = self._item.get((thread, item))
        return None if number is None else self.entry(number)

    def entry(self, number: int) -> ItemEntry:
        """An item by its number."""
        raw = {name: column[number] for name, column in self.items.items()}
        text = self.strings
        return ItemEntry(
            number, text[raw["id"]], text[raw["title"]] or None, text[raw["source"]] or None,
            text[raw["kind"]] or "custom", raw["thread"], raw["line"], raw["newest"], bool(raw["visible"]),
        )  # fmt: skip

    def entries(self) -> Iterator[ItemEntry]:
        """All items, those of the first thread's first step first."""
        return map(self.entry, range(len(self.items["id"])))

    def fitting(self, thread: int, field: str, fits: Callable[[str], bool]) -> list[int]:
        """Numbers of a thread's items whose `id`, `title` or `source` is a text that fits."""
        texts = {number for number, text in enumerate(self.strings) if number and fits(text)}
        if not texts:
            return []
        pairs = zip(self.items[field], self.items["thread"], strict=True)
        return [n for n, (text, of) in enumerate(pairs) if of == thread and text in texts]

    def row(self, number: int) -> HistoryRow:
        """A row by its number."""
        raw = {name: column[number] for name, column in self.rows.items()}
        flags = raw["flags"]
        return HistoryRow(
            number, raw["item"], STATUSES[raw["status"]], CAUSES[raw["cause"] - 1] if raw["cause"] else None,
            tuple(name for name, bit in _BIT.items() if flags & bit), bool(flags & SIMULATED),
            raw["first"], raw["last"], raw["count"], raw["tokens"], raw["held"], raw["line"],
        )  # fmt: skip

    def life(self, item: int, until: int | None = None) -> list[HistoryRow]:
        """The rows of an item that begin at a step or before it, the first one first."""
        found = []
        number, before, first = self.items["row"][item], self.rows["before"], self.rows["first"]
        while number >= 0:
            if until is None or first[number] <= until:
                found.append(self.row(number))
            number = before[number]
        found.reverse()
        return found

    def frame(self, ordinal: int) -> dict[int, HistoryRow]:
        """The items that are current at a step, with the row that says so; in the order of those rows."""
        thread = self.thread_of(ordinal)
        stop = self.steps["rows"][ordinal]
        last = dict(zip(self.rows["item"][:stop], range(stop), strict=True))
        status, threads = self.rows["status"], self.items["thread"]
        out = (_STATUS["removed"], _STATUS["omitted"], _STATUS["gone"])
        return {
            item: self.row(number)
            for item, number in last.items()
            if threads[item] == thread and status[number] not in out
        }


def _or_not(value: int | None) -> int:
    return NOT_KNOWN if value is None else value
