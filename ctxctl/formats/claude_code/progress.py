"""`progress` lines (2.1.12 to 2.1.81), by their bytes: no request carries them, and there are many.

What they hold is told again by other lines (a sub-agent's messages by its own file); all that counts is that
a later line may name one as its parent.
"""

from __future__ import annotations

import re
from typing import Final

from ctxctl.formats.build import Maker
from ctxctl.formats.claude_code.graph import Graph

_HEAD: Final = re.compile(
    rb'\{"parentUuid":(?:"([^"\\]{1,64})"|null),"isSidechain":[^{]*+(?<="type":"progress","data":)\{'
)
_TAIL: Final = 129
"""Bytes that the end takes at most."""
_USUAL: Final = 85
"""Bytes that it takes with an id of 36 digits and a time with milliseconds."""
_ENDS: Final = re.compile(
    rb'"(?:uuid":"([^"\\]{1,64})","timestamp":"([^"\\]{1,40})|timestamp":"([^"\\]{1,40})","uuid":"([^"\\]{1,64}))"\}\Z'
)


class Progress:
    """Takes such lines into the chain without parsing them."""

    def __init__(self, graph: Graph, make: Maker) -> None:
        self._graph = graph
        self._make = make

    def taken(self, data: bytes) -> bool:
        """Whether a line is one of them and was taken; any doubt leaves it to be parsed."""
        head = _HEAD.match(data)
        if head is None:
            return False
        size = len(data)
        ends = _ENDS.match(data, max(0, size - _USUAL)) or _ENDS.search(data, max(0, size - _TAIL))
        # A second record may be glued to it.
        if ends is None or data.find(b'"parentUuid":', head.end()) >= 0:
            return False
        nodes, above = self._graph.nodes, head.group(1)
        uuid = (ends.group(1) or ends.group(4)).decode("utf-8", "replace")
        if uuid in nodes:
            node = nodes[uuid]
        elif above is None:
            node = None
        else:
            node = nodes.get(above.decode("utf-8", "replace"))
            if node is None:
                return False
            node = self._graph.after.get(node, node)
        nodes[uuid] = node
        self._make.at((ends.group(2) or ends.group(3)).decode("utf-8", "replace"))
        return True
