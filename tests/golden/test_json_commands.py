"""Every command with ``--json`` is in the table of docs/json.md, and its lines are in docs/json.schema.json.

What the lines hold is tested with each command; here is that the page and the schema forget none.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_json_contract import NAMES, VALIDATOR, definition
from test_json_of_plans import PLAN

from ctxctl.cli.commands import COMMANDS, named_words
from ctxctl.cli.main import run
from tests.unit.dataset.dataset_rows import by_chance, dataset

ROOT = Path(__file__).resolve().parents[2]
AGENT = str(ROOT / "traces" / "coding-agent.jsonl")
RETRIEVAL = str(ROOT / "traces" / "retrieval-agent.jsonl")
NOTES = str(ROOT / "traces" / "notes-assistant.jsonl")
CLAUDE = ROOT / "fixtures" / "claude_code"
LOG = str(CLAUDE / "requests.jsonl")
Line = dict[str, Any]
Out = pytest.CaptureFixture[str]

# What is asked, and the types of lines that have to be seen. PLACE is a directory of captures.
ASKED: dict[str, list[tuple[str, set[str]]]] = {
    "ls": [("PLACE", {"session_list", "listed_session"})],
    "replay": [
        (f"{NOTES} --turn 3", {"trace", "step", "turn", "summary"}),
        (f"{LOG} --where compacted", {"trace", "where"}),
        (
            f"{NOTES} --policy fifo --compare",
            {"supposition", "comparison", "comparison_summary"},
        ),
    ],
    "watch": [(f"{LOG} --idle 0", {"trace", "step", "turn", "summary"})],
    "show": [(f"{NOTES}@3", {"trace", "frame"}), (f"{NOTES}@3 --stage budget", {"trace", "stage"})],
    "diff": [
        (f"{NOTES}@2 @3", {"trace", "diff"}),
        (f"--sessions {NOTES} {AGENT}", {"trace", "turns", "sessions"}),
    ],
    "blame": [(f"{NOTES}@3", {"trace", "block", "blame"})],
    "find": [(f"{LOG} compacted", {"trace", "hit", "found"})],
    "bisect": [(f"{LOG} compacted", {"trace", "bisect"}), (f"{NOTES} {AGENT}", {"trace", "parting"})],
    "log": [(f"{NOTES} quire:editor-state", {"trace", "life"})],
    "why": [(f"{NOTES}@8 quire:editor-state", {"trace", "why"})],
    "compactions": [(LOG, {"trace", "compaction"})],
    "cost": [(LOG, {"trace", "spent", "cost"}), ("PLACE", {"fleet", "group_cost", "cost"})],
    "budget": [("PLAN --check", {"budget", "part", "budget_turn", "budget_finding", "check"})],
    "lint": [(RETRIEVAL, {"trace", "finding", "lint"})],
    "check": [(f"{LOG} --max 80%", {"trace", "condition", "verdict"})],
    "validate": [(NOTES, {"trace", "validation"})],
    "sql": [("", {"sql_table"})],
    "import": [(f"{LOG} -o PLACE/out.jsonl", {"import"})],
    "formats": [("", {"format"}), ("claude-code", {"format"})],
    "policies": [("", {"policy"})],
    "calibrate": [(AGENT, {"calibration"})],
    "learn": [(f"{AGENT} --client opencode --version 1.18.33", {"learned"})],
    "models": [("claude-opus-4-5", {"model"})],
    "cache": [("", {"kept", "cache"})],
    "fleet": [("--dataset FLEET", {"answer", "row"})],
    "fleet add": [("PLACE --to PLACE/made", {"fleet_added"})],
    "fleet status": [("--dataset FLEET", {"fleet_status"})],
    "fleet files": [("stays --dataset FLEET", {"fleet_file"})],
    "fleet compact": [("--dataset FLEET", {"fleet_compacted"})],
    "fleet vacuum": [("--dataset FLEET", {"fleet_vacuumed"})],
    "fleet forget": [("--before 1d --dataset FLEET", {"fleet_forgotten"})],
    "fleet ask": [("", {"question"}), ("cost --dataset FLEET", {"answer", "row"})],
    "fleet diff": [("client=claude-code client=codex --dataset FLEET", {"fleet_diff", "measure"})],
    "fleet check": [("rules.toml --dataset FLEET", {"condition", "verdict"})],
}


ELSEWHERE = {"fleet"}
"""Commands that need packages which may not be here; they are in the page, and run in tests of their own."""


def takes_json(capsys: Out) -> set[str]:
    found = set()
    for name in COMMANDS:
        assert run([*name.split(), "--help"]) == 0
        if re.search(r"^ *--json\b", capsys.readouterr().out, re.MULTILINE):
            found.add(name)
    return found


def in_the_table() -> dict[str, set[str]]:
    """Of each command the types of lines that the first table of docs/json.md names."""
    page = (ROOT / "docs" / "json.md").read_text(encoding="utf-8")
    table = page[page.index("| command | lines |") :].split("\n\n")[0]
    types = {part["properties"]["type"]["const"] for part in line_definitions()}
    found: dict[str, set[str]] = {}
    for commands, lines in (row.strip("| ").split(" | ", 1) for row in table.splitlines()[2:]):
        named = set(re.findall(r"`([a-z_]+)`", lines))
        # A row may say "the lines of `replay`".
        named = named & types | {kind for other in named & found.keys() - types for kind in found[other]}
        for line in re.findall(r"`([a-z]+(?: [^`]*)?)`", commands)[:1]:
            words = line.split()
            command = " ".join(words[: named_words(words)])
            found[command] = found.get(command, set()) | named
    return found


def line_definitions() -> Iterator[Line]:
    return (definition(ref["$ref"].rpartition("/")[2]) for ref in VALIDATOR.schema["oneOf"])


def test_every_command_with_json_is_asked_and_in_the_table(capsys: Out) -> None:
    takers = takes_json(capsys)
    assert takers == ASKED.keys() | ELSEWHERE
    assert takers - in_the_table().keys() == set()


@pytest.mark.parametrize("command", ASKED)
def test_lines_are_in_the_page_and_in_the_schema(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Out
) -> None:
    place = tmp_path / "place"
    place.mkdir()
    for name in ("requests.jsonl", "session.jsonl"):
        shutil.copy(CLAUDE / name, place / name)
    (tmp_path / "plan.toml").write_text(PLAN)
    (tmp_path / "rules.toml").write_text('[[rule]]\nname = "cache"\nmeasure = "cache-rate"\nat-least = 0.5\n')
    if "FLEET" in " ".join(asked for asked, _ in ASKED[command]):
        dataset(tmp_path / "made", by_chance(1, 40))
    monkeypatch.chdir(tmp_path)
    listed = in_the_table()[command]
    for asked, wanted in ASKED[command]:
        words = (
            asked.replace("PLACE", str(place)).replace("PLAN", "plan.toml").replace("FLEET", "made").split()
        )
        assert run([*command.split(), *words, "--json"]) in (0, 1)
        found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        kinds = {line["type"] for line in found}
        assert wanted <= kinds, asked
        assert kinds - listed - {"problem"} == set(), f"{command} {asked}: not in the table of docs/json.md"
        for line in found:
            VALIDATOR.validate(line)
            wanted_keys = definition(name_of(line))
            assert [key for key in line if key in wanted_keys["required"]] == wanted_keys["required"], line
            if line["type"] != "stage":  # its facts are those that the trace records
                assert line.keys() - wanted_keys["properties"].keys() == set(), f"{command} {asked}"


def name_of(line: Line) -> str:
    """The definition of a line: a model that was asked for has more keys than one of the list."""
    if line["type"] == "model" and "asked" not in line:
        return "model_row"
    return NAMES.get(line["type"]) or str(line["type"])
