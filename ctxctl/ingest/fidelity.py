"""Measures, on each import, how often a capture told each fact of context assembly, and at which level.

What a format can tell at best is declared (`about.About`); the measurement counts what one capture told.
Where the capture has something that looks like the fact, and the importer did not take it, the fact is
`not understood`: only the measurement can say so.

At the end of an import, `measure` looks in the file for facts that the import lacks, and reports what was not
understood.  `UnchangedWindows` reports an import in which no request differs from the first, though tools
were called in between.  `ProblemLimit` bounds what an import says of a file that is wrong on every line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

import orjson

from ctxctl.ingest.about import FACT_NAMES, FACTS, IN_USAGE, About, Level
from ctxctl.ingest.build import Json
from ctxctl.ingest.folder import Folder
from ctxctl.ingest.lines import Report, ignore_problem, lines
from ctxctl.ingest.parents import CIRCLE, SECOND
from ctxctl.ingest.second_look import SecondLook, Sighting, look_again
from ctxctl.ingest.understood import Understood
from ctxctl.model import vocab
from ctxctl.model.problem import Problem
from ctxctl.model.terms import totals_of
from ctxctl.trace.source import Source

_OF_KIND: Final = {
    "system_prompt": "system_prompt",
    "developer_instruction": "system_prompt",
    "tool_definition": "tool_definitions",
    "user_message": "messages",
    "assistant_message": "messages",
    "tool_call": "messages",
    "tool_result": "messages",
    "reasoning": "reasoning",
    "thread_summary": "summary",
}
_STANDING: Final = ("system_prompt", "tool_definitions")
"""Facts that every request should have: counted by request, the others by occurrence."""
SOUGHT: Final = ("system_prompt", "tool_definitions", "model", *IN_USAGE)
"""Facts that the file is looked through for, before it is said that they are not recorded."""
_OF_THE_FORMAT: Final = ("threads", "wrapper")
"""Facts that either every request of a format tells, or none."""


_OFFERED: Final = 10
"""Items of a surface that count as one placement: surfaces are whole, and each is but a name."""
_Facts = Iterable[tuple[str, Level]]
"""Facts that an event tells, each with how it is known."""


class Meter:
    """Counts over the events of one import how often each fact was native, derived, simulated or lacking.

    Nothing is counted as better than the format declares it.
    """

    def __init__(self, about: About, understood: Understood | None = None) -> None:
        self.requests = 0
        self.repeated = 0
        """How many more placements the assemblies have listed than items were told: what they list again."""
        self.branched = 0
        """Requests that left the conversation of the one before for an earlier place."""
        self.relisted = 0
        """Placements that these have listed, and the requests behind them."""
        self._left = False
        """Whether the last request was one of these."""
        self._about = about
        self._understood = understood or Understood(about.held_against)
        claims = about.claims
        self._of_the_format = tuple(
            fact for fact in _OF_THE_FORMAT if fact in claims and claims[fact].level is not Level.NOT_RECORDED
        )
        self._told: dict[tuple[Any, ...], int] = {}
        """How many events told what, since it was entered into the counts."""
        self._counts: dict[str, dict[str, int]] = {}
        self._beside: set[str] = set()
        """Facts that are recorded beside requests: the model that a bill names, counts of a stated total."""
        self._standing: dict[tuple[str | None, str | None], dict[str, Level]] = {}
        self._unsent: dict[str, dict[tuple[bool, bool], int]] = {}
        """By event type, how many assemblies or surfaces name their turn, and have a time."""
        self._handlers = self._routes()

    def _routes(self) -> dict[str, Callable[[Json, Json], None]]:
        return {
            vocab.ITEM_ADDED: self._item,
            vocab.ITEM_UPDATED: self._item,
            vocab.SURFACE_CREATED: self._surface,
            vocab.SURFACE_UPDATED: self._surface,
            vocab.SELECTION_COMPLETED: self._selection,
            vocab.BUDGET_APPLIED: self._budget,
            vocab.ASSEMBLY_CREATED: self._assembly,
            vocab.INJECTION_APPLIED: self._injection,
            vocab.COMPACTION_COMPLETED: self._compaction,
            vocab.USAGE_REPORTED: self._usage,
            vocab.TOTAL_STATED: self._stated,
        }

    def entered(self) -> Meter:
        """This, with all that was told so far entered into the counts: as data it can be kept so."""
        self._enter()
        return self

    def brought(self) -> None:
        """Go on, in another run than the one that began."""
        self._handlers = self._routes()

    def see(self, event: Json) -> None:
        """Take one event into account; it is not changed."""
        handler = self._handlers.get(event.get("event_type", ""))
        data = event.get("data")
        if handler is not None and isinstance(data, dict):
            handler(event, data)

    def measured(self, not_understood: Iterable[str] = ()) -> dict[str, dict[str, int]]:
        """By fact, in the order of `FACTS`: how often at which level.  Facts never met are left out.

        `system_prompt` and `tool_definitions` are counted by request, usage by request too; the other facts
        by occurrence.  `not recorded` counts the requests that lack a fact which every request has.

        Args:
            not_understood: Facts among `missing` that the file seems to hold nevertheless.
        """
        self._enter()
        if not self.requests:
            for known in self._standing.values():
                for fact, level in known.items():
                    self._add(fact, level)
            places = self._unsent.get(vocab.ASSEMBLY_CREATED) or self._unsent.get(vocab.SURFACE_CREATED, {})
            for (turned, timed), times in places.items():
                for fact, level in self._place(turned, timed):
                    self._add(fact, level, times)
        for fact in IN_USAGE:
            lacking = self.requests - sum(self._counts.get(fact, {}).values())
            if lacking > 0:
                self._add(fact, Level.IN_TOTALS if fact in self._beside else Level.NOT_RECORDED, lacking)
        for fact in not_understood:
            levels = self._counts.setdefault(fact, {})
            lacking = levels.pop(Level.NOT_RECORDED.value, 0)
            levels[Level.NOT_UNDERSTOOD.value] = lacking or max(1, self.requests)
        return {fact: self._counts[fact] for fact in FACT_NAMES if fact in self._counts}

    @property
    def empty(self) -> bool:
        """Whether nothing that a request holds was met, and no request."""
        self._enter()
        return not (self.requests or self._standing or "messages" in self._counts)

    def missing(self) -> tuple[str, ...]:
        """The facts of `SOUGHT` that no request has; without any request, those that the format can
        record."""
        self._enter()
        told = {fact for fact, levels in self._counts.items() if set(levels) - {Level.NOT_RECORDED.value}}
        # What was announced anywhere was taken, even if no request has it.
        told |= {fact for known in self._standing.values() for fact in known}
        told |= self._beside
        if self.requests:
            return tuple(fact for fact in SOUGHT if fact not in told)
        claimed = {
            fact for fact, claim in self._about.claims.items() if claim.level is not Level.NOT_RECORDED
        }
        return tuple(fact for fact in ("messages", *SOUGHT) if fact in claimed - told)

    def beside(self, facts: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """By fact, the keys that its claim knows to be something else."""
        return {fact: self._about.claim(fact).beside for fact in facts}

    def _count(self, *tells: Any) -> None:
        """Count an event by what it tells; events that tell the same are entered together (`_enter`)."""
        self._told[tells] = self._told.get(tells, 0) + 1

    def _enter(self) -> None:
        """Enter what was counted, in the order in which each was told first."""
        for (enter, *tells), times in self._told.items():
            for fact, level in enter(self, *tells):
                self._add(fact, level, times)
        self._told.clear()

    def _add(self, fact: str, level: Level, count: int = 1) -> None:
        if level is Level.NATIVE:
            best = self._about.claim(fact).level
            level = level if best is Level.NOT_RECORDED else best
        found = self._counts.setdefault(fact, {})
        found[level.value] = found.get(level.value, 0) + count

    def _item(self, event: Json, data: Json) -> None:
        self.repeated -= 1
        marks = _marks(data)
        level = _level(marks)
        kind = data.get("context_kind")
        fact = _OF_KIND.get(kind, "reminders") if isinstance(kind, str) else "reminders"
        if data.get("content_mode") == "opaque" and "content" not in data:
            level = Level.NOT_RECORDED
        standing = fact in _STANDING
        if standing:
            thread = (event.get("session_id") or None, event.get("thread_id"))
            self._standing.setdefault(thread, {})[fact] = level
        self._count(
            Meter._of_item, None if standing else fact, level, marks.get("identity") == "derived",
            bool(data.get("source_refs")), marks.get("truncated") is True,
        )  # fmt: skip

    def _of_item(self, fact: str | None, level: Level, named: bool, sourced: bool, cut: bool) -> _Facts:
        if fact is not None:
            yield fact, level
        yield "item_ids", Level.DERIVED if named else Level.NATIVE
        if sourced:
            yield "sources", level if level is not Level.NOT_RECORDED else Level.NATIVE
        if cut:
            yield "truncation", level

    def _surface(self, event: Json, data: Json) -> None:
        refs = data.get("available_item_refs")
        if isinstance(refs, list):
            self.repeated += len(refs) // _OFFERED
        self._count(Meter._at_one_level, _level(_marks(data)), "candidates")
        self._note_place(event)

    def _selection(self, _event: Json, data: Json) -> None:
        omits = data.get("omitted_items") or data.get("omitted_refs") or data.get("omitted_item_refs")
        facts = ("selected", "omitted") if omits else ("selected",)
        self._count(Meter._at_one_level, _level(_marks(data)), *facts)

    def _budget(self, _event: Json, data: Json) -> None:
        facts = []
        if any(data.get(name) is not None for name in ("max_tokens", "max_bytes", "max_items")):
            facts.append("limit")
        if data.get("reserved_tokens") is not None:
            facts.append("reserved")
        if data.get("truncation_records"):
            facts.append("truncation")
        self._count(Meter._at_one_level, _level(_marks(data)), *facts)

    def _at_one_level(self, level: Level, *facts: str) -> _Facts:
        return ((fact, level) for fact in facts)

    def _assembly(self, event: Json, data: Json) -> None:
        blocks = data.get("ordered_blocks")
        if isinstance(blocks, list):
            self.repeated += len(blocks)
        if data.get("target", vocab.MODEL) == vocab.MODEL:
            marks = _marks(data)
            branched = marks.get("cause") == "branched"
            if (branched or self._left) and isinstance(blocks, list):
                self.relisted += len(blocks)
            self.branched += branched
            self._left = branched
            self._count(Meter._of_assembly, _level(marks), "model" in marks)
            if "client_version" in marks:
                self._understood.version(marks["client_version"], _line(event))
            self._note_place(event)

    def _of_assembly(self, level: Level, named: bool) -> _Facts:
        yield "order", level
        if named:
            yield "model", Level.NATIVE

    def _injection(self, event: Json, data: Json) -> None:
        if data.get("target", vocab.MODEL) != vocab.MODEL:
            return
        self.requests += 1
        marks = _marks(data)
        lacks = marks.get("lacks")
        lacking = [fact for fact in self._of_the_format if fact in lacks] if isinstance(lacks, list) else ()
        known = self._standing.get((event.get("session_id") or None, event.get("thread_id")), {})
        self._count(
            Meter._of_injection, _level(marks), *_told_place(event), marks.get("turn") == "derived",
            tuple(lacking), *(known.get(fact, Level.NOT_RECORDED) for fact in _STANDING),
        )  # fmt: skip

    def _of_injection(
        self, level: Level, turned: bool, timed: bool, derived: bool, lacking: tuple[str, ...], *known: Level
    ) -> _Facts:
        yield "requests", level
        yield from self._place(turned, timed, derived=derived)
        for fact in self._of_the_format:
            yield fact, Level.NOT_RECORDED if fact in lacking else Level.NATIVE
        yield from zip(_STANDING, known, strict=True)

    def _note_place(self, event: Json) -> None:
        """Remember a place, in case nothing tells of requests."""
        if not self.requests:
            found = self._unsent.setdefault(event["event_type"], {})
            place = _told_place(event)
            found[place] = found.get(place, 0) + 1

    def _place(self, turned: bool, timed: bool, *, derived: bool = False) -> _Facts:
        yield "turns", (Level.DERIVED if derived else Level.NATIVE) if turned else Level.NOT_RECORDED
        yield "times", Level.NATIVE if timed else Level.NOT_RECORDED

    def _compaction(self, _event: Json, data: Json) -> None:
        self._count(Meter._of_compaction, _level(_marks(data)), bool(data.get("summary_ref")))

    def _of_compaction(self, level: Level, summarised: bool) -> _Facts:
        yield "compaction", level
        yield "summary", Level.NATIVE if summarised else Level.NOT_RECORDED

    def _usage(self, _event: Json, data: Json) -> None:
        self._beside.update({"model"} if data.get("model") is not None else ())
        self._count(
            Meter._at_one_level, _level(_marks(data)), *(f for f in IN_USAGE if data.get(f) is not None)
        )

    def _stated(self, _event: Json, data: Json) -> None:
        self._beside.update(f for one in totals_of(data) for f in IN_USAGE if getattr(one, f) is not None)


def _line(event: Json) -> int:
    marks = event.get("metadata", {}).get("ctxctl", {})
    line = marks.get("source_line") if isinstance(marks, dict) else None
    return line if isinstance(line, int) else 0


def _told_place(event: Json) -> tuple[bool, bool]:
    return event.get("turn_id") is not None, event.get("time") not in (None, vocab.NO_TIME)


def _marks(data: Json) -> Json:
    metadata = data.get("metadata")
    marks = metadata.get("ctxctl") if isinstance(metadata, dict) else None
    return marks if isinstance(marks, dict) else {}


def _level(marks: Json) -> Level:
    if marks.get("simulated"):
        return Level.SIMULATED
    return Level.DERIVED if marks.get("derived") else Level.NATIVE


_ASKS: Final = {fact.name: fact.name.replace("_", " ") for fact in FACTS}


def measure(
    source: Source | Folder, meter: Meter, account: Understood, found: list[Problem], report: ProblemLimit
) -> Json:
    """Report what was not understood; return the fields of the event that says what the capture held of each
    fact.

    Where nothing was made of the capture, and the importer said why, that is enough.

    `found`: further problems of the import as a whole.  Problems: `not-understood`, `unknown-type`,
    `newer-version`, and those.
    """
    missing = tuple(fact for fact in meter.missing() if fact not in account.explained)
    seen = look_again(source, missing, meter.beside(missing)) if missing else SecondLook({}, 0, 0)
    told = [] if meter.empty and report.said_any else _by_place(seen)
    for problem in report.held():
        held_text = [problem.message, f"looked at {inventory(source)}"]
        held_text += [f"not understood: {', '.join(map(_named, seen.hits.values()))}"] * bool(seen.hits)
        report(Problem(problem.line, problem.byte, problem.slug, "; ".join(held_text)))
    for problem in (*account.problems(), *map(_not_understood, told), *found):
        report(problem)
    return {
        "requests": meter.requests,
        "facts": meter.measured(seen.hits),
        "understood": _account_fields(source, account, seen, missing),
    }


def _account_fields(
    source: Source | Folder, account: Understood, seen: SecondLook, missing: tuple[str, ...]
) -> Json:
    held = account.held
    return {
        "bytes": _size(source),
        "not_understood": account.bytes,
        "unknown_records": account.types(),
        "newer_version": account.newer,
        "held_against": held.newest or None if held is not None else None,
        "looked_for": [*missing],
        "looked_at": seen.looked if missing else None,
        "places": {
            fact: {"key": hit.key, "line": hit.line, "file": hit.file} for fact, hit in seen.hits.items()
        },
    }


def _by_place(seen: SecondLook) -> list[list[Sighting]]:
    """Group the hits by place: a bill that was not taken is one problem, and not one for each of its
    counts."""
    by: dict[tuple[str | None, str], list[Sighting]] = {}
    for hit in sorted(seen.hits.values(), key=lambda hit: (hit.file or "", hit.line)):
        object_of = hit.key.rpartition(".")[0] if hit.fact in IN_USAGE else hit.key
        by.setdefault((hit.file, object_of), []).append(hit)
    return [*by.values()]


def _not_understood(hits: list[Sighting]) -> Problem:
    first = hits[0]
    named = ", ".join(map(_named, hits))
    file = f"{first.file}: " if first.file is not None else ""
    message = f"{file}this looks like {named}, which was not taken from here: not understood"
    return Problem(first.line, first.byte, "not-understood", message)


def _named(hit: Sighting) -> str:
    return f"{_ASKS[hit.fact]} ({hit.key or 'the outermost list'}, line {hit.line:,})"


def _size(source: Source | Folder) -> int:
    """The bytes of the capture; of a directory, those of all its files."""
    if isinstance(source, Source):
        return source.size
    total = 0
    for name in source.files:
        try:
            total += Path(source.path, name).stat().st_size
        except OSError:
            continue
    return total


_MOST_LINES: Final = 2_000
_MOST_BYTES: Final = 4 << 20
_NAMED: Final = 8
_LONGEST: Final = 60
_KINDS: Final = ("type", "kind", "event", "event_type", "role")


def inventory(source: Source | Folder) -> str:
    """What was looked at, such as `3 records (system 1, result 2; keys type, usage)`.

    Of a long file only the beginning is counted, and the words say so.
    """
    if isinstance(source, Folder):
        return f"{len(source.files):,} files"
    records, whole = _records(source)
    if not records:
        return f"{source.size:,} bytes that are no JSON"
    kinds = Counter(kind for kind in map(_kind, records) if kind)
    keys = dict.fromkeys(key[:_LONGEST] for record in records for key in record)
    told = [", ".join(f"{kind} {count:,}" for kind, count in kinds.most_common(_NAMED))] if kinds else []
    told.append(f"keys {', '.join(islice(keys, _NAMED))}{', …' if len(keys) > _NAMED else ''}")
    several = "record" if len(records) == 1 else "records"
    return f"{'' if whole else 'the first '}{len(records):,} {several} ({'; '.join(told)})"


def _records(source: Source) -> tuple[list[dict[str, Any]], bool]:
    """The objects of the lines, or of the document, and whether that is all of them."""
    data = source.read(0, _MOST_BYTES)
    if len(data) == source.size and (found := _loaded(data)) is not None:
        return [one for one in (found if isinstance(found, list) else [found]) if isinstance(one, dict)], True
    found_lines = list(islice(_objects(source), _MOST_LINES + 1))
    return found_lines[:_MOST_LINES], len(found_lines) <= _MOST_LINES


def _objects(source: Source) -> Iterator[dict[str, Any]]:
    for line in lines(source, ignore_problem):
        if line.offset > _MOST_BYTES:
            return
        value = _loaded(line.data)
        if isinstance(value, dict):
            yield value


def _loaded(data: bytes) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return None


def _kind(record: dict[str, Any]) -> str | None:
    found = next((record[key] for key in _KINDS if isinstance(record.get(key), str)), None)
    return found[:_LONGEST] if found is not None else None


_RESULT: Final = "tool_result"
_CALL: Final = "tool_call"
_THREADS: Final = 1000
_ITEMS: Final = 10_000


class UnchangedWindows:
    """Watches the events of one import until a window changes; constant work and memory an event."""

    def __init__(self) -> None:
        self.changed = False
        """Whether a request differed from the first of all; nothing more needs to be seen then."""
        self._later_requests = 0
        """The number of requests that are not the first of their thread."""
        self._calls = self._results = 0
        self._first: dict[str, list[Any]] = {}
        """By thread, the window of its first request."""
        self._result_in_window = False
        """Whether a result of a tool stands in a window."""
        self._items: set[str] = set()

    def see(self, event: Json) -> None:
        """Take one event into account; it is not changed."""
        kind, data = event.get("event_type"), event.get("data")
        if not isinstance(data, dict):
            return
        if kind == vocab.ITEM_ADDED:
            self._item(data)
        elif kind == vocab.ASSEMBLY_CREATED and data.get("target", vocab.MODEL) == vocab.MODEL:
            self._assembly(f"{event.get('session_id') or None}/{event.get('thread_id')}", data)

    def _item(self, data: Json) -> None:
        what = data.get("context_kind")
        self._calls += what == _CALL
        if what == _RESULT:
            self._results += 1
            if isinstance(data.get("item_id"), str) and len(self._items) < _ITEMS:
                self._items.add(data["item_id"])

    def _assembly(self, thread: str, data: Json) -> None:
        metadata = data.get("metadata")
        marks = metadata.get("ctxctl") if isinstance(metadata, dict) else None
        marks = marks if isinstance(marks, dict) else {}
        told = data.get("ordered_blocks")
        blocks = [block for block in told if isinstance(block, dict)] if isinstance(told, list) else []
        named = (block.get("block_id") for block in blocks)
        self._result_in_window = self._result_in_window or any(
            isinstance(name, str) and name in self._items for name in named
        )
        refs = [block.get("item_refs") for block in blocks]
        first = self._first.get(thread)
        if first is None:
            self._first[thread] = refs
            self.changed = len(self._first) > _THREADS
            return
        self._later_requests += 1
        self.changed = bool(marks.get("splices")) if "base" in marks else refs != first

    def problems(self) -> list[Problem]:
        """One problem where all requests have one window, and results of tools are in none."""
        if (
            self.changed
            or self._result_in_window
            or not (self._later_requests and self._calls and self._results)
        ):
            return []
        requests = self._later_requests + len(self._first)
        message = (
            f"every one of {requests:,} requests has the window of the first, and the capture tells of "
            f"{self._calls:,} tool calls and {self._results:,} results that are in none: "
            "their order was not understood"
        )
        return [Problem(0, 0, "same-window", message)]


EMPTY: Final = "no-model-calls"
"""The problem that is held back until the whole file was looked at."""
_CONTRADICTIONS: Final = frozenset({CIRCLE, SECOND})
KEPT: Final = 10_000
"""The most problems of one kind that are reported one by one."""


class ProblemLimit:
    """Takes problems and passes the first ones of each kind on; `finish` tells how many more there were.

    It is the `report` that an importer gets, and carries the account of what it did not understand.
    """

    def __init__(self, report: Report, understood: Understood | None = None) -> None:
        self.understood = understood or Understood()
        self._report = report
        self._seen: Counter[str] = Counter()
        self._held: list[Problem] = []
        self._releasing = False
        self._last: dict[str, Problem] = {}

    def __call__(self, problem: Problem) -> None:
        """Take one problem in, and pass it on unless there were too many of its kind."""
        if problem.slug == EMPTY and not self._releasing:
            self._held.append(problem)
            return
        self._seen[problem.slug] += 1
        if problem.slug in _CONTRADICTIONS:
            self.understood.contradictions += 1
        if self._seen[problem.slug] <= KEPT:
            self._report(problem)
        else:
            self._last[problem.slug] = problem

    @property
    def said_any(self) -> bool:
        """Whether any problem was taken."""
        return bool(self._seen or self._held or self._releasing)

    def held(self) -> list[Problem]:
        """Take out the problems that say that there is nothing to replay, which are reported at the end with
        what was looked at."""
        held, self._held, self._releasing = self._held[:KEPT], [], True
        return held

    def finish(self) -> None:
        """Report, at the place of the last one of each kind, how many were left out."""
        for slug, last in self._last.items():
            more = self._seen[slug] - KEPT
            self._report(Problem(last.line, last.byte, slug, f"{more} more of this kind so far"))
        self._last.clear()
