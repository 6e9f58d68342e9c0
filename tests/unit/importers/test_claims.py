"""What a declaration calls native is read from a fixture, at least once."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxctl.importers import registry
from ctxctl.ingest.about import Level
from ctxctl.ingest.declaration import Format
from ctxctl.trace.source import open_source

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"
NOT_IN_A_FIXTURE = {
    ("claude-sdk-log", "summary"),
    ("copilot-chat", "summary"),
    ("copilot-chatreplay", "summary"),
    ("copilot-cli", "compaction"),
    ("http-requests", "cached_tokens"),
    ("http-requests", "input_tokens"),
    ("http-requests", "output_tokens"),
    ("inspect-ai", "reminders"),
    ("pi-rpc", "summary"),
    ("swe-agent-calls", "cached_tokens"),
}
"""Formats and facts of which no fixture has an example yet; nothing new belongs here."""


def native_facts(importer: Format) -> set[str]:
    """The facts that the fixtures of a format hold, by the importer's own account of each import."""
    found: set[str] = set()
    for path in sorted((FIXTURES / importer.name.replace("-", "_")).rglob("*")):
        if not path.is_file():
            continue
        with open_source(path) as source:
            if registry.detect(source) is not importer:
                continue
            *_, measured = registry.capture_events(importer, source, lambda *_, **__: None)
        facts = measured["data"]["facts"]
        found |= {fact for fact, levels in facts.items() if Level.NATIVE.value in levels}
    return found


@pytest.mark.parametrize("importer", registry.built_in(), ids=lambda one: one.name)
def test_a_fact_that_is_claimed_native_is_read_from_a_fixture(importer: Format) -> None:
    claimed = {
        fact
        for fact, claim in importer.about.claims.items()
        if claim.level is Level.NATIVE and not claim.note
    }
    unread = {(importer.name, fact) for fact in claimed - native_facts(importer)}
    known = {pair for pair in NOT_IN_A_FIXTURE if pair[0] == importer.name}
    assert unread <= known, (
        f"declared native, and read from no file in fixtures/{importer.name.replace('-', '_')}: "
        f"{sorted(fact for _, fact in unread - known)}.  Does the reader lose it?"
    )
    assert known <= unread, f"a fixture has it now; take it out of NOT_IN_A_FIXTURE: {sorted(known - unread)}"
