"""The requests of a foreign capture with their bills, from the importer's events alone.

Nothing is replayed and no text is counted: that costs most of a reading, and a bill rests on neither.  A step
made here has its place, its model, its time, its bill and the totals that are stated with it; its window, its
changes and its cache's misses are empty.  So it may only be asked what it was billed.

Events are placed by the engine's own tracker.  Where a bill, or a problem that a replay reports, rests on
more than that (a partial output is priced as counted), the answer is None: the capture is to be read whole.
`tests/corpus/test_bills_of_captures.py` compares both readings of every capture.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from ctxctl.engine.replay.step_tracker import EventPlace, StepTracker, ThreadKey
from ctxctl.importers.capture import open_capture
from ctxctl.model import vocab
from ctxctl.model.event import Event
from ctxctl.model.problem import Problem
from ctxctl.model.records import Assembly, Compaction, Ended, Injection, Record, Totals, Usage
from ctxctl.model.results import Cache, Counts, Ledger, Step, UsageView, Window
from ctxctl.model.terms import Stated
from ctxctl.session.first_prompt import FirstPrompt
from ctxctl.trace.build import BUILDERS, assembly, injection
from ctxctl.trace.coerce import Fields, parse_json
from ctxctl.trace.depth import DEPTH_LIMIT, may_nest_deeper
from ctxctl.trace.source import Source

if TYPE_CHECKING:
    from ctxctl.ingest.declaration import Format

_AS_RECORDED: Final = "recorded"
_CALIBRATIONS: Final = frozenset(("saved", "shipped", "none"))
"""Those of which opening a capture tells no error, and asks for no pass of its own."""
_RECORDS: Final = frozenset(
    (vocab.COMPACTION_COMPLETED, vocab.USAGE_REPORTED, vocab.TOTAL_STATED, vocab.SESSION_ENDED)
)
"""Events whose records are looked at, besides assemblies and injections."""
_UNCERTAIN: Final = frozenset((vocab.SELECTION_COMPLETED, vocab.REDACTION_APPLIED, vocab.RECORD_DROPPED))
"""Events of which more depends than is known here: a model, what may be shown, a problem."""
_SHAPES_FRAME: Final = frozenset(
    (
        vocab.ITEM_ADDED, vocab.ITEM_UPDATED, vocab.ITEM_REMOVED, vocab.SUMMARY_CREATED, vocab.BUDGET_APPLIED,
        vocab.ASSEMBLY_CREATED, vocab.INJECTION_APPLIED, vocab.COMPACTION_STARTED, vocab.COMPACTION_COMPLETED,
    )
)  # fmt: skip
"""Events that a replay reports where they name a step that is sealed."""
_PROMPTS: Final = frozenset(
    (vocab.ITEM_ADDED, vocab.ITEM_UPDATED, vocab.SUMMARY_CREATED, vocab.ASSEMBLY_CREATED)
)
"""Events that tell a turn's prompt."""
_SHOWN: Final = frozenset((None, "none", "raw", "not_redacted", "unredacted"))
"""States of an item of which nothing was redacted."""
_LARGE: Final = 20_000
_COPIES: Final = 64
"""Placements of a window, and copies of an item that has several versions, from which on a replay may leave
work undone and report it (`engine.replay.window_mode`, `.stale_copies`)."""
_NO_WINDOW: Final = Window(None, None, None, 0, None, None, 0, {})
_NO_LEDGER: Final = Ledger(0, 0, 0, 0, None, 0, 0)


class BilledSteps(NamedTuple):
    """What is known of a capture by its bills."""

    format: str
    steps: list[Step]
    """In the order in which they begin."""
    turns: int
    prompt: str | None
    """The first prompt; None where it was not asked for, or there is none."""
    problems: list[Problem]
    """As `Inspector.problems`, once the capture was replayed."""
    findings: int
    """As `Inspector.finding_count`."""


def billed_steps(
    path: str, format_name: str, *, target: str, model: str | None, encoding: str | None, policy: str | None,
    calibration: str, learned: str, prompt: bool = False,
) -> BilledSteps | None:  # fmt: skip
    """A capture's requests as they were billed; None where only the whole reading is sure of them.

    Takes what `Inspector.open` takes, and whether the first prompt is asked for too.  Raises what
    `open_capture` raises.
    """
    if (target, model, encoding) != (vocab.MODEL, None, None):
        return None
    if policy not in (None, _AS_RECORDED) or calibration not in _CALIBRATIONS:
        return None
    with open_capture(path, format_name) as capture:
        source, importer = capture
        if importer is None or not _is_plain(importer, policy):
            return None
        from ctxctl.importers.registry import capture_events
        from ctxctl.session.learned.choice import choose_set

        if choose_set(importer.name, source, learned) is not None:
            return None
        problems: list[Problem] = []
        reader = _Reader(FirstPrompt() if prompt else None)
        try:
            reader.read(capture_events(importer, source, problems.append))
        except _UncertainError:
            return None
        first = None if reader.prompt is None else reader.prompt.text
        notes = sum(problem.is_note for problem in problems)
        faults = source.problems if isinstance(source, Source) else ()
        every = sorted([*problems, *faults])
        return BilledSteps(importer.name, reader.steps(), reader.turns, first, every, len(every) - notes)


def _is_plain(importer: Format, policy: str | None) -> bool:
    """Whether this package's own importer makes the events, and they are replayed as they are recorded.

    Plug-ins also hand on events that others made, which a writer of traces may refuse or put right.
    """
    from ctxctl.importers.table import TABLE

    own = any(entry.name == importer.name and not entry.bundled for entry in TABLE)
    return own and (policy or importer.default_policy) == _AS_RECORDED


class _UncertainError(Exception):
    """More is to be known than the bills."""


class _Open:
    """A step that is open: its place, and what was said of its request so far."""

    __slots__ = ("number", "stated", "step", "step_id", "time", "turn", "turn_id", "usage")

    def __init__(self, number: int, place: EventPlace, time: str | None) -> None:
        cursor = place.cursor
        self.number = number
        self.turn, self.step, self.turn_id, self.step_id = (
            cursor.turn, cursor.step, cursor.turn_id, cursor.step_id,
        )  # fmt: skip
        self.time = time if time != vocab.NO_TIME else None
        self.usage: Usage | None = None
        self.stated: tuple[Stated, ...] = ()


class _Thread:
    """A thread: the engine's `ThreadState`, as far as bills go."""

    __slots__ = ("assembly", "items", "key", "later", "model", "now", "open", "sealed", "several", "size")

    def __init__(self, key: ThreadKey) -> None:
        self.key = key
        self.open: _Open | None = None
        self.sealed = False
        self.model: str | None = None
        self.now: str | None = None
        """The model that the open step's records name up to its last assembly."""
        self.later: list[str | None] | None = None
        """The one named behind that, in a list; None: no assembly has come."""
        self.assembly: str | None = None
        self.items: dict[str, int] = {}
        """Items that came, and how many copies entered its windows."""
        self.several: set[str] = set()
        """Those that came more than once."""
        self.size = 0
        """Blocks of the last window."""

    def names(self, model: str | None) -> None:
        """A record that belongs to where the thread stands names a model."""
        if self.later is None:
            self.now = model or self.now
        else:
            self.later = [model or self.later[0]]

    def takes_later(self) -> None:
        """What came behind the last assembly is the open step's."""
        if self.later is not None:
            self.now = self.later[0] or self.now

    def opens(self, step: _Open) -> None:
        """Begin a step; what came behind the seal of the last one is its first part."""
        self.open, self.sealed = step, False
        self.now, self.later = (None if self.later is None else self.later[0]), None

    def assembles(self, record: Assembly) -> None:
        """An assembly ends the facts so far."""
        self.names(record.model)
        if not self.sealed:
            self.takes_later()
            self.later = [None]

    def injects(self, record: Injection) -> None:
        """An injection ends the step's facts, unless only the answer says what was read."""
        if self.sealed:
            return
        self.takes_later()
        self.later = None
        self.now = record.model or self.now
        if not record.awaits_answer:
            self.seal()

    def seal(self) -> None:
        """Nothing more belongs to the step but its bill."""
        self.sealed = True
        self.model = self.now or self.model
        self.later = self.later or [None]


class _Reader:
    """Takes the events of one capture; raises _UncertainError where they do not tell enough."""

    def __init__(self, prompt: FirstPrompt | None) -> None:
        self.turns = 0
        self.prompt = prompt
        self._tracker = StepTracker()
        self._threads: dict[ThreadKey, _Thread] = {}
        self._begun = 0
        self._done: dict[int, Step] = {}
        self._seen: set[int] = set()

    def steps(self) -> list[Step]:
        """All steps, in the order in which they begin."""
        return [self._done[number] for number in sorted(self._done)]

    def read(self, events: Iterable[dict[str, Any]]) -> None:
        """Take all events, and close what is open then."""
        for fields in events:
            self._take(fields)
        for thread in self._threads.values():
            self._close(thread, new_turn=True)

    def _take(self, fields: dict[str, Any]) -> None:
        kind, get = fields["event_type"], fields.get
        data: dict[str, Any] = fields["data"]
        if kind in _UNCERTAIN:
            raise _UncertainError
        event = Event(
            kind, get("event_id"), get("source"), get("time"), get("context_id"), get("session_id"),
            get("thread_id"), get("turn_id"), get("step_id"), _record(kind, data), 0, 0, 0,
            get("task_id"), get("run_id"), get("attempt_id"),
        )  # fmt: skip
        said = len(self._seen)
        self._seen.add(hash((event.session_id, event.event_id)))
        if len(self._seen) == said:  # a second event of that id would be ignored, and reported
            raise _UncertainError
        if kind in vocab.ABOUT_THE_TRACE:
            if kind == vocab.SESSION_ENDED:
                self._ended(event)
            return
        place = self._tracker.place(event)
        key = place.cursor.key
        thread = self._threads.get(key)
        if thread is None:
            thread = self._threads[key] = _Thread(key)
        if place.late:
            raise _UncertainError
        if place.opened:
            self._close(thread, new_turn=place.new_turn)
            self._begun += 1
            thread.opens(_Open(self._begun, place, event.time))
        elif thread.open is not None and (event.step_id is not None or event.turn_id is not None):
            thread.open.turn_id, thread.open.step_id = place.cursor.turn_id, place.cursor.step_id
            if thread.sealed and event.step_id is not None and kind in _SHAPES_FRAME:
                raise _UncertainError
        if self.prompt is not None and kind in _PROMPTS and self.prompt.looks_at(key):
            self._look(self.prompt, thread, kind, data)
        if event.record is not None:
            self._heard(thread, event.record, data)
        elif kind in _SHAPES_FRAME:
            _item(thread, kind, data)

    def _look(self, prompt: FirstPrompt, thread: _Thread, kind: str, data: dict[str, Any]) -> None:
        """Look for the first prompt, which stands in what the main thread's requests add."""
        if kind != vocab.ASSEMBLY_CREATED:
            prompt.item(data)
        elif data["target"] == vocab.MODEL and thread.open is not None:
            if thread.sealed:  # the next request's
                raise _UncertainError
            prompt.assembled(thread.open.turn, thread.open.step, data["ordered_blocks"])
        if not prompt.is_sure:
            raise _UncertainError

    def _heard(self, thread: _Thread, record: Record, data: dict[str, Any]) -> None:
        if isinstance(record, Assembly):
            if record.target == vocab.MODEL:
                if record.base is not None and record.base != thread.assembly:
                    raise _UncertainError
                thread.assembly = record.assembly_id
                _window(thread, data)
                thread.assembles(record)
        elif isinstance(record, Injection):
            if record.target == vocab.MODEL:
                thread.injects(record)
        elif isinstance(record, Compaction):
            marks = record.metadata.get("ctxctl")
            if isinstance(marks, dict) and "request" in marks:  # its summary's price may rest on its tokens
                raise _UncertainError
        elif thread.open is not None:
            if isinstance(record, Totals):
                thread.open.stated += record.totals
            elif isinstance(record, Usage):
                thread.open.usage = record

    def _ended(self, event: Event) -> None:
        for cursor in self._tracker.ended(event):
            thread = self._threads[cursor.key]
            self._close(thread, new_turn=True)
            if isinstance(event.record, Ended) and event.record.final:
                del self._threads[cursor.key]

    def _close(self, thread: _Thread, *, new_turn: bool) -> None:
        one, usage = thread.open, None if thread.open is None else thread.open.usage
        if one is None:
            return
        if usage is None or not usage.input_tokens or usage.output_is_partial:
            raise _UncertainError  # its size is expected from counted texts, or its answer is counted
        if self.prompt is not None and self.prompt.looks_at(thread.key):
            self.prompt.closed(one.turn, one.step)
        if self.prompt is not None and not self.prompt.is_sure:
            raise _UncertainError
        if not thread.sealed:
            thread.seal()
        thread.model = usage.model or thread.model
        self._done[one.number] = _step(thread, one, usage)
        self.turns += new_turn
        if new_turn:
            thread.open = None


def _step(thread: _Thread, one: _Open, usage: Usage) -> Step:
    """A request with its bill; nothing of its window is known."""
    total = usage.terms.stated_total_usd
    key = thread.key
    try:
        orjson.dumps((key.session, key.thread, one.turn_id, one.step_id, one.time, thread.model))
    except orjson.JSONEncodeError:  # a trace has another text in place of what is none
        raise _UncertainError from None
    return Step(
        key.session, key.thread, one.turn, one.step, one.turn_id, one.step_id, one.time, vocab.MODEL,
        thread.model, "window", False, "none", "injected", _NO_WINDOW, _NO_LEDGER, Counts(), (), {},
        Cache(None, None, usage.cached_tokens, usage.cache_write_tokens, usage.cache_write_1h_tokens),
        UsageView(
            usage.input_tokens, usage.cached_tokens, usage.output_tokens, 0, None, provider=usage.provider,
            reported_reasoning=usage.reasoning_tokens, terms=usage.terms,
        ),
        stated=one.stated if total is None else (*one.stated, Stated(usd=total)),
    )  # fmt: skip


def _item(thread: _Thread, kind: str, data: dict[str, Any]) -> None:
    """An item comes or goes: a replay reports one that goes and never came."""
    if data.get("redaction_state") not in _SHOWN:
        raise _UncertainError
    item = data.get("item_id")
    if kind == vocab.ITEM_REMOVED:
        if item not in thread.items:
            raise _UncertainError
    elif isinstance(item, str):
        if item in thread.items:
            thread.several.add(item)
        if thread.items.setdefault(item, 0) >= _COPIES:
            raise _UncertainError


def _window(thread: _Thread, data: dict[str, Any]) -> None:
    """A request's window comes: a replay may not work out one that is too large."""
    splices, blocks = data["metadata"]["ctxctl"].get("splices"), data["ordered_blocks"]
    kept = 0 if splices is None else thread.size - sum(removed for _, removed, _ in splices)
    thread.size = kept + len(blocks)
    for block in blocks:
        name = block["block_id"]
        if name not in thread.items:  # of an item that never came
            raise _UncertainError
        thread.items[name] += 1
        if thread.items[name] >= _COPIES and name in thread.several:
            raise _UncertainError
    if thread.size > _LARGE:
        raise _UncertainError


def _record(kind: str, data: dict[str, Any]) -> Record | None:
    """The record of an event as a reader of the imported trace has it; blocks and splices are left out."""
    if kind == vocab.ASSEMBLY_CREATED:
        marks = {name: value for name, value in data["metadata"]["ctxctl"].items() if name != "splices"}
        named = {name: value for name, value in data.items() if name != "ordered_blocks"}
        return assembly(Fields({**named, "metadata": {"ctxctl": marks}}, _fault), ())
    if kind == vocab.INJECTION_APPLIED:
        return injection(Fields(data, _fault))
    if kind not in _RECORDS:
        return None
    try:
        raw = orjson.dumps(data)
    except orjson.JSONEncodeError:
        raise _UncertainError from None
    return BUILDERS[kind](Fields(parse_json(raw), _fault, shallow=not may_nest_deeper(DEPTH_LIMIT, raw)))


def _fault(_slug: str, _key: str, _message: str) -> None:
    """A field that does not fit is a problem of the imported trace."""
    raise _UncertainError
