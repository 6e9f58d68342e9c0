"""What importing Amplifier's logs gives: the fixtures whole, and each rule by a small log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ctxctl.importers import registry
from ctxctl.importers.registry import by_name
from ctxctl.ingest.fidelity import FACT_NAMES, Meter
from ctxctl.model.problem import Problem
from ctxctl.trace.source import Source
from tests.unit.importers.agent_help import Window, windows, written
from tests.unit.importers.seed_help import FIXTURES, Json, data, detected, events, items, lines, named, spoilt

AMPLIFIER = FIXTURES / "amplifier"
SCHEMA = {"name": "amplifier.log", "ver": "1.0.0"}
ASK = {"provider": "anthropic", "model": "claude-x"}


class Log:
    """Writes lines in the envelope of hooks-logging, a millisecond apart."""

    def __init__(self, session: str = "s") -> None:
        self.session = session
        self.rows: list[Json] = []

    def __call__(self, event: str, top: Json | None = None, **payload: Any) -> Log:
        at = f"2026-05-04T10:00:00.{len(self.rows):03d}000000+00:00"
        row = {"ts": at, "lvl": "INFO", "schema": SCHEMA, "event": event, "session_id": self.session}
        self.rows.append({**row, **(top or {}), "data": {"parent_id": None, **payload}})
        return self

    def windows(self, folder: Path) -> list[Window]:
        return windows(written(folder, *self.rows), "amplifier")

    def events(self) -> list[Json]:
        return events("amplifier", lines(*self.rows))[0]


def fixture(name: str) -> list[Window]:
    return windows(AMPLIFIER / name, "amplifier")


def body(*messages: Json, system: str = "Be brief.") -> Json:
    return {"model": "claude-x", "max_tokens": 9, "system": system, "messages": list(messages)}


def user(text: str) -> Json:
    return {"role": "user", "content": text}


def reminder(source: str, text: str) -> str:
    return f'<system-reminder source="{source}">\n{text}\n</system-reminder>'


# -- with bodies ---------------------------------------------------------------------------------------


def test_a_body_is_cut_at_amplifiers_markers() -> None:
    found = fixture("bodies-anthropic.jsonl")
    assert [(w.turn, w.billed()) for w in found] == [
        ("turn-1", 903), ("turn-1", 974), ("turn-2", 1025), ("turn-2", 1066),
    ]  # fmt: skip
    first = found[0]
    assert first.kinds() == [
        "tool_definition", "tool_definition", "system_prompt", "external_resource", "external_resource",
        "user_message", "policy_note", "policy_note", "policy_note",
    ]  # fmt: skip
    assert named(first.step, "added", "policy_note")[:2] == [
        "reminder:hooks-status-context", "reminder:hooks-todo-reminder",
    ]  # fmt: skip
    assert first.step.segments["context"] < first.step.segments["system"], "files count with the prompt"


def test_reminders_are_items_of_their_own() -> None:
    _, second, third, fourth = fixture("bodies-anthropic.jsonl")
    assert named(second.step, "updated") == ["reminder:hooks-status-context", "reminder:hooks-todo-reminder"]
    assert second.items[-4][0] == "tool_result"
    assert (second.items[-4][1] or "").endswith('"success": true}'), (
        "what is injected behind it is not the result"
    )
    assert "toolu_1/result" not in {c.item for c in third.step.changes}, "it stays as it was"
    assert named(fourth.step, "removed") == ["reminder:hooks-todo-reminder"]


def test_files_of_the_system_prompt_have_a_source() -> None:
    found, problems = events("amplifier", (AMPLIFIER / "bodies-anthropic.jsonl").read_bytes())
    assert not problems
    rules = items(found)["/srv/garden/rules.md"]
    assert rules["title"] == "garden:rules.md"
    assert rules["source_refs"][0]["digest"].startswith("sha256:")
    masked = items(found)["/srv/garden/10042/style.md"]
    assert "[REDACTED:PII]" in masked["content"], "the digest of its content says which file it was"
    assert masked["redaction_state"] == "masked"
    (missing,) = data(found, "context.missing.detected")
    assert missing["question"] == "garden:seeds.md: not found"


def test_a_compaction_names_what_left_and_what_was_cut() -> None:
    found, _ = events("amplifier", (AMPLIFIER / "bodies-openai-compaction.jsonl").read_bytes())
    first, second = data(found, "context.compaction.completed")
    assert [ref.partition("@")[0] for ref in first["source_item_refs"]] == [
        "assistant_message-2", "call_2", "call_2/result",
    ]  # fmt: skip
    assert first["coverage"]["messages_newly_removed"] == 2
    assert "still over budget: 420 of 400 estimated tokens" in first["loss_notes"]
    assert first["metadata"]["ctxctl"]["counters"] == "undetermined"
    assert second["metadata"]["ctxctl"]["counters"] == "per event", "the level fell"
    cut = [
        row["item_ref"].partition("@")[0]
        for row in data(found, "context.budget.applied")[0]["truncation_records"]
    ]
    assert cut == ["user_message-1", "call_1/result"]


@pytest.mark.parametrize("is_told", [True, False])
def test_a_summary_takes_the_place_of_the_messages_that_it_sums_up(tmp_path: Path, is_told: bool) -> None:
    reminder = '<system-reminder source="context-summary">\nSo far: all well.\n</system-reminder>'
    log = Log()("llm:request", **ASK, raw=body(user("a"), user("b"), user("c")))
    if is_told:
        log("context:compaction", before_messages=3, after_messages=2, messages_removed=1, budget=90)
    log("llm:request", **ASK, raw=body(user("a"), user(reminder), user("c")))
    found = log.windows(tmp_path)
    assert found[1].kinds()[-3:] == ["user_message", "thread_summary", "user_message"]
    (told,) = data(log.events(), "context.compaction.completed")
    assert (told["method"], told["summary_ref"].partition("@")[0]) == (
        "abstractive_summary", "reminder:context-summary",
    )  # fmt: skip
    (left,) = [change for change in found[1].step.changes if change.status == "removed"]
    assert (left.cause, left.into) == ("compacted", "reminder:context-summary")


def test_a_stub_is_the_message_that_it_stands_for() -> None:
    found = fixture("bodies-openai-compaction.jsonl")
    stubbed, back = found[4].step, found[5].step
    assert "user_message-1" in named(stubbed, "updated")
    assert "user_message-1" in named(back, "updated"), "the view is made anew from the whole history"
    assert "still_over_budget" in stubbed.flags
    assert "still_over_budget" not in back.flags
    assert "reminder:context-compaction" in named(stubbed, "added")
    (change,) = [c for c in stubbed.changes if c.item == "call_2"]
    assert (change.status, change.cause) == ("removed", "compacted")


def test_a_message_that_comes_back_is_the_same_item(tmp_path: Path) -> None:
    log = Log()
    for text in (["a", "b"], ["b"], ["a", "b"]):
        log("llm:request", **ASK, raw=body(*map(user, text)))
    assert [named(w.step, "added", "user_message") for w in log.windows(tmp_path)] == [
        ["user_message-1", "user_message-2"], [], ["user_message-1"],
    ]  # fmt: skip


def test_equal_messages_are_told_apart_by_their_order(tmp_path: Path) -> None:
    log = Log()("llm:request", **ASK, raw=body(user("go"), user("go")))
    log("llm:request", **ASK, raw=body(user("go"), user("go"), user("go")))
    first, second = log.windows(tmp_path)
    assert first.step.counts.added == 3
    assert (second.step.counts.added, second.step.counts.skipped) == (1, 3)


def called(name: str) -> Json:
    use = {"type": "tool_use", "id": name, "name": "read", "input": {"path": name}}
    return {"role": "assistant", "content": [use]}


def answered(name: str, text: str) -> Json:
    result = {"type": "tool_result", "tool_use_id": name, "content": text}
    return {"role": "user", "content": [result]}


def replied(log: Log, *content: Json) -> Log:
    raw = {"id": f"msg-{len(log.rows)}", "type": "message", "role": "assistant", "content": list(content)}
    return log("llm:response", {"status": "ok"}, **ASK, raw=raw)


COMPACTED = {"before_messages": 5, "after_messages": 4, "messages_removed": 1, "strategy_level": 3}


def test_an_answer_that_no_request_carried_was_left_out_of_the_first_one(tmp_path: Path) -> None:
    log = Log()("prompt:submit", prompt="one")("llm:request", **ASK, raw=body(user("one")))
    replied(log, {"type": "text", "text": "A long story."})
    log("prompt:submit", prompt="two")("context:compaction", **COMPACTED)
    log("llm:request", **ASK, raw=body(user("one"), user("two")))
    _, second = log.windows(tmp_path)
    (left,) = [change for change in second.step.changes if change.status == "omitted"]
    assert (left.kind, left.reason) == ("assistant_message", "budget_limit")
    (record,) = data(log.events(), "context.compaction.completed")
    assert [ref.partition("@")[0] for ref in record["source_item_refs"]] == [left.item]


def test_a_result_that_was_cut_before_it_was_sent_is_known_whole(tmp_path: Path) -> None:
    """Loops keep a result in spellings of their own; the marker says which of them it is."""
    output = "sun and rain " * 90
    whole = f'{{"error": null, "output": "{output}", "success": true}}'
    shown = f"[truncated: ~{len(whole) // 4:,} tokens - call tool again if needed] {whole[:250]}..."
    log = Log()("prompt:submit", prompt="one")("llm:request", **ASK, raw=body(user("one")))
    replied(log, *called("c1")["content"])
    result = {"error": None, "output": output, "success": True}
    log("tool:post", tool_name="read", tool_input={"path": "c1"}, result=result)
    log("context:compaction", **COMPACTED, budget=900)
    log("llm:request", **ASK, raw=body(user("one"), called("c1"), answered("c1", shown)))
    told = [event["data"] for event in log.events() if ".item." in event["event_type"]]
    texts = [item.get("content") for item in told if item["item_id"] == "c1/result"]
    assert texts == [whole, shown]
    (window,) = log.windows(tmp_path)[1:]
    assert window.items[-1] == ("tool_result", shown)


def test_stubs_of_messages_that_begin_alike_are_those_around_them(tmp_path: Path) -> None:
    begun = "look into\nthe garden and " + "say what grows there, " * 3
    stub = f'[User message compacted - original: "{begun[:50].replace(chr(10), " ").strip()}..."]'
    full = [user(f"{begun}{n}") for n in range(3)]
    said = [{"role": "assistant", "content": f"Answer {n}."} for n in range(3)]
    log = Log()("llm:request", **ASK, raw=body(full[0], said[0], full[1], said[1], full[2]))
    log("llm:request", **ASK, raw=body(full[0], said[0], user(stub), said[1], full[2]))
    _, second = log.windows(tmp_path)
    assert named(second.step, "updated") == ["user_message-3"]
    assert named(second.step, "added") == []


def test_a_prompt_in_the_words_of_one_that_left_is_another_one(tmp_path: Path) -> None:
    log = Log()("prompt:submit", prompt="go on")("llm:request", **ASK, raw=body(user("go on")))
    replied(log, {"type": "text", "text": "Done."})
    log("prompt:submit", prompt="go on")("context:compaction", **COMPACTED)
    log("llm:request", **ASK, raw=body({"role": "assistant", "content": "Done."}, user("go on")))
    first, second = log.windows(tmp_path)
    assert named(first.step, "added", "user_message") == named(second.step, "removed")
    assert len(named(second.step, "added", "user_message")) == 1


def test_a_question_beside_the_conversation_is_a_thread_of_its_own(tmp_path: Path) -> None:
    log = Log()("prompt:submit", prompt="hi")("provider:request", iteration=1)
    log("llm:request", **ASK, raw=body(user("hi")))
    log("llm:response", {"status": "ok"}, **ASK, usage={"input_tokens": 10, "output_tokens": 1})
    log("llm:request", **ASK, raw=body(user("Name this session."), system="You name things."))
    log("llm:response", {"status": "ok"}, **ASK, usage={"input_tokens": 4, "output_tokens": 1})
    log("provider:request", iteration=2)("llm:request", **ASK, raw=body(user("hi"), user("more")))
    found = log.windows(tmp_path)
    assert [(w.thread, w.billed()) for w in found] == [("main", 10), ("main/internal", 4), ("main", None)]
    assert named(found[2].step, "added") == ["user_message-2"]


def test_a_body_in_an_event_of_its_own_belongs_to_the_request_before(tmp_path: Path) -> None:
    log = Log()("llm:request", **ASK, message_count=1)
    log("llm:request:debug", request={"model": "claude-x", "messages": [user("shortened…")]})
    log("llm:request:raw", params=body(user("whole")))
    log(
        "llm:response",
        {"status": "ok"},
        **ASK,
        usage={"input": 5, "output": 2, "cache_read": 3, "cache_write": 4},
    )
    (window,) = log.windows(tmp_path)
    assert window.texts() == ["Be brief.", "whole"]
    assert window.billed() == 12, "the older record leaves both caches out"


def test_a_request_without_body_between_others_loses_no_text(tmp_path: Path) -> None:
    log = Log()("llm:request", **ASK, raw=body(user("one"), user("two")))
    log("prompt:submit", prompt="three")("llm:request", **ASK)
    log("llm:request", **ASK, raw=body(user("one"), user("two"), user("three"), user("four")))
    assert [w.texts() for w in log.windows(tmp_path)][1:] == [
        ["Be brief.", "one", "two", "three"], ["Be brief.", "one", "two", "three", "four"],
    ]  # fmt: skip


def test_what_a_tool_printed_is_not_taken_for_a_reminder(tmp_path: Path) -> None:
    printed = f"notes:\n\n{reminder('x', 'quoted')}\n\nend of file"
    result = {"type": "tool_result", "tool_use_id": "t", "content": printed}
    log = Log()("llm:request", **ASK, raw=body(user("q"), {"role": "user", "content": [result]}))
    (window,) = log.windows(tmp_path)
    assert window.items[-1] == ("tool_result", printed)


# -- both loggers --------------------------------------------------------------------------------------


def test_two_loggers_tell_of_each_event_once() -> None:
    alone, both = fixture("bodies-anthropic.jsonl")[:2], fixture("both-loggers.jsonl")
    assert [(w.turn, w.billed(), w.items) for w in both[:2]] == [(w.turn, w.billed(), w.items) for w in alone]
    assert not both[2:], "the prompt that ends the log was never answered"


def test_the_copy_with_the_body_is_kept(tmp_path: Path) -> None:
    log = Log()("llm:request", **ASK)
    copy = {**log.rows[0], "data": {**ASK, "raw": body(user("hi"))}}
    found = windows(written(tmp_path, log.rows[0], copy), "amplifier")
    assert [w.texts() for w in found] == [["Be brief.", "hi"]]


def test_masked_times_hide_neither_events_nor_copies(tmp_path: Path) -> None:
    log = Log()
    for prompt in ("again", "again"):
        log("prompt:submit", prompt=prompt, timestamp="[REDACTED:PII]T1")
        log("llm:response", {"status": "ok"}, **ASK, usage={"input_tokens": 7, "output_tokens": 1},
            timestamp="[REDACTED:PII]T1")  # fmt: skip
    log.rows.insert(1, log.rows[0])
    found = log.windows(tmp_path)
    assert [(w.turn, w.texts()) for w in found] == [("turn-1", ["again"]), ("turn-2", ["again", "again"])]


# -- without bodies ------------------------------------------------------------------------------------


def test_windows_from_events() -> None:
    found = fixture("no-bodies.jsonl")
    assert [(w.turn, w.billed()) for w in found] == [
        ("turn-1", 502), ("turn-1", 560), ("turn-2", 700), ("turn-3", 10),
    ]  # fmt: skip
    assert found[0].items[:2] == [("system_prompt", None), ("external_resource", None)]
    second = found[1]
    assert second.kinds()[-4:] == ["tool_call", "tool_call", "tool_result", "tool_result"]
    assert named(second.step, "added", "tool_result") == ["t_1/result", "t_2/result"], (
        "in the order of the calls"
    )


def test_after_a_compaction_nothing_is_guessed() -> None:
    found = fixture("no-bodies.jsonl")
    compacted = found[2]
    assert compacted.kinds() == ["system_prompt", "external_resource", "session_history"]
    assert compacted.step.window.by_method == {"declared": 14000}
    assert {"compacted", "still_over_budget"} <= set(compacted.step.flags)
    assert compacted.step.window.cap == 13104
    assert compacted.step.window.limit == 20000
    told = data(
        events("amplifier", (AMPLIFIER / "no-bodies.jsonl").read_bytes())[0], "context.compaction.completed"
    )
    assert told[1]["metadata"]["ctxctl"]["counters"] == "cumulative"
    assert told[1]["loss_notes"][-1] == "which messages remain is not recorded"
    assert told[2]["coverage"]["messages_after"] == 3, "pre_compact and post_compact are one compaction"


def test_a_result_cut_before_it_was_stored_says_so() -> None:
    found, _ = events("amplifier", (AMPLIFIER / "no-bodies.jsonl").read_bytes())
    cut = data(found, "context.compaction.completed")[0]
    assert cut["replacement_policy"] == "destructive_ingress"
    assert cut["coverage"] == {"bytes_before": 900000, "bytes_after": 131072}
    records = [r for b in data(found, "context.budget.applied") for r in b.get("truncation_records", [])]
    assert [(r["item_ref"].partition("@")[0], r["reason"]) for r in records] == [("t_1/result", "ingress")]


def test_usage_is_billed_once_whoever_repeats_it(tmp_path: Path) -> None:
    usage = {"input_tokens": 8, "output_tokens": 2, "cache_write_tokens": 5}
    log = Log()("llm:request", **ASK)
    for at in range(3):
        log("content_block:end", block={"type": "text", "text": str(at)}, block_index=at, usage=usage)
    log("llm:response", {"status": "ok"}, **ASK, usage=usage)
    log("provider:response", usage="input_tokens=8 output_tokens=2")
    (window,) = log.windows(tmp_path)
    assert window.billed() == 13
    assert len(data(log.events(), "ctxctl.usage.reported")) == 1


def test_a_cleared_history_keeps_the_system_prompt_if_asked_to(tmp_path: Path) -> None:
    for keep, left in ((True, ["system_prompt", "user_message"]), (False, ["user_message"])):
        log = Log()("prompt:submit", prompt="a")("llm:request", **ASK, has_system=True)
        log("context:clear", preserve_system=keep)("prompt:submit", prompt="b")("llm:request", **ASK)
        second = log.windows(tmp_path)[1]
        assert second.kinds() == left
        assert second.texts()[-1] == "b"
        assert {c.cause for c in second.step.changes if c.status == "removed"} == {"cleared"}


def test_an_error_is_no_answer(tmp_path: Path) -> None:
    log = Log()("llm:request", **ASK)
    log("llm:response", {"status": "error", "error": "overloaded"}, **ASK)
    log("llm:response", {"status": "ok"}, **ASK, usage={"input_tokens": 3, "output_tokens": 1})
    assert [w.billed() for w in log.windows(tmp_path)] == [3]


# -- transcripts ---------------------------------------------------------------------------------------


def test_each_answer_of_a_transcript_had_a_request() -> None:
    found = fixture("transcript.jsonl")
    assert [(w.turn, len(w.items)) for w in found] == [("turn-1", 2), ("turn-1", 5), ("turn-2", 7)]
    assert found[0].kinds() == ["user_message", "policy_note"], "a hook's message is no prompt"
    assert found[1].kinds()[2:] == ["reasoning", "tool_call", "tool_result"]
    assert {w.billed() for w in found} == {None}


def test_messages_of_context_persistent_hold_the_system_prompt() -> None:
    (window,) = fixture("context-messages.jsonl")
    assert window.items == [("system_prompt", "You guard a gate."), ("user_message", "hello there")]


# -- session directories -------------------------------------------------------------------------------


def test_a_sub_agents_session_is_a_thread_of_its_parent() -> None:
    found = windows(AMPLIFIER / "sessions", "amplifier")
    assert [(w.thread, w.turn, w.billed()) for w in found] == [
        ("main", "turn-1", 903), ("main", "turn-1", 974), ("main", "turn-2", 1025), ("main", "turn-2", 1066),
        ("11aa-22bb_botanist", "turn-1", 50),
    ]  # fmt: skip
    assert {w.step.session for w in found} == {"0f1e2d3c-garden"}
    told, _ = events("amplifier", AMPLIFIER / "sessions")
    ours = data(told, "context.assembly.created")[-1]["metadata"]["ctxctl"]
    assert (ours["parent_thread"], ours["parent_tool_call"], ours["agent_type"]) == (
        "main", "toolu_2", "garden:botanist",
    )  # fmt: skip


def test_the_second_logger_tells_what_the_first_one_missed() -> None:
    found = windows(AMPLIFIER / "sessions" / "0f1e2d3c-garden", "amplifier")
    assert "missing_context" in found[0].step.flags, "mentions:resolved is in the second log alone"
    assert found[1].texts()[-1] == '{"error": null, "output": "bed 3: dry\\nbed 4: wet", "success": true}', (
        "the transcript holds the text that was stored"
    )


def test_metadata_names_a_session_whose_log_is_lost(tmp_path: Path) -> None:
    place = tmp_path / "abc"
    place.mkdir()
    (place / "transcript.jsonl").write_bytes((AMPLIFIER / "transcript.jsonl").read_bytes())
    (place / "metadata.json").write_text('{"session_id": "named"}')
    assert {w.step.session for w in windows(place, "amplifier")} == {"named"}


def test_a_transcript_of_other_requests_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_bytes((AMPLIFIER / "third-envelope.jsonl").read_bytes())
    (tmp_path / "transcript.jsonl").write_bytes((AMPLIFIER / "transcript.jsonl").read_bytes())
    found, problems = events("amplifier", tmp_path)
    assert [p.slug for p in problems] == ["transcript-differs"]
    assert len(data(found, "ctxctl.usage.reported")) == 2


# -- detection, tolerance, declaration -----------------------------------------------------------------


@pytest.mark.parametrize("path", sorted(AMPLIFIER.rglob("*.jsonl")), ids=lambda path: path.name)
def test_every_fixture_is_known_by_its_content(path: Path) -> None:
    head = path.read_bytes()
    assert detected(head) == "amplifier"
    assert detected(b"\xef\xbb\xbf\n\n" + head) == "amplifier"
    assert detected(b'{"damaged": \n' + head) == "amplifier"


@pytest.mark.parametrize(
    "head",
    [
        lines({"event": "llm:request", "data": 1}),
        lines({"type": "session:start", "payload": {}}),
        lines({"role": "user", "content": "hi"}),
        lines({"role": "user", "content": "hi", "metadata": {}, "uuid": "1"}),
        lines({"text": '"schema": {"name": "other.log"}'}),
        b"",
    ],
)
def test_other_files_are_left_alone(head: bytes) -> None:
    assert detected(head) != "amplifier"


def test_a_head_that_cuts_a_long_line_is_known() -> None:
    line = Log()("session:config", raw={"x": "y" * 100_000}).rows[0]
    assert detected(lines(line)[:60_000]) == "amplifier"


@pytest.mark.parametrize("name", ["bodies-anthropic.jsonl", "no-bodies.jsonl", "transcript.jsonl"])
def test_values_of_any_type_are_survived(name: str) -> None:
    import json

    rows = [json.loads(line) for line in (AMPLIFIER / name).read_bytes().splitlines()]
    chosen = rows if len(rows) < 10 else [r for r in rows if r["event"] not in ("content_block:start",)][:14]
    for at, row in enumerate(chosen):
        odd = [next(iter([{**row, "data": value}])) for value in _some(row.get("data"))] or list(_some(row))
        found, _ = events("amplifier", lines(*chosen[:at], *odd, *chosen[at + 1 :]))
        assert found


def _some(value: Any) -> list[Any]:
    found = list(spoilt(value))
    return found[:: max(1, len(found) // 40)]


def test_every_claim_is_about_a_fact() -> None:
    about = by_name("amplifier").about
    assert set(about.claims) <= set(FACT_NAMES)


def _measured(found: list[Json]) -> Json:
    meter = Meter(by_name("amplifier").about)
    for event in found:
        meter.see(event)
    return meter.measured()


def test_what_no_record_tells_is_not_claimed() -> None:
    script, _ = events("amplifier", (AMPLIFIER / "transcript.jsonl").read_bytes())
    facts = _measured(script)
    assert set(facts["requests"]) == set(facts["turns"]) == {"derived"}
    assert set(facts["wrapper"]) == {"not recorded"}
    log = Log()("prompt:submit", prompt="a")("llm:request", **ASK)("llm:response", **ASK, usage={"input": 9})
    facts = _measured(log.events())
    assert (set(facts["requests"]), set(facts["wrapper"])) == ({"native"}, {"not recorded"})
    answers = _measured(Log()("llm:response", **ASK, usage={"input": 9}).events())
    assert set(answers["requests"]) == {"derived"}


def test_a_request_of_which_nothing_is_known_is_not_empty(tmp_path: Path) -> None:
    log = Log()("llm:response", **ASK, usage={"input": 9, "output": 1})
    (window,) = log.windows(tmp_path)
    assert (window.step.window.recorded, window.step.window.uncounted) == (0, 1)
    assert window.step.changes[0].title == "messages; not recorded"


def test_a_compaction_leaves_the_system_prompt_where_it_stands(tmp_path: Path) -> None:
    log = Log()("prompt:submit", prompt="a")("llm:request", **ASK, has_system=True, message_count=2)
    log("llm:response", **ASK, usage={"input": 9})("prompt:submit", prompt="b")
    log("context:compaction", before_messages=4, after_messages=2, after_tokens=50, budget=90)
    _, after = log("llm:request", **ASK, has_system=True, message_count=2).windows(tmp_path)
    assert after.kinds() == ["system_prompt", "session_history"]
    assert [c.item for c in after.step.changes if c.cause == "compacted"] == ["user_message-1"]
    (told,) = data(log.events(), "context.compaction.completed")
    ours = told["metadata"]["ctxctl"]
    assert ours["remains_in"] == "context-view", "what stands for messages that nobody can name"
    assert [ref.partition("@")[0] for ref in ours["spares"]] == ["user_message-2"], "it is to be answered"


def test_the_card_of_a_session_is_known_and_holds_nothing_to_replay() -> None:
    card = b'{"format": "context-intelligence", "version": "1.0.0", "session_id": "s", "started_at": "x"}'
    problems: list[Problem] = []
    importer = registry.of_head(card)
    assert importer is not None
    assert importer.name == "amplifier"
    assert list(importer.events(Source.from_bytes("metadata.json", card), problems.append)) == []
    assert [problem.slug for problem in problems] == ["no-model-calls"]
