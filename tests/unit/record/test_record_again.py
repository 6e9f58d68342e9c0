"""A session that is recorded twice into one file goes on where it stopped, whoever wrote first."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from exchange_help import CHAT, JSON, MESSAGES, RESPONSES, TOOLS, Wire, answer, call, chat
from record_help import child, data, events, replayed

from ctxctl import Recorder
from ctxctl.record.earlier_writers import TAIL

Json = dict[str, Any]
CLAUDE = [*JSON, ("X-Claude-Code-Session-Id", "5a1aaab6-1111-4222-8333-444455556666")]
TOOL = {"name": "Bash", "description": "Runs.", "input_schema": {"type": "object", "properties": {}}}
CODEX_TOOL = {"type": "function", "name": "exec", "parameters": {"type": "object", "properties": {}}}


class Claude:
    """Speaks as Claude Code does: the session in a header, all of the history in each request."""

    def __init__(self, history: list[Json] | None = None) -> None:
        self.history = history or []
        self.number = sum(one["role"] == "assistant" for one in self.history)

    def prompt(self, wire: Wire, text: str, calls: int = 3) -> None:
        self.history.append({"role": "user", "content": [{"type": "text", "text": text}]})
        for _ in range(calls):
            self.number += 1
            name = f"toolu_{self.number}"
            said: Json = {"type": "tool_use", "id": name, "name": "Bash", "input": {"n": self.number}}
            self.ask(wire, said)
            result = {"type": "tool_result", "tool_use_id": name, "content": f"hello {self.number}"}
            self.history.append({"role": "user", "content": [result]})
        self.ask(wire, {"type": "text", "text": f"Done with {text}, after {self.number} calls in all."})

    def ask(self, wire: Wire, said: Json) -> None:
        body = {
            "model": "claude-opus-5",
            "max_tokens": 99,
            "system": [{"type": "text", "text": "You are an agent."}],
            "tools": [TOOL],
            "messages": list(self.history),
        }
        wire.ask(
            body,
            {
                "id": f"msg_{os.urandom(4).hex()}",
                "type": "message",
                "role": "assistant",
                "content": [said],
                "stop_reason": "end_turn",
                "usage": {"input_tokens": 100, "output_tokens": 5},
            },
            MESSAGES,
            CLAUDE,
        )
        self.history.append({"role": "assistant", "content": [said]})


def codex(history: list[Json], wire: Wire, text: str) -> None:
    session = "01a204bd-7044-70e1-824e-98a6b4cdcc35"
    headers = [*JSON, ("session-id", session), ("thread-id", session), ("x-codex-window-id", f"{session}:0")]
    history.append({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})
    for number in range(4):
        body = {
            "model": "gpt-5", "instructions": "You are Codex.", "tools": [CODEX_TOOL], "input": list(history),
            "prompt_cache_key": session,
        }  # fmt: skip
        name = f"call_{len(history)}"
        said: Json = {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": f"Done: {text} and so on."}],
        }
        if number < 3:
            said = {"type": "function_call", "call_id": name, "name": "exec", "arguments": "{}"}
        usage = {"input_tokens": 9, "output_tokens": 2}
        response = {"id": f"resp_{name}", "object": "response", "output": [said], "usage": usage}
        wire.ask(body, response, RESPONSES, headers)
        history.append(said)
        if number < 3:
            history.append({"type": "function_call_output", "call_id": name, "output": f"hello {name}"})


def keyed(history: list[Json], wire: Wire, text: str) -> None:
    """A program of its own with `prompt_cache_key`, as `capture` sees it."""
    history.append({"role": "user", "content": text})
    for number in range(4):
        body = {"model": "m-1", "tools": TOOLS, "messages": list(history), "prompt_cache_key": "my-agent"}
        calls = [call(len(history))] if number < 3 else None
        said = chat(None if calls else f"Done: {text}.", **({"tool_calls": calls} if calls else {}))
        wire.ask(body, said, CHAT)
        history.append(said["choices"][0]["message"])
        if calls:
            history.append(
                {"role": "tool", "tool_call_id": calls[0]["id"], "content": f"hello {len(history)}"}
            )


def own_ids(path: Path) -> None:
    """Every request is a step of its own, and each name of a turn and a step stands for one."""
    steps = [e for e in events(path) if e["event_type"] == "context.injection.applied"]
    assert len({(e["session_id"], e["thread_id"], e["step_id"]) for e in steps}) == len(steps)


def goes_on(path: Path, requests: int = 8) -> None:
    own_ids(path)
    steps = replayed(path)
    assert [step["thread"] for step in steps] == ["main"] * requests
    assert [(step["turn"], step["step"]) for step in steps] == [
        (turn, step) for turn in range(1, requests // 4 + 1) for step in range(1, 5)
    ]
    # The first request of the second run: its prompt and the last answer are new, nothing else.
    for again in steps[4::4]:
        assert again["counts"] | {"skipped": 0} == {
            "added": 2, "updated": 0, "removed": 0, "skipped": 0, "omitted": 0,
        }  # fmt: skip


def test_claude_code_taken_up_again_is_eight_steps(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    first, wire = Claude(), Wire(path)
    first.prompt(wire, "say hello")
    wire.close()
    second, again = Claude(json.loads(json.dumps(first.history))), Wire(path)
    second.prompt(again, "say it once more")
    again.recorder.close()
    goes_on(path)


@pytest.mark.parametrize("client", [codex, keyed])
def test_a_session_in_two_runs_is_eight_steps(tmp_path: Path, client: Any) -> None:
    path = tmp_path / "run.jsonl"
    history: list[Json] = []
    for text in ("say hello", "say it once more"):
        wire = Wire(path)
        client(history, wire, text)
        wire.recorder.close()
    goes_on(path)


def test_three_runs_and_a_line_that_was_torn(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    claude = Claude()
    for text in ("one", "two", "three"):
        wire = Wire(path)
        claude.prompt(wire, text)
        wire.recorder.close()
        with path.open("ab") as file:
            file.write(b'{"schema_version":"0.1.1","event_id":"torn')
    whole = b"".join(line for line in path.read_bytes().splitlines(True) if b'"torn' not in line)
    path.write_bytes(whole)
    goes_on(path, 12)


def test_a_conversation_of_its_own_is_not_the_one_that_was_left(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    for text in ("say hello", "what is the weather like"):
        wire = Wire(path)
        keyed([], wire, text)
        wire.recorder.close()
    own_ids(path)
    threads = {step["thread"] for step in replayed(path)}
    assert len(threads) == 2
    assert "main" in threads
    assert any(name.startswith("conversation-") for name in threads)


def test_what_a_summary_stands_for_goes_on_in_its_thread(tmp_path: Path) -> None:
    """`/compact` in a run of its own: Claude Code sends the summary, and then the prompt."""
    path = tmp_path / "run.jsonl"
    claude, wire = Claude(), Wire(path)
    claude.prompt(wire, "say hello")
    wire.recorder.close()
    summary = (
        "This session is being continued from a previous conversation that ran out of context.\n\n"
        "<system-reminder>\n<tools-used-before-summary>Bash</tools-used-before-summary>\n</system-reminder>\n"
        "Summary:\nThe user asked for a greeting."
    )
    notes = (
        "<local-command-caveat>The command below was run directly.</local-command-caveat>",
        "<command-name>/compact</command-name>",
        "<local-command-stdout>Compacted</local-command-stdout>",
    )
    blocks = [{"type": "text", "text": text} for text in (*notes, "What did I ask before?")]
    again = Wire(path)
    resumed = Claude([{"role": "user", "content": summary}, claude.history[-1]])
    resumed.history.append({"role": "user", "content": blocks})
    resumed.ask(again, {"type": "text", "text": "For a greeting."})
    again.recorder.close()
    steps = replayed(path)
    assert [(step["thread"], step["turn"]) for step in steps][-1] == ("main", 2)
    assert len(data(path, "context.compaction.completed")) == 1
    kinds = [item["context_kind"] for item in data(path, "context.item.added")]
    assert kinds.count("thread_summary") == 2
    from ctxctl.model.results import Turn
    from ctxctl.session import Inspector

    with Inspector.open(str(path)) as inspector:
        turns = [result for result in inspector.replay() if isinstance(result, Turn)]
    assert [turn.title for turn in turns] == ["say hello", "What did I ask before?"]


def test_two_writers_at_a_time_never_share_a_name(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    wires = [Wire(path) for _ in range(3)]
    for number, wire in enumerate(wires):
        wire.ask({"model": "m", "messages": [{"role": "user", "content": f"{number}"}], "tools": TOOLS,
                  "prompt_cache_key": "k"}, chat(f"answer {number}"))  # fmt: skip
    for wire in wires:
        wire.recorder.close()
    own_ids(path)
    assert len(replayed(path)) == 3


def test_a_forked_child_never_takes_a_name_of_its_parent(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    code = """
import os, sys
from ctxctl import Recorder
r = Recorder(sys.argv[1])
def ask(n):
    with r.turn(session="s") as turn, turn.step() as step:
        step.request(model="m", messages=[{"role": "user", "content": n}])
ask("before")
pid = os.fork()
ask("child" if pid == 0 else "parent")
if pid:
    os.waitpid(pid, 0)
r.close()
"""
    done = child(code, str(path))
    assert done.returncode == 0, done.stderr
    own_ids(path)
    names = {e["turn_id"] for e in events(path) if "turn_id" in e}
    assert len(names) == 3


def test_the_recorder_s_own_calls_count_on_in_a_session_that_is_named(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    names = []
    for _ in range(2):
        with Recorder(path, session="s", strict=True) as recorder, recorder.turn() as turn:
            names.append(turn.id)
            with turn.step() as step:
                step.request(model="m", messages=[{"role": "user", "content": "hello"}])
                names.append(step.id)
    assert names[:2] == ["turn-1", "step-1"]
    assert str(names[2]).startswith("turn-2-")
    assert str(names[3]).startswith("step-2-")
    assert [step["counts"]["added"] for step in replayed(path)] == [1, 0]


def test_a_first_writer_has_plain_names_also_when_it_rotates(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with Recorder(path, session="s", rotate_bytes=20_000, strict=True) as recorder:
        for number in range(40):
            with recorder.turn() as turn:
                turn.item(f"i{number}", "x" * 900)
    names = [e["turn_id"] for file in tmp_path.glob("run*.jsonl") for e in events(file)]
    assert sorted(names) == sorted(f"turn-{n}" for n in range(1, 41))
    with Recorder(path, session="s", strict=True) as later, later.turn() as turn:
        assert turn.id is not None
        assert turn.id.startswith("turn-41-")


def test_a_large_file_is_read_at_its_end_only(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with Recorder(path, session="s") as recorder, recorder.turn() as turn:
        turn.item("i", "text")
    with path.open("r+b") as file:
        file.seek(0, os.SEEK_END)
        file.truncate(file.tell() + 3 * TAIL)  # a hole: nothing on the disk
    with path.open("ab") as file:
        file.write(b"\n")
    recorder = Recorder(path, session="s")
    with recorder.turn() as turn:
        assert turn.id is not None
        assert turn.id.startswith("turn-1-")
    recorder.close()


def test_what_is_no_trace_of_ours_costs_nothing_but_the_numbers(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    strange: list[Any] = [
        {"event_type": "context.assembly.created", "session_id": "s", "thread_id": "main",
         "data": {"target": "model", "ordered_blocks": 7, "assembly_id": "a"}},
        {"event_type": "context.item.added", "session_id": "s", "turn_id": "turn-99999999999", "data": []},
        {"event_type": "x", "session_id": 5}, [], "x", {"session_id": "s", "step_id": "step-4~2"},
    ]  # fmt: skip
    path.write_text("\n".join(json.dumps(one) for one in strange) + "\n{not json\n\xff")
    with Recorder(path, session="s", strict=True) as recorder:
        recorder.request(model="m", messages=[{"role": "user", "content": "hello"}])
    assert (recorder.dropped, recorder.written > 0) == (0, True)
    assert '"step-5-' in path.read_text(errors="replace")


def test_the_same_request_after_failures_has_not_failed(tmp_path: Path) -> None:
    wire = Wire(tmp_path / "run.jsonl", session="s")
    body = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
    for number in range(3):
        exchange = wire.send(body, again=number > 0)
        if number < 2:
            answer(exchange, {"error": {"type": "overloaded_error", "message": "secret"}}, 529)
        else:
            # No bill: the answer itself says that it came.
            said = chat("Hello.")
            del said["usage"]
            answer(exchange, said)
    wire.close()
    (step,) = replayed(wire.path)
    assert "failed" not in step["flags"]
    evidence = step["stages"]["evidence"]
    assert evidence["retried"] == 2
    assert evidence["retried_after"] == "HTTP 529: overloaded_error"
    assert [one["attempts"] for one in data(wire.path, "ctxctl.step.answered")] == [3]
