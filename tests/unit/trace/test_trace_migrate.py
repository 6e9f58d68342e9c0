"""Format versions."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from ctxctl.model import vocab
from ctxctl.trace import migrate
from ctxctl.trace.reader import Trace
from ctxctl.trace.source import Source


@pytest.mark.parametrize(
    ("version", "verdict"),
    [
        ("0.1.1", "current"),
        ("0.1.0", "same"),
        ("0.1.9", "same"),
        ("0.0.9", "same"),
        ("0.2.0", "newer"),
        ("1.0", "newer"),
        ("99.0.0", "newer"),
        ("0.1", "same"),
        ("banana", "unknown"),
        ("", "unknown"),
        (None, "unknown"),
        ("9" * 5000, "unknown"),
    ],
)
def test_judge(version: Any, verdict: str) -> None:
    assert migrate.judge_version(version) == verdict


def test_upgrade_writes_the_current_version_and_leaves_its_argument_alone() -> None:
    for event in (
        {"event_type": "x", "data": {"item_id": "a"}},
        {"schema_version": "0.1.0", "event_type": "x", "data": {"schema_version": "0.1.0"}},
        {"schema_version": "0.1.0", "event_type": "x"},
    ):
        before = copy.deepcopy(event)
        upgraded = migrate.upgrade_event(event)
        assert event == before
        assert upgraded["schema_version"] == migrate.CURRENT
        assert upgraded.get("data", {}).get("schema_version", migrate.CURRENT) == migrate.CURRENT
        assert migrate.upgrade_event(upgraded) == upgraded


def test_every_step_leads_to_the_current_version() -> None:
    for version in migrate.STEPS:
        seen = set()
        while version != migrate.CURRENT:
            assert version not in seen
            seen.add(version)
            version = migrate.STEPS[version][0]


def test_an_old_version_is_rewritten_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def rename(event: dict[str, Any]) -> dict[str, Any]:
        data = dict(event["data"])
        data["item_id"] = data.pop("id_of_item")
        return {**event, "schema_version": "0.1.1", "data": data}

    monkeypatch.setitem(migrate.STEPS, "0.0.1", ("0.1.1", rename))
    line = {
        "schema_version": "0.0.1",
        "event_type": vocab.ITEM_ADDED,
        "data": {"id_of_item": "a", "content": "x"},
    }
    trace = Trace(Source.from_bytes("memory", json.dumps(line).encode() + b"\n"))
    (event,) = trace.events()
    assert event.record.item_id == "a"  # type: ignore[union-attr]
    assert trace.problems == []


def test_versions_mixed_in_one_file() -> None:
    lines = [
        {"schema_version": version, "event_id": str(number), "event_type": "x"}
        for number, version in enumerate(["0.1.1", "99.0.0", "0.1.0", 7, "0.1.1"])
    ]
    trace = Trace(Source.from_bytes("memory", b"\n".join(json.dumps(line).encode() for line in lines)))
    assert [event.event_id for event in trace.events()] == ["0", "2", "3", "4"]
    assert [problem.slug for problem in trace.problems] == ["newer-version", "no-schema-version"]
