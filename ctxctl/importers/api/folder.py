"""A directory of bodies: which files are a pair, and in what order they were sent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, NamedTuple

import orjson

from ctxctl.errors import CtxctlError
from ctxctl.importers.api import is_body_file
from ctxctl.importers.api.reader import MAX_STREAM, NAME, Log, framed_events
from ctxctl.importers.api.records import body_record
from ctxctl.ingest.build import Json
from ctxctl.ingest.document import document
from ctxctl.ingest.folder import Folder
from ctxctl.ingest.lines import Line, Report, lines, values
from ctxctl.ingest.run import Run
from ctxctl.model.problem import Problem
from ctxctl.providers.calls import encodings
from ctxctl.providers.calls.recognise import is_answer
from ctxctl.trace.source import Source

_ASKED: Final = re.compile(r"(?<![a-z])(?:requests?|req|prompt|input|in|sent)(?![a-z])")
_ANSWERED: Final = re.compile(
    r"(?<![a-z])(?:responses?|resp?|reply|answer|output|out|completion|received|stream)(?![a-z])"
)
_ENDS: Final = re.compile(r"(?:\.(?:json|jsonl|ndjson|sse|txt|body|gz|zst|event-stream))+\Z")
_NUMBER: Final = re.compile(r"\d+")
_WHOLE: Final = Line(1, 0, b"")
"""The place of what is a file by itself."""


class _Name(NamedTuple):
    """A file by its name."""

    stem: str
    """The same for a request and its answer."""
    answer: bool | None
    """None: the name does not say."""
    file: str


def _named(file: str) -> _Name:
    folder, slash, base = file.rpartition("/")
    base = _ENDS.sub("", base.lower())
    kind: bool | None = None
    if _ANSWERED.search(base):
        kind = True
        base = _ANSWERED.sub("", base)
    elif _ASKED.search(base):
        kind = False
        base = _ASKED.sub("", base)
    if kind is None and slash:
        # One directory of requests and one of answers, with the same names in both.
        last = folder.rpartition("/")[2].lower()
        if _ANSWERED.fullmatch(last) or _ASKED.fullmatch(last):
            kind = _ANSWERED.fullmatch(last) is not None
            folder = folder.rpartition("/")[0]
    return _Name(f"{folder}/{base.strip('-_. ')}", kind, file)


def _order(stem: str) -> tuple[tuple[int, Any], ...]:
    """Sorts names by the numbers in them."""
    made: list[tuple[int, Any]] = []
    at = 0
    for match in _NUMBER.finditer(stem):
        made += [(1, stem[at : match.start()]), (0, int(match.group()[:18]))]
        at = match.end()
    return (*made, (1, stem[at:]))


def read_folder(folder: Folder, report: Report) -> Iterator[Json]:
    """The directory's events; problems and events name the file they are from."""
    run = Run(NAME, report)
    log = Log(run)
    groups: dict[str, list[_Name]] = {}
    for file in folder.files:
        if is_body_file(file):
            name = _named(file)
            groups.setdefault(name.stem, []).append(name)
    for stem in sorted(groups, key=_order):
        names = sorted(groups[stem], key=lambda name: (name.answer is True, name.file))
        for name in names:
            run.make.file = name.file
            for record, line in _records(folder, name, run):
                yield from log.take(record, line)
        if len(names) > 1:
            yield from log.flush()
        yield from run.drain()
    yield from log.finish()


def _records(folder: Folder, name: _Name, run: Run) -> Iterator[tuple[Any, Line]]:
    """The bodies of a file, with the lines that they are on."""
    try:
        source = folder.open(name.file)
    except CtxctlError as error:
        run.report(Problem(0, 0, error.slug, str(error)))
        return
    with source:
        head = source.read(0, 1 << 10).decode("utf-8", "replace")
        if encodings.is_stream(head):
            yield source.read(0, MAX_STREAM).decode("utf-8", "replace").removeprefix("\ufeff"), _WHOLE
            return
        if _is_lines(source):
            answer = framed_events(source, run) if name.answer else None
            if answer is not None:
                yield answer, _WHOLE
            else:
                yield from ((record, line) for line, record in values(source, run.report))
            return
        value = document(source, run.report)
    records = value if isinstance(value, list) and not is_answer(value) else [value]
    for record in records:
        if record is not None and (body_record(record) is not None or name.answer is not None):
            yield record, _WHOLE


def _is_lines(source: Source) -> bool:
    """Whether a file is JSON lines: more follows what is a whole object already."""
    first, *more = [*islice(lines(source, lambda _: None), 2)] or [_WHOLE]
    try:
        return bool(more) and isinstance(orjson.loads(first.data), dict)
    except orjson.JSONDecodeError:
        return False
