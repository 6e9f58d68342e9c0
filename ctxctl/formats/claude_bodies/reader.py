"""A dump's exchanges in order, session by session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from ctxctl.errors import CtxctlError
from ctxctl.formats.build import Json
from ctxctl.formats.calls.http import Call, Calls
from ctxctl.formats.claude_bodies import is_export, order
from ctxctl.formats.claude_bodies.beside import turns
from ctxctl.formats.claude_bodies.entries import Entry, Files, listed
from ctxctl.formats.kit.document import document
from ctxctl.formats.kit.folder import Folder
from ctxctl.formats.kit.run import Run
from ctxctl.formats.lines import Line, Report
from ctxctl.model.problem import Problem
from ctxctl.trace.source import Source

NAME: Final = "claude-bodies"
_HEAD: Final = 1 << 16
_ADDRESS: Final = "/v1/messages"
_WHOLE: Final = Line(1, 0, b"")
"""The place of what is a file by itself."""


def read_index(source: Source, report: Report) -> Iterator[Json]:
    """The events of the directory that an index stands in; a stream has nothing beside it."""
    path = None if source.spooled else source.path
    if path is None or not Path(path).is_file():
        run = Run(NAME, report)
        for record in run.records(source):
            if "request_file" not in record:
                run.problem("unknown-record", "names no body of a request; skipped")
        run.problem("bodies-not-found", "an index by itself: open the directory that it stands in")
        yield from run.finish()
        return
    yield from read_folder(Folder(source.name, Path(path).parent), report)


def read_folder(folder: Folder, report: Report) -> Iterator[Json]:
    """The directory's events; problems and events name the file they are from."""
    run = Run(NAME, report)
    files = listed(folder, run)
    run.make.file = None
    asked = turns(folder)
    entries = _placed(folder, files, run) if files.requests or files.responses else files.entries
    sessions: dict[str | None, list[Entry]] = {}
    for entry in entries:
        sessions.setdefault(entry.session, []).append(entry)
    calls: Calls | None = None
    for session, own in sessions.items():
        run.session = session
        # Each session has a main thread of its own: side questions often come before it.
        calls = Calls(run)
        for entry in own:
            _take(folder, entry, calls, asked)
            yield from run.drain()
        calls.exchanges.finish()
        run.make.file = None
        yield from run.end_session()
    if calls is None:
        run.problem("no-model-calls", "no body of a request in it")
    yield from run.finish()


def _take(folder: Folder, entry: Entry, calls: Calls, asked: dict[str, str]) -> None:
    run = calls.run
    response = _body(folder, entry.response, run) if entry.response is not None else None
    request = _body(folder, entry.request, run) if entry.request is not None else None
    if not isinstance(request, dict):
        run.make.file = None
        run.problem("no-request", f"{entry.request}: no body of a request; skipped", _WHOLE)
        return
    run.line = _WHOLE
    calls.take(
        Call(
            url=_ADDRESS,
            request=request,
            response=response,
            line=1,
            time=entry.time,
            native_id=entry.request_id,
            session=entry.session,
            turn=asked.get(entry.request_id or "") or asked.get(entry.message_id or ""),
            error=None if response is not None else "no answer recorded",
        )
    )


def _body(folder: Folder, name: str, run: Run) -> Any:
    """A file's value; None, and a problem, where there is none to read."""
    run.make.file = name
    try:
        source = folder.open(name)
    except CtxctlError as error:
        run.report(Problem(0, 0, error.slug, str(error)))
        return None
    with source:
        return document(source, run.report)


# -- without an index -------------------------------------------------------------------------------------


def _placed(folder: Folder, files: Files, run: Run) -> list[Entry]:
    """All exchanges: those of the index, and what it does not name at the place that it tells itself."""
    naming = Calls(run)
    strays: list[order.Asked] = []
    for name in files.requests:
        body = _body(folder, name, run)
        if isinstance(body, dict):
            strays.append(order.asked(name, body, naming.session_of(body)))
    answers = [(name, body) for name in files.responses if isinstance(body := _body(folder, name, run), dict)]
    run.make.file = None
    paired, alone = order.pairs(strays, answers)
    if alone:
        message = f"{len(alone)} answers ({alone[0]} …) belong to no request that is known; left out"
        run.problem("unpaired-answers", message, _WHOLE)
    made = [_stray(one, paired) for one in order.ordered(strays)]
    if not files.entries:
        return made
    return _merged(folder, files.entries, made, {one.file: one for one in strays}, run)


def _stray(one: order.Asked, paired: dict[str, str]) -> Entry:
    response = paired.get(one.file)
    name = response.rpartition("/")[2].partition(".")[0] if response is not None else None
    return Entry(one.file, response, one.session, request_id=name)


def _merged(
    folder: Folder, indexed: list[Entry], strays: list[Entry], asked: dict[str, order.Asked], run: Run
) -> list[Entry]:
    """Put each stray in front of the first indexed request of its conversation that is as long or longer."""
    naming = Calls(run)
    places: dict[tuple[str | None, str], list[tuple[int, int]]] = {}
    """By session and head: messages and index of each request."""
    for n, entry in enumerate(indexed):
        body = _body(folder, entry.request, run) if entry.request is not None else None
        if isinstance(body, dict):
            one = order.asked(entry.request or "", body, naming.session_of(body))
            places.setdefault((one.session, one.head), []).append((one.messages, n))
    run.make.file = None
    at: dict[int, list[Entry]] = {}
    for stray in strays:
        own = asked[stray.request or ""]
        known = places.get((own.session, own.head), [])
        later = (n for messages, n in known if messages >= own.messages)
        at.setdefault(next(later, len(indexed)), []).append(stray)
    made: list[Entry] = []
    for n, entry in enumerate(indexed):
        made += [*at.get(n, ()), entry]
    return made + at.get(len(indexed), [])


def read(source: Source, report: Report) -> Iterator[Json]:
    """The file's events: of the directory that an index stands in, or of an export of log records."""
    head = source.read(0, _HEAD)
    if is_export(head):
        from ctxctl.formats.claude_bodies import otlp

        return otlp.read(source, report)
    return read_index(source, report)
