"""Factory Droid's bills: with a message, or as the session's sum in the settings beside it."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from ctxctl.importers import registry
from ctxctl.trace.source import open_source
from tests.unit.importers.trajectories import FIXTURES, Import, Json

ROOT = FIXTURES / "droid"
SUM = {
    "inputTokens": 12,
    "outputTokens": 5,
    "cacheCreationTokens": 9000,
    "cacheReadTokens": 4200,
    "thinkingTokens": 0,
}
SETTINGS = {
    "assistantActiveTimeMs": 2150,
    "model": "claude-haiku-4-5",
    "reasoningEffort": "off",
    "autonomyMode": "normal",
    "providerLock": "anthropic",
    "providerLockTimestamp": "2026-04-01T08:00:01.500Z",
    "apiProviderLock": "anthropic",
    "tokenUsage": SUM,
}
MODEL = "claude-haiku-4-5"


def beside(tmp_path: Path, name: str, settings: Any) -> Path:
    path = tmp_path / "s.jsonl"
    shutil.copy(ROOT / name, path)
    (tmp_path / "s.settings.json").write_text(settings if isinstance(settings, str) else json.dumps(settings))
    return path


def read(path: Path) -> Import:
    """The import of a file, by its name."""
    problems: list[Any] = []
    with open_source(path) as source:
        importer = registry.detect(source)
        assert importer is not None
        return Import(importer.name, list(importer.events(source, problems.append)), problems)


def told(found: Import) -> list[str]:
    return [problem.slug for problem in found.problems]


def models(found: Import) -> list[str | None]:
    return [request.model for request in found.requests()]


def test_the_sum_of_one_request_is_its_bill(tmp_path: Path) -> None:
    found = read(beside(tmp_path, "single.jsonl", SETTINGS))
    assert found.format == "droid"
    assert found.usage() == [(13_212, 4200, 5)]
    [bill] = found.of("ctxctl.usage.reported")
    assert (bill["cache_write_tokens"], bill["model"]) == (9000, MODEL)
    assert models(found) == [MODEL]
    assert told(found) == []


def test_the_sum_of_several_requests_is_no_requests_bill_and_is_said(tmp_path: Path) -> None:
    found = read(beside(tmp_path, "session.jsonl", SETTINGS))
    assert found.usage() == []
    assert models(found) == [MODEL] * 3
    assert told(found) == ["summed-usage"]


def test_a_compaction_was_billed_too(tmp_path: Path) -> None:
    path = beside(tmp_path, "single.jsonl", SETTINGS)
    with path.open("a") as file:
        file.write(
            json.dumps({"type": "compaction_state", "id": "k", "summaryText": "Twelve bridges."}) + "\n"
        )
    found = read(path)
    assert found.usage() == []
    assert told(found) == ["summed-usage"]


def test_bills_that_stand_with_messages_go_before_the_sum(tmp_path: Path) -> None:
    for path in (
        ROOT / "billed.jsonl",
        beside(tmp_path, "billed.jsonl", SETTINGS),
    ):
        found = read(path)
        assert found.usage() == [(8103, 0, 41), (8226, 8100, 4)]
        assert models(found) == [
            "claude-opus-4-5-20251101",
            *([None] * 2 if path.parent == ROOT else [MODEL] * 2),
        ]
        assert told(found) == []


@pytest.mark.parametrize(
    "settings",
    [
        "", "{", "[]", "3", '{"model": 3, "tokenUsage": []}', '{"tokenUsage": {"inputTokens": "x"}}',
        {"tokenUsage": dict.fromkeys(SUM, 0)}, {"tokenUsage": SUM, "more": "x" * (1 << 20)},
    ],
)  # fmt: skip
def test_settings_that_tell_nothing(tmp_path: Path, settings: str | Json) -> None:
    found = read(beside(tmp_path, "single.jsonl", settings))
    assert found.usage() == []
    assert models(found) == [None]
    assert "summed-usage" not in told(found)


def test_settings_that_are_no_file(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    shutil.copy(ROOT / "single.jsonl", path)
    os.mkfifo(tmp_path / "s.settings.json")
    assert read(path).usage() == []


def test_a_copy_has_no_settings_beside_it(tmp_path: Path) -> None:
    path = beside(tmp_path, "single.jsonl", SETTINGS)
    assert read(path).usage()
    path.write_bytes(gzip.compress(path.read_bytes()))
    assert read(path).usage() == []
