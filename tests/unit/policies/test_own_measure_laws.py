"""Laws of the policies that decide by a measure of their own: what they keep, and what they say of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ctxctl.model.fitting import Candidate, Fit, Room
from ctxctl.plugins.amplifier.policy.context_simple import Amplifier
from ctxctl.plugins.amplifier.policy.contract import AmplifierContract
from ctxctl.plugins.amplifier.policy.messages import of_candidates, total
from ctxctl.plugins.sibyl.policy.packs import Sibyl
from tests.oracle.plain_policies import plain_fit
from tests.oracle.plain_units import units_of
from tests.unit.policies.fitting_help import candidate

Case = list[Candidate]
AMPLIFIERS: list[Any] = [
    Amplifier(), Amplifier(sticky=False), Amplifier(protected_tool_results=1, target=0.2),
    Amplifier(sticky=False, protected_tool_results=0, protected_recent=0.0), Amplifier(notice=False),
]  # fmt: skip
STEPWISE: list[Any] = [
    AmplifierContract(), AmplifierContract(literal=True), AmplifierContract(pairs=False), Sibyl(),
]  # fmt: skip
POLICIES: list[Any] = [*AMPLIFIERS, AmplifierContract(), AmplifierContract(literal=True), Sibyl()]
CAPS = st.integers(0, 3000)


@st.composite
def talks(draw: st.DrawFn, memories: bool = True) -> Case:
    """Windows with texts: a system prompt, then turns; results stand behind their calls, as APIs want it."""
    filler = "x" * 900
    made: Case = []

    def say(kind: str, role: str, **more: Any) -> None:
        text = f"{len(made)} " + filler[: draw(st.integers(0, 900))]
        one = candidate(f"m{len(made)}", len(text) // 4, kind, chars=len(text), read=lambda: text, **more)
        made.append(one._replace(role=role))

    if draw(st.booleans()):
        say("system_prompt", "system")
    for turn in range(draw(st.integers(0, 5))):
        say("user_message", "user", turn=turn)
        for n in range(draw(st.integers(0, 3))):
            name = f"c{turn}-{n}"
            say("tool_call", "assistant", pairs=(name,), turn=turn)
            say("tool_result", "tool", pairs=(name,), turn=turn)
        if draw(st.booleans()):
            say("assistant_message", "assistant", turn=turn)
        if memories and draw(st.booleans()):
            say("durable_memory", "tool", turn=turn)
    return made


def carried_out(window: Sequence[Candidate], fit: Fit) -> Case:
    gone = {drop.at for drop in fit.drops}
    swaps = {swap.at: swap.text for swap in fit.swaps}
    after = []
    for at, one in enumerate(window):
        if at in swaps:
            text = swaps[at]
            one = one._replace(chars=len(text), tokens=len(text) // 4, read=lambda text=text: text)
        if at not in gone:
            after.append(one)
    return after


@settings(max_examples=120)
@given(policy=st.sampled_from(POLICIES), window=talks(), cap=CAPS)
def test_the_same_again_and_each_candidate_named_once(policy: Any, window: Case, cap: int) -> None:
    fit = policy.fit(window, Room(cap), None)
    assert policy.fit(list(window), Room(cap), None) == fit
    named = [d.at for d in fit.drops] + [c.at for c in fit.cuts] + [s.at for s in fit.swaps]
    assert len(named) == len(set(named))
    assert len(carried_out(window, fit)) + len(fit.drops) == len(window)
    assert all(drop.reason for drop in fit.drops)


@settings(max_examples=120)
@given(policy=st.sampled_from(STEPWISE), window=talks(), cap=CAPS)
def test_one_window_is_decided_as_by_the_plain_definition(policy: Any, window: Case, cap: int) -> None:
    fit, plain = policy.fit(window, Room(cap), None), plain_fit(policy, window, Room(cap), None)
    assert fit._replace(state=fit.state or None) == plain._replace(state=plain.state or None)


@settings(max_examples=120)
@given(policy=st.sampled_from(POLICIES), window=talks(), cap=CAPS)
def test_pairs_stay_together_and_the_system_prompt_stays(policy: Any, window: Case, cap: int) -> None:
    gone = {d.at for d in policy.fit(window, Room(cap), None).drops}
    for unit in units_of(window):
        assert gone.isdisjoint(unit) or gone.issuperset(unit)
    assert all(window[at].kind != "system_prompt" for at in gone)


@settings(max_examples=120)
@given(policy=st.sampled_from(AMPLIFIERS), window=talks(), cap=CAPS)
def test_amplifier_is_never_over_its_budget_unless_it_says_so(policy: Any, window: Case, cap: int) -> None:
    fit = policy.fit(window, Room(cap), None)
    before, after = total(of_candidates(window, {})), fit.told["after_tokens"] if fit.told else None
    if fit.told is None:
        assert (fit.verdict, fit.drops, fit.swaps) == ("fits" if before <= cap else "still_over", (), ())
        assert before <= cap or not cap
    else:
        assert (fit.verdict == "still_over") == (after > cap)
        if policy.sticky:
            assert after <= fit.told["target_tokens"] or fit.told["strategy_level"] == 8


@settings(max_examples=120)
@given(policy=st.sampled_from(AMPLIFIERS), window=talks(memories=False), cap=CAPS)
def test_amplifier_keeps_the_words_of_a_person(policy: Any, window: Case, cap: int) -> None:
    fit = policy.fit(window, Room(cap), None)
    touched = {d.at for d in fit.drops} | {s.at for s in fit.swaps}
    asked = [at for at, c in enumerate(window) if c.kind == "user_message"]
    assert touched.isdisjoint(asked[-1:])
    if policy.sticky:
        assert touched.isdisjoint(asked[:1])
        results = [at for at, c in enumerate(window) if c.kind == "tool_result"]
        if policy.protected_tool_results:
            assert touched.isdisjoint(results[-policy.protected_tool_results :])


@settings(max_examples=80)
@given(
    policy=st.sampled_from([p for p in AMPLIFIERS if p.sticky]),
    window=talks(),
    cap=CAPS,
    part=st.floats(0, 1),
)
def test_what_amplifier_decided_stays(policy: Any, window: Case, cap: int, part: float) -> None:
    """As the history grows nothing comes back, while the whole of it would not fit."""
    early = window[: int(len(window) * part)]
    first = policy.fit(early, Room(cap), None)
    later = policy.fit(window, Room(cap), first.state)
    if later.told is not None or later.drops:
        gone = {early[d.at].name for d in first.drops}
        assert gone <= {window[d.at].name for d in later.drops}


@settings(max_examples=80)
@given(
    policy=st.sampled_from([AmplifierContract(), Sibyl()]), window=talks(), cap=CAPS, more=st.integers(0, 900)
)
def test_a_larger_limit_keeps_no_less(policy: Any, window: Case, cap: int, more: int) -> None:
    small = {d.at for d in policy.fit(window, Room(cap), None).drops}
    large = {d.at for d in policy.fit(window, Room(cap + more), None).drops}
    if large:
        assert len(large) <= len(small)


@settings(max_examples=80)
@given(policy=st.sampled_from([AmplifierContract(), Sibyl()]), window=talks(), cap=CAPS)
def test_what_it_gives_needs_nothing_more(policy: Any, window: Case, cap: int) -> None:
    fit = policy.fit(window, Room(cap), None)
    if fit.verdict == "fitted":
        assert policy.fit(carried_out(window, fit), Room(cap), None).verdict == "fits"
