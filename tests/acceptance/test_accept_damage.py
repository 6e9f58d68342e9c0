"""Damaged lines: each is told by line and byte, and everything else is shown."""

from __future__ import annotations

import gzip
import json
import string
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.acceptance.runs import Done, Json, Place, assert_error, ctxctl
from tests.acceptance.tracing import (
    AFTER,
    BEFORE,
    BETA,
    ITEMS,
    LINES,
    SOUND,
    TEXTS,
    TOKENS,
    at,
    compact,
    in_beta,
    sound,
    with_beta,
)

START = len(BEFORE)
"""Byte at which the fourth line, BETA's, begins."""
TEXT = TEXTS["beta"].encode()
COUNT = b'"token_estimate":6'
DEEP = b"[" * 2000 + b"]" * 2000


@dataclass(frozen=True)
class Damage:
    """A damaged trace and what has to be said of it."""

    data: bytes
    line: int
    byte: int
    """Where the fault is; the start of its line is as good where it is inside one."""
    lost: tuple[str, ...] = ()
    """Items whose record is gone; the assemblies still name them."""
    either: bool = False
    """Whether the record may be repaired or lost."""

    @property
    def begin(self) -> int:
        """Byte at which the damaged line begins."""
        return sum(len(line) + 1 for line in self.data.split(b"\n")[: self.line - 1])


def changed(**fields: object) -> bytes:
    """BETA's line with fields of its item changed."""
    value = sound()[3]
    value["data"].update(fields)
    return compact(value) + b"\n"


LOST = ("beta",)
CASES = {
    "truncated last line": Damage(SOUND[:-25], 9, len(SOUND) - len(LINES[-1])),
    "truncated inside a character": Damage(SOUND[:-1] + b"\n" + BETA[:60] + "é".encode()[:1], 10, len(SOUND)),
    "invalid UTF-8 in a text": Damage(in_beta(TEXT, b"caf\xe9 \xff\xfe"), 4, at(TEXT) + 3),
    "invalid UTF-8 in the head": Damage(
        in_beta(b'"acceptance"', b'"accept\xffance"'), 4, at(b'"acceptance"') + 7
    ),
    "UTF-8 of a surrogate": Damage(in_beta(TEXT, b"x\xed\xa0\x80y"), 4, at(TEXT) + 1),
    "NUL in a text": Damage(in_beta(TEXT, b"The\0second"), 4, at(TEXT) + 3),
    "NULs in front of a line": Damage(with_beta(bytes(5000) + BETA), 4, START),
    "a line of NULs": Damage(BEFORE + bytes(5000) + b"\n" + BETA + AFTER, 4, START),
    "byte order mark": Damage(b"\xef\xbb\xbf" + SOUND, 1, 0),
    "content 2000 deep": Damage(in_beta(b'"%b"' % TEXT, DEEP), 4, at(b'"%b"' % TEXT)),
    "unknown field 2000 deep": Damage(
        in_beta(b'"turn_id"', b'"x":%b,"turn_id"' % DEEP), 4, at(b'"turn_id"') + 4
    ),
    "metadata 2000 deep": Damage(in_beta(COUNT, b'"metadata":{"x":%b}' % DEEP), 4, at(COUNT) + 16),
    "a line of brackets": Damage(BEFORE + b"[" * 100_000 + b"\n" + BETA + AFTER, 4, START),
    "lone surrogate": Damage(in_beta(TEXT, rb"half \ud83d of it"), 4, at(TEXT) + 5),
    "lone low surrogate": Damage(in_beta(TEXT, rb"\udcffx"), 4, at(TEXT)),
    "invalid escape": Damage(in_beta(TEXT, rb"C:\user\beta"), 4, at(TEXT) + 2),
    "2^64 tokens": Damage(in_beta(COUNT, b'"token_estimate":18446744073709551616'), 4, at(COUNT)),
    "2^63 tokens": Damage(in_beta(COUNT, b'"token_estimate":9223372036854775808'), 4, at(COUNT)),
    "negative tokens": Damage(in_beta(COUNT, b'"token_estimate":-6'), 4, at(COUNT)),
    "1e400 tokens": Damage(in_beta(COUNT, b'"token_estimate":1e400'), 4, at(COUNT)),
    "half a token": Damage(in_beta(COUNT, b'"token_estimate":6.5'), 4, at(COUNT)),
    "NaN tokens": Damage(in_beta(COUNT, b'"token_estimate":NaN'), 4, at(COUNT) + 17),
    "a number of a million digits": Damage(
        in_beta(COUNT, COUNT + b"7" * 1_000_000), 4, at(b'"data"'), either=True
    ),
    "tokens in words": Damage(in_beta(COUNT, b'"token_estimate":"six"'), 4, at(COUNT)),
    "duplicate event id": Damage(in_beta(b'"e4"', b'"e1"'), 4, START, LOST),
    "foreign line": Damage(BEFORE + b'{"type":"user","uuid":"1"}\n' + BETA + AFTER, 4, START),
    "a line that is an array": Damage(BEFORE + b"[" + BETA[:-1] + b"]\n" + BETA + AFTER, 4, START),
    "a line of words": Damage(BEFORE + b"warning: retrying\n" + BETA + AFTER, 4, START),
    "a line of binary": Damage(BEFORE + bytes(range(11, 256)) + b"\n" + BETA + AFTER, 4, START),
    "a torn line": Damage(with_beta(BETA[:90] + b"\n"), 4, START, LOST),
    "two lines in one": Damage(with_beta(BETA[:-1]).replace(b"\n\n", b"\n"), 4, START + len(BETA) - 1),
    "newer format": Damage(with_beta(BETA.replace(b'"0.1.1"', b'"99.0"', 1)), 4, START + 1, LOST),
    "data of another type": Damage(
        with_beta(compact({**sound()[3], "data": [1, 2]}) + b"\n"), 4, at(b'"data"'), LOST
    ),
    "an item without an id": Damage(in_beta(b'"item_id":"beta",', b""), 4, START, LOST),
    "an id of another type": Damage(
        in_beta(b'"item_id":"beta"', b'"item_id":["beta"]'), 4, at(b'"item_id"'), LOST
    ),
    "a type that is none": Damage(in_beta(b'"context.item.added"', b"17"), 4, START, LOST),
    "pretty-printed event": Damage(
        with_beta(json.dumps(sound()[3], indent=1).encode() + b"\n"), 4, START, LOST
    ),
}


def told_of(places: list[Place], case: Damage) -> bool:
    """Whether one of the problems is the case's: its line, and the byte of the fault or of the line."""
    return any(p.line == case.line and p.byte in (case.byte, case.begin) for p in places)


def placed(done: Done, session: str = "s") -> dict[str, Json]:
    """The first change of each item over all steps of a session."""
    found: dict[str, Json] = {}
    for step in done.of_type("step"):
        for change in step["changes"] if step["session"] == session else ():
            found.setdefault(change["item"], change)
    return found


NAMES = dict(zip(CASES, string.ascii_letters + string.digits, strict=False))
"""A session for each case, one character long so that no byte moves."""
ALONE = ("byte order mark", "truncated last line", "truncated inside a character")
"""Cases that depend on where the file begins or ends."""


@dataclass(frozen=True)
class Run:
    """What was said of one case in a run on many."""

    json: Done
    plain: Done
    session: str
    reported: list[Place]
    """With lines and bytes as if the case had the file for itself."""
    told: list[Place]


def runs_of(cases: dict[str, Damage], path: Path) -> dict[str, Run]:
    """Each case as a session of its own in one trace, which is replayed twice."""
    assert len(NAMES) == len(CASES)
    parts = [
        case.data.replace(b'"session_id":"s"', b'"session_id":"%b"' % NAMES[name].encode())
        for name, case in cases.items()
    ]
    path.write_bytes(b"".join(parts))
    strict = ctxctl("replay", "--json", "--strict", path)
    plain = ctxctl("replay", "--plain", "--all", path)
    found = {}
    line = byte = 0
    for name, part in zip(cases, parts, strict=True):
        last = line + part.count(b"\n") + (not part.endswith(b"\n"))
        here: list[list[Place]] = [
            [Place(p.line - line, p.byte - byte, p.slug) for p in places if line < p.line <= last]
            for places in (strict.reported, plain.told)
        ]
        found[name] = Run(strict, plain, NAMES[name], *here)
        line, byte = last, byte + len(part)
    return found


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """Return what replay says of each case."""
    folder = tmp_path_factory.mktemp("damaged")
    found = runs_of({name: case for name, case in CASES.items() if name not in ALONE}, folder / "run.jsonl")
    for name in ALONE:
        found |= runs_of({name: CASES[name]}, folder / f"{NAMES[name]}.jsonl")
    return found


@pytest.mark.parametrize("name", CASES)
def test_a_damaged_line_is_told_and_the_rest_is_shown(name: str, damaged: dict[str, Run]) -> None:
    case, run = CASES[name], damaged[name]
    assert run.json.code == 1, "--strict"
    assert run.plain.code == 0
    if case.either:
        assert [p.line for p in run.reported] == [case.line]
    else:
        assert told_of(run.reported, case), (run.reported, case.line, case.byte, case.begin)
    assert run.told == run.reported
    assert all(p.line >= case.line for p in run.reported), "a sound line before the damaged one was blamed"
    shown = placed(run.json, run.session)
    assert set(shown) == set(ITEMS)
    for item in ("alpha", "gamma"):
        assert shown[item]["tokens"] == TOKENS[item]
        assert shown[item]["version"] is not None
    lost = shown["beta"]["version"] is None
    assert case.either or lost == ("beta" in case.lost), shown["beta"]
    steps = [step for step in run.json.of_type("step") if step["session"] == run.session]
    assert len(steps) == 3
    assert steps[-1]["window"]["uncounted"] == lost


def test_problems_are_one_line_each_for_people(damaged: dict[str, Run]) -> None:
    for run in damaged.values():
        assert len(run.plain.told) == len(run.plain.err.splitlines())
        for line in run.plain.err.splitlines():
            assert len(line) < 300
            assert "sys." not in line, "advice for a programmer"
        assert run.json.err == ""
        assert run.json.lines[-1]["problems"] == len(run.json.reported) == len(run.plain.told)


FINE = {
    "blank lines": b"\n".join([BEFORE, b"", b"  \t", BETA + AFTER]),
    "CRLF": SOUND.replace(b"\n", b"\r\n"),
    "unknown fields": in_beta(b'"turn_id"', b'"x-vendor":{"a":[1,2.5,null]},"turn_id"'),
    "unknown event type": BEFORE
    + BETA
    + compact({**sound()[3], "event_id": "x", "event_type": "acme.thing"})
    + b"\n"
    + AFTER,
    "numbers as ids": SOUND.replace(b'"turn_id":"t', b'"turn_id":')
    .replace(b',"step_id":"r', b',"step_id":"')
    .replace(b'"turn_id":1"', b'"turn_id":1')
    .replace(b'"turn_id":2"', b'"turn_id":2')
    .replace(b'"turn_id":3"', b'"turn_id":3'),
    "line separators in a text": in_beta(TEXT, TEXT + "\u2028\u2029\u0085".encode()),
    "escaped slashes": in_beta(TEXT, TEXT + rb"\/\u00e9"),
    "no last line end, at the end": SOUND[:-1],
}


def test_what_is_unusual_but_sound_is_no_problem(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    sessions = dict(zip(FINE, string.ascii_letters, strict=False))
    path.write_bytes(
        b"".join(
            data.replace(b'"session_id":"s"', b'"session_id":"%b"' % sessions[name].encode())
            for name, data in FINE.items()
        )
    )
    done = ctxctl("replay", "--json", "--strict", path)
    assert done.reported == []
    assert done.err == ""
    assert done.code == 0
    for name, session in sessions.items():
        assert set(placed(done, session)) == set(ITEMS), name
    assert {step["window"]["uncounted"] for step in done.of_type("step")} == {0}
    assert len(done.of_type("step")) == 3 * len(FINE)


EVERYTHING = b"".join(
    (
        b"\xef\xbb\xbf",
        BEFORE,
        b"words\n",
        BETA.replace(TEXT, b"a\xff\0" + rb"\ud83d b"),
        bytes(300),
        b"\n",
        b'{"type":"user"}\n',
        BETA[:50] + b"\n",
        b"[" * 3000 + b"\n",
        AFTER,
        LINES[0],
        AFTER[:70],
    )
)
LINES_HURT = {1, 4, 5, 6, 7, 8, 9, 15, 16}


@pytest.fixture(scope="module")
def hurt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file with ten kinds of damage at once."""
    path = tmp_path_factory.mktemp("hurt") / "run.jsonl"
    path.write_bytes(EVERYTHING)
    return path


def test_replay_of_much_damage_at_once(hurt: Path) -> None:
    done = ctxctl("replay", "--json", hurt)
    assert done.code == 0
    assert {p.line for p in done.reported} == LINES_HURT
    assert set(placed(done)) == set(ITEMS)
    assert len(done.of_type("step")) == 3


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (("show", "RUN@3", "--ids"), "gamma"),
        (("show", "RUN@3", "--text"), TEXTS["gamma"]),
        (("diff", "RUN@1", "@3", "--ids"), "gamma"),
        (("log", "RUN", "gamma"), "gamma"),
    ],
)
def test_other_commands_show_the_rest_and_tell_the_damage(
    hurt: Path, command: tuple[str, ...], shown: str
) -> None:
    done = ctxctl(*(word.replace("RUN", str(hurt)) for word in command), "--strict")
    assert done.code == 1, done.err
    assert shown in done.out
    assert {p.line for p in done.told} == LINES_HURT
    lines = ctxctl(*(word.replace("RUN", str(hurt)) for word in command), "--json")
    assert lines.code == 0
    assert {p.line for p in lines.reported} == LINES_HURT


def test_validate_lists_all_damage_and_exits_1(hurt: Path) -> None:
    done = ctxctl("validate", hurt)
    assert done.code == 1
    for line in LINES_HURT:
        assert f"{hurt}:{line}: byte " in done.out
    assert {p.line for p in ctxctl("validate", "--json", hurt).reported} >= LINES_HURT


def test_many_problems_are_counted_not_poured_out(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(b"junk\n" * 5000 + SOUND)
    done = ctxctl("replay", "--steps", "--ids", path)
    assert done.code == 0
    assert len(done.err.splitlines()) < 100
    assert "5,000" in done.err.splitlines()[-1]
    assert "gamma" in done.out


def test_a_gzip_that_is_cut_off_shows_what_was_decoded(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl.gz"
    path.write_bytes(gzip.compress(SOUND, mtime=0) + gzip.compress(AFTER, mtime=0)[:-30])
    done = ctxctl("replay", "--json", "--strict", path)
    assert done.code == 1
    assert set(placed(done)) == set(ITEMS)
    assert any(p.slug == "damaged-compression" for p in done.reported)
    lenient = ctxctl("replay", "--steps", "--ids", path)
    assert lenient.code == 0
    assert "gamma" in lenient.out
    assert "gzip" in lenient.err


LARGE = 50 << 20
ROOM = 1 << 30
"""Address space for a run on a line of 50 MB."""


@pytest.mark.slow
def test_a_line_of_50_mb_of_junk(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with path.open("wb") as file:
        file.write(BEFORE + b"x" * LARGE + b"\n" + BETA + AFTER)
    done = ctxctl("replay", "--json", "--strict", path, memory=ROOM)
    assert done.code == 1
    assert [(p.line, p.byte) for p in done.reported] == [(4, START)]
    assert {name: change["tokens"] for name, change in placed(done).items()} == TOKENS


@pytest.mark.slow
@pytest.mark.parametrize(
    ("unit", "size"),
    [(b"x", LARGE), (b"word ", LARGE // 4), ("字".encode(), LARGE // 4), (b"aGVsbG8gd29ybGQ", LARGE // 4)],
)
def test_a_large_item(unit: bytes, size: int, tmp_path: Path) -> None:
    """50 MB without a place to cut at, and as much of kinder texts as shows that time grows no faster."""
    path = tmp_path / "run.jsonl"
    path.write_bytes(in_beta(TEXT, unit * (size // len(unit))))
    done = ctxctl("replay", "--json", path, memory=ROOM)
    assert done.code == 0
    assert set(placed(done)) == set(ITEMS)
    beta = placed(done)["beta"]
    assert isinstance(beta["tokens"], int)
    assert beta["tokens"] > size // 1000
    report = ctxctl("replay", "--plain", path, memory=ROOM)
    assert report.code == 0
    assert len(report.stdout) < 10_000


@pytest.mark.slow
def test_a_line_beyond_the_limit_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with path.open("wb") as file:
        file.write(BEFORE + b'{"event_type":"')
        for _ in range(300):
            file.write(b"x" * (1 << 20))
        file.write(b'"}\n' + BETA + AFTER)
    done = ctxctl("replay", "--json", path, memory=ROOM // 2)
    assert done.code == 0
    assert [(p.line, p.byte) for p in done.reported] == [(4, START)]
    assert {name: change["tokens"] for name, change in placed(done).items()} == TOKENS


@pytest.mark.slow
def test_a_file_that_is_one_line_of_50_mb(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(b"[1," * (LARGE // 3))
    assert_error(ctxctl("replay", path, memory=ROOM), 3, str(path))
