"""Amplifier's real core with the hook module, in a process of its own: the core may crash when one ends."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from ctxctl.session import Inspector
from tests.frameworks import examples
from tests.frameworks.fake import Fake
from tests.frameworks.session import Recording
from tests.unit.providers.wire_rebuild import check

ENVIRONMENTS = ("httpx2",)
MODULES = Path(__file__).with_name("amplifier_modules.py")


def run(*args: str, cwd: Path) -> dict[str, list[Any]]:
    """What the modules of a session saw themselves."""
    done = subprocess.run(
        [sys.executable, str(MODULES), *args], capture_output=True, text=True, timeout=60,
        check=False, cwd=cwd, env={**os.environ, "HOME": str(cwd)},
    )  # fmt: skip
    assert done.stdout, done.stderr
    seen: dict[str, list[Any]] = json.loads(done.stdout.splitlines()[-1])
    assert len(seen["errors"]) == 1
    assert "ctxctl" not in done.stderr
    return seen


def frames(inspector: Inspector, thread: str) -> list[Any]:
    """The frames of a thread, in order."""
    list(inspector.replay())
    assert inspector.problems == []
    assert inspector.summary is not None
    found = [inspector.frame(at) for at in range(inspector.summary.steps)]
    return [frame for frame in found if frame.step.thread == thread]


def windows(recording: Recording, thread: str) -> list[list[str]]:
    """The texts of each window of a thread, in order."""
    with Inspector.open(str(recording.path)) as inspector:
        found = frames(inspector, thread)
        return [[inspector.text(one.content) for one in frame.placements if one.content] for frame in found]


def texts(view: list[dict[str, Any]]) -> list[str]:
    """A view as the texts of its items."""
    found = []
    for message in view:
        if isinstance(message["content"], str):
            found.append(message["content"])
        else:
            found += [
                f"{one['name']} {json.dumps(one['input'], separators=(',', ':'))}"
                for one in message["content"]
            ]
    return found


def test_every_view_is_recorded(recording: Recording, tmp_path: Path) -> None:
    seen = run(str(recording.path), "5", "views", cwd=tmp_path)
    child = [view for view in seen["views"] if view[-1]["content"] == "A question of the child's."]
    assert len(child) == 1
    own = [view for view in seen["views"] if view not in child]
    assert windows(recording, "main") == [texts(view) for view in own]
    assert windows(recording, "explorer") == [texts(view) for view in child]
    marks = [row.data["metadata"]["ctxctl"] for row in recording.rows("context.assembly.created")]
    assert {mark["layer"] for mark in marks} == {"view"}
    assert recording.rows("context.injection.applied") == []


def test_turns_bills_compactions_and_errors(recording: Recording, tmp_path: Path) -> None:
    run(str(recording.path), "5", "views", cwd=tmp_path)
    bills = [row for row in recording.rows("ctxctl.usage.reported") if row.thread == "main"]
    names = "input_tokens", "cached_tokens", "output_tokens"
    assert [tuple(row.data[name] for name in names) for row in bills] == [
        (101, 64, 7), (102, 64, 7), (103, 64, 7), (104, 64, 7),
    ]  # fmt: skip
    steps = [row.step for row in recording.rows("context.assembly.created") if row.thread == "main"]
    assert [row.step for row in bills] == steps[:4]
    (failed,) = recording.rows("ctxctl.step.failed")
    assert (failed.step, failed.data["error"]) == (steps[4], "RateLimited")
    turns = [row.turn for row in recording.rows("amplifier.prompt.submit") if row.thread == "main"]
    assert [turn and turn[:6] for turn in turns] == ["turn-1", "turn-2", "turn-3"]
    gone = recording.rows("context.compaction.completed")
    assert gone
    assert all(row.data["source_item_refs"] for row in gone)
    assert gone[0].data["replacement_policy"] == "ephemeral_view_only"
    budgets = recording.rows("context.budget.applied")
    assert {(row.data["max_tokens"], row.data["actual_tokens"]) for row in budgets} == {(1000, 400)}
    events = {row.type for row in recording.rows()}
    assert {
        "amplifier.session.start", "amplifier.session.end", "amplifier.session.fork", "amplifier.tool.pre",
        "amplifier.tool.post", "amplifier.provider.request", "amplifier.llm.request",
        "amplifier.llm.response",
        "amplifier.context.compaction", "amplifier.orchestrator.complete", "amplifier.provider.error",
    } <= events  # fmt: skip
    assert "amplifier.content_block.delta" not in events
    assert recording.rows()[-1].type == "ctxctl.session.ended"


def test_bodies_that_the_provider_tells_are_the_requests(recording: Recording, tmp_path: Path) -> None:
    seen = run(str(recording.path), "50", "raw", cwd=tmp_path)
    own = [body for body in seen["bodies"] if "question of the child" not in json.dumps(body)]
    with Inspector.open(str(recording.path)) as inspector:
        assert [frame.step.layer for frame in frames(inspector, "main")] == ["injected"] * len(own)
    views = [view for view in seen["views"] if "question of the child" not in json.dumps(view)]
    assert windows(recording, "main/views") == [texts(view) for view in views]
    rows = [row for row in recording.rows("context.assembly.created") if row.thread == "main"]
    assert len(rows) == len(own)
    only = recording.path.with_name("main.jsonl")
    lines = recording.path.read_bytes().splitlines(keepends=True)
    only.write_bytes(b"".join(line for line in lines if b'"thread_id":"main"' in line))
    with Inspector.open(str(only)) as inspector:
        list(inspector.replay())
        assert check(inspector, [("openai-chat", body) for body in own]) == len(own)


def test_without_a_path_it_is_beside_the_sessions_other_files(recording: Recording, tmp_path: Path) -> None:
    run("", "50", "views", cwd=tmp_path)
    (found,) = tmp_path.glob(".amplifier/projects/*/sessions/root-1/ctxctl.jsonl")
    assert found.stat().st_mode & 0o777 == 0o600
    assert b"amplifier.session.end" in found.read_bytes()


def test_a_trace_that_cannot_be_written_is_not_noticed(recording: Recording, tmp_path: Path) -> None:
    recording.path.mkdir()
    done = subprocess.run(
        [sys.executable, str(MODULES), str(recording.path), "50", "views"], capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert json.loads(done.stdout.splitlines()[-1])["views"]


def test_the_core_takes_the_module_for_a_hook(recording: Recording, tmp_path: Path) -> None:
    program = (
        "import asyncio, sys\n"
        "from amplifier_core.validation import HookValidator\n"
        "given = {'path': sys.argv[1]}\n"
        "made = asyncio.run(HookValidator().validate('ctxctl.hooks.amplifier', config=given))\n"
        "print(made.passed, [one.message for one in made.checks if not one.passed], flush=True)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(recording.path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == "True []\n", done.stderr


def test_the_core_finds_it_by_its_name() -> None:
    (entry,) = entry_points(group="amplifier.modules", name="hooks-ctxctl")
    assert asyncio.iscoroutinefunction(entry.load())


def test_the_example_runs(fake: Fake, recording: Recording) -> None:
    before = (
        f"import sys; sys.path.insert(0, {str(MODULES.parents[2])!r})",
        "from tests.frameworks import amplifier_modules as made",
        "made.install(50, raw=False)",
        "made.stand_in({'loop_small': 'loop_basic', 'context_small': 'context_simple',"
        " 'provider_small': 'provider_anthropic'})",
    )
    assert "Answer 1." in examples.run("amplifier_session.py", fake, recording.path.parent, *before)
    assert recording.said("user_message") == ["Why is the sky blue?"]
