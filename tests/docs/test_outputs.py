"""Runs every `console` block of the README and the tutorial and compares what it prints.

In such a block a line that starts with ``$ `` is a command and what follows is its output, stdout and stderr,
through a pipe and 80 columns wide.  A line ``...`` stands for any number of lines.  With
CTXCTL_UPDATE_GOLDENS=1 the outputs in the pages are replaced; a ``...`` keeps the lines around it that still
occur.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.acceptance import forking

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "docs/questions.md", "docs/tutorial.md", "docs/why.md", "docs/check.md")
UPDATE = os.environ.get("CTXCTL_UPDATE_GOLDENS") == "1"
ELISION = "..."
QUIET = " 2>/dev/null"
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Command(NamedTuple):
    """One command of a page and the output that the page shows."""

    text: str
    shown: list[str]


def commands(block: str) -> Iterator[Command]:
    """The commands of a block."""
    command: Command | None = None
    for line in block.splitlines():
        if line.startswith("$ "):
            if command is not None:
                yield command
            command = Command(line[2:], [])
        else:
            assert command is not None, f"output before a command: {line!r}"
            command.shown.append(line)
    if command is not None:
        yield command


@pytest.fixture
def workplace(tmp_path: Path) -> Path:
    """A directory that looks like a clone with `ctxctl` on the path, and may be written to."""
    (tmp_path / "work").mkdir()
    for name in ("traces", "docs", "fixtures"):
        (tmp_path / "work" / name).symlink_to(ROOT / name)
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "ctxctl"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ctxctl "$@"\n')
    program.chmod(0o755)
    return tmp_path


def run(command: str, place: Path) -> list[str]:
    """Output of a command in the workplace."""
    env = {
        **{k: v for k, v in os.environ.items() if not k.startswith("CTXCTL_")},
        "PATH": f"{place / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "CTXCTL_CACHE_DIR": str(place / "cache"),
        "COLUMNS": "80",
        "LC_ALL": "C.UTF-8",
    }
    asked, _, filters = command.partition(" | ")
    quiet = asked.endswith(QUIET)
    asked = asked.removesuffix(QUIET)
    if forking.HERE and asked.startswith("ctxctl ") and not set(asked) & set("|<>;&$"):
        # The shell has no part in it but the filters, and a fork starts in a fraction of the time.
        with (
            open(os.devnull, "r+b") as nothing,
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
        ):
            two = [out, nothing if quiet else err if filters else out]
            forking.forks().run(shlex.split(asked)[1:], env, place / "work", [nothing, *two], 60)
            out.seek(0)
            err.seek(0)
            said = err.read()
            if filters:
                said += subprocess.run(
                    ["sh", "-c", filters], cwd=place / "work", env=env, stdin=out, stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT, timeout=60, check=False,
                ).stdout  # fmt: skip
            else:
                said += out.read()
            return [line.rstrip() for line in said.decode().splitlines()]
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=place / "work",
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=60,
        check=False,
    )
    return [line.rstrip() for line in done.stdout.decode().splitlines()]


def matches(shown: list[str], printed: list[str]) -> bool:
    """Whether a page's lines are those printed, an elision standing for any number of them."""
    pattern = "".join(".*" if line == ELISION else re.escape(line.rstrip() + "\n") for line in shown)
    return re.fullmatch(pattern, "".join(line + "\n" for line in printed), re.DOTALL) is not None


def renewed(shown: list[str], printed: list[str]) -> list[str]:
    """A page's lines after an update: the output, without what stood behind each elision.

    Lines between two elisions are those of the output that are like them; what is nowhere any more goes.
    """
    if ELISION not in shown:
        return printed
    if matches(shown, printed):
        return shown
    head, *middle, tail = _parts(shown)
    last = len(printed) - len(tail)
    lines, at = printed[: len(head)], len(head)
    for part in middle:
        places = range(at, last - len(part) + 1)
        place = max(places, key=lambda n: _alike(part, printed[n:]), default=None)
        if place is not None and _alike(part, printed[place:]):
            lines += [ELISION, *printed[place : place + len(part)]]
            at = place + len(part)
    return [*lines, ELISION, *printed[max(at, last) :]]


def _parts(shown: list[str]) -> list[list[str]]:
    """The lines before, between and behind the elisions."""
    parts: list[list[str]] = [[]]
    for line in shown:
        if line == ELISION:
            parts.append([])
        else:
            parts[-1].append(line)
    return parts


def _alike(part: list[str], printed: list[str]) -> int:
    """In how many lines the two begin alike."""
    return sum(a == b for a, b in zip(part, printed, strict=False))


@pytest.mark.parametrize("page", PAGES)
def test_page_is_followed_literally(page: str, workplace: Path) -> None:
    path = ROOT / page
    text = path.read_text(encoding="utf-8")
    blocks: list[str] = []
    wrong: list[str] = []
    for block in _BLOCK.findall(text):
        lines: list[str] = []
        for command in commands(block):
            printed = run(command.text, workplace)
            if not UPDATE and not matches(command.shown, printed):
                wrong.append(f"$ {command.text}\n" + "\n".join(printed))
            lines += [f"$ {command.text}", *renewed(command.shown, printed)]
        blocks.append("".join(line + "\n" for line in lines))
    assert blocks, f"{page} has no console block"
    if UPDATE:
        fresh = iter(blocks)
        path.write_text(_BLOCK.sub(lambda _: f"```console\n{next(fresh)}```", text), encoding="utf-8")
    assert not wrong, "\n\n".join(wrong)


def test_elisions() -> None:
    assert matches(["a", "...", "d"], ["a", "b", "c", "d"])
    assert not matches(["a", "...", "d"], ["a", "b", "c"])
    assert renewed(["a", "...", "d"], ["1", "2", "3", "4"]) == ["1", "...", "4"]


def test_an_update_leaves_what_is_still_so() -> None:
    shown = ["...", "b", "...", "d", "e"]
    assert renewed(shown, ["a", "b", "c", "d", "e"]) == shown
    assert renewed(shown, ["a", "b", "c", "d", "f"]) == ["...", "b", "...", "d", "f"]
    printed = ["a", "b", "c", "d", "f"]
    assert renewed(["a", "...", "c", "x", "...", "e"], printed) == ["a", "...", "c", "d", "...", "f"]
    assert renewed(["a", "...", "x", "...", "e"], printed) == ["a", "...", "f"]
