"""Patterns without RE2: they find what RE2 finds, in bounded time, and refuse what they cannot."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from ctxctl import backtracking, linear
from ctxctl.record import placeholders, redact, spellings
from ctxctl.record.redact import SecretRedactor

ROOT = Path(__file__).resolve().parents[2]
REDACTOR = SecretRedactor(b"k" * 32)
HINTS = [hint.replace(r"\b", redact._LEAD, 1) for hint in redact._HINTS]
PATTERNS = [
    *(rule._source for rule in REDACTOR._rules),
    *(f"(?i:{hint})" for hint in HINTS),
    *(
        one.pattern.decode()
        for module in (redact, placeholders)
        for one in vars(module).values()
        if isinstance(one, re2._Regexp)
    ),
    *(one.pattern.decode() for one in vars(spellings).values() if isinstance(one, re2._Regexp)),
    REDACTOR._half.pattern.decode(),
    redact._name_pattern(redact.FIELDS | redact.HEADERS),
    spellings.ESCAPED,
    r"^a|b$|[^\s]\S\D\W.",
    r"[]x-]+[^]-]{2}",
    r"(?i)[a-z_-]{1,99}k\z",
]
BOTH = [(one, re2.compile(one.encode()), backtracking.compile(one.encode())) for one in PATTERNS]
SECRETS = [
    "sk-proj-A0A2IYvMZO0lfJ27c8e3CWrr0lskq8Q9sSFhtv3qqU", "ghp_0123456789abcdefABCDEF0123456789abcd",
    "AKIAIOSFODNN7EXAMPLQ", "password = hunter2hunter2", "DB_PASSWORD=abcd1234",
    "Cookie: sid=abcdefgh1234", "curl -u me:secret99 x", "://u:p4ssw0rd@h",
    "Bearer abcdefghijklmnop0123", "machine h login u password s3cretpass",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcdefghijkl",
]  # fmt: skip
PIECES = st.one_of(
    st.sampled_from(SECRETS), st.sampled_from([one.swapcase() for one in SECRETS]),
    st.text("aAkKsS0_-.=:/ \t\n\v\"'\\%&;#[]", max_size=12), st.text(max_size=6),
    st.sampled_from(["\u212aey", "pa\u017f\u017fword=x1y2z3w4", "%2D", "\\n", "é" * 9]),
)  # fmt: skip
TEXTS = st.lists(st.one_of(PIECES.map(str.encode), st.binary(max_size=4)), max_size=9).map(b"".join)


@given(TEXTS)
def test_the_same_is_found_at_the_same_places(data: bytes) -> None:
    for pattern, fast, slow in BOTH:
        spans = [[match.span(group) for group in range(one.groups + 1)] for one in (fast, slow)
                 for match in [one.search(data)] if match is not None]  # fmt: skip
        assert len(spans) in (0, 2), pattern
        assert spans[:1] == spans[1:], pattern
        found = [[match.span() for match in one.finditer(data)] for one in (fast, slow)]
        assert found[0] == found[1], pattern
        assert (fast.fullmatch(data) is None) == (slow.fullmatch(data) is None), pattern


LITERALS = sorted({literal for rule in redact.RULES for literal in rule.literals} - redact._COMMON)
OF_ANY = backtracking.any_of(LITERALS, HINTS, [rule.pattern for rule in redact.RULES if not rule.literals])


@given(TEXTS)
def test_the_first_look_says_the_same(data: bytes) -> None:
    assert OF_ANY(data) == REDACTOR._any(data)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_what_a_pattern_needs_is_in_all_that_it_finds(pattern: str) -> None:
    needed = backtracking._needed(pattern)
    found = [
        match[0] for secret in SECRETS for match in re2.compile(pattern.encode()).finditer(secret.encode())
    ]
    assert all(needed in one.lower() for one in found)


WHOLE = """
import json, sys
if sys.argv[1] == "without":
    sys.modules["re2"] = None
sys.path.insert(0, "tests/unit/record")
from ctxctl import linear
from ctxctl.record.redact import FoundSecrets, SecretRedactor
from random import Random
from secret_kinds import KINDS, SHAPES, planted
assert linear.IS_LINEAR is (sys.argv[1] == "with")
redactor, chance, made = SecretRedactor(b"k" * 32), Random(7), []
for kind, shape in [(kind, shape) for shape in SHAPES for kind in KINDS][::3]:
    found = FoundSecrets()
    text = redactor.text(SHAPES[shape](planted(kind, chance).text), found)
    made.append([kind, shape, text, found.record()])
print(json.dumps(made))
"""


def test_a_redactor_without_re2_writes_the_same() -> None:
    told = [_python(WHOLE, one) for one in ("with", "without")]
    with_re2, without = map(json.loads, told)
    assert len(with_re2) > 500
    assert without == with_re2


def _python(program: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


HOSTILE = [
    b"a", b"A", b"A_", b"a-", b"a.", b"a=", b"= ", b"key", b"key ", b"curl ", b"://", b"password", b"\\",
    b"machine x ", b" ", b"PASSWORD_", b"a:", b"cookie", b"0", b"-", b"login ", "é".encode(), b"Aa",
    b"sk-",
]  # fmt: skip


def test_no_pattern_that_is_searched_for_takes_time_that_grows_with_the_square() -> None:
    """16 times the text, and less than 64 times the time; the square of 16 is 256."""
    searched = [
        *(rule._source for rule in REDACTOR._rules),
        *(f"(?i:{hint})" for hint in HINTS),
        spellings.ESCAPED,
        spellings._BASE64.pattern.decode(),
        REDACTOR._half.pattern.decode(),
        placeholders._HOLDS.pattern.decode(),
    ]
    slow = []
    for pattern in searched:
        found = backtracking.compile(pattern.encode())
        for piece in HOSTILE:
            short, long = (piece * (size // len(piece)) for size in (1_000, 16_000))
            if (seconds := _seconds(found, long)) > 0.05 and seconds > 64 * _seconds(found, short):
                slow.append((pattern, piece, seconds))
    assert slow == []


def _seconds(pattern: backtracking.Pattern, data: bytes) -> float:
    begun = time.process_time()
    for _ in pattern.finditer(data):
        pass
    return time.process_time() - begun


@pytest.mark.parametrize(
    "pattern", ["(a+)+b", "(?:x[a-z]*)*", "(?:(?:a+)b?)+", "(a{2,}){3,}"],
)  # fmt: skip
def test_a_pattern_of_the_users_that_may_take_for_ever_is_refused(pattern: str) -> None:
    with pytest.raises(backtracking.error, match="google-re2"):
        backtracking.check_bounded(pattern)
    linear.check_bounded(pattern)  # with RE2, which takes any


@pytest.mark.parametrize(
    "pattern", [r"\pL", r"a(?i)b", "(?s).", "[[:alpha:]]", r"\Qa\E", "a++", "(?=a)", "(a", "a)", "(?P=x)"]
)
def test_what_only_re2_knows_or_nobody_is_refused(pattern: str) -> None:
    with pytest.raises(backtracking.error):
        backtracking.compile(pattern.encode())


def test_literals_are_found_by_number() -> None:
    options = re2.Options()
    some = [b"ghp_", b"key", b"sk-"]
    assert sorted(linear.Literals(some, options).held(b"a KEY and GHP_")) == [0, 1]


def test_longest_of_literals() -> None:
    options = backtracking.Options()
    options.longest_match = True
    found = backtracking.compile("|".join(map(backtracking.escape, ("ab", "abc", "b.c"))), options)
    assert [match.group() for match in found.finditer("xabcab b.c")] == ["abc", "ab", "b.c"]


def test_places_are_bytes() -> None:
    data = "é€😀key=1 ékey=22".encode() + b"\xff" + "ékey=3".encode()
    for match in backtracking.compile(rb"key=([0-9]+)").finditer(data):
        start, end = match.span(1)
        assert data[start:end].isdigit()
        assert match[0] == data[match.start() : match.end()]
