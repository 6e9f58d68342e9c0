"""Every rule has a fixture that it fires on, alone, and one on which no rule fires."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from lint_help import FIXTURES, PROSE, TIME, Made, found

from ctxctl.lint.registry import rules
from ctxctl.lint.rule import Rule
from ctxctl.model.findings import SEVERITIES, findings_order
from ctxctl.trace.validate import validate_event

CODES = [rule.code for rule in rules()]


def test_every_rule_has_a_fixture_on_both_sides_and_every_fixture_a_rule() -> None:
    there = sorted(path.name for path in FIXTURES.iterdir())
    assert there == sorted(f"{code}-{side}.jsonl" for code in CODES for side in ("negative", "positive"))


@pytest.mark.parametrize("code", CODES)
def test_it_fires_where_it_should_and_nothing_else_does(code: str) -> None:
    assert [f.code for f in found(FIXTURES / f"{code}-positive.jsonl", "all").findings] == [code]


@pytest.mark.parametrize("code", CODES)
def test_it_is_silent_where_nothing_is_wrong(code: str) -> None:
    assert found(FIXTURES / f"{code}-negative.jsonl", "all").findings == []


@pytest.mark.parametrize("path", sorted(FIXTURES.iterdir()), ids=lambda path: path.stem)
def test_the_fixture_is_a_valid_trace(path: Path) -> None:
    from ctxctl.session import Inspector

    for line in path.read_bytes().splitlines():
        assert validate_event(json.loads(line)) == []
    with Inspector.open(path) as inspector:
        for _ in inspector.replay():
            pass
        assert inspector.problems == []


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.code)
def test_a_rule_says_what_it_is(rule: type[Rule]) -> None:
    assert rule.severity in SEVERITIES
    assert rule.__doc__
    assert not rule.fix.startswith("TODO")
    assert rule.fix.endswith(".")
    assert rule.needs
    assert set(rule.parameters) <= {name for name in vars(rule) if not name.startswith("_")}
    assert rule.sees_records() or rule.sees_steps()


def test_codes_and_names_are_each_used_once() -> None:
    assert len(set(CODES)) == len(CODES)
    assert len({rule.name for rule in rules()}) == len(CODES)


def test_findings_of_one_subject_are_one_with_its_places_and_costs_summed(tmp_path: Path) -> None:
    made = Made(tmp_path / "t.jsonl").turn(1).item("editor", PROSE)
    for turn in range(1, 9):
        made.turn(turn).item(f"q{turn}", f"Question {turn}?", "user_message")
        if turn > 1:
            made.item("editor", PROSE, how="updated")
        made.sent([f"q{turn}", "editor"], ctxctl={"mode": "append"}).billed(1000 * turn)
    made.save()
    (finding,) = found(made.path, "CTX001").findings
    assert finding.count == 7
    assert len(finding.more) == 4
    assert [place.turn for place in (finding.place, *finding.more)] == [2, 3, 4, 5, 6]
    one = finding.tokens // 7 if finding.tokens else 0
    assert one > 300
    assert finding.tokens == 7 * one
    assert finding.money is not None
    assert finding.money > 0


def test_money_is_unknown_where_one_step_has_no_price(tmp_path: Path) -> None:
    made = Made(tmp_path / "t.jsonl").turn(1).item("a", PROSE).item("b", PROSE).sent(["a", "b"]).billed(900)
    made.turn(2).sent(["a", "b"]).billed(900, model="nobody-knows-this-one")
    (finding,) = found(made.save(), "CTX010").findings
    assert finding.count == 2
    assert finding.tokens
    assert finding.money is None


def test_what_stays_in_the_window_is_counted_until_it_leaves(tmp_path: Path) -> None:
    made = Made(tmp_path / "t.jsonl").turn(1).item("a", PROSE).item("b", PROSE)
    for turn in range(1, 5):
        made.turn(turn).sent(["a", "b"])
    for turn in range(5, 9):
        made.turn(turn).sent(["a"])
    (finding,) = found(made.save(), "CTX010").findings
    assert finding.count == 4


def test_a_rule_that_fires_on_everything_is_bounded(tmp_path: Path) -> None:
    from ctxctl.lint.run import MOST_FINDINGS

    made = Made(tmp_path / "t.jsonl").turn(1)
    for number in range(MOST_FINDINGS + 50):
        made.item(f"i{number}", f"Text {number}", metadata={"tool_status": "succeeded", "n": number})
    made.sent(["i0"])
    linted = found(made.save(), "CTX022")
    # Each says the same of an item: one finding.
    assert [f.count for f in linted.findings] == [MOST_FINDINGS + 50]
    made = Made(tmp_path / "u.jsonl").turn(1)
    for number in range(MOST_FINDINGS + 50):
        made.item(f"i{number}", f"{PROSE} {number}", metadata={"version": "1"})
        made.item(f"i{number}", f"{PROSE} {number} changed", how="updated", metadata={"version": "1"})
    made.sent(["i0"])
    linted = found(made.save(), "CTX003")
    assert len(linted.findings) == MOST_FINDINGS
    assert linted.tally.more == {"CTX003": 50}


def test_findings_come_in_one_order(tmp_path: Path) -> None:
    made = Made(tmp_path / "t.jsonl").turn(1).item("a", PROSE).item("b", PROSE)
    made.item("c", "x", metadata={"approved": True}).sent(["a", "b", "c"])
    linted = found(made.save(), "all")
    assert [f.code for f in linted.findings] == ["CTX022", "CTX010"]
    assert linted.findings == sorted(linted.findings, key=findings_order)


@pytest.mark.parametrize("where", ["item", "assembly"])
def test_a_trace_can_ask_for_silence(tmp_path: Path, where: str) -> None:
    asks = {"ctxctl": {"lint": {"ignore": ["CTX010"]}}}
    made = Made(tmp_path / "t.jsonl").turn(1).item("a", PROSE)
    made.item("b", PROSE, **({"metadata": asks} if where == "item" else {}))
    if where == "item":
        made.sent(["a", "b"])
    else:
        # What a selection's, budget's or assembly's record asks is asked for its step.
        made.item("c", "x", metadata={"version": "1"}).item(
            "c", "y", how="updated", metadata={"version": "1"}
        )
        made.sent(["a", "b", "c"], ctxctl={"lint": {"ignore": "CTX003"}})
    linted = found(made.save(), "CTX003", "CTX010")
    assert linted.tally.ignored == {"CTX010" if where == "item" else "CTX003": 1}
    assert [f.code for f in linted.findings] == ([] if where == "item" else ["CTX010"])


def test_what_a_splice_puts_back_neither_came_nor_left(tmp_path: Path) -> None:
    made = Made(tmp_path / "t.jsonl").turn(1).item("q", "Look again and again.", "user_message").sent(["q"])
    for turn in range(2, 9):
        made.turn(turn).item(f"c{turn}", 'look {"at": "pier"}', "tool_call").item(
            f"r{turn}", f"It is {turn}.", "tool_result"
        )
        made.event(
            "context.assembly.created", assembly_id=f"a{turn}", target="model", created_at=TIME,
            ordered_blocks=[{"block_id": n, "item_refs": [n]} for n in ("q", f"c{turn}", f"r{turn}")],
            metadata={"ctxctl": {"base": f"a{turn - 1}", "splices": [[0, 1, 1], [2 * turn - 3, 0, 2]]}},
        )  # fmt: skip
    # The question was asked once, whatever the assemblies write again.
    assert found(made.save(), "CTX005").findings == []


def captures() -> list[Path]:
    """The smallest two fixtures of each format."""
    folders = sorted(path for path in FIXTURES.parent.iterdir() if path.is_dir() and path != FIXTURES)
    files = [
        sorted((p for p in one.rglob("*") if p.is_file()), key=lambda p: p.stat().st_size) for one in folders
    ]
    return [path for mine in files for path in mine[:2]]


@pytest.mark.parametrize("path", captures(), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_no_rule_falls_over_a_capture_of_any_format(path: Path) -> None:
    from ctxctl.errors import CtxctlError

    try:
        linted = found(path, "all")
    except CtxctlError:
        return  # no capture by itself, or a damaged one
    assert linted.tally.rules == tuple(CODES)


def test_a_rule_of_a_plug_in_is_one_of_the_rules(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import sys
    from collections.abc import Iterable
    from types import ModuleType, SimpleNamespace
    from typing import cast

    from ctxctl.lint import registry
    from ctxctl.lint.context import StepContext
    from ctxctl.lint.rule import Hit

    class Shouting(Rule):
        """Somebody shouts."""

        code = "ACME001"
        name = "shouting"
        fix = "Speak softly."

        def step(self, look: StepContext) -> Iterable[Hit]:
            return [
                Hit(p.item, f"{p.item} shouts", look.place(p.line), p.item)
                for p in look.came
                if p.title == "LOUD"
            ]

    monkeypatch.setitem(sys.modules, "acme_rules", cast("ModuleType", SimpleNamespace(Shouting=Shouting)))
    about = tmp_path / "acme-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1\n")
    points = "[ctxctl.rules]\nbroken = acme_gone:Rule\nshouting = acme_rules:Shouting\n"
    (about / "entry_points.txt").write_text(points)
    monkeypatch.syspath_prepend(str(tmp_path))
    registry.rules.cache_clear()
    try:
        made = Made(tmp_path / "t.jsonl").turn(1).item("a", PROSE, title="LOUD").sent(["a"])
        assert [f.message for f in found(made.save()).findings] == ["a shouts"]
        assert found(made.path, "CTX").findings == []
    finally:
        registry.rules.cache_clear()
