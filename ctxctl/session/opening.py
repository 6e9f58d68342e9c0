"""Open what the user named as a native trace; a foreign capture is converted into a temporary one."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, cast

from ctxctl.errors import UsageError
from ctxctl.importers.capture import NATIVE, open_capture
from ctxctl.model.problem import Problem
from ctxctl.session.learned.choice import OFF, LearnedUse, choose_set
from ctxctl.trace.inputs import recording
from ctxctl.trace.reader import Trace
from ctxctl.trace.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ctxctl.ingest.declaration import Format
    from ctxctl.ingest.folder import Folder
    from ctxctl.session.import_mark import MarkedImport
    from ctxctl.trace.index import Span
    from ctxctl.trace.inputs import Inputs

_MAX_SPOOL = 32 << 20
"""Most bytes of a converted capture that are held in memory, not in an unlinked temporary file."""


class Opened(NamedTuple):
    """A trace ready to be replayed."""

    trace: Trace
    format: str
    default_policy: str
    problems: tuple[Problem, ...]
    """Problems that the importer found, with places in the foreign file."""
    learned: LearnedUse | None = None
    """What was added from a learned set."""


def open_trace(path: str | Path, format_name: str | None = None, learned: str = OFF) -> Opened:
    """Open a native trace, or convert a foreign capture: a file, a directory or standard input.

    `learned`: see `choose_set`. Raises what that function and `open_capture` raise.
    """
    problems: list[Problem] = []
    with recording() as inputs:
        capture = open_capture(path, format_name)
        source, found = capture
        if found is None:
            assert isinstance(source, Source)
            return Opened(Trace(source), NATIVE, "recorded", ())
        with capture:
            used = choose_set(found.name, source, learned)
            trace = _imported(source, found, problems, used, inputs)
    return Opened(Trace(trace), found.name, found.default_policy, tuple(problems), used)


def _imported(
    source: Source | Folder,
    importer: Format,
    problems: list[Problem],
    learned: LearnedUse | None,
    inputs: Inputs,
) -> Source:
    """Return the capture as a native trace: from the cache, or newly converted and cached if possible."""
    from ctxctl.importers.registry import is_ours
    from ctxctl.session.import_cache import ImportSlot

    slot = ImportSlot(source, importer, learned)
    if not slot.usable or not is_ours(importer):
        return convert(source, importer, problems, learned)
    known = slot.load(problems, learned)
    if known is not None:
        return known

    def write(file: BinaryIO, marked: MarkedImport | None) -> None:
        write_native(source, importer, problems, file, learned=learned, marked=marked)

    made = slot.write(inputs, problems, learned, write)
    return made if made is not None else convert(source, importer, problems, learned)


def convert(
    source: Source | Folder, importer: Format, problems: list[Problem], learned: LearnedUse | None = None
) -> Source:
    """Convert a foreign capture to a native trace in memory or in an unlinked temporary file.

    Raises UnreadableError("no-space") if the temporary directory is full.
    """
    from ctxctl.trace.spool import no_space

    try:
        return _converted(source, importer, problems, learned)
    except OSError as error:
        raise no_space(source.name, error.strerror) from None


def _converted(
    source: Source | Folder, importer: Format, problems: list[Problem], learned: LearnedUse | None
) -> Source:
    import tempfile  # slow to import

    file = tempfile.SpooledTemporaryFile(max_size=_MAX_SPOOL, prefix="ctxctl-")  # noqa: SIM115 - closed below
    opened = cast("BinaryIO", file)
    try:
        write_native(source, importer, problems, opened, learned=learned)
        if not file.tell():
            return Source.from_bytes(source.name, b"")
        file.rollover()
        faults = source.problems if isinstance(source, Source) else ()
        return Source.from_file(source.name, opened, path=source.path, problems=tuple(faults))
    finally:
        with suppress(OSError):  # the reader has its own descriptor
            file.close()


def write_native(
    source: Source | Folder,
    importer: Format,
    problems: list[Problem],
    file: BinaryIO,
    pause: Callable[[], None] = lambda: None,
    learned: LearnedUse | None = None,
    marked: MarkedImport | None = None,
) -> None:
    """Write a foreign capture as a native trace. The same capture and learned set give the same bytes.

    `pause` is called at each event and may raise to stop. `marked` continues an earlier import.
    """
    from ctxctl.importers import registry
    from ctxctl.ingest.checkpoint import at_checkpoint
    from ctxctl.trace.writer import TraceWriter

    report = problems.append
    writer = TraceWriter(file, source=importer.name, report=report)
    checkpoint = None if marked is None else marked.checkpoint(file, writer, problems, report)
    with at_checkpoint(checkpoint):
        events = registry.capture_events(importer, source, report)
        for event in events if learned is None else learned.put_into(events):
            pause()
            writer.write(event)


def native_line(trace: Trace, spans: Sequence[Span], line: int) -> dict[str, Any]:
    """Return the fields of a line of the trace. Raises UsageError("no-such-line")."""
    from bisect import bisect_right

    starts = sorted((span.line, span.start) for span in spans)
    at = bisect_right(starts, (line, trace.source.size)) - 1
    first, offset = starts[at] if at >= 0 else (1, 0)
    for event in trace.events(offset, first):
        if event.line == line:
            return trace.fields(event) or {}
        if event.line > line:
            break
    raise UsageError("no-such-line", f"line {line} of the trace is not an event")
