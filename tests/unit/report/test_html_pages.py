"""The HTML report read back: what it holds is what the inspector says, and nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import re
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ctxctl
from ctxctl.analysis.blame import blame_frame
from ctxctl.model.problem import Problem
from ctxctl.report.html import frames, writer
from ctxctl.report.html.contents import NONE, dumped, escaped, limit_for, without_empty
from ctxctl.report.html.writer import SCRIPTS
from ctxctl.session import Inspector
from tests.scaling.native_inputs import unchanged_window
from tests.unit.report.page_help import Page, exported
from tests.unit.testing.sessions_help import events, item, written_trace

ROOT = Path(__file__).parents[3]
ASSETS = Path(ctxctl.__file__).parent / "report" / "html" / "assets"
DEMOS = sorted((ROOT / "traces").glob("*.jsonl"))
GOLDENS = sorted((ROOT / "tests" / "golden" / "traces").glob("*.jsonl"))


def same_as_inspected(path: Path) -> Page:
    """Return the page of a trace, after holding each of its frames against the inspector's."""
    page = Page(exported(path))
    with Inspector.open(path) as inspector:
        rows = inspector.outline().rows
        assert len(page.rows) == len(rows)
        for row, shown in zip(rows, page.rows, strict=True):
            for name in ("turn", "step", "used", "new", "freed", "cap", "stale", "reported"):
                assert shown[name] == getattr(row, name)
            frame = inspector.frame(row.ordinal)
            rebuilt = page.frame(row.ordinal)
            assert len(rebuilt) == len(frame.placements)
            for one, placement in zip(rebuilt, frame.placements, strict=True):
                for name in ("item", "version", "kind", "title", "source", "segment", "tokens", "line"):
                    assert one[name] == getattr(placement, name)
                if placement.content is None:
                    assert one["text"] == NONE
                elif one["text"] >= 0:
                    assert page.content(one["text"])[0] == inspector.text(placement.content)
            told = [
                (change["status"], change["item"]) for change in page.step(row.ordinal).get("changes", [])
            ]
            assert told == [(c.status, c.item) for c in frame.step.changes if c.status != "skipped"]
    return page


@pytest.mark.parametrize("path", [*DEMOS, *GOLDENS], ids=lambda path: path.stem)
def test_every_frame_is_given_back(path: Path) -> None:
    same_as_inspected(path)


def test_a_page_of_too_many_steps_holds_the_first_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = same_as_inspected(DEMOS[0])
    monkeypatch.setattr(writer, "MOST_STEPS", 3)
    told: list[Problem] = []
    page = Page(exported(DEMOS[0], report=told.append))
    assert page.rows == whole.rows[:3]
    assert page.index["rest"] == len(whole.rows) - 3 > 0
    assert [page.step(at) for at in range(3)] == [whole.step(at) for at in range(3)]
    for name in ("cost", "summary", "findings", "spent"):
        assert page.index[name] == whole.index[name]
    (problem,) = told
    assert problem.slug == "export-cut"
    assert f"the first 3 of {len(whole.rows)} steps" in problem.message
    assert f"turn {whole.rows[3]['turn']}, step {whole.rows[3]['step']} of" in problem.message


def test_runs_that_end_early_give_the_same_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "_FULL", 1)
    page = same_as_inspected(DEMOS[0])
    assert len(page.index["runs"]) > len(page.index["threads"])
    monkeypatch.setattr(frames, "_FULL", 1 << 30)
    monkeypatch.setattr(frames, "_PENDING", 1)
    same_as_inspected(DEMOS[0])


def test_a_wide_window_is_not_written_whole_again_at_each_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The frame that a run begins with is weighed as written, also where one row stands for all its items."""
    monkeypatch.setattr(frames, "_FULL", 100)
    path = tmp_path / "wide.jsonl"
    path.write_bytes(b"\n".join(islice(unchanged_window(20_000), 59)) + b"\n")
    page = Page(exported(path))
    assert len(page.rows) == 28
    assert len(page.index["runs"]) == 1


def test_the_step_since_which_a_copy_is_there_is_that_of_blame() -> None:
    page = Page(exported(DEMOS[0]))
    with Inspector.open(DEMOS[0]) as inspector:
        inspector.outline()
        for ordinal in range(0, len(page.rows), 7):
            made = blame_frame(inspector, ordinal)
            for block, shown in zip(made.blocks, page.frame(ordinal), strict=True):
                assert block.since is not None
                assert shown["since"] == block.since.ordinal


def test_an_updated_item_knows_the_text_before(tmp_path: Path) -> None:
    lines = [
        *events([item("doc", "first words", version="1")], "t1"),
        *events([item("doc", "second words", version="2")], "t2"),
        *events([item("doc", "second words", version="2"), item("other", "x")], "t3"),
    ]
    page = Page(exported(written_trace(tmp_path, lines)))
    for ordinal, since in ((1, 1), (2, 1)):
        doc = page.frame(ordinal)[0]
        assert (doc["since"], doc["before_version"]) == (since, page.frame(0)[0]["version"])
        assert page.content(doc["before_text"])[0] == "first words"
    assert page.frame(0)[0]["before_text"] is None


def test_the_size_grows_with_what_changes_not_with_steps_times_items(tmp_path: Path) -> None:
    def size(count: int) -> int:
        head = [item(f"i{n}", f"text {n}") for n in range(count)]
        lines = events(head, "t0")
        for n in range(60):
            lines += events([*head, item(f"m{n}", f"message {n}")], f"t{n + 1}")
        page = Page(exported(written_trace(tmp_path, lines)))
        return sum(len(block) for name, block in page.blocks.items() if name.startswith("s"))

    few, many = size(20), size(400)
    assert many < few + 380 * 1000


def test_the_bytes_are_the_same_again_and_name_no_folder(tmp_path: Path) -> None:
    lines = events([item("a", "words")])
    (tmp_path / "hidden-folder").mkdir()
    path = written_trace(tmp_path / "hidden-folder", lines)
    first = exported(path)
    assert exported(path) == first
    assert "hidden-folder" not in Page(first).everything


def test_what_was_redacted_is_nowhere_in_the_page(tmp_path: Path) -> None:
    secret = "swordfish-" + "4711-" * 3
    lines = [
        *events([item("note", f"the word is {secret} today"), item("short", "pin 12")], "t1"),
        *events([item("note", f"the word is {secret} today"), item("echo", f"said {secret} too")], "t2"),
        {"event_type": "context.redaction.applied", "turn_id": "t2",
         "data": {"redaction_id": "r", "item_id": "note", "redaction_state": "masked"}},
        {"event_type": "context.redaction.applied", "turn_id": "t2",
         "data": {"redaction_id": "r2", "item_id": "short", "redaction_state": "removed"}},
        {"event_type": "context.item.updated", "turn_id": "t2",
         "data": item("note", "the word is [masked] today", redaction_state="masked", title=f"a {secret}")},
        *events([item("after", "all is well")], "t3"),
    ]  # fmt: skip
    path = written_trace(tmp_path, lines)
    page = Page(exported(path))
    assert secret not in page.everything
    assert "pin 12" not in page.everything
    assert "all is well" in page.everything
    assert [one["text"] for one in page.frame(0)] == [-2, -2]
    assert secret not in exported(path, "markdown").decode()


def test_texts_beyond_the_room_lose_their_middle_the_longest_first(tmp_path: Path) -> None:
    long = "".join(random.Random(1).choices("abcdefgh ", k=50_000))
    lines = events([item("long", long), item("small", "small words")])
    page = Page(exported(written_trace(tmp_path, lines), max_content=6_000))
    told = page.index["texts"]
    assert (told["cut"], told["left_out"] + told["limit"]) == (1, 50_000)
    text, _, _, left_out, split = page.content(page.frame(0)[0]["text"])
    assert text == long[:split] + long[split + left_out :]
    assert len(text) + len("small words") <= 6_000
    assert page.content(page.frame(0)[1]["text"])[3] == 0


@given(st.lists(st.integers(0, 10_000), max_size=30), st.integers(0, 100_000))
def test_the_limit_is_the_largest_that_fits(sizes: list[int], room: int) -> None:
    limit = limit_for(sizes, room)
    if limit is None:
        assert sum(sizes) <= room
    elif limit > 512:
        assert sum(min(size, limit) for size in sizes) <= room
        assert sum(min(size, limit + 1) for size in sizes) > room


# What is around the data ----------------------------------------------------------------------------------


def test_the_policy_names_the_style_and_the_script_and_nothing_else() -> None:
    data = exported(DEMOS[0]).decode()
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', data)
    policy = policy.replace("&#x27;", "'")
    (style,) = re.findall(r"<style>(.*?)</style>", data, re.DOTALL)
    (script,) = re.findall(r"<script>(.*?)</script>", data, re.DOTALL)

    def hashed(text: str) -> str:
        return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"

    parts = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert parts == {
        "default-src": "'none'", "script-src": hashed(script), "style-src": hashed(style),
        "base-uri": "'none'", "form-action": "'none'",
    }  # fmt: skip
    assert data.index("Content-Security-Policy") < data.index("<style>")
    assert not re.search(r"\b(?:src|href)\s*=\s*[\"']?(?:https?:|//|data:)", data[: data.index("<script")])


FORBIDDEN = re.compile(
    r"\b(?:innerHTML|outerHTML|insertAdjacentHTML|document\.write\w*|eval|Function|setHTML\w*|srcdoc|DOMParser|"
    r"createContextualFragment|fetch|XMLHttpRequest|WebSocket|EventSource|sendBeacon|importScripts|import|Worker|"
    r"window\.open|execCommand)\b"
)


def without_comments(code: str) -> str:
    return re.sub(r"^\s*//.*$", "", code, flags=re.MULTILINE)


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_script_never_parses_text_as_markup_and_loads_nothing(name: str) -> None:
    code = (ASSETS / name).read_text(encoding="utf-8")
    assert FORBIDDEN.findall(without_comments(code)) == []
    assert len(code.splitlines()) <= 400
    assert max(len(line) for line in code.splitlines()) <= 180


def test_the_search_for_forbidden_names_finds_them() -> None:
    assert FORBIDDEN.findall("x.innerHTML = y; eval(z); await fetch(u)") == ["innerHTML", "eval", "fetch"]


def test_every_part_of_the_script_is_used() -> None:
    assert {path.name for path in ASSETS.glob("*.js")} == set(SCRIPTS)


def test_json_in_the_page_ends_no_element() -> None:
    hostile = "</script><!--<script>&\u2028\u2029"
    data = escaped(dumped({"a": hostile}))
    assert not re.search(rb"[<>&]|\xe2\x80\xa8|\xe2\x80\xa9", data)
    assert json.loads(data) == {"a": hostile}


def test_odd_values_can_be_written() -> None:
    assert json.loads(dumped("\ud800")) == "\ud800"
    assert without_empty({"big": 2**60, "none": None, "empty": [], "kept": 0}) == {
        "big": str(2**60),
        "kept": 0,
    }
    deep: Any = 1
    for _ in range(500):
        deep = [deep]
    assert dumped(without_empty(deep))


def test_a_file_name_cannot_leave_its_place(tmp_path: Path) -> None:
    name = '"><img src=x onerror=alert(1)><!--.jsonl'
    data = exported(written_trace(tmp_path, events([item("a", "b")]), name)).decode()
    assert "<img" not in data
