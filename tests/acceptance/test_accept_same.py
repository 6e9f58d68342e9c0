"""The same trace gives the same bytes: run again, spelt otherwise, compressed, or from standard input."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.runs import ROOT, ctxctl
from tests.acceptance.tracing import compact, shuffled

TRACES = ("notes-assistant", "coding-agent", "retrieval-agent")
Events = list[Any]


def joined(lines: list[str], end: str = "\n") -> bytes:
    return "".join(line + end for line in lines).encode()


SPELLINGS: dict[str, Callable[[Events], bytes]] = {
    "compact": lambda events: b"".join(compact(event) + b"\n" for event in events),
    "spaced": lambda events: joined(
        [json.dumps(e, ensure_ascii=False, separators=("  ,\t", " :  ")) + "  " for e in events]
    ),
    "shuffled": lambda events: joined(
        [json.dumps(shuffled(e, random.Random(n)), ensure_ascii=False) for n, e in enumerate(events)]
    ),
    "CRLF": lambda events: joined([json.dumps(e, ensure_ascii=False) for e in events], "\r\n"),
    "escaped": lambda events: joined([json.dumps(e, ensure_ascii=True) for e in events]),
    "all escaped": lambda events: joined([escaped(json.dumps(e, ensure_ascii=False)) for e in events]),
    "gzip": lambda events: gzip.compress(b"".join(compact(e) + b"\n" for e in events)),
    "gzip members": lambda events: b"".join(gzip.compress(compact(e) + b"\n", 1) for e in events),
    "blank lines, no last line end": lambda events: b"\n\n".join(compact(e) for e in events),
}


def escaped(text: str) -> str:
    """JSON in which every letter inside a string that may be written as an escape is, where it is easy."""
    return text.replace("/", "\\/").replace("e-", "\\u0065-").replace("é", "\\u00E9")


@cache
def events(name: str) -> Events:
    lines = (ROOT / "traces" / f"{name}.jsonl").read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines if line.strip()]


@cache
def report(name: str, *options: str) -> bytes:
    """What the trace as it is in the repository gives."""
    done = ctxctl("replay", *options, ROOT / "traces" / f"{name}.jsonl")
    assert done.code == 0
    assert done.err == ""
    return done.stdout


@pytest.mark.parametrize("name", TRACES)
def test_two_runs_give_the_same_bytes(name: str) -> None:
    path = ROOT / "traces" / f"{name}.jsonl"
    for option in ("--json", "--plain"):
        # The second run finds counts and an index of the first, and hashes strings by another seed.
        again = ctxctl("replay", option, path, env={"PYTHONHASHSEED": "7"})
        assert again.stdout == report(name, option)
    if name != TRACES[0]:
        return
    fresh = ctxctl(
        "replay", "--json", path, env={"CTXCTL_CACHE": "off", "PYTHONHASHSEED": "8", "TZ": "Asia/Tokyo"}
    )
    assert fresh.stdout == report(name, "--json")


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("name", TRACES)
def test_spellings_give_the_same_report(name: str, spelling: str, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.jsonl"
    path.write_bytes(SPELLINGS[spelling](events(name)))
    # A line of --json holds all that the plain report is made of, and more; that one is held to a few.
    assert ctxctl("replay", "--json", path).stdout == report(name, "--json")
    if name == TRACES[0]:
        assert ctxctl("replay", "--plain", path).stdout == report(name, "--plain")


@pytest.mark.parametrize("spelling", ["shuffled", "all escaped", "gzip members"])
def test_other_commands_do_not_see_the_spelling_either(spelling: str, tmp_path: Path) -> None:
    name = "retrieval-agent"
    one, other = ROOT / "traces" / f"{name}.jsonl", tmp_path / f"{name}.jsonl"
    other.write_bytes(SPELLINGS[spelling](events(name)))
    for arguments in (
        ("show", "{}@-1", "--text"),
        ("show", "{}@2", "--json"),
        ("diff", "{}@1", "@-1", "--json"),
    ):
        first, second = (ctxctl(*(a.format(path) for a in arguments)) for path in (one, other))
        assert first.code == 0, first.err
        assert second.stdout == first.stdout


@pytest.mark.parametrize("name", TRACES)
def test_standard_input_gives_the_same_report(name: str) -> None:
    done = ctxctl("replay", "--json", "-", data=SPELLINGS["gzip"](events(name)))
    assert done.stdout == report(name, "--json").replace(f'"{name}.jsonl"'.encode(), b'"-"', 1)


@pytest.mark.parametrize("name", TRACES)
def test_the_traces_are_sound(name: str) -> None:
    done = ctxctl("validate", ROOT / "traces" / f"{name}.jsonl")
    assert done.code == 0, done.out
