"""What is learned of a recording: what stands in every request of a kind of thread."""

from __future__ import annotations

from copy import copy

from ctxctl.ingest.parts import Part
from ctxctl.ingest.run import Run
from ctxctl.providers.dialects.slots import structured
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
    assert [title for kind, title in kinds(made) if kind == "tool_definition"] == [
        "Agent", "DeferredToolPlaceholder", "Read",
    ]  # fmt: skip
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
            ("context.assembly.created", assembly), ("context.assembly.created", block),
            ("context.item.added", item), ("context.item.added", value),
        ):  # fmt: skip
            made.take([{"event_type": kind, "session_id": value, "thread_id": value, "data": data}])
    made.take(good)
    assert made.requests > 0
