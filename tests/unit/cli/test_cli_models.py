"""``ctxctl models`` as a person meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ctxctl.cli.main import run


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = run(["models", *arguments])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_one_model(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(capsys, "gpt-5", "--provider", "openai")
    assert code == 0
    assert "window      400,000 tokens" in out
    assert "max input   272,000 tokens" in out
    assert "As openai lists it." in out
    assert "models.dev, 20" in out


def test_json_says_how_sure_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    told = [json.loads(said(capsys, "gpt-5", "--json", *more)[1]) for more in ((), ("--provider", "azure"))]
    assert [(t["how"], t["sure"]) for t in told] == [("maker", False), ("listed", True)]
    assert (told[0]["provider"], told[1]["provider"]) == ("openai", "azure")


def test_unknown_models_and_providers_have_near_names(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = said(capsys, "gtp-5")
    assert (code, out) == (2, "")
    assert "similar names: gpt-5" in err
    code, out, err = said(capsys, "--provider", "opnai")
    assert (code, out) == (2, "")
    assert "similar names: openai" in err


def test_hostile_names_are_shown_and_not_obeyed(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = said(capsys, "\x1b]0;owned\x07\u202egpt")
    assert code == 2
    assert "\x1b" not in err
    assert "\u202e" not in err


def test_lists(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(capsys, "--provider", "anthropic")
    assert code == 0
    assert all(line.startswith("anthropic") for line in out.splitlines()[1:-2])
    rows = [json.loads(line) for line in said(capsys, "--provider", "anthropic", "--json")[1].splitlines()]
    assert {row["provider"] for row in rows} == {"anthropic"}


def test_a_model_of_the_settings(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "ctxctl.toml"
    settings.write_text('[models."mine"]\nwindow = 4096\ninput_price = 0.5\n')
    monkeypatch.setenv("CTXCTL_CONFIG", str(settings))
    told = json.loads(said(capsys, "mine", "--json")[1])
    assert (told["how"], told["window"], told["usd_per_mtok"]["input"]) == ("settings", 4096, 0.5)
    assert "mine" in said(capsys)[1]


@pytest.mark.parametrize(
    "text",
    ['[models."m"]\nwindow = "big"', '[models."m"]\nsize = 1', '[models."m"]\nwindow = true', "models = 3"],
)
def test_bad_entries_are_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    settings = tmp_path / "ctxctl.toml"
    settings.write_text(text)
    monkeypatch.setenv("CTXCTL_CONFIG", str(settings))
    code, _, err = said(capsys, "m")
    assert code == 2
    assert "models must be" in err
