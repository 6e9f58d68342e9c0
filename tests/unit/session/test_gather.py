"""What is learned of a recording: what stands in every request of a kind of thread."""

from __future__ import annotations

from copy import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.ingest.parts import Part
from ctxctl.ingest.run import Run
from ctxctl.model import vocab
from ctxctl.providers.dialects.slots import structured
from ctxctl.session.learned import gather
from ctxctl.session.learned.book import decode_set, joined_sets
from tests.unit.session.learned_help import DUMP, NOTE, SYSTEM, TOOL, gathered, of_capture, part, stream


def prompt(text: str) -> Part:
    return Part("user_message", text, "user")


def kinds(made: object, thread: str = "main") -> list[tuple[str, str | None]]:
    return [(item.kind, item.title) for item in made.threads[thread]]  # type: ignore[attr-defined]


def test_what_every_request_has_is_learned_in_its_order_and_prompts_are_not() -> None:
    first = [part(TOOL), part(SYSTEM), part(NOTE), prompt("hello")]
    second = [part(TOOL), part(SYSTEM), part(NOTE), prompt("hello"), prompt("and again")]
    made = gathered(stream(first, second)).learned("c", "1.0")
    assert made is not None
    assert kinds(made) == [("tool_definition", "read"), ("system_prompt", None), ("policy_note", None)]
    assert made.requests == 2


def test_what_comes_and_goes_is_not_learned() -> None:
    once = [part(SYSTEM), part(NOTE), prompt("hello")]
    made = gathered(stream(once, [part(SYSTEM), prompt("hello")])).learned("c", "1.0")
    assert made is not None
    assert kinds(made) == [("system_prompt", None)]


def test_a_sub_agents_tool_of_the_same_name_is_not_the_main_threads() -> None:
    """Requests name the version of the canonical form, which is no digest of the text that was sent."""
    mine, theirs = (
        structured("tool_definition", {"name": "read", "about": about}, "system", key="t", title="read")
        for about in ("files", "notes")
    )
    run = Run("test", lambda _: None)
    run.session = "s"
    main, agent = run.thread(None), run.thread("a", origin={"agent_type": "explore"})
    for number, (thread, tool) in enumerate(((main, mine), (agent, theirs), (main, mine)), 1):
        thread.turn = f"turn-{number}"
        thread.replace([copy(tool), prompt(f"{number}")])
        thread.request()
    made = gathered(list(run.finish())).learned("c", "1.0")
    assert made is not None
    held = {kind: [made.contents[item.digest] for item in items] for kind, items in made.threads.items()}
    assert held == {
        "main": ['{"name":"read","about":"files"}'],
        "agent:explore": ['{"name":"read","about":"notes"}'],
    }


def test_a_sub_agent_of_a_known_kind_is_a_set_of_its_own_and_others_are_left_out() -> None:
    main = stream([part(TOOL), part(SYSTEM), prompt("hello")])
    agent = stream([part(SYSTEM, "You explore the code that you are given.")], thread="a",
                   origin={"agent_type": "explore"})  # fmt: skip
    side = stream([part(SYSTEM, "Generate a title of five words.")], thread="side-title")
    made = gathered(main, agent, side).learned("c", "1.0")
    assert made is not None
    assert sorted(made.threads) == ["agent:explore", "main"]
    assert "title" not in repr(made.contents)


def test_the_dump_of_a_real_client_names_itself_and_its_sub_agent() -> None:
    found = gathered(of_capture(DUMP))
    assert (found.client, found.version) == ("claude-code", "2.1.330")
    made = found.learned("claude-code", "2.1.330")
    assert made is not None
    # A third tool is deferred, and was never read.
    assert [title for kind, title in kinds(made) if kind == "tool_definition"] == ["Agent", "Read"]
    agent = [made.contents[item.digest] for item in made.threads["agent:general-purpose"]]
    assert any(text.startswith("You are an agent for Claude Code") for text in agent)
    assert not any(text.startswith("You answer from the notes") for text in agent)


def test_secrets_are_gone_before_anything_is_kept_and_digests_are_of_what_is_kept() -> None:
    made = gathered()
    made._clean = lambda text: text.replace("hunter2", "[redacted password, 7 chars, #0123456789ab]")
    made.take(stream([part(SYSTEM, "The password is hunter2, keep it."), prompt("x")]))
    kept = made.learned("c", "1.0")
    assert kept is not None
    assert b"hunter2" not in kept.encode()
    assert kept.redacted == 1
    assert decode_set(kept.encode()) == kept


def test_of_two_recordings_tools_and_prompts_stay_and_reminders_must_agree() -> None:
    own = part(NOTE, "<system-reminder>\nProject one has its own rules.\n</system-reminder>")
    other = part(NOTE, "<system-reminder>\nProject two has other rules.\n</system-reminder>")
    cwd = part(SYSTEM, "You work in /one, where all is.")
    one = gathered(stream([part(TOOL), cwd, own, part(NOTE), prompt("x")])).learned("c", "1.0")
    two = gathered(
        stream([part(TOOL), part(SYSTEM, "You work in /two, where all is."), other, part(NOTE), prompt("x")])
    ).learned("c", "1.0")
    assert one is not None
    assert two is not None
    both = joined_sets(one, two)
    assert [(item.kind, item.varies) for item in both.threads["main"]] == [
        ("tool_definition", False), ("system_prompt", True), ("policy_note", False),
    ]  # fmt: skip
    texts = repr(both.contents)
    assert "/two" in texts
    assert "/one" not in texts
    assert "Project" not in texts
    assert (both.recordings, both.requests) == (2, 2)


def test_records_of_any_shape_are_passed_over() -> None:
    odd: list[object] = [None, 7, "x", [], {}, [1], [[1, 2]], [["a", 0, 0]], {"a": 1}]
    made = gathered()
    good = stream([part(SYSTEM), prompt("x")])
    for value in odd:
        assembly = {
            "target": "model",
            "assembly_id": value,
            "ordered_blocks": value,
            "metadata": {"ctxctl": {"base": value, "splices": value, "agent_type": value}},
        }
        block = {"target": "model", "ordered_blocks": [{"item_refs": value, "role": value, "segment": value}]}
        item = {"item_id": value, "content": value, "content_ref": value, "title": value}
        for kind, data in (
            (vocab.ASSEMBLY_CREATED, assembly), (vocab.ASSEMBLY_CREATED, block),
            (vocab.ITEM_ADDED, item), (vocab.ITEM_ADDED, value),
        ):  # fmt: skip
            made.take([{"event_type": kind, "session_id": value, "thread_id": value, "data": data}])
    made.take(good)
    assert made.requests > 0


Json = dict[str, Any]


def request(number: int, blocks: list[int], thread: str, base: str | None, splices: list[Any]) -> Json:
    """An assembly of items by number; what a number stands for is told by `told`."""
    marks: Json = {"mode": "window", "agent_type": "y" if thread == "c" else "x"}
    if base is not None:
        marks |= {"base": base, "splices": splices}
    refs = [
        {"block_id": str(at), "role": "system", "item_refs": [f"i{item}"]} for at, item in enumerate(blocks)
    ]
    data = {
        "assembly_id": f"A{number}",
        "target": "model",
        "ordered_blocks": refs,
        "metadata": {"ctxctl": marks},
    }
    return {"event_type": vocab.ASSEMBLY_CREATED, "session_id": "s", "thread_id": thread, "data": data}


def told(item: int) -> Json:
    """That an item came: every third is a prompt, which nothing is learned of."""
    kind = "user_message" if item % 3 == 2 else "tool_definition"
    data = {"item_id": f"i{item}", "context_kind": kind, "content": f"text {item}"}
    return {"event_type": vocab.ITEM_ADDED, "session_id": "s", "data": data}


@st.composite
def spliced_and_whole(draw: st.DrawFn) -> tuple[list[Json], list[Json]]:
    """Requests of some threads, as changes of one before and listed whole."""
    spliced = [told(item) for item in range(12)]
    whole = list(spliced)
    windows: dict[str, list[int]] = {}
    for number in range(draw(st.integers(1, 8))):
        thread = draw(st.sampled_from(["main", "a", "b", "c"]))
        base = draw(st.sampled_from([None, *windows]))
        items = st.lists(st.integers(0, 11), max_size=6)
        if base is None:
            window, change, splices = (blocks := draw(items)), blocks, []
        else:
            old = windows.pop(base)
            window, change, splices, end = [], [], [], 0
            for _ in range(draw(st.integers(0, 12))):
                at = draw(st.integers(end, max(end, len(old) + 2)))
                removed, new = draw(st.integers(0, 3)), draw(items)
                window += old[end:at] + new
                change += new
                splices.append([at, removed, len(new)])
                end = at + removed
            window += old[end:]
        windows[f"A{number}"] = window
        spliced.append(request(number, change, thread, base, splices))
        whole.append(request(number, window, thread, None, []))
    return spliced, whole


@given(spliced_and_whole())
def test_of_changes_is_learned_what_is_learned_of_whole_windows(
    streams: tuple[list[Json], list[Json]],
) -> None:
    spliced, whole = (gathered(events).learned("c", "1.0") for events in streams)
    assert spliced == whole


def test_what_a_request_of_no_kind_took_out_is_gone_for_the_next_one_too() -> None:
    unknown = request(1, [], "side", "A0", [[1, 1, 0]])
    del unknown["data"]["metadata"]["ctxctl"]["agent_type"]
    events = [
        told(0),
        told(1),
        request(0, [0, 1], "main", None, []),
        unknown,
        request(2, [], "main", "A1", []),
    ]
    learned = gathered(events).learned("c", "1.0")
    assert learned is not None
    assert [learned.contents[item.digest] for item in learned.threads["main"]] == ["text 0"]


def test_a_client_that_a_request_of_no_kind_names_is_known_from_the_next_one() -> None:
    billing = told(0)
    billing["data"]["content"] = "x-anthropic-billing-header: cc_version=2.1.3.abc;"
    unknown = request(0, [0, 1], "side", None, [])
    del unknown["data"]["metadata"]["ctxctl"]["agent_type"]
    made = gathered([billing, told(1), unknown, request(1, [], "main", "A0", [])])
    assert (made.client, made.version) == ("claude-code", "2.1.3")


def test_sessions_are_joined_in_the_order_of_their_first_requests() -> None:
    def of(session: str, number: int, item: int, thread: str) -> Json:
        return {**request(number, [item], thread, None, []), "session_id": session}

    one, two = told(0), told(0)
    two["data"] |= {"item_id": "i1", "content": "text 0 of another session"}
    events = [one, two, told(3), told(4)]
    # Of the main thread's requests of the first session, nothing is in all.
    events += [of("A", 0, 3, "main"), of("A", 1, 4, "main"), of("B", 2, 0, "a"), of("A", 3, 1, "a")]
    learned = gathered(events).learned("c", "1.0")
    assert learned is not None
    assert [learned.contents[item.digest] for item in learned.threads["agent:x"]] == ["text 0"]


def test_windows_that_are_built_upon_other_threads_are_compared_up_to_a_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gather, "_MAX_COMPARED", 30)
    events = [told(item) for item in range(12)]
    events.append(request(0, list(range(12)), "main", None, []))
    # Each on the one before, and by turns of two threads: all that they hold is compared anew.
    events += [request(n, [], "ac"[n % 2], f"A{n - 1}", []) for n in range(1, 9)]
    made = gathered(events)
    assert made.is_cut
    assert made.requests == 3
    learned = made.learned("c", "1.0")
    assert learned is not None
    assert len(learned.threads["main"]) == 8
