"""What-ifs: the arithmetic of limits, what a supposition may name, and both replays side by side."""

from __future__ import annotations

from typing import Any

import pytest

from ctxctl.analysis.whatif import FieldError, WhatIfs
from ctxctl.model.results import Step
from ctxctl.model.whatif import Limits, Pair, Supposition, Totals, parse_tokens
from ctxctl.session import Inspector
from tests.unit.engine.billed_help import catalogue
from tests.unit.engine.making import Json, add, assembly, event, inject, inspect, steps, usage

WORDS = "one two three four five six seven eight nine ten"
"""Ten tokens in o200k_base and in cl100k_base."""
ODD = "Kaffeemaschinenreinigungsanleitung"
"""Another number of tokens in each encoding."""


def budget(turn: str, **fields: Any) -> Json:
    return event("budget.applied", {"budget_id": f"b-{turn}", "budget_profile": "p", **fields}, turn=turn)


def session(billed: int | None = None, **limits: Any) -> list[Json]:
    """Three turns whose windows hold 10, 20 and 30 tokens; what is billed for each, if it is."""
    events = []
    names: list[str] = []
    for n in (1, 2, 3):
        turn = str(n)
        names.append(f"note-{n}")
        events.append(add(names[-1], f"{WORDS}", turn=turn, step=f"s{n}"))
        if limits:
            events.append(budget(turn, **limits))
        events += [assembly(f"a{n}", *names, turn=turn), inject(f"a{n}", turn=turn)]
        if billed is not None:
            events.append(usage(billed, turn=turn))
    return events


def compared(inspector: Inspector, **given: Any) -> tuple[list[Pair], Totals, Totals, tuple[str, ...]]:
    whatifs = WhatIfs(inspector)
    supposed = whatifs.resolve(Supposition(**given))
    comparison = whatifs.compare(supposed)
    pairs = list(comparison.pairs())
    whatifs.close()
    return pairs, comparison.recorded, comparison.simulated, supposed.notes


# Limits -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "cap"),
    [
        (Limits(), None),
        (Limits(reserve=10), None),
        (Limits(window=100), 100),
        (Limits(window=100, reserve=30), 70),
        (Limits(window=100, reserve=30, max_input=80), 70),
        (Limits(window=100, reserve=30, max_input=60), 60),
        (Limits(max_input=60), 60),
        (Limits(max_input=60, reserve=30), 60),
        (Limits(window=100, reserve=100), 0),
        (Limits(window=100, reserve=300), 0),
    ],
)
def test_the_prompt_cap(limits: Limits, cap: int | None) -> None:
    assert limits.cap == cap


def test_what_is_not_supposed_is_as_recorded() -> None:
    recorded = Limits(100, 10, 80)
    assert Limits().over(recorded) == recorded
    assert Limits(window=50).over(recorded) == Limits(50, 10, 80)
    assert Limits(reserve=0).over(recorded) == Limits(100, 0, 80)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("128000", 128_000),
        (" 128,000 ", 128_000),
        ("128_000", 128_000),
        ("128k", 128_000),
        ("128 K", 128_000),
        ("1m", 1_000_000),
        ("1.5m", 1_500_000),
        ("0.001k", 1),
        ("1.50k", 1_500),
        ("1000000m", 10**12),
    ],
)
def test_numbers_of_tokens(text: str, tokens: int) -> None:
    assert parse_tokens(text) == tokens


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        "-1",
        "k",
        "1g",
        "1.5",
        "1.0005k",
        "12,34",
        "1e5",
        "٣",
        "1\x1b[2J",
        "9" * 400,
        "1000001m",
        "0x10",
        "½",
    ],
)
def test_what_is_no_number_of_tokens(text: str) -> None:
    with pytest.raises(ValueError, match="a number of tokens from 1 up"):
        parse_tokens(text)


def test_only_a_reserve_may_be_nothing() -> None:
    assert parse_tokens("0", least=0) == 0


# One replay under supposed limits ---------------------------------------------------------------------------


def under(events: list[Json], limits: Limits) -> list[Step]:
    inspector = inspect(events)
    inspector.params = _with(inspector, limits)
    return [result for result in inspector.replay() if isinstance(result, Step)]


def _with(inspector: Inspector, limits: Limits) -> Any:
    import msgspec

    return msgspec.structs.replace(inspector.params, limits=limits)


def test_a_limit_changes_the_verdict_and_not_the_frame() -> None:
    events = session(max_tokens=100, reserved_tokens=10)
    plain, supposed = steps(events), under(events, Limits(window=25, reserve=0))
    assert [step.window.over for step in plain] == [0, 0, 0]
    assert [(s.window.cap, s.window.free, s.window.over) for s in supposed] == [
        (25, 15, 0),
        (25, 5, 0),
        (25, 0, 5),
    ]
    for a, b in zip(plain, supposed, strict=True):
        assert (a.changes, a.ledger, a.counts, a.cache, a.segments) == (
            b.changes, b.ledger, b.counts, b.cache, b.segments,
        )  # fmt: skip
        assert "simulated" not in a.flags
        assert "simulated" in b.flags
    assert ["over_budget" in step.flags for step in supposed] == [False, False, True]


def test_the_stage_keeps_what_was_recorded() -> None:
    (*_, last) = under(session(max_tokens=100, reserved_tokens=10), Limits(window=25))
    facts = last.stages["budget"].facts
    assert (facts["max_tokens"], facts["reserved_tokens"], facts["headroom"]) == (100, 10, 60)
    assert facts["supposed"] == {
        "max_tokens": 25,
        "reserved_tokens": 10,
        "headroom": 0,
        "over": 15,
        "provenance": "simulated",
    }


def test_a_limit_where_none_is_recorded() -> None:
    (*_, last) = under(session(), Limits(max_input=12))
    assert (last.window.limit, last.window.cap, last.window.over) == (None, 12, 18)
    assert last.stages["budget"].verdict == "not_recorded"
    assert last.stages["budget"].facts["supposed"]["over"] == 18


def test_nobody_is_still_over_a_supposed_budget() -> None:
    cut = [{"item_ref": "note-1", "final_token_estimate": 0, "strategy": "drop"}]
    events = session(max_tokens=5, truncation_records=cut, actual_tokens=30)
    assert any("still_over_budget" in step.flags for step in steps(events))
    assert not any("still_over_budget" in step.flags for step in under(events, Limits(window=5)))


# Side by side -----------------------------------------------------------------------------------------------


def test_both_sides_of_another_window() -> None:
    pairs, recorded, simulated, notes = compared(
        inspect(session(max_tokens=100, reserved_tokens=10)), window=25
    )
    assert [(p.recorded.used, p.recorded.cap, p.recorded.over) for p in pairs] == [
        (10, 90, 0), (20, 90, 0), (30, 90, 0),
    ]  # fmt: skip
    assert [(p.simulated.used, p.simulated.cap, p.simulated.free, p.simulated.over) for p in pairs] == [
        (10, 15, 5, 0), (20, 15, 0, 5), (30, 15, 0, 15),
    ]  # fmt: skip
    assert [p.recorded.prefix for p in pairs] == [None, 10, 20]
    assert (recorded.over, recorded.first_over) == (0, None)
    assert (simulated.steps, simulated.over) == (3, 2)
    assert simulated.first_over is pairs[1]
    assert simulated.worst is pairs[2]
    assert simulated.peak is pairs[2]
    assert notes[0].startswith("Frames as recorded, only the limits differ")


def test_a_recorded_limit_on_input_still_holds_and_is_told() -> None:
    inspector = inspect(session(max_tokens=100, metadata={"ctxctl": {"max_input": 18}}))
    whatifs = WhatIfs(inspector)
    comparison = whatifs.compare(whatifs.resolve(Supposition(window=1000)))
    assert {pair.simulated.cap for pair in comparison.pairs()} == {18}
    assert comparison.held == 3
    comparison = whatifs.compare(whatifs.resolve(Supposition(window=1000, max_input=500)))
    assert {pair.simulated.cap for pair in comparison.pairs()} == {500}
    assert comparison.held == 0


def test_what_was_billed_is_held_against_the_cap() -> None:
    """Forty tokens were billed for each request, though ten to thirty are recorded."""
    for window, over in ((39, 3), (40, 0)):
        pairs, recorded, simulated, _ = compared(inspect(session(40, max_tokens=100)), window=window)
        assert (recorded.over, simulated.over) == (0, over)
        assert [(pair.simulated.used, pair.simulated.recorded) for pair in pairs] == [
            (40, 10), (40, 20), (40, 30),
        ]  # fmt: skip
        assert simulated.known_by == recorded.known_by == {"reported": 3}


def test_of_another_frame_as_much_is_sent_beside_its_content() -> None:
    """What the policy leaves out is not sent; what nobody recorded is."""
    pairs, recorded, simulated, _ = compared(inspect(session(40, max_tokens=100)), window=35, policy="fifo")
    for pair in pairs[1:]:
        assert pair.simulated.used - pair.simulated.recorded == pair.recorded.used - pair.recorded.recorded
    assert simulated.known_by["expected"] == sum(
        pair.simulated.recorded != pair.recorded.recorded for pair in pairs
    )
    assert recorded.known_by == {"reported": 3}


def test_limits_of_the_model_table_are_those_of_the_recorded_side(monkeypatch: pytest.MonkeyPatch) -> None:
    catalogue(monkeypatch, 60)
    pairs, *_ = compared(inspect(session(40)), reserve=25)
    assert [(p.recorded.cap, p.recorded.over, p.simulated.cap, p.simulated.over) for p in pairs] == [
        (60, 0, 35, 5)
    ] * 3


def test_under_another_model_what_is_not_recorded_is_scaled_as_the_record_is() -> None:
    """Bills are in the tokens of the model that was asked."""
    events = [add("a", ODD, turn="1"), assembly("x", "a", turn="1"), inject("x", turn="1")]
    (pair,), *_ = compared(inspect([*events, usage(109, turn="1")]), model="gpt-4-turbo")
    ours, theirs = pair.recorded, pair.simulated
    assert (ours.used, ours.recorded, ours.method) == (109, 10, "reported")
    assert theirs.recorded != ours.recorded
    assert theirs.used == theirs.recorded + round(99 * theirs.recorded / ours.recorded)
    assert theirs.method == "expected"


def test_no_limit_known_is_not_a_fit() -> None:
    pairs, _, simulated, notes = compared(inspect(session()), reserve=5)
    assert {pair.simulated.cap for pair in pairs} == {None}
    assert (simulated.unknown, simulated.over) == (3, 0)
    assert any("reserve counts only where" in note for note in notes)


def test_another_encoding_counts_anew_and_says_how(monkeypatch: pytest.MonkeyPatch) -> None:
    events = [
        add("a", ODD, turn="1"),
        assembly("x", "a", turn="1"),
        inject("x", turn="1"),
        usage(9, turn="1"),
    ]
    inspector = inspect(events)
    whatifs = WhatIfs(inspector)
    counted: list[str] = []
    plain = type(whatifs.inspector.trace.contents).text

    def text(store: Any, content: Any) -> str:
        counted.append(content.digest)
        return plain(store, content)

    list(inspector.replay())
    monkeypatch.setattr(type(inspector.trace.contents), "text", text)
    for _ in range(2):
        comparison = whatifs.compare(whatifs.resolve(Supposition(encoding="cl100k_base")))
        (pair,) = comparison.pairs()
    assert pair.recorded.recorded != pair.simulated.recorded
    assert comparison.recorded.by_method == {"exact:o200k_base": pair.recorded.recorded}
    # gpt-4o is known to use another encoding: what this one counts is an estimate.
    assert comparison.simulated.by_method == {"estimate:cl100k_base": pair.simulated.recorded}
    assert len(counted) == 1, "a content is counted once for an encoding"
    whatifs.close()


def test_an_encoding_of_the_same_ranks_is_not_counted_anew() -> None:
    whatifs = WhatIfs(inspect(session()))
    assert whatifs.resolve(Supposition(encoding="o200k_harmony")).only_limits


def test_another_model_is_counted_with_its_encoding() -> None:
    pairs, _, simulated, notes = compared(inspect(session()), model="gpt-4-turbo")
    assert simulated.by_method == {"exact:cl100k_base": sum(pair.simulated.recorded for pair in pairs)}
    assert any(note.startswith("'gpt-4-turbo': window 128,000. ") for note in notes)
    assert all(pair.simulated.cap == 128_000 for pair in pairs)
    assert "Counted with cl100k_base; the recorded side with o200k_base." in notes


def test_a_model_without_a_public_tokenizer_is_an_estimate() -> None:
    _, _, simulated, notes = compared(inspect(session()), model="claude-sonnet-4-5")
    assert list(simulated.by_method) == ["estimate:o200k_base"]
    assert any("no tokenizer" in note for note in notes)


def test_another_policy_sends_something_else() -> None:
    editor = {"source_refs": [{"source_id": "app:editor"}], "kind": "external_resource"}
    surface = event("surface.created", {"surface_id": "s", "available_source_refs": ["app:editor"]}, turn="1")
    events = [surface, add("app:editor", WORDS, turn="1", title="Editor", **editor)]
    pairs, _, _, notes = compared(inspect(events), policy="sanqian", window=1000)
    assert pairs[0].simulated.used > pairs[0].recorded.used == 10
    assert any("policy sanqian" in note for note in notes)
    assert any("looks at no limit" in note for note in notes)


def test_the_recorded_side_is_without_the_limits_of_the_inspector() -> None:
    inspector = inspect(session(max_tokens=100))
    inspector.params = _with(inspector, Limits(window=5))
    pairs, *_ = compared(inspector, window=25)
    assert [pair.recorded.over for pair in pairs] == [0, 0, 0]
    assert [pair.simulated.over for pair in pairs] == [0, 0, 5]


# What cannot be supposed ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "field", "slug"),
    [
        ({"model": "gpt-40"}, "model", "unknown-model"),
        ({"model": "no such thing \x1b[31m"}, "model", "unknown-model"),
        ({"model": "x" * 100_000}, "model", "unknown-model"),
        ({"policy": "nope"}, "policy", "unknown-policy"),
        ({"encoding": "p50k_base"}, "encoding", "unknown-encoding"),
    ],
)
def test_a_wrong_name_is_said_beside_its_field(given: dict[str, Any], field: str, slug: str) -> None:
    with pytest.raises(FieldError) as caught:
        WhatIfs(inspect(session())).resolve(Supposition(**given))
    assert (caught.value.field, caught.value.slug) == (field, slug)
    assert len(caught.value.message) < 200


def test_near_models_are_named() -> None:
    with pytest.raises(FieldError) as caught:
        WhatIfs(inspect(session())).resolve(Supposition(model="gpt-40"))
    assert caught.value.hint is not None
    assert "gpt-4o" in caught.value.hint


def test_a_model_that_the_trace_names_can_be_supposed() -> None:
    events = [add("a", WORDS, turn="1"), usage(9, turn="1")]
    events[1]["data"]["model"] = "house-model-7"
    inspector = inspect(events)
    inspector.outline()
    assert WhatIfs(inspector).resolve(Supposition(model="house-model-7")).params.model == "house-model-7"


def test_it_can_be_stopped() -> None:
    class StopError(Exception):
        pass

    def check() -> None:
        raise StopError

    whatifs = WhatIfs(inspect(session()))
    with pytest.raises(StopError):
        list(whatifs.compare(whatifs.resolve(Supposition(window=9))).pairs(check))


def test_it_says_how_far_it_is() -> None:
    parts: list[float] = []
    whatifs = WhatIfs(inspect(session()))
    list(whatifs.compare(whatifs.resolve(Supposition(window=9))).pairs(progress=parts.append))
    assert parts == [0.0]
