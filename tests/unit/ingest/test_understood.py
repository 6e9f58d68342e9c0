"""What an import did not understand is counted and told: types of records, bytes, versions, windows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxctl.cli.main import run
from ctxctl.ingest.about import HeldAgainst
from ctxctl.ingest.understood import MAX_TYPES, Understood, account_of, is_newer
from tests.unit.importers.seed_help import FIXTURES, events, lines

HELD = HeldAgainst("Tide", "1.9.2", "1.0", frozenset({"a", "b/c"}))


@pytest.mark.parametrize(
    ("version", "than", "newer"),
    [
        ("1.10.0", "1.9.2", True),
        ("1.9.2", "1.9.2", False),
        ("1.9", "1.9.0", False),
        ("1.9.2.1", "1.9.2", True),
        ("v2", "1.9.2", True),
        ("1.9.2-beta.4", "1.9.2", False),
        ("1.9.3-beta.4", "1.9.2", True),
        ("2026-01-02", "2025-12-31", True),
        ("2025-11-30", "2025-12-31", False),
        ("ATIF-v9", "1.9.2", False),
        ("", "1", False),
        ("9" * 500, "1", True),
    ],
)
def test_versions_are_compared_by_their_numbers(version: str, than: str, newer: bool) -> None:
    assert is_newer(version, than) is newer


def test_types_that_are_not_declared_are_counted_with_their_bytes_and_first_line() -> None:
    account = Understood(HELD)
    assert account.met("a", 1, 0, 10)
    assert account.met("b/c", 2, 11, 10)
    assert not account.met("z", 3, 22, 40)
    assert not account.met("z", 4, 63, 2)
    assert not account.met(None, 5, 66, 1)
    assert (account.types(), account.bytes) == ({"z": 2, "": 1}, 43)
    told = [(p.line, p.byte, p.message) for p in account.problems()]
    assert told == [
        (3, 22, "2 records of type 'z' (42 bytes) that this importer does not know: not understood"),
        (5, 66, "a record without a type (1 byte) that this importer does not know: not understood"),
    ]  # fmt: skip


def test_any_number_of_types_is_bounded() -> None:
    account = Understood(HELD)
    for number in range(MAX_TYPES * 3):
        account.met(f"type-{number}" * 100, number, number, 1)
    assert len([*account.problems()]) == MAX_TYPES + 1
    assert sum(account.types().values()) == MAX_TYPES * 3


def test_without_a_declaration_every_type_is_taken() -> None:
    account = Understood(None)
    assert account.met("anything", 1)
    account.version("99.0")
    assert not [*account.problems()]


def test_the_newest_of_several_newer_versions_is_told_once() -> None:
    account = Understood(HELD)
    for line, version in enumerate(("1.9.2", "1.11", "1.10", 7.5, None, "1.11"), 1):
        account.version(version, line, line * 100)
    (problem,) = account.problems()
    assert (problem.line, problem.byte, problem.is_note) == (2, 200, True)
    assert problem.message == "written by Tide 1.11; this importer was checked against versions up to 1.9.2"


def test_the_account_is_found_behind_a_report() -> None:
    class Reporter:
        understood = Understood(HELD)

        def report(self, problem: object) -> None:
            return None

    assert account_of(Reporter().report) is Reporter.understood
    assert account_of([].append).held is None


def amplifier(*more: dict[str, Any]) -> bytes:
    base = [
        json.loads(line) for line in (FIXTURES / "amplifier/bodies-anthropic.jsonl").read_bytes().splitlines()
    ]
    return lines(*base, *more)


def test_an_import_tells_of_unknown_types_and_of_bytes_that_it_could_not_read() -> None:
    found, problems = events(
        "amplifier", amplifier({"event": "tide:turned"}) + b"neither JSON nor anything\n"
    )
    assert [p.slug for p in problems if p.slug in ("unknown-type", "bad-json")] == [
        "bad-json",
        "unknown-type",
    ]
    told = found[-1]["data"]["understood"]
    assert told["unknown_records"] == {"tide:turned": 1}
    assert told["not_understood"] == len(b'{"event": "tide:turned"}') + len(b"neither JSON nor anything")
    assert told["bytes"] > told["not_understood"]


@pytest.mark.parametrize("kind", [["x"], {"a": 1}, 7, None, "x" * 100_000])
def test_a_type_may_be_anything(kind: object) -> None:
    data = (FIXTURES / "hail/session.hail.jsonl").read_bytes()
    sound, _ = events("hail", data)
    found, problems = events("hail", data + lines({"type": kind}))
    assert found[-1]["data"]["facts"] == sound[-1]["data"]["facts"]
    (problem,) = [p for p in problems if p.slug == "unknown-type"]
    assert len(problem.message) < 300


def test_a_newer_version_is_a_note_and_no_finding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = (FIXTURES / "cursor/hooks.jsonl").read_bytes()
    path = tmp_path / "hooks.jsonl"
    path.write_bytes(data.replace(b'"3.7.19"', b'"9.0.1"'))
    assert run(["replay", str(path), "--plain", "--strict"]) == 0
    out, err = capsys.readouterr()
    assert "newer-version: written by Cursor 9.0.1" in err
    assert "written by version 9.0.1" in out
    assert run(["validate", str(path)]) == 0
    path.write_bytes(
        data.replace(b'"evt": "stop"', b'"evt": "halt"').replace(b'"evt":"stop"', b'"evt":"halt"')
    )
    assert run(["replay", str(path), "--plain", "--strict"]) == 1
    out, err = capsys.readouterr()
    assert "unknown-type" in err
    assert "records of unknown types (halt" in " ".join(out.split())


def test_parents_that_cannot_be_right_are_told_and_make_no_window_that_stays_the_same() -> None:
    records = [
        json.loads(line) for line in (FIXTURES / "claude_code/session.jsonl").read_bytes().splitlines()
    ]
    told = [one for one in records if one.get("type") in ("user", "assistant") and "uuid" in one]
    for one in told:
        one["parentUuid"] = None if one is told[0] else told[0]["uuid"]
    _, problems = events("claude-code", lines(*records))
    slugs = [p.slug for p in problems]
    assert "impossible-parents" in slugs
    assert "same-window" not in slugs
