"""Every screen on hostile traces, judged by the bytes that reach a pty."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from zlib import crc32

import pytest
from terminal import harm
from test_tui_hostile import ATTACKS
from touring import NOT_TOURED, TYPED, Tour, screens, tour, trace_of

from ctxctl.tui import keys
from ctxctl.tui.screens.whatif.form import LABELS

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="needs a pty"),
    pytest.mark.slow,
    pytest.mark.usefixtures("one_cache"),
]

MORE = (
    "\x1b[5m\x1b[31mblinking red\x1b[8m hidden",
    "\x1b]8;;http://evil/\x1b\\link\x1b]8;;\x1b\\",
    "\x1b]1337;File=inline=1:AAAA\x07\x1bPq#0~\x1b\\\x1b_Gf=100;AAAA\x1b\\",
    "\x1b[21t\x1b[c\x05\x1bP$qm\x1b\\\x1b[?1000h\x1b[?2004h\x1b[200~q\x1b[201~",
    "\x1b[@click=app.quit]\x1b[/] \x9b31m \x1b#8 \x1bc \x0e\x0f",
)
REACHED = (
    {"Overview", "DiffScreen", "Reader"},
    {"Help", "AssembledScreen", "SearchScreen"},
    {"PointerScreen"},
)
"""Screens that each part of the tour must reach, for each part."""
OPENED = {
    "overview": 0, "frames": 0, "stages": 0, "help": 1, "assembled": 1, "search": 1, "why": 2, "blame": 2,
    "findings": 2, "whatif": None,
}  # fmt: skip
"""The part of the tour that goes through the screen that a command opens; typing has a test of its own."""
BY_TYPING = {"WhatIf", "Ask", "Palette"}
BASES = {"Reader"}
"""Screens that others are made from, and that are opened all the same."""
PASTED = tuple(text.replace("\x1b", "") for text in (*ATTACKS, *MORE) if "\ud800" not in text)
"""What can come from a clipboard into a line of input: terminals let no escape character through."""


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    name = "trace [@click=app.quit] \x1b]0;pwned\x07\u202e.jsonl"
    return trace_of((*ATTACKS, *MORE), tmp_path / name)


def part_of(ident: str) -> int | None:
    """The part of the tour in which a command of the main screen is run."""
    return OPENED.get(ident, crc32(ident.encode()) % 2)


@pytest.mark.parametrize("part", range(len(REACHED)))
def test_no_screen_sends_more_than_text(hostile: Path, tmp_path: Path, part: int) -> None:
    with tour(["replay", str(hostile)], tmp_path) as going:
        going.walk(lambda ident: part_of(ident) == part)
        going.check(REACHED[part])


def test_every_screen_is_in_a_part_of_the_tour() -> None:
    assert {"TurnsScreen", "SessionsScreen", "FleetScreen", *BY_TYPING}.union(*REACHED) - BASES == screens()


def test_what_is_typed_and_refused_is_only_text(hostile: Path, tmp_path: Path) -> None:
    with tour(["replay", str(hostile)], tmp_path) as going:
        going.home()
        for asking in (":", "/", "e"):
            for text in PASTED:
                going.press(asking)
                going.paste(text)
                going.press("\x1b" if asking == "e" else "\r")
                going.press("\x1b")
                going.press("\x1b")
            going.home()
        going.check({"Ask", "Palette", "SearchScreen"})


def test_what_is_supposed_is_only_text(hostile: Path, tmp_path: Path) -> None:
    with tour(["replay", str(hostile)], tmp_path) as going:
        going.home()
        going.do("whatif")
        for _ in LABELS:
            for text in PASTED:
                going.press("\x15")
                going.paste(text)
            going.press("\r")  # refused, or simulated: then `W` leads back, and else it is typed
            going.press("W")
            going.press("\x15")
            going.press("\t")
        going.press("\x1b")
        going.do("whatif")  # at the turns of what was simulated
        for keys_ in ("W", "\x15", "2k\r"):
            going.press(keys_)
        for ident in going.commands():
            if ident.startswith("whatif."):
                going.do(ident)
                if not going.depth:
                    going.do("whatif")
        going.check({"WhatIf"})
        assert "whatif.over" in {ident for said in going.said for ident in said.get("ids", ())}


def test_the_check_catches_a_leak(hostile: Path, tmp_path: Path) -> None:
    with tour(["replay", str(hostile)], tmp_path, "leaky-tour") as going:
        going.home()
        going.do("assembled")
        for key in ("G", "\x15", "\x15", "g", "\x04", "\x04"):
            going.press(key)
        going.tty.process.kill()
        found = harm(going.tty.seen)
    assert any(fault.startswith("'\\x9b'") for fault in found)
    assert any("\\u202e" in fault for fault in found)


def lines_of(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def look_around(going: Tour) -> None:
    """What speaks of a session that is being written."""
    for ident in ("overview", "stages", "problems", "about", "frames", "assembled"):
        going.do(ident)
        going.press("G")
        going.home()
    going.press("F")


def test_a_watched_file_sends_no_more_than_text(hostile: Path, tmp_path: Path) -> None:
    written = lines_of(hostile)
    live = tmp_path / f"live {hostile.name}"
    live.write_bytes(b"".join(written[:3]))
    with tour(["watch", str(live)], tmp_path) as going:
        going.until(lambda: going.turns == 3)
        with live.open("ab") as file:
            file.write(b"".join(written[3:-1]) + written[-1][:-40])
        going.until(lambda: going.turns == len(written) - 1)
        look_around(going)
        with live.open("ab") as file:
            file.write(written[-1][-40:] + b'{"\x1b]0;x\x07": \n')
        going.until(lambda: going.turns == len(written))
        look_around(going)
        live.write_bytes(b"".join(written[:4]))  # cut short
        going.until(lambda: going.turns == 4)
        live.unlink()
        since = len(going.tty.bytes)
        going.tty.wait_for("gone", since)
        look_around(going)
        live.write_bytes(b"".join(written[:2]))
        going.until(lambda: going.turns == 2)
        going.check({"Overview", "Reader", "DiffScreen", "AssembledScreen"})


def test_a_watched_directory_sends_no_more_than_text(hostile: Path, tmp_path: Path) -> None:
    folder = tmp_path / "folder \x1b[2J\u202e"
    folder.mkdir()
    written = lines_of(trace_of([text for text in ATTACKS if "\ud800" not in text], hostile))
    (folder / hostile.name).write_bytes(b"".join(written[:3]))
    with tour(["watch", str(folder)], tmp_path) as going:
        going.until(lambda: going.turns == 3)
        newer = folder / "newer \x9b31m\x07[@click=app.quit]x.jsonl"
        newer.write_bytes(b"".join(written[:5]))
        going.until(lambda: going.turns > 3)
        look_around(going)
        going.check()


def test_the_check_catches_a_leak_of_what_is_watched(hostile: Path, tmp_path: Path) -> None:
    live = tmp_path / f"live {hostile.name}"
    live.write_bytes(lines_of(hostile)[0])
    with tour(["watch", str(live)], tmp_path, "leaky-tour") as going:
        with live.open("ab") as file:
            file.write(b"".join(lines_of(hostile)[1:]))
        going.until(lambda: going.turns == len(lines_of(hostile)))
        going.press("\r")
        going.press("\r")
        going.tty.process.kill()
        assert harm(going.tty.seen) != []


def test_published_attacks(corpus: Path, tmp_path: Path) -> None:
    suites = corpus / "suites"
    strings = json.loads((suites / "big-list-of-naughty-strings" / "blns.json").read_text(encoding="utf-8"))
    sequences = sorted(path for path in (suites / "xterm-escape-sequences").rglob("*") if path.is_file())
    raw = [path.read_bytes()[:2000].decode("latin-1") for path in sequences]
    parts = tuple(" ".join(strings[n : n + 60]) for n in range(0, len(strings), 60))
    with tour(["replay", str(trace_of((*parts, *raw[:12]), tmp_path / "t.jsonl"))], tmp_path) as going:
        going.walk()
        going.check()


def test_the_tour_knows_every_scope() -> None:
    idents = {action.id for action in keys.ACTIONS}
    assert idents >= NOT_TOURED
    assert {*TYPED, *OPENED} <= idents
