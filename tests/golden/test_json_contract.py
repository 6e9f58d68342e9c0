"""Every line of ``--json`` is what docs/json.schema.json says, key by key, and its numbers add up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

HERE = Path(__file__).parent
SCHEMA = json.loads((HERE.parent.parent / "docs" / "json.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
NAMES = {"stage": "one_stage", "compaction": "one_compaction", "cache": "one_cache"}
"""Types of lines whose definition has another name: what a line holds has that one."""
BESIDE = {
    "budget", "part", "budget_turn", "shrunk", "budget_finding", "check",
    "step_cost", "spent", "cost", "model", "policy", "finding", "lint", "calibration", "fit", "refused",
    "learned", "fleet", "group_cost", "session_list", "listed_session", "compaction", "kept", "cache",
    "question", "answer", "row", "fleet_diff", "measure", "fleet_added", "fleet_status", "fleet_file",
    "fleet_compacted", "fleet_vacuumed", "fleet_forgotten", "sql_table",
}  # fmt: skip
"""Types of lines of other commands: test_json_of_plans.py, test_calibrating.py, test_cli_learn.py,
test_fleet_commands.py, test_cli_ls.py, test_handed_on.py, test_json_commands.py."""
OUTPUTS = sorted(path.stem for path in (HERE / "expected").glob("*json*.txt"))


def lines(name: str) -> list[dict[str, Any]]:
    text = (HERE / "expected" / f"{name}.txt").read_text()
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def definition(name: str) -> dict[str, Any]:
    found: dict[str, Any] = SCHEMA["$defs"][name]
    return found


def keys_in_order(value: dict[str, Any], wanted: dict[str, Any], where: str) -> None:
    """Hold the order of keys, all the way down, against the schema's `required`."""
    required = wanted["required"]
    found = [key for key in value if key in required]
    assert found == required, where
    if "verdict" not in required:
        assert list(value) == required, where
    for key, part in wanted["properties"].items():
        for option in part.get("oneOf", [part]):
            reference = option.get("$ref") or option.get("items", {}).get("$ref")
            if reference is None or value.get(key) is None:
                continue
            inner = definition(reference.rpartition("/")[2])
            if "required" in inner:
                for n, one in enumerate(value[key] if isinstance(value[key], list) else [value[key]]):
                    keys_in_order(one, inner, f"{where}.{key}[{n}]")


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("name", OUTPUTS)
def test_lines_are_valid_and_their_keys_in_order(name: str) -> None:
    found = lines(name)
    assert found
    for number, line in enumerate(found):
        VALIDATOR.validate(line)
        keys_in_order(line, definition(NAMES.get(line["type"], line["type"])), f"{name}:{number}")
    if not name.startswith("formats"):
        assert found[0]["type"] == "trace"


def test_every_type_of_line_is_seen() -> None:
    seen = {line["type"] for name in OUTPUTS for line in lines(name)}
    described = {
        definition(ref["$ref"].rpartition("/")[2])["properties"]["type"]["const"] for ref in SCHEMA["oneOf"]
    }
    assert described - seen == {"import"} | BESIDE  # tests/unit/cli/test_cli_import.py
    assert seen <= described


@pytest.mark.parametrize("name", [n for n in OUTPUTS if n.startswith("replay")])
def test_numbers_add_up(name: str) -> None:
    found = lines(name)
    steps = [line for line in found if line["type"] == "step"]
    turns = [line for line in found if line["type"] == "turn"]
    (summary,) = (line for line in found if line["type"] == "summary")
    assert found[-1] is summary
    windows: dict[tuple[str | None, str], int] = {}
    for step in steps:
        ledger, thread = step["ledger"], (step["session"], step["thread"])
        assert ledger["window_before"] == windows.get(thread, 0)
        assert ledger["window_before"] + ledger["new"] - ledger["freed"] == ledger["window_after"]
        window = step["window"]
        assert window["recorded"] == ledger["window_after"] == sum(window["by_method"].values())
        assert window["used"] == window["recorded"] + (window["unrecorded"] or 0)
        assert window["used"] == sum(step["segments"].values())
        assert sum(c["new"] for c in step["changes"]) <= ledger["new"]
        listed = [c["status"] for c in step["changes"]]
        for status, count in step["counts"].items():
            if status != "skipped" or "-all" in name:
                assert listed.count(status) == count
        if step["usage"]:
            difference = step["usage"]["counted_input"] - step["usage"]["reported_input"]
            # What was billed is not compared with a frame out of which something was dropped.
            assert step["usage"]["difference"] == (None if name == "replay-dropped-json" else difference)
        windows[thread] = ledger["window_after"]
    for key in ("new", "freed"):
        assert (
            summary[key] == sum(step["ledger"][key] for step in steps) == sum(t["ledger"][key] for t in turns)
        )
    for key in summary["counts"]:
        assert summary["counts"][key] == sum(step["counts"][key] for step in steps)
    assert summary["steps"] == len(steps) == sum(turn["steps"] for turn in turns)
    assert summary["turns"] == len(turns)
    assert summary["new"] - summary["freed"] == sum(windows.values()) == sum(summary["by_method"].values())
    assert summary["problems"] == sum(line["type"] == "problem" for line in found)


@pytest.mark.parametrize("name", [n for n in OUTPUTS if "hostile" in n])
def test_json_of_hostile_traces_is_printable(name: str) -> None:
    text = (HERE / "expected" / f"{name}.txt").read_text()
    assert all(c == "\n" or c.isprintable() for c in text)
    assert "##[" not in text


def test_every_key_is_in_the_manual() -> None:
    manual = (HERE.parent.parent / "docs" / "json.md").read_text()
    keys = {key for part in SCHEMA["$defs"].values() for key in part.get("properties", {})}
    assert {key for key in keys if f"`{key}`" not in manual} == set()
