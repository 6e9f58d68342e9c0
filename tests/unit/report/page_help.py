"""Reads a report back without a browser: the blocks, the frames, the texts."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ctxctl.cli.run import header
from ctxctl.model.problem import Problem
from ctxctl.report.exports import ExportOptions, writer_by_name
from ctxctl.session import Inspector

_BLOCK = re.compile(rb'<script type="application/octet-stream" id="(\w+)">([^<]*)</script>')
_META = re.compile(rb'<script type="application/json" id="meta">([^<]*)</script>')
PLACEMENT = (
    "item", "version", "kind", "title", "source", "segment", "role", "tokens", "method", "text", "flags",
    "redaction", "opens", "closes", "line", "digest", "since", "before_version", "before_text", "head",
)  # fmt: skip


def exported(
    path: Path, name: str = "html", report: Callable[[Problem], None] = lambda _: None, **how: Any
) -> bytes:
    """Return the whole file that an export gives."""
    with Inspector.open(path) as inspector:
        manner = ExportOptions(header(inspector), **how)
        return b"".join(writer_by_name(name).make(inspector, manner, report, lambda _: None))


class Page:
    """A report as its script sees it."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.blocks = {
            name.decode(): zlib.decompress(base64.b64decode(packed)) for name, packed in _BLOCK.findall(data)
        }
        (meta,) = _META.findall(data)
        self.meta = json.loads(meta)
        self.index = self.block("index")
        self.rows = [
            dict(zip(self.index["columns"], row, strict=True))
            for n in range(self.index["row_blocks"])
            for row in self.block(f"r{n}")
        ]
        self._frames = self._rebuilt()

    def block(self, name: str) -> Any:
        """Return what a block holds."""
        return json.loads(self.blocks[name])

    def _rebuilt(self) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
        ordinals: dict[int, list[int]] = {}
        for ordinal, row in enumerate(self.rows):
            ordinals.setdefault(row["thread"], []).append(ordinal)
        found: dict[int, tuple[dict[str, Any], list[dict[str, Any]]]] = {}
        for n, (thread, first, count) in enumerate(self.index["runs"]):
            run = self.block(f"s{n}")
            table = [dict(zip(PLACEMENT, row, strict=True)) for row in run["p"]]
            assert len(run["s"]) == count
            frame: list[int] = []
            for k, step in enumerate(run["s"]):
                made, at = [], 0
                for start, removed, fresh in step["e"]:
                    made += frame[at:start] + fresh
                    at = start + removed
                frame = made + frame[at:]
                found[ordinals[thread][first + k]] = (step, [table[place] for place in frame])
        return [found[ordinal] for ordinal in range(len(self.rows))]

    def frame(self, ordinal: int) -> list[dict[str, Any]]:
        """Return a step's placements in order."""
        return self._frames[ordinal][1]

    def step(self, ordinal: int) -> dict[str, Any]:
        """Return what is told of a step."""
        return self._frames[ordinal][0]

    def content(self, number: int) -> list[Any]:
        """Return a content: text, first step, item, characters left out, where."""
        starts = self.index["texts"]["blocks"]
        at = max(n for n, first in enumerate(starts) if first <= number)
        content: list[Any] = self.block(f"c{at}")[number - starts[at]]
        return content

    @property
    def everything(self) -> str:
        """All that the page says, unpacked."""
        return self.data.decode() + "".join(block.decode() for block in self.blocks.values())
