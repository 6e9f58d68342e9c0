"""The fuzzer itself: its damage is repeatable and of every kind, and it notices what no command may do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tools.fuzz import seeds, tally
from tools.fuzz.mutations import mutated
from tools.fuzz.parsers import PARSERS
from tools.fuzz.plain import made

ROOT = seeds.ROOT
INPUTS = 150
"""Of each parser; `make fuzz-parsers` makes thousands a second."""


@pytest.mark.parametrize("name", PARSERS)
def test_parsers_keep_their_word(name: str) -> None:
    parser, random = PARSERS[name], Random(f"{name} 1")
    starts = parser.starts()
    for start in starts[:40]:
        parser.run(start)
    for number in range(INPUTS):
        data = made(parser, random, starts)
        try:
            parser.run(data)
        except Exception as error:
            raise AssertionError(f"input {number}: {data!r}") from error


def test_the_same_seed_gives_the_same_damage() -> None:
    for seed in seeds.fixtures()[::6]:
        one, other = (mutated(seed.read(), Random(5), [b'{"a":1}\n{"b":2}']) for _ in range(2))
        assert one == other, seed.name


def test_every_capture_can_be_damaged() -> None:
    for seed in seeds.fixtures()[::3]:
        assert any(mutated(seed.read(), Random(number)) != seed.read() for number in range(6)), seed.name


ROWS = [
    {"id": f"r{number}", "parent": f"r{number - 1}", "time": "2026-01-01T00:00:00Z", "n": number}
    for number in range(6)
]


def _damaged_rows() -> list[tuple[bytes, list[Any]]]:
    """What many seeds make of six records: the bytes, and the lines that are still JSON."""
    data = b"".join(json.dumps(row).encode() + b"\n" for row in ROWS)
    found = []
    for number in range(1500):
        made_of = mutated(data, Random(number))
        values = []
        for line in made_of.split(b"\n"):
            try:
                values.append(json.loads(line))
            except ValueError:
                continue
        found.append((made_of, [value for value in values if isinstance(value, dict)]))
    return found


def test_damage_is_of_every_kind() -> None:
    """Records dropped, repeated and swapped; ids, parents, times, types and members changed; no UTF-8."""
    found = _damaged_rows()
    ids = [[row.get("id") for row in values] for _, values in found]
    whole = [row["id"] for row in ROWS]
    assert any(len(one) == 5 and set(one) < set(whole) for one in ids), "dropped"
    assert any(len(one) == 7 and set(one) == set(whole) for one in ids), "repeated"
    assert any(sorted(map(str, one)) == whole and one != whole for one in ids), "swapped"
    rows = [row for _, values in found for row in values]
    assert any(row.get("parent") == row.get("id") for row in rows), "its own parent"
    assert any(row.get("time") == "9999-12-31T23:59:60Z" for row in rows), "another time"
    assert {type(row.get("n")) for row in rows} >= {int, float, str, list, dict, bool, type(None)}
    assert any(row.get("n") == 10**400 for row in rows), "huge"
    assert any("parent" not in row for row in rows), "a member that is gone"
    assert any(line.count(b'"n":') == 2 for data, _ in found for line in data.split(b"\n")), "a member twice"
    assert any(not _is_utf8(data) for data, _ in found), "no UTF-8"


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


CHILD = """
import os, signal, sys, time
from pathlib import Path
from tools.fuzz import commands

def spins():
    while True:
        pass

def kills():
    os.kill(os.getpid(), signal.SIGSEGV)

def steers():
    print("a\\x1b[2J")
    return 0

def breaks():
    print("ctxctl: error: bug in ctxctl: KeyError at here.py:1", file=sys.stderr)
    return 70

def raises():
    print("Traceback (most recent call last):", "KeyError: 1", sep=os.linesep, file=sys.stderr)
    return 0

def fills():
    print("ctxctl: error: out of memory", file=sys.stderr)
    return 3

def is_sound():
    print("Traceback (most recent call last):", "a bug in ctxctl, as a capture quotes it", sep=os.linesep)
    return 1

kinds = {one.__name__: one for one in (spins, kills, steers, breaks, raises, fills, is_sound)}
kinds["hangs"] = lambda: time.sleep(30)
commands._run = lambda arguments: kinds[arguments[0]]()
commands.CPU = 1
for name in kinds:
    commands.PATIENCE = 1.0 if name == "hangs" else 60.0
    work = commands.Job((("is_sound",), (name,)), {"CTXCTL_CACHE": "off"})
    print(name, [(one.arguments, one.what) for one in commands.failures(work, Path(sys.argv[1]))])

commands.faults = lambda capture, trace, name: ["validate: late-event: line 3: of " + str(capture)]
work = commands.Job(((commands.LAW, "a", "b", "codex"),), {"CTXCTL_CACHE": "off"})
print("law", [one.what for one in commands.failures(work, Path(sys.argv[1]))])

sound = commands.Job((("is_sound",),), {"CTXCTL_CACHE": "off"})
ends = commands.Job((("is_sound",), ("kills",)), {"CTXCTL_CACHE": "off"})
once = set()
def only_behind_others():
    return 0 if not once else breaks()
kinds["sets"] = lambda: once.add(1) or 0
kinds["behind"] = only_behind_others
behind = [commands.Job(((name,),), {"CTXCTL_CACHE": "off"}) for name in ("sets", "behind", "is_sound")]
for name, works in (("many", [sound, ends, sound, ends, sound]), ("behind", behind)):
    found = commands.results(works, Path(sys.argv[1]))
    print(name, [[one.what[:16] + one.what[-11:] for one in each.failures] for each in found])
"""


@pytest.mark.slow
def test_what_no_command_may_do_is_noticed(tmp_path: Path) -> None:
    done = _python("-c", CHILD, str(tmp_path))
    told = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert told.pop("law") == "['law of codex: validate: late-event: line 3: of a']"
    assert eval(told.pop("many")) == [
        [],
        ["ended by SIGSEGVSIGSEGV at "],
        [],
        ["ended by SIGSEGVSIGSEGV at "],
        [],
    ]
    assert eval(told.pop("behind")) == [[], ["exit 70: ctxctl:ne process)"], []]
    assert told["is_sound"] == "[]"
    wrong = {name: eval(told[name]) for name in told if name != "is_sound"}
    assert all(len(found) == 1 and found[0][0] == (name,) for name, found in wrong.items()), wrong
    what = {name: found[0][1] for name, found in wrong.items()}
    assert what["spins"].startswith("more than 1 s of CPU")
    assert what["kills"].startswith("ended by SIGSEGV")
    assert what["hangs"].startswith("hangs")
    assert what["steers"] == "prints U+001B"
    assert what["breaks"].startswith("exit 70: ctxctl: error: bug in ctxctl: KeyError at here.py:1")
    assert what["raises"] == "exit 0: KeyError: 1"
    assert what["fills"] == "more than 1024 MB"


FAULTY = """
import sys
from pathlib import Path
from tools.fuzz import __main__ as fuzz, commands

fuzz.FOUND = Path(sys.argv.pop(1))
commands.COMMANDS = (("lint", "{}"),)
runs = commands._run
def broken(arguments):
    if b"\\n" in Path(arguments[1]).read_bytes():
        raise SystemError("a fault")
    return runs(arguments)
def told(arguments):
    try:
        return broken(arguments)
    except SystemError:
        print("ctxctl: error: bug in ctxctl: SystemError at here.py:1", file=sys.stderr)
        return 70
commands.warm = lambda trace: None
commands._run = told
sys.exit(fuzz.main())
"""


def test_a_finding_is_kept_once_and_can_be_run_again(tmp_path: Path) -> None:
    found = tmp_path / "found"
    done = _python("-c", FAULTY, str(found), "--inputs", "12", "--seed", "4", "--minutes", "2")
    assert done.returncode == 1, done.stderr
    assert "12 inputs, 12 commands" in done.stdout
    assert "commands: 12 inputs, 12 commands, " in done.stdout, "the sums of all runs"
    (kept,) = found.iterdir()
    run = json.loads((kept / "run.json").read_text())
    assert run["arguments"][:2] == ["lint", "{}"]
    assert (seeds.ROOT / run["capture"]).is_file()
    again = _python("-c", FAULTY, str(found), "--again", str(kept))
    assert again.returncode == 1
    assert "bug in ctxctl: SystemError" in again.stdout


def test_what_was_fuzzed_is_summed_over_runs(tmp_path: Path) -> None:
    file, now = tmp_path / "tally.json", iter(range(0, 1000, 6))
    for seconds in (0.5, 2.0, 1.0):
        run = tally.Tally("codec", file, lambda: float(next(now)))
        run.add(10, slowest=tally.Slowest(seconds, "one input"))
        run.failed("KeyError")
    other = tally.Tally(tally.COMMANDS, file, lambda: float(next(now)))
    other.add(1, 4, tally.Slowest(3.0, "lint {}"))
    assert tally.COMMANDS not in tally.read(file), "not yet: it was begun just now"
    other.add(1, 4)
    assert tally.read(file)[tally.COMMANDS]["inputs"] == 2
    tally.Tally("sse", file).save()
    assert [line.partition("; slowest ")[0] for line in tally.told(tally.read(file))] == [
        "commands: 2 inputs, 8 commands, 0 failures",
        "codec: 30 inputs, 3 failures; 3 times KeyError",
        "sse: 0 inputs, 0 failures",
        "parsers in sum: 30 inputs, 3 failures",
    ]
    assert "slowest 2.00 s" in tally.told(tally.read(file))[1]
    assert tally.told({}) == ["nothing was fuzzed here yet"]


def _python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True, timeout=120, check=False,
    )  # fmt: skip
