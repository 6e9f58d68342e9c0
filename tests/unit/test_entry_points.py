"""Whether other packages may bring plug-ins, seen without the standard library's reader of metadata."""

from __future__ import annotations

import sys
import zipfile
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from ctxctl.entry_points import BUNDLED, FORMATS, _may_be_installed, installed

OURS = "\n".join(f"{name} = {value}" for name, value in BUNDLED[FORMATS].items())


def declares(place: Path, text: str, package: str = "other-1.dist-info") -> Path:
    """A directory with a package's metadata, as an installer leaves it."""
    (place / package).mkdir(parents=True)
    (place / package / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1\n")
    (place / package / "entry_points.txt").write_text(text)
    return place


@pytest.mark.parametrize(
    ("text", "may"),
    [
        ("[ctxctl.formats]\nmine = other:FORMAT\n", True),
        (f"[ctxctl.formats]\n{OURS}\nmine=other:FORMAT", True),
        ("[console_scripts]\nx = y:z\n\n [ctxctl.formats] \n  mine = other:FORMAT [extra]\n", True),
        (f"[ctxctl.formats]\n{OURS}\n[console_scripts]\nctxctl = other:main\n", False),
        ("[ctxctl.formats]\n# mine = other:FORMAT\n", False),
        ("[ctxctl.policies]\nmine = ctxctl.formats:POLICY\n", False),
        ("", False),
    ],
    ids=["another", "one-more", "spaces", "ours", "comment", "other-group", "empty"],
)
def test_what_is_declared_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, may: bool
) -> None:
    monkeypatch.setattr(sys, "path", [str(declares(tmp_path, text)), str(tmp_path / "gone")])
    assert _may_be_installed(FORMATS) is may
    found = [one for one in entry_points(group=FORMATS) if BUNDLED[FORMATS].get(one.name) != one.value]
    assert bool(found) is may, "the standard library sees the same"
    assert len(list(installed(FORMATS, lambda made: made))) == len(found)


def test_an_archive_is_left_to_the_standard_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tmp_path / "packages.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("other-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: other\nVersion: 1\n")
        file.writestr("other-1.dist-info/entry_points.txt", "[ctxctl.formats]\nmine = other:FORMAT\n")
    monkeypatch.setattr(sys, "path", [str(archive)])
    assert [plugin.name for plugin in installed(FORMATS, lambda made: made)] == ["mine"]


def test_so_is_another_finder_of_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    class Finder:
        @staticmethod
        def find_distributions(context: object) -> list[object]:
            return []

    monkeypatch.setattr(sys, "path", [])
    assert not _may_be_installed(FORMATS)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder])
    assert _may_be_installed(FORMATS)
