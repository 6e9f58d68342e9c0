"""The parent chain of a session's lines, over all of its files."""

from __future__ import annotations

from typing import Any

from ctxctl.formats.claude_code.chain import Node, Unit
from ctxctl.formats.claude_code.threads import Thread
from ctxctl.formats.lines import Json, Line, Report
from ctxctl.model.problem import Problem


class Graph:
    """All lines by uuid, what follows what, and where tool calls are."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self.line = Line(0, 0, b"")
        """The line that is being read."""
        self.nodes: dict[str, Node | None] = {}
        """By uuid; a line that no request carries stands for its parent, None for the root."""
        self.owner: dict[Node, Thread] = {}
        self.tools: dict[str, Unit] = {}
        """Units by tool use id, of any thread."""
        self.after: dict[Node, Node] = {}
        """Anchors of compactions: what follows one really follows the messages preserved behind it."""
        self.is_ordered = False
        """The parents of the file that is being read are none: its lines follow each other."""
        self._missing: dict[str, Line] = {}

    def parent(self, value: Json, thread: Thread, *, wants: bool = False) -> Node | None:
        """The node that a line follows; `wants`: a root is no answer (before an API call there is a prompt).

        Where the parent is not in the file, the line before in its thread stands in.
        """
        uuid = value.get("parentUuid")
        if self.is_ordered:
            return thread.last
        if not isinstance(uuid, str):
            return thread.last if wants or "parentUuid" not in value else None
        if uuid in self.nodes:
            node = self.nodes[uuid]
            if node is None:
                return thread.last if wants else None
            return self.after.get(node, node)
        self._missing.setdefault(uuid, self.line)
        return thread.last

    def add(self, value: Json, thread: Thread, node: Node) -> None:
        """Put a line into the chain."""
        nodes = self.nodes
        wanted = value.get("parentUuid")
        if isinstance(wanted, str) and wanted not in nodes and not self.is_ordered:
            node.wanted = wanted
        nodes[node.uuid] = node
        native = value.get("uuid")
        if isinstance(native, str) and native != node.uuid:
            nodes[native] = node
        self.owner[node] = thread
        thread.last = node

    def holds(self, thread: Thread, tool: str, unit: Unit) -> None:
        """Say which unit a tool call is in, so that its result is put there."""
        thread.tools[tool] = self.tools[tool] = unit

    def retract(self, uuids: Any) -> None:
        """Take lines out of the context that the runtime says it took back."""
        for uuid in uuids if isinstance(uuids, list) else ():
            node = self.nodes.get(uuid) if isinstance(uuid, str) else None
            if node is None or node.unit is None:
                continue
            thread = self.owner[node]
            for entry in node.unit.head + node.unit.tail:
                if entry.native == uuid and not entry.retracted:
                    entry.retracted = True
                    thread.retracted.append(entry)
                    thread.path.touch(node.unit)

    def report_missing(self) -> None:
        """Report the parents that never came."""
        for uuid, line in self._missing.items():
            if uuid not in self.nodes:
                message = f"parent {uuid} is not in the file; the line is taken to follow the one before it"
                self._report(Problem(line.number, line.offset, "missing-parent", message))
