"""Of which tool, MCP server and file an item is, as far as its titles and sources say."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from ctxctl.engine.query.facts import first_tool_server
from ctxctl.item_names import is_path, local, parted_title

if TYPE_CHECKING:
    from ctxctl.dataset.rows.clear import ClearTexts

_OF_TOOLS: Final = frozenset({"tool_definition", "tool_call", "tool_result"})
_OF_FILES: Final = frozenset({"file_excerpt", "document_excerpt", "artifact_ref", "external_resource"})
_FILE_TOOL: Final = re.compile(
    r"read|write|edit|view|open|file|notebook|patch|create|replace|insert|\bcat\b", re.IGNORECASE
)
_NO_FILE_TOOL: Final = re.compile(
    r"search|find|grep|glob|list|web|fetch|url|browser|todo|memory", re.IGNORECASE
)
_FILE_NAME: Final = re.compile(r"[\w@+.-]*[\w@+-]\.[A-Za-z]\w{0,9}")
_COPILOT: Final = re.compile(r"([a-z0-9-]+-mcp-server)-(.+)")
_SHORT: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_LONGEST: Final = 400
_SERVER_ITEM: Final = "mcp:"


class ItemOrigin(NamedTuple):
    """Where an item is from; None: nothing of that kind, or not recorded."""

    tool: str | None = None
    server: str | None = None
    path: str | None = None


class ItemOrigins:
    """The origins of one session's items.

    Args:
        clear: What may be shown.
        directory: Where the session ran.
        paths: Whether paths are wanted.
    """

    def __init__(self, clear: ClearTexts, directory: str | None, *, paths: bool) -> None:
        self._clear = clear
        self._directory = directory
        self._paths = paths
        self._known: dict[tuple[str, str | None, str | None, str], ItemOrigin] = {}
        self._servers: dict[str, str] = {}
        """By tool, the server that its definition names: calls and results often leave it out."""

    def of(self, kind: str, title: str | None, source: str | None, item: str) -> ItemOrigin:
        """The origin of an item of a kind."""
        if kind not in _OF_TOOLS and kind not in _OF_FILES:
            return _NONE
        key = (kind, title, source, item if title is None or item.startswith(_SERVER_ITEM) else "")
        found = self._known.get(key)
        if found is None:
            if len(self._known) > _MOST:
                self._known.clear()
            made = self._of_tool if kind in _OF_TOOLS else self._of_file
            found = self._known[key] = made(kind, title, source, item)
        if found.server is None and found.tool in self._servers:
            return found._replace(server=self._servers[found.tool])
        return found

    def _of_tool(self, kind: str, title: str | None, source: str | None, item: str) -> ItemOrigin:
        head, said = parted_title(title) if title else ("", "")
        if kind == "tool_definition":
            tool = self._clear.name(title or item.removeprefix("tool:").removeprefix("tool/"))
        else:
            tool = self._clear.name(head.removesuffix(": ") if head else title)
        server = self._clear.name(first_tool_server(source, tool, item) or _server(tool, source, item))
        if server is not None and tool is not None and kind == "tool_definition":
            self._servers[tool] = server
        return ItemOrigin(tool, server, self._path(tool or "", said) if head else None)

    def _of_file(self, _kind: str, title: str | None, source: str | None, _item: str) -> ItemOrigin:
        for text in (source, title):
            if (
                self._paths
                and text
                and len(text) < _LONGEST
                and (is_path(text) or _FILE_NAME.fullmatch(text))
            ):
                return ItemOrigin(path=self._clear.path(local(text, self._directory)))
        return _NONE

    def _path(self, tool: str, said: str) -> str | None:
        """The file that a tool was called with, where it is one that reads or writes files."""
        if not self._paths or _NO_FILE_TOOL.search(tool) or not _FILE_TOOL.search(tool):
            return None
        if len(said) > _LONGEST or not (is_path(said) or _FILE_NAME.fullmatch(said)):
            return None
        return self._clear.path(local(said, self._directory))


_NONE: Final = ItemOrigin()
_MOST: Final = 1 << 14


def _server(tool: str | None, source: str | None, item: str) -> str | None:
    """The server of a tool whose names do not spell `mcp`: of a session of MCP, or in front of the tool."""
    if item.startswith(_SERVER_ITEM) and source and _SHORT.fullmatch(source):
        return source
    match = _COPILOT.match(tool or "")
    return match[1] if match is not None else None
