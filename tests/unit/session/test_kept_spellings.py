"""What is kept of a capture is found again however its path is spelled, and is never that of another file."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from ctxctl.session import Inspector, import_cache, kept_replays, opening
from ctxctl.trace import inputs
from ctxctl.trace.inputs import real_place, recording

CLAUDE = Path(__file__).parents[3] / "fixtures" / "claude_code"


@pytest.fixture(autouse=True)
def _everything_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_cache, "LEAST", 0)
    monkeypatch.setattr(kept_replays, "LEAST", 0)
    monkeypatch.setattr(inputs, "YOUNG", -1e9)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory `a/real` with a capture, a link `link` to it, and `a/one.jsonl`, another capture."""
    made = tmp_path / "a" / "real"
    made.mkdir(parents=True)
    shutil.copy(CLAUDE / "compaction.jsonl", made / "one.jsonl")
    shutil.copy(CLAUDE / "session.jsonl", tmp_path / "a" / "one.jsonl")
    (tmp_path / "link").symlink_to(made)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def kept() -> list[str]:
    return sorted(entry.name for entry in (Path(os.environ["CTXCTL_CACHE_DIR"]) / "captures").iterdir())


def steps(path: str) -> int:
    with Inspector.open(path) as inspector:
        assert inspector.name == path
        return sum(1 for _ in inspector.steps())


SPELLINGS = ("a/real/one.jsonl", "./a/real/one.jsonl", "a/../a/real/./one.jsonl", "link/one.jsonl",
             "link/../real/one.jsonl")  # fmt: skip


def test_one_file_is_kept_once(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = steps(str(place / "a/real/one.jsonl"))
    (key,) = kept()

    def imported(*_: object) -> None:
        raise AssertionError("imported again")

    monkeypatch.setattr(opening, "write_native", imported)
    assert [steps(path) for path in SPELLINGS] == [found] * len(SPELLINGS)
    monkeypatch.chdir(place / "a/real")
    assert steps("one.jsonl") == found
    assert kept() == [key]


def test_one_directory_is_kept_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(CLAUDE, tmp_path / "several")
    (tmp_path / "link").symlink_to(tmp_path / "several")
    monkeypatch.chdir(tmp_path)
    spelled = (str(tmp_path / "several"), "several", f"../{tmp_path.name}/several", "link")
    found = [steps(path) for path in spelled]
    assert len(set(found)) == len(kept()) == 1


def test_behind_a_link_is_the_directory_above_its_target(place: Path) -> None:
    other = steps("a/one.jsonl")
    assert other != steps("a/real/one.jsonl")
    assert steps("link/../one.jsonl") == other
    (place / "one.jsonl").write_text("")
    with recording() as noted:
        opening.open_trace("link/../one.jsonl").trace.close()
    assert str(place / "a/one.jsonl") in noted.files
    assert str(place / "one.jsonl") not in noted.files


def test_a_link_that_leads_elsewhere_is_another_capture(place: Path) -> None:
    before = steps("link/one.jsonl")
    (place / "link").unlink()
    (place / "link").symlink_to(place / "a")
    assert steps("link/one.jsonl") != before


def test_a_link_to_a_file_stays_where_it_is(place: Path) -> None:
    (place / "alias.jsonl").symlink_to(place / "a/real/one.jsonl")
    assert real_place("alias.jsonl") == place / "alias.jsonl"
    assert real_place("link/../alias.jsonl") == place / "a/alias.jsonl"
    assert real_place("link/..") == place / "a"
    assert real_place("nowhere/x") == place / "nowhere/x"
