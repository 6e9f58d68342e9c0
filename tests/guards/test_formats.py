"""What importers declare is whole, and the pages about them say the same."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from ctxctl.importers.registry import built_in
from ctxctl.ingest.about import FACT_NAMES, Level
from ctxctl.ingest.declaration import Format
from ctxctl.ingest.understood import is_newer

NEITHER = {
    "api": "bodies of many providers, which name no version of their APIs",
    "chat-messages": "messages of a provider's API",
    "copilot-chatreplay": "an export without a version",
    "copilot-snapshots": "snapshots without a version",
    "goose": "sessions name no version of goose",
    "goose-recordings": "recordings without a version",
    "http-requests": "requests of any program",
    "langfuse": "exports name the version of what was observed, not of Langfuse",
    "langsmith": "exports name the version of what was observed, not of LangSmith",
    "live-mcp-bench": "published runs, without a version",
    "mcp-session": "the protocol's version is agreed between the two, and is not the log's",
    "mcp-tools": "lists of tools without a version",
    "openhands-completions": "one call a file, without a version",
    "openinference": "spans name the version of the program that was observed",
    "otel": "spans name the version of the program that was observed",
    "pi-recordings": "recordings without a version",
    "roo": "messages of a provider's API, and a chat beside them that names no version",
    "swe-agent": "trajectories without a version",
    "tau-bench": "published runs, without a version",
    "vcr": "cassettes of any program",
}
"""Formats whose captures have neither versions nor types of records, with what they are."""
ROOT = Path(__file__).resolve().parents[2]


def pages() -> dict[str, str]:
    """Return the pages as `make docs` would write them."""
    spec = importlib.util.spec_from_file_location("docs_formats", ROOT / "scripts" / "docs_formats.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made: dict[str, str] = module.pages()
    return made


def test_pages_are_those_of_the_declarations() -> None:
    folder = ROOT / "docs" / "formats"
    found = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.md")}
    assert found == pages(), "run: make docs"


@pytest.mark.parametrize("importer", built_in(), ids=lambda f: f.name)
def test_declarations_are_whole(importer: Format) -> None:
    about = importer.about
    assert set(about.claims) <= set(FACT_NAMES)
    assert about.reads.endswith(".")
    assert about.turns.endswith(".")
    assert about.places
    assert any(claim.level is not Level.NOT_RECORDED for claim in about.claims.values())


@pytest.mark.parametrize("importer", built_in(), ids=lambda f: f.name)
def test_each_declares_what_it_was_held_against(importer: Format) -> None:
    held = importer.about.held_against
    assert (held is None) == (importer.name in NEITHER), (
        "say `held_against=` in its declaration, or, where captures have neither versions nor types of "
        "records, enter it in NEITHER with the reason"
    )
    if held is not None:
        assert held.newest or held.records
        assert not (held.oldest and held.newest and is_newer(held.oldest, held.newest))


def test_names_are_unique_and_each_format_has_a_fixture() -> None:
    names = [importer.name for importer in built_in()]
    assert len(set(names)) == len(names)
    missing = [name for name in names if not (ROOT / "fixtures" / name.replace("-", "_")).is_dir()]
    assert not missing, f"no fixtures/ folder for {missing}"
