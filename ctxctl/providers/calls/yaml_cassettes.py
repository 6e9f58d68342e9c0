"""YAML documents of unknown origin: no objects made, no aliases multiplied, damage kept to its entry."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from ctxctl.ingest import yaml_text
from ctxctl.ingest.lines import Report
from ctxctl.ingest.yaml_text import BombError, Weigher
from ctxctl.model.problem import Problem
from ctxctl.providers.calls.encodings import plain, unbase64
from ctxctl.trace.source import Source

MAX_YAML: Final = 64 << 20
"""Bytes of the largest YAML document that is read."""
_ENTRY: Final = re.compile(rb"^([ ]*)-(?:[ ]|\r?$)", re.M)
_ALIAS: Final = re.compile(rb"([:-][ ]+)\*([A-Za-z0-9_-]+)(?=[ ]*\r?$)", re.M)
_ANCHOR: Final = re.compile(rb"&([A-Za-z0-9_-]+)")
_OWN_KEY: Final = re.compile(rb"^(?![ ]*-)(?=\S)[^\n#]*:", re.M)


class Piece(NamedTuple):
    """One entry of the document's list."""

    line: int
    """1-based line where it begins; 0 if it cannot be told."""
    value: Any


class Document(NamedTuple):
    """The list that a document is about, and the fields beside it."""

    pieces: list[Piece]
    fields: dict[str, Any]


def load(source: Source, keys: tuple[str, ...], report: Report) -> Document | None:
    """The entries of the top-level list under one of `keys`, or of a document that is a list; JSON values.

    A document that does not parse is read entry by entry; what does not parse then is reported and left out.
    Problems: `document-too-large`, `yaml-bomb`, `bad-yaml`.  None if nothing of it can be read.

    Raises:
        UnavailableError: `needs-yaml`.
    """
    data = source.read(0, MAX_YAML + 1)
    if len(data) > MAX_YAML:
        limit = MAX_YAML >> 20
        report(Problem(1, 0, "document-too-large", f"one YAML document of more than {limit} MiB; not read"))
        return None
    yaml = yaml_text.module("this capture is YAML")
    loader = _loader(yaml)
    try:
        value = _value(yaml, data, loader, Weigher())
    except BombError as error:
        report(Problem(1, 0, "yaml-bomb", str(error)))
        return None
    except yaml_text.damage(yaml) as error:
        line, at = _mark(error, 1)
        report(Problem(line, 0, "bad-yaml", f"not valid YAML ({at}); read entry by entry"))
        return Document(list(_one_by_one(yaml, data, keys, report)), {})
    return _entries(value, keys, data)


def _entries(value: Any, keys: tuple[str, ...], data: bytes) -> Document | None:
    fields = value if isinstance(value, dict) else {}
    found = value if isinstance(value, list) else None
    for key in keys:
        if isinstance(fields.get(key), list):
            found = fields[key]
            break
    if found is None:
        return None
    starts = [line for line, _, _ in _spans(data, keys)]
    lines = starts if len(starts) == len(found) else [0] * len(found)
    pieces = [Piece(line, plain(entry)) for line, entry in zip(lines, found, strict=True)]
    rest = {k: plain(v) for k, v in fields.items() if isinstance(k, str) and k not in keys}
    return Document(pieces, rest)


def _one_by_one(yaml: Any, data: bytes, keys: tuple[str, ...], report: Report) -> Iterator[Piece]:
    loader, weigher = _loader(yaml), Weigher()
    for line, start, end in _spans(data, keys):
        try:
            value = _value(yaml, _closed(data[start:end]), loader, weigher)
        except BombError as error:
            report(Problem(line, start, "yaml-bomb", str(error)))
            continue
        except yaml_text.damage(yaml) as error:
            at, what = _mark(error, line)
            report(Problem(at, start, "bad-yaml", f"not valid YAML ({what}); this entry is skipped"))
            continue
        if isinstance(value, list):
            for entry in value:
                yield Piece(line, plain(entry))


def _closed(piece: bytes) -> bytes:
    """An entry by itself: what it takes over from earlier ones by alias (headers, as a rule) is null."""
    own = set(_ANCHOR.findall(piece))
    return _ALIAS.sub(lambda m: m[0] if m[2] in own else m[1] + b"null", piece)


def _spans(data: bytes, keys: tuple[str, ...]) -> Iterator[tuple[int, int, int]]:
    """Line, first and last byte of each entry of the list, found by its indentation."""
    names = "|".join(re.escape(key) for key in keys).encode()
    head = re.search(rb"^(?:" + names + rb")[ ]*:[ ]*(?:#.*)?\r?$", data, re.M)
    at = head.end() if head is not None else 0
    first = _ENTRY.search(data, at)
    if first is None:
        return
    indent = len(first.group(1))
    # A key of the document's own ends the list.
    own = _OWN_KEY.search(data, first.end()) if head is not None else None
    stop = own.start() if own is not None else len(data)
    starts = [m.start() for m in _ENTRY.finditer(data, at, stop) if len(m.group(1)) == indent]
    line, before = 1, 0
    for start, end in zip(starts, [*starts[1:], stop], strict=True):
        line += data.count(b"\n", before, start)
        before = start
        yield line, start, end


# -- parsing --------------------------------------------------------------------------------------------


def _mark(error: Exception, line: int) -> tuple[int, str]:
    mark = getattr(error, "problem_mark", None)
    what = getattr(error, "problem", None) or str(error).partition("\n")[0] or type(error).__name__
    return line + (mark.line if mark is not None else 0), str(what)


def _value(yaml: Any, data: bytes, loader: Any, weigher: Weigher) -> Any:
    weigher.weigh(yaml, data, loader)
    return yaml.load(data, Loader=loader)


def _loader(yaml: Any) -> Any:
    """A safe loader that makes no dates, and plain values of foreign tags."""
    made = yaml_text.loader(yaml)

    def text(loader: Any, node: Any) -> Any:
        return loader.construct_scalar(node)

    def binary(loader: Any, node: Any) -> Any:
        return unbase64(str(loader.construct_scalar(node))) or b""

    def other(loader: Any, _suffix: str, node: Any) -> Any:
        if isinstance(node, yaml.MappingNode):
            return loader.construct_mapping(node, deep=True)
        if isinstance(node, yaml.SequenceNode):
            return loader.construct_sequence(node, deep=True)
        return loader.construct_scalar(node)

    made.add_constructor("tag:yaml.org,2002:timestamp", text)
    made.add_constructor("tag:yaml.org,2002:binary", binary)
    made.add_constructor("!binary", binary)
    made.add_multi_constructor("!", other)
    made.add_multi_constructor("tag:yaml.org,2002:python/", other)
    made.add_multi_constructor("tag:ruby.yaml.org,2002:", other)
    return made
