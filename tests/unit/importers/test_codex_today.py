"""Codex 0.152 to 0.169: what its rollouts hold, and which part of a request stands elsewhere."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from ctxctl.importers.registry import capture_events, detect
from ctxctl.trace.source import open_source
from tests.unit.importers.agent_help import FIXTURES, Json, imported, jsonl, of_type, windows

CODEX = FIXTURES / "codex"
EXEC = FIXTURES / "codex_exec"


def envelope(kind: str, **payload: Any) -> Json:
    return {"timestamp": "2026-11-22T09:00:00.000Z", "type": kind, "payload": payload}


def meta(text: str, version: str = "0.169.0", **more: Any) -> Json:
    origin = more.pop("provenance", {"type": "model", "model": "gpt-5"})
    base = {"text": text, "provenance": origin}
    return envelope("session_meta", id="s1", cli_version=version, base_instructions=base, **more)


def said(role: str, text: str, kind: str | None = None) -> Json:
    part = {"type": "output_text" if role == "assistant" else "input_text", "text": text}
    told = {"internal_chat_message_metadata_passthrough": {"content_item_kinds": [kind]}} if kind else {}
    return envelope("response_item", type="message", role=role, content=[part], **told)


def called(call: str, kind: str = "function_call", **more: Any) -> Json:
    return envelope("response_item", type=kind, name="shell", arguments="{}", call_id=call, **more)


def task(turn: str) -> Json:
    return envelope("event_msg", type="task_started", turn_id=turn)


def bill(tokens: int, thread: str = "s1") -> Json:
    usage = {"input_tokens": tokens, "cached_input_tokens": 0, "output_tokens": 1}
    return envelope("token_usage_record", thread_id=thread, response_id="r", usage=usage)


# -- the system prompt --------------------------------------------------------------------------------------

PLANS = (
    "You are Codex.\n\n## Planning\n\nYou have access to an `update_plan` tool. Use it.\n\n### Examples\n\n"
    "1. A plan\n\n## Answers\n\n- If you create a checklist or task list, you update it.\n- Be short.\n\n"
    "## `update_plan`\n\nCall it.\n"
)
SENT = "You are Codex.\n\n## Answers\n\n- Be short.\n\n"


def added(found: list[Json]) -> list[Json]:
    return of_type(found, "context.item.added")


def prompt(*records: Json) -> Json:
    found, _ = imported("codex", jsonl(*records, said("user", "hi"), said("assistant", "yes")))
    (one,) = (item for item in added(found) if item["context_kind"] == "system_prompt")
    return one


def test_what_the_instructions_say_of_a_tool_that_is_off_is_left_out_and_the_rest_derived() -> None:
    one = prompt(meta(PLANS))
    assert one["content"] == SENT
    assert one["metadata"]["ctxctl"]["derived"] is True


@pytest.mark.parametrize(
    "record",
    [
        meta(PLANS, "0.151.0"),
        meta(PLANS, provenance={"type": "custom"}),
        meta("You are Codex.\n\n## Planning\n\nPlan well.\n"),
    ],
    ids=["older", "a person's own", "no such tool"],
)
def test_instructions_that_go_out_as_they_are_are_native(record: Json) -> None:
    one = prompt(record)
    assert one["content"] == record["payload"]["base_instructions"]["text"]
    assert "derived" not in one.get("metadata", {}).get("ctxctl", {})


def test_a_call_of_the_tool_for_plans_tells_that_it_is_on() -> None:
    call = envelope("response_item", type="function_call", name="update_plan", arguments="{}", call_id="p")
    found, _ = imported("codex", jsonl(meta(PLANS), said("user", "hi"), call))
    assert PLANS in [item.get("content") for item in added(found)]


def test_instructions_and_tools_of_the_history_do_not_stand_before_it_too() -> None:
    found = windows(CODEX / "additional-tools.jsonl", "codex")
    assert len(found) == 3
    for window in found:
        kinds = window.kinds()
        assert kinds.count("system_prompt") == 1
        assert kinds[:12] == ["tool_definition"] * 11 + ["system_prompt"]
    assert found[0].billed() == 10783
    facts = imported("codex", (CODEX / "additional-tools.jsonl").read_bytes())[0]
    (one,) = (item for item in added(facts) if item["context_kind"] == "system_prompt")
    assert "derived" not in one.get("metadata", {}).get("ctxctl", {})


def test_a_compaction_that_leaves_them_out_puts_them_before_the_history_again() -> None:
    tools = envelope("response_item", type="additional_tools", role="developer",
                     tools=[{"type": "function", "name": "exec", "parameters": {}}])  # fmt: skip
    base = said("developer", "You are Codex.", "model.base_instructions")
    cut = envelope("compacted", message="", replacement_history=[
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
        {"type": "compaction", "encrypted_content": "c2VhbGVk"},
    ])  # fmt: skip
    found = _windows(
        meta("You are Codex."), tools, base, said("user", "hi"), said("assistant", "yes"), bill(10),
        cut, said("assistant", "more"), bill(5),
    )  # fmt: skip
    assert found[0].kinds() == ["tool_definition", "system_prompt", "user_message"]
    assert found[1].kinds() == ["system_prompt", "user_message", "thread_summary"]


def _windows(*records: Json) -> Any:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rollout.jsonl")
        path.write_bytes(jsonl(*records))
        return windows(path, "codex")


# -- bills --------------------------------------------------------------------------------------------------


def test_each_record_of_a_bill_is_a_request_and_running_totals_are_none() -> None:
    total = {"input_tokens": 999, "cached_input_tokens": 0, "output_tokens": 9}
    count = envelope("event_msg", type="token_count",
                     info={"total_token_usage": total, "last_token_usage": total})  # fmt: skip
    found = _windows(
        meta("x"), said("user", "a"), said("assistant", "b"), bill(10), count,
        bill(12), envelope("compacted", message="short", replacement_history=[]), count,
        said("user", "c"), bill(7, "another"), said("assistant", "d"), bill(20),
    )  # fmt: skip
    assert [window.billed() for window in found] == [10, 12, 20]


def test_a_compaction_whose_summary_is_not_logged_took_a_request_that_is_in_no_log() -> None:
    kept = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "a"}]}
    *_, last = _windows(
        meta("x"), said("user", "a"), said("assistant", "b"), bill(10),
        envelope("compacted", message="", replacement_history=[kept]), said("assistant", "c"), bill(7),
    )  # fmt: skip
    (compaction,) = last.step.annotations.compactions
    assert (compaction.summary, compaction.request.input_tokens) == (None, 10)


def test_a_compaction_by_the_provider_is_a_request_of_the_whole_history() -> None:
    found = windows(CODEX / "compacted.jsonl", "codex")
    assert [window.billed() for window in found] == [2988, 900000, 3516, 2992, 3382]
    before, asked, after = found[1], found[2], found[3]
    assert asked.texts()[: len(before.texts())] == before.texts()
    assert len(asked.texts()) > len(before.texts())
    assert "thread_summary" in after.kinds()


# -- forks and sub-agents -----------------------------------------------------------------------------------


def test_a_fork_begins_with_its_parents_lines_that_its_own_rollout_does_not_copy() -> None:
    parent = windows(CODEX / "paginated.jsonl", "codex")
    fork = windows(CODEX / "paginated-fork.jsonl", "codex")
    assert len(parent) == 3
    assert len(fork) == 2
    before = parent[-1].texts()
    assert fork[0].texts()[: len(before)] == before
    assert fork[0].texts()[len(before) :] == [
        "High water on Monday is 3.4 m at 06:12; it stands in high.txt.", "Check it.",
    ]  # fmt: skip


def test_a_fork_whose_parent_is_not_there_says_what_its_windows_lack(tmp_path: Path) -> None:
    path = tmp_path / "paginated-fork.jsonl"
    shutil.copy(CODEX / path.name, path)
    found, problems = imported("codex", path.read_bytes())
    assert [problem.slug for problem in problems] == ["history-elsewhere"]
    assert "01a204c5-aef6-7db0-9417-cd01fb5112cd" in problems[0].message
    assert len(of_type(found, "context.injection.applied")) == 2
    assert len(windows(path, "codex")) == 2


def test_a_fork_of_its_own_is_no_endless_history(tmp_path: Path) -> None:
    base = {"thread_id": "s1", "end_ordinal_exclusive": 9, "end_byte_offset": 9999}
    path = tmp_path / "rollout-s1.jsonl"
    path.write_bytes(jsonl(meta("x", history_base=base), said("user", "a"), said("assistant", "b")))
    assert [window.texts() for window in windows(path, "codex")] == [["x", "a"]]


def test_a_sub_agent_asks_from_the_line_that_is_its_own() -> None:
    found = windows(CODEX / "spawned.jsonl", "codex")
    assert len(found) == 2
    assert found[0].texts()[-1] == "Count the notes."


def test_a_call_of_a_turn_that_is_over_gets_the_output_that_codex_sends() -> None:
    found = _windows(
        meta("x"), task("t1"), said("user", "a"), called("c1"), called("c2", "custom_tool_call", input="x"),
        task("t2"), said("user", "b"), said("assistant", "c"),
    )  # fmt: skip
    assert found[1].texts() == ["x", "a", "shell {}", "aborted", "shell x", "aborted", "b"]
    late = envelope("response_item", type="function_call_output", call_id="c1", output="done")
    found = _windows(
        meta("x"), task("t1"), said("user", "a"), called("c1"), task("t2"), said("user", "b"),
        said("assistant", "c"), late, said("assistant", "d"),
    )  # fmt: skip
    assert found[2].texts() == ["x", "a", "shell {}", "b", "c", "done"]


def test_a_call_of_the_local_shell_has_its_output_or_the_one_that_codex_sends() -> None:
    action = {"type": "exec", "command": ["ls"]}
    call = envelope("response_item", type="local_shell_call", call_id="c1", action=action)
    output = envelope("response_item", type="local_shell_call_output", call_id="c1", output="bees.txt")
    start = [meta("x"), task("t1"), said("user", "a"), call]
    left = _windows(*start, task("t2"), said("user", "b"), said("assistant", "c"))
    assert left[1].kinds()[2:] == ["tool_call", "tool_result", "user_message"]
    assert left[1].texts()[3:] == ["aborted", "b"]
    events, problems = imported("codex", jsonl(*start, output, said("assistant", "c")))
    made = {item["context_kind"]: item for item in added(events)}
    result = made["tool_result"]
    assert (result["item_id"], result["content"]) == ("c1/result", "bees.txt")
    assert result["title"] == made["tool_call"]["title"]
    assert not problems


def test_an_output_that_a_log_lacks_within_a_turn_is_not_made_up() -> None:
    found = _windows(
        meta("x"), task("t1"), said("user", "a"), called("c1"),
        envelope("response_item", type="function_call_output", call_id="other", output="o"),
        said("assistant", "c"),
    )  # fmt: skip
    assert found[1].texts() == ["x", "a", "shell {}", "o"]


def test_codex_own_name_for_a_text_decides_what_it_is() -> None:
    found = _windows(
        meta("x"), said("user", "<skill>typed</skill>", "user.text"),
        said("user", "Remember the tide.", "hooks.additional_context"), said("assistant", "yes"),
    )  # fmt: skip
    assert found[0].kinds() == ["system_prompt", "user_message", "policy_note"]


# -- exec logs ----------------------------------------------------------------------------------------------


def test_calls_without_a_word_between_them_are_taken_for_one_answers() -> None:
    found = windows(EXEC / "parallel.jsonl", "codex-exec")
    assert [len(window.texts()) for window in found] == [0, 6, 9]
    assert len({window.turn for window in found}) == 1


def test_a_log_under_data_reads_as_the_log_itself() -> None:
    plain = [window.texts() for window in windows(EXEC / "parallel.jsonl", "codex-exec")]
    assert [window.texts() for window in windows(EXEC / "wrapped.jsonl", "codex-exec")] == plain


def test_every_record_of_the_fixtures_is_one_that_the_importers_know() -> None:
    for path in sorted([*CODEX.glob("*.jsonl"), *EXEC.glob("*.jsonl")]):
        assert not [found for found in told(path) if found.startswith(("unknown-type", "newer"))], path


def test_a_record_of_another_type_and_a_newer_version_are_told(tmp_path: Path) -> None:
    path = tmp_path / "rollout.jsonl"
    path.write_bytes(
        jsonl(
            meta("x", "0.999.0"), said("user", "a"), envelope("event_msg", type="new_event"),
            envelope("response_item", type="new_item", text="b"), envelope("new_record", b=1),
            said("assistant", "c"),
        )
    )  # fmt: skip
    found = "\n".join(told(path))
    for wanted in ("'event_msg/new_event'", "'response_item/new_item'", "'new_record'", "0.999.0"):
        assert wanted in found


def told(path: Path) -> list[str]:
    found: list[str] = []
    with open_source(path) as source:
        form = detect(source)
        assert form is not None
        for _ in capture_events(form, source, lambda one: found.append(f"{one.slug} {one.message}")):
            pass
    return found


def test_a_thread_that_was_taken_back_twice_is_read_through_both_of_its_rollouts(tmp_path: Path) -> None:
    def write(name: str, first: int, *records: Json) -> None:
        numbered = [{**record, "ordinal": first + at} for at, record in enumerate(records)]
        (tmp_path / f"rollout-{name}.jsonl").write_bytes(jsonl(*numbered))

    def base(thread: str, end: int) -> Json:
        return {"thread_id": thread, "end_ordinal_exclusive": end}

    write("s1", 0, meta("x"), said("user", "a"), said("assistant", "b"), said("user", "no"))
    write("s1_r1", 3, meta("x", history_base=base("s1", 3)), said("user", "c"), said("assistant", "d"),
          said("user", "neither"))  # fmt: skip
    write("s1_r2", 6, meta("x", history_base=base("r1", 6)), said("user", "e"), said("assistant", "f"))
    found = windows(tmp_path / "rollout-s1_r2.jsonl", "codex")
    assert [window.texts() for window in found] == [["x", "a", "b", "c", "d", "e"]]
