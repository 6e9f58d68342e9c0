"""What no file of this repository may hold: paths of a machine, registry hosts, CRs, conflict marks, bulk.

    hygiene.py [FILE…]      check these files, or every file that git tracks or would track

Prints one ``file:line: what`` each and exits 1 if there is any.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

LARGEST = 1_500_000
"""Bytes; what is bigger is generated, compressed or left out."""

AS_RECORDED = ("fixtures/damaged/",)
"""Files that are wrong on purpose: their bytes are theirs."""

MACHINE_PATH = re.compile(rb"(?:^|[^A-Za-z0-9_.~-])/(?:work|farm)/|/roo[t]/")
# Written in halves, so that this file passes its own check.
REGISTRY_HOST = re.compile(
    rb"|".join(
        re.escape(b".".join(halves))
        for halves in [
            (b"pypi", b"org"),
            (b"pythonhosted", b"org"),
            (b"npmjs", b"org"),
            (b"debian", b"org"),
            (b"golang", b"org"),
        ]
    )
)
BINARY = (".msgpack", ".eval", ".db", ".pb")
# Some agents write edits between rulers of the same form.
CONFLICT = re.compile(rb"^(?:<{7} (?!SEARCH)|>{7} (?!REPLACE))")
ADDRESS = re.compile(rb"://|--(?:extra-)?index-url|--find-links")


def listed() -> list[str]:
    """Names, relative to the root, of all files that are tracked or neither tracked nor ignored."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    out = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout
    return sorted({name for name in out.decode().split("\0") if name and (ROOT / name).is_file()})


def faults(name: str) -> Iterator[tuple[int, str]]:
    """Yield (line, what) for one file; line 0 is the file as a whole."""
    data = (ROOT / name).read_bytes()
    if len(data) > LARGEST:
        yield 0, f"{len(data)} bytes, more than {LARGEST}"
    if b"\0" in data or name.startswith(AS_RECORDED) or name.endswith(BINARY):
        return
    if data and not data.endswith(b"\n"):
        yield 0, "no newline at the end"
    lock = Path(name).name.startswith("requirements") or name.endswith(".lock")
    for number, line in enumerate(data.split(b"\n"), 1):
        if MACHINE_PATH.search(line):
            yield number, "a path of a machine"
        if REGISTRY_HOST.search(line):
            yield number, "the host of a package registry"
        if line.endswith(b"\r"):
            yield number, "CR at the end of the line"
        if CONFLICT.match(line):
            yield number, "a conflict mark"
        if lock and ADDRESS.search(line):
            yield number, "an address in a file of locked versions"


def main() -> int:
    """Check the files named on the command line, or all."""
    count = 0
    for name in sys.argv[1:] or listed():
        for line, what in faults(name):
            count += 1
            print(f"{name}:{line}: {what}")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
