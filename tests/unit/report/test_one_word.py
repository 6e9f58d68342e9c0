"""The same value is worded the same in every view: text, page, Markdown, findings, costs and UI."""

from __future__ import annotations

import shutil
from decimal import Decimal
from pathlib import Path

import pytest

from ctxctl.wording import cost_text
from tests.oracle.build import assembly, at, budget, item, lines, usage
from tests.unit.report.one_word import VIEWS, disagreements, faults, output, page_words, printed

TRACES = sorted((Path(__file__).parents[3] / "traces").glob("*.jsonl"))
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="needs a JavaScript engine")


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """Windows that are tiny, exactly full, just below and above, far above, without a limit, not billed."""
    sizes = ((1, 10), (9_996, 10_000), (10_000, 10_000), (10_004, 10_000), (7, 1_000_000), (84_213, 1_000))
    events = []
    for n, (used, cap) in enumerate(sizes):
        events += at(
            f"t{n}", f"s{n}", item(f"i{n}", "hello world"), budget(cap), assembly(f"a{n}", [f"i{n}"]),
            usage(used, cached=used // 3, output=n),
        )  # fmt: skip
    events += at("t8", "s8", assembly("a8", ["i0"]), thread_id="other")
    path = tmp_path / "odd.jsonl"
    path.write_bytes(lines(events))
    return path


@needs_node
def test_two_hundred_values_of_the_traces_have_one_wording() -> None:
    asked = 0
    for path in TRACES:
        found, values = disagreements(path)
        assert found == []
        asked += values
    assert asked >= 200


@needs_node
def test_so_have_odd_ones(odd: Path) -> None:
    found, asked = disagreements(odd)
    assert found == []
    assert asked >= 100


@needs_node
def test_a_lower_bound_however_small_is_worded_alike() -> None:
    amounts = ["0.00003", "0.0000678", "0.0000009", "0.0001", "0.12344", "12"]
    said = page_words([("atLeast", [amount]) for amount in amounts])
    assert said == [cost_text(Decimal(amount), counted=False, least=True) for amount in amounts]


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_no_view_words_a_value_otherwise(path: Path, view: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert faults(output(path, view, printed(capsys)), path.read_text("utf-8")) == []


@pytest.mark.parametrize("view", VIEWS)
def test_nor_an_odd_one(odd: Path, view: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert faults(output(odd, view, printed(capsys)), "") == []


@pytest.mark.parametrize("text", ["14 %", "$0.00", "$1204.0310", "off by -368", "12345 tokens", "03.142%"])
def test_other_wordings_are_found(text: str) -> None:
    assert faults(f"it is {text} here", "") != []
