"""Policies of runtimes against what those runtimes recorded: the rate of agreement, and why it is not more.

The captures are not in the repository: CTXCTL_CORPUS names the directory that holds `samples`.
"""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from ctxctl.model.fitting import Room
from ctxctl.model.results import Step
from ctxctl.plugins.amplifier.policy.context_simple import Amplifier
from ctxctl.plugins.amplifier.policy.ladder import Rules, climb
from ctxctl.plugins.amplifier.policy.messages import Message, of_rows, total
from ctxctl.plugins.amplifier.policy.notice import notice
from ctxctl.session import Inspector

Json = dict[str, Any]
OLDER = "amplifier:sticky=false"
RUNS = ("run-streaming-openai", "run-basic-mock")


def samples() -> Path:
    return Path(os.environ["CTXCTL_CORPUS"]) / "samples"


def rows(name: str) -> list[Json]:
    return [json.loads(line) for line in (samples() / name).read_text().splitlines()]


def steps(path: Path, policy: str) -> list[Step]:
    return [s for s in Inspector.open(str(path), policy=policy).replay() if isinstance(s, Step)]


# -- Amplifier ---------------------------------------------------------------------------------------------


class Compacted(NamedTuple):
    """One recorded compaction, worked out again from the messages that the module held."""

    run: str
    native: Json
    told: Json
    view: list[Json]


def again(run: str, native: Json, history: list[Json]) -> Compacted:
    held = history[: native["before_messages"]]
    system = [m for m in of_rows(held) if m.role == "system"]
    rest = [m for m in of_rows(held) if m.role != "system"]
    before = total(system) + total(rest)
    rules = Rules(
        native["target_tokens"], native["protected_recent"], native["protected_tool_results"], older=True
    )
    made = climb(rest, rules, total(system))
    offset = len(system)
    view = held[:offset]
    for message in made.kept:
        row = dict(held[message.of[0]])
        view.append(row if message.said is None else {**row, "content": message.said})
    told = {
        "strategy_level": made.level,
        "messages_removed": len(made.removed),
        "messages_truncated": made.truncated,
        "user_messages_stubbed": made.stubbed,
        "before_messages": len(held),
        "after_messages": len(view),
        "before_tokens": before,
        "after_tokens": total(system) + total(made.kept),
        "target_tokens": native["target_tokens"],
    }
    return Compacted(run, native, told, view)


def compactions() -> list[Compacted]:
    found = []
    for run in RUNS:
        history = rows(f"amplifier/{run}/full.jsonl")
        for event in rows(f"amplifier/{run}/events.jsonl"):
            if event["event"] == "context:compaction":
                found.append(again(run, event["data"], history))
    return found


def test_every_recorded_compaction_from_the_modules_own_messages(corpus: Path) -> None:
    """Level, counts and sizes, to the token: 12 of 12."""
    found = compactions()
    wrong = [
        (one.run, name, value, one.native[name])
        for one in found
        for name, value in one.told.items()
        if one.native[name] != value
    ]
    assert len(found) == 12
    assert not wrong


def test_the_recorded_views_to_the_letter(corpus: Path) -> None:
    """What the module returned, each message and notice of it: 6 that were compacted, 5 that were not."""
    views = rows("amplifier/run-streaming-openai/views.jsonl")
    history = rows("amplifier/run-streaming-openai/full.jsonl")
    made = {one.native["before_messages"]: one for one in compactions() if one.run == "run-streaming-openai"}
    compacted = 0
    for view in views:
        one = made.get(view["full_count"])
        if one is None:
            assert view["view"] == history[: view["full_count"]]
            continue
        compacted += 1
        recorded = [strip(m) for m in view["view"]]
        text = notice(
            one.native, recent=one.native["protected_recent"], results=one.native["protected_tool_results"],
            older=True,
        )  # fmt: skip
        ours = [one.view[0], {"role": "system", "content": text}, *one.view[1:]]
        assert [strip(m) for m in ours] == recorded
    assert (compacted, len(views)) == (6, 11)


def strip(message: Json) -> Json:
    """A message without its marks: when it came, and that it was cut."""
    return {k: v for k, v in message.items() if k != "metadata" and not k.startswith("_")}


def test_the_recorded_session_replayed(corpus: Path) -> None:
    """From the log alone: each compaction that a request followed has its level, counts and view."""
    found = steps(samples() / "amplifier/run-streaming-openai/events.jsonl", OLDER)
    compacted = [s for s in found if "compacted" in s.flags]
    assert [(s.stages["budget"].verdict, s.stages["assembly"].verdict) for s in compacted] == [
        ("matches", "matches")
    ] * 5
    assert not any(v.verdict == "differs" for s in found for v in s.stages.values())
    for step in compacted:
        facts = step.stages["budget"].facts
        expected, recorded = facts["expected"], facts["recorded"]
        # No log holds a message's metadata: sizes come out lower.
        for name in ("before_tokens", "after_tokens"):
            assert 0.95 <= expected[name] / recorded[name] <= 1


def test_a_log_without_bodies_cannot_be_held_against_its_rules(corpus: Path) -> None:
    """The second run logs no bodies: which messages there were is not recorded, and nobody claims to know."""
    found = steps(samples() / "amplifier/run-basic-mock/events.jsonl", OLDER)
    assert sum("compacted" in s.flags for s in found) == 5
    assert all(v.verdict not in ("matches", "differs") for s in found for v in s.stages.values())


def storm() -> list[dict[str, int]]:
    path = samples() / "amplifier/published-compaction-storm-445ac89c.head.tsv"
    lines = path.read_text().removeprefix("# ").splitlines()
    table = list(csv.DictReader(lines, delimiter="\t"))
    return [{k: int(v) for k, v in row.items() if k != "timestamp"} for row in table]


def test_the_budget_of_the_published_storm(corpus: Path) -> None:
    """Window and output of its model are published: budget and target of all eleven rows follow."""
    policy = Amplifier()
    for row in storm():
        budget = policy.budget(Room(200_000, window=200_000, max_output=128_000))
        assert (budget, int(budget * policy.target)) == (row["budget"], row["target_tokens"])
        assert row["before_tokens"] / row["budget"] >= policy.threshold


def test_the_levels_of_the_published_storm(corpus: Path) -> None:
    """The rows tell how much could not go: with that as system prompt and last word, all reach level 8.

    What went is known in number and size, and not what it was: here it is answers, which go first.
    """
    levels = []
    for row in storm():
        gone = row["messages_removed"]
        size = row["before_tokens"] - row["after_tokens"]
        parts = [size // gone + (n < size % gone) for n in range(gone)]
        kept = row["after_messages"] - 2
        talk = [Message("assistant", 4 * part, lambda: None) for part in parts]
        talk += [Message("user", 4, lambda: None, human=True) for _ in range(kept + 1)]
        system = row["after_tokens"] - (kept + 1)
        made = climb(talk, Rules(row["target_tokens"]), system)
        levels.append(made.level)
        assert (len(made.removed), system + total(made.kept)) == (gone, row["after_tokens"]), row
    assert levels == [row["strategy_level"] for row in storm()] == [8] * 11


# -- Sibyl, Luminarys --------------------------------------------------------------------------------------


def test_every_recorded_stage_of_the_packs_matches(corpus: Path) -> None:
    packs = sorted((samples() / "sibyl").glob("*.json"))
    assert len(packs) == 5
    for path in packs:
        (step,) = steps(path, "sibyl")
        told = {name: view.verdict for name, view in step.stages.items() if view.verdict != "not_recorded"}
        assert told == {"selection": "matches", "budget": "matches", "assembly": "matches"}, path


def test_every_recorded_stage_of_the_calls_matches(corpus: Path) -> None:
    for path in (samples() / "luminarys", samples() / "luminarys/calls.jsonl"):
        found = steps(path, "luminarys")
        assert len(found) == 3
        for step in found:
            told = {n: view.verdict for n, view in step.stages.items() if view.verdict != "not_recorded"}
            assert told == {"assembly": "matches"}


def test_a_pack_that_was_tampered_with_differs(corpus: Path, tmp_path: Path) -> None:
    given = json.loads((samples() / "sibyl/pack-1-budget300.json").read_text())
    given["response"]["markdown"] = given["response"]["markdown"].replace("Layer: recall", "Layer: wake", 1)
    path = tmp_path / "pack.json"
    path.write_text(json.dumps(given))
    (step,) = steps(path, "sibyl")
    view = step.stages["assembly"]
    assert view.verdict == "differs"
    assert "Layer: recall" in view.facts["expected"][0][1]
    assert "Layer: wake" in view.facts["recorded"][0][1]
