"""What of a compaction's takings is handed on: worked by hand, with what must not be taken for it."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from ctxctl.analysis.handed_on import Compaction, Fact, Handed, Text, compactions, facts_of
from ctxctl.cli.main import run
from ctxctl.session import Inspector
from tests.oracle.build import Event, assembly, at, compact, inject, item, lines, summary

SCHEMA = json.loads(Path("docs/json.schema.json").read_text())


def call(name: str, **arguments: object) -> Event:
    text = f"Tool {json.dumps(arguments)}"
    return item(name, text, kind="tool_call")


def session(tmp_path: Path, taken: list[Event], said: str | None, later: list[Event]) -> Path:
    """One request with some items, a compaction of all of them, then others."""
    path = tmp_path / "t.jsonl"
    names = [one["data"]["item_id"] for one in taken]
    into = [] if said is None else [summary("sum", said)]
    kept = [] if said is None else ["sum"]
    again = [one["data"]["item_id"] for one in later]
    path.write_bytes(
        lines(
            [
                *at("1", "1", *taken, assembly("w1", names), inject("w1")),
                *at(
                    "2", "1", compact(names, "sum" if said is not None else None), *into,
                    item("go", "go on"), assembly("w2", [*kept, "go"]), inject("w2"),
                ),
                *at("3", "1", *later, assembly("w3", [*kept, "go", *again]), inject("w3")),
            ]
        )
    )  # fmt: skip
    return path


def compacted(path: Path) -> Compaction:
    with Inspector.open(path) as inspector:
        (one,) = compactions(inspector)
    return one


def where(found: list[Handed]) -> dict[str, str]:
    return {one.fact.text: one.where for one in found}


def test_paths_are_in_the_summary_or_come_back_or_are_nowhere(tmp_path: Path) -> None:
    taken = [
        call("one", file_path="/home/me/app/src/clock.py"),
        call("two", file_path="/home/me/app/src/tables.py"),
        call("three", path="docs/clock.md"),
        call("four", file_path="/home/me/app/src/index.ts"),
        call("five", file_path="/home/me/app/lib/index.ts"),
    ]
    said = "The clock of src/clock.py was wrong; index.ts too. See olddocs/clock.mdx."
    found = compacted(session(tmp_path, taken, said, [call("again", file_path="/home/me/app/src/tables.py")]))
    assert where(found.of("path")) == {
        "/home/me/app/src/clock.py": "summary",
        "/home/me/app/src/tables.py": "later",
        "docs/clock.md": "nowhere",
        # A name that two files have does not say which of them is meant.
        "/home/me/app/src/index.ts": "nowhere",
        "/home/me/app/lib/index.ts": "nowhere",
    }
    (back,) = found.of("path", "later")
    assert (back.turn, back.step) == (3, 1)
    assert found.summary == ("sum",)
    assert found.taken.items == 5


def test_one_file_that_is_called_in_two_ways_is_one_path(tmp_path: Path) -> None:
    taken = [
        call("one", file_path="/home/me/app/src/clock.py"),
        call("two", file_path="src/clock.py"),
        call("three", file_path="./src/tables.py"),
        call("four", file_path="/home/me/app/src/tables.py"),
        call("five", file_path="src/alone.py"),
    ]
    path = session(tmp_path, taken, "Nothing of it.", [call("again", file_path="src/tables.py")])
    assert len(compacted(path).of("path")) == 5, "nobody says where the session ran"
    first, rest = path.read_bytes().split(b"\n", 1)
    event = json.loads(first)
    event["metadata"] = {"ctxctl": {"cwd": "/home/me/app"}}
    path.write_bytes(json.dumps(event).encode() + b"\n" + rest)
    found = compacted(path)
    assert where(found.of("path")) == {
        "/home/me/app/src/clock.py": "nowhere",
        "/home/me/app/src/tables.py": "later",
        "src/alone.py": "nowhere",
    }
    assert [one.mentions for one in found.of("path", "later")] == [2]


def test_commands_figures_and_messages(tmp_path: Path) -> None:
    taken = [
        call("one", command="pytest -q tests\necho done"),
        call("two", cmd=["make", "lint"]),
        item("ask", "Keep port 8443 and the 1,250 rows of 2026.", kind="user_message"),
        item("result", "port 9999", kind="tool_result"),
    ]
    found = compacted(session(tmp_path, taken, "Ran `pytest -q tests`: 1250 rows.", []))
    assert where(found.of("command")) == {"pytest -q tests": "summary", "make lint": "nowhere"}
    assert where(found.of("figure")) == {"8443": "nowhere", "1250": "summary", "2026": "nowhere"}
    assert where(found.of("message")) == {"Keep port 8443 and the 1,250 rows of 2026.": "nowhere"}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("cd /p && pytest -q tests/test_a.py 2>&1 | tail -20", "Ran `pytest tests/test_a.py`: 3 failed."),
        ("pytest tests/test_a.py > /tmp/out", "pytest -q test_a.py fails"),
        ("uv run pytest -k name tests/test_a.py", "pytest is run on tests/test_a.py"),
        (".venv/bin/python -m ruff check .", "ruff check is clean"),
        ("FOO=1 git -C /p commit -m 'fix it'", "a git commit was made"),
        ("git commit --allow-empty-message -m ''", "a git commit was made"),
        ('bash -lc "cargo build --release"', "cargo build passes"),
        ("npm run build && npm test", "npm test passes, and so does npm run build"),
        ("make", "`make` is enough"),
        ("for f in a b; do ruff check $f; done", "all is well by ruff check"),
    ],
)
def test_a_command_is_known_by_its_program_and_main_argument(tmp_path: Path, line: str, said: str) -> None:
    found = compacted(session(tmp_path, [call("one", command=line)], said, []))
    assert where(found.of("command")) == {line: "summary"}
    other = compacted(session(tmp_path, [call("one", command=line)], "pytest, git, cargo and makefiles", []))
    assert where(other.of("command")) == {line: "nowhere"}


def test_what_stayed_in_the_window_is_not_lost_and_times_are_no_figures(tmp_path: Path) -> None:
    said = "At 2026-09-01T10:00:00.123Z, 09:14:07,512 and 1756713600123 8443 of src/a.py was 12.75% full,"
    taken = [item("old", f"{said} not 977.", kind="assistant_message"), call("one", file_path="src/b.py")]
    stays = item("stays", "8443 open\nsrc/b.py: 40 lines", kind="tool_result")
    path = tmp_path / "t.jsonl"
    second = [compact(["old", "one"], "sum"), summary("sum", "All well."), assembly("w2", ["sum", "stays"])]
    later = item("later", "of 977", kind="tool_result")
    first = [*taken, stays, assembly("w1", ["old", "one", "stays"]), inject("w1")]
    third = [later, assembly("w3", ["sum", "stays", "later"]), inject("w3")]
    steps = [*at("1", "1", *first), *at("2", "1", *second, inject("w2")), *at("3", "1", *third)]
    path.write_bytes(lines(steps))
    found = compacted(path)
    assert where(found.of("figure")) == {"8443": "kept", "12.75%": "nowhere", "977": "later"}
    assert where(found.of("path")) == {"src/a.py": "nowhere", "src/b.py": "kept"}


def test_of_lists_of_tasks_the_last_says_what_is_open(tmp_path: Path) -> None:
    first = call(
        "one", todos=[{"content": "write", "status": "pending"}, {"content": "test", "status": "pending"}]
    )
    last = call(
        "two",
        todos=[{"content": "write", "status": "completed"}, {"content": "test", "status": "in_progress"}],
    )
    found = compacted(session(tmp_path, [first, last], "Nothing of it.", []))
    assert where(found.of("task")) == {"test": "nowhere"}


def test_of_a_summary_without_a_text_it_is_not_known_what_it_holds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = Path("fixtures/codex/compacted.jsonl")
    one = compacted(path)
    assert not one.is_summary_read
    assert where(one.of("command")) == {"cat notes.txt": "later", "ls": "later", "echo 3": "unknown"}
    assert run(["compactions", str(path), "--plain"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "a summary without a text came" in said
    assert "command not known echo 3" in said
    assert "command nowhere" not in said


def test_without_a_summary_nothing_is_in_it(tmp_path: Path) -> None:
    found = compacted(session(tmp_path, [call("one", command="make")], None, [call("two", command="make")]))
    assert found.summary == ()
    assert where(found.of("command")) == {"make": "later"}


def test_a_path_is_found_whole_or_not() -> None:
    text = Text("see src/app.py.bak and my-src/app.py, lib/app.pyx; at the end: lib/app.py.")
    unique = frozenset[str]()
    assert not text.holds(Fact("path", "/x/src/app.py"), unique)
    assert text.holds(Fact("path", "/x/lib/app.py"), unique)


@pytest.mark.parametrize(
    "text",
    [
        "a" * 400_000,
        "a/" * 200_000,
        "+a" * 200_000,
        "1," * 200_000,
        "1" * 400_000 + "x",
        '{"path":' * 50_000,
        "~/" * 200_000,
    ],
)
def test_long_odd_texts_are_read_in_time(text: str) -> None:
    """Without a bound on the work, each of these takes minutes: a test that hangs is the failure."""
    for kind in ("user_message", "tool_call"):
        assert len(list(facts_of(kind, text))) <= 400_000


def test_too_many_are_counted_and_not_looked_for(tmp_path: Path) -> None:
    taken = [item("ask", " ".join(str(n) for n in range(1000, 1700)), kind="user_message")]
    found = compacted(session(tmp_path, taken, "1000", []))
    assert len(found.of("figure")) == 500
    assert found.unsought == {"figure": 200}


def test_the_command_tells_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = session(tmp_path, [call("one", command="make \x1b[31m")], "Nothing.", [])
    assert run(["compactions", str(path)]) == 0
    out = capsys.readouterr().out
    assert "◇ 2.1 (token_pressure): 1 item, " in out
    assert "commands nowhere" not in out
    assert "command nowhere" in out
    assert "\x1b" not in out
    assert run(["compactions", str(path), "--json"]) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["type"] for line in told] == ["trace", "compaction"]
    jsonschema.Draft202012Validator(SCHEMA).validate(told[1])
    assert told[1]["facts"] == [
        {
            "kind": "command",
            "text": "make \x1b[31m",
            "mentions": 1,
            "where": "nowhere",
            "turn": None,
            "step": None,
        }
    ]
    assert run(["compactions", f"{path}@1"]) == 0
    assert "no compaction is recorded" in capsys.readouterr().out
