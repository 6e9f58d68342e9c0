"""Events that a capture holds as such, made to hold together: none comes twice, none names what is over.

A trace of our own is read with such faults, and they are told.  An import tells of them itself, by the
capture's lines, and what it writes is sound.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from ctxctl.ingest.lines import Line
from ctxctl.ingest.run import Run
from ctxctl.model import vocab
from ctxctl.plugins.agent_context.records import Json

_SHAPES_FRAME: Final = frozenset(
    {
        vocab.ITEM_ADDED,
        vocab.ITEM_UPDATED,
        vocab.ITEM_REMOVED,
        vocab.SUMMARY_CREATED,
        vocab.SELECTION_COMPLETED,
        vocab.BUDGET_APPLIED,
        vocab.ASSEMBLY_CREATED,
        vocab.COMPACTION_COMPLETED,
        vocab.REDACTION_APPLIED,
        vocab.INJECTION_APPLIED,
    }
)
_OF_THEIR_STEP: Final = frozenset(
    {
        vocab.USAGE_REPORTED,
        vocab.TOTAL_STATED,
        vocab.INJECTION_APPLIED,
        vocab.STEP_FAILED,
        vocab.STEP_ANSWERED,
    }
)
"""What says something of its own step only: without it, it says nothing."""


@dataclass
class _Thread:
    """Where a thread stands, as a replay will see it."""

    turn: str | None = None
    step: str | None = None
    turns: set[str | None] = field(default_factory=set)
    steps: set[str] = field(default_factory=set)
    """Named steps of the open turn."""
    over: set[tuple[str | None, str]] = field(default_factory=set)
    """Named steps of the turns before."""
    sealed: bool = False
    injected: set[object] = field(default_factory=set)
    """The assemblies that the open step's request carried."""
    settled: bool = False
    """The open step has a frame: what comes now does not belong in front of its turn's id."""
    ended: bool = False

    def is_late(self, turn: str | None, step: str | None) -> bool:
        """Whether these name a turn or step that is over."""
        if self.ended:
            return (
                (self.turn if turn is None else turn, step) in self.over
                if step is not None
                else turn in self.turns
            )
        if turn is not None and turn != self.turn:
            return turn in self.turns and (step is None or (turn, step) in self.over)
        return step is not None and step != self.step and step in self.steps

    def go_on(self, turn: str | None, step: str | None) -> None:
        """Go on to what an event names."""
        if turn is not None and (turn != self.turn or self.ended):
            if self.turn is not None or self.settled or self.ended:
                self.end()
            self.turn, self.ended = turn, False
            self.turns.add(turn)
        if step is not None and step != self.step:
            if self.steps or self.step is not None:
                self._open()
            self.step = step
            self.steps.add(step)

    def end(self) -> None:
        """The open turn is over."""
        self.over.update((self.turn, step) for step in self.steps)
        self.steps.clear()
        self.step = None
        self._open()

    def assembled(self, assembly: object, step: str | None) -> None:
        """Take a window of the model's; behind a request, and without a step's id, it is another one's."""
        if step is None and self.sealed and assembly not in self.injected:
            self.step = None
            self._open()
        self.settled = True

    def _open(self) -> None:
        self.sealed = self.settled = False
        self.injected.clear()


class Admission:
    """Lets the events of one capture pass, in order, and tells what it changed or left out."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._known: set[tuple[object, object, object]] = set()
        self._threads: dict[tuple[str | None, str], _Thread] = {}
        self._session: str | None = None

    def admitted(self, event: Json, line: int) -> Json | None:
        """The event as it is written, or None."""
        name = event.get("event_id")
        if name is not None:
            key = name, event.get("session_id"), event.get("source")
            if key in self._known:
                self._tell(
                    line,
                    "duplicate-event",
                    f"event {name} was seen before in this session and source; ignored",
                )
                return None
            self._known.add(key)
        if event.get("event_type") == vocab.SESSION_ENDED:
            self._over(event)
        return event if event.get("event_type") in vocab.ABOUT_THE_TRACE else self._placed(event, line)

    def _over(self, event: Json) -> None:
        session, thread = event.get("session_id", self._session), event.get("thread_id")
        for (own, name), one in self._threads.items():
            if own == session and thread in (None, name):
                one.end()
                one.ended = True

    def _placed(self, event: Json, line: int) -> Json | None:
        session = self._session = event.get("session_id", self._session)
        thread = self._threads.setdefault((session, event.get("thread_id") or vocab.MAIN_THREAD), _Thread())
        kind, turn, step = event["event_type"], event.get("turn_id"), event.get("step_id")
        if thread.is_late(turn, step):
            slug = "late-usage" if kind == vocab.USAGE_REPORTED else "late-event"
            left = kind in _OF_THEIR_STEP
            then = "is left out" if left else "counts for the next frame"
            self._tell(line, slug, f"{kind} for {step or turn} names a turn or step that is over; it {then}")
            if left:
                return None
            turn = step = None
        elif (
            thread.sealed
            and step is not None
            and step == thread.step
            and kind in _SHAPES_FRAME
            and _is_for_model(event)
        ):
            self._tell(
                line,
                "late-event",
                f"{kind} for {step} comes after its step was sealed; it counts for the next frame",
            )
            if kind == vocab.INJECTION_APPLIED:
                return None
            step = None
        thread.go_on(turn, step)
        if kind == vocab.ASSEMBLY_CREATED and _is_for_model(event):
            thread.assembled(event["data"].get("assembly_id"), step)
        elif kind == vocab.INJECTION_APPLIED and _is_for_model(event):
            thread.settled = thread.sealed = True
            thread.injected.add(event["data"].get("assembly_id"))
        kept = {name: value for name, value in event.items() if name not in ("turn_id", "step_id")}
        own = {name: value for name, value in (("turn_id", turn), ("step_id", step)) if value is not None}
        return event if (turn, step) == (event.get("turn_id"), event.get("step_id")) else {**kept, **own}

    def _tell(self, line: int, slug: str, message: str) -> None:
        self._run.problem(slug, message, Line(line, 0, b""))


def _is_for_model(event: Json) -> bool:
    data = event.get("data")
    return isinstance(data, dict) and data.get("target", vocab.MODEL) == vocab.MODEL
