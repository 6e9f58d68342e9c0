"""Foreign formats: what an importer is, which ones there are, and which one a file needs.

A plug-in brings another importer through the entry point group ``ctxctl.formats``.
A directory holds one capture in several files, or several captures, which are the sessions of one trace.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ctxctl.entry_points import FORMATS as GROUP
from ctxctl.entry_points import Plugin, bundled, installed, loaded
from ctxctl.errors import CtxctlError, PluginError, UnreadableError, UsageError
from ctxctl.importers.plugin import PluginFormat, guarded
from ctxctl.importers.table import TABLE, Entry, HeadWords
from ctxctl.ingest.about import About
from ctxctl.ingest.build import Maker, Place, TooMuchWorkError
from ctxctl.ingest.checkpoint import checkpoint_of
from ctxctl.ingest.declaration import Format
from ctxctl.ingest.folder import Folder, Importer, read_several
from ctxctl.ingest.lines import Report
from ctxctl.ingest.outline import OUTLINED, outline
from ctxctl.ingest.run import most_work_amid_a_record, too_much_work
from ctxctl.ingest.understood import Understood
from ctxctl.model import vocab
from ctxctl.model.problem import Problem
from ctxctl.trace.source import Source
from ctxctl.trace.unknown_file import is_native
from ctxctl.wording import plural

if TYPE_CHECKING:
    from ctxctl.ingest.fidelity import Meter

HEAD: Final = 64 * 1024
"""Bytes of a file that detection looks at; where they do not tell, it looks at an outline of more."""
_THRESHOLD = 50
_UNRECOGNISED: Final = frozenset({"no-events", "nothing-known-in-directory", "unknown-capture"})
"""Slugs of errors about what no format claims."""
_SURE: Final = 90
"""Where a format of our own is that sure, no plug-in is asked: reading all packages' metadata takes time."""
_SAMPLE: Final = 8
"""Files of a directory whose formats are compared with the directory's."""
_BEGINNINGS: Final = frozenset({"mcp-tools"})
"""Formats as which other documents begin: a request may have its tools first, and more than `HEAD` bytes of
them."""


def _load(entry: Entry) -> Plugin:
    """Load what an entry of the table declares; a format of our own that does not load is a bug and
    raises."""
    if entry.bundled:
        return bundled(GROUP, entry.name, _as_format)
    return Plugin(entry.name, entry.value, _as_format(loaded(entry.value)))


_loaded = cache(_load)


def _as_format(made: Any) -> Format:
    if not isinstance(made, Format):
        raise TypeError("is no ctxctl.ingest.declaration.Format")
    return made


@cache
def built_in() -> tuple[Format, ...]:
    """All formats that come with this package, those of its plug-ins included; imports every declaration."""
    return tuple(plugin.made for plugin in map(_loaded, TABLE) if plugin.error is None)


@cache
def _plugins() -> tuple[Plugin, ...]:
    """The plug-ins of other packages; one whose format has a name that is taken counts as not loaded."""
    taken = {entry.name: "ctxctl" for entry in TABLE}
    found: list[Plugin] = []
    for plugin in map(guarded, installed(GROUP, _as_format)):
        if plugin.error is None:
            name, by = plugin.made.name, taken.get(plugin.made.name)
            if by is not None:
                plugin = plugin._replace(made=None, error=f"its format's name {name!r} is taken by {by}")
            else:
                taken[name] = plugin.value
        found.append(plugin)
    return tuple(found)


@cache
def available() -> tuple[Format, ...]:
    """The built-in formats and those that plug-ins bring; a plug-in that fails to load is left out.

    Slow: it imports every declaration, and reads the metadata of all installed packages.
    """
    found = {one.name: one for one in built_in()}
    for plugin in _plugins():
        if plugin.error is None:
            found.setdefault(plugin.made.name, plugin.made)
    return tuple(found.values())


def broken_plugins() -> tuple[Plugin, ...]:
    """The plug-ins that did not load, or cannot detect, each with its error; ours among anybody's."""
    ours = (_loaded(entry) for entry in TABLE if entry.bundled)
    return tuple(one for one in map(_as_it_is, (*ours, *_plugins())) if one.error is not None)


def _as_it_is(plugin: Plugin) -> Plugin:
    """A plug-in with what has failed in it since it was loaded."""
    return broken_plugin_of(plugin.made) or plugin


def is_ours(made: Format) -> bool:
    """Whether a format is read by this package's own code alone; a directory's may be by plug-ins too, where
    there are any.
    """
    if isinstance(made, PluginFormat) and not any(entry.name == made.name for entry in TABLE):
        return False
    return only_ours()


def only_ours() -> bool:
    """Whether there are no plug-ins of other packages."""
    return not _plugins()


def broken_plugin_of(made: Any) -> Plugin | None:
    """The plug-in of a format that loaded and cannot detect, with its error; None for any other format."""
    return made.broken if isinstance(made, PluginFormat) else None


def hint_with_plugins(error: CtxctlError) -> str | None:
    """An error's hint; of a file that nothing recognised, with the broken plug-ins."""
    if error.slug not in _UNRECOGNISED:
        return error.hint
    parts = [error.hint] if error.hint else []
    broken = broken_plugins()
    for several, what in (
        ([one.name for one in broken if one.made is None], "did not load"),
        ([one.name for one in broken if one.made is not None], "failed to detect"),
    ):
        if several:
            shown = f"{', '.join(several)} (`ctxctl formats {several[0]}`)"
            parts.append(f"{plural(len(several), 'plug-in')} {what}: {shown}")
    return "; ".join(parts) or None


def detect(source: Source) -> Format | None:
    """The format of a file by its content; None for a native trace, and for what nobody knows.

    Plug-ins are asked too, unless a built-in format is sure.
    """
    head = source.read(0, HEAD)
    if is_native(head):
        return None
    return of_file(None if source.spooled else source.path, head, source)


def of_file(
    path: Path | None, head: bytes, source: Source | None = None, likely: str | None = None
) -> Format | None:
    """The format of a foreign file by its first bytes, and where they do not tell, by what lies further on.

    A database is recognised by the tables that it defines; a request's messages may come behind longer tools.

    Args:
        path: The file, if there is one of these very bytes.
        head: Its first `HEAD` bytes.
        source: The open file, where there is one; without it, what is asked for is read from the path.
        likely: The format of files beside it: which one is found does not depend on it, how soon does.
    """
    if head.startswith(b"SQLite format 3\0"):
        from ctxctl.ingest import database  # slow to import

        is_database = False
        for defined in database.schemas(
            path, lambda: _first_bytes(path, head, source, database.MAX_DATABASE + 1)
        ):
            is_database = True
            if (found := of_head(defined)) is not None:
                return found
        return None if is_database else of_head(head)
    found = of_head(head, likely)
    if found is not None and (found.name not in _BEGINNINGS or len(head) < HEAD):
        return found
    layout = outline(head if len(head) < HEAD else _first_bytes(path, head, source, OUTLINED))
    further = of_head(layout) if layout else None
    return further or found


def _first_bytes(path: Path | None, head: bytes, source: Source | None, size: int) -> bytes:
    """The first `size` bytes of a file; its head where no more can be read."""
    if source is not None:
        return source.read(0, size)
    try:
        with path.open("rb") if path is not None else BytesIO(head) as file:
            return file.read(size)
    except OSError:
        return head


def of_head(head: bytes, likely: str | None = None) -> Format | None:
    """The format of a foreign file by its first bytes; None for what nobody knows.

    The surest of all, of equals a built-in one.  `likely` as in `of_file`.
    """
    best, top = _built_in_for(head, likely)
    if top >= _SURE:
        return best
    for plugin in _plugins():
        if plugin.error is None and (score := plugin.made.detect(head)) > top:
            best, top = plugin.made, score
    return best


def _built_in_for(head: bytes, likely: str | None) -> tuple[Format | None, int]:
    """The surest of our own formats and its score, of equals the first of the table.

    Loads those that the head admits, and asks those that can be the surest.
    """
    words = HeadWords(head)
    best: Format | None = None
    top, place = _THRESHOLD - 1, -1
    for at, entry in _ranked(likely):
        if entry.most < top or (entry.most == top and at > place) or not words.admit(entry):
            continue
        made = _loaded(entry).made
        score = made.detect(head) if made is not None else 0
        if score > top or (score == top and at < place):
            best, top, place = made, score, at
    return best, top


@cache
def _ranked(likely: str | None) -> tuple[tuple[int, Entry], ...]:
    """The formats with their places in the table, a likely one in front: the others need to be surer."""
    return tuple(sorted(enumerate(TABLE), key=lambda row: (row[1].name != likely, row[0])))


REPEATED: Final = 30_000
"""Placements that an import's windows may list again, whatever the size of the capture: a real session that
was rewound now and then comes to some hundreds."""
_BYTES_REPEATED: Final = 64
"""Bytes of a capture that entitle it to one more: a capture whose requests are whole bodies holds each."""


RELISTED: Final = 3_000
"""As `REPEATED`, of requests that leave the conversation of the one before for an earlier place, and of those
behind them."""
_BYTES_RELISTED: Final = 4096
"""Bytes of a capture that entitle it to one more: such requests name what they go back to, and hold none."""


_WHOLE: Final = frozenset({vocab.INJECTION_APPLIED, vocab.SURFACE_CREATED, vocab.SURFACE_UPDATED})
"""Events behind which an import can end, as what they belong to is told."""


CONTRADICTED: Final = 500
"""Records with parents and ids that cannot be, and requests that go back to earlier windows, which an import
may have, whatever the size of the capture."""
_BYTES_CONTRADICTED: Final = 16_384
"""Bytes of a capture that entitle it to one more: what a request of a real session holds, and more."""


class _WindowBound:
    """Ends an import whose windows come to far more than the capture holds, or that contradicts itself all
    over.

    A line of a transcript can stand for a window of any size, by naming another line that it goes back to; a
    small file could so ask for events without end.
    """

    def __init__(self, source: Source | Folder) -> None:
        size = _size(source)
        self._repeated = REPEATED + size // _BYTES_REPEATED
        self._relisted = RELISTED + size // _BYTES_RELISTED
        self._odd = CONTRADICTED + size // _BYTES_CONTRADICTED

    def ended(self, meter: Meter, odd: int, event: dict[str, Any]) -> Problem | None:
        """What is told where the import ends with this event; None while it goes on."""
        for listed, most in ((meter.repeated, self._repeated), (meter.relisted, self._relisted)):
            if listed > most:
                return self._too_large(event, most)
        return self._contradictory(event, meter.requests) if odd > self._odd <= meter.requests else None

    def _too_large(self, event: dict[str, Any], most: int) -> Problem:
        message = (
            f"the requests up to here go back to earlier windows so often that these list {most:,} items"
            " again: the rest of the capture is not read"
        )
        return Problem(_line(event), 0, "windows-too-large", message)

    def _contradictory(self, event: dict[str, Any], requests: int) -> Problem:
        message = (
            f"more than {self._odd:,} records have parents or ids that cannot be, or go back to earlier"
            f" windows: after {plural(requests, 'request')} the rest of the capture is not read"
        )
        return Problem(_line(event), 0, "contradictory-records", message)


def _size(source: Source | Folder) -> int:
    if isinstance(source, Source):
        return source.size
    found = 0
    for name in source.files:
        try:
            found += (source.path / name).stat().st_size
        except OSError:
            continue
    return found


def _line(event: dict[str, Any]) -> int:
    line = event.get("metadata", {}).get("ctxctl", {}).get("source_line", 0)
    return line if isinstance(line, int) else 0


def capture_events(importer: Format, source: Source | Folder, report: Report) -> Iterator[dict[str, Any]]:
    """A capture's events; the first one names the format, the policy under which the format is replayed, and
    the working directory where the capture begins with it.

    So an imported trace replays as the capture itself does.  The last one says what the capture held of each
    fact (`ctxctl.fidelity.measured`); a capture without any event gives one that says so.

    What a plug-in yielded before it failed is kept, and the failure is a problem (`plugin-failed`); one that
    yielded nothing raises it, as any does under CTXCTL_TRACEBACK.

    Windows that come to far more than the capture holds end the import (`windows-too-large`), and so do
    records that contradict each other all over (`contradictory-records`).
    """
    from ctxctl.ingest.fidelity import Meter, ProblemLimit, UnchangedWindows, measure  # only imports need it

    checkpoint = checkpoint_of(source)
    if checkpoint is not None and checkpoint.state:
        account, meter, unchanged, limited_report, first = checkpoint.state["measured"]
    else:
        account = Understood(importer.about.held_against)
        meter, unchanged = Meter(importer.about, account), UnchangedWindows()
        first = True
        limited_report = ProblemLimit(report, account)
        for lacking in source.lacking if isinstance(source, Folder) else ():
            limited_report(lacking)
    if checkpoint is not None:
        checkpoint.hand_in("measured", lambda: (account, meter.entered(), unchanged, limited_report, first))
    bound: _WindowBound | None = None
    try:
        for event in _bounded(importer, source, account, limited_report):
            if first:
                first = False
                _stamp(event, importer, source)
            meter.see(event)
            if not unchanged.changed:
                unchanged.see(event)
            yield event
            odd = account.contradictions + meter.branched
            over = meter.repeated > REPEATED or meter.relisted > RELISTED or odd > CONTRADICTED
            if over and event["event_type"] in _WHOLE:
                bound = bound or _WindowBound(source)
                if (ended := bound.ended(meter, odd, event)) is not None:
                    limited_report(ended)
                    break
    except PluginError as error:
        if first or os.environ.get("CTXCTL_TRACEBACK"):
            raise
        limited_report(Problem(0, 0, error.slug, error.message))
    measured = measure(source, meter, account, [*unchanged.problems()], limited_report)
    limited_report.finish()
    make = Maker(importer.name, f"{importer.name}-end-")
    if first:
        data = {"format": importer.name, "file": source.name.rpartition("/")[2]}
        opened = make.event(vocab.SOURCE_OPENED, data, Place())
        _stamp(opened, importer, source)
        yield opened
    yield make.event(vocab.FIDELITY_MEASURED, {"format": importer.name, **measured}, Place())


def _bounded(
    importer: Format, source: Source | Folder, account: Understood, report: Report
) -> Iterator[dict[str, Any]]:
    """The events of a capture, up to the one with which it comes to look at too much again."""
    account.most_work = most_work_amid_a_record(_size(source))
    try:
        yield from importer.read(source, report)
    except TooMuchWorkError as ended:
        yield from ended.made
        report(Problem(0, 0, "windows-too-large", too_much_work(int(account.most_work))))


def _stamp(event: dict[str, Any], importer: Format, source: Source | Folder) -> None:
    """Say in a capture's first event what holds of all of it."""
    from ctxctl.importers.whereabouts import directory_of

    ours = event.setdefault("metadata", {}).setdefault("ctxctl", {})
    ours["format"] = importer.name
    ours["policy"] = importer.default_policy
    directory = directory_of(source) if isinstance(source, Source) else None
    if directory is not None:
        ours["cwd"] = directory


def by_name(name: str) -> Format:
    """A format by its `--read-as` name; raises UsageError("unknown-format") naming what comes near.

    A plug-in is found by the name of its entry point too, and one that did not load is told with its error.
    """
    own = next((_loaded(entry) for entry in TABLE if entry.name == name), None)
    if own is not None and own.error is None:
        return _as_format(own.made)
    called = [candidate for candidate in available() if is_named(candidate, name)]
    if called:
        return min(called, key=lambda candidate: candidate.name != name)
    from difflib import get_close_matches

    hint = "ctxctl formats lists them"
    failed = next((plugin for plugin in broken_plugins() if plugin.name == name), None)
    if failed is not None:
        hint = f"the plug-in {failed.value} {failed.trouble}"
    elif near := get_close_matches(name, [f.name for f in available()], n=3, cutoff=0.5):
        hint = f"did you mean {', '.join(near)}? {hint}"
    raise UsageError("unknown-format", f"no format named {name!r}", hint=hint)


def rebuilds_windows(name: str | None) -> bool:
    """Whether a format lists no request's window, so that its importer rebuilds them from a history."""
    if name is None or all(entry.name != name for entry in TABLE):
        return False
    claim = by_name(name).about.claims.get("order")
    return claim is not None and claim.level != "native"


def is_named(found: Format, name: str) -> bool:
    """Whether a format goes by that name: its own, or that of the entry point which brings it."""
    return found.name == name or (isinstance(found, PluginFormat) and found.plugin.name == name)


_SHOWN = 5
_MIXED = About(reads="captures of several formats in one directory", places=(), turns="", claims={})


def detect_folder(folder: Folder) -> Format | str:
    """The format that reads a directory, or the name of the one native trace in it.

    Raises:
        UnreadableError: `nothing-known-in-directory`, `several-traces-in-directory`.
    """
    from ctxctl.importers.transcript_folders import is_mixed, whole_sessions

    whole = format_of_folder(folder)
    if whole is not None and not is_mixed(folder, whole, format_in):
        return whole
    found: list[tuple[str, Format]] = []
    traces: list[str] = []
    for name in folder.files:
        head = folder.head(name, HEAD)
        if not head:
            folder.note_unread(name)
        elif is_native(head):
            traces.append(name)
        elif (known := _format_of_file(folder, name, head)) is not None:
            found.append((name, known))
    if traces and not found and len(traces) == 1:
        return traces[0]
    if not found:
        raise _nothing_known(folder, traces)
    for name in traces:
        message = f"{name} is a trace, which is not read together with captures: name it"
        folder.lacking.append(Problem(0, 0, "trace-beside-captures", message))
    kept = whole_sessions([(name, importer.name) for name, importer in found])
    return several_of([(name, importer) for name, importer in found if name in kept])


def format_in(folder: Folder, name: str, likely: str | None = None) -> str | None:
    """The name of the format of a directory's file, `native` for a trace; None for what nobody knows.

    `likely` as in `of_file`.
    """
    head = b""
    try:
        with folder.open(name) as source:
            head = source.read(0, HEAD)
            if is_native(head):
                return "native"
            found = of_file(None if source.spooled else source.path, head, source, likely) if head else None
    except (CtxctlError, OSError):
        found = of_head(head) if head else None
    return None if found is None else found.name


def _format_of_file(folder: Folder, name: str, head: bytes) -> Format | None:
    try:
        with folder.open(name) as source:
            return of_file(None if source.spooled else source.path, head, source)
    except (CtxctlError, OSError):
        return of_head(head)


def format_of_folder(folder: Folder) -> Format | None:
    """The format of a directory that is one capture, or holds sessions of one; None for any other.

    If no file of it has that format by itself, and all are as surely of another, it is None; so it is for a
    directory of one
    such file.
    """
    best: Format | None = None
    top = _THRESHOLD - 1
    for candidate in available():
        score = candidate.detect_folder(folder) if candidate.detect_folder is not None else 0
        if score > top:
            best, top = candidate, score
    others: list[int] = []
    for name in folder.files[:: max(1, len(folder.files) // _SAMPLE)] if best is not None else ():
        head = folder.head(name, HEAD)
        found = _format_of_file(folder, name, head) if head and not is_native(head) else None
        if found is not None and best is not None and found.name == best.name:
            return best
        if found is not None:
            others.append(found.detect(head))
    return None if others and (min(others) >= top or len(folder.files) == 1) else best


def _nothing_known(folder: Folder, traces: list[str]) -> UnreadableError:
    if traces:
        names = ", ".join(traces[:_SHOWN]) + (" …" if len(traces) > _SHOWN else "")
        return UnreadableError(
            "several-traces-in-directory", f"{folder.name} holds {len(traces)} traces: {names}",
            hint="name one of them",
        )  # fmt: skip
    files = plural(len(folder.files), "file")
    said = f"{folder.name}: none of its {files} is a trace or a known capture"
    if folder.lacking:
        more = f", and {len(folder.lacking) - 1} more" if len(folder.lacking) > 1 else ""
        said += f", as far as it can be read ({folder.lacking[0].message}{more})"
    return UnreadableError("nothing-known-in-directory", said, hint="ctxctl formats lists what can be opened")


def several_of(captures: list[tuple[str, Format]]) -> Format:
    """The format of captures beside each other, read in the order of their names.

    A capture without a session is one; ids and sessions are told apart by the file's name.
    """
    kinds = {importer.name: importer for _, importer in captures}
    one = next(iter(kinds.values()))

    def read(folder: Folder, report: Report) -> Iterator[dict[str, Any]]:
        readers: dict[str, Importer] = dict(captures)
        for importer in kinds.values():
            names = [name for name, its in captures if its.name == importer.name]
            readers.update(importer.readers(folder, names, report))
        yield from read_several(folder, list(readers.items()), report)

    only = len(kinds) == 1
    return Format(
        name=one.name if only else "several",
        title=one.title if only else "captures of several kinds",
        detect=one.detect,
        reader=one.reader,
        about=one.about if only else _MIXED,
        default_policy=one.default_policy if only else "recorded",
        detect_folder=lambda folder: 0,
        folder_reader=read,
    )
