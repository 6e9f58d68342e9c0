"""Requests sorted into threads, turns and steps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ctxctl.analysis.why.answer import explain_item
from ctxctl.model.results import Step
from ctxctl.session import Inspector
from tests.unit.providers import wire_rebuild

Json = dict[str, Any]
TOOLS = [{"name": "read", "input_schema": {}}, {"name": "write", "input_schema": {}}]


def user(*texts: str) -> Json:
    return {"role": "user", "content": [{"type": "text", "text": text} for text in texts]}


def said(text: str) -> Json:
    return {"role": "assistant", "content": [{"type": "text", "text": text}]}


def asked(*messages: Json, system: str = "You are a pilot.", tools: Any = TOOLS, **fields: Any) -> Json:
    body = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 9,
        "system": system,
        "messages": list(messages),
        **fields,
    }
    return {**body, "tools": tools} if tools else body


def answered(text: str, **fields: Any) -> Json:
    return {"id": "m", "type": "message", "role": "assistant", "content": [{"type": "text", "text": text}],
            "usage": {"input_tokens": 3, "output_tokens": 1}, **fields}  # fmt: skip


def steps(tmp_path: Path, *pairs: Any) -> list[Step]:
    """The steps of a log of pairs (or bare requests), by thread; each held against its body."""
    path = tmp_path / "log.jsonl"
    records = [p if isinstance(p, dict) else {"request": p[0], "response": p[1]} for p in pairs]
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    with wire_rebuild.bodies() as sent, Inspector.open(str(path)) as inspector:
        found = [step for step in inspector.replay() if isinstance(step, Step)]
        assert wire_rebuild.check(inspector, sent) == len(found)
        assert not [p for p in inspector.problems if p.slug == "invalid-event"]
    return found


def places(found: list[Step]) -> list[tuple[str, int, int]]:
    return [(step.thread, step.turn, step.step) for step in found]


def changed(step: Step) -> tuple[int, int, int, int]:
    counts = step.counts
    return counts.added, counts.updated, counts.removed, counts.skipped


def test_a_conversation_is_one_thread_and_each_prompt_a_turn(tmp_path: Path) -> None:
    use = {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "read", "input": {}}]}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "text"}]}
    one = [user("first")]
    two = [*one, use, result]
    three = [*two, said("done"), user("second")]
    found = steps(
        tmp_path, (asked(*one), {"id": "m", "type": "message", "content": use["content"]}),
        (asked(*two), answered("done")), (asked(*three), answered("bye")), asked(*three),
    )  # fmt: skip
    assert places(found) == [("main", 1, 1), ("main", 1, 2), ("main", 2, 1), ("main", 2, 2)]
    assert [changed(step) for step in found] == [(4, 0, 0, 0), (2, 0, 0, 4), (2, 0, 0, 6), (0, 0, 0, 8)]


def test_a_reminder_behind_the_last_result_begins_no_turn(tmp_path: Path) -> None:
    note = user("<system-reminder>\nnote\n</system-reminder>")
    found = steps(tmp_path, asked(user("go"), note), asked(user("go"), said("well"), note))
    assert places(found) == [("main", 1, 1), ("main", 1, 2)]


def test_side_calls_are_threads_of_their_own_and_may_come_first(tmp_path: Path) -> None:
    title = asked(user("hello"), system="Write a title.", tools=None)
    other = asked(user("other"), system="Write a title.", tools=None)
    found = steps(tmp_path, title, asked(user("hello")), other, asked(user("hello"), said("x"), user("y")))
    assert sorted(places(found)) == [
        ("main", 1, 1), ("main", 2, 1), ("side-write-a-title", 1, 1), ("side-write-a-title", 2, 1),
    ]  # fmt: skip


def test_a_log_without_tools_has_its_first_conversation_as_main(tmp_path: Path) -> None:
    found = steps(tmp_path, asked(user("a"), tools=None), asked(user("a"), said("b"), user("c"), tools=None))
    assert places(found) == [("main", 1, 1), ("main", 2, 1)]


def test_concurrent_conversations_are_told_apart_by_their_first_message(tmp_path: Path) -> None:
    a1, b1 = [user("count the boats")], [user("count the gulls")]
    a2, b2 = [*a1, said("three"), user("more")], [*b1, said("nine"), user("more")]
    found = steps(tmp_path, asked(*a1), asked(*b1), asked(*a2), asked(*b2))
    assert sorted(places(found)) == [
        ("conversation", 1, 1), ("conversation", 2, 1), ("main", 1, 1), ("main", 2, 1),
    ]  # fmt: skip
    assert [step.counts.removed for step in found] == [0, 0, 0, 0]


def test_alike_notes_of_a_harness_do_not_make_two_conversations_one(tmp_path: Path) -> None:
    note = user("<environment_context>\nthe same machine\n</environment_context>")
    found = steps(tmp_path, asked(note, user("a task")), asked(note, user("another task")))
    assert {step.thread for step in found} == {"main", "conversation"}


def test_a_conversation_whose_first_message_changes_goes_on(tmp_path: Path) -> None:
    reply = "That is an answer of some length, told only once."
    found = steps(
        tmp_path, (asked(user("first")), answered(reply)),
        asked(user("first", "and a late note"), said(reply), user("on")),
    )  # fmt: skip
    assert places(found) == [("main", 1, 1), ("main", 2, 1)]


def test_a_history_that_slides_stays_its_thread(tmp_path: Path) -> None:
    history = [user("one"), said("two"), user("three"), said("four"), user("five")]
    found = steps(tmp_path, asked(*history), asked(*history[2:], said("six"), user("seven")))
    assert {step.thread for step in found} == {"main"}
    assert changed(found[1])[2:] == (2, 6)


def test_a_cut_in_the_middle_before_the_last_answer_is_no_branch(tmp_path: Path) -> None:
    """The request goes on with what it was answered: what went before was cut, and nothing says why."""
    history = [user("one"), said("two"), user("three")]
    reply = "That is an answer of some length, told only once."
    found = steps(tmp_path, (asked(*history), answered(reply)), asked(history[0], said(reply), user("on")))
    assert {step.thread for step in found} == {"main"}
    assert {c.cause for c in found[1].changes if c.status == "removed"} == {"unrecorded"}


def test_a_prompt_that_was_taken_back_is_a_branch(tmp_path: Path) -> None:
    history = [user("one"), said("two"), user("three"), said("four"), user("five")]
    found = steps(tmp_path, asked(*history), asked(*history[:2], user("other")))
    assert {step.thread for step in found} == {"main"}
    assert {c.cause for c in found[1].changes if c.status == "removed"} == {"branched"}


def used(call: str) -> Json:
    return {"role": "assistant", "content": [{"type": "tool_use", "id": call, "name": "read", "input": {}}]}


def gave(call: str) -> Json:
    return {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": call, "content": f"of {call}"}],
    }


def removals(step: Step) -> set[str | None]:
    return {change.cause for change in step.changes if change.status == "removed"}


def test_a_history_cut_between_prompt_and_last_answer_is_no_branch(tmp_path: Path) -> None:
    """It goes on with the last answer, so from no earlier point; why the middle is gone nothing says."""
    first, second = [user("go"), used("t1"), gave("t1")], [user("go"), used("t2"), gave("t2")]
    reply = {"id": "m", "type": "message", "role": "assistant", "content": used("t2")["content"]}
    found = steps(tmp_path, (asked(*first), reply), asked(*second))
    assert [step.thread for step in found] == ["main", "main"]
    assert removals(found[1]) == {"unrecorded"}
    assert "branched" not in found[1].flags


def test_a_cut_before_the_last_answers_text_is_no_branch(tmp_path: Path) -> None:
    history = [user("one"), said("two"), user("three")]
    found = steps(tmp_path, (asked(*history), answered("four")), asked(history[0], said("four"), user("on")))
    assert removals(found[1]) == {"unrecorded"}


def test_another_answer_than_the_last_is_a_branch(tmp_path: Path) -> None:
    history = [user("one"), said("two"), user("three")]
    found = steps(tmp_path, (asked(*history), answered("four")), asked(history[0], said("2"), user("on")))
    assert removals(found[1]) == {"branched"}


def test_whether_an_unrecorded_answer_was_gone_on_with_is_not_guessed(tmp_path: Path) -> None:
    history = [user("one"), said("two"), user("three")]
    found = steps(tmp_path, asked(*history), asked(history[0], said("four"), user("on")))
    assert removals(found[1]) == {"unrecorded"}


def test_after_a_compaction_the_thread_begins_anew(tmp_path: Path) -> None:
    history = [user("one"), said("two"), user("three")]
    summary = "The user counts: " + "one two three " * 30
    sums = asked(*history, said("four"), user("Sum it up."), system="You sum up conversations.", tools=None)
    found = steps(
        tmp_path, (asked(*history), answered("four")), (sums, answered(summary)),
        asked(user(f"So far:\n{summary}", "go on")),
    )  # fmt: skip
    assert sorted(places(found)) == [("main", 1, 1), ("main", 2, 1), ("side-you-sum-up-conversations", 1, 1)]
    last = next(step for step in found if (step.thread, step.turn) == ("main", 2))
    assert {c.cause for c in last.changes if c.status == "removed"} == {"compacted"}
    assert "thread_summary" in {c.kind for c in last.changes if c.status == "added"}


def test_a_changed_system_prompt_is_an_update_in_its_thread(tmp_path: Path) -> None:
    found = steps(
        tmp_path,
        asked(user("a"), system="It is Monday."),
        asked(user("a"), said("b"), user("c"), system="Tuesday."),
    )
    assert places(found) == [("main", 1, 1), ("main", 2, 1)]
    assert [c.item for c in found[1].changes if c.status == "updated"] == ["system:0"]


def test_an_agent_that_a_call_set_off_is_its_calls_thread(tmp_path: Path) -> None:
    task = "Look at every boat in the harbour and count them."
    call = {
        "type": "tool_use",
        "id": "t1",
        "name": "Task",
        "input": {"prompt": task, "subagent_type": "scout"},
    }
    path = tmp_path / "log.jsonl"
    pairs = [
        {"request": asked(user("go")), "response": {"id": "m", "type": "message", "content": [call]}},
        {
            "request": asked(user(task), system="You are a scout.", tools=TOOLS[:1]),
            "response": answered("five"),
        },
    ]
    path.write_text("".join(f"{json.dumps(pair)}\n" for pair in pairs))
    with Inspector.open(str(path)) as inspector:
        assert {s.thread for s in inspector.replay() if isinstance(s, Step)} == {"main", "agent-scout"}
        origin = [
            json.loads(inspector.trace.line(e.offset, e.length))["data"]["metadata"]["ctxctl"]
            for e in inspector.trace.events() if e.event_type == "context.assembly.created"
        ]  # fmt: skip
    assert (origin[1]["parent_thread"], origin[1]["parent_tool_call"], origin[1]["agent_type"]) == (
        "main", "t1", "scout",
    )  # fmt: skip


def test_a_request_that_was_refused_is_a_step_without_a_bill(tmp_path: Path) -> None:
    overloaded = {"type": "error", "error": {"type": "overloaded_error", "message": "later"}}
    found = steps(
        tmp_path, {"request": asked(user("a")), "response": overloaded, "status": 529},
        (asked(user("a")), answered("b")),
    )  # fmt: skip
    assert places(found) == [("main", 1, 1), ("main", 1, 2)]
    assert [step.usage.reported_input if step.usage else None for step in found] == [None, 3]


# -- histories that the provider holds --------------------------------------------------------------------


def turn(text: str, before: str | None = None, **fields: Any) -> Json:
    body = {
        "model": "gpt-5",
        "instructions": "Be kind.",
        "input": [{"role": "user", "content": text}],
        **fields,
    }
    return {**body, "previous_response_id": before} if before is not None else body


def response(name: str, text: str) -> Json:
    item = {"type": "message", "id": f"msg_{name}", "role": "assistant",
            "content": [{"type": "output_text", "text": text}]}  # fmt: skip
    return {
        "id": name,
        "object": "response",
        "output": [item],
        "usage": {"input_tokens": 4, "output_tokens": 1},
    }


def test_a_chain_of_responses_holds_what_its_earlier_ones_held(tmp_path: Path) -> None:
    found = steps(
        tmp_path, (turn("one"), response("r1", "uno")), (turn("two", "r1"), response("r2", "due")),
        (turn("three", "r2"), response("r3", "tre")), (turn("other", "r1"), response("r4", "altro")),
    )  # fmt: skip
    assert places(found) == [("main", at, 1) for at in (1, 2, 3, 4)]
    assert [changed(step) for step in found] == [(2, 0, 0, 0), (2, 0, 0, 2), (2, 0, 0, 4), (1, 0, 3, 3)]


def compacted(name: str, *texts: str) -> Json:
    """What OpenAI's `/responses/compact` answers: the prompts again, and the sealed summary."""
    prompts = [
        {
            "type": "message",
            "id": f"msg_{name}_{at}",
            "role": "user",
            "status": "completed",
            "content": [{"type": "input_text", "text": text}],
        }
        for at, text in enumerate(texts)
    ]
    return {
        "id": name,
        "object": "response.compaction",
        "output": [*prompts, {"type": "compaction", "id": f"cmp_{name}", "encrypted_content": name * 30}],
        "usage": {"input_tokens": 9, "output_tokens": 5},
    }


def compacting(tmp_path: Path, ordinal: int, *pairs: tuple[Json, Json | None]) -> dict[str, list[str]]:
    """What `why` says of compactions at a step, for the items of these tests: by item."""
    path = tmp_path / "log.jsonl"
    path.write_text("".join(f"{json.dumps({'request': a, 'response': b})}\n" for a, b in pairs))
    names = ["user_message-1", "msg_r1", "user_message-2", "msg_r2", "msg_c1_0", "msg_c1_1", "cmp_c1"]
    found = {}
    with Inspector.open(str(path)) as inspector:
        assert len([step for step in inspector.replay() if isinstance(step, Step)]) > ordinal
        for name in names:
            links = explain_item(inspector, ordinal, name, ids=True).links
            found[name] = [link.text for link in links if link.verdict == "compacted"]
    return found


def test_what_a_compaction_gives_out_was_not_compacted_by_it(tmp_path: Path) -> None:
    out = compacted("c1", "one", "two")
    found = compacting(
        tmp_path, 3, (turn("one"), response("r1", "uno")), (turn("two", "r1"), response("r2", "due")),
        ({"model": "gpt-5", "input": [], "previous_response_id": "r2"}, out),
        ({"model": "gpt-5", "input": [out["output"][-1], {"role": "user", "content": "three"}]}, None),
    )  # fmt: skip
    sources = ("user_message-1", "msg_r1", "user_message-2", "msg_r2")
    assert all("with 3 other items" in found[name][0] for name in sources)
    assert found["msg_c1_0"] == found["msg_c1_1"] == [], "the client left them out, not the compaction"


def test_what_a_compaction_gave_out_and_was_sent_can_be_compacted(tmp_path: Path) -> None:
    """And not before: what a client sends beside a summary stays in the history that the provider holds."""
    out, again = compacted("c1", "one", "two"), compacted("c2", "one")
    kept = {"model": "gpt-5", "input": [*out["output"], {"role": "user", "content": "three"}]}
    pairs = [
        (turn("one"), response("r1", "uno")),
        (turn("two", "r1"), response("r2", "due")),
        ({"model": "gpt-5", "input": [], "previous_response_id": "r2"}, out),
        (kept, response("r3", "tre")),
        ({"model": "gpt-5", "input": [], "previous_response_id": "r3"}, again),
        ({"model": "gpt-5", "input": [again["output"][-1], {"role": "user", "content": "four"}]}, None),
    ]
    before, after = compacting(tmp_path, 4, *pairs), compacting(tmp_path, 5, *pairs)
    given = ("msg_c1_0", "msg_c1_1", "cmp_c1")
    assert [before[name] for name in given] == [[], [], []]
    assert all("cmp_c2" in after[name][0] for name in given)


def test_a_chain_goes_on_from_all_that_a_compaction_gave_out(tmp_path: Path) -> None:
    out = compacted("c1", "one")
    found = steps(tmp_path, (turn("one"), response("r1", "uno")), (turn("two", "r1"), out), turn("on", "c1"))
    removed = {change.item for change in found[2].changes if change.status == "removed"}
    assert removed == {"user_message-1", "msg_r1", "user_message-2"}
    assert "msg_c1_0" in {change.item for change in found[2].changes if change.status == "added"}


def test_a_chain_with_other_instructions_keeps_its_history(tmp_path: Path) -> None:
    found = steps(
        tmp_path, (turn("one"), response("r1", "uno")),
        (turn("two", "r1", instructions="Be brief.", tools=[{"type": "function", "name": "f"}]), None),
    )  # fmt: skip
    assert changed(found[1]) == (3, 1, 0, 1)


def test_a_chain_keeps_what_a_developer_said_at_the_front_of_its_input(tmp_path: Path) -> None:
    """The provider keeps all input with an answer, and neither `instructions` nor tools."""
    rules = {"role": "developer", "content": "Only tests."}
    tools = [{"type": "function", "name": "f"}]
    first = {"model": "gpt-5", "tools": tools, "input": [rules]}
    more = {**first, "previous_response_id": "r1", "input": [
        {"role": "developer", "content": "No jokes."}, {"role": "user", "content": "go"},
    ]}  # fmt: skip
    last = {"model": "gpt-5", "previous_response_id": "r2", "input": [{"role": "user", "content": "on"}]}
    found = steps(tmp_path, (first, response("r1", "uno")), (more, response("r2", "due")), last)
    assert [changed(step) for step in found] == [(2, 0, 0, 0), (3, 0, 0, 2), (2, 0, 1, 4)]
    assert [change.item for change in found[2].changes if change.status == "removed"] == ["tool:f"]


def test_a_chain_whose_beginning_was_not_captured_says_so(tmp_path: Path) -> None:
    found = steps(tmp_path, turn("two", "r1"))
    assert [(c.kind, c.item) for c in found[0].changes] == [
        ("system_prompt", "instructions"),
        ("custom", "previous_response_id:r1"),
        ("user_message", "user_message-1"),
    ]
    assert found[0].counts.added == 3
    assert found[0].window.uncounted == 1


def test_cost_is_linear_in_what_is_sent(tmp_path: Path) -> None:
    """Many single calls, and a call id that comes again in every message."""
    use = {"role": "assistant", "content": [{"type": "tool_use", "id": "same", "name": "read", "input": {}}]}
    many = [asked(user(f"question {at}"), tools=None) for at in range(300)]
    found = steps(tmp_path, asked(user("go"), *[use] * 1500), *many)
    assert next(step for step in found if step.thread == "main").counts.added == 1504


def tools(*names: str) -> list[Json]:
    return [{"name": name, "input_schema": {}} for name in names]


def conversation(*turns: str) -> list[Json]:
    """Prompts and answers in turn, each long enough to be told from others."""
    return [(said if at % 2 else user)(f"{text}, at some length") for at, text in enumerate(turns)]


def test_a_conversation_whose_tools_grow_is_one_thread(tmp_path: Path) -> None:
    history = conversation("one", "two", "three", "four", "five")
    many = tools(*"abcdefgh")
    bodies = [
        asked(*history[:1], tools=tools("a")), asked(*history[:3], tools=many),
        asked(*history, tools=[*many, *tools("i", "j")]),
    ]  # fmt: skip
    bare = [{name: field for name, field in body.items() if name != "system"} for body in bodies]
    for one, two, three in (bodies, bare):
        found = steps(
            tmp_path, (one, answered("two, at some length")), (two, answered("four, at some length")), three
        )
        assert places(found) == [("main", 1, 1), ("main", 2, 1), ("main", 3, 1)]
        assert [step.counts.removed for step in found] == [0, 0, 0]


def test_a_conversation_that_gets_its_first_tools_later_is_the_main_one(tmp_path: Path) -> None:
    history = conversation("one", "two", "three")
    title = asked(history[0], system="Write a title.", tools=None)
    found = steps(
        tmp_path, title, (asked(history[0], tools=None), answered("two, at some length")),
        asked(*history, tools=tools("a", "b")),
    )  # fmt: skip
    assert sorted(places(found)) == [("main", 1, 1), ("main", 2, 1), ("side-write-a-title", 1, 1)]


def test_a_server_that_connects_in_a_turn_adds_its_tools_and_its_notes(tmp_path: Path) -> None:
    use = {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "a", "input": {}}]}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "text"}]}
    late = tools("a", *(f"mcp__maps__{name}" for name in "bcdefgh"))
    found = steps(
        tmp_path, (asked(user("go"), tools=tools("a", "x", "y")), {"id": "m", "type": "message", **use}),
        asked(user("go"), use, result, system="You are a pilot with maps.", tools=late),
    )  # fmt: skip
    assert places(found) == [("main", 1, 1), ("main", 1, 2)]


def test_what_is_made_of_a_history_is_no_growth_of_it(tmp_path: Path) -> None:
    history = conversation("one", "two", "three")
    for asks in (
        asked(*history, said("four"), user("Write a title."), tools=None),
        asked(*history, said("four"), user("Sum it up."), system="You sum up.", tools=tools("save")),
        asked(user("one, for another agent"), system="You look for boats.", tools=tools("read", "look")),
    ):
        found = steps(tmp_path, (asked(*history), answered("four")), asks)
        assert [step.thread for step in found if step.thread == "main"] == ["main"]


def test_what_a_compaction_left_standing_was_neither_removed_nor_added(tmp_path: Path) -> None:
    note = "<system-reminder>\nnotes on the machine\n</system-reminder>\n"
    history = [user(note, "one"), said("two"), user("three"), said("four"), user("five")]
    summary = "This session is being continued from a previous conversation: they counted."
    after = [user(note, summary), said("four"), user("five"), said("six"), user("on")]
    found = steps(tmp_path, asked(*history), asked(*after))
    last = found[1]
    assert "compacted" in last.flags
    assert {(c.kind, c.cause) for c in last.changes if c.status == "removed"} == {
        ("user_message", "compacted"), ("assistant_message", "compacted"),
    }  # fmt: skip
    # The tools, the system prompt, the note and the two last messages stand where they stood.
    assert changed(last) == (3, 0, 3, 6)
    stands = last.ledger.window_before - last.ledger.freed
    assert last.ledger.window_after == stands + last.ledger.new


def test_a_request_out_of_which_nothing_goes_is_no_branch(tmp_path: Path) -> None:
    plain = [{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}]
    history = [{"role": "user", "content": "zero"}, said("well"), *plain]
    again = [user("zero"), said("well"), user("one"), said("two"), user("three")]
    found = steps(tmp_path, asked(*history), asked(history[0], *again[1:]))
    assert [step.flags for step in found] == [(), ()]
