"""Tool definitions out of the shapes in which people keep them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ctxctl.formats.build import Json, Place
from ctxctl.formats.kit.document import document
from ctxctl.formats.kit.folder import Folder
from ctxctl.formats.kit.parts import string
from ctxctl.formats.kit.run import Run
from ctxctl.formats.lines import Report
from ctxctl.formats.mcp.detecting import is_tool
from ctxctl.formats.mcp.parts import instructions, tool
from ctxctl.model import vocab
from ctxctl.trace.source import Source

NAME = "mcp-tools"
_DEPTH = 4


class Server(NamedTuple):
    """What one server offers."""

    name: str | None
    tools: list[Json]
    instructions: str | None = None


def servers(value: Any, name: str | None, depth: int = 0) -> Iterator[Server]:
    """The servers in a document: tools in an array, one tool, a result of `tools/list`, or several."""
    if isinstance(value, list):
        tools = [one for one in value if is_tool(one)]
        if tools:
            yield Server(name, tools)
        elif depth < _DEPTH:
            for one in value:
                yield from servers(one, name, depth + 1)
        return
    if not isinstance(value, dict) or depth > _DEPTH:
        return
    if is_tool(value):
        yield Server(name, [value])
        return
    name = _name(value) or name
    told = string(value.get("instructions"))
    for key in ("initialize_result", "initializeResult", "initialize"):
        inner = value.get(key)
        if isinstance(inner, dict):
            name, told = _name(inner) or name, told or string(inner.get("instructions"))
    found = value.get("tools")
    if isinstance(found, list):
        yield Server(name, [one for one in found if is_tool(one)], told)
    elif isinstance(found, dict):
        for key, inner in found.items():
            yield from servers(inner, key, depth + 1)
    else:
        for key, inner in value.items():
            if isinstance(inner, dict | list):
                yield from servers(inner, name if key in ("result", "data") else key, depth + 1)


def _name(value: Json) -> str | None:
    for key in ("server_info", "serverInfo", "server"):
        info = value.get(key)
        if isinstance(info, dict) and (found := string(info.get("name"))):
            return found
        if isinstance(info, str) and info:
            return info
    return string(value.get("name")) or string(value.get("server_name"))


def dump(source: Source, report: Report) -> Iterator[Json]:
    """One file."""
    run = Run(NAME, report)
    surface: list[str] = []
    _take(run, list(servers(document(source, report), None)), surface)
    return _finish(run, surface)


def dumps(folder: Folder, report: Report) -> Iterator[Json]:
    """Every dump in a directory; a server without a name is called after the folder that its file is in."""
    run = Run(NAME, report)
    surface: list[str] = []
    for name in folder.files:
        if not name.endswith((".json", ".snap")):
            continue
        above = name.split("/")[:-1]
        run.make.file = name
        with folder.open(name) as source:
            server = next((part for part in reversed(above) if not part.startswith("__")), folder.path.name)
            _take(run, list(servers(document(source, run.report), server)), surface)
    run.make.file = None
    return _finish(run, surface)


def _take(run: Run, found: list[Server], surface: list[str]) -> None:
    seen = set(surface)
    for server in found:
        parts = [instructions(server.name, server.instructions)] if server.instructions else []
        parts += [tool(definition, server.name) for definition in server.tools]
        for part in parts:
            name, again = part.item, 1
            while part.item in seen:
                again += 1
                part.item = f"{name}~{again}"
            seen.add(part.item)
            surface.append(part.item)
            run.emit(vocab.ITEM_ADDED, part.record(derived_identity=False), Place(None, None, "dump", "dump"))


def _finish(run: Run, surface: list[str]) -> Iterator[Json]:
    if surface:
        record = run.make.record(
            surface_id="tools", scope="session", surface_kind="tool_surface", available_item_refs=surface
        )
        run.emit(vocab.SURFACE_CREATED, record, Place(None, None, "dump", "dump"))
    yield from run.drain()
