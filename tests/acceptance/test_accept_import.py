"""``import``: what it writes is valid, and replays as the foreign file does."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from tests.acceptance.runs import ROOT, Json, assert_error, ctxctl, shell

FIXTURES = ROOT / "fixtures"
FOREIGN = sorted(
    str(path.relative_to(FIXTURES))
    for folder in ("claude_code", "sanqian")
    for path in (*(FIXTURES / folder).glob("*.jsonl"), *(FIXTURES / folder).glob("agents/*.jsonl"))
)
SESSION = FIXTURES / "claude_code" / "session.jsonl"


def content(lines: list[Json]) -> list[Json]:
    """What a replay says, less the input's name and format and the problems of the foreign file."""
    kept = []
    for line in lines:
        if line["type"] == "trace":
            line = {k: v for k, v in line.items() if k not in ("trace", "format")}
        elif line["type"] == "summary":
            line = {k: v for k, v in line.items() if k != "problems"}
        if line["type"] != "problem":
            kept.append(line)
    return kept


@pytest.mark.parametrize("name", FOREIGN)
def test_the_import_validates_and_replays_as_the_foreign_file(name: str, tmp_path: Path) -> None:
    foreign, native = FIXTURES / name, tmp_path / "native.jsonl"
    done = ctxctl("import", foreign, "-o", native)
    assert done.code == 0, done.err
    assert done.stdout == b""
    assert stat.S_IMODE(native.stat().st_mode) == 0o600
    checked = ctxctl("validate", native)
    assert checked.code == 0, checked.out
    direct = ctxctl("replay", "--json", foreign)
    assert direct.code == 0
    assert direct.of_type("step"), "nothing to compare"
    assert direct.lines[0]["format"] in ("claude-code", "sanqian")
    imported = ctxctl("replay", "--json", native, "--policy", direct.lines[0]["policy"])
    assert imported.lines[0]["format"] == "native"
    assert content(imported.lines) == content(direct.lines)


def test_an_import_replays_under_its_format_s_own_policy(tmp_path: Path) -> None:
    foreign, native = FIXTURES / "sanqian" / "provider-calls.jsonl", tmp_path / "native.jsonl"
    assert ctxctl("import", foreign, "-o", native).code == 0
    assert content(ctxctl("replay", "--json", native).lines) == content(
        ctxctl("replay", "--json", foreign).lines
    )


def test_stdout_and_a_file_get_the_same_trace(tmp_path: Path) -> None:
    native = tmp_path / "native.jsonl"
    assert ctxctl("import", SESSION, "--output", native).code == 0
    assert ctxctl("import", SESSION).stdout == native.read_bytes()
    piped = shell('ctxctl import - <"$1" | ctxctl replay --json -', SESSION)
    assert piped.code == 0
    assert content(piped.lines) == content(ctxctl("replay", "--json", native).lines)


def test_several_sources_become_one_trace(tmp_path: Path) -> None:
    native = tmp_path / "native.jsonl"
    done = ctxctl("import", SESSION, FIXTURES / "sanqian" / "provider-calls.jsonl", "-o", native)
    assert done.code == 0, done.err
    assert len(done.err.splitlines()) == 2
    assert ctxctl("validate", native).code == 0
    summary = ctxctl("replay", "--json", native).lines[-1]
    assert summary["sessions"] == 2


def test_json_tells_what_was_imported(tmp_path: Path) -> None:
    done = ctxctl("import", "--json", SESSION, "-o", tmp_path / "native.jsonl")
    assert done.code == 0
    (told,) = done.of_type("import")
    assert (told["source"], told["format"]) == ("session.jsonl", "claude-code")
    assert told["events"] == (tmp_path / "native.jsonl").read_bytes().count(b"\n")


def test_a_file_that_is_there_is_not_replaced_unasked(tmp_path: Path) -> None:
    native = tmp_path / "native.jsonl"
    native.write_bytes(b"precious\n")
    assert_error(ctxctl("import", SESSION, "-o", native), 2, "--force")
    assert native.read_bytes() == b"precious\n"
    assert ctxctl("import", SESSION, "-o", native, "--force").code == 0
    assert native.read_bytes().startswith(b"{")


@pytest.mark.parametrize(
    "data", [None, b"", b"junk\n", (ROOT / "traces" / "notes-assistant.jsonl").read_bytes()]
)
def test_a_failed_import_leaves_nothing_behind(data: bytes | None, tmp_path: Path) -> None:
    source = tmp_path / "in" / "run.jsonl"
    source.parent.mkdir()
    if data is not None:
        source.write_bytes(data)
    target = tmp_path / "out"
    target.mkdir()
    assert_error(ctxctl("import", SESSION, source, "-o", target / "native.jsonl"), 3, "run.jsonl")
    assert list(target.iterdir()) == []


def test_a_target_that_cannot_be_written(tmp_path: Path) -> None:
    done = ctxctl("import", SESSION, "-o", tmp_path / "no" / "such" / "folder.jsonl")
    assert done.code in (1, 2, 3)
    assert done.err.startswith("ctxctl: error: ")
    assert done.stdout == b""


def test_damage_in_a_foreign_file_is_told_and_the_rest_imported(tmp_path: Path) -> None:
    lines = SESSION.read_bytes().splitlines(keepends=True)
    hurt = tmp_path / "session.jsonl"
    hurt.write_bytes(b"".join([*lines[:5], b"words\n", *lines[5:], lines[-1][:40]]))
    begin = len(b"".join(lines[:5]))
    last = hurt.stat().st_size - 40
    for command in (("replay", "--plain"), ("import", "-o", str(tmp_path / "native.jsonl"))):
        done = ctxctl(*command, hurt, "--strict")
        assert done.code == 1
        assert (6, begin) in [(p.line, p.byte) for p in done.told]
        assert (len(lines) + 2, last) in [(p.line, p.byte) for p in done.told]
    whole = ctxctl("replay", "--json", SESSION)
    rest = ctxctl("replay", "--json", hurt)
    assert rest.code == 0
    assert {(p.line, p.byte) for p in rest.reported} >= {(6, begin), (len(lines) + 2, last)}
    assert [s["window"]["used"] for s in rest.of_type("step")] == [
        s["window"]["used"] for s in whole.of_type("step")
    ]
