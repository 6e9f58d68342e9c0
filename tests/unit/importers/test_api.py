"""Raw bodies: files, lines, streams, directories."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxctl.importers import registry
from ctxctl.importers.api import FORMAT
from ctxctl.importers.registry import HEAD
from ctxctl.ingest.folder import Folder
from ctxctl.model.problem import Problem
from ctxctl.model.results import Step
from ctxctl.session import Inspector
from tests.unit.importers.calls_help import FIXTURES, seen
from tests.unit.providers import wire_rebuild

FILES = ("anthropic.jsonl", "chat.json", "responses.jsonl", "gemini.jsonl")
BODY = {"model": "claude-x", "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]}
ANSWER = {
    "id": "m",
    "type": "message",
    "role": "assistant",
    "model": "claude-x-1",
    "stop_reason": "end_turn",
    "content": [{"type": "text", "text": "ho"}],
    "usage": {"input_tokens": 3, "output_tokens": 1},
}


def written(tmp_path: Path, *records: Any, indent: int | None = None) -> Path:
    path = tmp_path / "log.json"
    path.write_text("\n".join(json.dumps(record, indent=indent) for record in records) + "\n")
    return path


@pytest.mark.parametrize("name", [*FILES, "pairs"])
def test_every_body_can_be_put_together_again(name: str) -> None:
    with wire_rebuild.bodies() as sent, Inspector.open(str(FIXTURES / "api" / name)) as inspector:
        list(inspector.replay())
        assert wire_rebuild.check(inspector, sent) == len(sent) > 0


def test_the_comparison_finds_what_is_not_the_same() -> None:
    path = FIXTURES / "api" / "anthropic.jsonl"
    for find, put in (("table of Norddeich", "tables"), ("toolu_01", "toolu_02"), ("iVBOR", "iVBOS")):
        with wire_rebuild.bodies() as sent, Inspector.open(str(path)) as inspector:
            list(inspector.replay())
            changed = [(name, json.loads(json.dumps(body).replace(find, put))) for name, body in sent]
            with pytest.raises(AssertionError):
                wire_rebuild.check(inspector, changed)


def test_a_log_of_pairs() -> None:
    steps, problems = seen("api/anthropic.jsonl")
    assert not problems
    main = [step for step in steps if step.thread == "main"]
    assert [(step.turn, step.billed) for step in main] == [(1, 312), (1, 398), (2, None), (2, 399), (3, 309)]
    assert main[1].kinds() == [
        "tool_definition",
        "tool_definition",
        "system_prompt",
        "system_prompt",
        "policy_note",
        "user_message",
        "reasoning",
        "tool_call",
        "tool_result",
        "policy_note",
        "image",
    ]
    assert main[3].texts()[-2:] == ["High water is at 11:42.", "And low water?"]
    assert main[4].kinds()[-2:] == ["thread_summary", "user_message"]


def test_requests_and_answers_in_turn() -> None:
    steps, problems = seen("api/responses.jsonl")
    assert not problems
    assert [(step.thread, step.billed) for step in steps] == [
        ("main", 90),
        ("main", 150),
        ("conversation", None),
    ]
    assert steps[1].texts()[-2:] == ['read_tide {"harbour":"Baltrum"}', "High water 11:58."]
    assert steps[2].window[2] == ("custom", None)


def test_a_gemini_pair_names_its_model_in_the_address() -> None:
    (step,), _ = seen("api/gemini.jsonl")
    assert (step.model, step.billed) == ("gemini-2.5-flash", 124)


def test_an_answer_alone_shows_what_was_said_and_no_window() -> None:
    (step,), problems = seen("api/stream.sse")
    assert [p.slug for p in problems] == ["no-request"], "the answer's model is the one that answered"
    assert (step.texts(), step.billed) == (["Fair winds."], 210)


def test_a_directory_is_read_in_the_order_of_its_numbers() -> None:
    steps, problems = seen("api/pairs")
    assert not problems
    assert [step.billed for step in steps] == [24, 210]
    assert steps[1].texts()[-2:] == ["For a dinghy, yes.", "For a barge?"]


@pytest.mark.parametrize(
    ("asked", "replied"),
    [
        ("request_1.json", "response_1.json"),
        ("0001-request.json", "0001-response.json"),
        ("1.req", "1.res"),
        ("requests/1.json", "responses/1.json"),
        ("a/input.json", "a/output.json"),
        ("call-7.json", "call-7-reply.json"),
        ("b.json", "c.json"),
    ],
)
def test_files_are_paired_by_their_names(tmp_path: Path, asked: str, replied: str) -> None:
    for name, body in ((asked, BODY), (replied, ANSWER)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(json.dumps(body))
    (tmp_path / "README.md").write_text("How these came about.")
    (step,), problems = seen(tmp_path)
    assert (step.texts(), step.billed, problems) == (["hi"], 3, [])


@pytest.mark.parametrize(
    "record",
    [
        {"request": BODY, "response": ANSWER},
        {"req": BODY, "res": ANSWER},
        {"request_body": json.dumps(BODY), "response_body": json.dumps(ANSWER)},
        {
            "request": {"method": "POST", "url": "u", "body": BODY},
            "response": {"status": 200, "body": ANSWER},
        },
        {"n": 1, "path": "/v1/messages", "body": BODY, "response": ANSWER},
        {"timestamp": 1772352000, "request": {"json": BODY}, "response": {"json": ANSWER}},
        [{"request": BODY, "response": ANSWER}],
    ],
)
def test_pairs_are_known_by_what_is_in_them(tmp_path: Path, record: Any) -> None:
    for indent in (None, 2):
        path = written(tmp_path, record, indent=indent)
        found = registry.of_head(path.read_bytes()[:HEAD])
        assert found is not None
        if found.name != "api":
            continue
        (step,), problems = seen(path)
        assert (step.texts(), step.billed, problems) == (["hi"], 3, [])


def test_what_is_no_body_is_not_claimed() -> None:
    api = registry.by_name("api")
    for value in (
        {},
        [],
        {"messages": [{"role": "user", "content": "x"}]},
        {
            "messages": [{"role": "user", "content": "x"}],
            "model": "gpt-5",
            "info": {},
            "trajectory_format": "x",
        },
        {"role": "user", "content": "x"},
        {"type": "user", "message": BODY["messages"]},
        {"jsonrpc": "2.0", "method": "tools/list", "params": {}},
        {"model": "text-embedding-3", "input": ["x"], "encoding_format": "float"},
        {"uuid": "1", "sessionId": "2", "message": {"model": "x", "role": "assistant", "content": []}},
    ):
        assert api.detect(json.dumps(value).encode()) == 0, value
    assert api.detect(b"data: hello\n\n") == 0
    assert api.detect(b'data: {"hello": 1}\n\n') == 0
    assert api.detect(b"") == 0


def test_bodies_are_known_by_their_first_bytes() -> None:
    for path in sorted((FIXTURES / "api").rglob("*.*")):
        head = path.read_bytes()[:HEAD]
        for cut in (head, b"\xef\xbb\xbf\n\n" + head, head[: len(head) * 3 // 4]):
            found = registry.of_head(cut)
            assert found is not None, path
            assert found.name == "api", path
    long = json.dumps({**BODY, "system": "x" * (1 << 17)}).encode()
    assert registry.by_name("api").detect(long[:HEAD])


def test_a_directory_of_something_else_is_not_claimed(tmp_path: Path) -> None:
    api = registry.by_name("api")
    assert api.reads_folders
    (tmp_path / "a.json").write_text('{"name": "package"}')
    assert api.detect_folder(Folder("x", tmp_path)) == 0
    (tmp_path / "b.json").write_text(json.dumps(BODY))
    assert api.detect_folder(Folder("x", tmp_path)) == 0


def test_records_that_are_no_bodies_are_reported(tmp_path: Path) -> None:
    steps, problems = seen(written(tmp_path, BODY, {"level": "info"}, 7, ANSWER))
    assert [step.billed for step in steps] == [3]
    assert [p.slug for p in problems] == ["unknown-record", "unknown-record"]


def test_a_directory_of_json_lines_is_read_line_by_line(tmp_path: Path) -> None:
    other = {**BODY, "messages": [{"role": "user", "content": "something else"}]}
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(body) + "\n" for body in (BODY, ANSWER, other)))
    problems: list[Problem] = []
    api = registry.by_name("api")
    assert api.reads_folders
    folder = Folder("x", tmp_path)
    assert api.detect_folder(folder)
    events = list(api.folder_events(folder, problems.append))
    assert problems == []
    assert sum(event["event_type"] == "context.assembly.created" for event in events) == 2


# -- a model and messages, and nothing else ------------------------------------------------------------------

PLAIN = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "Hi"}]}
MORE = {
    **PLAIN,
    "messages": [*PLAIN["messages"], {"role": "assistant", "content": "Yo"}, PLAIN["messages"][0]],
}
SAID = {
    "id": "chatcmpl-1", "object": "chat.completion", "model": "gpt-4o-mini-2024-07-18",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Yo"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 8, "completion_tokens": 1, "total_tokens": 9},
}  # fmt: skip
SHORT = {"choices": SAID["choices"], "usage": SAID["usage"]}


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize(
    "records",
    [
        [{"request": PLAIN, "response": SAID}, {"request": MORE, "response": SAID}],
        [{"request": PLAIN, "response": SHORT}, {"request": MORE, "response": SHORT}],
        [{"input": PLAIN, "output": SAID}, {"input": MORE, "output": SAID}],
        [
            {"ts": 1700000000 + n, "user": "x", "request": r, "response": SAID}
            for n, r in enumerate((PLAIN, MORE))
        ],
        [{"request": {"url": "/v1", "body": r}, "response": {"body": SAID}} for r in (PLAIN, MORE)],
        [{**PLAIN, "response": SAID}, {**MORE, "completion": SAID}],
        [PLAIN, SAID, MORE, SAID],
    ],
)
def test_pairs_with_only_a_model_and_messages_are_known(
    tmp_path: Path, records: Any, indent: int | None
) -> None:
    with Inspector.open(written(tmp_path, *records, indent=indent)) as inspector:
        assert inspector.format == "api"
        steps = [r for r in inspector.replay() if isinstance(r, Step)]
        assert [s.usage and s.usage.reported_input for s in steps] == [8, 8]
        assert [p.kind for p in inspector.frame(1).placements] == [
            "user_message", "assistant_message", "user_message"
        ]  # fmt: skip
        assert inspector.problems == []


@pytest.mark.parametrize("records", [[PLAIN], [PLAIN, MORE], [{"request": PLAIN}, {"request": MORE}]])
def test_so_are_requests_without_an_answer(tmp_path: Path, records: Any) -> None:
    with Inspector.open(written(tmp_path, *records)) as inspector:
        assert inspector.format == "api"
        assert len([r for r in inspector.replay() if isinstance(r, Step)]) == len(records)


def test_which_provider_it_was_is_told_by_the_answer(tmp_path: Path) -> None:
    pair = {"request": {"model": "claude-x", "messages": PLAIN["messages"]}, "response": ANSWER}
    with Inspector.open(written(tmp_path, pair)) as inspector:
        (step,) = [r for r in inspector.replay() if isinstance(r, Step)]
        assert step.usage is not None
        assert (step.usage.provider, step.usage.reported_input) == ("anthropic", 3)


def test_a_transcript_with_more_than_a_request_says_is_none() -> None:
    head = json.dumps({"request": {**PLAIN, "conversation_title": "x", "rating": 3}, "score": 1}).encode()
    assert FORMAT.detect(head) == 0
