from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ctxctl.errors import UnreadableError, UsageError
from ctxctl.importers.capture import open_capture
from ctxctl.ingest.document import document
from ctxctl.ingest.folder import Folder
from ctxctl.model.problem import Problem
from ctxctl.model.results import Step
from ctxctl.session import Inspector
from ctxctl.trace.inputs import MAX_DEPTH
from ctxctl.trace.source import Source

ROOT = Path(__file__).resolve().parents[3]
CLAUDE = ROOT / "fixtures" / "claude_code"
TRACE = ROOT / "traces" / "coding-agent.jsonl"


def sessions(path: Path) -> set[str | None]:
    with Inspector.open(path) as inspector:
        return {result.session for result in inspector.replay() if isinstance(result, Step)}


def test_a_folder_lists_regular_files_in_order_and_follows_no_link(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "two").write_text("2")
    (tmp_path / "a").write_text("1")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "index").write_text("x")
    os.mkfifo(tmp_path / "pipe")
    deep = tmp_path.joinpath(*"x" * (MAX_DEPTH + 2))
    deep.mkdir(parents=True)
    (deep / "lost").write_text("x")
    folder = Folder("here", tmp_path)
    assert folder.files == ("a", "b/two")
    assert folder.head("b/two", 9) == b"2"
    assert folder.head("missing", 9) == b""


def test_captures_beside_each_other_are_the_sessions_of_one_trace(tmp_path: Path) -> None:
    for name in ("a", "b"):
        data = (CLAUDE / "session.jsonl").read_bytes().replace(b'"msg_', b'"msg_' + name.encode())
        (tmp_path / f"{name}.jsonl").write_bytes(data)
    (tmp_path / "notes.txt").write_text("nothing of ours")
    found = sessions(tmp_path)
    assert len(found) == 2
    assert {str(name).partition("~")[0] for name in found} == {"5e550000-0000-4000-8000-000000000001"}


def test_the_one_trace_in_a_folder_is_opened(tmp_path: Path) -> None:
    (tmp_path / "run.jsonl").write_bytes(TRACE.read_bytes())
    with open_capture(tmp_path) as capture:
        assert capture.format is None
        assert isinstance(capture.source, Source)


def test_several_traces_in_a_folder_are_not_chosen_from(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_bytes(TRACE.read_bytes())
    with pytest.raises(UnreadableError) as caught:
        open_capture(tmp_path)
    assert caught.value.slug == "several-traces-in-directory"
    assert ": a, b" in str(caught.value)


def test_a_folder_of_nothing_known(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("hello")
    with pytest.raises(UnreadableError) as caught:
        open_capture(tmp_path)
    assert caught.value.slug == "nothing-known-in-directory"


def test_a_format_of_files_is_not_asked_for_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("hello")
    with pytest.raises(UsageError) as caught:
        open_capture(tmp_path, "tau-bench")
    assert caught.value.slug == "not-a-folder-format"


def read(data: bytes) -> tuple[object, list[Problem]]:
    problems: list[Problem] = []
    return document(Source.from_bytes("d", data), problems.append), problems


def test_a_sound_document_is_read_as_it_is() -> None:
    value = {"a": [1, 2.5, None, "ü"]}
    for indent in (None, 2):
        assert read(json.dumps(value, indent=indent).encode()) == (value, [])
    assert read(b"\xef\xbb\xbf[1]") == ([1], [])


WHOLE = {
    "id": "s",
    "messages": [
        {"role": "user", "content": f"text {n}: a, b", "parts": [{"k": n}, {"k": [1, 2]}]} for n in range(6)
    ],
    "end": 1,
}


@pytest.mark.parametrize("indent", [1, 2, 4])
def test_damage_to_a_line_of_an_indented_document_stays_where_it_is(indent: int) -> None:
    lines = json.dumps(WHOLE, indent=indent).split("\n")
    for at in range(2, len(lines) - 1):
        for instead in ([], [lines[at]] * 2, [lines[at][: len(lines[at]) // 2]]):
            if at == 2 and instead != [lines[at]] * 2:
                continue  # the line that opens the list of messages itself
            value, _ = read("\n".join([*lines[:at], *instead, *lines[at + 1 :]]).encode())
            assert isinstance(value, dict)
            found = [m["content"] for m in value["messages"] if m.get("content", "").endswith("a, b")]
            assert len(found) >= 5, (at, instead)


def test_hostile_documents_end_soon() -> None:
    for data in (
        b'{"a":' * 9999,
        b'["a",' * 9999,
        b'{"a":"' + b"\\" * 9999,
        b"[" * 9999,
        b"[[[" + b"a " * 9999,
    ):
        read(data)


def test_a_damaged_document_is_read_as_far_as_it_goes() -> None:
    data = json.dumps({"messages": [{"role": "user", "content": f"m{n}"} for n in range(4)]}).encode()
    value, problems = read(data[:-30])
    assert isinstance(value, dict)
    assert [m["content"] for m in value["messages"][:3]] == ["m0", "m1", "m2"]
    assert [p.slug for p in problems] == ["repaired-document"]


@pytest.mark.parametrize("data", [b"", b"   ", b"no json at all", b"\0\0\0", b'"' * 9])
def test_what_is_no_document_is_reported(data: bytes) -> None:
    value, problems = read(data)
    assert value is None
    assert [p.slug for p in problems] == ["bad-json"]
