"""YAML documents of unknown origin: no objects made, no aliases multiplied, damage kept to its entry."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from ctxctl.errors import UnavailableError
from ctxctl.ingest.lines import Report
from ctxctl.model.problem import Problem
from ctxctl.providers.calls.encodings import plain, unbase64
from ctxctl.trace.source import Source

MAX_YAML: Final = 64 << 20
"""Bytes of the largest YAML document that is read."""
MAX_DEPTH: Final = 200
_GROWTH: Final = 8
"""How many times its written size a document may become through its aliases."""
_SMALL: Final = 100_000
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
    loader = _loader()
    try:
        value = _value(data, loader)
    except _BombError as error:
        report(Problem(1, 0, "yaml-bomb", str(error)))
        return None
    except _damage() as error:
        line, at = _mark(error, 1)
        report(Problem(line, 0, "bad-yaml", f"not valid YAML ({at}); read entry by entry"))
        return Document(list(_one_by_one(data, keys, loader, report)), {})
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


def _one_by_one(data: bytes, keys: tuple[str, ...], loader: Any, report: Report) -> Iterator[Piece]:
    for line, start, end in _spans(data, keys):
        try:
            value = _value(_closed(data[start:end]), loader)
        except _BombError as error:
            report(Problem(line, start, "yaml-bomb", str(error)))
            continue
        except _damage() as error:
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


class _BombError(Exception):
    """A document that would become far larger than it is written, or that is nested too deep."""


def _yaml() -> Any:
    try:
        import yaml
    except ImportError:
        raise UnavailableError(
            "needs-yaml", "this capture is YAML", hint="pip install 'ctxctl[yaml]'"
        ) from None
    return yaml


def _damage() -> tuple[type[Exception], ...]:
    return (_yaml().YAMLError, ValueError, TypeError, RecursionError, OverflowError)


def _mark(error: Exception, line: int) -> tuple[int, str]:
    mark = getattr(error, "problem_mark", None)
    what = getattr(error, "problem", None) or str(error).partition("\n")[0] or type(error).__name__
    return line + (mark.line if mark is not None else 0), str(what)


def _value(data: bytes, loader: Any) -> Any:
    _weigh(data, loader)
    return _yaml().load(data, Loader=loader)


def _weigh(data: bytes, loader: Any) -> None:
    """Refuse what is nested too deep, or made many times larger by aliases, before anything is made."""
    yaml = _yaml()
    written = expanded = depth = 0
    open_nodes: list[tuple[str | None, int]] = []
    weights: dict[str, int] = {}
    for event in yaml.parse(data, Loader=loader):
        if isinstance(event, yaml.AliasEvent):
            weight = weights.get(event.anchor)
            if weight is None and any(anchor == event.anchor for anchor, _ in open_nodes):
                raise _BombError("an alias stands for the node that holds it; not read")
            expanded += weight or 0
            if expanded > _SMALL and expanded > _GROWTH * written:
                raise _BombError("its aliases make it many times larger than it is written; not read")
        elif isinstance(event, yaml.ScalarEvent):
            size = 1 + len(event.value)
            written += size
            expanded += size
            if event.anchor is not None:
                weights[event.anchor] = size
        elif isinstance(event, yaml.CollectionStartEvent):
            written += 1
            expanded += 1
            depth += 1
            if depth > MAX_DEPTH:
                raise _BombError(f"nested deeper than {MAX_DEPTH} levels; not read")
            open_nodes.append((event.anchor, expanded))
            if event.anchor is not None:
                weights.pop(event.anchor, None)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
            anchor, before = open_nodes.pop()
            if anchor is not None:
                weights[anchor] = expanded - before


def _loader() -> Any:
    """A safe loader that makes no dates, and plain values of foreign tags."""
    yaml = _yaml()
    base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):  # type: ignore[misc, valid-type]
        pass

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

    Loader.add_constructor("tag:yaml.org,2002:timestamp", text)
    Loader.add_constructor("tag:yaml.org,2002:binary", binary)
    Loader.add_constructor("!binary", binary)
    Loader.add_multi_constructor("!", other)
    Loader.add_multi_constructor("tag:yaml.org,2002:python/", other)
    Loader.add_multi_constructor("tag:ruby.yaml.org,2002:", other)
    return Loader
