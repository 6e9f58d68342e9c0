"""Reads tool definitions from the shapes in which people keep them."""

from __future__ import annotations

from collections.abc import Iterator

from ctxctl.ingest.build import Json, Place
from ctxctl.ingest.document import document
from ctxctl.ingest.folder import Folder
from ctxctl.ingest.lines import Report
from ctxctl.ingest.run import Run
from ctxctl.model import vocab
from ctxctl.providers.mcp.parts import Server, instructions, servers, tool
from ctxctl.trace.source import Source

NAME = "mcp-tools"


def dump(source: Source, report: Report) -> Iterator[Json]:
    """Read one dump."""
    run = Run(NAME, report)
    surface: dict[str, int] = {}
    _take(run, list(servers(document(source, report), None)), surface)
    return _finish(run, surface)


def dumps(folder: Folder, report: Report) -> Iterator[Json]:
    """Read every dump in a directory; a server without a name is called after the folder of its file."""
    run = Run(NAME, report)
    surface: dict[str, int] = {}
    for name in folder.files:
        if not name.endswith((".json", ".snap")):
            continue
        above = name.split("/")[:-1]
        run.make.file = name
        with folder.open(name) as source:
            server = next(
                (part for part in reversed(above) if not part.startswith("__")), folder.path.resolve().name
            )
            _take(run, list(servers(document(source, run.report), server)), surface)
    run.make.file = None
    return _finish(run, surface)


def _take(run: Run, found: list[Server], surface: dict[str, int]) -> None:
    """Tell what servers offer; `surface`: what was offered so far, with the number of its last namesake."""
    for server in found:
        parts = [instructions(server.name, server.instructions)] if server.instructions else []
        parts += [tool(definition, server.name) for definition in server.tools]
        for part in parts:
            name, again = part.item, surface.get(part.item, 0)
            while part.item in surface:
                again += 1
                part.item = f"{name}~{again}"
            if name in surface:
                surface[name] = again
            surface[part.item] = 1
            run.emit(vocab.ITEM_ADDED, part.record(derived_identity=False), Place(None, None, "dump", "dump"))


def _finish(run: Run, surface: dict[str, int]) -> Iterator[Json]:
    if surface:
        record = run.make.record(
            surface_id="tools",
            scope="session",
            surface_kind="tool_surface",
            available_item_refs=list(surface),
        )
        run.emit(vocab.SURFACE_CREATED, record, Place(None, None, "dump", "dump"))
    yield from run.drain()
