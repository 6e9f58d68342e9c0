"""Traces of one request, written by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Json = dict[str, Any]


def item(name: str, text: str | None, *, kind: str = "file", **more: object) -> Json:
    """Return an item's record; without a text it has neither that nor a size."""
    return {"item_id": name, "context_kind": kind, **({"content": text} if text is not None else {}), **more}


def events(items: Sequence[Json], turn: str = "t1") -> list[Json]:
    """Return the events of one request that holds the items in order."""
    added = [{"event_type": "context.item.added", "turn_id": turn, "data": one} for one in items]
    blocks = [{"block_id": f"b{n}", "item_ref": one["item_id"]} for n, one in enumerate(items)]
    made = {"assembly_id": f"a-{turn}", "ordered_blocks": blocks}
    return [*added, {"event_type": "context.assembly.created", "turn_id": turn, "data": made}]


def written_trace(folder: Path, lines: Sequence[Json], name: str = "run.jsonl") -> Path:
    """Write a trace file."""
    path = folder / name
    head = {"schema_version": "0.1.1", "source": "test", "session_id": "s", "time": "2026-01-01T00:00:00Z"}
    path.write_text(
        "".join(json.dumps({**head, "event_id": f"e{n}", **line}) + "\n" for n, line in enumerate(lines))
    )
    return path
