"""What importers declare is whole, and the pages about them say the same."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from ctxctl.formats.fidelity import FACT_NAMES, Level
from ctxctl.formats.registry import FORMATS, Format

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


@pytest.mark.parametrize("importer", FORMATS, ids=lambda f: f.name)
def test_declarations_are_whole(importer: Format) -> None:
    about = importer.about
    assert set(about.claims) <= set(FACT_NAMES)
    assert about.reads.endswith(".")
    assert about.turns.endswith(".")
    assert about.places
    assert any(claim.level is not Level.NOT_RECORDED for claim in about.claims.values())


def test_names_are_unique_and_each_format_has_a_fixture() -> None:
    names = [importer.name for importer in FORMATS]
    assert len(set(names)) == len(names)
    missing = [name for name in names if not (ROOT / "fixtures" / name.replace("-", "_")).is_dir()]
    assert not missing, f"no fixtures/ folder for {missing}"
