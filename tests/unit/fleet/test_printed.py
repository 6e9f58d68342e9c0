"""What ``cost DIR --json`` printed is printed again for the very same answers, and for no others."""

from __future__ import annotations

import os
import shutil
import sqlite3
import zlib
from pathlib import Path

import msgspec
import pytest
import xxhash

from ctxctl.cli.main import run
from ctxctl.fleet import printed
from ctxctl.report import fleet_costs

ROOT = Path(__file__).resolve().parents[3]
CLAUDE = ROOT / "fixtures" / "claude_code"
Out = pytest.CaptureFixture[bytes]


@pytest.fixture
def top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of three captures, named as `top`."""
    monkeypatch.setattr("ctxctl.trace.inputs.YOUNG", -60.0)
    monkeypatch.setattr(printed, "_LEAST", 2)
    monkeypatch.chdir(tmp_path)
    made = tmp_path / "top"
    made.mkdir()
    shutil.copy(CLAUDE / "session.jsonl", made / "one.jsonl")
    shutil.copy(CLAUDE / "compaction.jsonl", made / "two.jsonl")
    shutil.copy(ROOT / "fixtures/codex/rollout.jsonl", made / "rollout.jsonl")
    return made


@pytest.fixture
def rendered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The groups that were printed anew."""
    names: list[str] = []
    made = fleet_costs.group_object

    def noted(by: str, group: fleet_costs.Group) -> object:
        names.append(group.name)
        return made(by, group)

    monkeypatch.setattr(fleet_costs, "group_object", noted)
    return names


def said(capfdbinary: Out, *words: str, code: int = 0) -> bytes:
    assert run(["cost", *words]) == code
    return capfdbinary.readouterr().out


def afresh(capfdbinary: Out, *words: str) -> bytes:
    os.environ["CTXCTL_CACHE"] = "off"
    try:
        return said(capfdbinary, *words)
    finally:
        del os.environ["CTXCTL_CACHE"]


def test_the_same_is_printed_once(top: Path, rendered: list[str], capfdbinary: Out) -> None:
    expected = afresh(capfdbinary, "--json", "top")
    rendered.clear()
    assert said(capfdbinary, "--json", "top") == expected
    assert len(rendered) == 3
    assert said(capfdbinary, "--json", "top") == expected
    assert len(rendered) == 3


@pytest.mark.parametrize(
    "more", [("--by", "day"), ("--by", "model"), ("--model", "gpt-4o"), ("--policy", "fifo")]
)
def test_another_question_is_another_row(more: tuple[str, ...], top: Path, capfdbinary: Out) -> None:
    plain = said(capfdbinary, "--json", "top")
    expected = afresh(capfdbinary, "--json", *more, "top")
    assert expected != plain
    for _ in range(2):
        assert said(capfdbinary, "--json", *more, "top") == expected
        assert said(capfdbinary, "--json", "top") == plain
    moved = afresh(capfdbinary, "--json", str(top))
    assert said(capfdbinary, "--json", str(top)) == moved != plain


def test_what_changes_is_printed_anew(top: Path, capfdbinary: Out) -> None:
    before = said(capfdbinary, "--json", "top")
    shutil.copy(CLAUDE / "sidechain.jsonl", top / "one.jsonl")
    expected = afresh(capfdbinary, "--json", "top")
    assert expected != before
    for _ in range(2):
        assert said(capfdbinary, "--json", "top") == expected
    (top / "one.jsonl").unlink()
    expected = afresh(capfdbinary, "--json", "top")
    for _ in range(2):
        assert said(capfdbinary, "--json", "top") == expected


def test_requests_that_several_captures_hold_are_worked_out_each_time(
    top: Path, rendered: list[str], capfdbinary: Out
) -> None:
    shutil.copy(top / "two.jsonl", top / "copy.jsonl")
    expected = afresh(capfdbinary, "--json", "top")
    rendered.clear()
    for number in (1, 2):
        assert said(capfdbinary, "--json", "top") == expected
        assert len(rendered) == 4 * number


def test_a_capture_that_cannot_be_read_is_told_each_time(top: Path, capfdbinary: Out) -> None:
    (top / "lost.jsonl").symlink_to(top / "nowhere.jsonl")
    shutil.copy(top / "two.jsonl", top / "shut.jsonl")
    with (top / "shut.jsonl").open("ab") as file:
        file.write(b"{broken\n")
    expected = afresh(capfdbinary, "--json", "top")
    assert b'"type":"problem"' in expected
    for _ in range(2):
        assert said(capfdbinary, "--json", "top") == expected
    said(capfdbinary, "--json", "--strict", "top", code=1)
    said(capfdbinary, "--json", "--strict", "top", code=1)


def row(path: Path) -> tuple[bytes, printed._Row]:
    with sqlite3.connect(path) as connection:
        for key, data in connection.execute("SELECT key, data FROM answers"):
            try:
                found = msgspec.msgpack.decode(data, type=printed._Row)
                if zlib.decompress(found.lines).startswith(b'{"type":"fleet"'):
                    return key, found
            except (msgspec.MsgspecError, zlib.error):
                continue
    raise AssertionError("no row")


def replaced(path: Path, made: printed._Row) -> None:
    key, _ = row(path)
    data = msgspec.msgpack.encode(made)
    with sqlite3.connect(path) as connection:
        check = xxhash.xxh3_128_digest(key + data)
        connection.execute("UPDATE answers SET data = ?, sum = ? WHERE key = ?", (data, check, key))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"one.jsonl", b"\x1b[2J"),
        (b"one.jsonl", "\u202e".encode()),
        (b'{"type":"cost"', b"::error::"),
        (b"one", b"\xff"),
    ],
)
def test_a_forged_row_says_nothing_to_a_terminal(old: bytes, new: bytes, top: Path, capfdbinary: Out) -> None:
    expected = said(capfdbinary, "--json", "top")
    (path,) = Path(os.environ["CTXCTL_CACHE_DIR"]).rglob("answers-*.sqlite3")
    _, found = row(path)
    lines = zlib.decompress(found.lines)
    bad = lines.replace(old, new)
    assert bad != lines
    replaced(path, msgspec.structs.replace(found, size=len(bad), lines=zlib.compress(bad)))
    assert said(capfdbinary, "--json", "top") == expected
    _, found = row(path)
    replaced(path, msgspec.structs.replace(found, lines=zlib.compress(lines + b" " * 9999)))
    assert said(capfdbinary, "--json", "top") == expected
    _, found = row(path)
    good = lines.replace(b"one.jsonl", b"won.jsonl")  # a control: what is taken if all is well-formed
    replaced(path, msgspec.structs.replace(found, size=len(good), lines=zlib.compress(good)))
    assert said(capfdbinary, "--json", "top") == good
