"""Claude Code's body dump: fixtures are of claude 2.1.330, run against a stand-in, with long texts cut."""

from __future__ import annotations

import shutil
from pathlib import Path

import orjson

from ctxctl.importers import registry
from ctxctl.importers.claude_bodies import FORMAT
from ctxctl.ingest.folder import Folder
from tests.unit.importers.calls_help import FIXTURES, detected, events, seen, slugs

DUMP = FIXTURES / "claude_bodies/dump"
TRANSCRIPT = FIXTURES / "claude_bodies/transcript.jsonl"
RECORDS = FIXTURES / "claude_bodies/records.jsonl"
SESSION = "0f0f0f0f-2222-4333-8444-555555555555"
MAIN = [2720, 2796, 3123, 3473, 3512]
AGENT = [3248, 3751]


def copied(tmp_path: Path, *leave_out: str) -> Path:
    made = tmp_path / "dump"
    shutil.copytree(DUMP, made)
    for name in leave_out:
        (made / name).unlink()
    return made


def index() -> list[dict[str, str]]:
    return [orjson.loads(line) for line in (DUMP / "index.jsonl").read_bytes().splitlines()]


def test_a_dump_is_one_session_with_its_sub_agent_as_a_thread() -> None:
    steps, problems = seen("claude_bodies/dump")
    assert [step.billed for step in steps if step.thread == "main"] == MAIN
    assert [step.billed for step in steps if step.thread == "agent-general-purpose"] == AGENT
    assert not problems


def test_a_request_has_its_own_answer_and_the_next_repeats_it() -> None:
    steps, _ = seen("claude_bodies/dump")
    second = [step for step in steps if step.thread == "main"][1]
    assert second.texts()[-3:] == ["Let me look.", 'Read {"file_path":"/home/a/tide/notes.txt"}',
                                   "1\tthe tide turns at six today\n2\t"]  # fmt: skip
    # One of the three tools is deferred, and nothing has found it.
    assert second.kinds()[:4] == ["tool_definition"] * 2 + ["system_prompt"] * 2


def test_the_session_is_the_one_of_the_index_and_ids_are_the_requests() -> None:
    folder = Folder("dump", DUMP)
    found = list(registry.capture_events(FORMAT, folder, lambda _: None))
    injections = [e for e in found if e["event_type"] == "context.injection.applied"]
    assert {e["session_id"] for e in injections} == {SESSION}
    assert {e["data"]["native_id"] for e in injections} == {line["request_id"] for line in index()}


def test_the_index_alone_opens_what_stands_beside_it() -> None:
    steps, problems = seen("claude_bodies/dump/index.jsonl")
    assert len(steps) == 7
    assert not problems


def test_an_index_in_a_stream_says_that_the_bodies_are_not_there() -> None:
    found, problems = events("claude-bodies", (DUMP / "index.jsonl").read_bytes())
    assert slugs(problems) == ["bodies-not-found"]
    assert not [e for e in found if e["event_type"] == "context.injection.applied"]


def test_the_transcript_beside_it_tells_the_prompts(tmp_path: Path) -> None:
    made = copied(tmp_path)
    shutil.copy(TRANSCRIPT, made / f"{SESSION}.jsonl")
    found = list(registry.capture_events(FORMAT, Folder("dump", made), lambda _: None))
    turns = [
        e["turn_id"]
        for e in found
        if e["event_type"] == "context.injection.applied" and e.get("thread_id", "main") == "main"
    ]
    prompts = [line["promptId"] for line in map(orjson.loads, TRANSCRIPT.read_bytes().splitlines())
               if line["type"] == "user" and isinstance(line["message"]["content"], str)]  # fmt: skip
    assert len(set(turns)) == 3
    assert set(turns) <= set(prompts)
    without = list(registry.capture_events(FORMAT, Folder("dump", DUMP), lambda _: None))
    assert not {e.get("turn_id") for e in without} & set(prompts)


def test_without_an_index_order_and_pairs_come_from_what_is_repeated(tmp_path: Path) -> None:
    steps, problems = seen(copied(tmp_path, "index.jsonl"))
    main = [step for step in steps if step.thread == "main"]
    assert [len(step.window) for step in main] == sorted(len(step.window) for step in main)
    assert [step.billed for step in main][:2] == MAIN[:2]
    # Four answers are in the same words, or the last of their conversation: nothing says whose they are.
    assert [(problem.slug, problem.line) for problem in problems] == [("unpaired-answers", 1)]
    assert {step.billed for step in steps} - {None} <= {*MAIN, *AGENT}


def body(content: str, *names: str) -> dict[str, object]:
    """A request's body as Claude Code 2.1.330 sends it, with tools of these names."""
    schema = {"type": "object", "properties": {"file_path": {"type": "string"}}, "required": ["file_path"]}
    return {
        "model": "claude-opus-5-5",
        "messages": [{"role": "user", "content": content}],
        "system": [{"type": "text", "text": "You are a Claude agent."}],
        "tools": [{"name": name, "description": "Reads a file.", "input_schema": schema} for name in names],
        "metadata": {"user_id": orjson.dumps({"session_id": SESSION}).decode()},
        "max_tokens": 64000,
        "stream": True,
    }


def test_without_an_index_the_conversation_with_the_most_tools_is_first(tmp_path: Path) -> None:
    """All have the same first message and length: tools alone tell the main agent's from a side question."""
    for digit, names in enumerate(((), ("Read",), ("Read", "Bash", "Edit"), ("Read", "Bash"))):
        file = tmp_path / f"{digit}7d5dd8f-d95b-4bb5-a2d8-057c9f84f503.request.json"
        file.write_bytes(orjson.dumps(body("What do the notes say?", *names)))
    steps, _ = seen(tmp_path)
    assert [step.kinds().count("tool_definition") for step in steps] == [3, 2, 1, 0]


def test_a_request_without_an_answer_stands_at_its_place(tmp_path: Path) -> None:
    lines = (DUMP / "index.jsonl").read_bytes().splitlines(keepends=True)
    lost = index()[1]
    made = copied(tmp_path, lost["response_file"])
    (made / "index.jsonl").write_bytes(b"".join([lines[0], *lines[2:]]))
    steps, problems = seen(made)
    assert [step.billed for step in steps if step.thread == "main"] == [2720, None, *MAIN[2:]]
    assert not problems


def test_a_body_that_is_gone_is_reported_and_costs_its_step_only(tmp_path: Path) -> None:
    steps, problems = seen(copied(tmp_path, index()[2]["request_file"]))
    assert [step.billed for step in steps if step.thread == "main"] == [2720, 2796, 3473, 3512]
    assert [problem.line for problem in problems if problem.slug == "no-request"] == [1]


def test_a_body_that_an_index_names_twice_is_one_request(tmp_path: Path) -> None:
    made = copied(tmp_path)
    lines = (made / "index.jsonl").read_bytes().splitlines(keepends=True)
    (made / "index.jsonl").write_bytes(b"".join([*lines, lines[0]]))
    steps, problems = seen(made)
    assert len(steps) == len(seen(DUMP)[0])
    assert slugs(problems) == ["duplicate-entry"]
    assert index()[0]["request_file"] in problems[0].message


def test_an_index_never_leads_out_of_its_directory(tmp_path: Path) -> None:
    made = copied(tmp_path)
    (tmp_path / "outside.request.json").write_bytes(b'{"messages":[{"role":"user","content":"OUTSIDE"}]}')
    line = {**index()[0], "request_file": "../outside.request.json"}
    with (made / "index.jsonl").open("ab") as file:
        file.write(orjson.dumps(line) + b"\n")
    found = list(registry.capture_events(FORMAT, Folder("dump", made), lambda _: None))
    assert "OUTSIDE" not in repr(found)


def test_two_sessions_of_a_directory_are_two(tmp_path: Path) -> None:
    made = copied(tmp_path)
    other = "11110f0f-2222-4333-8444-555555555555"
    lines = (DUMP / "index.jsonl").read_text().splitlines(keepends=True)
    second = [line.replace(SESSION, other) for line in lines]
    # Interleaved, as two clients with one directory write.
    names = {
        name: name.replace(".re", "2.re")
        for line in index()
        for name in (line["request_file"], line["response_file"])
    }
    for name, copy in names.items():
        (made / copy).write_text((DUMP / name).read_text().replace(SESSION, other))
    for name, copy in names.items():
        second = [line.replace(name, copy) for line in second]
    mixed = [line for pair in zip(lines, second, strict=True) for line in pair]
    (made / "index.jsonl").write_text("".join(mixed))
    steps, problems = seen(made)
    assert [step.billed for step in steps if step.thread == "main"] == MAIN * 2
    assert not problems


def test_log_records_with_bodies_are_a_capture_too() -> None:
    steps, problems = seen("claude_bodies/records.jsonl")
    assert [step.billed for step in steps if step.thread == "main"] == [2720, 2796, 3123, 3473]
    assert [step.billed for step in steps if step.thread == "agent-general-purpose"] == AGENT
    assert not problems
    found, _ = events("claude-bodies", RECORDS.read_bytes())
    turns = [e["turn_id"] for e in found if e["event_type"] == "context.injection.applied"]
    assert set(turns) == {"2e7a07be-0dc3-436a-ac70-dd72b8679c9c", "d67fa91e-2d35-424f-8751-cf310e3ecfc9"}


def test_bodies_of_no_session_are_not_those_of_the_session_before(tmp_path: Path) -> None:
    made, lines = tmp_path / "records.jsonl", RECORDS.read_bytes().splitlines()
    lost = [line.replace(b'"session.id"', b'"session.lost"') for line in lines[len(lines) // 2 :]]
    made.write_bytes(b"\n".join(lines[: len(lines) // 2] + lost))
    found, _ = events("claude-bodies", made.read_bytes())
    sent = [e["session_id"] for e in found if e["event_type"] == "context.injection.applied"]
    assert len(sent) == 6
    assert len(set(sent)) == 2
    assert sent[-1] == ""
    assert not seen(made)[1]


def test_log_records_that_name_files_are_read_with_those_beside_them(tmp_path: Path) -> None:
    made = tmp_path / "logs.jsonl"
    with made.open("wb") as file:
        for number, line in enumerate(map(orjson.loads, RECORDS.read_bytes().splitlines())):
            for at, record in enumerate(line["resourceLogs"][0]["scopeLogs"][0]["logRecords"]):
                for attribute in record["attributes"]:
                    if attribute["key"] == "body":
                        name = f"{number}-{at}.json"
                        (tmp_path / name).write_text(attribute["value"]["stringValue"])
                        attribute |= {"key": "body_ref", "value": {"stringValue": f"/elsewhere/{name}"}}
            file.write(orjson.dumps(line) + b"\n")
    steps, problems = seen(made)
    assert len(steps) == 6
    assert not problems
    alone = tmp_path / "alone"
    alone.mkdir()
    shutil.copy(made, alone)
    steps, problems = seen(alone / "logs.jsonl")
    assert not steps
    assert slugs(problems) == ["bodies-not-found"]


def test_a_body_that_the_client_cut_is_said_and_not_guessed_at() -> None:
    records = RECORDS.read_bytes().splitlines(keepends=True)
    line = orjson.loads(records[0])
    bodies = [
        attribute
        for record in line["resourceLogs"][0]["scopeLogs"][0]["logRecords"]
        for attribute in record["attributes"]
        if attribute["key"] == "body" and "messages" in attribute["value"]["stringValue"]
    ]
    bodies[0]["value"]["stringValue"] = bodies[0]["value"]["stringValue"][:500]
    found, problems = events("claude-bodies", b"".join([orjson.dumps(line) + b"\n", *records[1:]]))
    assert slugs(problems) == ["bodies-not-found"]
    assert len([e for e in found if e["event_type"] == "context.injection.applied"]) == 5


def test_detection() -> None:
    assert detected((DUMP / "index.jsonl").read_bytes()) == "claude-bodies"
    assert detected((DUMP / "index.jsonl").read_bytes()[:430]) == "claude-bodies", "a line that is cut"
    assert detected(b'{"request_file":5}\n') is None
    assert detected(RECORDS.read_bytes()) == "claude-bodies"
    assert detected(RECORDS.read_bytes().replace(b"_body", b"_bodies")) == "otel"
    assert getattr(registry.detect_folder(Folder("dump", DUMP)), "name", None) == "claude-bodies"
    assert FORMAT.detect_folder(Folder("pairs", FIXTURES / "api/pairs")) == 0
    for entry in index():
        assert detected((DUMP / entry["request_file"]).read_bytes()) == "api"
        assert detected((DUMP / entry["response_file"]).read_bytes()) == "api"


def test_a_dump_below_a_directory_of_much_else_is_not_all_of_it(tmp_path: Path) -> None:
    copied(tmp_path)
    assert FORMAT.detect_folder is not None
    assert FORMAT.detect_folder(Folder("x", tmp_path)) > 0
    for n in range(40):
        (tmp_path / f"other-{n}.jsonl").write_text("{}\n")
    assert FORMAT.detect_folder(Folder("x", tmp_path)) == 0
    assert FORMAT.detect_folder(Folder("x", tmp_path / "dump")) > 0
