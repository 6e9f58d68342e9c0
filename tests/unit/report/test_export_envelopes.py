"""Envelopes: each follows the published schema and binds what the frame holds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ctxctl.session import Inspector
from ctxctl.trace.validate import RECORD_SCHEMAS, validate_event
from tests.unit.report.exports_help import TRACES, exported
from tests.unit.testing.sessions_help import events, item, written_trace

EXPORTED = "context.exported"


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_envelopes_follow_the_schema_and_name_the_frame(path: Path) -> None:
    assert EXPORTED in RECORD_SCHEMAS
    made = [json.loads(line) for line in exported(path, "envelopes").splitlines()]
    for envelope in made:
        event = {
            "schema_version": "0.1.1", "event_id": "e", "event_type": EXPORTED, "source": "s",
            "time": "2026-01-01T00:00:00Z", "data": envelope,
        }  # fmt: skip
        assert validate_event(event) == []
    with Inspector.open(path) as inspector:
        for at, envelope in zip((at for at, _ in inspector.walk()), made, strict=True):
            current = {p.item for p in at.placements if not p.stale}
            assert {ref.split("@")[0] for ref in envelope["item_refs"]} == current
            assert envelope["metadata"]["ctxctl"]["tokens"] == at.step.window.used


def test_ids_are_one_of_a_kind_and_stay() -> None:
    made = [json.loads(line)["context_id"] for line in exported(TRACES[0], "envelopes").splitlines()]
    assert len(set(made)) == len(made)
    assert exported(TRACES[0], "envelopes") == exported(TRACES[0], "envelopes")


@pytest.mark.parametrize("form", ["csv", "otlp", "envelopes"])
def test_what_was_redacted_is_in_no_export(tmp_path: Path, form: str) -> None:
    secret = "-".join(("moss", "lantern", "4417"))
    lines = events([item("note", f"the key is {secret}"), item("other", "x", title=f"about {secret}")])
    lines.append({
        "event_type": "context.redaction.applied", "turn_id": "t1",
        "data": {"item_id": "note", "redaction_state": "removed", "redaction_method": "rule"},
    })  # fmt: skip
    lines += events(
        [item("note", "the key is ***", redaction_state="masked"), item("sum", "y", title=f"again {secret}")],
        "t2",
    )
    path = written_trace(tmp_path, lines)
    tables = ("steps", "changes") if form == "csv" else ("steps",)
    for table in tables:
        data = exported(path, form, table=table)
        assert secret.encode() not in data
    assert data
