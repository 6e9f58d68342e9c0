"""A thread that goes on with a model of another encoding: each step in its own model's tokens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxctl.cli.main import run
from ctxctl.model.results import Step, Turn
from ctxctl.report.step import window_text
from ctxctl.session import Inspector
from ctxctl.session.store_rows import lives_of
from ctxctl.tokens import ranks
from ctxctl.tokens.calibrate.following import BY_RULE
from ctxctl.wording import signed

Json = dict[str, Any]
ASKS = (
    "Привет, мир! Сколько здесь токенов?",
    "日本語のテキストはどうですか。",
    "Und Straßenbahnhaltestellen?",
)
SAYS = ("Ответ: примерно сорок.", "そうですね。")
MODELS = {"gpt-4": "cl100k_base", "gpt-4o": "o200k_base"}
SENT = (ASKS[:1], (ASKS[0], SAYS[0], ASKS[1]), (ASKS[0], SAYS[0], ASKS[1], SAYS[1], ASKS[2]))


def counted(model: str, texts: tuple[str, ...]) -> int:
    made = ranks.get_encoding(MODELS[model])
    return sum(len(made.encode_ordinary(text)) for text in texts)


def sent(model: str, texts: tuple[str, ...]) -> int:
    """By OpenAI's rules: three tokens and the role's one for each message, three for the answer."""
    return counted(model, texts) + (3 + 1) * len(texts) + 3


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    lines = []
    for model, texts in zip(("gpt-4", "gpt-4o", "gpt-4"), SENT, strict=True):
        roles = ("user", "assistant") * 3
        messages = [{"role": role, "content": text} for role, text in zip(roles, texts, strict=False)]
        lines.append(json.dumps({"request": {"model": model, "temperature": 1, "messages": messages}}))
    path = tmp_path / "pairs.jsonl"
    path.write_text("\n".join(lines))
    return path


def test_each_step_is_counted_by_its_own_models_encoding(pairs: Path) -> None:
    with Inspector.open(str(pairs)) as inspector:
        results = list(inspector.replay())
    steps = [result for result in results if isinstance(result, Step)]
    turns = [result for result in results if isinstance(result, Turn)]
    assert [step.thread for step in steps] == ["main"] * 3
    last = 0
    for step, texts in zip(steps, SENT, strict=True):
        assert step.model is not None
        whole = counted(step.model, texts)
        assert step.window.recorded == step.ledger.window_after == whole
        assert step.window.by_method == {f"exact:{MODELS[step.model]}": whole}
        assert step.ledger.window_before == last
        assert step.ledger.new == counted(step.model, texts[-2:])
        assert step.ledger.freed == 0
        last = whole
    again = [step.ledger.reweighed for step in steps]
    assert again[0] == 0
    assert again[1] == counted("gpt-4o", SENT[0]) - counted("gpt-4", SENT[0]) < 0
    assert again[2] == counted("gpt-4", SENT[1]) - counted("gpt-4o", SENT[1]) > 0
    assert [turn.ledger.reweighed for turn in turns] == again
    assert f"before {signed(again[1])} counted anew + " in window_text(steps[1])
    assert window_text(steps[1]).endswith(f"(exact:o200k_base {counted('gpt-4o', SENT[1])})")


def test_an_encoding_that_is_named_counts_for_all(pairs: Path) -> None:
    for name, value in (("encoding", "o200k_base"), ("model", "gpt-4o")):
        how: Json = {name: value}
        with Inspector.open(str(pairs), **how) as inspector:
            steps = [result for result in inspector.replay() if isinstance(result, Step)]
        assert [step.ledger.reweighed for step in steps] == [0, 0, 0]
        assert [step.window.recorded for step in steps] == [counted("gpt-4o", texts) for texts in SENT]


def test_what_an_item_holds_and_has_cost_is_told_in_each_models_tokens(
    pairs: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    first = (ASKS[0],)
    here, before = counted("gpt-4o", first), counted("gpt-4", first)
    assert run(["why", f"{pairs}@2", "user_message-1", "--no-what-if"]) == 0
    words = " ".join(capfdbinary.readouterr().out.decode().split())
    whole = sent("gpt-4o", SENT[1])
    assert f"hold {here} of about {whole} expected (±{BY_RULE}), {100 * here / whole:.1f}%" in words
    cost, of = here + before, sent("gpt-4", SENT[0]) + whole
    assert f"has cost {cost} tokens in 2 requests so far, {100 * cost / of:.1f}% of" in words


def test_the_json_says_it_only_where_it_is_so(pairs: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    run(["replay", "--json", str(pairs)])
    said = capfdbinary.readouterr().out.decode()
    ledgers = [line["ledger"] for line in map(json.loads, said.splitlines()) if line["type"] == "step"]
    assert ["reweighed" in ledger for ledger in ledgers] == [False, True, True]
    summary = json.loads(said.splitlines()[-1])
    held = counted("gpt-4", SENT[2])
    assert (
        summary["new"] - summary["freed"] + summary["reweighed"] == held == sum(summary["by_method"].values())
    )


def test_no_bill_is_told_of_where_there_is_none(
    pairs: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """What is expected by the API's rules alone is not said to be had from a bill."""
    assert run(["replay", str(pairs), "--steps"]) == 0
    words = " ".join(capfdbinary.readouterr().out.decode().split())
    assert words.count("expected, not billed") == 3
    assert "steps: expected 3" in words
    assert "last bill" not in words


def test_items_weighed_again_are_known_by_their_size_where_their_sum_stays(tmp_path: Path) -> None:
    """One item grows by what another shrinks."""
    path, texts = tmp_path / "pairs.jsonl", ("self.assertEqual", "für")
    assert counted("gpt-4", texts) == counted("gpt-4o", texts)
    lines = []
    for number, model in enumerate(("gpt-4", "gpt-4o"), 2):
        messages = [{"role": "user", "content": text} for text in (*texts, "so")[:number]]
        lines.append(json.dumps({"request": {"model": model, "messages": messages}}))
    path.write_text("\n".join(lines))
    with Inspector.open(str(path)) as inspector:
        frame, lives = inspector.frame(1), lives_of(inspector)
        assert frame.step.ledger.reweighed == 0
        held = {lives.entry(number).item: last.held for number, last in lives.frame(1).items()}
        assert held == {placement.item: placement.tokens for placement in frame.placements}
