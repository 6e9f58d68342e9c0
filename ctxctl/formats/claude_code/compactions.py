"""Compactions: boundaries, summaries, and the messages that newer versions keep behind them."""

from __future__ import annotations

from typing import Any

from ctxctl.formats.build import Maker
from ctxctl.formats.claude_code.blocks import Entry
from ctxctl.formats.claude_code.chain import Compaction, Node, Unit
from ctxctl.formats.claude_code.routing import Graph
from ctxctl.formats.claude_code.threads import Thread
from ctxctl.formats.lines import Json


class Compactions:
    """Puts compactions into the chain."""

    def __init__(self, graph: Graph, make: Maker) -> None:
        self._graph = graph
        self._make = make

    def boundary(self, value: Json, thread: Thread, uuid: str) -> None:
        """A `compact_boundary`: a root; what follows it is all that requests carry from here on."""
        meta = value.get("compactMetadata")
        meta = meta if isinstance(meta, dict) else {}
        node = Node(uuid, None)
        node.compaction = compaction = self._begin(thread, uuid, meta)
        anchor, compaction.preserved = self._preserved(meta)
        self._graph.add({}, thread, node)
        if isinstance(anchor, str) and anchor in self._graph.nodes:
            # Otherwise they come behind the summary, which is still to be read.
            self._keep(compaction, node)

    def summary(self, value: Json, thread: Thread, uuid: str, entries: list[Entry]) -> None:
        """A summary; one without a boundary in front is a boundary itself (1.0.x)."""
        above = value.get("parentUuid")
        boundary = self._graph.nodes.get(above) if isinstance(above, str) else None
        compaction = boundary.compaction if boundary is not None else None
        parent = self._graph.parent(value, thread) if compaction is not None else None
        node = Node(uuid, parent, Unit(uuid))
        if compaction is None:
            compaction = node.compaction = self._begin(thread, uuid, {})
        if entries:
            compaction.summary = entries[0]
        assert node.unit is not None
        thread.add(node.unit, entries, self._make.time, tail=True)
        self._graph.add({"uuid": uuid}, thread, node)
        self._keep(compaction, node)

    def micro(self, value: Json, thread: Thread, uuid: str) -> None:
        """A `microcompact_boundary`: from here on requests carry some tool results blanked."""
        meta = value.get("microcompactMetadata")
        ids = meta.get("compactedToolIds") if isinstance(meta, dict) else None
        node = Node(uuid, self._graph.parent(value, thread))
        if isinstance(ids, list):
            node.blanks = tuple(tool for tool in ids if isinstance(tool, str))
        self._graph.add(value, thread, node)

    def _begin(self, thread: Thread, uuid: str, meta: Json) -> Compaction:
        made = Compaction(uuid, meta, self._graph.line.number)
        made.pending = {entry.item: entry.block(set()).ref for entry in thread.pending}
        return made

    def _preserved(self, meta: Json) -> tuple[Any, list[Node]]:
        """The uuid that preserved messages come after, and their lines in order (2.1.177 on)."""
        kept, segment = meta.get("preservedMessages"), meta.get("preservedSegment")
        nodes = self._graph.nodes
        if isinstance(kept, dict):
            uuids = kept.get("uuids")
            named = [nodes.get(u) for u in uuids if isinstance(u, str)] if isinstance(uuids, list) else []
            return kept.get("anchorUuid"), [node for node in named if node is not None]
        if not isinstance(segment, dict):
            return None, []
        head, tail = segment.get("headUuid"), segment.get("tailUuid")
        first = nodes.get(head) if isinstance(head, str) else None
        node = nodes.get(tail) if isinstance(tail, str) else None
        found: list[Node] = []
        while first is not None and node is not None and node is not first:
            found.append(node)
            node = node.parent
        if first is None or node is not first:
            return None, []
        return segment.get("anchorUuid"), [first, *reversed(found)]

    def _keep(self, compaction: Compaction, anchor: Node) -> None:
        """Put the preserved messages behind their anchor, and what followed it behind them."""
        graph, last = self._graph, anchor
        for node in compaction.preserved:
            clone = Node(node.uuid, last, node.unit)
            clone.turn = node.turn
            clone.results = node.results
            graph.owner[clone] = graph.owner[anchor]
            graph.nodes[node.uuid] = last = clone
        compaction.preserved = []
        if last is not anchor:
            graph.after[anchor] = last
            graph.owner[anchor].last = last
