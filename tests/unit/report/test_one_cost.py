"""One session has one cost: in its report, in lists of sessions, in sums over directories, in a dataset."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from ctxctl.cli.main import run
from ctxctl.dataset.opening import opened
from ctxctl.dataset.session_groups import summed
from ctxctl.dataset.session_rows import session_rows, session_tables
from ctxctl.dataset.session_values import Figures
from ctxctl.report.session_figures import cost_words
from ctxctl.wording import cost_text, stated_text

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")

FIXTURES: Final = Path(__file__).parents[3] / "fixtures"
NAMES: Final = (
    "aider", "bills_and_content", "claude_code", "claude_stream_json", "codex", "copilot_cli", "gemini_cli",
    "goose", "langfuse", "opencode", "otel", "pi", "tau_bench",
)  # fmt: skip
_MONEY: Final = r"[≈≥]?(?:under )?\$[\d.,]+†?"
Out = pytest.CaptureFixture[str]


def printed(capsys: Out, *arguments: str) -> str:
    capsys.readouterr()
    assert run(list(arguments)) in (0, 3)
    return capsys.readouterr().out


def stored_costs(place: Path, capsys: Out) -> dict[str, str]:
    """By path, what the overview of a dataset says; a capture of several sessions has the sum of them."""
    printed(capsys, "fleet", "add", *(str(FIXTURES / name) for name in NAMES), "--to", str(place), "-q")
    rows: dict[str, list[Any]] = {}
    for row in session_rows(opened(str(place), tables=session_tables())).rows:
        assert row.path is not None
        rows.setdefault(row.path, []).append(msgspec.structs.replace(row, copied=Figures()))
    return {path: cost_words(summed(None, some).figures) for path, some in rows.items()}


def listed_costs(capsys: Out) -> dict[str, str]:
    """By path, what a list of sessions says."""
    found = {}
    for name in NAMES:
        for line in map(json.loads, printed(capsys, "ls", str(FIXTURES / name), "--json").splitlines()):
            if line["type"] == "listed_session" and line["read"] == "yes" and line["steps"]:
                usd, stated = (
                    None if one is None else Decimal(one) for one in (line["cost"], stated_usd(line))
                )
                found[line["path"]] = cost_text(usd, counted=line["counted"], least=line["at_least"])
                if usd is None and stated is not None:
                    found[line["path"]] = stated_text(stated, priced=line["stated"]["total_is_priced"])
    return found


def stated_usd(line: Any) -> str | None:
    """What the runtime says that a listed session cost."""
    said: dict[str, str | None] = line["stated"] or {}
    return said.get("total_usd") or said.get("usd")


def reported_cost(path: str, capsys: Out) -> str:
    """What the report of a replay says."""
    out = printed(capsys, "replay", "--plain", path)
    found = re.search(rf"^cost +({_MONEY}|not known|only tokens)", out, re.MULTILINE)
    assert found is not None, out[:2000]
    stated = re.search(r"^cost .* (?:stated by the runtime|that the runtime states)", out, re.MULTILINE)
    return "-" if found[1] in ("not known", "only tokens") else found[1] + "†" * (stated is not None)


def summed_cost(path: str, capsys: Out) -> str:
    """What the row of a capture says where costs are summed up by session."""
    head, rows = printed(capsys, "cost", path, "--by", "session").split("\nsession ", 1)
    found = re.search(rf" ({_MONEY}|-) +(?:[\d.]+%|under [\d.]+%|-)$", rows.splitlines()[1])
    assert found is not None, head + rows
    return found[1]


def test_every_view_says_the_same(tmp_path: Path, capsys: Out) -> None:
    stored, listed = stored_costs(tmp_path / "fleet", capsys), listed_costs(capsys)
    assert len(listed) > 30
    signs = set()
    for path, cost in listed.items():
        said = {
            "list": cost, "dataset": stored[path], "report": reported_cost(path, capsys),
            "sums": summed_cost(path, capsys),
        }  # fmt: skip
        if cost.endswith("†"):  # a dataset holds no totals
            assert said.pop("dataset") == "-"
        assert len(set(said.values())) == 1, (path, said)
        signs.add(cost[0])
    assert signs == set("$≈≥-"), "no fixture shows each of the signs"


def test_an_answer_that_sums_prices_has_the_signs_too(tmp_path: Path, capsys: Out) -> None:
    place = tmp_path / "fleet"
    printed(capsys, "fleet", "add", str(FIXTURES / "claude_code"), "--to", str(place), "-q")
    asked = printed(capsys, "fleet", "ask", "sessions", "--dataset", str(place))
    assert "≥$0.1301" in asked, "the request that wrote a summary is in no log"
    lines = printed(capsys, "fleet", "ask", "sessions", "--dataset", str(place), "--json").splitlines()
    rows = [one["values"] for one in map(json.loads, lines) if one["type"] == "row"]
    assert sorted(row["expected"] for row in rows) == [0, 0, 0, 0, 1]
