"""Events that hold their record elsewhere than in `data`."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from ctxctl.model.results import Step
from ctxctl.session import Inspector

ITEM = {
    "item_id": "a",
    "context_kind": "user_message",
    "content_mode": "inline",
    "content": "h\u00e9llo",
    "visibility": [],
}
BLOCKS = [{"item_refs": ["a"]}]


def event(kind: str, **more: object) -> bytes:
    head = {"schema_version": "0.1.1", "event_id": kind, "event_type": f"context.{kind}", "source": "s",
            "time": "2026-01-01T00:00:00Z", "turn_id": "t"}  # fmt: skip
    return orjson.dumps({**head, **more}) + b"\n"


@pytest.mark.parametrize(
    ("item", "assembly"),
    [
        ({"data": ITEM}, {"data": {"assembly_id": "m", "target": "model", "ordered_blocks": BLOCKS}}),
        ({"item": ITEM}, {"assembly": {"assembly_id": "m", "target": "model", "ordered_blocks": BLOCKS}}),
        (
            {"data": {"context_item": ITEM}},
            {"data": {"context_assembly": {"assembly_id": "m", "target": "model", "ordered_blocks": BLOCKS}}},
        ),
        (ITEM, {"assembly_id": "m", "target": "model", "ordered_blocks": BLOCKS}),
        ({"record": ITEM, "data": None}, {"payload": {"assembly_id": "m", "ordered_blocks": BLOCKS}}),
    ],
    ids=["in-data", "beside", "wrapped", "spread", "other-names"],
)
def test_the_record_is_found(item: dict[str, object], assembly: dict[str, object], tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(event("item.added", **item) + event("assembly.created", **assembly))
    inspector = Inspector.open(path)
    (step,) = (result for result in inspector.replay() if isinstance(result, Step))
    assert (step.basis, [change.item for change in step.changes]) == ("assembly", ["a"])
    assert inspector.assembled(0) == "h\u00e9llo"
    assert len(inspector.places().spans) == 1
    assert inspector.problems == []
