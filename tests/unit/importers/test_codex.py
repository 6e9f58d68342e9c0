"""Codex rollouts: which requests there were, what each carried, and what it was billed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxctl.importers.codex import CODEX, CODEX_EXEC
from ctxctl.importers.codex.forks import uuid_time
from ctxctl.importers.codex.parts import cut_output
from ctxctl.model.results import Step
from ctxctl.session import Inspector
from tests.unit.importers.agent_help import (
    DAMAGES,
    FIXTURES,
    Json,
    damaged,
    imported,
    items,
    jsonl,
    of_type,
    windows,
    written,
)

ROLLOUTS = ("rollout", "legacy", "bare", "fork")
SEALED = ("thread_summary", "image", "reasoning")


def fixture(name: str) -> Path:
    return FIXTURES / ("codex_exec" if name == "exec" else "codex") / f"{name}.jsonl"


def envelope(kind: str, **payload: Any) -> Json:
    return {"timestamp": "2026-06-18T09:00:00.000Z", "type": kind, "payload": payload}


META = envelope(
    "session_meta", id="s1", base_instructions={"text": "You are Codex."}, model_provider="openai"
)


def said(role: str, text: str, **fields: Any) -> Json:
    kind = "output_text" if role == "assistant" else "input_text"
    return envelope(
        "response_item", type="message", role=role, content=[{"type": kind, "text": text}], **fields
    )


def counted(total: int, last: int, **info: Any) -> Json:
    usage = {
        "input_tokens": total,
        "cached_input_tokens": 0,
        "output_tokens": 0,
        "reasoning_output_tokens": 0,
    }
    both = {"total_token_usage": usage, "last_token_usage": {**usage, "input_tokens": last}}
    return envelope("event_msg", type="token_count", info={**both, **info})


def called(call: str) -> Json:
    return envelope("response_item", type="function_call", name="shell", arguments="{}", call_id=call)


def output(call: str, text: str) -> Json:
    return envelope("response_item", type="function_call_output", call_id=call, output=text)


# -- the fixture of a present version -----------------------------------------------------------------------


def test_a_request_is_made_at_the_start_of_a_turn_and_after_tool_output() -> None:
    found = windows(fixture("rollout"), "codex")
    assert [w.billed() for w in found] == [6100, 6400, 6900, 6800, 7000, 5900]
    turns = [int((w.turn or "")[-1]) for w in found]
    assert turns == [1, 1, 1, 2, 3, 4]


def test_a_window_begins_with_tools_and_instructions() -> None:
    first = windows(fixture("rollout"), "codex")[0]
    assert first.kinds() == [
        "tool_definition", "system_prompt", "developer_instruction", "developer_instruction",
        "durable_memory", "runtime_state", "user_message", "image",
    ]  # fmt: skip
    assert first.step.window.limit == 258400
    assert first.step.model == "gpt-5.4"


def test_an_answer_and_its_outputs_enter_with_the_next_request() -> None:
    second = windows(fixture("rollout"), "codex")[1]
    assert second.texts()[8:] == [
        "**Looking it up**",
        None,
        "I look it up.",
        'exec_command {"cmd":"cat monday.txt","workdir":"/home/user/tides"}',
        'harbour.read_gauge {"place":"pier"}',
        "Process exited with code 0\nOutput:\n06:12 3.4 m\n18:40 3.1 m",
        "gauge: 1.2 m",
        None,
    ]


def test_tools_that_a_search_found_are_definitions_where_they_were_found() -> None:
    third = windows(fixture("rollout"), "codex")[2]
    assert third.kinds()[-3:] == ["tool_call", "tool_call", "tool_definition"]
    assert third.texts()[-3] == 'web_search {"query":"spring tide June","type":"search"}'


def test_a_rollback_takes_back_the_prompt_and_what_came_after_it() -> None:
    fourth, fifth = windows(fixture("rollout"), "codex")[3:5]
    assert "Forget Monday, what about Sunday?" in fourth.texts()
    assert "Forget Monday, what about Sunday?" not in fifth.texts()
    assert "High water is at 06:12 and 18:40." in fifth.texts()
    gone = [c for c in fifth.step.changes if c.status == "removed"]
    assert {c.cause for c in gone} == {"branched"}


def test_a_compaction_puts_the_recorded_history_in_place_of_the_old_one() -> None:
    last = windows(fixture("rollout"), "codex")[5]
    assert last.kinds() == [
        "tool_definition", "system_prompt", "user_message", "user_message", "developer_instruction",
        "thread_summary", "user_message",
    ]  # fmt: skip
    assert last.texts()[-2:] == [None, "And Wednesday?"]
    assert last.step.window.uncounted == 1
    assert "compacted" in {c.cause for c in last.step.changes}


def test_sealed_and_binary_content_is_never_text() -> None:
    found, _ = imported("codex", fixture("rollout").read_bytes())
    assert "gAAAA" not in "".join(str(item.get("content")) for item in items(found).values())
    images = [i for i in items(found).values() if i["context_kind"] == "image"]
    assert {(i["content_mode"], i["mime_type"]) for i in images} == {("opaque", "image/png")}


def test_display_events_are_not_counted_twice() -> None:
    found, problems = imported("codex", fixture("rollout").read_bytes())
    texts = [i.get("content") for i in items(found).values()]
    assert texts.count("I look it up.") == 1
    assert not problems


# -- older forms --------------------------------------------------------------------------------------------


def test_the_legacy_form_has_turns_by_prompt_and_a_summary_in_the_open() -> None:
    found = windows(fixture("legacy"), "codex")
    assert [w.turn for w in found] == ["turn-1", "turn-1", "turn-1", "turn-2"]
    assert [w.billed() for w in found] == [3500, 3700, 2900, 3300]
    assert found[0].texts()[0] == "Times are local."
    assert found[3].items[1:] == [
        ("runtime_state", "<environment_context>\n  <cwd>/home/user/tides</cwd>\n</environment_context>"),
        ("user_message", "Read the gauge."),
        ("thread_summary", "Another model read the gauge: 1.2 m."),
        ("user_message", "And now?"),
    ]


def test_the_bare_form_has_neither_times_nor_usage() -> None:
    found = windows(fixture("bare"), "codex")
    assert [w.turn for w in found] == ["turn-1", "turn-1", "turn-2"]
    assert found[2].texts() == [
        "Times are local.", "How deep is the harbour?", "**Depth**", 'shell {"command":["cat","depth.txt"]}',
        '{"output":"8 m","metadata":{"exit_code":0}}', "Eight metres.", "At low water?",
    ]  # fmt: skip
    assert all(w.step.usage is None for w in found)


def test_untyped_items_and_display_events_are_read_where_there_is_nothing_else(tmp_path: Path) -> None:
    loose = windows(
        written(tmp_path, {"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}),
        "codex",
    )
    assert loose[0].items == [("user_message", "Hello")]
    shown = windows(
        written(
            tmp_path,
            META,
            envelope("event_msg", type="user_message", message="Hello"),
            envelope("event_msg", type="agent_message", message="Hi"),
            envelope("event_msg", type="user_message", message="More"),
            envelope("event_msg", type="agent_message", message="No"),
        ),
        "codex",
    )
    assert [w.texts()[1:] for w in shown] == [["Hello"], ["Hello", "Hi", "More"]]


def test_a_prompt_displayed_before_the_first_item_is_that_item(tmp_path: Path) -> None:
    display = envelope("event_msg", type="user_message", message="Hello", images=[])
    started = envelope("event_msg", type="task_started", turn_id="t1")
    rules, asked, reply = (
        said("developer", "Be brief."),
        said("user", "Hello", id="msg-1"),
        said("assistant", "Hi"),
    )
    (found,) = windows(written(tmp_path, META, display, started, rules, asked, reply), "codex")
    assert found.items[1:] == [("developer_instruction", "Be brief."), ("user_message", "Hello")]
    assert found.step.counts.added == 3
    assert "msg-1" in {change.item for change in found.step.changes}


def test_a_prompt_that_is_only_displayed_stands_behind_its_context(tmp_path: Path) -> None:
    display = envelope("event_msg", type="user_message", message="Hello")
    other = said("user", "<environment_context>\n  <cwd>/a</cwd>\n</environment_context>")
    (found,) = windows(written(tmp_path, META, display, other, said("assistant", "Hi")), "codex")
    assert [kind for kind, _ in found.items[1:]] == ["runtime_state", "user_message"]


def test_a_prompt_that_is_only_displayed_keeps_its_time(tmp_path: Path) -> None:
    display = envelope("event_msg", type="user_message", message="Hello")
    reply = {**said("assistant", "Hi"), "timestamp": "2026-06-18T09:05:00.000Z"}
    events, _ = imported("codex", jsonl(META, display, reply))
    (prompt,) = [
        e for e in events if e["data"].get("item_type") == "user_message" or "Hello" in str(e["data"])
    ]
    assert "2026-06-18T09:00:00" in str(prompt)
    assert "09:05:00" not in str(prompt)


def test_each_of_two_equal_prompts_waits_for_an_item_of_its_own(tmp_path: Path) -> None:
    display = envelope("event_msg", type="user_message", message="on")
    log = written(tmp_path, META, display, display, said("user", "on"), said("assistant", "Hi"))
    (found,) = windows(log, "codex")
    assert found.texts()[1:] == ["on", "on"]


# -- requests and counts ------------------------------------------------------------------------------------


def test_a_count_that_says_nothing_new_is_no_request(tmp_path: Path) -> None:
    null = envelope("event_msg", type="token_count", info=None)
    records = [META, said("user", "a"), null, said("assistant", "b"), *[counted(10, 10)] * 661, null]
    found = windows(written(tmp_path, *records), "codex")
    assert [w.billed() for w in found] == [10]


def test_counts_without_items_are_requests(tmp_path: Path) -> None:
    found = windows(written(tmp_path, META, counted(10, 10), counted(10, 10), counted(25, 15)), "codex")
    assert [w.billed() for w in found] == [10, 15]


def test_a_count_before_its_answer_belongs_to_the_answer(tmp_path: Path) -> None:
    records = [META, said("user", "a"), counted(10, 10), called("c"), output("c", "o"), counted(30, 20)]
    found = windows(written(tmp_path, *records, said("assistant", "b")), "codex")
    assert [w.billed() for w in found] == [10, 20]
    assert found[1].texts()[1:] == ["a", "shell {}", "o"]


def test_where_only_totals_are_told_their_growth_is_the_bill(tmp_path: Path) -> None:
    first, second = counted(10, 0), counted(35, 0)
    for record in (first, second):
        del record["payload"]["info"]["last_token_usage"]
    records = [
        META,
        said("user", "a"),
        said("assistant", "b"),
        first,
        said("user", "c"),
        said("assistant", "d"),
    ]
    assert [w.billed() for w in windows(written(tmp_path, *records, second), "codex")] == [10, 25]


def test_a_stopped_request_is_billed_from_what_the_total_grew_by(tmp_path: Path) -> None:
    aborted = envelope("event_msg", type="turn_aborted", turn_id="t", reason="interrupted")
    records = [
        META,
        said("user", "a"),
        said("assistant", "b"),
        counted(10, 10),
        said("user", "c"),
        called("x"),
    ]
    records += [aborted, said("user", "d"), said("assistant", "e"), counted(45, 20)]
    found, _ = imported("codex", jsonl(*records))
    bills = of_type(found, "ctxctl.usage.reported")
    assert [b["input_tokens"] for b in bills] == [10, 15, 20]
    assert bills[1]["metadata"]["ctxctl"] == {"derived": True}
    assert [w.billed() for w in windows(written(tmp_path, *records), "codex")] == [10, 15, 20]


def test_calls_that_a_model_numbers_anew_are_told_apart(tmp_path: Path) -> None:
    records = [META]
    for text in ("one", "two"):
        records += [said("user", "go"), called("call_0"), output("call_0", text), said("assistant", "ok")]
    last = windows(written(tmp_path, *records), "codex")[-1]
    assert last.texts().count("one") == last.texts().count("two") == 1


def test_instructions_change_in_place_when_the_metadata_repeat(tmp_path: Path) -> None:
    again = envelope("session_meta", id="s1", base_instructions={"text": "You are Codex, again."})
    records = [META, said("user", "a"), said("assistant", "b"), META, again, said("user", "c")]
    found = windows(written(tmp_path, *records, said("assistant", "d")), "codex")
    assert found[1].texts() == ["You are Codex, again.", "a", "b", "c"]


def test_instructions_in_metadata_are_taken_only_if_no_message_carries_them(tmp_path: Path) -> None:
    context = envelope(
        "turn_context", model="m", user_instructions="Be kind.", developer_instructions="Be exact."
    )
    without = windows(written(tmp_path, META, context, said("user", "a"), said("assistant", "b")), "codex")
    assert without[0].texts() == ["You are Codex.", "Be kind.", "Be exact.", "a"]
    assert without[0].kinds()[1:3] == ["durable_memory", "developer_instruction"]
    told, _ = imported("codex", jsonl(META, context, said("user", "a"), said("assistant", "b")))
    (sent,) = of_type(told, "context.assembly.created")
    assert [block["role"] for block in sent["ordered_blocks"]] == ["system", "user", "developer", "user"]
    carried = [
        said("developer", "Be exact."),
        said("user", "<user_instructions>\nBe kind.\n</user_instructions>"),
    ]
    records = [META, context, *carried, said("user", "a"), said("assistant", "b")]
    assert windows(written(tmp_path, *records), "codex")[0].texts()[3:] == ["a"]


def test_a_block_of_text_without_its_text_is_nothing_and_one_of_another_type_its_json(tmp_path: Path) -> None:
    blocks = [
        {"type": "input_text"},
        {"text": None},
        {"type": "input_text", "text": "a"},
        {"type": "map", "at": 7},
    ]
    asked = envelope("response_item", type="message", role="user", content=blocks)
    (found,) = windows(written(tmp_path, META, asked, said("assistant", "b")), "codex")
    assert found.texts() == ["You are Codex.", "a", '{"at":7,"type":"map"}']


# -- forks and sub-agents -----------------------------------------------------------------------------------


def test_a_fork_carries_its_parents_history_but_none_of_its_requests() -> None:
    found = windows(fixture("fork"), "codex")
    assert [w.billed() for w in found] == [6300]
    assert found[0].texts()[1:] == [
        "When is high water on Monday?", "At 06:12.", "Compare it with the almanac."
    ]  # fmt: skip
    events, _ = imported("codex", fixture("fork").read_bytes())
    (assembly,) = of_type(events, "context.assembly.created")
    marks = assembly["metadata"]["ctxctl"]
    assert marks["parent_thread"] == "019ed000-0000-7000-8000-0000000000aa"
    assert marks["agent_type"] == "explorer"


def test_a_fork_without_ids_that_tell_time_is_a_copy_as_long_as_its_lines_come_in_one_burst() -> None:
    def at(milliseconds: int, record: Json) -> Json:
        return {**record, "timestamp": f"2026-06-18T09:00:{milliseconds / 1000:06.3f}Z"}

    meta = envelope("session_meta", id="child", forked_from_id="parent")
    copied = [at(1, said("user", "a")), at(2, said("assistant", "b")), at(3, counted(10, 10))]
    own = [at(4000, said("user", "c")), at(9000, said("assistant", "d")), at(9100, counted(30, 20))]
    found, _ = imported("codex", jsonl(at(0, meta), *copied, *own))
    assert [b["input_tokens"] for b in of_type(found, "ctxctl.usage.reported")] == [20]


def test_a_sub_agent_that_brings_its_parents_record_is_a_fork() -> None:
    lines = fixture("fork").read_bytes().replace(b'"forked_from_id":', b'"was_forked_from":')
    found, _ = imported("codex", lines)
    assert [b["input_tokens"] for b in of_type(found, "ctxctl.usage.reported")] == [6300]


MAIL = {"author": "/lead", "recipient": "/lead/scout", "content": "Look.", "trigger_turn": True}


@pytest.mark.parametrize(
    "mail",
    [
        envelope("inter_agent_communication", **MAIL),
        said("assistant", json.dumps(MAIL, separators=(",", ":"))),
    ],
)
def test_what_another_agent_says_is_no_answer(tmp_path: Path, mail: Json) -> None:
    found = windows(written(tmp_path, META, mail, said("assistant", "Seen.")), "codex")
    assert [w.items[1:] for w in found] == [[("peer_agent_message", "Look.")]]


def test_a_sealed_message_of_another_agent_has_no_text(tmp_path: Path) -> None:
    mail = envelope("inter_agent_communication", **{**MAIL, "content": "", "encrypted_content": "c2VhbGVk"})
    found = windows(written(tmp_path, META, mail, said("assistant", "Seen.")), "codex")
    assert [w.items[1:] for w in found] == [[("peer_agent_message", None)]]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("<external_board>\nx\n</external_board>", "external_resource"),
        ("<external_context source='b'>x</external_context>", "external_resource"),
        ('<codex_internal_context source="goal">\nx\n</codex_internal_context>', "policy_note"),
        ("<extension_context>\nx\n</extension_context>", "policy_note"),
        ("Warning: apply_patch was requested via exec_command. Use apply_patch.", "policy_note"),
        ("<image name=[Image #1]>", "policy_note"),
        ("</image>", "policy_note"),
        ("<external_board> is a tag", "user_message"),
        ("Warning: this is mine", "user_message"),
    ],
)
def test_what_codex_says_in_the_persons_place(tmp_path: Path, text: str, kind: str) -> None:
    found = windows(written(tmp_path, META, said("user", text), said("assistant", "Yes.")), "codex")
    assert [w.kinds()[1:] for w in found] == [[kind]]


def test_outputs_over_the_limit_are_cut_in_the_middle(tmp_path: Path) -> None:
    turn = envelope("turn_context", turn_id="t1", truncation_policy={"mode": "tokens", "limit": 4})
    call = envelope("response_item", type="function_call", name="look", arguments="{}", call_id="c1")
    lines = [META, turn, said("user", "Go."), call]
    for number, output in enumerate(["0123456789" * 3, "0123456789…3 tokens truncated…0123456789"], 1):
        result = envelope("response_item", type="function_call_output", call_id="c1", output=output)
        found = windows(written(tmp_path, *lines, result, said("assistant", f"{number}.")), "codex")
        assert found[1].items[-1] == ("tool_result", "0123456789…3 tokens truncated…0123456789")
    assert cut_output("é" * 20, {"mode": "bytes", "limit": 10}) == "ééé…14 chars truncated…ééé"
    for policy in (
        None,
        5,
        {},
        {"mode": "tokens"},
        {"mode": "x", "limit": 1},
        {"mode": "bytes", "limit": 99},
    ):
        assert cut_output("é" * 20, policy) is None


def test_a_block_whose_type_is_no_word_is_kept_as_json(tmp_path: Path) -> None:
    blocks: list[Json] = [{"type": "input_text", "text": "a"}, {"type": {"b": [1]}}]
    result = envelope("response_item", type="function_call_output", call_id="c1", output=blocks)
    lines = [
        envelope("session_meta", id="s"),
        said("user", "Go."),
        called("c1"),
        result,
        said("assistant", "1"),
    ]
    assert ("tool_result", '{"type":{"b":[1]}}') in windows(written(tmp_path, *lines), "codex")[-1].items


def test_the_time_of_an_id() -> None:
    assert uuid_time("019ed836-b1da-78f1-8a0c-e598363d10f4") == 0x019ED836B1DA
    assert uuid_time("2426852d-6cf5-4e90-be9f-e45fc6c7d5e4") is None
    assert uuid_time(None) is None


# -- exec logs ----------------------------------------------------------------------------------------------


def test_an_exec_log_tells_what_was_done_and_no_bill_of_a_request() -> None:
    found = windows(fixture("exec"), "codex-exec")
    assert [w.kinds() for w in found] == [
        [],
        ["reasoning", "tool_call", "tool_result", "tool_call", "tool_result"],
    ]
    assert all(w.step.usage is None for w in found)
    events, _ = imported("codex-exec", fixture("exec").read_bytes())
    assert of_type(events, "codex.turn.completed")[0]["usage"]["output_tokens"] == 122
    assert {e["session_id"] for e in events} == {"019ed999-0000-7000-8000-0000000000ee"}


# -- detection and damage -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ROLLOUTS)
def test_rollouts_are_known_by_their_lines(name: str) -> None:
    data = fixture(name).read_bytes()
    assert CODEX.detect(data) >= 75
    assert CODEX.detect(b"\xef\xbb\xbf\n\n{broken\n" + data) >= 75
    assert CODEX_EXEC.detect(data) == 0


def test_a_first_line_longer_than_the_head_is_enough() -> None:
    assert CODEX.detect(fixture("rollout").read_bytes()[:300]) >= 75
    assert CODEX_EXEC.detect(fixture("exec").read_bytes()) >= 75


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"user","uuid":"u","parentUuid":null,"message":{}}',
        b'{"type":"message","id":"m","parentId":"p","message":{"role":"user"}}',
        b'{"event_type":"context.item.added","data":{}}',
        b'{"type":"reasoning","text":"x"}',
        b"",
    ],
)
def test_other_lines_are_not_claimed(line: bytes) -> None:
    assert CODEX.detect(line) == 0
    assert CODEX_EXEC.detect(line) == 0


@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("name", [*ROLLOUTS, "exec"])
def test_no_damage_raises(name: str, how: str) -> None:
    kind = "codex-exec" if name == "exec" else "codex"
    for data in damaged(fixture(name).read_bytes(), how):
        imported(kind, data)


@pytest.mark.parametrize("value", [None, 7, "x", [], [3], {}, {"text": 4}, True])
def test_fields_of_any_type_are_tolerated(value: Any) -> None:
    records: list[Json] = []
    for line in fixture("rollout").read_text().splitlines():
        record: Json = json.loads(line)
        records += [{**record, "payload": {**record["payload"], name: value}} for name in record["payload"]]
        records += [{**record, name: value} for name in record]
    imported("codex", jsonl(*records))


def _fork_of(tmp_path: Path) -> tuple[Path, Path, Path]:
    """A parent and two forks of it whose lines' times tell nothing: one every two seconds, no turn ids."""

    def at(seconds: int, record: Json) -> Json:
        return {**record, "timestamp": f"2026-06-18T09:{seconds // 60:02}:{seconds % 60:02}.250Z"}

    def write(name: str, *records: Json) -> Path:
        path = tmp_path / "sessions/2026/06/18" / f"{name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(jsonl(*(at(2 * n, record) for n, record in enumerate(records))))
        return path

    history = [said("user", "a"), said("assistant", "b"), counted(10, 10), said("user", "c"), counted(25, 15)]
    parent = write("rollout-parent", envelope("session_meta", id="parent"), *history, counted(45, 20))
    forks = [
        write(
            name,
            envelope("session_meta", id=name, forked_from_id="parent"),
            *history,
            said("user", "mine"),
            said("assistant", "yes"),
            counted(25 + own, own),
        )
        for name, own in (("one", 30), ("two", 40))
    ]
    return parent, *forks


def _bills(path: Path) -> dict[str, list[int | None]]:
    with Inspector.open(path) as inspector:
        found: dict[str, list[int | None]] = {}
        for step in inspector.replay():
            if isinstance(step, Step):
                reported = step.usage.reported_input if step.usage is not None else None
                found.setdefault(str(step.session), []).append(reported)
        return found


def test_a_fork_bills_what_its_parents_rollout_lacks(tmp_path: Path) -> None:
    parent, one, two = _fork_of(tmp_path)
    assert _bills(one) == {"one": [30]}
    assert _bills(two) == {"two": [40]}
    whole = {"parent": [10, 15, 20], "one": [30], "two": [40]}
    assert _bills(parent.parent) == _bills(tmp_path) == whole
    assert [w.texts() for w in windows(one, "codex")] == [["a", "b", "c", "mine"]]


def test_two_forks_tell_what_is_their_lost_parents(tmp_path: Path) -> None:
    parent, one, two = _fork_of(tmp_path)
    parent.unlink()
    assert _bills(one.parent) == {"one": [30], "two": [40]}
    assert _bills(two) == {"two": [40]}


def test_a_parent_is_found_in_another_directory_of_the_same_home(tmp_path: Path) -> None:
    parent, one, two = _fork_of(tmp_path)
    two.unlink()
    archive = tmp_path / "archived_sessions"
    archive.mkdir()
    parent.rename(archive / "rollout-2026-06-18T09-00-00-parent.jsonl")
    assert _bills(one) == {"one": [30]}


def test_a_fork_alone_whose_times_are_whole_seconds_is_a_copy_up_to_the_first_pause() -> None:
    def at(seconds: int, record: Json) -> Json:
        return {**record, "timestamp": f"2026-06-18T09:00:{seconds:02}Z"}

    meta = envelope("session_meta", id="child", forked_from_id="parent")
    copied = [at(1, said("user", "a")), at(2, said("assistant", "b")), at(3, counted(10, 10))]
    own = [at(20, counted(30, 20)), at(21, counted(60, 30))]
    found, _ = imported("codex", jsonl(at(0, meta), *copied, *own))
    assert [b["input_tokens"] for b in of_type(found, "ctxctl.usage.reported")] == [20, 30]
