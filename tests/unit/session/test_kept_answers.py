"""Answers that are kept beside a replay: taken while all that they rest on holds, and never if damaged."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ctxctl.analysis.cost_overview import CostQuestion, cost_overview
from ctxctl.analysis.costs import Costs
from ctxctl.lint.registry import choose_rules
from ctxctl.lint.run import LintPass, lint_with_tally
from ctxctl.session import Inspector, import_cache, kept_answers, kept_replays
from ctxctl.trace import inputs

ROOT = Path(__file__).parents[3]
CAPTURE = ROOT / "fixtures" / "claude_code" / "compaction.jsonl"
NATIVE = ROOT / "traces" / "coding-agent.jsonl"
OWN = {"claude-opus-4-5-20251101": {"window": 200_000, "input_price": 1000, "output_price": 2000}}
LOW: dict[str, dict[str, Any]] = {"CTX009": {"share": 0.000001, "tokens": 1}}
"""A rule that finds nearly everything too large."""


@pytest.fixture(autouse=True)
def _everything_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """However small, and however young."""
    monkeypatch.setattr(import_cache, "LEAST", 0)
    monkeypatch.setattr(kept_replays, "LEAST", 0)
    monkeypatch.setattr(inputs, "YOUNG", -1e9)


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    return Path(shutil.copy(CAPTURE, tmp_path / "one.jsonl"))


@pytest.fixture
def worked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was worked out, and not read."""
    made: list[str] = []
    linted, added = LintPass.over, Costs.spent

    def over(self: LintPass) -> Any:
        made.append("lint")
        return linted(self)

    def spent(self: Costs) -> Any:
        made.append("cost")
        return added(self)

    monkeypatch.setattr(LintPass, "over", over)
    monkeypatch.setattr(Costs, "spent", spent)
    return made


def asked(
    path: Path, *select: str, by: str = "kind", models: dict[str, Any] | None = None, **how: Any
) -> list[str]:
    with Inspector.open(path, **how) as inspector:
        lint = lint_with_tally(inspector, choose_rules(select or ("all",), values=LOW), models)
        costs = cost_overview(inspector, CostQuestion(by, models or {}, None, None))
        told = [
            repr(lint.findings),
            repr(lint.tally),
            repr(costs.sums),
            repr(costs.spent),
            repr(costs.breaks),
        ]
        return [*told, repr(inspector.problems)]


def answer_files() -> list[Path]:
    return sorted(Path(os.environ["CTXCTL_CACHE_DIR"]).rglob("*.answer-*"))


def test_the_second_answer_is_the_first(capture: Path, worked: list[str]) -> None:
    os.environ["CTXCTL_CACHE"] = "off"
    try:
        expected = asked(capture)
    finally:
        del os.environ["CTXCTL_CACHE"]
    worked.clear()
    assert asked(capture) == expected
    assert (worked, len(answer_files())) == (["lint", "cost"], 2)
    assert asked(capture) == expected
    assert worked == ["lint", "cost"]
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in answer_files())


@pytest.mark.parametrize(
    ("more", "which"),
    [
        ({"models": OWN}, ["lint", "cost"]),
        ({"model": "gpt-4o"}, ["lint", "cost"]),
        ({"policy": "fifo"}, ["lint", "cost"]),
        ({"by": "item"}, ["cost"]),
    ],
)
def test_another_question_has_its_own_answer(
    more: dict[str, Any], which: list[str], capture: Path, worked: list[str]
) -> None:
    first = asked(capture)
    worked.clear()
    other = asked(capture, **more)
    assert worked == which
    assert other != first
    assert (asked(capture), asked(capture, **more)) == (first, other)
    assert worked == which


def test_other_rules_have_their_own_answer(capture: Path, worked: list[str]) -> None:
    with Inspector.open(capture) as inspector:
        assert lint_with_tally(inspector, choose_rules(["CTX009"])).findings == []
        assert lint_with_tally(inspector, choose_rules(["CTX009"], values=LOW)).findings != []
        assert lint_with_tally(inspector, choose_rules(["CTX009"])).findings == []
        assert lint_with_tally(inspector, choose_rules(["CTX010"])).tally.rules == ("CTX010",)
    assert worked == ["lint"] * 3


def test_a_finding_names_the_trace_as_it_was_typed(
    tmp_path: Path, worked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    native = Path(shutil.copy(NATIVE, tmp_path / "one.jsonl"))
    with Inspector.open(native) as inspector:
        found = lint_with_tally(inspector, choose_rules(["all"], values=LOW)).findings
    monkeypatch.chdir(tmp_path)
    with Inspector.open("one.jsonl") as inspector:
        again = lint_with_tally(inspector, choose_rules(["all"], values=LOW)).findings
    assert worked == ["lint"]
    assert {finding.trace for finding in again} == {"one.jsonl"} != {finding.trace for finding in found}


def test_a_capture_that_changed_is_asked_anew(capture: Path, worked: list[str]) -> None:
    first = asked(capture)
    lines = capture.read_bytes().splitlines(keepends=True)
    capture.write_bytes(b"".join(lines[: len(lines) // 2]))
    worked.clear()
    assert asked(capture) != first
    assert worked == ["lint", "cost"]


def _flip(path: Path, rng: random.Random) -> None:
    data = bytearray(path.read_bytes())
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(data)


def _cut(path: Path, rng: random.Random) -> None:
    os.truncate(path, rng.randrange(path.stat().st_size))


def _lose(path: Path, _rng: random.Random) -> None:
    path.unlink()


def _link(path: Path, _rng: random.Random) -> None:
    moved = path.with_name("elsewhere")
    path.rename(moved)
    path.symlink_to(moved)


def _swap(path: Path, _rng: random.Random) -> None:
    """Another answer under its name."""
    (other,) = (one for one in answer_files() if one != path)
    shutil.copy(other, path)


@pytest.mark.parametrize("fault", [_flip, _cut, _lose, _link, _swap])
def test_a_damaged_answer_is_none(
    fault: Callable[[Path, random.Random], None], capture: Path, worked: list[str]
) -> None:
    expected, rng = asked(capture), random.Random(5)
    for _ in range(8):
        worked.clear()
        fault(rng.choice(answer_files()), rng)
        assert asked(capture) == expected
        assert len(worked) == 1


def test_an_unchecked_answer_would_be_believed(capture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A control: the same damage, unnoticed, shows."""
    expected = asked(capture)
    monkeypatch.setattr(kept_answers, "_check", lambda body: bytes(16))
    for path in answer_files():
        data = path.read_bytes()
        path.write_bytes(data[:-16].replace(b"tool_result", b"tool_rebuke") + bytes(16))
    assert asked(capture) != expected


def test_an_answer_of_another_trace_is_not_taken(capture: Path, tmp_path: Path, worked: list[str]) -> None:
    two = Path(shutil.copy(capture.with_name("one.jsonl"), tmp_path / "two.jsonl"))
    lines = two.read_bytes().splitlines(keepends=True)
    two.write_bytes(b"".join(lines[: len(lines) // 2]))
    asked(capture)
    ours = answer_files()
    expected = asked(two)
    worked.clear()
    for path in set(answer_files()) - set(ours):
        (same,) = (one for one in ours if one.suffix == path.suffix)
        shutil.copy(same, path)
    assert asked(two) == expected
    assert worked == ["lint", "cost"]


def test_what_is_too_large_is_not_kept(
    capture: Path, worked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_answers, "MOST", 10)
    assert asked(capture) == asked(capture)
    assert (worked, answer_files()) == (["lint", "cost"] * 2, [])
