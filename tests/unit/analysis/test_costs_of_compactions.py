"""What the request that wrote a summary cost: its bill where the log has it, else the least it can be."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from ctxctl.analysis.costs import Costs, step_costs
from ctxctl.analysis.request_cost import StepCost
from ctxctl.model.cost_sums import IN_NO_LOG
from ctxctl.session import Inspector
from ctxctl.tokens.catalogue.rates import RateBook
from tests.unit.importers.claude_code_help import line, said, text, user

Json = dict[str, Any]
OWN = {"mine": {"window": 300_000, "input_price": 10, "output_price": 50, "cache_read_price": 1}}
MILLION = Decimal(1_000_000)


def spent(path: Path) -> tuple[Costs, list[StepCost]]:
    with Inspector.open(path, calibration="none") as inspector:
        costs = Costs(RateBook(OWN))
        return costs, list(step_costs(inspector, costs))


def write(path: Path, lines: list[Json]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))
    return path


def claude(meta: Json) -> list[Json]:
    def asked(uuid: str, parent: str, message: str, tokens: int) -> Json:
        usage = {"input_tokens": tokens, "output_tokens": 10}
        made = said(uuid, parent, message, text("done"), usage=usage)
        return {**made, "message": {**made["message"], "model": "mine"}}

    return [
        user("u1", None, "go"),
        asked("a1", "u1", "m1", 100_000),
        line("system", "b1", None, subtype="compact_boundary", compactMetadata=meta),
        user("c1", "b1", "Summary of it", isCompactSummary=True),
        user("u2", "c1", "on"),
        asked("a2", "u2", "m2", 5_000),
    ]


def codex(*between: Json) -> list[Json]:
    def record(kind: str, **payload: Any) -> Json:
        return {"timestamp": "2026-07-01T10:00:00.000Z", "type": kind, "payload": payload}

    def message(role: str, said: str) -> Json:
        part = {"type": "input_text" if role == "user" else "output_text", "text": said}
        return {"type": "message", "role": role, "content": [part]}

    def bill(tokens: int, total: int) -> Json:
        last = {"input_tokens": tokens, "cached_input_tokens": 0, "output_tokens": 10}
        whole = {"input_tokens": total, "cached_input_tokens": 0, "output_tokens": 10}
        info = {"last_token_usage": last, "total_token_usage": whole}
        return record("event_msg", type="token_count", info=info)

    kept = [message("user", "go"), message("user", "Summary of it")]
    return [
        record("session_meta", id="s1", cli_version="0.147.0", model_provider="openai"),
        record("turn_context", model="mine"),
        record("response_item", **message("user", "go")),
        record("response_item", **message("assistant", "done")),
        bill(100_000, 100_000),
        *([bill(100_010, 200_010)] if between else []),
        record("compacted", message="Summary of it", replacement_history=kept),
        record("response_item", **message("user", "on")),
        record("response_item", **message("assistant", "done again")),
        bill(5_000, 205_010 if between else 105_000),
    ]


@pytest.mark.parametrize(
    ("lines", "read"),
    [
        (claude({"trigger": "auto", "preTokens": 101_000}), 101_000),
        (claude({"trigger": "manual"}), 100_000),
        (codex(), 100_000),
        (codex({"a bill": True}), None),
    ],
    ids=["by the client's count", "by the last bill", "codex", "codex with the bill"],
)
def test_a_summary_that_no_log_has_the_bill_of_makes_sums_lower_bounds(
    tmp_path: Path, lines: list[Json], read: int | None
) -> None:
    costs, steps = spent(write(tmp_path / "t.jsonl", lines))
    if read is None:
        assert not costs.at_least
        assert [step.sent_tokens.context for step in steps] == [100_000, 100_010, 5_000]
        return
    assert costs.not_priced == {IN_NO_LOG: 1}
    assert costs.at_least
    summary = next(c.tokens for c in steps[1].step.changes if c.kind == "thread_summary")
    least = (read + 50 * summary) / MILLION
    assert costs.sent.summaries == least
    assert costs.cost == (10 * 105_000 + 50 * 20) / MILLION + least


def test_a_summary_whose_request_has_a_file_of_its_own_is_in_the_sum_once(tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", claude({"trigger": "auto", "preTokens": 101_000}))
    usage = {"input_tokens": 101_000, "output_tokens": 10}
    answer = said("s1", "u9", "m9", text("Summary of it"), usage=usage)
    answer["message"]["model"] = "mine"
    own = [user("u9", None, "Sum it up."), answer]
    write(
        tmp_path / "t" / "subagents" / "agent-acompact-1.jsonl", [{**one, "isSidechain": True} for one in own]
    )
    costs, _ = spent(path)
    assert not costs.at_least
    assert costs.cost == (10 * 206_000 + 50 * 30) / MILLION


@pytest.mark.parametrize(
    "used",
    [
        {"input": 1000, "cachedInput": 200, "output": 40},
        {
            "inputTokens": 1000,
            "cacheReadTokens": 200,
            "cacheWriteTokens": 0,
            "outputTokens": 40,
            "model": "mine",
        },
        {},
    ],
)
def test_a_summary_whose_bill_stands_with_its_compaction_is_priced(tmp_path: Path, used: Json) -> None:
    def event(kind: str, number: int, **data: Any) -> Json:
        return {"type": kind, "data": data, "id": f"e{number}", "timestamp": "2026-07-03T08:36:00.000Z"}

    def asked(number: int) -> list[Json]:
        return [
            event("user.message", number, content="go"),
            event("assistant.turn_start", number + 1, turnId=str(number)),
            event("assistant.usage", number + 2, model="mine", inputTokens=3000, outputTokens=10),
            event("assistant.message", number + 3, messageId=f"m{number}", content="done", model="mine"),
        ]

    lines = [
        event("session.start", 0, sessionId="s", copilotVersion="1.0.102", selectedModel="mine"),
        *asked(10),
        event("session.compaction_start", 20),
        event("session.compaction_complete", 21, success=True, summaryContent="S", compactionTokensUsed=used),
        *asked(30),
    ]
    costs, _ = spent(write(tmp_path / "events.jsonl", lines))
    assert costs.at_least is (not used)
    assert not used or costs.sent.summaries == (10 * 800 + 200 + 50 * 40) / MILLION
