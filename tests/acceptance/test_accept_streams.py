"""Standard streams, terminals, colour and width, as a shell user meets them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ctxctl.text import cells
from tests.acceptance.runs import ROOT, assert_printable, ctxctl, on_terminal, shell
from tests.acceptance.tracing import SOUND

AGENT = ROOT / "traces" / "coding-agent.jsonl"
NOTES = ROOT / "traces" / "notes-assistant.jsonl"
ESC = b"\x1b"
COLOUR = re.compile(rb"\x1b\[[0-9;]*m")
PROGRESS = re.compile(rb"\r\x1b\[2K(?:ctxctl: \w+(?: \d+%)? \.\.\.)?")


TEXT = "".join(f"Line {n} of a long note that nobody reads to its end.\n" for n in range(8000))
"""More than a pipe holds."""


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a trace with a large item that changes, and with many damaged lines."""
    path = tmp_path_factory.mktemp("large") / "large.jsonl"
    changed = SOUND.replace(b"The first note says hello.", json.dumps(TEXT)[1:-1].encode())
    path.write_bytes(changed + b"".join(b"junk %d\n" % n for n in range(3000)))
    return path


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a foreign capture with a large message."""
    path = tmp_path_factory.mktemp("capture") / "session.jsonl"
    lines = (ROOT / "fixtures" / "sanqian" / "provider-calls.jsonl").read_text(encoding="utf-8").splitlines()
    call = json.loads(lines[1])
    call["data"]["content"] = TEXT
    path.write_text("\n".join([lines[0], json.dumps(call), *lines[2:]]) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("buffered", ["", "1"])
@pytest.mark.parametrize(
    "script",
    [
        'ctxctl replay --json "$1" | head -1',
        'ctxctl replay --plain --all "$2" | head -1',
        'ctxctl show --text "$1@3" | head -1',
        'ctxctl import "$3" | head -c 500',
    ],
)
def test_a_reader_that_goes_away(script: str, buffered: str, large: Path, capture: Path) -> None:
    """It ends quietly, also where Python is told not to buffer: there a write may be cut short."""
    done = shell(script, large, AGENT, capture, PYTHONUNBUFFERED=buffered or None)
    assert done.code == 0, (done.code, done.err)
    assert done.err == ""
    if "--json" in script:
        json.loads(done.stdout)


@pytest.mark.parametrize("unbuffered", [None, "1"])
def test_an_output_that_takes_only_a_part(unbuffered: str | None, large: Path, tmp_path: Path) -> None:
    """A limit on the size of files, in KiB, cuts a write short as a full disk does."""
    script = 'ulimit -f 100; ctxctl show --text "$1@3" >"$2"'
    done = shell(script, large, tmp_path / "out.txt", PYTHONUNBUFFERED=unbuffered, CTXCTL_CACHE="off")
    assert done.code == 1, (done.code, done.err[:300])
    assert done.err.startswith("ctxctl: error: ")
    assert len(done.err.splitlines()) == 1


@pytest.mark.parametrize(
    "script",
    [
        'ctxctl replay --plain "$1" >/dev/full',
        'ctxctl replay --json "$1" >/dev/full',
        'ctxctl show "$1@1" --text >/dev/full',
        'ctxctl import "$2" -o /dev/full',
        'ctxctl import "$2" >/dev/full',
        "ctxctl --version >/dev/full",
        "ctxctl --help >/dev/full",
        'ctxctl replay --plain "$1" >&-',
        'ctxctl replay --json "$1" >&-',
    ],
)
def test_an_output_that_takes_nothing(script: str) -> None:
    done = shell(script, NOTES, ROOT / "fixtures" / "sanqian" / "provider-calls.jsonl")
    assert done.code == 1 or ("-o" in script and done.code == 3), (done.code, done.err)
    assert len(done.err.splitlines()) == 1, done.err
    assert done.err.startswith("ctxctl: error: "), done.err
    assert "No space left" in done.err or "closed" in done.err


def test_closed_stderr_costs_only_what_would_be_said_there() -> None:
    assert shell('ctxctl replay --plain "$1" 2>&-', NOTES).out == ctxctl("replay", NOTES).out
    assert shell('ctxctl replay --plain "$1" 2>/dev/full', NOTES).code == 0
    assert shell("ctxctl replay /no/such/file 2>&-").code == 3


def test_stdin_is_a_trace_like_any_other() -> None:
    data = NOTES.read_bytes()
    named = ctxctl("replay", "--json", NOTES)
    piped = ctxctl("replay", "--json", "-", data=data)
    assert piped.code == 0
    assert piped.lines[0]["trace"] == "-"
    assert piped.lines[1:] == named.lines[1:]
    assert shell('ctxctl replay --json - <"$1"', NOTES).stdout == piped.stdout, "a file as stdin, not a pipe"
    assert ctxctl("show", "-@2", "--text", data=data).out == ctxctl("show", f"{NOTES}@2", "--text").out
    one, other = ctxctl("diff", "-@2", "@3", data=data), ctxctl("diff", f"{NOTES}@2", "@3")
    assert one.out.replace("-@", "notes-assistant.jsonl@").splitlines()[3:] == other.out.splitlines()[3:]
    assert ctxctl("log", "-", "system", data=data).code == 0
    assert ctxctl("validate", "-", data=data).code == 0


def test_without_a_terminal_there_is_a_report_without_colour() -> None:
    done = ctxctl("replay", NOTES)
    assert done.code == 0
    assert done.err == ""
    assert done.out.startswith("trace ")
    assert ESC not in done.stdout
    assert ctxctl("replay", "--plain", NOTES).stdout == done.stdout


def test_no_color_on_a_terminal() -> None:
    coloured = on_terminal("replay", "--plain", NOTES)
    assert coloured.code == 0
    assert COLOUR.search(coloured.stdout)
    plain = on_terminal("replay", "--plain", NOTES, env={"NO_COLOR": "1"})
    assert plain.code == 0
    assert ESC not in PROGRESS.sub(b"", plain.stdout)
    assert PROGRESS.sub(b"", COLOUR.sub(b"", coloured.stdout)) == PROGRESS.sub(b"", plain.stdout)


def test_a_dumb_terminal_gets_the_plain_report() -> None:
    done = on_terminal("replay", NOTES, env={"TERM": "dumb"})
    assert done.code == 0
    assert ESC not in done.stdout
    assert b"\r" not in done.stdout
    assert done.out == ctxctl("replay", NOTES, env={"COLUMNS": "80"}).out


def test_json_on_a_terminal_is_json() -> None:
    done = on_terminal("replay", "--json", NOTES, env={"TERM": "xterm-256color"})
    assert done.code == 0
    assert ESC not in PROGRESS.sub(b"", done.stdout)
    assert all(json.loads(line) for line in PROGRESS.sub(b"", done.stdout).splitlines())


@pytest.mark.parametrize("columns", ["60", "200"])
def test_no_line_is_wider_than_columns(columns: str) -> None:
    done = ctxctl("replay", "--plain", AGENT, env={"COLUMNS": columns})
    assert done.code == 0
    widest = max(done.out.splitlines(), key=cells)
    assert cells(widest) <= int(columns), widest


@pytest.mark.parametrize("columns", ["0", "wide", "999999999"])
def test_columns_that_make_no_sense(columns: str) -> None:
    assert ctxctl("replay", "--plain", NOTES, env={"COLUMNS": columns}).code == 0


def test_json_does_not_depend_on_the_terminal() -> None:
    wide = ctxctl("replay", "--json", NOTES, env={"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"})
    assert wide.stdout == ctxctl("replay", "--json", NOTES, env={"COLUMNS": "40", "FORCE_COLOR": "1"}).stdout


@pytest.mark.parametrize(
    "env",
    [
        {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONIOENCODING": "ascii"},
        {"PYTHONIOENCODING": "latin-1"},
    ],
)
def test_an_output_encoding_that_lacks_characters(env: dict[str, str | None], tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(
        SOUND.replace(b"The second", "Das zweite 字 é →".encode()).replace(b"beta", "bêta字".encode())
    )
    for options in (("replay", "--steps", path), ("show", f"{path}@3", "--text")):
        done = ctxctl(*options, env=env, mannered=False)
        assert done.code == 0, done.err
        assert done.err == ""
        assert b"The third note" in done.stdout or b"gamma" in done.stdout
    lines = ctxctl("replay", "--json", path, env=env).lines
    assert any(c["item"] == "bêta字" for line in lines for c in line.get("changes", ()))


def test_version_and_help_go_to_stdout() -> None:
    version = ctxctl("--version")
    assert version.code == 0
    assert re.fullmatch(r"ctxctl \d+\.\d+\S*\n", version.out)
    for arguments in (("--help",), ("replay", "--help"), ("import", "-h")):
        done = ctxctl(*arguments)
        assert done.code == 0
        assert done.err == ""
        assert "Usage: ctxctl" in done.out


def test_hostile_names_and_texts_never_reach_the_terminal_raw(tmp_path: Path) -> None:
    hostile = json.dumps(
        "\x1b]2;owned\x1b\\\x07\x9b31m\u202e\u2066\u200f\r\n\x00 ::set-output name=x::y \x7f"
    )[1:-1].encode()
    data = (
        SOUND.replace(b"The second note", b"The " + hostile + b" note")
        .replace(b'"beta"', b'"beta ' + hostile + b'"')
        .replace(b'"turn_id":"t2"', b'"turn_id":"' + hostile + b'"')
        .replace(b'"context_kind"', b'"title":"' + hostile + b'","context_kind"')
        .replace(b'"acceptance"', b'"' + hostile + b'"')
        .replace(b'"gpt-4o"', b'"' + hostile + b'"')
        .replace(b'"session_id":"s"', b'"session_id":"' + hostile + b'"')
    )
    path = tmp_path / "run.jsonl"
    path.write_bytes(data + b'{"event_type":"' + hostile + b'"}\n{"' + hostile + b'":1}\n' + hostile + b"\n")
    for command in (
        ("replay", "--plain", "--all", path),
        ("replay", "--json", path),
        ("show", f"{path}@2"),
        ("show", f"{path}@2", "--text"),
        ("show", f"{path}@2", "--text", "--json"),
        ("diff", f"{path}@1", "@2"),
        ("log", path, "beta"),
        ("log", path, "b\x1b]2;x\x07"),
        ("validate", path),
    ):
        done = ctxctl(*command)  # every run is held to printable output
        assert done.code in (0, 1, 2), (command, done.err)
    on_tty = on_terminal("replay", "--plain", path)
    assert on_tty.code == 0
    assert_printable(COLOUR.sub(b"", PROGRESS.sub(b"", on_tty.stdout)), "terminal")
