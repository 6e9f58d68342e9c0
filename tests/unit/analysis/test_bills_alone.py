"""Bills alone: what they come to is what the whole reading says, or they decline (`session.billed_steps`)."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import jsonschema
import pytest

from ctxctl.cli.main import run
from ctxctl.errors import CtxctlError
from ctxctl.importers.capture import open_capture
from tests.corpus.both_readings import listed, of_bills, printed
from tests.formats.damage import captures, each_line_damaged, each_place_damaged, is_lines

ROOT = Path(__file__).resolve().parents[3]
CAPTURES = [pytest.param(path, id=name) for name, path in captures()]
CERTAIN = 60
"""Fixtures that bills answer for, at least."""
DAMAGES = 3
"""Damages of a fixture that are tried."""
Json = dict[str, Any]
Out = pytest.CaptureFixture[str]


def format_of(path: Path) -> str | None:
    try:
        with open_capture(str(path)) as capture:
            return None if capture.format is None else capture.format.name
    except CtxctlError:
        return None


def same_by_both(path: Path, kind: str) -> bool:
    """Hold both readings against each other; whether bills answer."""
    try:
        if of_bills(path, kind) is None:
            return False
    except CtxctlError as error:
        with pytest.raises(type(error), match=re.escape(str(error))):
            printed(path, kind, contents=True)
        return False
    assert printed(path, kind) == printed(path, kind, contents=True)
    both = listed(path, kind)
    assert both is None or both[0] == both[1]
    return True


@pytest.mark.parametrize("path", CAPTURES)
def test_a_fixture_costs_the_same_whole_and_damaged(path: Path, tmp_path: Path) -> None:
    kind = format_of(path)
    if kind is None or not same_by_both(path, kind):
        return
    data = path.read_bytes()
    every = list(each_line_damaged(data) if is_lines(data) else each_place_damaged(data))
    for damaged in Random(path.name).sample(every, min(DAMAGES, len(every))):
        place = tmp_path / path.name
        place.write_bytes(damaged.data)
        same_by_both(place, kind)


def test_bills_answer_for_many_fixtures() -> None:
    found = [path for _, path in captures() if (kind := format_of(path)) and of_bills(path, kind) is not None]
    assert len(found) >= CERTAIN


def message(number: int, session: str, *, ended: bool = True, uuid: str = "", **usage: int) -> Json:
    """An answer of Claude Code, on the line after its prompt."""
    bill = {"input_tokens": 10 + number, "output_tokens": 300, "cache_read_input_tokens": 4_000} | usage
    return {
        "type": "assistant", "sessionId": session, "version": "2.1.130", "cwd": "/home/dev/shop",
        "uuid": uuid or f"{session}-a{number}", "parentUuid": f"{session}-p{number}", "isSidechain": False,
        "timestamp": f"2026-05-01T00:{number:02d}:09.000Z", "requestId": f"req_{session}{number}",
        "message": {
            "id": f"msg_{session}{number}", "role": "assistant", "model": "claude-sonnet-4-5-20250929",
            "type": "message", "stop_reason": "end_turn" if ended else None, "usage": bill,
            "content": [{"type": "text", "text": f"Answer {number}: " + "all of it is done now. " * 30}],
        },
    }  # fmt: skip


def prompt(number: int, session: str) -> Json:
    before = f"{session}-a{number - 1}" if number else None
    return {
        "type": "user", "sessionId": session, "version": "2.1.130", "cwd": "/home/dev/shop",
        "uuid": f"{session}-p{number}", "parentUuid": before, "isSidechain": False,
        "timestamp": f"2026-05-01T00:{number:02d}:01.000Z",
        "message": {"role": "user", "content": f"Do thing {number} of {session}."},
    }  # fmt: skip


def session(name: str, requests: int = 3, **last: Any) -> list[Json]:
    """A session of so many requests; `last`: what the last answer is made with."""
    made = []
    for number in range(requests):
        made += [prompt(number, name), message(number, name, **(last if number == requests - 1 else {}))]
    return made


def written(path: Path, lines: list[Json]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def of_agent(name: str, agent: str) -> list[Json]:
    """The log of a sub-agent of a session."""
    lines = [{**line, "isSidechain": True, "agentId": agent} for line in session(f"{name}-{agent}")]
    return [{**line, "sessionId": name} for line in lines]


@pytest.fixture
def top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sessions of two projects, one of them with a sub-agent, and a resumed one with copied requests."""
    monkeypatch.setattr("ctxctl.trace.inputs.YOUNG", -60.0)
    monkeypatch.chdir(tmp_path)
    made = tmp_path / "top"
    written(made / "p/one.jsonl", session("one"))
    written(made / "p/one/subagents/agent-x.jsonl", of_agent("one", "x"))
    two = session("two", 2)
    written(made / "q/two.jsonl", two)
    resumed = [{**line, "sessionId": "three"} for line in two]
    more = [prompt(2, "two"), message(2, "two")]
    written(made / "q/three.jsonl", resumed + [{**line, "sessionId": "three"} for line in more])
    return made


def said(capsys: Out, *arguments: str) -> tuple[int, list[Json], str]:
    code = run([*arguments, "--json"])
    printed = capsys.readouterr()
    return code, [json.loads(line) for line in printed.out.splitlines()], printed.err


CONTENTS = ("counted_tokens", "counted", "difference", "cache_breaks", "cache_misses", "saved")


def without_contents(lines: list[Json]) -> list[Json]:
    return [{**line, **dict.fromkeys(CONTENTS)} if "counted" in line else line for line in lines]


@pytest.mark.parametrize("by", ["session", "day", "project", "branch", "model"])
def test_rows_are_those_of_the_whole_reading(top: Path, capsys: Out, by: str) -> None:
    code, bills, _ = said(capsys, "cost", "top", "--bills", "--by", by)
    assert code == 0
    whole = said(capsys, "cost", "top", "--by", by)
    assert bills == without_contents(whole[1])
    assert bills[0]["shared_requests"] == 2
    schema = json.loads((ROOT / "docs/json.schema.json").read_text())
    for line in bills:
        jsonschema.Draft202012Validator(schema).validate(line)


def test_the_text_is_that_of_the_whole_reading_less_what_contents_tell(top: Path, capsys: Out) -> None:
    assert run(["cost", "top"]) == 0
    bills = capsys.readouterr().out.splitlines()
    assert run(["cost", "top", "--contents"]) == 0
    whole = capsys.readouterr().out.splitlines()
    assert [line for line in bills if line not in whole] == [
        "not read    contents; --contents adds what is recorded, cache breaks and misses"
    ]
    more = [line for line in whole if line not in bills]
    assert {line[:12].strip() for line in more} - {""} <= {"recorded", "breaks", "misses", "saved"}


@pytest.mark.parametrize(
    "last",
    [
        pytest.param({"ended": False, "output_tokens": 1}, id="partial"),
        pytest.param({"ended": False}, id="perhaps-partial"),
        pytest.param({"input_tokens": 0, "cache_read_input_tokens": 0}, id="no-bill"),
    ],
)
def test_what_rests_on_contents_is_read_whole(top: Path, capsys: Out, last: Json) -> None:
    path = written(top / "p/odd.jsonl", session("odd", **last))
    assert of_bills(path, "claude-code") is None
    assert said(capsys, "cost", "top", "--bills")[1] == without_contents(said(capsys, "cost", "top")[1])
    assert said(capsys, "ls", "top")[0] == 0


def test_a_prompt_without_an_answer_is_read_whole(top: Path) -> None:
    path = written(top / "p/open.jsonl", [*session("open"), prompt(3, "open")])
    whole = printed(path, "claude-code", contents=True)
    assert printed(path, "claude-code") == whole


def test_a_session_that_grows_is_read_again(top: Path, capsys: Out) -> None:
    before = said(capsys, "cost", "top", "--bills")[1]
    written(top / "p/one.jsonl", session("one", 5))
    after = said(capsys, "cost", "top", "--bills")[1]
    steps = [line["steps"] for line in (*before, *after) if line["type"] == "cost"]
    assert steps[1] == steps[0] + 2
    assert after == without_contents(said(capsys, "cost", "top")[1])


def test_damage_is_told_as_by_the_whole_reading(top: Path, capsys: Out) -> None:
    with (top / "p/one.jsonl").open("a") as file:
        file.write('{"type": "assistant", "mess\n')
    (top / "q/none.jsonl").write_bytes(b'{"type":"user"' + b"\0" * 40)
    for strict in ([], ["--strict"]):
        bills = said(capsys, "cost", "top", "--bills", *strict)
        whole = said(capsys, "cost", "top", *strict)
        assert (bills[0], bills[1], bills[2]) == (whole[0], without_contents(whole[1]), whole[2])
    assert bills[0] == 1
    assert "problem" in {line["type"] for line in bills[1]}


def test_a_file_by_itself(top: Path, capsys: Out) -> None:
    _, lines, _ = said(capsys, "cost", "top/p/one.jsonl", "--bills")
    assert [line["type"] for line in lines] == ["fleet", "group_cost", "cost"]
    assert lines[-1]["steps"] == 6
    assert lines[-1]["counted"] is None
    for wrong in (["--contents"], ["--by", "item"], ["--steps"]):
        assert run(["cost", "top", "--bills", *wrong]) == 2
        assert "--bills knows no contents" in capsys.readouterr().err
    assert run(["cost", "top/p/one.jsonl@1", "--bills"]) == 2


def test_sessions_are_listed_as_by_the_whole_reading(
    top: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CTXCTL_CACHE", "off")
    bills = said(capsys, "ls", "top")
    monkeypatch.setattr("ctxctl.analysis.session_facts.billed_steps", lambda *_, **__: None)
    assert said(capsys, "ls", "top") == bills
    prompts = {Path(line["path"]).stem: line["prompt"] for line in bills[1] if "prompt" in line}
    assert prompts["one"] == "Do thing 0 of one."


def test_a_copied_capture_counts_once_whichever_reading_it_takes(top: Path, capsys: Out) -> None:
    written(top / "q/two.jsonl", [*session("two", 2), prompt(2, "two")])  # asks and is not answered
    shutil.copy(top / "p/one.jsonl", top / "q/copy.jsonl")
    bills, whole = said(capsys, "cost", "top", "--bills"), said(capsys, "cost", "top")
    assert bills[1] == without_contents(whole[1])
    assert bills[1][0]["shared_requests"] == 5


CHILD = """
import sys
from ctxctl.cli.main import run
code = run(sys.argv[1:])
of = ("ctxctl.engine", "ctxctl.tokens.ranks", "ctxctl.tokens.counter", "tiktoken")
print(code, *[name for name in sys.modules if name.startswith(of)], file=sys.stderr)
"""
TRACKING = {"ctxctl.engine", "ctxctl.engine.replay", "ctxctl.engine.replay.step_tracker"}
"""What says which step an event is of: without frames, items or tokens."""


@pytest.mark.parametrize("arguments", [("cost",), ("cost", "--bills", "--json"), ("ls",)])
def test_neither_the_engine_nor_a_tokenizer_is_loaded(top: Path, arguments: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CHILD, *arguments, "top"], capture_output=True, text=True, check=True
    )
    code, *loaded = done.stderr.split("\n")[-2].split()
    assert code == "0", done.stderr
    assert set(loaded) == TRACKING
