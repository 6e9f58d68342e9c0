"""Copying, writing to a file, and opening in other programs."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest
from fake import FakeInspector, Request, Thing, notes_agent
from helpers import Session, made, running, settle

from ctxctl.tui import export
from ctxctl.tui.document import Document
from ctxctl.tui.export import ExportError
from ctxctl.tui.screens.reader import Reader
from ctxctl.whole_file import begin_noting, note_read

NASTY = "a\x1b]52;c;ZXZpbA==\x07b\u202e\tc\r\nd\x9b2J"


def test_what_is_copied_is_made_visible_and_tabs_stay() -> None:
    assert export.for_clipboard(NASTY) == "a␛]52;c;ZXZpbA==␇b⟨U+202E⟩\tc\nd⟨U+009B⟩2J"


def test_what_is_too_large_is_not_copied() -> None:
    assert len(export.for_clipboard("x" * export.CLIPBOARD)) == export.CLIPBOARD
    most = export.CLIPBOARD
    for text in ("x" * (most + 1), "é" * (most - 1), "\x1b" * (most // 2)):
        with pytest.raises(ExportError, match="too much to copy"):
            export.for_clipboard(text)


@pytest.mark.parametrize(
    ("trace", "phrase", "name"),
    [
        ("runs/run.jsonl", "assembled text of step 3.1", "run-assembled-text-of-step-3.1.txt"),
        ("-", "keys", "keys.txt"),
        ("../../etc/pass\x1bwd", "a/b\\c", "pass-wd-a-b-c.txt"),
        (".hidden", "x", "hidden-x.txt"),
        ("dir/", "x", "dir-x.txt"),
        ("世界.jsonl", "é", "世界-é.txt"),
        ("...", "\u202e", "U+202E.txt"),
    ],
)
def test_names_of_files_are_plain(trace: str, phrase: str, name: str) -> None:
    found = export.file_name(trace, phrase)
    assert found.endswith(name)
    assert "/" not in found
    assert not found.startswith((".", "-"))
    assert "\u202e" not in found
    assert len(found) < 100


def test_a_name_that_is_taken_gets_a_number(tmp_path: Path) -> None:
    (tmp_path / "x.txt").touch()
    (tmp_path / "x-2.txt").symlink_to("nowhere")
    assert export.free_name(tmp_path, "x.txt") == "x-3.txt"
    assert export.free_name(tmp_path, "y.txt") == "y.txt"


def test_a_file_is_written_raw_and_for_the_user_alone(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    assert export.write_file(str(path), NASTY) == "written"
    assert path.read_bytes().decode() == NASTY
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert export.write_file(str(tmp_path / "lone.txt"), "\ud800") == "written"


def test_a_file_that_is_there_is_asked_about(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text("a longer text that was there before")
    assert export.write_file(str(path), "new") == "exists"
    assert path.read_text().startswith("a longer")
    assert export.write_file(str(path), "new", over=True) == "written"
    assert path.read_text() == "new"


def test_what_was_read_is_not_written_over(tmp_path: Path) -> None:
    trace, link = tmp_path / "run.jsonl", tmp_path / "hard.jsonl"
    trace.write_text("a trace")
    link.hardlink_to(trace)
    begin_noting()
    note_read([str(trace)])
    for path in (trace, link):
        assert export.write_file(str(path), "new") == "exists"
        with pytest.raises(ExportError, match="is one of the files that are read"):
            export.write_file(str(path), "new", over=True)
    assert trace.read_text() == "a trace"


def test_links_directories_and_devices_are_not_written_to(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("precious")
    (tmp_path / "link").symlink_to(target)
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe", ".", "none/x.txt"):
        for over in (False, True):
            with pytest.raises(ExportError):
                export.write_file(str(tmp_path / name), "x", over=over)
    with pytest.raises(ExportError):
        export.write_file("a\0b", "x")
    assert target.read_text() == "precious"


def test_programs_come_from_the_environment(tmp_path: Path) -> None:
    tool = tmp_path / "my tool"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o700)
    path = {"PATH": str(tmp_path)}
    assert export.program_words("pager", {**path, "PAGER": "'my tool' -x 'a b'"}) == ["my tool", "-x", "a b"]
    assert export.program_words("editor", {**path, "VISUAL": "'my tool'", "EDITOR": "no"}) == ["my tool"]
    for environment, why in (
        ({**path, "PAGER": "absent -x"}, "there is no program absent"),
        ({**path, "PAGER": "'open"}, "no closing quotation"),
        (path, "there is no pager here: .PAGER names one"),
    ):
        with pytest.raises(ExportError, match=why):
            export.program_words("pager", environment)


def test_a_pager_gets_what_is_visible_and_an_editor_a_copy_to_read() -> None:
    for raw, text in ((False, export.harmless(NASTY)), (True, NASTY)):
        with export.lent_file(NASTY, "x.txt", raw=raw) as path:
            assert path.read_bytes().decode() == text
            assert stat.S_IMODE(path.stat().st_mode) == 0o400
            assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert not path.parent.exists()


def test_what_a_program_ended_with_is_told(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.touch()
    assert export.run_program(["true"], path, 2) == ""
    assert export.run_program(["false"], path, 2) == "false ended with exit code 1"
    assert "ended by signal 9" in export.run_program(["sh", "-c", "kill -9 $$"], path, 2)
    assert export.run_program([str(path)], path, 2).endswith("Permission denied")


# In the UI


async def work(session: Session) -> None:
    await session.app.workers.wait_for_complete()
    await settle(session.app, session.pilot)


def nasty() -> FakeInspector:
    return FakeInspector(notes_agent(), name="run \x1b]0;x\x07.jsonl")


async def read(session: Session, text: str = NASTY) -> None:
    """Have a text in front."""
    session.app.push_screen(Reader("a \x1b[2J text", Document(text)))
    await settle(session.app, session.pilot)


async def test_y_copies_what_is_in_front_made_visible() -> None:
    async with running(made(nasty())) as session:
        await read(session)
        await session.press("y")
        assert session.app.clipboard == export.for_clipboard(NASTY)
        assert "sent to the clipboard" in session.text
        assert "\x1b" not in session.app.clipboard


async def test_too_much_is_told_and_the_other_way_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "CLIPBOARD", 5)
    async with running(made(nasty())) as session:
        await read(session)
        await session.press("y")
        assert session.app.clipboard == ""
        assert "e writes it to a file" in " ".join(session.text.replace("▌", "").split())


async def test_capital_y_copies_an_address() -> None:
    async with running(made(FakeInspector(notes_agent(), name="my run.jsonl"))) as session:
        await session.press("Y")
        assert session.app.clipboard == "'my run.jsonl@1'"
        await session.press("l", "j", "Y")
        assert session.app.clipboard == "'my run.jsonl@1.1'"


async def test_addresses_name_thread_and_session_where_needed() -> None:
    thing = Thing("m1", "x")
    requests = [Request(1, (thing,), session="a"), Request(1, (thing,), session="b", thread="explorer")]
    async with running(made(FakeInspector(requests, name="r"))) as session:
        await session.press("Y")
        assert session.app.clipboard == "r@a/1"
        await session.press("G", "Y")
        assert session.app.clipboard == "r@b/explorer:1"


@pytest.mark.slow
async def test_e_writes_a_file_and_asks_before_writing_over_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with running(made(nasty())) as session:
        await read(session)
        await session.press("e")
        assert "raw, to a file" in session.text
        await session.press("enter")
        await work(session)
        (path,) = tmp_path.iterdir()
        assert path.read_bytes().decode() == NASTY
        path.write_text("mine")
        for answer, text in (("n", "mine"), ("y", NASTY)):
            await session.press("e", "ctrl+u", *path.name, "enter")
            await work(session)
            assert "already exists" in session.text
            await session.press(answer, "enter")
            await work(session)
            assert path.read_bytes().decode() == text
        await session.press("e", "ctrl+u", *"nowhere/x", "enter")
        await work(session)
        assert "No such file" in session.text
        await session.press("e", "escape")
    assert [path.name for path in tmp_path.iterdir()] == [path.name]


async def test_o_opens_the_pager_and_what_goes_wrong_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    lent: list[Any] = []

    def run(words: list[str], path: Path, out: int) -> str:
        lent.append((words, path.read_bytes().decode()))
        return "less ended with exit code 9"

    monkeypatch.setattr(export, "run_program", run)
    async with running(made(nasty())) as session:
        session.app.environment = {**os.environ, "PAGER": "cat -u", "VISUAL": "cat -v"}
        monkeypatch.setattr(type(session.app), "_away", lambda self, run: run())
        await read(session)
        await session.press("o")
        await work(session)
        assert lent == [(["cat", "-u"], export.harmless(NASTY))]
        assert "exit code 9" in session.text
        await session.press("O")
        await work(session)
        assert lent[1] == (["cat", "-v"], NASTY)
        session.app.environment = {"PATH": "", "PAGER": "nothing-there"}
        await session.press("o")
        assert "nothing-there" in session.text


async def test_without_a_terminal_to_lend_that_is_told() -> None:
    async with running(made(nasty())) as session:
        session.app.environment = {**os.environ, "PAGER": "cat"}
        await read(session)
        await session.press("o")
        await work(session)
        assert "no terminal to leave" in " ".join(session.text.replace("▌", "").split())


async def test_a_list_in_front_is_taken_line_by_line() -> None:
    async with running(made(FakeInspector(notes_agent()))) as session:
        await session.press("y")
        assert "Rewrite this note" in session.app.clipboard
        assert len(session.app.clipboard.splitlines()) == 3


async def test_a_sentence_of_ours_is_not_copied() -> None:
    async with running(made(FakeInspector(notes_agent()))) as session:
        await session.press("enter", "enter", "d")
        assert "It is new in this frame" in session.text
        await session.press("y")
        assert "nothing to copy or open here" in session.text
