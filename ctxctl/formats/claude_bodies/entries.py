"""What a dump's index says: which files are one exchange, of which session, and in which order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ctxctl.errors import CtxctlError
from ctxctl.formats.build import Json
from ctxctl.formats.claude_bodies import INDEX, REQUEST, RESPONSE
from ctxctl.formats.kit.folder import Folder
from ctxctl.formats.kit.parts import string
from ctxctl.formats.kit.run import Run
from ctxctl.model.problem import Problem


class Entry(NamedTuple):
    """One exchange; file names are relative to the folder."""

    request: str | None
    response: str | None
    session: str | None = None
    time: str | None = None
    """RFC 3339, of the answer."""
    request_id: str | None = None
    message_id: str | None = None


class Files(NamedTuple):
    """What a folder holds of dumps."""

    entries: list[Entry]
    """As the indexes say, in their order."""
    requests: list[str]
    """Bodies of requests that no index names (no answer came, or the client is too old to write one)."""
    responses: list[str]


def listed(folder: Folder, run: Run) -> Files:
    """The exchanges that the folder's indexes name, and what is left over."""
    entries: list[Entry] = []
    for name in folder.files:
        if name.rpartition("/")[2] == INDEX:
            entries += _indexed(folder, name, run)
    named = {name for entry in entries for name in (entry.request, entry.response)}
    rest = [name for name in folder.files if name not in named]
    return Files(
        entries,
        [name for name in rest if name.endswith(REQUEST)],
        [name for name in rest if name.endswith(RESPONSE)],
    )


def _indexed(folder: Folder, index: str, run: Run) -> Iterator[Entry]:
    prefix = index.removesuffix(INDEX)
    run.make.file = index
    try:
        source = folder.open(index)
    except CtxctlError as error:
        run.report(Problem(0, 0, error.slug, str(error)))
        return
    seen: set[str] = set()
    with source:
        for record in run.records(source):
            made = entry(record, prefix)
            if made is None:
                run.problem("unknown-record", "names no body of a request; skipped")
            elif made.request is not None and made.request in seen:
                run.problem("duplicate-entry", f"{made.request} was named before; skipped")
            else:
                seen.add(made.request or "")
                yield made


def entry(record: Json, prefix: str = "") -> Entry | None:
    """A line of an index; None for what names no file.  A name never leads out of the directory."""
    request, response = _file(record, "request_file", prefix), _file(record, "response_file", prefix)
    if request is None:
        return None
    return Entry(
        request,
        response,
        string(record.get("session_id")),
        string(record.get("timestamp")),
        string(record.get("request_id")),
        string(record.get("message_id")),
    )


def _file(record: Json, field: str, prefix: str) -> str | None:
    name = string(record.get(field))
    if name is None:
        return None
    base = name.replace("\\", "/").rpartition("/")[2]
    return f"{prefix}{base}" if base else None
