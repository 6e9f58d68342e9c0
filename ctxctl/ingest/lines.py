"""Lines of a foreign file with their place in it, and the JSON values that can be saved from each."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import orjson

from ctxctl.ingest.checkpoint import Checkpoint, checkpoint_of
from ctxctl.ingest.lookahead import LookAhead
from ctxctl.ingest.understood import account_of
from ctxctl.model.problem import Problem
from ctxctl.trace.lines import Block, line_blocks
from ctxctl.trace.salvage import FAULTS_PER_LINE, PIECES_PER_LINE, repair_line
from ctxctl.trace.source import Source

Report = Callable[[Problem], None]

MAX_DOCUMENT = 16 * 1024 * 1024
"""Largest file that is read as one pretty-printed JSON document."""
_MAX_RESYNC = 16
_BOM = b"\xef\xbb\xbf"
_RETURN = ord("\r")

_BETWEEN = " \t\r\0,"
_RECORD_START = re.compile(
    r'\{\s*"(?:parentUuid|logicalParentUuid|type|uuid|sessionId|isSidechain|message|timestamp|kind)"\s*:'
)


class Line(NamedTuple):
    """One line without its line end."""

    number: int
    """The number of the line, from 1 on."""
    offset: int
    """Byte offset of its first byte in the (decompressed) file."""
    data: bytes


WHOLE_FILE: Final = Line(1, 0, b"")
"""The place of what a file holds as a whole: a document, a database, one body."""


def ignore_problem(_problem: Problem) -> None:
    """A `Report` for a second pass over a file: the first one has told, or will tell, what is wrong in it."""


def lines(source: Source, report: Report, checkpoint: Checkpoint | None = None) -> Iterator[Line]:
    """The non-blank lines of a source, split on newlines only, in bounded memory.

    With a checkpoint those from where it begins, and behind the last whole one a line without data.
    """
    number = 0 if checkpoint is None else checkpoint.number
    # A named tuple's own constructor costs as much as the rest of the loop.
    made, line = tuple.__new__, Line
    for block in line_blocks(source) if checkpoint is None else _blocks(source, checkpoint):
        if block is None:
            yield Line(number, 0, b"")
            continue
        if block.hole is not None:
            report(Problem(number + 1, block.base, block.hole.slug, block.hole.message))
            number += block.hole.whole_line
            continue
        offset = block.base
        parts = block.data.split(b"\n")
        if block.ended:
            parts.pop()
        if offset == 0 and parts and parts[0].startswith(_BOM):
            offset, parts[0] = len(_BOM), parts[0][len(_BOM) :]
        for data in parts:
            number += 1
            size = len(data) + 1
            if size > 1 and not data.isspace():
                yield made(line, (number, offset, data if data[-1] != _RETURN else data[:-1]))
            offset += size


def _blocks(source: Source, checkpoint: Checkpoint) -> Iterator[Block | None]:
    yield from line_blocks(source, checkpoint.offset, checkpoint.stop)
    yield None
    yield from line_blocks(source, checkpoint.stop)


def values(
    source: Source, report: Report, skip: Callable[[bytes], Any] | None = None
) -> Iterator[tuple[Line, Any]]:
    """The JSON values of a file of JSON lines, or of one pretty-printed document or array.

    Damaged lines are salvaged as far as possible and reported; one line may give several values.  Lines that
    `skip` says yes to are not even parsed (the first one always is).
    """
    checkpoint = checkpoint_of(source)
    stream = lines(source, report, checkpoint)
    first = next(stream, None)
    if first is None:
        return
    begins = checkpoint is None or not checkpoint.offset
    if begins and first.data.strip() in (b"{", b"["):
        if checkpoint is not None:
            checkpoint.pass_over()
        document = _document(source)
        if document is not None:
            for value in document if isinstance(document, list) else [document]:
                yield first, value
            return
    loads = orjson.loads
    ahead = LookAhead(stream, checkpoint)
    waiting: deque[Line] = ahead.waiting
    waiting.append(first)
    while (line := waiting.popleft() if waiting else next(stream, None)) is not None:
        data = line.data
        if not data and checkpoint is not None:
            checkpoint.reach(line.number)
            continue
        if skip is not None and (line is not first or not begins) and skip(data):
            continue
        try:
            value = loads(data)
        except orjson.JSONDecodeError:
            joined = ahead.join(line)
            if joined is not None:
                yield line._replace(data=b""), joined
                continue
            found = salvage(line, report)
            if not found:
                account_of(report).lost(len(data))
            if len(found) > 1:
                # Without the check, each value would be looked for in the whole line again.
                line = line._replace(data=b"")
            for value in found:
                yield line, value
        else:
            yield line, value


def _document(source: Source) -> Any:
    data = source.read(0, MAX_DOCUMENT + 1)
    if len(data) > MAX_DOCUMENT:
        return None
    try:
        return orjson.loads(data.removeprefix(_BOM))
    except orjson.JSONDecodeError:
        return None


def values_of_line(line: Line, report: Report) -> list[Any]:
    """The JSON values of one line."""
    try:
        return [orjson.loads(line.data)]
    except orjson.JSONDecodeError:
        return salvage(line, report)


def salvage(line: Line, report: Report) -> list[Any]:
    """What can be read of a line that is not one valid JSON document; reports at which byte it went wrong.

    Beside the repairs of `trace.salvage`, several records glued on one line are taken apart, and a record
    that is cut short by the next one is skipped.
    """
    data, start, faults = repair_line(line.data)
    for fault in faults:
        report(Problem(line.number, line.offset + fault.at, fault.slug, fault.message))
    if not data:
        return []
    found: list[Problem] = []
    taken = _split(data.decode("utf-8", "replace"), line.offset + start, line.number, found.append)
    exact = data in line.data
    for problem in found:
        # In a text that repairs have made longer or shorter, a fault has no byte but its line's.
        byte = problem.byte if exact else line.offset + start
        report(Problem(problem.line, byte, problem.slug, problem.message))
    return taken


def _split(text: str, base: int, number: int, report: Report) -> list[Any]:
    """The JSON values of a line's text, which begins at byte `base`."""
    decoder = json.JSONDecoder(strict=False)
    found: list[Any] = []
    at = seen = tries = 0
    while at < len(text):
        if text[at] in _BETWEEN:
            at += 1
            continue
        base += len(text[seen:at].encode("utf-8", "replace"))
        place, seen = base, at
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            following = _RECORD_START.search(text, at + 1)
            tries += 1
            reason = getattr(error, "msg", "nested too deep").lower()
            report(Problem(number, place, "bad-json", f"not valid JSON ({reason}); skipped"))
            if following is None or tries > _MAX_RESYNC:
                break
            at = following.start()
            continue
        if len(found) == PIECES_PER_LINE:
            message = f"more than {PIECES_PER_LINE} records on one line; the rest is skipped"
            report(Problem(number, place, "glued-lines", message))
            break
        if 0 < len(found) < FAULTS_PER_LINE:
            report(Problem(number, place, "glued-lines", "a second record begins on the same line"))
        found.append(value)
        at = end
    return found
