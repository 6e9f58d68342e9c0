"""The packed table: built from several sources, the same bytes each time, and as old as it says."""

from __future__ import annotations

import importlib.util
import json
from datetime import date
from pathlib import Path
from types import ModuleType

import pytest

from ctxctl.report.catalogue import age, catalogue_date
from ctxctl.tokens.catalogue.find import find_model
from ctxctl.tokens.catalogue.table import load_table

SCRIPT = Path(__file__).parent.parent.parent.parent / "scripts" / "build_models.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_models", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


OLD = json.dumps(
    {
        "provider": "anthropic",
        "model": "claude-old",
        "window": 9,
        "usd_per_mtok": {"input": 3},
        "updated": "2026-01-02",
    }
).encode()
NEW = {
    "anthropic": {
        "models": {
            "claude-x": {
                "limit": {"context": 1000, "output": 10},
                "cost": {"input": 1, "output": 2, "input_audio": 7, "context_over_200k": {"input": 5}},
                "last_updated": "2026-03-04",
            }
        }
    }
}
PRICES = {
    "claude-x": {
        "litellm_provider": "anthropic", "mode": "chat", "max_input_tokens": 200,
        "input_cost_per_token": 4e-6, "output_cost_per_token": 2e-5,
        "cache_creation_input_token_cost_above_1hr": 8e-6,
        "input_cost_per_token_above_100k_tokens": 5e-6,
    },
    "gpt-9": {
        "litellm_provider": "openai", "mode": "chat", "max_input_tokens": 300, "input_cost_per_token": 1e-6,
    },
    "gpt-x-image": {"litellm_provider": "openai", "mode": "image_generation", "max_input_tokens": 300},
}  # fmt: skip


def test_later_sources_replace_what_earlier_ones_said(script: ModuleType) -> None:
    sources = [
        ("models.dev", None, OLD),
        ("models.dev", None, json.dumps(NEW).encode()),
        ("litellm", "1.2.3, 2026-03-09", json.dumps(PRICES).encode()),
    ]
    made = script.merged(sources)
    assert made["date"] == "2026-03-09"
    assert made["sources"] == [
        ["models.dev", "2026-01-02"], ["models.dev", "2026-03-04"], ["litellm", "1.2.3, 2026-03-09"],
    ]  # fmt: skip
    rows = {row[1]: row for row in made["rows"]}
    assert list(rows) == ["claude-old", "claude-x", "gpt-9"]
    assert rows["claude-x"][3] == 200
    assert rows["claude-x"][6] == [4.0, 20.0, None, None, 8.0]
    assert rows["claude-x"][7] == [[100_000, 5.0]]
    assert [row[-1] for row in rows.values()] == [0, 2, 2]
    assert rows["gpt-9"][3:5] == [None, 300]
    alone = script.merged(sources[1:2])["rows"][0]
    assert alone[6] == [1, 2, None, None, None, 7]
    assert alone[7] == [[200_000, 5]]
    assert script.merged(sources) == made


def test_one_command_writes_it(script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rows.jsonl").write_bytes(OLD)
    for name in ("one", "two"):
        given = [f"models.dev@2026-01-05={tmp_path / 'rows.jsonl'}", "--out", str(tmp_path / name)]
        monkeypatch.setattr("sys.argv", ["build_models.py", *given])
        script.main()
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


@pytest.mark.parametrize(
    ("of", "told"),
    [
        ("2026-11-22", "of today"),
        ("2026-11-21", "1 day old"),
        ("2026-10-01", "52 days old"),
        ("2026-07-02", "4 months old"),
        ("2024-11-01", "2 years old"),
        ("2027-01-01", "newer than this machine's clock"),
    ],
)
def test_an_age_in_words(of: str, told: str) -> None:
    assert age(of, date(2026, 11, 22)) == told


def test_the_packaged_table_says_of_when_it_is() -> None:
    assert catalogue_date(date.fromisoformat(load_table().date)) == f"of {load_table().date}, of today"
    assert max(load_table().sources)[1]


@pytest.mark.parametrize(
    "model",
    ["claude-opus-5", "claude-opus-5-5", "claude-sonnet-5", "claude-fable-5", "gpt-5.6-sol", "gpt-6.1-sol"],
)
def test_this_months_models_are_known(model: str) -> None:
    known = find_model(model)
    assert known.provider in ("anthropic", "openai")
    assert (known.window or known.max_input or 0) > 900_000
    assert known.prices.input
    assert known.source
