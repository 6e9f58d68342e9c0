"""Each test has a home that is empty and that no other test had."""

from __future__ import annotations

from pathlib import Path

from tests.homes import Homes


def test_homes_differ_and_are_empty_whatever_was_left(tmp_path: Path) -> None:
    homes, had, used = Homes(tmp_path), set[Path](), {2: "file", 5: ".hidden"}
    for number in range(8):
        home = homes.home()
        assert home not in had
        assert list(home.iterdir()) == []
        had.add(home)
        if number in used:
            (home / used[number]).write_text("x")
    assert {path.name for home in had if home.exists() for path in home.iterdir()} == set(used.values())


def test_a_home_that_was_taken_away_or_closed_is_not_handed_on(tmp_path: Path) -> None:
    homes = Homes(tmp_path)
    homes.home().rmdir()
    closed = homes.home()
    open_mode = closed.stat().st_mode
    closed.chmod(0o500)
    last = homes.home()
    assert closed.exists()
    assert last.stat().st_mode == open_mode
    closed.chmod(0o700)
