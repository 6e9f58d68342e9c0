"""What a run says before it begins, and which tests a change needs."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests import timing, touched

pytest_plugins = ["pytester"]
PASSES = "import pytest\n\n@pytest.mark.parametrize('n', range({count}))\ndef test_one(n):\n    pass\n"


def test_what_tests_took_is_what_they_are_expected_to_take() -> None:
    kept = {"a.py::one": 1.0, "a.py::two": 3.0, "b.py::gone": 100.0}
    assert timing.expected(["a.py::one", "a.py::two"], kept) == (4.0, True)
    assert timing.expected(["a.py::one", "a.py::two", "a.py::new"], kept) == (6.0, True)


@pytest.mark.parametrize("kept", [{}, {"a": 50.0}])
def test_what_is_not_known_of_most_is_judged_by_the_machine(
    kept: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timing, "speed", lambda: 0.5)
    ids = ["a", "b", "c"]
    assert timing.expected(ids, kept) == (3 * 0.5 * timing.LOOPS_A_TEST, False)


def test_the_line_is_plain() -> None:
    said = timing.told(12_704, 2, timing.Expected(700.0, known=True))
    assert said == "12,704 tests on 2 workers: about 6 minutes, as they took last time"
    said = timing.told(100, 0, timing.Expected(0.2, known=False))
    assert said == "100 tests: about 1 second, judged by this machine's speed, if nothing else runs"


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    """A suite of its own with the plugin, and as many tests as are worth a word."""
    pytester.makeconftest(
        "from tests import timing\n\ndef pytest_configure(config):\n    timing.pytest_configure(config)\n"
    )
    pytester.makeini(
        "[pytest]\nmarkers = slow: takes seconds\nasyncio_default_fixture_loop_scope = function\n"
    )
    pytester.makepyfile(test_many=PASSES.format(count=timing.MANY))
    return pytester


def test_a_run_says_it_and_keeps_what_the_next_one_says(
    suite: pytest.Pytester, capfd: pytest.CaptureFixture[str]
) -> None:
    suite.inline_run("-p", "no:xdist")
    assert re.search(
        rf"^{timing.MANY} tests: about \d+ seconds?, judged by", capfd.readouterr().err, re.MULTILINE
    )
    cache = suite.path / ".pytest_cache"
    kept = timing.kept_in(cache)
    assert sorted(kept) == sorted(f"test_many.py::test_one[{n}]" for n in range(timing.MANY))
    suite.inline_run("-p", "no:xdist")
    assert re.search(
        rf"^{timing.MANY} tests: about \d+ seconds?, as they", capfd.readouterr().err, re.MULTILINE
    )
    suite.inline_run("-p", "no:xdist", "-k", "one and 3")
    assert "tests" not in capfd.readouterr().err  # few
    assert timing.kept_in(cache).keys() == kept.keys()


def test_what_is_slow_is_kept_apart_and_what_is_gone_is_dropped(suite: pytest.Pytester) -> None:
    cache = suite.path / ".pytest_cache"
    suite.inline_run("-p", "no:xdist")
    (suite.path / "test_many.py").unlink()
    suite.makepyfile(
        test_few="import pytest\n\n@pytest.mark.slow\ndef test_a():\n    pass\n\ndef test_b():\n    pass\n"
    )
    suite.inline_run("-p", "no:xdist")
    assert list(timing.kept_in(cache)) == ["test_few.py::test_b"]
    assert "test_few.py::test_a" in (cache / "v" / timing.SLOW).read_text()


def test_a_cache_that_is_damaged_is_none(tmp_path: Path) -> None:
    assert timing.kept_in(tmp_path) == {}
    (tmp_path / "v" / "ctxctl").mkdir(parents=True)
    for data in ("{", "[]"):
        (tmp_path / "v" / timing.KEY).write_text(data)
        assert timing.kept_in(tmp_path) == {}


# Which tests a change needs

TESTS = {
    "tests/guards/test_size.py": "from ctxctl import text\n",
    "tests/unit/engine/test_query.py": "from ctxctl.engine.query import (\n    parsing,\n    facts,\n)\n",
    "tests/unit/engine/test_places.py": "import ctxctl.engine.replay.places\n",
    "tests/unit/cli/test_find.py": "    from ctxctl.engine.query.parsing import parse\n",
    "tests/property/test_laws.py": "from tests.oracle import build\n",
    "tests/tui/test_tui_app.py": "from helpers import made\n",
    "tests/docs/test_outputs.py": "",
}
EVEN = dict.fromkeys(TESTS, 1.0)


def chosen(*paths: str, budget: float = 100.0) -> list[str]:
    return touched.choose(paths, TESTS, EVEN, budget).files


def test_who_imports_a_module_and_its_room_are_needed() -> None:
    assert chosen("ctxctl/engine/query/parsing.py") == [
        "tests/unit/cli/test_find.py", "tests/unit/engine/test_query.py", "tests/unit/engine/test_places.py",
    ]  # fmt: skip
    assert chosen("tests/oracle/build.py") == ["tests/property/test_laws.py"]
    assert chosen("ctxctl/tui/app.py", "docs/cost.md") == [
        "tests/docs/test_outputs.py",
        "tests/tui/test_tui_app.py",
    ]
    assert chosen("Makefile") == []


def test_a_changed_test_brings_no_room_along() -> None:
    assert chosen("tests/unit/engine/test_places.py") == ["tests/unit/engine/test_places.py"]


def test_what_does_not_fit_into_the_minute_is_left_and_counted() -> None:
    found = touched.choose(["ctxctl/engine/query/parsing.py"], TESTS, EVEN, 2.5)
    assert found.files == ["tests/unit/cli/test_find.py", "tests/unit/engine/test_query.py"]
    assert found.left == ["tests/unit/engine/test_places.py"]


def test_what_is_chosen_is_said_with_what_is_left() -> None:
    said = touched.summary(["ctxctl/engine/a.py", "Makefile"], touched.Chosen(["x"], ["y", "z"]))
    assert said.splitlines() == [
        "changed: 2 files, of engine",
        "the guards and 1 file of tests; 2 more would take longer than a minute: make test",
    ]
    assert touched.summary([], touched.Chosen([], [])).splitlines() == [
        "changed: 0 files, of no room", "the guards and 0 files of tests",
    ]  # fmt: skip


def test_a_file_takes_what_its_tests_took_and_a_new_one_what_others_do() -> None:
    kept = {"a.py::one": 1.0, "a.py::two": 2.0, "b.py::one": 1.0}
    assert touched.by_file(["a.py", "b.py", "c.py"], kept) == {"a.py": 3.0, "b.py": 1.0, "c.py": 2.0}


def test_the_change_is_what_git_says(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        who = ("-c", "user.name=x", "-c", "user.email=x@example.com", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init", "--initial-branch", "main")
    for name in ("same", "edited", "committed"):
        (tmp_path / name).write_text("1")
    git("add", ".")
    git("commit", "-m", "first")
    git("switch", "-c", "work")
    (tmp_path / "committed").write_text("2")
    git("commit", "-a", "-m", "second")
    (tmp_path / "edited").write_text("2")
    (tmp_path / "new").write_text("2")
    assert touched.changed(None, tmp_path) == ["committed", "edited", "new"]
    assert touched.changed("HEAD", tmp_path) == ["edited", "new"]
