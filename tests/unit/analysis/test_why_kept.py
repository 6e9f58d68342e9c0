"""What `ctxctl why` found by supposing is kept: found again while it holds, and never a wrong answer."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxctl.analysis.why import supposing
from ctxctl.analysis.why.answer import explain_item
from ctxctl.analysis.why.money import money_for_item
from ctxctl.analysis.why.supposing import supposed_outcomes
from ctxctl.cli.main import run
from ctxctl.engine.replay.run import Engine
from ctxctl.model.why import WhatIf
from ctxctl.session import Inspector, answer_cache, import_cache, kept_replays
from ctxctl.session.store_rows import lives_of
from ctxctl.trace import inputs
from tests.unit.session.test_kept import cut, flip, foreign, link, lose, tear

CLAUDE = Path(__file__).parents[3] / "fixtures" / "claude_code"
ITEMS = ("u-01", "toolu_02/result", "a-03")
MODEL = "claude-opus-4-5-20251101"
SMALL = {MODEL: {"window": 160}}
"""With so little room the answer depends on what texts come to."""
FAULTS: tuple[Callable[[Path, random.Random], None], ...] = (flip, cut, tear, lose, link, foreign)


@pytest.fixture(autouse=True)
def _everything_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """However small, and however young."""
    monkeypatch.setattr(import_cache, "LEAST", 0)
    monkeypatch.setattr(kept_replays, "LEAST", 0)
    monkeypatch.setattr(inputs, "YOUNG", -1e9)


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    shutil.copy(CLAUDE / "compaction.jsonl", tmp_path / "one.jsonl")
    return tmp_path / "one.jsonl"


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> list[Engine]:
    """Every engine that is made."""
    found: list[Engine] = []
    make = Engine.__init__

    def made(engine: Engine, *args: Any) -> None:
        found.append(engine)
        make(engine, *args)

    monkeypatch.setattr(Engine, "__init__", made)
    return found


def answers(path: Path, *items: str, at: int = -1, **how: Any) -> list[WhatIf]:
    with Inspector.open(path, **{"own_models": SMALL, **how}) as inspector:
        ordinal = at % len(lives_of(inspector))
        whys = [explain_item(inspector, ordinal, item) for item in items or ITEMS]
        return [supposed_outcomes(inspector, why) for why in whys]


def without_cache(path: Path, *items: str, **how: Any) -> list[WhatIf]:
    os.environ["CTXCTL_CACHE"] = "off"
    try:
        return answers(path, *items, **how)
    finally:
        del os.environ["CTXCTL_CACHE"]


def kept_files(cache: Path) -> list[Path]:
    return sorted(path for path in cache.rglob("*") if path.suffix.startswith(".answers-"))


def test_a_second_question_replays_nothing(capture: Path, engines: list[Engine]) -> None:
    expected = without_cache(capture)
    assert all(found.replays > 3 for found in expected)
    assert answers(capture) == expected
    engines.clear()
    assert answers(capture) == expected
    assert not engines


def test_what_would_keep_it_in_a_long_session_is_looked_for_when_asked(
    capture: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    question = ["why", f"{capture}@-1", ITEMS[0]]
    assert run(question) == 0
    short = capfd.readouterr().out
    assert "(simulated)" in short
    for file in kept_files(Path(os.environ["CTXCTL_CACHE_DIR"])):
        file.unlink()
    monkeypatch.setattr(supposing, "_MAX_EVENTS_UNASKED", 5)
    assert run(question) == 0
    told = " ".join(capfd.readouterr().out.split())
    assert "ctxctl did not look for what would keep it" in told
    assert "`--what-if` runs them" in told
    assert "(simulated)" not in told
    assert run([*question, "--what-if"]) == 0
    assert capfd.readouterr().out == short
    assert run(question) == 0
    assert capfd.readouterr().out == short, "what is known is told"


def test_each_item_step_and_parameter_has_its_own(capture: Path) -> None:
    asked: list[dict[str, Any]] = [
        {},
        {"at": 3},
        {"encoding": "cl100k_base"},
        {"policy": "fifo"},
        {"own_models": {}},
    ]
    expected = [without_cache(capture, **how) for how in asked]
    assert expected[0] != expected[1]
    assert len({repr(found) for found in expected[0]}) > 1
    for _ in range(2):
        assert [answers(capture, **how) for how in asked] == expected


def test_of_a_capture_that_changed_nothing_is_found_again(capture: Path) -> None:
    first = answers(capture)
    capture.write_bytes(capture.read_bytes().replace(b"an index", b"an index, or two of them, or three"))
    assert answers(capture) == without_cache(capture) != first


def test_money_is_worked_out_anew(capture: Path) -> None:
    models = {MODEL: {"input_price": 700.0}}
    with Inspector.open(capture) as inspector:
        why = explain_item(inspector, 5, "u-01")
        dear = list(money_for_item(inspector, why, models))
        cheap = list(money_for_item(inspector, why, None))
        assert [link.text for link in dear] != [link.text for link in cheap]
        assert supposed_outcomes(inspector, why, None).links[: len(cheap)] == tuple(cheap)
        assert supposed_outcomes(inspector, why, models).links[: len(dear)] == tuple(dear)


@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 1 << 30), faults=st.lists(st.sampled_from(FAULTS), min_size=1, max_size=3))
def test_what_is_damaged_is_made_again(
    tmp_path_factory: pytest.TempPathFactory, seed: int, faults: list[Callable[[Path, random.Random], None]]
) -> None:
    folder, rng = tmp_path_factory.mktemp("one"), random.Random(seed)
    path = folder / "one.jsonl"
    shutil.copy(CLAUDE / "compaction.jsonl", path)
    before = os.environ["CTXCTL_CACHE_DIR"]
    os.environ["CTXCTL_CACHE_DIR"] = str(folder / "cache")
    try:
        expected = answers(path)
        for fault in faults:
            (file,) = kept_files(folder / "cache")
            fault(file, rng)
            assert answers(path) == expected
            assert answers(path) == expected
    finally:
        os.environ["CTXCTL_CACHE_DIR"] = before


def test_what_is_not_checked_would_give_a_wrong_answer(
    capture: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A control: the same damage, unnoticed, shows."""
    expected = answers(capture)
    (file,) = kept_files(Path(os.environ["CTXCTL_CACHE_DIR"]))
    data = file.read_bytes()
    assert b"it would be there" in data
    wrong = data.replace(b"it would be there", b"it would be THERE")
    file.write_bytes(wrong)
    assert answers(capture) == expected
    file.write_bytes(wrong)
    monkeypatch.setattr(answer_cache, "digest_of", lambda data: wrong[:16])
    assert answers(capture) != expected


def test_answers_of_another_capture_are_not_taken(capture: Path, tmp_path: Path) -> None:
    other = tmp_path / "two.jsonl"
    other.write_bytes(capture.read_bytes().replace(b"an index", b"an index, or two of them, or three"))
    expected = answers(capture), answers(other)
    assert expected[0] != expected[1]
    one, two = kept_files(Path(os.environ["CTXCTL_CACHE_DIR"]))
    data = one.read_bytes()
    one.write_bytes(two.read_bytes())
    two.write_bytes(data)
    assert (answers(capture), answers(other)) == expected


def test_the_oldest_answers_go_first(capture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_cache, "_MAX_ANSWERS", 2)
    with Inspector.open(capture) as inspector:
        kept = answer_cache.answers_of(inspector)
        assert kept is not None
        for number in range(4):
            kept.keep(f"question {number}", b"%d" % number)
        assert [kept.find(f"question {number}") for number in range(4)] == [None, None, b"2", b"3"]


def test_a_home_that_cannot_be_written(
    capture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = without_cache(capture)
    (tmp_path / "file").write_text("no directory")
    monkeypatch.setenv("CTXCTL_CACHE_DIR", str(tmp_path / "file" / "cache"))
    assert answers(capture) == expected


def test_the_history_of_a_capture_that_its_import_found_fault_with_is_kept(
    capture: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with capture.open("ab") as file:
        file.write(b"{this is no JSON\n")
    expected = without_cache(capture)
    assert answers(capture) == expected

    def replayed(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(Inspector, "outline", replayed)
    assert answers(capture) == expected
    with Inspector.open(capture, own_models=SMALL) as inspector:
        lives_of(inspector)
        assert inspector.problem_count == 1
