"""`ctxctl record --otlp --events` as programs: fed by exporters and from JavaScript, watched live."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ctxctl.record.recorder import Recorder
from tests.unit.record.otlp_help import Program, traces_protobuf
from tests.unit.record.record_help import SECRET, data, events, replayed

ROOT = Path(__file__).resolve().parents[2]
CLIENT = ROOT / "clients" / "js"
node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")


@contextmanager
def recording(
    out: Path, *options: str, port: int = 0, ends: int = 0
) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    command = [sys.executable, "-m", "ctxctl", "record", *options, "--port", str(port), "-o", str(out)]
    child = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    assert child.stderr is not None
    try:
        line = child.stderr.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
        assert found, line
        yield int(found[1]), child
    finally:
        child.send_signal(signal.SIGTERM)
        child.communicate(timeout=60)
        assert child.returncode == ends


def _post(port: int, path: str, body: bytes, media: str) -> int:
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", body, {"Content-Type": media})
    with urllib.request.urlopen(request, timeout=30) as response:
        return int(response.status)


def _until(found: Any, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.05)


def _has(file: Path, text: str) -> bool:
    return text in file.read_text()


def test_spans_are_seen_while_the_program_still_runs(tmp_path: Path) -> None:
    out, program, said = tmp_path / "t.jsonl", Program(), [("system", "Be terse.")]
    with recording(out, "--otlp") as (port, _):
        _until(out.exists)
        shown = tmp_path / "shown.txt"
        with shown.open("w") as screen:
            command = [sys.executable, "-m", "ctxctl", "watch", "--plain", str(out)]
            watch = subprocess.Popen(command, stdout=screen, stderr=subprocess.DEVNULL, cwd=ROOT)
        try:
            for trace in range(3):
                said.append(("user", f"Question {trace}?"))
                span = program.chat(trace + 1, said, "Yes.", gen_ai__conversation__id="conv-5")
                assert _post(port, "/v1/traces", traces_protobuf(span), "application/x-protobuf") == 200
                said.append(("assistant", "Yes."))
                if trace:
                    _until(partial(_has, shown, f"Question {trace - 1}?"))
        finally:
            watch.kill()
            watch.wait()
    assert len(replayed(out)) == 3


def test_spans_that_are_held_are_written_when_it_ends(tmp_path: Path) -> None:
    out, program = tmp_path / "t.jsonl", Program()
    with recording(out, "--otlp") as (port, _):
        agent = program.agent(1, "planner")
        span = program.chat(1, [("user", "Why?")], "So.", agent)
        assert _post(port, "/v1/traces", traces_protobuf(span), "application/x-protobuf") == 200
    assert len(data(out, "context.injection.applied")) == 1


def test_what_was_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    for cycle in range(3):
        out = tmp_path / f"t{cycle}.jsonl"
        known: list[str] = []
        with recording(out, "--events", ends=-9) as (port, child):
            killer = threading.Timer(0.05 * (cycle + 1), child.kill)
            with suppress(OSError):
                while True:
                    line = {"call": "item", "item_id": f"i-{len(known)}", "content": "x" * 2000}
                    assert _post(port, "/v1/events", json.dumps(line).encode(), "application/json") == 200
                    known.append(line["item_id"])
                    if len(known) == 1:  # not before: a busy machine may take long for the first answer
                        killer.start()
        found = [
            line.rstrip(b"\n") for line in out.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")
        ]
        written = {json.loads(line)["data"]["item_id"] for line in found}
        assert known
        assert written >= set(known)


# -- JavaScript -------------------------------------------------------------------------------------------


def _node(code: str, port: int, *more: str, **options: Any) -> subprocess.CompletedProcess[str]:
    head = f"""
        import {{ Client }} from {json.dumps((CLIENT / "ctxctl.js").as_uri())};
        import {{ contextProvider }} from {json.dumps((CLIENT / "sanqian.js").as_uri())};
        const url = "http://127.0.0.1:{port}/v1/events";
    """
    command = ["node", "--input-type=module", "-e", head + code, *more]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)


@node
def test_the_javascript_client_records_a_session(tmp_path: Path) -> None:
    out = tmp_path / "t.jsonl"
    code = """
        const ctx = new Client({ url, session: "js" });
        const turn = ctx.turn();
        turn.item("faq#11", "Blue light.", { kind: "retrieval_result" });
        turn.selection(["faq#11"], { omitted: [["faq#12", "low_relevance"]] });
        const step = turn.request({ model: "gpt-5", messages: [{ role: "user", content: process.argv[1] }] });
        const message = { role: "assistant", content: "So." };
        const usage = { prompt_tokens: 24, completion_tokens: 7 };
        step.response({ object: "chat.completion", choices: [{ message }], usage });
        const body = { model: "gpt-5", messages: [{ role: "user", content: "x" }] };
        ctx.request(body, { thread: "side" }).failed(new TypeError("x"));
        const odd = { big: 10n, huge: 12345678901234567890n, f() {}, d: new Date(0), u: undefined };
        odd.odd = odd;
        ctx.item("odd", odd);
        ctx.item("getter", { get x() { throw new Error("no") } });
        ctx.event({ event_type: "my.event", data: { n: 1 } });
        ctx.budget(null); ctx.item(); ctx.item(5n); ctx.selection(7);
        if (!(await ctx.flush())) throw new Error("not flushed");
        console.log(JSON.stringify([ctx.written, ctx.dropped, ctx.reasons]));
    """
    with recording(out, "--events") as (port, _):
        done = _node(code, port, f"Use {SECRET}")
        assert done.returncode == 0, done.stderr
        written, dropped, _ = json.loads(done.stdout)
        assert written >= 9
        assert f"{dropped} of {written + dropped} events are not in the trace" in done.stderr
    assert SECRET.encode() not in out.read_bytes()
    steps = replayed(out)
    assert [(step["session"], step["thread"]) for step in steps] == [("js", "main"), ("js", "side")]
    assert data(out, "ctxctl.usage.reported")[0]["input_tokens"] == 24
    assert data(out, "ctxctl.step.failed")[0]["error"] == "TypeError"
    odd = next(one for one in data(out, "context.item.added") if one["item_id"] == "odd")["content"]
    assert odd["big"] == 10
    assert odd["huge"]["value"] == "12345678901234567890"
    assert odd["odd"] == {"ctxctl.stub": "cycle"}
    assert odd["d"] == "1970-01-01T00:00:00.000Z"


@node
def test_a_program_without_a_receiver_goes_on_and_ends(tmp_path: Path) -> None:
    code = """
        const ctx = new Client({ url: "http://127.0.0.1:9/v1/events", maxBytes: 100_000 });
        for (let n = 0; n < 2000; n++) ctx.item("x" + n, "y".repeat(100));
        const away = new Client({ url: "http://example.com/v1/events" });
        away.item("a", "b");
        await away.flush(50);
        console.log(JSON.stringify([await ctx.flush(300), ctx.written, away.dropped, away.reasons]));
    """
    done = _node(code, 9)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [False, 0, 1, {"no receiver": 1}]
    assert "2000 of 2000 events are not in the trace" in done.stderr


@node
def test_a_receiver_that_comes_late_gets_everything_and_hears_of_what_was_lost(tmp_path: Path) -> None:
    out = tmp_path / "t.jsonl"
    code = """
        const ctx = new Client({ url, maxBytes: 20_000 });
        for (let n = 0; n < 100; n++) ctx.item("x" + n, "y".repeat(100));
        console.log("waiting");
        if (!(await ctx.flush(60_000))) throw new Error("not flushed");
        console.log(JSON.stringify([ctx.written, ctx.dropped]));
    """
    with recording(tmp_path / "other.jsonl", "--events") as (port, _):
        pass
    head = f"""
        import {{ Client }} from {json.dumps((CLIENT / "ctxctl.js").as_uri())};
        const url = "http://127.0.0.1:{port}/v1/events";
    """
    child = subprocess.Popen(
        ["node", "--input-type=module", "-e", head + code],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "waiting\n"
    with recording(out, "--events", port=port):
        written, dropped = json.loads(child.stdout.readline())
        assert child.wait(30) == 0
    assert written + dropped == 100
    assert written > 0
    assert dropped > 0
    assert [one["n"] for one in data(out, "ctxctl.record.dropped")] == [dropped]
    assert [one["item_id"] for one in data(out, "context.item.added")] == [f"x{n}" for n in range(written)]


@node
def test_the_sanqian_wrapper_records_what_the_python_one_does(tmp_path: Path) -> None:
    theirs, ours = tmp_path / "js.jsonl", tmp_path / "py.jsonl"
    given: list[Any] = [
        {"content": "Open note: plans", "title": "Open note", "type": "note", "version": "v1"},
        None,
        {
            "content": {"selection": "a", "n": 1},
            "id": "editor-selection",
            "summary": "s",
            "metadata": {"x": 1},
        },
        {"content": "Open note: plans", "title": "Open note", "type": "note", "version": 2},
        {"content": None, "id": "empty"},
        {"content": "later", "id": "empty", "link": "app://x"},
    ]
    listed = [{"items": [{"id": "n1", "title": "One"}, {"id": 2}, {}], "hasMore": True}, [{"id": "n3"}], None]
    by_id = {"n1": {"content": "[reference]", "id": "n1"}, "n2": {"content": "no id"}, "gone": None}
    code = """
        const [given, listed, byId] = JSON.parse(process.argv[1]);
        class Editor {
          id = "editor-state";
          #private = given;
          async getCurrent() { return this.#private.shift() }
          getList(options) { return listed.shift() }
          async getById(id) { if (id === "boom") throw new Error("theirs"); return byId[id] }
          get name() { return "Editor" }
        }
        const ctx = new Client({ url, session: "s" });
        const editor = contextProvider(ctx, new Editor(), { app: "notes" });
        const said = [];
        for (let n = 0; n < 6; n++) said.push(await editor.getCurrent());
        for (let n = 0; n < 3; n++) said.push(editor.getList({ limit: 3 }));
        for (const id of ["n1", "n2", "gone"]) said.push(await editor.getById(id));
        said.push(await editor.getById("boom").catch((error) => error.message));
        said.push(editor.name, editor.nothing ?? null, editor instanceof Editor);
        if (!(await ctx.close())) throw new Error("not flushed");
        console.log(JSON.stringify(said));
    """
    with recording(theirs, "--events") as (port, _):
        done = _node(code, port, json.dumps([given, listed, by_id]))
        assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [
        *given, *listed, *by_id.values(), "theirs", "Editor", None, True,
    ]  # fmt: skip

    class Editor:
        id = "editor-state"

        def __init__(self) -> None:
            self.given, self.listed = list(given), list(listed)

        def get_current(self) -> Any:
            return self.given.pop(0)

        def get_list(self, options: Any) -> Any:
            return self.listed.pop(0)

        def get_by_id(self, name: str) -> Any:
            return by_id[name]

    with Recorder(ours, session="s") as recorder:
        editor = recorder.context_provider(Editor(), app="notes")
        for _ in range(6):
            editor.get_current()
        for _ in range(3):
            editor.get_list({"limit": 3})
        for name in ("n1", "n2", "gone"):
            editor.get_by_id(name)
    assert _comparable(theirs) == _comparable(ours)
    assert len(_comparable(ours)) > 10


def _comparable(path: Path) -> list[Any]:
    made = []
    for event in events(path):
        record = {name: value for name, value in event["data"].items() if name != "created_at"}
        made.append([event["event_type"], event["session_id"], event["thread_id"], record])
    return made


@node
@pytest.mark.parametrize(
    ("name", "types"),
    [
        (
            "javascript_session.mjs",
            {"context.selection.completed", "context.injection.applied", "ctxctl.usage.reported"},
        ),
        (
            "sanqian_provider.mjs",
            {"context.item.added", "context.surface.created", "context.missing.detected"},
        ),
    ],
)
def test_the_examples_run(tmp_path: Path, name: str, types: set[str]) -> None:
    out = tmp_path / "t.jsonl"
    with recording(out, "--events") as (port, _):
        environment = {**os.environ, "CTXCTL_EVENTS": f"http://localhost:{port}/v1/events"}
        example = ROOT / "docs" / "examples" / name
        done = subprocess.run(
            ["node", str(example)], env=environment, capture_output=True, text=True, timeout=60
        )
        assert (done.returncode, done.stderr) == (0, "")
    assert types <= {event["event_type"] for event in events(out)}


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_request_in_the_documentation_is_answered_as_it_says(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "recording.md").read_text()
    command, shown = re.findall(r"```sh\n(curl .*?)```\n\n```json\n(.*?)```", page, re.DOTALL)[0]
    out = tmp_path / "t.jsonl"
    with recording(out, "--events") as (port, _):
        done = subprocess.run(
            ["sh", "-c", command.replace(":4318", f":{port}")], capture_output=True, text=True, timeout=60
        )
    assert json.loads(done.stdout) == json.loads(shown)
    assert len(replayed(out)) == 1
