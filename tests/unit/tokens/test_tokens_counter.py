"""Counts are those of `encode_ordinary` wherever they are called exact, for texts of any kind and length."""

from __future__ import annotations

import base64
import random
import string
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxctl.errors import UsageError
from ctxctl.tokens import chunks, ranks
from ctxctl.tokens.cache import CountCache
from ctxctl.tokens.counter import Counter

BASES: Final = ("o200k_base", "cl100k_base")
MEGA: Final = 1_000_000


def chosen(alphabet: str, length: int, seed: int = 7) -> str:
    return "".join(random.Random(seed).choices(alphabet, k=length))


HAN: Final = "".join(map(chr, range(0x4E00, 0x9FA6)))
CASES: Final[dict[str, Callable[[], str]]] = {
    "blanks": lambda: " " * MEGA,
    "blanks before a word": lambda: " " * MEGA + "x",
    "blanks between words": lambda: "x" + " " * MEGA + "x",
    "blanks between lines": lambda: " " * MEGA + "\n" + " " * MEGA + "x",
    "blanks after a line": lambda: "x\n" + " " * MEGA,
    "no-break spaces": lambda: "\xa0" * MEGA + "x",
    "tabs": lambda: "\t" * MEGA,
    "line ends": lambda: "\n" * MEGA,
    "line ends after a symbol": lambda: "!" + "\r\n" * (MEGA // 2) + "x",
    "one small letter": lambda: "a" * MEGA,
    "one capital": lambda: "A" * MEGA,
    "one symbol": lambda: "=" * MEGA,
    "slashes": lambda: "/" * MEGA,
    "one digit": lambda: "1" * MEGA,
    "small letters": lambda: chosen(string.ascii_lowercase, MEGA),
    "letters": lambda: chosen(string.ascii_letters, MEGA),
    "base64": lambda: base64.b64encode(random.Random(7).randbytes(MEGA * 3 // 4)).decode(),
    "han": lambda: chosen(HAN, MEGA // 3),
    "white space": lambda: chosen(" \t\n", MEGA),
    "white space and letters": lambda: chosen("    \t\na", MEGA),
    "emoji": lambda: "😀" * (MEGA // 4),
    "emoji with selectors": lambda: "❤️" * (MEGA // 6),
    "families": lambda: "👩‍👩‍👧" * (MEGA // 18),
    "surrogates": lambda: "\ud800" * (MEGA // 3),
    "symbols": lambda: chosen(string.punctuation, MEGA),
}


@pytest.fixture(params=BASES)
def base(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "hello world",
        "<|endoftext|>",
        "<|start|>system<|message|>",
        "\ud83d\ude00",
        "a\udfffb",
        "\ufeffx",
        "\0",
    ],
)
def test_short_texts(base: str, text: str) -> None:
    assert Counter(base).count(text) == (len(ranks.get_encoding(base).encode_ordinary(text)), True)


def test_harmony_counts_as_its_ranks_do_without_an_encoding_of_its_own() -> None:
    text = "<|start|>user<|message|>What is 2+2?<|end|>"
    assert Counter("o200k_harmony").count(text) == Counter("o200k_base").count(text)
    assert Counter("o200k_harmony").count(text)[0] == len(
        ranks.get_encoding("o200k_harmony").encode_ordinary(text)
    )


def test_unknown_encoding_is_refused_before_counting() -> None:
    with pytest.raises(UsageError):
        Counter("gpt-4o")


@settings(max_examples=60)
@given(text=st.text(st.characters(), max_size=200))
def test_any_text(text: str) -> None:
    assert Counter("o200k_base").count(text) == (
        len(ranks.get_encoding("o200k_base").encode_ordinary(text)),
        True,
    )


RUNS: Final = st.lists(
    st.one_of(
        st.builds(
            lambda alphabet, n, seed: chosen(alphabet, n, seed),
            st.sampled_from(
                [" ", "\t", "\n", "\r\n", " \n", "  \t\n", "a", "A", "=", "/", "\n/", "1", "12", "aA", "é",
                 "жЖ", "漢", "漢字a", "漢A", "かカ", "😀", "❤️", "\ud800", "ab ", HAN, "'sS", "\u0301a",
                 "  \xa0\u3000", string.ascii_lowercase, string.ascii_letters, string.punctuation,
                 string.hexdigits]
            ),
            st.integers(1, 3_000),
            st.integers(0, 99),
        ),
        st.sampled_from(["x", "!", "/", "\n", " ", "'ll", "。", "é", "\u0301", "²", "A"]),
    ),
    min_size=1,
    max_size=5,
).map("".join)  # fmt: skip


def shorten(patch: pytest.MonkeyPatch) -> None:
    """Take texts apart that are a hundredth as long, with an overlap that is still longer than any token."""
    patch.setattr(chunks, "DIRECT", 1_200)
    patch.setattr(chunks, "STRIDE", 600)
    patch.setattr(chunks, "LIMIT", 2_000)
    patch.setattr(chunks, "_OVERLAP", 150)


@settings(max_examples=150)
@given(text=RUNS)
def test_what_is_called_exact_is_exact(text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        shorten(patch)
        for name in BASES:
            tokens, exact = Counter(name).count(text)
            expected = len(ranks.get_encoding(name).encode_ordinary(text))
            if exact:
                assert tokens == expected
            else:
                assert abs(tokens - expected) <= 6 + len(text) // 200


def test_plain_texts_are_always_exact(base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shorten(monkeypatch)
    for alphabet in (
        "a",
        " ",
        "\n",
        "=",
        "/",
        "é",
        "ab cd.\n",
        "漢",
        "漢字。",
        "0",
        "aA",
        "A",
        "\t\n ",
        "😀",
    ):
        text = chosen(alphabet, 20_000)
        assert Counter(base).count(text) == (len(ranks.get_encoding(base).encode_ordinary(text)), True), (
            alphabet
        )


def test_tokens_that_do_not_stay_apart_make_an_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    shorten(monkeypatch)
    monkeypatch.setattr(chunks._Long, "_stay_apart", lambda *_: False)
    text = chosen(string.ascii_lowercase, 40_000)
    expected = len(ranks.get_encoding("o200k_base").encode_ordinary(text))
    tokens, exact = Counter("o200k_base").count(text)
    assert tokens == expected or not exact


def bounded(base: str, text: str, capfd: pytest.CaptureFixture[str], seconds: float) -> tuple[int, bool]:
    """Count, and hold the time and stderr; the time against quadratic behaviour, not as a benchmark."""
    ranks.get_encoding(base)
    begun = time.process_time()
    counted = Counter(base).count(text)
    assert time.process_time() - begun < seconds
    assert capfd.readouterr().err == ""
    return counted


@pytest.mark.parametrize("case", ["blanks between words", "tabs", "base64"])
def test_a_megabyte_that_panics_or_tires_tiktoken(case: str, capfd: pytest.CaptureFixture[str]) -> None:
    tokens, exact = bounded("o200k_base", CASES[case](), capfd, 5)
    assert exact
    assert tokens > 0


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_a_megabyte_of_anything(base: str, case: str, capfd: pytest.CaptureFixture[str]) -> None:
    text = CASES[case]()
    tokens, exact = bounded(base, text, capfd, 5)
    assert exact
    if not regex.search(r"[^\S\r\n]{900000}", text):
        assert tokens == len(ranks.get_encoding(base).encode_ordinary(text))


@pytest.mark.slow
@pytest.mark.parametrize("case", ["blanks between words", "emoji with selectors"])
def test_ten_megabytes_cost_ten_times_that(base: str, case: str, capfd: pytest.CaptureFixture[str]) -> None:
    text = CASES[case]()
    tokens, exact = bounded(base, text * 10, capfd, 40)
    assert abs(tokens - 10 * Counter(base).count(text)[0]) <= (11 if exact else 2_000)


def test_a_run_of_blanks_is_one_token_run_whatever_its_length(base: str) -> None:
    # tiktoken panics on the longer one unless it is told that the blanks are one piece.
    shorter, longer = "x" + " " * 700_000 + "x", "x" + " " * 1_400_000 + "x"
    counted = Counter(base).count(shorter)
    assert counted == (len(ranks.get_encoding(base).encode_ordinary(shorter)), True)
    whole, exact = Counter(base).count(longer)
    assert exact
    assert whole == 2 + len(ranks.get_encoding(base)._encode_single_piece(" " * 1_399_999))


def test_nothing_long_enough_to_panic_is_ever_handed_over(base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    longest = 0

    class Spy:
        def encode_ordinary(self, text: str) -> list[int]:
            nonlocal longest
            longest = max(longest, len(text))
            return [0] * 9

        def decode_single_token_bytes(self, token: int) -> bytes:
            return b"a"

    for text in (
        "!" + "\n" * (3 * MEGA) + "/",
        " " * (2 * MEGA),
        "\u0301" * (2 * MEGA),
        "x" + "\xa0" * (2 * MEGA),
    ):
        chunks.count_tokens(Spy(), base, text)  # type: ignore[arg-type]
    assert 0 < longest <= chunks.LIMIT < 999_999


def test_cached_counts_never_load_the_encoding(tmp_path: Path) -> None:
    with CountCache(tmp_path / "counts.sqlite3") as cache:
        first = Counter("o200k_base", cache).count("hello \ud800 world")
    code = (
        "import sys; from ctxctl.tokens.cache import CountCache; from ctxctl.tokens.counter import Counter;"
        f"counter = Counter('o200k_harmony', CountCache({str(tmp_path / 'counts.sqlite3')!r}));"
        "print(counter.count('hello \\ud800 world'), 'tiktoken' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"{first} False\n"


def test_equal_content_is_tokenised_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0

    def count_tokens(*_: object) -> tuple[int, bool]:
        nonlocal calls
        calls += 1
        return 2, calls > 1

    monkeypatch.setattr(chunks, "count_tokens", count_tokens)
    for _ in range(2):
        with CountCache(tmp_path / "counts.sqlite3") as cache:
            counter = Counter("cl100k_base", cache)
            # An estimate stays one.
            assert counter.count("one two") == (2, False)
            assert counter.count("two one") == (2, True)
            assert counter.count("one two") == (2, False)
    assert calls == 2


@pytest.mark.parametrize("stored", [0, 4, 10**12])
def test_impossible_counts_are_counted_again(tmp_path: Path, stored: int) -> None:
    with CountCache(tmp_path / "counts.sqlite3") as cache:
        cache.put(CountCache.key("o200k_base", b"abc"), stored)
        assert Counter("o200k_base", cache).count("abc") == (1, True)
        assert cache.get(CountCache.key("o200k_base", b"abc")) == (1, True)
