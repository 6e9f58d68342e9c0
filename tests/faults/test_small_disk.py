"""A disk that is really full, and one that is really read only: a small file system in memory."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CAPTURE = ROOT / "fixtures" / "claude_code" / "compaction.jsonl"
OLD = b"what was there before\n" * 100


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    place = tmp_path / "disk"
    place.mkdir()
    if sys.platform != "linux" or shutil.which("mount") is None:
        pytest.skip("needs Linux's file system in memory")
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip("may not mount a file system here")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def fill(path: Path) -> None:
    with contextlib.suppress(OSError), path.open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass


@pytest.mark.parametrize("command", ["import", "export"])
@pytest.mark.parametrize("kind", ["full", "read only"])
def test_what_was_there_is_there_still(command: str, kind: str, disk: Path) -> None:
    there = disk / "out.jsonl"
    there.write_bytes(OLD)
    if kind == "full":
        fill(disk / "rest")
    else:
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    before = sorted(disk.iterdir())
    done = subprocess.run(
        [sys.executable, "-m", "ctxctl", command, str(CAPTURE), "-o", str(there), "--force"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    why = "No space left on device" if kind == "full" else "Read-only file system"
    assert (done.returncode, done.stderr) == (3, f"ctxctl: error: cannot write {there}: {why}\n")
    assert there.read_bytes() == OLD
    assert sorted(disk.iterdir()) == before
