"""Amplifier: a hook module that records a session, with every view its context manager gives.

hooks:
  - module: hooks-ctxctl
    config: {path: run.jsonl}
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ctxctl.hooks.amplifier_events import Told
from ctxctl.record.mirrors import RecordedManager, like
from ctxctl.record.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import Callable

    from ctxctl.record.place import Place

__amplifier_module_type__ = "hook"

_MORE: Final = (
    "llm:request:raw", "llm:response:raw", "session:config", "context:budget", "mentions:resolved",
    "context:tool_result_ingress_truncated",
)  # fmt: skip
"""Events that are in use and not among those that the core lists."""
_PIECES: Final = ("content_block:delta", "thinking:delta", "llm:stream_block_delta")
"""Pieces of what comes whole afterwards."""
_PRIORITY: Final = 1000
_DEFAULT: Final = "~/.amplifier/projects/{project}/sessions/{session_id}/ctxctl.jsonl"
_sessions: dict[str, _Session] = {}
"""What is recorded in this process, by session id: a child's session is a thread of its parent's."""


class _Session:
    """One session of Amplifier's that is recorded."""

    def __init__(self, recorder: Recorder, session: str, thread: str, own: bool) -> None:
        self.recorder = recorder
        self.session = session
        """Of the outermost session."""
        self.thread = thread
        self.own = own
        """The recorder was made for it."""
        self.told = Told(recorder, thread, ends=own)
        self.undo: list[Callable[[], Any]] = []

    async def wrap(self, coordinator: Any) -> None:
        """Put the recording context manager in the place of the mounted one, once."""
        manager = coordinator.get("context")
        if manager is None or isinstance(manager, RecordedManager):
            return
        views = like(_Views, type(manager))(self.recorder, manager, None)
        views._told = self.told
        self.told.raw = _tells_bodies(coordinator.config)
        await coordinator.mount("context", views)

    def close(self) -> None:
        """Stop recording."""
        for undo in self.undo:
            with contextlib.suppress(Exception):
                undo()
        self.told.finish()
        if self.own:
            self.recorder.close()


class _Views(RecordedManager):
    """Records views in the turn that the session's events say."""

    _told: Told

    def _where(self) -> Place:
        return self._told.view_place()

    def _seen(self, place: Place) -> None:
        self._told.viewed(place)

    def _acted(self) -> tuple[dict[str, Any], ...]:
        return self._told.acted()

    def _reader(self) -> Any:
        return self._told.views


async def mount(coordinator: Any, config: dict[str, Any] | None = None) -> Callable[[], Any] | None:
    """Record the coordinator's session.

    Config:
        path: The trace; `{session_id}` and `{project}` stand for what they say.  By default beside the
            session's other files.
        additional_events: Names of further events.
        exclude_events: Names of events to leave out.
        redact, fsync, rotate_bytes: As for `Recorder`.
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
        session.told.event(event, data)
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
    """All modules are mounted: views are recorded from here on."""
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
    """Names of the events to ask for: hooks get exact names only."""
    from amplifier_core.events import ALL_EVENTS

    found = [*ALL_EVENTS, *_MORE, *(config.get("additional_events") or ())]
    with contextlib.suppress(Exception):
        for names in await coordinator.collect_contributions("observability.events"):
            found += names if isinstance(names, list | tuple) else [names]
    without = {*_PIECES, *(config.get("exclude_events") or ())}
    return [name for name in dict.fromkeys(found) if isinstance(name, str) and name not in without]


def _tells_bodies(plan: Any) -> bool:
    """Whether the mount plan sets a provider to tell the bodies that it sends."""
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
