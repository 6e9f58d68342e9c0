"""Input that cannot be read at all: one line that says why, nothing on stdout, exit code 3 (or 4)."""

from __future__ import annotations

import gzip
import json
import os
import socket
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.runs import assert_error, ctxctl, shell
from tests.acceptance.tracing import SOUND, sound

UNREADABLE = 3
UNAVAILABLE = 4

FILES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "empty"),
    "blank": (b"\n \n\r\n", ""),
    "all NUL": (bytes(5000), "all NUL bytes"),
    "lines of NUL": ((bytes(99) + b"\n") * 3 + bytes(99), "all NUL bytes"),
    "binary": (bytes(range(256)) * 40, "binary"),
    "words": (b"this is no trace\nat all\n", "JSON"),
    "foreign JSON lines": (b'{"level":"info","msg":"started"}\n{"level":"info"}\n', "JSON"),
    "foreign JSON": (b'{"name":"x","version":"1.0.0"}', "JSON"),
    "JSON array": (json.dumps(sound()).encode(), "array"),
    "pretty-printed JSON": (json.dumps(sound()[0], indent=2).encode(), "pretty"),
    "UTF-16": (SOUND.decode().encode("utf-16"), "iconv -f UTF-16 -t"),
    "UTF-16 without a mark": (SOUND.decode().encode("utf-16-be"), "iconv -f UTF-16BE -t"),
    "UTF-16, little end first": (SOUND.decode().encode("utf-16-le"), "iconv -f UTF-16LE -t"),
    "UTF-32": (SOUND.decode().encode("utf-32"), "iconv -f UTF-32 -t"),
    "UTF-32, big end first": (b"\0\0\xfe\xff" + SOUND.decode().encode("utf-32-be"), "iconv -f UTF-32 -t"),
    "UTF-32 without a mark": (SOUND.decode().encode("utf-32-be"), "iconv -f UTF-32BE -t"),
    "UTF-32 without a mark, little end first": (SOUND.decode().encode("utf-32-le"), "iconv -f UTF-32LE -t"),
    "gzip of nothing": (gzip.compress(b""), "empty"),
    "gzip cut in its head": (gzip.compress(SOUND)[:12], "gzip"),
    "gzip of noise": (b"\x1f\x8b\x08\x00" + bytes(range(200)), "gzip"),
    "gzip in gzip": (gzip.compress(gzip.compress(SOUND)), "gzip"),
    "zip": (b"PK\x03\x04" + bytes(60), "zip"),
    "SQLite": (b"SQLite format 3\0" + bytes(4000), "SQLite"),
    "HTML": (b"<!doctype html>\n<html></html>\n", ""),
    "a line of brackets": (b"[" * 200_000, ""),
    "a truncated first line": (SOUND[:100], ""),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_without_a_readable_event(name: str, tmp_path: Path) -> None:
    data, says = FILES[name]
    path = tmp_path / "run.jsonl"
    path.write_bytes(data)
    done = ctxctl("replay", "--plain", path)
    assert_error(done, UNREADABLE, "run.jsonl", says)


COMMANDS = (
    "replay --json FILE",
    "replay --strict FILE",
    "show FILE@1",
    "show FILE@1 --json",
    "diff FILE@1 @2",
    "log FILE alpha",
    "validate FILE",
    "import FILE",
)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("data", [b"no trace\n", None])
def test_every_command_says_so(command: str, data: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    if data is not None:
        path.write_bytes(data)
    done = ctxctl(*(word.replace("FILE", str(path)) for word in command.split()))
    assert_error(done, UNREADABLE, "run.jsonl")


def test_a_file_of_many_bad_lines_is_one_line_too(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(b"junk\n" * 20_000)
    assert_error(ctxctl("replay", path), UNREADABLE, "run.jsonl")


@pytest.fixture
def odd(tmp_path: Path) -> Iterator[dict[str, Path]]:
    """Things with a name that are not files with a trace."""
    found = {
        "missing": tmp_path / "missing.jsonl",
        "below a file": tmp_path / "file" / "run.jsonl",
        "directory": tmp_path / "folder",
        "pipe": tmp_path / "pipe",
        "socket": tmp_path / "s",
        "loop": tmp_path / "loop",
        "dangling": tmp_path / "dangling",
        "long name": tmp_path / ("n" * 300),
        "zeros": Path("/dev/zero"),
        "nothing": Path("/dev/null"),
        "odd name": tmp_path / "a\n\x1b]2;owned\x07\u202eb.jsonl",
    }
    (tmp_path / "file").write_bytes(b"x")
    found["directory"].mkdir()
    os.mkfifo(found["pipe"])
    found["loop"].symlink_to(found["loop"])
    found["dangling"].symlink_to(found["missing"])
    with socket.socket(socket.AF_UNIX) as listening:
        here = Path.cwd()
        os.chdir(tmp_path)  # the path of a socket may have 107 bytes only
        try:
            listening.bind("s")
        finally:
            os.chdir(here)
        yield found


ODD = {
    "missing": "no such file",
    "below a file": "no such file",
    "directory": "directory",
    "pipe": "pipe",
    "socket": "",
    "loop": "",
    "dangling": "no such file",
    "long name": "",
    "zeros": "device",
    "nothing": "device",
    "odd name": "no such file",
}


@pytest.mark.parametrize("name", ODD)
def test_what_is_no_file(name: str, odd: dict[str, Path]) -> None:
    assert_error(ctxctl("replay", odd[name]), UNREADABLE, ODD[name])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(SOUND)
    path.chmod(0)
    assert_error(ctxctl("replay", path), UNREADABLE, "run.jsonl", "permission")


def test_a_file_whose_name_holds_control_characters_is_shown_harmlessly(tmp_path: Path) -> None:
    path = tmp_path / "a\n\x1b]2;owned\x07b@3.jsonl"
    path.write_bytes(SOUND + b"junk\n")
    done = ctxctl("replay", "--steps", "--ids", path)
    assert done.code == 0
    assert len(done.err.splitlines()) == 1
    assert "gamma" in done.out


def test_no_name_at_all() -> None:
    done = ctxctl("replay", "")
    assert done.code in (2, UNREADABLE)
    assert done.stdout == b""
    assert done.err.startswith("ctxctl: error: ")


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("ctxctl replay - </dev/null", "empty"),
        ("ctxctl replay - <&-", "stdin"),
        ("printf 'junk\\n' | ctxctl replay -", "stdin"),
    ],
)
def test_standard_input_that_holds_no_trace(script: str, says: str) -> None:
    assert_error(shell(script), UNREADABLE, says)


def test_a_gzip_bomb(tmp_path: Path) -> None:
    member = gzip.compress(bytes(16 << 20), mtime=0)
    path = tmp_path / "run.jsonl.gz"
    path.write_bytes(member * 64)
    assert_error(
        ctxctl("replay", path, memory=1 << 30), UNREADABLE, "run.jsonl.gz", "decompresses to more than"
    )


@pytest.mark.slow
def test_a_gzip_bomb_on_standard_input() -> None:
    """Whatever becomes of it (it is not looked into, or it is too large), it costs little and is an error."""
    packer = zlib.compressobj(wbits=31)
    data = b"".join((*(packer.compress(bytes(16 << 20)) for _ in range(20)), packer.flush()))
    assert_error(ctxctl("replay", "-", data=data, memory=1 << 30), UNREADABLE)


def test_zstd_without_its_package_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "zstandard.py").write_text("raise ImportError\n", encoding="utf-8")
    path = tmp_path / "run.jsonl.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd" + bytes(50))
    before = f"{tmp_path}{os.pathsep}{Path(__file__).resolve().parents[2]}"
    done = ctxctl("replay", path, env={"PYTHONPATH": before})
    assert_error(done, UNAVAILABLE, "zstd", "ctxctl[zstd]")


@pytest.mark.slow
def test_zstd_damaged_or_a_bomb(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard")
    path = tmp_path / "run.jsonl.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd" + bytes(range(50)))
    assert_error(ctxctl("replay", path), UNREADABLE, "run.jsonl.zst", "zstd")
    packed = zstandard.ZstdCompressor().compress(bytes(64 << 20))
    path.write_bytes(packed * 16)
    assert_error(ctxctl("replay", path, memory=1 << 30), UNREADABLE, "run.jsonl.zst")
