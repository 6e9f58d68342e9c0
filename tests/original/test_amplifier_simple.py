"""Amplifier's own context-simple, loops and logger: live sessions, and random histories.

They are in no registry: these tests run where `AMPLIFIER_MODULES` names checkouts of them (see
`amplifier_sessions.py`).  What the original code made of the random histories is kept as digests, and logs of
live sessions are kept, too: `tests/property/test_context_simple.py` holds the rules against them everywhere.
"""

from __future__ import annotations

import asyncio
import gzip
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ctxctl.model.results import Step
from ctxctl.session import Inspector
from tests.original import amplifier_sessions as sessions
from tests.unit.policies.simple_inputs import DIGESTS, INPUTS, KEPT, Input, View, made, ours

pytestmark = pytest.mark.skipif(not sessions.found(), reason=f"{sessions.MODULES} names no checkouts")
STAGES = ("budget", "assembly")
UPDATE = "CTXCTL_UPDATE_GOLDENS"


async def original(given: Input) -> View:
    """What the original code makes of an input."""
    from amplifier_module_context_simple import SimpleContextManager

    class Hooks:
        told: dict[str, Any] | None = None

        async def emit(self, event: str, data: dict[str, Any]) -> None:
            self.told = data

    hooks = Hooks()
    manager = SimpleContextManager(
        compact_threshold=given.threshold, target_usage=given.target, protected_recent=given.recent,
        protected_tool_results=given.results, truncate_chars=given.chars, hooks=hooks,
        compaction_notice_token_reserve=0,
    )  # fmt: skip
    await manager.set_messages(given.rows)
    return View(await manager.get_messages_for_request(token_budget=given.budget), hooks.told)


def plain(view: View) -> list[dict[str, Any]]:
    """Its messages, without the manager's own marks."""
    return [{k: v for k, v in row.items() if not k.startswith("_")} for row in view.rows]


def test_random_histories_message_for_message() -> None:
    digests = []
    for seed in range(INPUTS):
        given = made(seed)
        theirs, mine = asyncio.run(original(given)), ours(given)
        assert plain(mine) == plain(theirs), seed
        assert mine.told == theirs.told, seed
        digests.append(theirs.digest)
    if os.environ.get(UPDATE):
        head = (
            "# What context-simple made of the inputs of seeds 0, 1, … (tests/unit/policies/simple_inputs.py)"
        )
        DIGESTS.write_text("\n".join((head, *digests, "")), encoding="utf-8")
    kept = [line for line in DIGESTS.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    assert digests == kept, (
        f"the original code is another one than that of the digests: {UPDATE}=1 accepts it"
    )


def live(plan: sessions.Plan, where: Path) -> dict[str, list[Step]]:
    """A session, as its log and as its own recording tell it, under the policy."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.original.amplifier_sessions", str(plan.seed), str(where)],
        capture_output=True, text=True, timeout=120, check=False, cwd=Path(__file__).parents[2],
        env={**os.environ, "HOME": str(where)},
    )  # fmt: skip
    assert done.stdout, done.stderr
    found = {}
    for name in ("events", "recorded"):
        with Inspector.open(str(where / f"{name}.jsonl"), policy="amplifier") as inspector:
            found[name] = [step for step in inspector.replay() if isinstance(step, Step)]
    return found


def verdicts(steps: list[Step]) -> dict[str, int]:
    """How often each verdict was given of a stage that was held against the record."""
    found: dict[str, int] = {}
    for step in steps:
        for name in STAGES:
            verdict = step.stages[name].verdict
            if verdict in ("matches", "differs", "cannot_tell"):
                found[verdict] = found.get(verdict, 0) + 1
    return found


def causes(path: Path) -> set[str | None]:
    """Why items left, as recorded."""
    with Inspector.open(str(path)) as inspector:
        steps = [step for step in inspector.replay() if isinstance(step, Step)]
    return {one.cause for step in steps for one in step.changes if one.status == "removed"}


@pytest.mark.parametrize("plan", sessions.PLANS, ids=lambda plan: f"{plan.seed}-{plan.loop}-{plan.wire}")
def test_a_live_session_is_never_said_to_differ(plan: sessions.Plan, tmp_path: Path) -> None:
    found = live(plan, tmp_path)
    acted = sum("compacted" in step.flags for step in found["events"])
    assert acted >= 20  # all sessions together: more than 300
    for steps in found.values():
        assert "differs" not in verdicts(steps)
    if plan.wire == "none":
        assert verdicts(found["events"]) == {"cannot_tell": acted}
        reasons = {step.stages["budget"].facts.get("reason") for step in found["events"]}
        assert "which messages the compaction left is not in the log" in reasons
    elif not (plan.thinks or plan.same):
        assert verdicts(found["events"]) == {"matches": 2 * acted}
    for name in ("events", "recorded"):
        path = tmp_path / f"{name}.jsonl"
        assert causes(path) == {"compacted"}
        kept = KEPT / f"{plan.seed}-{name}.jsonl.gz"
        if kept.exists() and os.environ.get(UPDATE):
            kept.write_bytes(gzip.compress(path.read_bytes(), 9, mtime=0))
