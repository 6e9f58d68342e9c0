"""Amplifier: a hook module that records a session, with every view that its context manager gives.

hooks:
  - module: hooks-ctxctl
    config: {path: run.jsonl}
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ctxctl.record.calls import guarded
from ctxctl.record.place import Place
from ctxctl.record.recorder import Recorder
from ctxctl.record.scopes import Scope, Step, Turn
from ctxctl.record.wrappers import RecordedManager, with_methods_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from ctxctl.record.place import Place
    from ctxctl.record.recorder import Recorder


Json = Mapping[str, Any]
_RAW: Final = "raw"
_SHORT: Final = 2000
"""Characters up to which an event's text is kept; longer texts are recorded as items."""
_ENDS: Final = ("orchestrator:complete", "session:end")
"""Events that end a turn."""


class SessionEvents:
    """Records a session's events, in the turns and requests that they name.

    A turn is all that one prompt sets off.  A request stands where its view was given.  Where providers
    report the bodies that they send (`raw: true`), those are the thread's requests, and the views are a
    thread beside it: they lack what the loop and the provider add.

    Args:
        recorder: Where the events go.
        thread: The session's thread.
        ends: Whether the recorder's session ends with this one.
    """

    def __init__(self, recorder: Recorder, thread: str, *, ends: bool) -> None:
        self._core = recorder._core
        self._recorder = recorder
        self._thread = thread
        self._ends = ends
        self._turn: Turn | None = None
        self._view: Place | None = None
        """The place of the last view."""
        self._step: Step | None = None
        """The request that is under way."""
        self._bill: dict[str, Any] | None = None
        """The request's bill."""
        self.raw = False
        """Whether providers report the bodies that they send."""
        self._waiting: list[dict[str, Any]] = []
        """Compactions since the last view."""
        self._shown: tuple[dict[str, Any], ...] = ()
        """Compactions that the last view results from."""
        self._counters: Any = None
        self.views: Any = None
        """Reads the messages of views, as `_bodies` does those of bodies; made with the first view."""
        self._bodies: Any = None
        self._on: dict[str, Callable[[Json], None]] = {
            "prompt:submit": self._submitted, "llm:request": self._asked, "llm:request:raw": self._asked,
            "llm:response": self._answered, "llm:response:raw": self._answered,
            "provider:response": self._billed, "content_block:end": self._billed,
            "provider:error": self._failed, "context:compaction": self._compacted,
            "context:budget": self._limited, "mentions:resolved": self._mentioned,
        }  # fmt: skip

    def place(self) -> Place:
        """Return the place of what happens now outside of a request."""
        return self._turn._place if self._turn is not None else Place(self._recorder.session, self._thread)

    def view_place(self) -> Place:
        """Return the place of the next view."""
        place = self.place()
        return Place(place.session, f"{place.thread}/views", place.turn) if self.raw else place

    def viewed(self, place: Place) -> None:
        """Note that the context manager gave a view, which a request follows."""
        self._view, self._step, self._bill = place, None, None

    def acted(self) -> tuple[dict[str, Any], ...]:
        """Return the records of the compactions that a view results from; call it once for each view."""
        from ctxctl.record.amplifier_views import ViewReader

        self.views = self.views or ViewReader()
        self._shown, self._waiting = tuple(self._waiting), []
        return tuple(dict(one) for one in self._shown)

    @guarded
    def event(self, name: str, data: Json) -> None:
        """Record an event of the session."""
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
        """End the turn, as no more event will come."""
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
            # The request of a view, whose body is not reported.
            if self._step is None and self._view is not None:
                self._step = Step(self._recorder, self._view, _text(data, "model"))
            return
        from ctxctl.record.amplifier_views import ViewReader
        from ctxctl.record.bodies import SentRequest, dialect_of

        self.raw = True
        self._bodies = self._bodies or ViewReader()
        body, place = dict(raw), self._recorder._step_place(self.place(), None)
        step = self._step = Step(self._recorder, place, _text(data, "model") or _text(raw, "model"))
        step._dialect = dialect_of(None, body, None)
        sent = SentRequest(
            body, step._dialect, place.step or "", place.turn, step.model,
            self._core.clean_id(_text(data, "request_id")), acted=self._shown, reader=self._bodies,
        )  # fmt: skip
        self._shown = ()
        step._place = self._recorder._record_request(sent, place)

    def _answered(self, data: Json) -> None:
        step = self._step
        if step is None:
            if self._view is None:
                return
            step = self._step = Step(self._recorder, self._view, _text(data, "model"))
        raw = data.get(_RAW)
        if isinstance(raw, Mapping):
            # Without its bill, which all providers report in the same way beside it.
            step.recorder._record_answer({n: v for n, v in raw.items() if n != "usage"}, step._place, None)
        if data.get("status") == "error" or data.get("error"):
            self._failed(data)
        self._billed(data)

    def _billed(self, data: Json) -> None:
        """Record a request's bill from the first event that has it."""
        from ctxctl.plugins.amplifier.records import reported_usage

        if self._bill is not None or (self._step is None and self._view is None):
            return
        given = data.get("usage")
        self._bill = reported_usage(
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
        from ctxctl.plugins.amplifier.compactions import CompactionCounters

        self._counters = self._counters or CompactionCounters()
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
    """Return a field of an event, long texts as their size: texts for the model are items."""
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


__amplifier_module_type__ = "hook"

_MORE: Final = (
    "llm:request:raw", "llm:response:raw", "session:config", "context:budget", "mentions:resolved",
    "context:tool_result_ingress_truncated",
)  # fmt: skip
"""Events that are in use but not in the core's list."""
_PIECES: Final = ("content_block:delta", "thinking:delta", "llm:stream_block_delta")
"""Events with pieces of what comes whole afterwards."""
_PRIORITY: Final = 1000
_DEFAULT: Final = "~/.amplifier/projects/{project}/sessions/{session_id}/ctxctl.jsonl"
_sessions: dict[str, _Session] = {}
"""The recorded sessions of this process, by id; a child's session is a thread of its parent's."""


class _Session:
    """One recorded session of Amplifier."""

    def __init__(self, recorder: Recorder, session: str, thread: str, own: bool) -> None:
        self.recorder = recorder
        self.session = session
        """The id of the outermost session."""
        self.thread = thread
        self.own = own
        """Whether the recorder was made for this session."""
        self.events = SessionEvents(recorder, thread, ends=own)
        self.undo: list[Callable[[], Any]] = []

    async def wrap(self, coordinator: Any) -> None:
        """Wrap the mounted context manager with one that records, once."""
        manager = coordinator.get("context")
        if manager is None or isinstance(manager, RecordedManager):
            return
        views = with_methods_of(_Views, type(manager))(self.recorder, manager, None)
        views._events = self.events
        self.events.raw = _tells_bodies(coordinator.config)
        await coordinator.mount("context", views)

    def close(self) -> None:
        """Stop recording."""
        for undo in self.undo:
            with contextlib.suppress(Exception):
                undo()
        self.events.finish()
        if self.own:
            self.recorder.close()


class _Views(RecordedManager):
    """Records views in the turn that the session's events name."""

    _events: SessionEvents

    def _current_place(self) -> Place:
        return self._events.view_place()

    def _seen(self, place: Place) -> None:
        self._events.viewed(place)

    def _acted(self) -> tuple[dict[str, Any], ...]:
        return self._events.acted()

    def _reader(self) -> Any:
        return self._events.views


async def mount(coordinator: Any, config: dict[str, Any] | None = None) -> Callable[[], Any] | None:
    """Record the coordinator's session.

    Config:
        path: The trace, with `{session_id}` and `{project}` filled in; by default beside the session's other
            files.
        additional_events: Names of further events to record.
        exclude_events: Names of events to leave out.
        redact, fsync, rotate_bytes: Options of `Recorder`.
    """
    given = dict(config or {})
    try:
        session = _opened(coordinator, given)
    except Exception as error:
        _say(f"ctxctl: not recording: {type(error).__name__}: {error}")
        return None
    key = str(coordinator.session_id)
    _sessions[key] = session
    names = await _events(coordinator, given)

    async def handle(event: str, data: dict[str, Any]) -> Any:
        if event in ("session:start", "session:resume"):
            await _wrapped(session, coordinator)
        session.events.event(event, data)
        return _go_on()

    for name in names:
        session.undo.append(
            coordinator.hooks.register(name, handle, priority=_PRIORITY, name=f"ctxctl:{name}")
        )

    def cleanup() -> None:
        _sessions.pop(key, None)
        session.close()

    return cleanup


async def on_session_ready(coordinator: Any) -> None:
    """Record views from here on, as all modules are mounted."""
    session = _sessions.get(str(coordinator.session_id))
    if session is not None:
        await _wrapped(session, coordinator)


def _opened(coordinator: Any, config: dict[str, Any]) -> _Session:
    key = str(coordinator.session_id)
    parent = _sessions.get(str(coordinator.parent_id)) if coordinator.parent_id else None
    if parent is not None:
        name = key.rpartition("_")[2] or key
        return _Session(parent.recorder, parent.session, name, False)
    options = {name: config[name] for name in ("redact", "fsync", "rotate_bytes") if name in config}
    path = _path(str(config.get("path") or _DEFAULT), coordinator, key)
    recorder = Recorder(path, session=key, source="amplifier", **options)
    return _Session(recorder, key, "main", True)


def _path(template: str, coordinator: Any, session: str) -> str:
    if "{" not in template:
        return os.path.expanduser(template)
    where = coordinator.get_capability("session.working_dir") or os.getcwd()
    project = str(where).replace("/", "-").replace("\\", "-").replace(":", "").lstrip("-")
    safe = session.replace("/", "_").replace("\\", "_")
    path = Path(template.replace("{project}", project).replace("{session_id}", safe)).expanduser()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return str(path)


async def _events(coordinator: Any, config: dict[str, Any]) -> list[str]:
    """Return the names of the events to register for: hooks match exact names only."""
    from amplifier_core.events import ALL_EVENTS

    found = [*ALL_EVENTS, *_MORE, *(config.get("additional_events") or ())]
    with contextlib.suppress(Exception):
        for names in await coordinator.collect_contributions("observability.events"):
            found += names if isinstance(names, list | tuple) else [names]
    without = {*_PIECES, *(config.get("exclude_events") or ())}
    return [name for name in dict.fromkeys(found) if isinstance(name, str) and name not in without]


def _tells_bodies(plan: Any) -> bool:
    """Whether the mount plan makes a provider report the bodies that it sends."""
    providers = plan.get("providers") if isinstance(plan, dict) else None
    configs = [one.get("config") for one in providers or () if isinstance(one, dict)]
    return any(isinstance(one, dict) and one.get("raw") is True for one in configs)


async def _wrapped(session: _Session, coordinator: Any) -> None:
    try:
        await session.wrap(coordinator)
    except Exception as error:
        _say(f"ctxctl: views are not recorded: {type(error).__name__}")


def _go_on() -> Any:
    from amplifier_core.models import HookResult

    return HookResult(action="continue")


def _say(text: str) -> None:
    with contextlib.suppress(Exception):
        sys.stderr.write(f"{text}\n")
