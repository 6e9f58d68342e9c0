"""Inputs that came out wrong once, in `cases` beside the corpus: what each must say, by the JSON."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.corpus.test_independent import ask
from tools.independent.raw import Object
from tools.independent.stated import said


class Told(NamedTuple):
    """What a capture must say; what is None is not asked."""

    format: str
    requests: int
    model: str | None = None
    cost: str | None = None
    """US dollars, to four places."""
    sent: int | None = None
    """The size of the last request of the file."""
    billed: tuple[int, int, int, int, int] | None = None
    """Input, cached, written, written for an hour, output."""
    compactions: int = 0
    bound: bool = False
    least: str | None = None
    """US dollars that the compactions cost at least whose requests are in no log."""
    stated: dict[str, tuple[str, int, int]] | None = None
    """By scope: US dollars, input, output."""
    time: str | None = None
    """How the first request's begins."""
    also: Callable[[list[Object]], Any] = lambda steps: True
    """What else must hold of the steps."""


def _kinds(step: Object) -> list[str]:
    return [item["kind"] for item in step["changes"] if item["status"] in ("added", "updated", "skipped")]


def _removed(step: Object, cause: str) -> list[str]:
    return [
        item["item"] for item in step["changes"] if item["status"] == "removed" and item["cause"] == cause
    ]


def _deferred(step: Object) -> list[str]:
    return [item["item"] for item in step["changes"] if item["reason"] == "deferred"]


def _passes(step: Object, kind: str) -> list[tuple[int, int]]:
    return [(one["input_tokens"], one["output_tokens"]) for one in step["usage"]["terms"][kind]]


SONNET, OPUS = "claude-sonnet-4-5-20250929", "claude-opus-4-8"
HOUR = (5, 1000, 20_000, 100_000, 57)

CASES: dict[str, Told] = {
    "bills/11h-codex-compaction-unbilled": Told(
        "codex", 2, "gpt-5.6-sol", sent=8000, compactions=1, bound=True,
        least="0.0802", also=lambda steps: sorted(_kinds(steps[-1])) == ["thread_summary", "user_message"],
    ),
    "bills/11x-codex-no-ordinal": Told("codex", 1, "gpt-5.6-sol", "0.0312", 10_000),
    "bills/12-cc-compact.jsonl": Told(
        "claude-code", 3, OPUS, sent=24_003, compactions=1, bound=True, least="0.0844",
    ),
    "bills/28-images.jsonl": Told("claude-code", 2, SONNET, "0.0420", 11_003),
    "bills/30-context-editing.jsonl": Told(
        "api", 14, SONNET, "0.2448", 5533,
        also=lambda steps: [len(_removed(step, "cleared")) for step in steps] == [0] * 6 + [4] + [1] * 7,
    ),
    "bills/31-compaction-beta.jsonl": Told(
        "api", 1, SONNET, "0.6765", 23_000, compactions=1,
        also=lambda steps: _passes(steps[0], "passes") == [(180_000, 3500), (23_000, 1000)],
    ),
    "bills/32-tool-search.jsonl": Told("api", 1, SONNET, "0.0063", 1500),
    "bills/32b-deferred-tools.jsonl": Told(
        "api", 1, OPUS, "0.0125", 1900,
        also=lambda steps: len(_deferred(steps[0])) == 80 and _kinds(steps[0]).count("tool_definition") == 1,
    ),
    "bills/47b-chat-created.jsonl": Told("api", 1, "gpt-5.4", sent=10, time="2026-09-01T10:00:00"),
    "bills/51h-langfuse-v2-list.json": Told(
        "langfuse", 1, "gpt-5.4", sent=40, billed=(40, 0, 0, 0, 8), time="2026-09-01T10:00:00"
    ),
    "bills/51j-langfuse-langchain.json": Told("langfuse", 1, SONNET, "0.6762", 121_005, HOUR),
    "bills/51k-langfuse-raw.json": Told("langfuse", 1, SONNET, "0.6762", 121_005, HOUR),
    "bills/52a-langsmith-new.jsonl": Told("langsmith", 1, SONNET, "0.6762", 121_005, HOUR),
    "bills/60-advisor.jsonl": Told(
        "claude-code", 2, "claude-sonnet-5", "0.5329", 82_903, (10, 243_100, 2900, 0, 205),
        also=lambda steps: (
            steps[0]["window"]["used"] == 82_602
            and _passes(steps[0], "further") == [(85_000, 2000)]
        ),
    ),
    "bills/cc_compact_stop_hook.jsonl": Told(
        "claude-code", 3, "claude-opus-4-6", sent=20_910, compactions=1, bound=True, least="0.0258",
        also=lambda steps: (
            _kinds(steps[-1]).count("user_message") == 1 and len(_removed(steps[-1], "compacted")) == 3
        ),
    ),
    "bills/cc_interleaved_message.jsonl": Told(
        "claude-code", 2, "claude-opus-4-6", "0.1362", 117_696,
        also=lambda steps: [step["usage"]["reported_output"] for step in steps] == [528, 130],
    ),
    "denied/42-codex-exec.jsonl": Told("codex-exec", 2, stated={"session": ("0", 22_000, 230)}, bound=True),
    "denied/43-claude-result.json": Told(
        "claude-stream-json", 1, SONNET, stated={"turn": ("0.0421", 54_777, 1374)}, bound=True,
        also=lambda steps: steps[0]["window"]["limit_source"] == "runtime",
    ),
    "denied/44-litellm.jsonl": Told(
        "api", 1, SONNET, "0.0443", 130_213, (5, 128_955, 1253, 0, 57), time="2026-09-01T10:00:00"
    ),
    "denied/agentv_trace_no_spans.json": Told(
        "openinference", 2, bound=True, time="2026-06-15T12:00:00",
        also=lambda steps: {step["model"] for step in steps} == {"gpt-5", "gpt-5-mini"},
    ),
    "denied/aider_tokens_denied.md": Told(
        "aider", 1, "gpt-4.1", bound=True,
        stated={"turn": ("0.04", 17_000, 352), "session": ("0.37", 0, 0)},
    ),
    "denied/claude_tap_ws_usage_lost.jsonl": Told("claude-tap", 1, "gpt-5.4", "0.0014", 500),
    "denied/codex_exec_turn_total_denied.jsonl": Told(
        "codex-exec", 1, stated={"session": ("0", 2946, 7)}, bound=True
    ),
    "denied/codex_exec_turn_total_denied2.jsonl": Told(
        "codex-exec", 2, stated={"session": ("0", 50_787, 354)}, bound=True
    ),
    "denied/goose_dir": Told("goose-recordings", 1, "gpt-4o-mini-2024-07-18", "0.0003", 1702),
    "denied/hermes_system_prompt_denied.json": Told(
        "chat-messages", 2, "claude-opus-4-6", bound=True, time="2026-04-18T14:22",
        also=lambda steps: all("system_prompt" in _kinds(step) for step in steps),
    ),
    "denied/opencode_go_totals_denied.db": Told(
        "crush", 2, "claude-3.5-sonnet", bound=True,
        stated={"session": ("0.05", 0, 0), "request": ("0", 1200, 800)},
    ),
    "denied/qwen_dir": Told("qwen-code", 1, "qwen3-coder-plus", "0.0202", 20_043),
    "denied/sweagent_calls_usage_denied.jsonl": Told(
        "swe-agent-calls", 1, "gpt-3.5-turbo-0613", "0.0006", 410, time="2025-11-03T02:53"
    ),
}  # fmt: skip
NOT_READ = {
    "denied/33-bedrock-converse.jsonl", "denied/33c-bedrock-pair.json",
    "denied/39-claude-code-telemetry.jsonl", "denied/40-bedrock-invocation-log.jsonl",
    "denied/dsh_taken_for_pi.jsonl",
}  # fmt: skip
"""Kinds that are to come: each moves into `CASES` with its reader."""


@pytest.fixture
def cases(corpus: Path) -> Path:
    if not (corpus / "cases").is_dir():
        pytest.skip("no cases beside the corpus")
    return corpus / "cases"


def test_each_case_is_in_the_table(cases: Path) -> None:
    found = {f"{kind}/{one.name}" for kind in ("bills", "denied") for one in (cases / kind).iterdir()}
    assert found == CASES.keys() | NOT_READ


@pytest.mark.parametrize("name", CASES)
def test_a_case_says_what_stands_in_its_file(cases: Path, name: str) -> None:
    must, path = CASES[name], str(cases / name)
    replayed, told = ask(["replay", path, "--json", "--all"]), ask(["cost", path, "--json"])
    steps = [line for line in replayed if line["type"] == "step"]
    total = next(line for line in told if line["type"] == "cost")
    assert (replayed[0]["format"], len(steps), total["lower_bound"]) == (
        must.format,
        must.requests,
        must.bound,
    )
    assert sum(len(step["compactions"]) for step in steps) == must.compactions
    assert must.model is None or {step["model"] for step in steps} == {must.model}
    assert must.time is None or str(steps[0]["time"]).startswith(must.time)
    if must.cost is not None:
        assert f"{float(total['billed']['total']):.4f}" == must.cost
    if must.least is not None:
        assert f"{float(total['sent']['summaries']):.4f}" == must.least
    if must.sent is not None:
        assert (steps[-1]["window"]["used"], steps[-1]["window"]["used_method"]) == (must.sent, "reported")
    if must.billed is not None:
        names = ("input", "cached", "written", "written_1h", "output")
        assert tuple(total["billed_tokens"][name] for name in names) == must.billed
    stated = {scope: (str(one.usd), one.sent, one.output) for scope, one in said(told).items()}
    assert must.stated is None or stated == must.stated
    assert must.also(steps)
