"""What a directory holds: one capture in several files, or several captures, the sessions of one trace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ctxctl.errors import CtxctlError, UnreadableError
from ctxctl.importers import registry
from ctxctl.ingest.about import About
from ctxctl.ingest.declaration import Format
from ctxctl.ingest.folder import Folder, Importer, read_several
from ctxctl.ingest.lines import Report
from ctxctl.trace.unknown_file import is_native

_SURE = 50
_SHOWN = 5
_MIXED = About(reads="captures of several formats in one directory", places=(), turns="", claims={})


def detect(folder: Folder) -> Format | str:
    """The format that reads a directory, or the name of the one native trace in it.

    Raises:
        UnreadableError: `nothing-known-in-directory`, `several-traces-in-directory`.
    """
    whole = _whole(folder)
    if whole is not None:
        return whole
    found: list[tuple[str, Format]] = []
    traces: list[str] = []
    for name in folder.files:
        head = folder.head(name, registry.HEAD)
        if not head:
            continue
        if is_native(head):
            traces.append(name)
        elif (known := _known(folder, name, head)) is not None:
            found.append((name, known))
    if traces and not found and len(traces) == 1:
        return traces[0]
    if not found:
        raise _refused(folder, traces)
    return several_of(found)


def _known(folder: Folder, name: str, head: bytes) -> Format | None:
    try:
        with folder.open(name) as source:
            return registry.of_file(None if source.spooled else source.path, head, source)
    except (CtxctlError, OSError):
        return registry.of_head(head)


def _whole(folder: Folder) -> Format | None:
    best: Format | None = None
    top = _SURE - 1
    for candidate in registry.available():
        score = candidate.detect_folder(folder) if candidate.detect_folder is not None else 0
        if score > top:
            best, top = candidate, score
    return best


def _refused(folder: Folder, traces: list[str]) -> UnreadableError:
    if traces:
        names = ", ".join(traces[:_SHOWN]) + (" …" if len(traces) > _SHOWN else "")
        return UnreadableError(
            "several-traces-in-directory", f"{folder.name} holds {len(traces)} traces: {names}",
            hint="name one of them",
        )  # fmt: skip
    return UnreadableError(
        "nothing-known-in-directory",
        f"{folder.name}: none of its {len(folder.files)} files is a trace or a known capture",
        hint="ctxctl formats lists what can be opened",
    )


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
