"""text.py: nothing hidden or dangerous survives `visible`, and widths are what terminals draw."""

from __future__ import annotations

import json
import os
import re
import sys
import time
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxctl import text as text_module
from ctxctl.text import FITTING, TAB, _widths, cells, clip, inert, is_plain, json_safe, pad, preview, visible

DRAWN_FORMATS = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}
FILLERS = {0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x180F, 0x2065, 0x3164, 0xFFA0}
any_text = st.text(alphabet=st.characters(codec=None, exclude_categories=()), max_size=60)


def hidden(code: int) -> bool:
    """By the Unicode categories and the default-ignorable list, independently of the table under test."""
    category = unicodedata.category(chr(code))
    if category in ("Cc", "Cs", "Zl", "Zp"):
        return True
    if category == "Cf":
        return code not in DRAWN_FORMATS
    return (
        code in FILLERS
        or 0xFE00 <= code <= 0xFE0F
        or 0xFFF0 <= code <= 0xFFF8
        or 0xE0000 <= code <= 0xE0FFF
        or 0xFDD0 <= code <= 0xFDEF
        or code & 0xFFFE == 0xFFFE
    )


def test_every_code_point_is_either_itself_or_made_visible() -> None:
    wrong = []
    for code in range(0x110000):
        if 0x13430 <= code <= 0x1343F:
            continue  # Egyptian format controls: their category depends on the version of Unicode
        shown = visible(chr(code))
        if (shown != chr(code)) != hidden(code):
            wrong.append(hex(code))
    assert wrong == []


def test_pictures() -> None:
    assert visible("\x00\x1b[31m\x7f\x9b\n\t\r") == "␀␛[31m␡⟨U+009B⟩␊␉␍"
    assert visible("a\u202eb\ufeff\U000e0041\ud800") == "a⟨U+202E⟩b⟨U+FEFF⟩⟨U+E0041⟩⟨U+D800⟩"


def test_newlines_stay_and_tabs_are_expanded_by_cells() -> None:
    assert visible("a\tb\n日\tc\r\n", newline=True) == "a   b\n日  c␍\n"
    assert visible("\x1b\tx", newline=True) == "␛   x"
    assert TAB == 4


def test_carriage_return_cannot_overwrite() -> None:
    assert "\r" not in visible("rm -rf /\recho ok", newline=True)
    assert preview("rm -rf /\recho ok", 40) == "rm -rf /␍echo ok"


@pytest.mark.parametrize("emoji", ["👩‍👩‍👧", "🏳️‍🌈", "❤️", "1️⃣", "👍🏽", "🧑🏿‍🚒", "⛹🏻‍♂️", "☎️"])
def test_emoji_sequences_stay(emoji: str) -> None:
    assert visible(emoji) == emoji
    assert visible(f"x{emoji}y") == f"x{emoji}y"


@pytest.mark.parametrize(
    "text", ["a\u200db", "1\u200d2", "x\ufe0f", "\u200d👩", "👩\u200d", "1\ufe0f", "👩\u200da"]
)
def test_joiners_elsewhere_are_shown(text: str) -> None:
    assert "⟨U+" in visible(text)


def test_a_chain_of_joiners_is_bounded() -> None:
    assert visible("\u200d".join("👩" * 100)).count("⟨U+200D⟩") >= 10


@given(any_text)
def test_visible_is_encodable_idempotent_and_safe(text: str) -> None:
    for newline in (False, True):
        shown = visible(text, newline=newline)
        shown.encode()
        assert visible(shown, newline=newline) == shown
        left = {c for c in shown if hidden(ord(c))} - {"\u200d", "\ufe0f"}
        assert left <= ({"\n"} if newline else set())


@given(any_text, st.integers(-2, 40))
def test_clip_and_pad_measure_what_they_promise(text: str, width: int) -> None:
    shown = visible(text)
    cut = clip(shown, width)
    assert cells(cut) <= max(width, 0)
    assert (cut == shown) == (cells(shown) <= max(width, 0)) or (width <= 0 and cut == "")
    assert cells(pad(shown, max(width, 0))) == max(width, 0)
    assert cells(preview(text, width)) <= max(width, 0)
    assert "\n" not in preview(text, width)


def test_what_is_plain_takes_a_cell_each() -> None:
    plain = [char for char in map(chr, range(sys.maxunicode + 1)) if is_plain(char)]
    assert {"a", " ", "ß", "Ж", "…", "→", "\u2212", "│", "⟨"} <= set(plain)
    assert not {"\t", "\x1b", "\xad", "\u200d", "\u200b", "\u202e", "\ufe0f", "\u0301", "漢", "👍"} & set(
        plain
    )
    assert [char for char in plain if list(_widths(char)) != [1]] == []


@given(st.text(st.sampled_from("aé→ \t漢👍\u0301\u200d\ufe0f☺"), max_size=12), st.integers(1, 14))
def test_the_short_ways_measure_and_cut_as_the_long_one(text: str, width: int) -> None:
    assert cells(text) == sum(_widths(text))
    if len(text) > width or not text.isascii():
        total, keep = 0, 0
        expected = text
        for n, w in enumerate(_widths(text)):
            total += w
            if total > width:
                expected = text[:keep].rstrip("\u200d") + "…"
                break
            if total < width:
                keep = n + 1
        assert clip(text, width) == expected


def test_clip() -> None:
    assert clip("abcdef", 6) == "abcdef"
    assert clip("abcdefg", 6) == "abcde…"
    assert clip("日本語テキスト", 5) == "日本…"
    assert clip("日本", 1) == "…"
    assert clip("e\u0301e\u0301e\u0301", 2) == "e\u0301…"
    assert clip("👩‍👩‍👧👩", 3) == "👩‍👩‍👧…"
    assert pad("日", 4) == "日  "
    assert pad("7", 3, right=True) == "  7"


def test_preview_is_one_line_and_looks_at_a_bounded_beginning() -> None:
    assert preview("  a\n\n\tb  ", 10) == "a b"
    assert preview(" " * 1000 + "x", 10) == "…"
    long = "x\n" * 20_000_000
    started = time.process_time()
    preview(long, 80)
    assert time.process_time() - started < 0.1


def test_widths_agree_with_the_terminal_library_of_the_ui() -> None:
    rich_cells = pytest.importorskip("rich.cells")
    samples = (
        "plain",
        "日本語",
        "👩‍👩‍👧",
        "🏳️‍🌈",
        "❤️",
        "1️⃣",
        "⛹🏻‍♂️",
        "e\u0301",
        "한국어",
        "\u1112\u1161\u11ab",
    )
    for sample in samples:
        assert cells(sample) == rich_cells.cell_len(sample), sample
    wrong = []
    for code in range(0x20, 0x110000):
        char = chr(code)
        if unicodedata.category(char) in ("Cn", "Cc", "Cs") or hidden(code):
            continue
        if cells(char) != rich_cells.cell_len(char):
            wrong.append(hex(code))
    assert set(wrong) - {hex(code) for code in DRAWN_FORMATS} == set()


@pytest.mark.corpus
def test_naughty_strings() -> None:
    suites = Path(os.environ["CTXCTL_CORPUS"]) / "suites"
    for text in json.loads((suites / "big-list-of-naughty-strings" / "blns.json").read_text()):
        shown = visible(text)
        shown.encode()
        assert not any(hidden(ord(c)) for c in shown if c not in "\u200d\ufe0f")
    for path in sorted((suites / "xterm-escape-sequences").rglob("*")):
        if path.is_file():
            raw = path.read_bytes().decode("utf-8", "surrogateescape")
            assert "\x1b" not in visible(raw, newline=True)


def test_speed_on_a_megabyte() -> None:
    text = "plain words and a little ünïcode\n" * 30_000
    started = time.process_time()
    visible(text, newline=True)
    assert time.process_time() - started < 0.5


def test_ci_commands_are_inert_and_still_readable() -> None:
    assert inert("::set-output name=x::y") == "⟨U+003A⟩:set-output name=x::y"
    assert inert("ok\n  ::add-mask::z\n") == "ok\n  ⟨U+003A⟩:add-mask::z\n"
    assert inert("a ##[error]x and ##vso[task]") == "a #⟨U+0023⟩[error]x and #⟨U+0023⟩vso[task]"
    assert inert("std::vector ## heading") == "std::vector ## heading"


@pytest.mark.parametrize("more", ["", "".join(map(chr, range(0x2060, 0x2070)))], ids=["few", "many"])
def test_json_is_safe_to_print_and_still_the_same_value(more: str) -> None:
    value = "\x7f\x9b\u202e\u200d\ufeff\U000e0041##[x] ##vso[y] 日本 👩‍👩‍👧" + more
    raw = json.dumps({"k": value}, ensure_ascii=False)
    safe = json_safe(raw.encode()).decode()
    assert json.loads(safe) == {"k": value}
    assert visible(safe) == safe
    assert inert(safe) == safe


@pytest.mark.parametrize(
    ("shown", "encoding", "written"),
    [
        ("a⟨U+DCC3⟩⟨U+10FFFF⟩b", "ascii", b"a<U+DCC3><U+10FFFF>b"),
        ("a⟨U+DCC3⟩ï", "latin-1", b"a<U+DCC3>\xef"),
        ("⟨U+202E⟩ï", "utf-8", "⟨U+202E⟩ï".encode()),
        # Brackets of a text that are none of a mark stay what they are.
        ("⟨x⟩ ⟩⟨U+DCC3 ⟨U+12⟩", "ascii", rb"\u27e8x\u27e9 \u27e9\u27e8U+DCC3 \u27e8U+12\u27e9"),
        ("⟨U+1234567⟩", "ascii", rb"\u27e8U+1234567\u27e9"),
        ("ï日\U0001f600…", "ascii", rb"\xef\u65e5\U0001f600\u2026"),
    ],
)  # fmt: skip
def test_marks_are_readable_where_there_are_no_such_brackets(
    shown: str, encoding: str, written: bytes
) -> None:
    assert shown.encode(encoding, FITTING) == written


@given(any_text)
def test_whatever_is_shown_fits_into_ascii(text: str) -> None:
    shown = visible(text, newline=True)
    assert shown.encode("ascii", FITTING).isascii()
    plain = re.sub("⟨(U[+][0-9A-F]{4,6})⟩", r"<\1>", shown)
    assert shown.encode("ascii", FITTING) == plain.encode("ascii", "backslashreplace")


def test_the_bytes_of_a_name_are_read_as_utf8_where_python_did_not(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "na\udcc3\udcafve-\udce6\udc97\udca5\udce6.jsonl"
    assert visible(name) == "na⟨U+DCC3⟩⟨U+DCAF⟩ve-⟨U+DCE6⟩⟨U+DC97⟩⟨U+DCA5⟩⟨U+DCE6⟩.jsonl"
    monkeypatch.setattr(text_module, "_NAMES_ARE_UTF8", False)
    assert visible(name) == "naïve-日⟨U+DCE6⟩.jsonl"
    assert visible("a\udce2\udc80\udcaeb") == "a⟨U+202E⟩b"  # what they say is made visible too
