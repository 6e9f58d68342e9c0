"""An inspector without a trace: frames written down as items, for tests of the UI."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from threading import Semaphore
from types import MappingProxyType, SimpleNamespace
from typing import Any, NamedTuple

import msgspec

from ctxctl.engine.replay.cursor import StepAt
from ctxctl.engine.replay.frames import delta_of
from ctxctl.errors import CtxctlError
from ctxctl.model.content import Content
from ctxctl.model.outline import Life, Row
from ctxctl.model.problem import Problem
from ctxctl.model.results import (
    Cache,
    Change,
    Counts,
    Frame,
    Ledger,
    Placement,
    StageView,
    Step,
    Summary,
    Turn,
    UsageView,
    Window,
)
from ctxctl.model.vocab import STAGES, STATUSES, UNRECORDED, Status, segment_of
from ctxctl.model.whatif import AS_RECORDED, UNEDITED
from ctxctl.session import Inspector
from ctxctl.session.calibration import NOTHING
from ctxctl.session.redaction import redactor_of
from ctxctl.session.results import life_of
from ctxctl.trace.reader import Trace
from ctxctl.trace.source import Source


class Thing(NamedTuple):
    """An item of a frame; a token is four characters."""

    item: str
    text: str | None
    kind: str = "user_message"
    title: str | None = None

    @property
    def tokens(self) -> int:
        return 0 if self.text is None else max(len(self.text) // 4, 1)

    @property
    def version(self) -> str | None:
        return (
            None
            if self.text is None
            else hashlib.sha256(self.text.encode("utf-8", "replace")).hexdigest()[:16]
        )


class Request(NamedTuple):
    """One step: what was in the window, and what else is known of it."""

    turn: int
    things: tuple[Thing, ...]
    thread: str = "main"
    session: str | None = "s1"
    title: str | None = None
    flags: tuple[str, ...] = ()
    reported: int | None = None
    causes: Mapping[str, tuple[str, str | None]] = MappingProxyType({})
    omitted: tuple[tuple[Thing, str], ...] = ()
    model: str = "gpt-4o"


class FakeInspector:
    """As much of the inspector as the UI uses; `calls` says what was asked, in order."""

    def __init__(
        self,
        requests: Sequence[Request],
        *,
        name: str = "made-up.jsonl",
        cap: int | None = 400,
        problems: Sequence[Problem] = (),
        failing: dict[str, Exception] | None = None,
    ) -> None:
        self.requests = requests
        self.name = name
        self.format = "native"
        self.params = SimpleNamespace(
            policy="recorded",
            encoding="o200k_base",
            assumed="",
            limits=AS_RECORDED,
            edited=UNEDITED,
            calibration=NOTHING,
            first_model=None,
            target="model",
        )
        self.trace = Trace(Source.from_bytes(name, b""))
        self.redactor = redactor_of(self.trace)
        self.calls: list[str] = []
        self.problems = list(problems)
        self.problem_count = len(self.problems)
        self.late_events = sum(problem.slug.startswith("late-") for problem in self.problems)
        self.learned = None
        self.summary: Summary | None = None
        self.closed = False
        self.known: list[Row] = []
        self.natives: dict[int, dict[str, Any]] = {}
        """Lines of the trace with more fields than a content."""
        self._keys: dict[tuple[str, str | None], int] = {}
        self._cap = cap
        self._failing = failing or {}
        self._steps: list[int] = []
        seen: dict[tuple[str | None, str, int], int] = {}
        for request in requests:
            key = (request.session, request.thread, request.turn)
            seen[key] = seen.get(key, 0) + 1
            self._steps.append(seen[key])

    def _call(self, name: str) -> None:
        self.calls.append(name)
        if name in self._failing:
            raise self._failing[name]

    def outline(self, progress: Callable[[float], None] | None = None) -> Any:
        self._call("outline")
        for n in range(len(self.requests)):
            if progress is not None and n % 100 == 0:
                progress(n / len(self.requests))
            self.known.append(self._row(n))
        return SimpleNamespace(rows=tuple(self.known))

    def kept_replay(self) -> None:
        """None is kept."""

    def keeps_replay(self) -> bool:
        return False

    def walk(
        self,
        progress: Callable[[float], None] | None = None,
        *,
        skipped: bool = False,
        settle: bool = False,
    ) -> Iterator[tuple[StepAt, Any]]:
        self._call("walk")
        book = SimpleNamespace(versions=_Omitted(self.requests))
        threads = {(request.session, request.thread): SimpleNamespace(book=book) for request in self.requests}
        for n in range(len(self.requests)):
            if progress is not None:
                progress(n / len(self.requests))
            before, after = self.previous(n), self._placements(n)
            delta = delta_of([] if before is None else self._placements(before), after)
            yield (
                StepAt(self._step(n, before), after, None),
                SimpleNamespace(threads=threads, delta=lambda delta=delta: delta),
            )

    def step(self, ordinal: int) -> Step:
        self._call("step")
        return self._step(ordinal, self.previous(ordinal))

    def frame(self, ordinal: int) -> Frame:
        self._call("frame")
        return Frame(self._step(ordinal, self.previous(ordinal)), tuple(self._placements(ordinal)))

    def turn(self, ordinal: int) -> Turn:
        self._call("turn")
        request = self.requests[ordinal]
        mine = [
            n
            for n, other in enumerate(self.requests)
            if (other.session, other.thread, other.turn) == (request.session, request.thread, request.turn)
        ]
        step = self._step(mine[-1], self.previous(mine[0]))
        return Turn(
            request.session,
            request.thread,
            request.turn,
            None,
            "model",
            len(mine),
            step.ledger,
            step.counts,
            step.changes,
        )

    def previous(self, ordinal: int) -> int | None:
        request = self.requests[ordinal]
        for n in range(ordinal - 1, -1, -1):
            if (self.requests[n].session, self.requests[n].thread) == (request.session, request.thread):
                return n
        return None

    def compare(self, a: Frame, b: Frame) -> Any:
        self._call("compare")
        return Inspector.compare(self, a, b)  # type: ignore[arg-type]

    def places(self) -> Any:
        self._call("places")
        threads = dict.fromkeys((request.session, request.thread) for request in self.requests)
        by_thread = [SimpleNamespace(session=session, thread=thread) for session, thread in threads]
        return SimpleNamespace(spans=self.requests, by_thread=by_thread)

    def text(self, content: Content) -> str:
        return str(content.origin)

    def native(self, line: int) -> dict[str, Any]:
        self._call("native")
        if line in self.natives:
            return self.natives[line]
        return {"data": {"content": f"the recorded text of line {line}"}}

    def moments(
        self,
        item: str,
        *,
        session: str | None = None,
        thread: str | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> Iterator[Life]:
        self._call("moments")

        def steps() -> Iterator[Step]:
            for n in range(len(self.requests)):
                if progress is not None:
                    progress(n / len(self.requests))
                yield self._step(n, self.previous(n))

        return life_of(steps(), item, session, thread)

    def assembled(self, ordinal: int) -> str:
        self._call("assembled")
        return "\n".join(thing.text or "" for thing in self.requests[ordinal].things)

    def resolve(self, address: str) -> int:
        from ctxctl.session.addresses import step_ordinal

        return step_ordinal(address, self.known)  # type: ignore[arg-type]

    def close(self) -> None:
        self.closed = True

    def _row(self, n: int) -> Row:
        request = self.requests[n]
        step = self._step(n, self.previous(n) if len(self.requests) < 1000 else n - 1 if n else None)
        return Row(
            ordinal=n,
            session=request.session,
            thread=request.thread,
            turn=request.turn,
            step=self._steps[n],
            turn_id=None,
            step_id=None,
            time=None,
            used=step.window.used,
            new=step.ledger.new,
            freed=step.ledger.freed,
            cap=self._cap,
            limit=None,
            stale=0,
            saved=None,
            uncounted=step.window.uncounted,
            counts=step.counts,
            compacted="compacted" in request.flags,
            flags=request.flags,
            title=request.title if self._steps[n] == 1 else None,
            model=request.model,
            reported=request.reported,
            first_line=n + 1,
            offset=0,
            recorded=step.window.recorded,
            method=step.window.used_method,
            unrecorded=step.window.unrecorded,
            limit_source=step.window.limit_source,
        )

    def _placements(self, n: int) -> list[Placement]:
        return [
            Placement(
                item=thing.item,
                version=thing.version,
                kind=thing.kind,
                title=thing.title,
                source=None,
                segment=segment_of(thing.kind),
                tokens=thing.tokens,
                method="counted" if thing.text is not None else "uncounted",
                content=None
                if thing.text is None
                else Content(thing.version or "", len(thing.text), "text", thing.text),
                digest=thing.version,
                key=self._keys.setdefault((thing.item, thing.version), len(self._keys)),
                line=n + 1,
            )
            for thing in self.requests[n].things
        ]

    def _step(self, n: int, before: int | None) -> Step:
        request = self.requests[n]
        then = {} if before is None else {thing.item: thing for thing in self.requests[before].things}
        changes = _changes(request, then, n + 1)
        used = sum(thing.tokens for thing in request.things)
        new, freed = sum(c.new for c in changes), sum(c.freed for c in changes)
        counts = {status: sum(c.status == status for c in changes) for status in STATUSES}
        counts["skipped"] = sum(
            thing.item in then and thing.version == then[thing.item].version for thing in request.things
        )
        segments: dict[str, int] = {}
        for thing in request.things:
            name = segment_of(thing.kind)
            segments[name] = segments.get(name, 0) + thing.tokens
        uncounted = sum(thing.text is None for thing in request.things)
        cap = self._cap
        sent = used if request.reported is None else request.reported
        if sent != used:
            segments = {UNRECORDED: sent - used, **segments}
        return Step(
            session=request.session,
            thread=request.thread,
            turn=request.turn,
            step=self._steps[n],
            turn_id=None,
            step_id=None,
            time=None,
            target="model",
            model=request.model,
            mode="window",
            mode_declared=False,
            basis="assembly",
            layer="view" if "injection_not_recorded" in request.flags else "injected",
            window=Window(
                limit=None if cap is None else cap + 100,
                reserved=None if cap is None else 100,
                cap=cap,
                used=sent,
                free=None if cap is None else max(cap - sent, 0),
                over=None if cap is None else max(sent - cap, 0),
                uncounted=uncounted,
                by_method={"exact:o200k_base": used},
                recorded=used,
                unrecorded=None if request.reported is None else sent - used,
                used_method="recorded" if request.reported is None else "reported",
                limit_source=None if cap is None else "recorded",
            ),
            ledger=Ledger(used - new + freed, new, freed, used, None, 0, uncounted),
            counts=Counts(**counts),
            changes=changes,
            stages={stage: StageView("recorded") for stage in STAGES},
            cache=Cache(None, None, None, None),
            usage=None
            if request.reported is None
            else UsageView(request.reported, request.reported // 2, 9, used, used - request.reported),
            flags=request.flags,
            segments=segments,
            first_line=n + 1,
        )


class _Omitted(dict[tuple[str, str | None], Any]):
    """Versions of what was omitted, as a thread's book has them."""

    def __init__(self, requests: Sequence[Request]) -> None:
        for request in requests:
            for thing, _ in request.omitted:
                content = thing.text and Content(thing.version or "", len(thing.text), "text", thing.text)
                self[thing.item, thing.version] = SimpleNamespace(content=content)


def _changes(request: Request, then: dict[str, Thing], line: int) -> tuple[Change, ...]:
    changes = []
    now = {thing.item: thing for thing in request.things}
    for thing in request.things:
        old = then.get(thing.item)
        if old is None:
            changes.append(_change("added", thing, line, new=thing.tokens))
        elif old.version != thing.version:
            changes.append(
                _change("updated", thing, line, new=thing.tokens, freed=old.tokens, previous=old.version)
            )
    for item, old in then.items():
        if item not in now:
            cause, reason = request.causes.get(item, ("unrecorded", None))
            changes.append(
                _change(
                    "removed", old, line, freed=old.tokens, previous=old.version, cause=cause, reason=reason
                )
            )
    for thing, why in request.omitted:
        changes.append(_change("omitted", thing, line, cause="omitted", reason=why))
    return tuple(changes)


def _change(
    status: Status,
    thing: Thing,
    line: int,
    *,
    new: int = 0,
    freed: int = 0,
    previous: str | None = None,
    cause: str | None = None,
    reason: str | None = None,
) -> Change:
    return Change(
        status=status,
        item=thing.item,
        kind=thing.kind,
        title=thing.title,
        version=thing.version,
        previous_version=previous,
        tokens=thing.tokens,
        in_window=0 if status in ("removed", "omitted") else thing.tokens,
        new=new,
        freed=freed,
        cause=cause,
        reason=reason,
        into=None,
        flags=(),
        source=None,
        provenance="native",
        line=line,
    )


class SlowInspector(FakeInspector):
    """Its outline finds as many steps as `deliver` allows; a title is known once its turn has ended."""

    def __init__(self, requests: Sequence[Request], **settings: Any) -> None:
        super().__init__(requests, **settings)
        self._allowed = Semaphore(0)

    def deliver(self, steps: int) -> None:
        """Let this many more steps be found."""
        self._allowed.release(steps)

    def outline(self, progress: Callable[[float], None] | None = None) -> Any:
        self._call("outline")
        first = 0
        for n, request in enumerate(self.requests):
            while not self._allowed.acquire(timeout=0.02):
                if progress is not None:
                    progress(n / len(self.requests))
            row = self._row(n)
            if row.step == 1:
                first = n
            self.known.append(msgspec.structs.replace(row, title=None))
            if n + 1 == len(self.requests) or self.requests[n + 1].turn != request.turn:
                title = self.requests[first].title
                self.known[first] = msgspec.structs.replace(self.known[first], title=title)
        return SimpleNamespace(rows=tuple(self.known))


# Traces -----------------------------------------------------------------------------------------------------

SYSTEM = Thing("system", "You take notes.\nBe brief.", "system_prompt", "system prompt")
TOOLS = Thing("tools", '{"name": "get_note"}', "tool_definition", "get_note")


def notes_agent() -> list[Request]:
    """Three turns of a notes assistant: an editor state that changes, a note that is dropped, an omission."""
    ask = Thing("m1", "Rewrite this note, please: the pull request was won.")
    editor = Thing(
        "editor-state", 'Cursor: line 12\nSelected: "Pull won"\nMode: insert', "runtime_state", "editor state"
    )
    moved = editor._replace(text='Cursor: line 40\nSelected: ""\nMode: insert')
    note = Thing("n1", "A long note about pull requests. " * 8, "retrieval_result", "note n1")
    answer = Thing("m2", "Here it is, rewritten.", "assistant_message")
    again = Thing("m3", "Shorter.")
    secret = Thing("n2", "Another note.", "retrieval_result", "note n2")
    return [
        Request(1, (TOOLS, SYSTEM, editor, ask), title="Rewrite this note", reported=60),
        Request(1, (TOOLS, SYSTEM, editor, note, ask), reported=110),
        Request(2, (TOOLS, SYSTEM, moved, note, ask, answer, again), title="Shorter.", reported=140),
        Request(
            3,
            (TOOLS, SYSTEM, moved, ask, answer, again, Thing("m4", "And a title?")),
            title="And a title?",
            flags=("injection_not_recorded",),
            causes={"n1": ("omitted", "budget_limit")},
            omitted=((secret, "budget_limit"),),
        ),
    ]


def long_session(turns: int, items: int) -> list[Request]:
    """Many turns of many items each; every turn changes one item and adds one."""
    base = [Thing(f"item-{n}", f"text {n} " * 5, "tool_result", f"result {n}") for n in range(items)]
    requests = []
    for turn in range(turns):
        things = list(base)
        things[turn % items] = things[turn % items]._replace(text=f"changed in {turn} " * 5)
        requests.append(Request(turn + 1, tuple(things), title=f"prompt number {turn + 1}"))
    return requests


def unreadable(message: str = "no readable event") -> CtxctlError:
    """What opening a file that is no trace ends in."""
    from ctxctl.errors import UnreadableError

    return UnreadableError("no-events", message, hint="is it a trace?")
