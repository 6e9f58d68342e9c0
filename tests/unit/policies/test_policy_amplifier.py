"""context-simple's rules worked by hand: budget, trigger, levels, texts, memory, notice."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxctl.model.fitting import Candidate, Drop, Fit, Room
from ctxctl.plugins.amplifier.policy.context_simple import Amplifier, Memory
from ctxctl.plugins.amplifier.policy.contract import AmplifierContract
from ctxctl.plugins.amplifier.policy.ladder import Rules, climb
from ctxctl.plugins.amplifier.policy.messages import (
    Message,
    of_candidates,
    of_rows,
    stubbed,
    total,
    truncated,
)
from tests.unit.policies.fitting_help import candidate


def message(role: str, tokens: int, text: str | None = None, **more: Any) -> Message:
    return Message(role, 4 * tokens, lambda: text, human=role == "user", **more)


def said(name: str, kind: str, text: str, **more: Any) -> Candidate:
    role = {"user_message": "user", "tool_result": "tool", "system_prompt": "system"}.get(kind, "assistant")
    made = candidate(name, len(text) // 4, kind, chars=len(text), read=lambda: text, **more)
    return made._replace(role=role)


def call(name: str, argument: str = "x") -> Candidate:
    return said(name, "tool_call", f'read {{"path":"{argument}"}}', pairs=(name,))


def result(of: str, text: str) -> Candidate:
    return said(f"{of}/result", "tool_result", text, pairs=(of,), title="read: x")


def session(turns: int, size: int = 2000) -> list[Candidate]:
    """A system prompt, then turns of a prompt, a call, its result and an answer."""
    made = [said("system", "system_prompt", "You help.")]
    for n in range(turns):
        made += [
            said(f"ask{n}", "user_message", f"question {n} " + "q" * 100),
            call(f"c{n}")._replace(turn=n),
            result(f"c{n}", f"result {n} " + "r" * size)._replace(turn=n),
            said(f"answer{n}", "assistant_message", f"answer {n}")._replace(turn=n),
        ]
    return made


# -- budget and trigger ------------------------------------------------------------------------------------


def test_the_budget_of_the_published_sessions() -> None:
    # 200,000 - int(128,000 x 0.5) - 4,096 - 800, and half of it.
    assert Amplifier().budget(Room(200_000, window=200_000, max_output=128_000)) == 131_104
    assert int(131_104 * Amplifier().target) == 65_552


def test_the_reserve_stands_for_an_unknown_output() -> None:
    assert Amplifier().budget(Room(90_000, window=100_000, reserve=10_000)) == 85_104
    assert Amplifier(notice=False).budget(Room(90_000, window=100_000, reserve=10_000)) == 85_904
    assert Amplifier(max_output=40_000).budget(Room(100_000, window=100_000)) == 75_104


def test_a_recorded_budget_is_the_budget_and_nothing_exceeds_the_cap() -> None:
    assert Amplifier().budget(Room(3804, max_input=3804)) == 3804
    assert Amplifier().budget(Room(50_000, window=200_000, max_input=50_000)) == 50_000
    assert Amplifier().budget(Room(3000, window=3000)) == 3000  # less than the margin: no budget to derive


def test_it_acts_from_the_threshold_on() -> None:
    window = session(2)
    size = total(of_candidates(window, {}))
    assert Amplifier().fit(window, Room(int(size / 0.92) + 2), None).verdict == "fits"
    assert Amplifier().fit(window, Room(int(size / 0.92) - 2), None).verdict == "fitted"


# -- sizes -------------------------------------------------------------------------------------------------


def test_a_message_is_measured_as_it_would_be_printed() -> None:
    time = {"timestamp": "2026-11-20T18:36:37.196+00:00"}
    rows = [
        {"role": "system", "content": "You help.", "metadata": time},
        {"role": "user", "content": "it's\nhere", "metadata": time},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Let me look.", "visibility": None},
                {"type": "tool_call", "id": "c1", "name": "read", "input": {"path": "a"}, "visibility": None},
            ],
            "tool_calls": [{"id": "c1", "tool": "read", "arguments": {"path": "a"}}],
            "metadata": time,
        },
        {"role": "tool", "name": "read", "tool_call_id": "c1", "content": "text", "metadata": time},
    ]
    candidates = [
        said("system", "system_prompt", "You help."),
        said("u", "user_message", "it's\nhere"),
        said("a", "assistant_message", "Let me look."),
        said("c1", "tool_call", 'read {"path":"a"}', pairs=("c1",)),
        said("c1/result", "tool_result", "text", pairs=("c1",), title="read: a"),
    ]
    ours, theirs = of_candidates(candidates, {}), of_rows(rows)
    assert [m.chars for m in ours] == [m.chars for m in theirs]
    assert [m.of for m in ours] == [(0,), (1,), (2, 3), (4,)]


def test_tools_and_injected_reminders_are_not_counted() -> None:
    window = session(1)
    more = [
        candidate("tool", 5000, "tool_definition"), *window, candidate("reminder:status", 900, "policy_note")
    ]  # fmt: skip
    assert total(of_candidates(more, {})) == total(of_candidates(window, {}))


def test_what_a_cut_leaves_is_measured_too() -> None:
    text = "it's " * 100
    row = {"role": "tool", "content": text, "tool_call_id": "c"}
    (made,) = of_rows([row])
    made.truncate(250)
    assert made.said == truncated(text, 250)
    assert made.chars == len(str({**row, "content": made.said, "_truncated": True, "_original_tokens": 125}))
    (asked,) = of_rows([{"role": "user", "content": text}])
    asked.stub()
    marks = {"_stubbed": True, "_original_length": 500}
    assert asked.chars == len(str({"role": "user", "content": stubbed(text), **marks}))


def test_texts_of_cuts_and_stubs() -> None:
    assert truncated("a" * 8000, 250) == (
        "[truncated: ~2,000 tokens - call tool again if needed] " + "a" * 250 + "..."
    )
    assert stubbed("line one\nline two " + "x" * 100) == (
        '[User message compacted - original: "line one line two ' + "x" * 32 + '..."]'
    )


# -- the ladder --------------------------------------------------------------------------------------------


def pair(name: str, tokens: int, text: str | None = None) -> list[Message]:
    return [message("assistant", 10, calls=(name,)), message("tool", tokens, text, answers=name)]


def eight_results() -> list[Message]:
    """Prompt, eight calls with results of 1,000 tokens, an answer; 8,110 tokens."""
    made = [message("user", 10, "first")]
    for n in range(8):
        made += pair(f"c{n}", 1000, "r" * 3900)
    return [*made, message("assistant", 10), message("user", 10, "last")]


def test_the_first_level_cuts_the_oldest_quarter_and_stops_at_the_target() -> None:
    made = climb(eight_results(), Rules(target=7500), 0)
    assert (made.level, made.truncated) == (1, 1)
    made = climb(eight_results(), Rules(target=6800), 0)
    assert (made.level, made.truncated, made.removed) == (1, 2, [])


def test_the_second_level_spares_the_last_results() -> None:
    # A cut result has 112 tokens: 8,110 - 3 x 888 = 5,446, and - 888 = 4,558.
    made = climb(eight_results(), Rules(target=5200), 0)
    assert (made.level, made.truncated) == (3, 3)  # of the second quarter one is among the last five
    made = climb(eight_results(), Rules(target=5000, results=4), 0)
    assert (made.level, made.truncated, total(made.kept)) == (2, 4, 4558)


def test_the_third_level_removes_the_oldest_pairs_whole() -> None:
    made = climb(eight_results(), Rules(target=4400, results=4), 0)
    assert (made.level, total(made.kept)) == (3, 4558 - 2 * 122)
    assert [m.role for m in made.removed] == ["assistant", "tool"] * 2
    assert made.kept[0].role == "user"


def test_the_newer_version_counts_the_system_prompt_throughout() -> None:
    older = climb(eight_results(), Rules(target=9000, older=True), 6000)
    newer = climb(eight_results(), Rules(target=9000), 6000)
    assert (older.level, older.truncated) == (1, 1)  # once cut, it forgets the 6,000
    assert newer.level == 8  # 3,000 for the rest are out of reach: the last five results stay


def test_recent_results_are_not_removed_by_the_newer_version() -> None:
    made = climb(eight_results(), Rules(target=0), 0)
    assert sum(m.role == "tool" for m in made.kept) == 5
    older = climb(eight_results(), Rules(target=0, older=True), 0)
    assert sum(m.role == "tool" for m in older.kept) < 5


@pytest.mark.parametrize("older", [False, True])
def test_a_call_without_its_result_yet(older: bool) -> None:
    talk = [message("user", 10, "a"), message("assistant", 10, calls=("x",)), *pair("y", 10), *[
        message("user", 10, f"{n}") for n in range(8)
    ]]  # fmt: skip
    made = climb(talk, Rules(target=0, results=0, older=older), 0)
    assert any(m.calls == ("x",) for m in made.removed) == older


def test_user_messages_are_stubbed_and_never_removed_before_the_last_level() -> None:
    talk = [message("user", 200, f"{n} " + "u" * 700) for n in range(10)]
    # A stub has 58 tokens: 4 x 200 + 6 x 58 = 1,148.
    made = climb(talk, Rules(target=1150), 0)
    assert (made.level, made.removed) == (3, [])
    assert [m.state for m in made.kept] == ["", *["stubbed"] * 6, "", "", ""]
    made = climb([message("user", 200, f"{n} " + "u" * 700) for n in range(10)], Rules(target=0), 0)
    assert made.level == 8
    assert [m.state for m in made.kept] == ["", ""]  # the first and the last person's word; old stubs went


def test_the_last_level_of_the_older_version_stubs_the_first_message() -> None:
    talk = [message("user", 200, "u" * 700), message("assistant", 500), message("user", 200, "u" * 700)]
    made = climb(talk, Rules(target=200, older=True), 0)
    assert made.level == 8
    assert made.stubbed == 1


def test_nothing_to_spare_is_all_to_spare_in_the_older_version() -> None:
    assert climb(eight_results(), Rules(target=7500, results=0, older=True), 0).truncated == 0
    assert climb(eight_results(), Rules(target=7500, results=0), 0).truncated == 1


# -- the policy --------------------------------------------------------------------------------------------

OLDER = Amplifier(sticky=False, protected_tool_results=1)
NEWER = Amplifier(protected_tool_results=1)


def fitted(policy: Amplifier, turns: int, budget: int, state: Any = None) -> Fit:
    return policy.fit(session(turns), Room(budget, max_input=budget), state)


def test_the_older_version_decides_each_request_anew() -> None:
    first = fitted(OLDER, 6, 3000)
    later = fitted(OLDER, 7, 3000, first.state)
    assert later == fitted(OLDER, 7, 3000)._replace(state=later.state)
    assert first.told is not None
    assert first.level == first.told["strategy_level"]


def test_the_newer_version_takes_nothing_back_and_counts_on() -> None:
    first = fitted(NEWER, 6, 3000)
    assert isinstance(first.state, Memory)
    assert first.told is not None
    assert first.drops
    names = {session(6)[d.at].name for d in first.drops}
    state = first.state
    told = dict(first.told)
    for turns in range(7, 16):
        window = session(turns)
        fit = NEWER.fit(window, Room(3000, max_input=3000), state)
        gone = {window[d.at].name for d in fit.drops}
        assert names <= gone
        if fit.told is not None:
            assert all(fit.told[key] >= told[key] for key in ("messages_removed", "strategy_level"))
            told = dict(fit.told)
        names, state = gone, fit.state


def test_a_request_that_fits_what_was_decided_is_no_new_compaction() -> None:
    window = session(6)
    first = NEWER.fit(window, Room(3000, max_input=3000), None)
    again = NEWER.fit(
        [*window, said("next", "user_message", "more")], Room(3000, max_input=3000), first.state
    )
    assert (again.told, again.level) == (None, None)
    assert [d.at for d in again.drops] == [d.at for d in first.drops]
    assert again.notes[0].text == first.notes[0].text


def test_the_notice_stands_where_each_version_puts_it() -> None:
    older, newer = fitted(OLDER, 6, 3000), fitted(NEWER, 6, 3000)
    (before,), (behind,) = older.notes, newer.notes
    assert (before.before, before.role) == (1, "system")
    assert (behind.before, behind.role) == (len(session(6)), "user")
    assert before.text is not None
    assert behind.text is not None
    assert f"- Strategy level: {older.level}/8" in before.text
    assert "- Tokens: " in before.text
    assert "- Tokens: " not in behind.text
    assert not fitted(Amplifier(notice=False), 6, 3000).notes


def test_no_notice_between_a_call_and_its_result() -> None:
    window = [*session(6), call("open")]
    assert not NEWER.fit(window, Room(3000, max_input=3000), None).notes


def test_the_runtimes_own_notice_is_replaced() -> None:
    old = said("reminder:context-compaction", "policy_note", "\n\n<system-reminder>old</system-reminder>")
    window = session(6)
    window.insert(1, old._replace(segment="system", role="system"))
    fit = OLDER.fit(window, Room(3000, max_input=3000), None)
    (swap,) = [s for s in fit.swaps if s.at == 1]
    assert swap.text.startswith('\n\n<system-reminder source="context-compaction">')
    assert not fit.notes
    assert OLDER.fit(window, Room(90_000), None).drops == (Drop(1, "stale"),)
    assert Drop(1, "stale") in NEWER.fit(window, Room(3000, max_input=3000), None).drops


def test_a_system_prompt_that_is_too_large_is_said() -> None:
    window = [said("system", "system_prompt", "s" * 40_000), said("ask", "user_message", "hello")]
    fit = Amplifier().fit(window, Room(5000, max_input=5000), None)
    assert (fit.verdict, fit.level, fit.drops) == ("still_over", 8, ())


def test_parameters_of_a_record_outrank_the_policys() -> None:
    native = {
        "strategy_level": 3, "budget": 3804, "target_tokens": 1331, "protected_recent": 0.2,
        "protected_tool_results": 1, "before_tokens": 2000, "after_tokens": 900,
    }  # fmt: skip
    told = Amplifier().as_told(native)
    assert told is not None
    assert int(3804 * told.target) == 1331
    assert (told.protected_recent, told.protected_tool_results) == (0.2, 1)
    assert told.fit(session(1), Room(3804, max_input=3804), None).told is not None, "it acted, so it acts"
    assert Amplifier().as_told({"message_count": 3}) is None


def test_what_differs_is_named() -> None:
    told = {"strategy_level": 3, "messages_removed": 5, "before_tokens": 900, "before_messages": 10}
    told |= {"after_tokens": 500, "after_messages": 5}
    policy = Amplifier()
    assert policy.differing(told, {**told, "before_tokens": 1000, "unknown": 1}) == []
    assert policy.differing(told, {**told, "strategy_level": 4}) == ["strategy_level"]
    assert policy.differing(told, {**told, "after_tokens": 700}) == ["after_tokens"]


# -- the contract's example --------------------------------------------------------------------------------

TALK = [
    said("system", "system_prompt", "s" * 400),  # 100 tokens
    said("ask", "user_message", "u" * 400),
    said("c", "tool_call", "c" * 400, pairs=("c",)),
    said("c/result", "tool_result", "r" * 400, pairs=("c",)),
    said("answer", "assistant_message", "a" * 400),
    said("now", "user_message", "n" * 400),
]


def test_the_contract_drops_the_oldest_to_seven_tenths() -> None:
    assert AmplifierContract().fit(TALK, Room(667), None).verdict == "fits"  # 600 of 600.3
    fit = AmplifierContract().fit(TALK, Room(600), None)
    assert [d.at for d in fit.drops] == [1, 2, 3]  # 500 is over 420, and the call takes its result along
    assert [d.at for d in AmplifierContract(pairs=False).fit(TALK, Room(600), None).drops] == [1, 2]


def test_the_contracts_loop_as_printed_empties_the_conversation() -> None:
    fit = AmplifierContract(literal=True).fit(TALK, Room(600), None)
    assert [d.at for d in fit.drops] == [1, 2, 3, 4, 5]


def test_what_the_contract_dropped_never_comes_back() -> None:
    fit = AmplifierContract().fit(TALK, Room(600), None)
    assert AmplifierContract().fit(TALK, Room(90_000), fit.state).drops == fit.drops


def test_sizes_are_measured_once() -> None:
    reads = 0

    def read() -> str:
        nonlocal reads
        reads += 1
        return json.dumps({"a": 1})

    window = [c._replace(read=read) for c in session(3)]
    policy = Amplifier()
    first = policy.fit(window, Room(90_000), None)
    seen = reads
    policy.fit(window, Room(90_000), first.state)
    assert reads == seen
