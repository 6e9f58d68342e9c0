"""Dropping and setting items: what selectors match, what goes with it, and what another text comes to."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from ctxctl.analysis.whatif import FieldError, WhatIfs
from ctxctl.errors import UsageError
from ctxctl.model.results import Placement, Step
from ctxctl.model.whatif import Limits, Replacement, Supposition
from ctxctl.session import Inspector
from ctxctl.session.edits import drops_text, edit_notes, replaced_text
from ctxctl.tokens.counter import Counter
from tests.unit.engine.making import Json, add, assembly, event, inject, inspect, usage

WORDS = "one two three four five six seven eight nine ten"
"""Ten tokens."""
HOSTILE = "\x1b]0;owned\x07 \u202egpt"


def agent() -> list[Json]:
    """A system prompt, tools of two servers, and two calls, the second of which names its result."""
    parts: list[tuple[str, Json]] = [
        ("system", {"kind": "system_prompt"}),
        ("tool:a", {"kind": "tool_definition", "title": "mcp__github__search"}),
        ("tool:b", {"kind": "tool_definition", "title": "read", "source_refs": [{"source_id": "mcp:disk"}]}),
        ("ask", {"kind": "user_message"}),
        ("call-1", {"kind": "tool_call", "title": "mcp__github__search"}),
        ("result-1", {"kind": "tool_result", "title": "found"}),
        ("call-2", {"kind": "tool_call", "title": "read"}),
        ("call-2/result", {"kind": "tool_result", "title": "read"}),
    ]
    events = [add(name, f"{name} {WORDS}", turn="1", step="s1", **fields) for name, fields in parts[:5]]
    names = [name for name, _ in parts]
    events += [assembly("a1", *names[:5], turn="1", step="s1"), inject("a1", turn="1", step="s1")]
    events += [usage(100, turn="1", step="s1")]
    events += [add(name, f"{name} {WORDS}", turn="1", step="s2", **fields) for name, fields in parts[5:]]
    events += [assembly("a2", *names, turn="1", step="s2"), inject("a2", turn="1", step="s2")]
    return [*events, usage(200, turn="1", step="s2")]


def edited(events: list[Json], drop: list[str] | None = None, **texts: str) -> Inspector:
    inspector = inspect(events)
    inspector.edit(drop or [], {name.replace("__", "@"): text for name, text in texts.items()})
    return inspector


def frames(inspector: Inspector) -> list[list[Placement]]:
    return [at.placements for at, _ in inspector.walk()]


def left(events: list[Json], *drop: str) -> list[str]:
    """Items of the last frame."""
    return [p.item for p in frames(edited(events, list(drop)))[-1]]


def refused(events: list[Json], drop: list[str] | None = None, **texts: str) -> UsageError:
    with pytest.raises(UsageError) as caught:
        edited(events, drop, **texts)
    return caught.value


# Selectors --------------------------------------------------------------------------------------------------

EVERYTHING = ["system", "tool:a", "tool:b", "ask", "call-1", "result-1", "call-2", "call-2/result"]


@pytest.mark.parametrize(
    ("selector", "gone"),
    [
        ("kind:tool_definition", {"tool:a", "tool:b"}),
        ("tool_definition", {"tool:a", "tool:b"}),
        ("item:ask", {"ask"}),
        ("ask", {"ask"}),
        ("item:tool:a", {"tool:a"}),
        ("tool:a", {"tool:a"}),
        ("source:mcp:disk", {"tool:b"}),
        ("server:disk", {"tool:b"}),
        ("mcp:disk", {"tool:b"}),
        ("server:mcp:disk", {"tool:b"}),
        ("server:github", {"tool:a", "call-1", "result-1"}),
        ("mcp:github", {"tool:a", "call-1", "result-1"}),
        ("github", {"tool:a", "call-1", "result-1"}),
        ("kind:tool_result", {"call-1", "result-1", "call-2", "call-2/result"}),
        ("kind:tool_call", {"call-1", "result-1", "call-2", "call-2/result"}),
        ("item:result-1", {"call-1", "result-1"}),
        ("item:call-2", {"call-2", "call-2/result"}),
    ],
)
def test_what_a_selector_takes_away(selector: str, gone: set[str]) -> None:
    assert left(agent(), selector) == [name for name in EVERYTHING if name not in gone]


def test_what_went_is_told() -> None:
    told = edited(agent(), ["kind:tool_result", "system", "kind:tool_result"]).params.edited
    assert drops_text(told) == (
        "kind:tool_result (2 items), item:system (1 item), with the 2 calls and results that belong to them"
    )
    assert [(one.selector, one.items) for one in told.drops] == [("kind:tool_result", 2), ("item:system", 1)]
    assert told.calls == 2
    assert "It is not known" in list(edit_notes(told))[-1]


def test_a_word_that_is_several_things_is_an_error_that_lists_them() -> None:
    events = [add("plan", WORDS, turn="1"), add("x", WORDS, turn="1", kind="plan")]
    error = refused(events, ["plan"])
    assert error.slug == "bad-drop"
    assert error.hint == "write one of kind:plan (1), item:plan (1)"
    assert left(events, "kind:plan") == ["plan"]
    # Where all that it could be is the same items, it is no matter which.
    assert left([add("plan", WORDS, turn="1", kind="plan"), add("y", WORDS, turn="1")], "plan") == ["y"]


@pytest.mark.parametrize(
    ("selector", "hint"),
    [
        (
            "kind:tool_results",
            "there are: system_prompt, tool_call, tool_definition, tool_result, user_message",
        ),
        ("tool_results", "near: kind:tool_result"),
        ("item:call-3", "there are: ask, call-1"),
        ("server:gitbub", "there are: disk, github"),
        ("source:mcp:disc", "there are: mcp:disk"),
        ("kind:", "there are: "),
        (HOSTILE, "write kind:KIND, source:SOURCE, server:SERVER or item:ID"),
        ("x" * 5000, "write kind:KIND"),
    ],
)
def test_nothing_matched_is_an_error_with_near_names(selector: str, hint: str) -> None:
    error = refused(agent(), [selector])
    assert error.slug == "nothing-dropped"
    assert error.hint is not None
    assert error.hint.startswith(hint)
    assert len(error.message) < 200
    assert "\x1b" not in error.message


def test_an_empty_selector_is_none() -> None:
    assert refused(agent(), [" "]).slug == "bad-drop"


def test_an_id_means_something_in_its_own_thread_only() -> None:
    events = [
        add("m", WORDS, turn="1", thread="main", kind="user_message"),
        add("m", f"other {WORDS}", turn="1", thread="side", kind="tool_result"),
        add("n", WORDS, turn="1", thread="side"),
    ]
    inspector = edited(events, ["kind:tool_result"])
    assert [[p.item for p in frame] for frame in frames(inspector)] == [["m"], ["n"]]


def test_what_is_only_referred_to_can_be_dropped() -> None:
    events = [add("a", WORDS, turn="1"), assembly("x", "a", "ghost", turn="1"), inject("x", turn="1")]
    assert left(events, "item:ghost") == ["a"]
    assert left(events, "kind:custom") == ["a"]


# What goes with it ------------------------------------------------------------------------------------------


def compaction(summary: str, *sources: str, **ids: Any) -> list[Json]:
    made = add(summary, f"in short {summary}", kind="thread_summary", **ids)
    made["event_type"] = "context.summary.created"
    data = {"compaction_id": f"c-{summary}", "source_item_refs": list(sources), "summary_ref": summary}
    return [made, event("compaction.completed", data, **ids)]


def summarised() -> list[Json]:
    """b goes into s1, s1 and c into s2."""
    return [
        *(add(name, f"{name} {WORDS}", turn="1", step="s1") for name in "abc"),
        inject(turn="1", step="s1"),
        *compaction("s1", "b", turn="2", step="s2"),
        inject(turn="2", step="s2"),
        *compaction("s2", "s1", "c", turn="3", step="s3"),
        inject(turn="3", step="s3"),
    ]


def test_a_summary_of_nothing_that_is_there_goes_too() -> None:
    assert [[p.item for p in frame] for frame in frames(inspect(summarised()))] == [
        ["a", "b", "c"], ["a", "c", "s1"], ["a", "s2"],
    ]  # fmt: skip
    inspector = edited(summarised(), ["item:b"])
    assert [[p.item for p in frame] for frame in frames(inspector)] == [["a", "c"], ["a", "c"], ["a", "s2"]]
    assert inspector.params.edited.summaries == 1
    assert left(summarised(), "item:b", "item:c") == ["a"]
    assert drops_text(edited(summarised(), ["b", "c"]).params.edited).endswith(
        "with 2 summaries of nothing else"
    )


def test_an_item_that_was_never_there_is_never_left_out() -> None:
    cut = [{"item_ref": "b", "final_token_estimate": 0, "strategy": "drop"}]
    budget = event("budget.applied", {"budget_id": "x", "truncation_records": cut}, turn="1")
    events = [
        *(add(n, WORDS, turn="1") for n in "ab"),
        budget,
        assembly("x", "a", turn="1"),
        inject("x", turn="1"),
    ]
    steps = [at.step for at, _ in inspect(events).walk()]
    assert [step.counts.omitted for step in steps] == [1]
    steps = [at.step for at, _ in edited(events, ["b"]).walk()]
    assert [(step.counts.omitted, step.changes[-1].item) for step in steps] == [(0, "a")]


def test_a_bill_is_not_compared_with_what_was_not_sent() -> None:
    steps = [at.step for at, _ in edited(agent(), ["item:result-1"]).walk()]
    differences = [step.usage.difference for step in steps if step.usage is not None]
    # The call that goes with it is in the first request already.
    assert differences == [None, None]
    assert not any("difference" in step.stages["evidence"].facts for step in steps)
    steps = [at.step for at, _ in edited(agent(), ["item:call-2"]).walk()]
    assert [s.usage.difference is None for s in steps if s.usage is not None] == [False, True]


@pytest.mark.parametrize("policy", ["fifo", "summarize_oldest", "truncate_middle", "amplifier"])
def test_a_policy_never_sees_what_was_dropped(policy: str) -> None:
    inspector = inspect(agent(), policy=policy)
    import msgspec

    inspector.params = msgspec.structs.replace(inspector.params, limits=Limits(window=70))
    inspector.edit(["server:github"], {})
    for frame in frames(inspector):
        assert not {"tool:a", "call-1", "result-1"} & {p.item for p in frame}


def test_the_cursor_gives_the_frames_of_the_replay() -> None:
    inspector = edited(agent(), ["kind:tool_call"], system="short")
    walked = [[(p.item, p.digest) for p in frame] for frame in frames(inspector)]
    inspector.outline()
    asked = [[(p.item, p.digest) for p in inspector.at(n).placements] for n in (1, 0, 1)]
    assert asked == [walked[1], walked[0], walked[1]]


# Other texts ------------------------------------------------------------------------------------------------


def versions() -> list[Json]:
    """A prompt in three versions, the last of which is a day's."""
    events = []
    for n, text in enumerate(("first", "second", "third"), start=1):
        ids = {"turn": str(n), "step": f"s{n}"}
        events += [
            add("prompt", f"{text} {WORDS}", kind="system_prompt", update=n > 1, version=f"v{n}",
                metadata={"version": f"v{n}"}, **ids),
            add(f"ask-{n}", WORDS, kind="user_message", **ids),
            assembly(f"a{n}", "prompt", *(f"ask-{m}" for m in range(1, n + 1)), **ids),
            inject(f"a{n}", **ids),
        ]  # fmt: skip
    return events


def test_one_text_for_all_versions_is_never_updated_and_breaks_no_cache() -> None:
    plain = [at.step for at, _ in inspect(versions()).walk()]
    assert [step.counts.updated for step in plain] == [0, 1, 1]
    inspector = edited(versions(), prompt="a b c")
    steps = [at.step for at, _ in inspector.walk()]
    assert [step.counts.updated for step in steps] == [0, 0, 0]
    assert [step.window.used for step in steps] == [13, 23, 33]
    assert [step.cache.possible_prefix for step in steps] == [None, 13, 23]
    assert all(step.cache.broken_by is None for step in steps)
    (told,) = inspector.params.edited.texts
    assert (told.versions, told.version, told.size) == (3, None, 5)
    assert told.sha256 == hashlib.sha256(b"a b c").hexdigest()


def test_one_version_alone() -> None:
    inspector = edited(versions(), prompt__v2="a b c")
    steps = [at.step for at, _ in inspector.walk()]
    assert [step.window.used for step in steps] == [21, 23, 41]
    assert [step.counts.updated for step in steps] == [0, 1, 1]
    (told,) = inspector.params.edited.texts
    assert replaced_text(told).startswith("prompt@v2 (1 version): 5 bytes, sha256 ")


def test_a_version_goes_before_the_item() -> None:
    inspector = edited(versions(), prompt="a b c", prompt__v3="a b c d")
    assert [at.step.window.used for at, _ in inspector.walk()] == [13, 23, 34]


def test_its_own_text_changes_nothing() -> None:
    plain = [at.step for at, _ in inspect(agent()).walk()]
    inspector = edited(agent(), system=f"system {WORDS}")
    steps = [at.step for at, _ in inspector.walk()]
    for a, b in zip(plain, steps, strict=True):
        assert (a.window, a.ledger, a.changes, a.cache, a.usage) == (
            b.window, b.ledger, b.changes, b.cache, b.usage,
        )  # fmt: skip
    assert replaced_text(inspector.params.edited.texts[0]).startswith("system (its recorded text)")


def test_a_wrapper_stays_around_another_text() -> None:
    wrapped = {"item_refs": ["a"], "wrapper": "<x>{content}</x>"}
    events = [add("a", WORDS, turn="1"), assembly("x", wrapped, turn="1"), inject("x", turn="1")]
    inspector = edited(events, a="other")
    (frame,) = frames(inspector)
    (placement,) = frame
    assert placement.content is not None
    assert inspector.text(placement.content) == "<x>other</x>"
    assert placement.simulated


def test_the_rendering_of_a_block_gives_way() -> None:
    own = {"item_refs": ["a"], "content": "rendered in another way"}
    events = [add("a", WORDS, turn="1"), assembly("x", own, turn="1"), inject("x", turn="1")]
    inspector = edited(events, a="other")
    assert inspector.assembled(0) == "other"


def test_the_joint_text_of_several_items_stays() -> None:
    joint = {"item_refs": ["a", "b"], "content": "one text of both"}
    events = [*(add(n, WORDS, turn="1") for n in "ab"), assembly("x", joint, turn="1"), inject("x", turn="1")]
    assert "one text of both" in edited(events, b="other").assembled(0)


def test_a_text_where_none_was_recorded_is_counted() -> None:
    events = [add("a", None, turn="1", content_mode="opaque", token_estimate=500)]
    steps = [at.step for at, _ in edited(events, a="a b c").walk()]
    assert [(s.window.used, dict(s.window.by_method)) for s in steps] == [(3, {"estimate:o200k_base": 3})]


@pytest.mark.parametrize(
    ("texts", "slug", "said"),
    [
        ({"sytem": "x"}, "unknown-item", "no item called 'sytem'"),
        ({"system__v9": "x"}, "unknown-item", "no version of 'system' is called 'v9'"),
        ({HOSTILE: "x"}, "unknown-item", "no item called"),
    ],
)
def test_an_unknown_item_cannot_be_set(texts: dict[str, str], slug: str, said: str) -> None:
    error = refused(agent(), None, **texts)
    assert error.slug == slug
    assert said in error.message
    assert "\x1b" not in error.message
    assert error.hint


def test_nothing_is_both_set_and_dropped() -> None:
    assert refused(agent(), ["server:github"], **{"result-1": "x"}).slug == "bad-set"
    with pytest.raises(UsageError) as caught:
        inspect(agent()).edit((), (Replacement("system", "x"), Replacement("system", "y")))
    assert caught.value.slug == "bad-set"


def test_a_growing_history_is_not_sent_again_what_stays_the_same() -> None:
    """Under a policy that sends what is new, versions of one text are one version."""
    fields = {"source_refs": [{"source_id": "app:editor"}], "kind": "external_resource", "title": "Editor"}
    surface = {"surface_id": "s", "available_source_refs": ["app:editor"]}
    events = []
    for n in (1, 2):
        ids = {"turn": str(n), "step": f"s{n}"}
        events += [
            event("surface.created", surface, **ids),
            add("editor", f"{n} {WORDS}", update=n > 1, **fields, **ids),
            inject(None, "appendix", **ids),
        ]

    def sent(inspector: Inspector) -> list[int]:
        return [at.step.counts.updated for at, _ in inspector.walk()]

    assert sent(inspect(events, policy="sanqian")) == [0, 1]
    inspector = inspect(events, policy="sanqian")
    inspector.edit((), {"editor": "the same"})
    assert sent(inspector) == [0, 0]
    inspector = inspect(events, policy="sanqian")
    inspector.edit(["source:app:editor"], {})
    assert [p for frame in frames(inspector) for p in frame] == []


# Beside the record ------------------------------------------------------------------------------------------


def test_fields_of_a_form_hear_of_their_own_errors() -> None:
    whatifs = WhatIfs(inspect(agent()))
    for field, given in (("drop", {"drop": ("nope",)}), ("set", {"set": (Replacement("nope", "x"),)})):
        with pytest.raises(FieldError) as caught:
            whatifs.resolve(Supposition(**given))  # type: ignore[arg-type]
        assert caught.value.field == field


def test_both_sides_count_a_text_once(monkeypatch: pytest.MonkeyPatch) -> None:
    whatifs = WhatIfs(inspect(agent()))
    counted: list[str] = []
    plain = Counter.count

    def count(counter: Counter, text: str) -> tuple[int, bool]:
        counted.append(text)
        return plain(counter, text)

    monkeypatch.setattr(Counter, "count", count)
    comparison = whatifs.compare(
        whatifs.resolve(Supposition(drop=("github",), set=(Replacement("ask", "x y"),)))
    )
    pairs = list(comparison.pairs())
    assert len(counted) == len(set(counted)) == 9, "eight texts of the trace and the one that is set"
    assert [(p.recorded.used > p.simulated.used, p.simulated.broke) for p in pairs] == [(True, False)] * 2
    assert comparison.first_differing is pairs[0]


def test_the_session_is_gone_through_once_for_all_what_ifs() -> None:
    whatifs = WhatIfs(inspect(agent()))
    whatifs.resolve(Supposition(drop=("github",)))
    known = whatifs.inspector.inventory
    whatifs.resolve(Supposition(drop=("ask",)))
    assert whatifs.inspector.inventory is known
    assert whatifs.inspector.edits is None, "the recorded side stays as it is"


def test_steps_say_that_they_are_simulated() -> None:
    for at, _ in edited(agent(), ["ask"]).walk():
        assert isinstance(at.step, Step)
        assert "simulated" in at.step.flags
        assert {view.verdict for view in at.step.stages.values()} <= {"recorded", "not_recorded"}
