"""Rules that speak of sizes mean what was sent, and of limits the one in force, with its source."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.oracle.build import lines
from tests.unit.engine.billed_help import catalogue, expecting, three_steps
from tests.unit.lint.lint_help import PROSE, Made, found


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path / "made.jsonl")


def budgeted(made: Made, bills: list[int | None], limit: int = 1000) -> Path:
    """One item all along, under a limit; each step with its bill."""
    made.turn(1).item("only", PROSE)
    for turn, bill in enumerate(bills, 1):
        made.turn(turn).event(
            "context.budget.applied", budget_id=f"b{turn}", target="model", max_tokens=limit,
            created_at="2026-05-04T08:00:00Z",
        ).sent(["only"])  # fmt: skip
        if bill is not None:
            made.billed(bill)
    return made.save()


def test_a_bill_over_its_cap_is_found_once_with_its_steps(made: Made) -> None:
    path = budgeted(made, [990, 1000, 1001, 1040, 700, 1100])
    (finding,) = found(path, "CTX030").findings
    assert finding.message == "sent 1,001 billed, and 1,000 fit"
    assert (finding.count, finding.tokens) == (3, 1 + 40 + 100)
    assert (finding.place.turn, finding.place.step) == (3, 1)
    assert not found(path, "CTX030", values={"CTX030": {"tokens": 101}}).findings


def test_it_is_on_by_default(made: Made) -> None:
    assert "CTX030" in {finding.code for finding in found(budgeted(made, [1500])).findings}


@pytest.mark.parametrize(
    ("limit", "steps", "tokens"), [(118, 0, 0), (114, 1, 1), (112, 1, 3), (111, 2, 4 + 1)]
)  # fmt: skip
def test_what_is_only_expected_counts_beyond_its_error(
    limit: int, steps: int, tokens: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """115 were billed; after that 119 are expected, within 7 (`billed_help.Steady`)."""
    expecting(monkeypatch)
    limited(monkeypatch, limit)
    path = tmp_path / "t.jsonl"
    path.write_bytes(lines(three_steps()))
    findings = found(path, "CTX030").findings
    assert [(f.count, f.tokens, f.message) for f in findings] == (
        [(steps, tokens, f"sent 115 billed, and {limit} (supposed) fit")] if steps else []
    )


def test_where_the_budget_had_cut_it_is_another_rules(made: Made) -> None:
    made.turn(1).item("only", PROSE).item("other", PROSE[:100]).event(
        "context.budget.applied", budget_id="b", target="model", max_tokens=1000,
        created_at="2026-05-04T08:00:00Z",
        truncation_records=[{"item_ref": "other", "action": "dropped", "reason": "budget_limit"}],
    ).sent(["only"]).billed(1200)  # fmt: skip
    (finding,) = found(made.save(), "CTX016", "CTX030").findings
    assert finding.code == "CTX016"
    assert finding.message == "still over budget after it was cut: 1,200 billed, and 1,000 fit"


def limited(patch: pytest.MonkeyPatch, window: int) -> None:
    """Suppose a window for all steps."""
    from msgspec.structs import replace

    from ctxctl.engine.replay.rules import ReplayRules
    from ctxctl.model.whatif import Limits
    from ctxctl.session import Inspector

    rules = Inspector.rules

    def supposed(self: Inspector, *, skipped: bool = False) -> ReplayRules:
        return replace(rules(self, skipped=skipped), limits=Limits(window))

    patch.setattr(Inspector, "rules", supposed)


def test_a_share_of_stale_copies_is_of_what_was_sent(made: Made) -> None:
    """Most of what is recorded is stale, and a twentieth of what was billed."""
    made.turn(1).item("note", PROSE).event(
        "context.injection.applied", injection_id="i1", target="model",
        injection_point="user_message_appendix", created_at="2026-05-04T08:00:00Z",
    )  # fmt: skip
    made.turn(2).item("note", "another text", how="updated").event(
        "context.injection.applied", injection_id="i2", target="model",
        injection_point="user_message_appendix", created_at="2026-05-04T08:00:00Z",
    )  # fmt: skip
    plain = made.save()
    values = {"CTX004": {"tokens": 100}}
    (finding,) = found(plain, "CTX004", values=values).findings
    assert "that are recorded are older copies of items that were updated" in finding.message
    (finding,) = found(made.billed(4000).save(), "CTX004", values=values).findings
    assert "tokens of 4,000 billed are older copies" in finding.message
    assert not found(made.billed(40_000).save(), "CTX004", values={"CTX004": {"tokens": 100}}).findings


def test_a_large_item_is_held_against_the_table(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    made.turn(1).item("log", PROSE * 4, title="the log").sent(["log"]).billed(5000)
    path = made.save()
    values = {"CTX009": {"tokens": 1000}}
    assert not found(path, "CTX009", values=values).findings
    catalogue(monkeypatch, 8000)
    (finding,) = found(path, "CTX009", values=values).findings
    assert finding.message.startswith("the log takes ")
    assert finding.message.endswith("% of the 8,000 (from the model table) that the prompt may hold")


def test_of_a_request_that_is_hardly_recorded_only_a_fall_to_less_than_half_is_an_unrecorded_cut(
    made: Made,
) -> None:
    made.turn(1).item("only", "a few words").sent(["only"]).billed(60_000)
    made.turn(2).sent(["only"]).billed(31_000)
    made.turn(3).sent(["only"]).billed(15_000)
    findings = found(made.save(), "CTX027").findings
    assert [finding.tokens for finding in findings] == [16_000]
    assert "a compaction that was not read; look at lines" in findings[0].message
