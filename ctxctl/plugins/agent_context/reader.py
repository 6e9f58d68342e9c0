"""Finds the records of a capture: in JSON documents, JSON lines, YAML, and fenced blocks of Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import orjson

from ctxctl.errors import UnreadableError
from ctxctl.ingest import yaml_text
from ctxctl.ingest.build import Json
from ctxctl.ingest.document import MAX_DOCUMENT, document
from ctxctl.ingest.folder import Folder
from ctxctl.ingest.lines import Line, Report, values
from ctxctl.ingest.run import Run
from ctxctl.ingest.yaml_text import Weigher
from ctxctl.plugins.agent_context import is_read, records
from ctxctl.plugins.agent_context.events import Emitter
from ctxctl.plugins.agent_context.grouping import Capture
from ctxctl.plugins.agent_context.loose import LooseRecord
from ctxctl.trace.source import Source

_BOM: Final = b"\xef\xbb\xbf"
_OPEN: Final = re.compile(rb"[ \t]{0,12}(?P<fence>```+|~~~+)[ \t]*(?P<name>[A-Za-z0-9_+-]*)[^\n]*")
_JSON_NAMES: Final = frozenset({b"json", b"jsonc", b"json5", b"jsonl", b"ndjson"})
_YAML_NAMES: Final = frozenset({b"yaml", b"yml"})
_ID: Final = 500
_SCHEMA_ID: Final = re.compile(r"agentcontext.*\.schema\.json")


class Reader:
    """Reads one capture of Agent Context records."""

    def __init__(self, name: str, report: Report) -> None:
        self._run = Run(name, report)
        self._capture = Capture()
        self._bundles = 0
        self._weigher = Weigher()

    def events(self, source: Source) -> Iterator[Json]:
        """The events of one file."""
        self._read(source)
        yield from self._told()

    def folder_events(self, folder: Folder) -> Iterator[Json]:
        """The events of a directory; refs are resolved over all its files."""
        for name in filter(is_read, folder.files):
            self._run.make.file = name
            try:
                with folder.open(name) as source:
                    self._read(source)
            except UnreadableError as error:
                self._run.problem(error.slug, error.message, Line(0, 0, b""))
        self._run.make.file = None
        yield from self._told()

    def _told(self) -> Iterator[Json]:
        if not (self._capture.loose or self._capture.events or self._capture.schemas):
            self._run.problem("no-records", "no context record in it", Line(0, 0, b""))
        return Emitter(self._run, self._capture).events()

    def _read(self, source: Source) -> None:
        head = source.read(0, 1 << 16).removeprefix(_BOM).lstrip()
        if head[:1] in (b"{", b"["):
            self._json(source)
        elif _OPEN.search(head) or not head[:1].isalnum():
            self._markdown(source)
        else:
            self._yaml(_text(source), 0)

    def _json(self, source: Source) -> None:
        """JSON lines, or one document in whatever layout."""
        head = source.read(0, 1 << 16).removeprefix(_BOM).lstrip()
        first = head.split(b"\n", 1)[0].strip()
        if _is_value(first) or first.startswith(b'{"'):
            for line, value in values(source, self._run.report):
                self._run.line = line
                self._take(value, line)
            return
        found = document(source, self._run.report)
        if found is not None:
            self._take(found, Line(1, 0, b""))

    def _markdown(self, source: Source) -> None:
        """Every fenced block that says it is JSON or YAML; a block's records are told by its first line."""
        for name, line, body in _blocks(_text(source)):
            self._run.line = line
            if name in _YAML_NAMES:
                self._yaml(body, line.number)
                continue
            with Source.from_bytes(source.name, body) as inner:
                self._block(inner, line)

    def _block(self, inner: Source, at: Line) -> None:
        first = inner.read(0, 1 << 16).lstrip().split(b"\n", 1)[0].strip()
        if _is_value(first):
            for _, value in values(inner, self._run.report):
                self._take(value, at)
        else:
            self._take(document(inner, self._run.report), at)

    def _yaml(self, body: bytes, line: int) -> None:
        yaml = yaml_text.module("the records are YAML")
        loader = yaml_text.loader(yaml)
        text = body.decode("utf-8", "replace")
        at = Line(line or 1, 0, b"")
        try:
            self._weigher.weigh(yaml, text, loader)
            found = list(yaml.load_all(text, Loader=loader))
        except yaml_text.BombError as error:
            self._run.problem("yaml-bomb", str(error), at)
            return
        except yaml_text.damage(yaml) as error:
            what = str(error).partition("\n")[0]
            self._run.problem("bad-yaml", f"not valid YAML ({what}); skipped", at)
            return
        for value in found:
            self._take(_plain(value), at)

    def _take(self, value: Any, line: Line) -> None:
        if isinstance(value, dict) and _SCHEMA_ID.search(str(value.get("$id"))[:_ID]):
            self._capture.schemas = True
            if self._run.make.file is None:
                title = value.get("title")
                what = title if isinstance(title, str) else "a record"
                self._run.problem("no-records", f"the JSON Schema of {what}: it holds no record", line)
            return
        found = False
        self._bundles += 1
        for kind, record in records.records(value):
            found = True
            self._run.understood.version(record.get("schema_version"), line.number, line.offset)
            if kind is None:
                self._capture.events.append((record, line.number, self._run.make.file))
            else:
                self._capture.add(LooseRecord(kind, record, line.number, self._run.make.file, self._bundles))
        if not found and value is not None:
            self._run.problem("unknown-record", "no context record in it; skipped", line)


def _is_value(line: bytes) -> bool:
    """Whether a line is a whole JSON value."""
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return True


def _text(source: Source) -> bytes:
    return source.read(0, MAX_DOCUMENT).removeprefix(_BOM)


def _blocks(text: bytes) -> Iterator[tuple[bytes, Line, bytes]]:
    """Language, place and body of the fenced blocks of JSON or YAML; an open one goes to the end."""
    fence = name = b""
    body: list[bytes] = []
    start = Line(0, 0, b"")
    offset = 0
    for number, row in enumerate(text.split(b"\n"), 1):
        line = row.rstrip(b"\r")
        if fence:
            if line.strip().startswith(fence) and not line.strip().strip(fence[:1]):
                if name in _JSON_NAMES | _YAML_NAMES:
                    yield name, start, b"\n".join(body)
                fence = b""
            else:
                body.append(line)
        elif (match := _OPEN.fullmatch(line)) is not None:
            fence, name, body = match["fence"], match["name"].lower(), []
            start = Line(number + 1, offset + len(row) + 1, b"")
        offset += len(row) + 1
    if fence and name in _JSON_NAMES | _YAML_NAMES:
        yield name, start, b"\n".join(body)


def _plain(value: Any) -> Any:
    """YAML's values as JSON has them: dates as text, keys as text, aliases written out."""
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple | set):
        return [_plain(one) for one in value]
    if value is None or isinstance(value, str | bool | int | float):
        return value
    stamp = getattr(value, "isoformat", None)
    return str(stamp()) if stamp is not None else str(value)
