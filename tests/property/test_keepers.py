"""Policies that keep what they work out, held against their plain definition, step by step."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxctl.engine.replay.changes import Cause
from ctxctl.engine.replay.frames import delta_of
from ctxctl.engine.simulate.policy_run import Fitted, Fitting
from ctxctl.engine.sizes.scales import RAW
from ctxctl.model.results import Placement
from ctxctl.model.whatif import Limits
from ctxctl.policies.registry import policy_by_name
from tests.oracle.plain_policies import Plain

EXAMPLES = settings.default.max_examples if settings.default else 100
POLICIES = (
    "fifo", "fifo:target=0.5", "fifo:sticky=false,target=0.6", "priority",
    "priority:target=0.7,protect_recent=0", "priority:sticky=false,protect_head=false", "reject",
    "truncate_tail", "truncate_middle", "truncate_middle:protect_head=false,protect_recent=2",
    "truncate_tail:protect_recent=0",
    "summarize_oldest:summary_tokens=5", "summarize_low_priority:summary_tokens=3,target=0.6",
    "defer_to_retrieval", "defer_to_retrieval:protect_recent=0,protect_kinds=file", "ask_for_choice",
    "amplifier:safety_margin=0,notice_reserve=0",
    "amplifier:safety_margin=0,notice_reserve=0,truncate_chars=4,protected_tool_results=1",
    "amplifier:safety_margin=0,notice_reserve=0,threshold=0.5,target=0.3,protected_recent=0.1",
    "amplifier_contract", "amplifier_contract:threshold=0.5,target=0.2", "amplifier_contract:literal=true",
    "amplifier_contract:pairs=false", "sibyl",
)  # fmt: skip
KINDS = (
    "user_message", "user_message", "assistant_message", "tool_call", "tool_result", "file", "system_prompt",
    "tool_definition", "durable_memory", "policy_note",
)  # fmt: skip
SEGMENTS = {"system_prompt": "system", "tool_definition": "tools"}


class Text(NamedTuple):
    text: str

    @property
    def size(self) -> int:
        return len(self.text)


class Placer:
    """Makes placements as the engine's does; a token is four characters."""

    def __init__(self) -> None:
        self.keys: dict[object, int] = {}
        self.weigher = SimpleNamespace(scale=RAW)

    def text(self, content: Text) -> str:
        return content.text

    def reworded(self, p: Placement, text: str) -> Placement:
        made: Any = Text(text)
        return msgspec.structs.replace(
            p, content=made, digest=text, tokens=len(text) // 4, key=self.key(p.item, p.version, text),
            truncated=True,
        )  # fmt: skip

    def resized(self, p: Placement, tokens: int) -> Placement:
        return msgspec.structs.replace(
            p, content=None, tokens=tokens, method="declared", key=self.key(p.item, tokens), truncated=True
        )

    def key(self, *what: object) -> int:
        return self.keys.setdefault(what, len(self.keys) + 1_000)


def placed(number: int, kind: str, size: int, turn: int) -> Placement:
    """Calls and results pair up by their number; some texts nobody knows."""
    name = {"tool_call": f"c{number % 7}", "tool_result": f"c{number % 7}/result"}.get(
        kind, f"{kind}-{number % 5}"
    )
    if kind == "policy_note":
        name = "reminder:context-compaction"
    text: Any = Text(f"{name} {turn} " + "x" * size) if number % 6 else None
    tokens = size if text is None else len(text.text) // 4
    return Placement(
        item=name, version=str(number), kind=kind, title=None, source=None,
        segment=SEGMENTS.get(kind, "history"), tokens=tokens, method="counted", content=text,
        digest=None if text is None else text.text, key=number, line=1,
        role="user" if kind == "policy_note" else None,
    )  # fmt: skip


class Edit(NamedTuple):
    """How the recorded window changes at a step, and what is supposed there."""

    at: float
    removed: int
    inserted: list[tuple[str, int, bool]]
    """Kind, size, and whether it is a copy of one that was there before."""
    again: int
    cap: int | None
    beside: int
    """What is sent beside the window: below 0 where less was billed than is recorded."""
    scored: int | None
    new_turn: bool
    cause: str


RARELY = st.integers(0, 9).map(lambda n: n == 0)
EDITS = st.builds(
    Edit,
    at=st.sampled_from([1.0, 1.0, 1.0, 0.0, 0.3, 0.7, 0.95]),
    removed=st.sampled_from([0, 0, 0, 0, 1, 2, 5]),
    inserted=st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 240), RARELY), max_size=4),
    again=st.integers(0, 50),
    cap=st.sampled_from([60, 60, 60, 60, 100, 200, None]),
    beside=st.sampled_from([0, 0, 0, 20, 45, 70, -30]),
    scored=st.none() | st.integers(0, 4),
    new_turn=st.booleans(),
    cause=st.sampled_from(["unrecorded", "compacted"]),
)  # fmt: skip


class Thread:
    """As much of a thread as a policy's engine looks at."""

    def __init__(self) -> None:
        self.placer = Placer()
        self.ids = SimpleNamespace(turn=1)
        self.scores: dict[str, float] = {}
        self.facts = SimpleNamespace(entered={}, compactions=(), budgets=())
        self.later = None
        self.priorities: dict[str, float] = {}
        self.book = SimpleNamespace(last=None, find=self.find)
        self.found: dict[tuple[str, float | None], object] = {}

    def find(self, item: str) -> object:
        priority = self.priorities.get(item)
        made = SimpleNamespace(record=SimpleNamespace(priority=priority))
        return self.found.setdefault((item, priority), made)


def walk(edits: list[Edit], thread: Thread) -> Iterator[tuple[list[Placement], list[Placement], Edit]]:
    window: list[Placement] = []
    ever: list[Placement] = []
    for turn, edit in enumerate(edits, 1):
        thread.ids.turn += edit.new_turn
        fresh = []
        for kind, size, copied in edit.inserted:
            made = (
                ever[edit.again % len(ever)] if copied and ever else placed(len(ever) + 1, kind, size, turn)
            )
            ever.append(made)
            fresh.append(made)
        at = int(edit.at * len(window))
        after = window[:at] + fresh + window[at + edit.removed :]
        thread.facts.entered = {}
        if edit.scored is not None and ever:
            item = ever[edit.again % len(ever)].item
            thread.priorities[item] = float(edit.scored)
            thread.facts.entered[item] = None
        yield window, after, edit
        window = after


def told(fitted: Fitted, frame: list[Placement], left: list[Placement]) -> dict[str, Any]:
    return {
        "frame": [(p.item, p.version, p.digest, p.tokens) for p in frame],
        "verdict": fitted.verdict, "dropped": fitted.dropped, "cut": fitted.cut, "noted": fitted.noted,
        "level": fitted.level, "wanted": fitted.wanted, "truncated": fitted.truncated,
        "named": [(n.item, n.placement.version, n.cause) for n in fitted.named],
        "causes": {p.item: fitted.cause_of.get(p.item) for p in left},
    }  # fmt: skip


def trimmed(text: str, tokens: int, side: str) -> str:
    return text[: 4 * tokens] if side == "head" else text[-4 * tokens :]


def unasked(*_said: object) -> Limits:
    raise AssertionError("it is the thread that asks for the limits, and tells them to `frame`")


@pytest.mark.parametrize("name", POLICIES)
@settings(max_examples=max(EXAMPLES // 5, 1))
@given(edits=st.lists(EDITS, max_size=25), snapshot=st.integers(0, 24))
def test_what_is_kept_changes_nothing(name: str, edits: list[Edit], snapshot: int) -> None:
    policy: Any = policy_by_name(name)
    thread: Any = Thread()
    kept, plain = (Fitting(one, unasked, trimmed, alone=True) for one in (policy, Plain(policy)))
    before: tuple[list[Placement], list[Placement]] = ([], [])
    for step, (old, new, edit) in enumerate(walk(edits, thread)):
        if step == snapshot:
            kept = kept.copy()
        cap = Limits(window=edit.cap)
        delta = delta_of(old, new)

        def cause(_item: str, why: str = edit.cause) -> Cause:
            return Cause(why)

        ours, known, mine = kept.frame(thread, delta, cap, cause, edit.beside)
        theirs, _, yours = plain.frame(thread, delta, cap, cause, edit.beside)
        takes_room = max(0, edit.beside)
        assert mine.wanted == yours.wanted >= takes_room
        if edit.cap is not None and mine.verdict in ("fits", "fitted"):
            assert sum(p.tokens for p in ours) + takes_room <= edit.cap
        was = delta_of(before[1], theirs)
        assert told(mine, ours, was.removed) == told(yours, theirs, was.removed)
        whole = delta_of(before[0], ours)
        if known is not None:
            assert known.before is before[0]
            assert (known.removed, known.inserted, known.reordered) == (
                whole.removed, whole.inserted, whole.reordered,
            )  # fmt: skip
            assert known.prefix <= whole.prefix
            assert known.suffix <= whole.suffix
        before = ours, theirs
        if edit.scored is not None:
            item = f"file-{edit.again % 5}"
            thread.scores[item] = edit.scored / 4
            for fitting in (kept, plain):
                fitting.scored({item: edit.scored / 4})
