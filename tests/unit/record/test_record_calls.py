"""The typed calls, turns and steps: what they write, and that the replay shows it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from record_help import ROOT, ctxctl, data, events, replayed, types

from ctxctl import Recorder


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.jsonl"


def test_every_call_writes_its_record_and_the_replay_shows_the_session(path: Path) -> None:
    with Recorder(path, source="agent/1", strict=True) as recorder:
        with recorder.turn() as turn:
            turn.surface(items=["notes", "faq"], sources=["disk"], kind="turn_surface")
            notes = turn.item(
                "notes", "text of the notes " * 9, kind="file_excerpt", title="Notes", source="disk"
            )
            faq = turn.item("faq", {"questions": [1, 2.5e-07, "ä"]}, priority=0.5)
            turn.selection(
                [notes], omitted=[(faq, "low_relevance")], candidates=[notes, faq], scores={faq: 0.1}
            )
            turn.budget(max_tokens=1000, reserved_tokens=100, actual_tokens=40, dropped=[faq], max_input=950)
            with turn.step(model="gpt-5"):
                recorder.assembly([(notes, "user")], model="gpt-5")
                recorder.injection(native_id="req-1")
                recorder.usage(input_tokens=50, cached_tokens=10, output_tokens=3)
            gap = turn.missing("which file?", severity="high")
            turn.missing("which file?", missing_id=gap, status="resolved", resolved_by=["notes"])
        with recorder.turn() as turn, turn.step():
            short = turn.item("short", "what it comes to", kind="thread_summary")
            recorder.compaction([notes], summary=short)
            recorder.assembly([short])
            recorder.injection()
            recorder.redaction("notes", method="mask", policies=["p1"])
            recorder.remove("faq", cause="detached")
            recorder.event("agent.thought", {"of": "something"}, metadata={"more": 1})
        recorder.end_session()
    assert (recorder.dropped, recorder.written) == (0, len(events(path)))
    assert set(types(path)) == {
        "surface.created", "item.added", "selection.completed", "budget.applied", "assembly.created",
        "injection.applied", "ctxctl.usage.reported", "missing.detected", "missing.resolved",
        "compaction.completed", "redaction.applied", "item.removed", "agent.thought", "ctxctl.session.ended",
    }  # fmt: skip
    first, second = replayed(path)
    assert (first["layer"], first["window"]["limit"], first["usage"]["reported_input"]) == (
        "injected",
        1000,
        50,
    )
    assert first["counts"] == {"added": 1, "updated": 0, "removed": 0, "skipped": 0, "omitted": 1}
    assert [(c["item"], c["status"], c["cause"]) for c in second["changes"]] == [
        ("short", "added", None), ("notes", "removed", "compacted"),
    ]  # fmt: skip
    assert ctxctl("validate", str(path)).returncode == 0


def test_a_structured_content_has_the_digest_that_a_reader_computes(path: Path) -> None:
    with Recorder(path, strict=True) as recorder:
        content = {"b": [1e16, 1.5e-9, "é\U0001f600"], "a": {"z": None, "y": True}}
        ref = recorder.item("x", content)
        recorder.assembly([ref])
        recorder.injection()
    (step,) = replayed(path)
    assert f"x@{step['changes'][0]['version']}" == ref


def test_an_item_is_added_updated_unchanged_and_told_again_after_it_was_removed(path: Path) -> None:
    with Recorder(path, strict=True) as recorder:
        for text in ("one", "one", "two"):
            recorder.item("x", text)
        recorder.remove("x")
        recorder.item("x", "two")
    assert types(path) == ["item.added", "item.updated", "item.removed", "item.added"]
    assert recorder.written == 5  # the second one is in the file, too


def test_a_content_is_written_once_and_then_referred_to(path: Path) -> None:
    long = "a text that is longer than sixty-four bytes, so that it is written only once"
    with Recorder(path, strict=True) as recorder:
        for name in ("a", "b"):
            recorder.item(name, long)
        recorder.item("c", "short")
        recorder.item("d", "short")
    modes = [record["content_mode"] for record in data(path, "context.item.added")]
    assert modes == ["inline", "ref", "inline", "inline"]
    assert path.read_text().count(long) == 1


def test_a_long_session_costs_what_changes(path: Path) -> None:
    sizes = []
    with Recorder(path, strict=True) as recorder:
        refs = []
        for turn in range(60):
            refs.append(recorder.item(f"m{turn}", f"message {turn} " * 8))
            if turn == 40:
                del refs[5:15]
            before = path.stat().st_size
            with recorder.turn() as scope, scope.step():
                recorder.assembly(refs)
                recorder.injection()
            sizes.append(path.stat().st_size - before)
    assert max(sizes[1:]) < 1.5 * sizes[1]
    assert [step["counts"]["added"] for step in replayed(path)] == [1] * 60


def test_what_is_recorded_inside_belongs_to_the_turn_and_step_that_are_open_here(path: Path) -> None:
    with Recorder(path, session="s", strict=True) as recorder:
        recorder.item("before", "x")
        with recorder.turn("t1") as turn:
            recorder.item("in-turn", "x")
            with turn.step(step_id="r1"):
                recorder.item("in-step", "x")
            recorder.item("behind", "x")
        recorder.item("after", "x")
    places = {e["data"]["item_id"]: (e.get("turn_id"), e.get("step_id")) for e in events(path)}
    assert places == {
        "before": (None, None), "in-turn": ("t1", None), "in-step": ("t1", "r1"), "behind": ("t1", None),
        "after": (None, None),
    }  # fmt: skip


async def test_turns_of_tasks_that_run_at_once_are_threads_of_their_own(path: Path) -> None:
    recorder = Recorder(path, strict=True)

    async def answer(number: int) -> None:
        async with recorder.turn() as turn:
            ref = recorder.item(f"q{number}", f"question {number}")
            await asyncio.sleep(0.01)
            with turn.step():
                recorder.assembly([ref])
                await asyncio.sleep(0.01)
                recorder.injection()

    await asyncio.gather(*map(answer, range(4)))
    await answer(4)
    recorder.close()
    steps = replayed(path)
    assert sorted(step["thread"] for step in steps) == ["main", "main", "main~2", "main~3", "main~4"]
    assert all(step["counts"]["added"] == 1 for step in steps)


async def test_a_task_that_is_cancelled_leaves_its_turn_and_everything_whole(path: Path) -> None:
    recorder = Recorder(path, strict=True)

    async def endless() -> None:
        async with recorder.turn() as turn, turn.step():
            for number in range(10**9):
                recorder.item(f"i{number}", "x" * 100)
                await asyncio.sleep(0)

    task = asyncio.create_task(endless())
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with recorder.turn() as turn:
        assert turn.thread == "main"
    recorder.close()
    assert types(path)[-1] == "ctxctl.step.failed"
    assert data(path, "ctxctl.step.failed") == [
        {"schema_version": "0.1.1", "error": "asyncio.exceptions.CancelledError"}
    ]


def test_threads_write_whole_lines_and_lose_none(path: Path) -> None:
    recorder = Recorder(path, strict=True)

    def work(name: int) -> None:
        for number in range(300):
            recorder.item(f"{name}/{number}", f"{name} {number} " * 20)

    threads = [threading.Thread(target=work, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    recorder.close()
    found = events(path)
    assert len({event["data"]["item_id"] for event in found}) == 8 * 300
    assert sorted(event["metadata"]["ctxctl"]["seq"] for event in found) == list(range(1, 8 * 300 + 1))


def test_a_wrong_call_is_counted_and_raised_only_where_asked(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorder = Recorder(path)
    call: Any = recorder
    assert call.item() == ""
    assert call.surface(items=7, nonsense=object()) == ""
    assert call.turn().step().request("no json").id
    recorder.item("fine", "x")
    assert recorder.dropped == 3
    recorder.close()
    assert types(path) == ["ctxctl.record.dropped", "item.added"]
    assert data(path, "ctxctl.record.dropped")[0]["n"] == 3
    assert "3 of 4 events are not in the trace" in capsys.readouterr().err
    with Recorder(path, strict=True) as strict, pytest.raises(TypeError):
        strict.item()  # type: ignore[call-arg]


def test_fields_of_the_wrong_type_are_set_aside_and_the_line_is_valid(path: Path) -> None:
    with Recorder(path, strict=True) as recorder:
        call: Any = recorder
        call.item(
            "x", "text", title=["no", "title"], kind=None, tokens=-1, byte_size="big", priority=float("nan")
        )
        call.budget(max_tokens="many", reserved_tokens=2**60, target=None)
        call.missing(None, severity={})
        call.compaction({"a", "b"}, method=3)
        call.event("bad name\n", {"x": 1})
    first = data(path, "context.item.added")[0]
    assert set(first["metadata"]["ctxctl"]["misfits"]) == {"title", "token_estimate", "byte_size", "priority"}
    assert len(events(path)) == 5


def test_two_recorders_of_one_session_do_not_share_names(path: Path) -> None:
    for _ in range(2):
        with Recorder(path, session="one", strict=True) as recorder, recorder.turn() as turn, turn.step():
            recorder.assembly(
                [recorder.item("x", "a text that is told by both of them, in full, as each is alone")]
            )
            recorder.injection()
    assert len({event["step_id"] for event in events(path)}) == 2
    assert len(replayed(path)) == 2


def test_importing_it_loads_nothing_slow(tmp_path: Path) -> None:
    code = "import sys; from ctxctl import Recorder; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert not loaded & {"orjson", "re2", "msgspec", "textual", "typer", "tiktoken", "fastjsonschema",
    "hashlib",
                         "json", "dataclasses", "pathlib", "asyncio", "threading", "uuid"}  # fmt: skip
    assert len([name for name in loaded if name.startswith("ctxctl")]) <= 9
    made = f"Recorder({str(tmp_path / 'x')!r}).item('a', 'b')"
    code = f"import sys; from ctxctl import Recorder; {made}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    foreign = {"msgspec", "textual", "typer", "tiktoken", "fastjsonschema", "pydantic", "asyncio", "xxhash"}
    assert not set(done.stdout.split()) & foreign


def test_importing_the_package_loads_no_recorder() -> None:
    code = "import sys, ctxctl; print(*sys.modules); print(ctxctl.__version__)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not any(name.startswith("ctxctl.") for name in done.stdout.split())


def test_the_trace_is_its_users_alone(path: Path) -> None:
    old = os.umask(0)
    try:
        Recorder(path).item("x", "y")
    finally:
        os.umask(old)
    assert path.stat().st_mode & 0o777 == 0o600
