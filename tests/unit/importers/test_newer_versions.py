"""A capture by a client, or of a schema, newer than any that an importer was held against says so."""

from __future__ import annotations

import pytest

from ctxctl.importers import registry
from ctxctl.trace.source import open_source
from tests.formats.damage import FIXTURES, imported


@pytest.mark.parametrize(
    ("file", "spelled", "old", "new"),
    [
        ("agent_context/records.jsonl", "{}", "0.1.1", "0.9.1"),
        ("aider/restored.chat.history.md", "{}", "0.86.2", "0.99.0"),
        ("amplifier/bodies-anthropic.jsonl", "{}", "1.0.0", "1.0.9"),
        ("atif/trajectory.json", "ATIF-v{}", "1.7", "2.0"),
        ("claude_code/session.jsonl", "{}", "2.1.62", "9.0.1"),
        ("claude_stream_json/run.jsonl", "{}", "2.1.222", "9.0.1"),
        ("cline/typed.messages.json", "{}", "3.0.65", "9.0.1"),
        ("codex/spawned.jsonl", "{}", "0.169.0", "0.169.10"),
        ("copilot_chat/export.json", '"version": {}', "3", "4"),
        ("copilot_cli/resumed.jsonl", "{}", "1.0.102", "1.0.1000"),
        ("ctxdiff/tides.ctrace", "{}", "0.5.1", "0.5.9"),
        ("cursor/hooks.jsonl", "{}", "3.7.19", "9.0.1"),
        ("droid/session.jsonl", '"version": {}', "2", "3"),
        ("hail/session.hail.jsonl", "hail-{}", "1.0.0", "1.1.0"),
        ("har/chrome.har", '"version": "{}"', "1.2", "1.3"),
        ("iflow/session.jsonl", '"version":"{}"', "1.0.0", "1.0.1"),
        ("inspect_ai/log.json", '"version": {}', "2", "3"),
        ("kimi/wire.jsonl", '"protocol_version": "{}"', "1.4", "1.5"),
        ("lhar/wrapped.lhar.json", "{}", "0.1.0", "0.2.0"),
        ("mini_swe_agent/calls.traj.json", "{}", "2.0.0", "3.0.0"),
        ("opencode/export.json", "{}", "1.2.27", "2.0.1"),
        ("opencode/hooks.jsonl", "{}", "1.14.20", "2.0.10"),
        ("pi/session-v3.jsonl", '"version":{}', "3", "4"),
        ("pi_rpc/stream.jsonl", '"version":{}', "3", "4"),
        ("qwen_code/chat.jsonl", "{}", "0.18.2", "0.18.3"),
    ],
)
def test_a_version_that_nobody_held_it_against_is_told(file: str, spelled: str, old: str, new: str) -> None:
    with open_source(FIXTURES / file) as source:
        importer = registry.detect(source)
        data = source.read(0, source.size)
    assert importer is not None
    held = importer.about.held_against
    assert held is not None
    assert spelled.format(old).encode() in data
    newer = data.replace(spelled.format(old).encode(), spelled.format(new).encode())
    assert "newer-version" not in {problem.slug for problem in imported(importer, data).problems}
    (told,) = [problem for problem in imported(importer, newer).problems if problem.slug == "newer-version"]
    assert f" {new}; " in told.message
    assert told.message.endswith(f"checked against versions up to {held.newest}")
