"""Kept lines of what was printed: the same bytes, and never those of another question, state or hand."""

from __future__ import annotations

import os
import random
import shutil
import zlib
from pathlib import Path

import msgspec
import pytest
import xxhash
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxctl.analysis.costs import Costs
from ctxctl.cli.main import run
from ctxctl.report import jsonout
from ctxctl.session import Inspector, grown_replay, import_cache, import_mark, kept_lines, kept_replays
from ctxctl.trace import inputs
from tests.unit.session.test_kept import FAULTS

ROOT = Path(__file__).parents[3]
CAPTURE = ROOT / "fixtures" / "claude_code" / "compaction.jsonl"


@pytest.fixture(autouse=True)
def _everything_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """However small, and however young; and in several blocks."""
    monkeypatch.setattr(import_cache, "LEAST", 0)
    monkeypatch.setattr(kept_replays, "LEAST", 0)
    monkeypatch.setattr(kept_lines, "_BLOCK_BYTES", 2000)
    monkeypatch.setattr(inputs, "YOUNG", -1e9)


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    return Path(shutil.copy(CAPTURE, tmp_path / "one.jsonl"))


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was worked out, and not read."""
    found: list[str] = []
    step, spent = jsonout.step, Costs.spent

    def rendered(*args: object, **kwargs: object) -> object:
        if not found or found[-1] != "replay":
            found.append("replay")
        return step(*args, **kwargs)  # type: ignore[arg-type]

    def summed(self: Costs) -> object:
        found.append("cost")
        return spent(self)

    monkeypatch.setattr(jsonout, "step", rendered)
    monkeypatch.setattr(Costs, "spent", summed)
    return found


def printed(capfdbinary: pytest.CaptureFixture[bytes], *words: str | Path) -> bytes:
    assert run([str(word) for word in words]) == 0
    out, err = capfdbinary.readouterr()
    assert not err
    return out


def line_files() -> list[Path]:
    return sorted(Path(os.environ["CTXCTL_CACHE_DIR"]).rglob("*.lines-*"))


def without_cache(capfdbinary: pytest.CaptureFixture[bytes], *words: str | Path) -> bytes:
    os.environ["CTXCTL_CACHE"] = "off"
    try:
        return printed(capfdbinary, *words)
    finally:
        del os.environ["CTXCTL_CACHE"]


@pytest.mark.parametrize("command", ["replay", "cost"])
def test_the_second_output_is_the_first(
    command: str, capture: Path, made: list[str], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    expected = without_cache(capfdbinary, command, "--json", capture)
    made.clear()
    assert printed(capfdbinary, command, "--json", capture) == expected
    assert (made, len(line_files())) == ([command], 1)
    assert printed(capfdbinary, command, "--json", capture) == expected
    assert made == [command]
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in line_files())


@pytest.mark.parametrize(
    "more",
    [
        ("replay", "--policy", "fifo"), ("replay", "--model", "gpt-4o"), ("replay", "--window", "2000"),
        ("replay", "--all"), ("replay", "--thread", "main"), ("replay", "--turn", "1"),
        ("cost", "--by", "item"), ("cost", "--as-of", "2026-01-01"), ("cost", "--provider", "openrouter"),
        ("cost", "--turn", "1"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_another_question_has_its_own_output(
    more: tuple[str, ...], capture: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    command, *options = more
    plain = printed(capfdbinary, command, "--json", capture)
    expected = without_cache(capfdbinary, command, "--json", *options, capture)
    for _ in range(3):
        assert printed(capfdbinary, command, "--json", *options, capture) == expected
    assert printed(capfdbinary, command, "--json", capture) == plain


def test_a_log_that_has_grown_is_printed_whole_and_kept_when_it_is_asked_again(
    capture: Path, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (grown_replay, import_mark):
        monkeypatch.setattr(module, "MOST", 1.0)
        monkeypatch.setattr(module, "AGAIN", 0.0)
    lines = capture.read_bytes().splitlines(keepends=True)
    capture.write_bytes(b"".join(lines[:-6]))
    printed(capfdbinary, "replay", "--json", capture)
    assert len(line_files()) == 1
    with capture.open("ab") as file:
        file.write(b"".join(lines[-6:]))
    expected = without_cache(capfdbinary, "replay", "--json", capture)
    assert printed(capfdbinary, "replay", "--json", capture) == expected
    assert not line_files()
    for _ in range(2):
        assert printed(capfdbinary, "replay", "--json", capture) == expected
        assert len(line_files()) == 1


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    seed=st.integers(0, 1 << 30),
    faults=st.lists(st.sampled_from(FAULTS), min_size=1, max_size=2),
    command=st.sampled_from(["replay", "cost"]),
)
def test_whatever_is_damaged_the_output_is_the_same(
    tmp_path_factory: pytest.TempPathFactory, capfdbinary: pytest.CaptureFixture[bytes],
    seed: int, faults: list[object], command: str,
) -> None:  # fmt: skip
    folder, rng = tmp_path_factory.mktemp("one"), random.Random(seed)
    path = Path(shutil.copy(CAPTURE, folder / "one.jsonl"))
    before = os.environ["CTXCTL_CACHE_DIR"]
    os.environ["CTXCTL_CACHE_DIR"] = str(folder / "cache")
    try:
        expected = printed(capfdbinary, command, "--json", path)
        for fault in faults:
            kept = line_files()
            assert kept
            fault(kept[0], rng)  # type: ignore[operator]
            for _ in range(2):
                assert printed(capfdbinary, command, "--json", path) == expected
    finally:
        os.environ["CTXCTL_CACHE_DIR"] = before


def forged(path: Path, old: bytes, new: bytes) -> None:
    """Change what a file says, with all its checksums right."""
    data = path.read_bytes()
    length = int.from_bytes(data[-8:], "little")
    index = msgspec.msgpack.decode(data[-24 - length : -24])
    blocks, at, body = [], 0, b""
    for number, (size, _, count) in enumerate(index["blocks"]):
        lines = zlib.decompress(data[at + 8 : at + size]).replace(old, new)
        packed = zlib.compress(lines)
        body += xxhash.xxh3_64_digest(packed, number) + packed
        blocks.append((8 + len(packed), len(lines), count))
        at += size
    index["blocks"] = blocks
    told = msgspec.msgpack.encode(index)
    path.write_bytes(body + told + xxhash.xxh3_128_digest(told) + len(told).to_bytes(8, "little"))


def test_a_forged_file_says_nothing_to_a_terminal(
    capture: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    expected = printed(capfdbinary, "replay", "--json", capture)
    forgeries = [
        (b"user_message", b"user_\x1b[2Jssage"), (b"user_message", "user_\u202emessage".encode()),
        (b"user_message", b"user_\xffessage"), (b'"type"', b"##[error]"), (b'{"type":"turn"', b"::error::"),
        (b"user_message", b"user\x7f"), (b"user_message", b"user\r"),
    ]  # fmt: skip
    for old, new in forgeries:
        (path,) = line_files()
        forged(path, old, new)
        assert new in b"".join(unpacked(path))
        assert printed(capfdbinary, "replay", "--json", capture) == expected, new
    (path,) = line_files()
    forged(path, b"user_message", b"user_massage")  # a control: what is taken if all is well-formed
    assert printed(capfdbinary, "replay", "--json", capture) != expected


def unpacked(path: Path) -> list[bytes]:
    data, at, found = path.read_bytes(), 0, []
    length = int.from_bytes(data[-8:], "little")
    for size, _, _ in msgspec.msgpack.decode(data[-24 - length : -24])["blocks"]:
        found.append(zlib.decompress(data[at + 8 : at + size]))
        at += size
    return found


def test_a_bomb_is_not_unpacked(capture: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    expected = printed(capfdbinary, "replay", "--json", capture)
    (path,) = line_files()
    forged(path, b'{"type":"turn"', b'{"type":"turn"' + b" " * 1000)
    data = path.read_bytes()
    length = int.from_bytes(data[-8:], "little")
    index = msgspec.msgpack.decode(data[-24 - length : -24])
    index["blocks"] = [(size, 100, count) for size, _, count in index["blocks"]]
    told = msgspec.msgpack.encode(index)
    whole = data[: -24 - length] + told + xxhash.xxh3_128_digest(told) + len(told).to_bytes(8, "little")
    path.write_bytes(whole)
    assert printed(capfdbinary, "replay", "--json", capture) == expected


def test_who_does_not_read_to_the_end_keeps_nothing(capture: Path) -> None:
    with Inspector.open(capture) as inspector:
        inspector.read_whole()
        key = inspector.kept_replays.key(inspector.params, inspector.strategy, inspector.edits)
        assert key is not None
        lines = kept_lines.PrintedLines(
            inspector, key, "some", lambda: iter([b"{}\n", b"{}\n"]), lambda: 0, int, settle=True
        )
        assert next(iter(lines)) == b"{}\n"
        del lines
    assert not line_files()
    assert not list(Path(os.environ["CTXCTL_CACHE_DIR"]).rglob(".steps-*"))
