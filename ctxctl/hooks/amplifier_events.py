"""What Amplifier's events say of a session, as records."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from ctxctl.record.calls import guarded
from ctxctl.record.place import Place
from ctxctl.record.scopes import Scope, Step, Turn

if TYPE_CHECKING:
    from ctxctl.record.recorder import Recorder

Json = Mapping[str, Any]
_RAW: Final = "raw"
_SHORT: Final = 2000
"""Characters of a text in an event that are kept: whole ones are items."""
_ENDS: Final = ("orchestrator:complete", "session:end")
"""When a turn is over."""


class Told:
    """Records a session's events, in the turns and requests that they say.

    A turn is what one prompt sets off.  A request stands where its view was given.  Where providers tell the
    bodies they send (`raw: true`), those are the thread's requests, and the views are a thread beside it, as
    what the loop and the provider add is in one and not in the other.

    Args:
        recorder: Where to.
        thread: The session's thread.
        ends: Whether the recorder's session ends with it.
    """

    def __init__(self, recorder: Recorder, thread: str, *, ends: bool) -> None:
        self._core = recorder._core
        self._recorder = recorder
        self._thread = thread
        self._ends = ends
        self._turn: Turn | None = None
        self._view: Place | None = None
        """Of the last view."""
        self._step: Step | None = None
        """The request that is under way."""
        self._bill: dict[str, Any] | None = None
        """What it was billed."""
        self.raw = False
        """Whether bodies are told."""
        self._waiting: list[dict[str, Any]] = []
        """Compactions that no view has shown yet, and of the last view."""
        self._shown: tuple[dict[str, Any], ...] = ()
        self._counters: Any = None
        self.views: Any = None
        """Reads the messages of views, as `_bodies` does those of bodies; made when there is a first one."""
        self._bodies: Any = None
        self._on: dict[str, Callable[[Json], None]] = {
            "prompt:submit": self._submitted, "llm:request": self._asked, "llm:request:raw": self._asked,
            "llm:response": self._answered, "llm:response:raw": self._answered,
            "provider:response": self._billed, "content_block:end": self._billed,
            "provider:error": self._failed, "context:compaction": self._compacted,
            "context:budget": self._limited, "mentions:resolved": self._mentioned,
        }  # fmt: skip

    def place(self) -> Place:
        """Where what happens now belongs, but to no request."""
        return self._turn._place if self._turn is not None else Place(self._recorder.session, self._thread)

    def view_place(self) -> Place:
        """Where the next view belongs."""
        place = self.place()
        return Place(place.session, f"{place.thread}/views", place.turn) if self.raw else place

    def viewed(self, place: Place) -> None:
        """The context manager gave a view: a request is about to be made."""
        self._view, self._step, self._bill = place, None, None

    def acted(self) -> tuple[dict[str, Any], ...]:
        """The records of the compactions that a view is the result of; asked for once for each view."""
        from ctxctl.record.views import Reading

        self.views = self.views or Reading()
        self._shown, self._waiting = tuple(self._waiting), []
        return tuple(dict(one) for one in self._shown)

    @guarded
    def event(self, name: str, data: Json) -> None:
        """An event of the session's."""
        data = data if isinstance(data, Mapping) else {}
        if (handle := self._on.get(name)) is not None:
            handle(data)
        where = self._step._place if self._step is not None else self._view or self.place()
        if name == "prompt:submit":
            where = self.place()
        kept = {field: _cut(value) for field, value in data.items() if field not in (_RAW, "session_id")}
        Scope(self._recorder, where).event(f"amplifier.{name.replace(':', '.')}", kept)
        if name in _ENDS:
            self._over()
        if name == "session:end" and self._ends:
            self._recorder.end_session()

    def finish(self) -> None:
        """Nothing more comes."""
        self._over()

    def _over(self) -> None:
        if self._turn is not None:
            self._turn.__exit__(None, None, None)
        self._turn, self._view, self._step = None, None, None

    def _submitted(self, data: Json) -> None:
        self._over()
        self._turn = self._recorder.turn(thread=self._thread)

    def _asked(self, data: Json) -> None:
        raw = data.get(_RAW)
        if not isinstance(raw, Mapping):
            # The request of a view, whose body nobody tells.
            if self._step is None and self._view is not None:
                self._step = Step(self._recorder, self._view, _text(data, "model"))
            return
        from ctxctl.record.bodies import Sent, dialect_of
        from ctxctl.record.views import Reading

        self.raw = True
        self._bodies = self._bodies or Reading()
        body, place = dict(raw), self._recorder._step_place(self.place(), None)
        step = self._step = Step(self._recorder, place, _text(data, "model") or _text(raw, "model"))
        step._dialect = dialect_of(None, body, None)
        sent = Sent(
            body, step._dialect, place.step or "", place.turn, step.model,
            self._core.name(_text(data, "request_id")), acted=self._shown, reader=self._bodies,
        )  # fmt: skip
        self._shown = ()
        step._place = self._recorder._send(sent, place)

    def _answered(self, data: Json) -> None:
        step = self._step
        if step is None:
            if self._view is None:
                return
            step = self._step = Step(self._recorder, self._view, _text(data, "model"))
        raw = data.get(_RAW)
        if isinstance(raw, Mapping):
            # Less its bill, which is told beside it in the same way for all providers.
            step.recorder._answer({n: v for n, v in raw.items() if n != "usage"}, step._place, None)
        if data.get("status") == "error" or data.get("error"):
            self._failed(data)
        self._billed(data)

    def _billed(self, data: Json) -> None:
        """What a request was billed, from the event that says it first."""
        from ctxctl.formats.amplifier.records import reported

        if self._bill is not None or (self._step is None and self._view is None):
            return
        given = data.get("usage")
        self._bill = reported(
            dict(given) if isinstance(given, Mapping) else given,
            _text(data, "provider"),
            _text(data, "model"),
        )
        if self._bill is not None:
            step = self._step or Step(self._recorder, self._view or self.place(), None)
            step.usage(**self._bill)

    def _failed(self, data: Json) -> None:
        error = data.get("error")
        kind = _text(error, "type") if isinstance(error, Mapping) else None
        step = self._step or (Step(self._recorder, self._view, None) if self._view is not None else None)
        if step is not None and step.open:
            step.failed(kind or _text(data, "error_type") or "failed")
            step.open = False

    def _compacted(self, data: Json) -> None:
        from ctxctl.formats.amplifier.compactions import Counters

        self._counters = self._counters or Counters()
        self._waiting.append(self._counters.read(dict(data), 0).fields())
        budget, after = _count(data, "budget"), _count(data, "after_tokens")
        if budget is not None:
            named = {n: data[n] for n in ("target_tokens", "strategy_level") if n in data}
            for place in dict.fromkeys((self.place(), self.view_place())):
                Scope(self._recorder, place).budget(
                    max_tokens=budget, actual_tokens=after, metadata={"source": "context:compaction", **named}
                )

    def _limited(self, data: Json) -> None:
        limit = _count(data, "effective_budget")
        if limit is None:
            limit = _count(data, "max_tokens")
        Scope(self._recorder, self.place()).budget(
            max_tokens=limit, reserved_tokens=_count(data, "reserved_output"),
            metadata={"source": _text(data, "source"), "context_window": data.get("context_window")},
        )  # fmt: skip

    def _mentioned(self, data: Json) -> None:
        failed = data.get("failed")
        for one in failed if isinstance(failed, list) else ():
            if isinstance(one, Mapping):
                Scope(self._recorder, self.place()).missing(
                    _text(one, "mention") or "", severity="low", metadata={"reason": _text(one, "reason")}
                )


def _cut(value: Any) -> Any:
    """A field of an event; a long text or table only by its size, as what reaches the model is an item."""
    if isinstance(value, str):
        return value if len(value) <= _SHORT else {"chars": len(value)}
    if isinstance(value, Mapping):
        return {str(name): _cut(inner) for name, inner in list(value.items())[:100]}
    if isinstance(value, list | tuple):
        return [_cut(inner) for inner in value[:100]]
    return value


def _text(data: Any, name: str) -> str | None:
    value = data.get(name) if isinstance(data, Mapping) else None
    return value if isinstance(value, str) and value else None


def _count(data: Json, name: str) -> int | None:
    value = data.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
