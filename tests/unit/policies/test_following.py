"""A replay under the runtime's own policy, held against what it recorded: as recorded, and not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ctxctl.model.results import StageView, Step
from ctxctl.plugins.amplifier.policy.ladder import Rules, climb
from ctxctl.plugins.amplifier.policy.messages import of_rows, total, truncated
from ctxctl.plugins.amplifier.policy.notice import notice
from ctxctl.session import Inspector

Json = dict[str, Any]
TIME = {"timestamp": "2026-03-01T10:00:00.000+00:00"}
OLDER = "amplifier:sticky=false"
SYSTEM = {"role": "system", "content": "You keep the light."}
RESULT = "tide " * 400


def call(n: int) -> list[Json]:
    made = {"id": f"c{n}", "type": "function", "function": {"name": "read", "arguments": f'{{"n":{n}}}'}}
    answer = {"role": "assistant", "content": None, "tool_calls": [made]}
    return [answer, {"role": "tool", "tool_call_id": f"c{n}", "content": f"{n} {RESULT}"}]


HISTORY = [SYSTEM, {"role": "user", "content": "Read all tides."}, *(m for n in range(4) for m in call(n))]
"""2 messages, then four calls with results of 2,000 characters."""
CUT = truncated(f"0 {RESULT}", 250)
"""What level 1 leaves of the first result; the three others are the last that are spared."""
EVENT = {
    "before_messages": 10, "after_messages": 10, "messages_removed": 0, "messages_truncated": 1,
    "user_messages_stubbed": 0, "system_messages_preserved": 1, "strategy_level": 1, "budget": 2300,
    "target_tokens": 2000, "protected_recent": 0.3, "protected_tool_results": 3,
    "before_tokens": 2434, "after_tokens": 2022,
}  # fmt: skip


def viewed() -> list[Json]:
    """The view by hand: the oldest of four results cut, the notice behind the system prompt."""
    told = notice(EVENT, recent=0.3, results=3, older=True)
    view = [dict(message) for message in HISTORY]
    view[3] = {**view[3], "content": CUT}
    return [view[0], {"role": "system", "content": told}, *view[1:]]


def log(path: Path, event: Json | None, view: list[Json]) -> Path:
    seconds = iter(range(60))

    def row(name: str, **data: Any) -> Json:
        return {
            "ts": f"2026-03-01T10:00:{next(seconds):02}.000+00:00", "lvl": "INFO", "event": name,
            "session_id": "s1", "schema": {"name": "amplifier.log", "ver": "1.0.0"}, "data": data,
        }  # fmt: skip

    def request(messages: list[Json]) -> Json:
        body = {"model": "gpt-4o", "messages": messages}
        return row("llm:request", provider="openai", model="gpt-4o", message_count=len(messages), raw=body)

    rows = [row("prompt:submit", prompt="Read all tides."), row("provider:request", iteration=1)]
    rows += [request(HISTORY[:8]), row("provider:request", iteration=2)]
    rows += [row("context:compaction", **event)] if event is not None else []
    rows.append(request(view))
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    return path


def last(path: Path, policy: str = OLDER) -> Step:
    return [s for s in Inspector.open(str(path), policy=policy).replay() if isinstance(s, Step)][-1]


def test_the_event_is_what_the_rules_give() -> None:
    """The numbers of this file's record, from the messages that Amplifier would hold."""
    rows: list[Json] = []
    for m in HISTORY:
        if m.get("tool_calls"):
            n = int(m["tool_calls"][0]["id"][1:])
            given = {"id": f"c{n}", "name": "read", "input": {"n": n}}
            rows.append({
                "role": "assistant", "content": [{"type": "tool_call", **given, "visibility": None}],
                "tool_calls": [{"id": f"c{n}", "tool": "read", "arguments": {"n": n}}], "metadata": TIME,
            })  # fmt: skip
        elif m["role"] == "tool":
            rows.append({"role": "tool", "name": "read", **m, "metadata": TIME})
        else:
            rows.append({**m, "metadata": TIME})
    system, *rest = of_rows(rows)
    assert total([system, *rest]) == EVENT["before_tokens"]
    made = climb(rest, Rules(target=2000, results=3, older=True), system.size)
    assert (made.level, made.truncated, made.removed) == (1, 1, [])
    assert made.kept[2].said == CUT
    assert system.size + total(made.kept) == EVENT["after_tokens"]


def test_a_record_that_kept_the_rules_matches(tmp_path: Path) -> None:
    step = last(log(tmp_path / "events.jsonl", EVENT, viewed()))
    assert {name: step.stages[name].verdict for name in ("budget", "assembly")} == {
        "budget": "matches", "assembly": "matches",
    }  # fmt: skip


def altered(**fields: Any) -> Callable[[], tuple[Json | None, list[Json]]]:
    return lambda: ({**EVENT, **fields}, viewed())


def other_text() -> tuple[Json | None, list[Json]]:
    view = viewed()
    view[4] = {**view[4], "content": truncated(f"0 {RESULT}", 100)}
    return EVENT, view


def silent() -> tuple[Json | None, list[Json]]:
    return None, viewed()


@pytest.mark.parametrize(
    ("made", "stage", "differing"),
    [
        (altered(strategy_level=3), "budget", ["strategy_level"]),
        (altered(messages_truncated=2), "budget", ["messages_truncated"]),
        (altered(before_tokens=90), "budget", ["before_tokens"]),
        (altered(after_tokens=9000), "budget", ["after_tokens"]),
        (other_text, "budget", ["after_tokens"]),
    ],
)
def test_a_record_that_broke_them_differs(
    tmp_path: Path, made: Callable[[], tuple[Json, list[Json]]], stage: str, differing: list[str] | None
) -> None:
    view: StageView = last(log(tmp_path / "events.jsonl", *made())).stages[stage]
    assert view.verdict == "differs"
    assert view.facts.get("differing") == differing
    assert view.facts["expected"] != view.facts["recorded"]


def test_what_the_log_does_not_hold_is_no_difference(tmp_path: Path) -> None:
    """A message's metadata is in no log: that there is more than its text and ids come to proves nothing."""
    view = last(log(tmp_path / "events.jsonl", *altered(before_tokens=9000)())).stages["budget"]
    assert view.verdict == "cannot_tell"
    assert "tokens more than the log's messages have" in view.facts["reason"]


def test_without_a_record_nothing_is_held_against_it(tmp_path: Path) -> None:
    step = last(log(tmp_path / "events.jsonl", *silent()))
    assert all(view.verdict not in ("matches", "differs") for view in step.stages.values())


def test_under_a_supposed_limit_nothing_is_either(tmp_path: Path) -> None:
    path = log(tmp_path / "events.jsonl", {**EVENT, "strategy_level": 7}, viewed())
    from ctxctl.cli.app import app

    done = CliRunner().invoke(
        app, ["replay", str(path), "--policy", OLDER, "--max-input", "1200", "--strict"]
    )
    assert done.exit_code == 0, done.output


def test_strict_does_not_fail_for_what_cannot_be_told(tmp_path: Path) -> None:
    from ctxctl.cli.app import app

    path = log(tmp_path / "events.jsonl", {**EVENT, "before_messages": 99}, viewed())
    done = CliRunner().invoke(app, ["replay", str(path), "--policy", OLDER, "--strict"])
    assert done.exit_code == 0, done.output
    shown = " ".join(done.output.split())
    assert "1 of 1 step compared with the record: cannot tell" in shown
    assert "messages where the runtime compacted 99" in shown


def test_strict_says_what_the_first_difference_is(tmp_path: Path) -> None:
    from ctxctl.cli.app import app

    good = log(tmp_path / "good.jsonl", EVENT, viewed())
    done = CliRunner().invoke(app, ["replay", str(good), "--policy", OLDER, "--strict"])
    assert done.exit_code == 0
    assert "1 step compared with the record, all as recorded" in done.output
    bad = log(tmp_path / "bad.jsonl", {**EVENT, "strategy_level": 3}, viewed())
    done = CliRunner().invoke(app, ["replay", str(bad), "--policy", OLDER, "--strict"])
    assert done.exit_code == 1
    shown = " ".join(done.output.split())
    assert "1 of 1 step compared with the record differs" in shown
    assert "turn 1 step 2, budget: expected strategy_level 1; recorded strategy_level 3; from " in shown
    assert "protected_tool_results 3" in shown
