"""Repairs say which byte they are about, wherever in the line it is, and leave the rest as it stands."""

from __future__ import annotations

import pytest

from ctxctl.trace.salvage import repair_line

SOUND = rb'{"a": "\n \" \\ \u0041 \ud83d\ude00", "b": [-1.5e+3, true, null], "c": "'


@pytest.mark.parametrize(
    ("broken", "whole", "slug"),
    [
        (rb"\ud800", rb"\ufffd", "lone-surrogate"),
        (rb"\x", rb"\\x", "bad-escape"),
        (b"\x01", rb"\u0001", "control-character"),
        (b"\0", rb"\u0000", "nul-bytes"),
    ],
)
def test_a_fault_behind_sound_text_is_repaired_at_its_byte(broken: bytes, whole: bytes, slug: str) -> None:
    line = SOUND + rb"x\t" + broken + rb'y\\"}'
    data, start, faults = repair_line(line)
    assert data == SOUND + rb"x\t" + whole + rb'y\\"}'
    assert start == 0
    assert [(fault.at, fault.slug) for fault in faults] == [(len(SOUND) + 3, slug)]


def test_several_faults_of_one_string_are_all_repaired() -> None:
    data, _, faults = repair_line(b'  {"a": "\\udc00\\n\\q\x02\\ud83d\\ude00"}')
    assert data == rb'{"a": "\ufffd\n\\q\u0002\ud83d\ude00"}'
    assert [(fault.at, fault.slug) for fault in faults] == [
        (9, "lone-surrogate"),
        (17, "bad-escape"),
        (19, "control-character"),
    ]


@pytest.mark.parametrize("word", [b"NaN", b"Infinity", b"-Infinity"])
def test_what_is_no_number_is_null_outside_strings_only(word: bytes) -> None:
    data, _, faults = repair_line(b'{"' + word + b'": 1, "b": ' + word + b"}")
    assert data == b'{"' + word + b'": 1, "b": null}'
    assert [(fault.at, fault.slug) for fault in faults] == [(len(word) + 13, "bad-number")]


@pytest.mark.parametrize("line", [b'{"a": 1NaN}', b'{"a": trueNaN}', b'{"a": xInfinity}'])
def test_letters_that_go_on_a_word_are_no_number(line: bytes) -> None:
    assert repair_line(line) == (line, 0, [])


def test_a_string_that_is_torn_stays_as_it_is() -> None:
    line = SOUND + rb"text \n that ends"
    assert repair_line(line) == (line, 0, [])


@pytest.mark.parametrize("word", [b"NaN", b"-Infinity"])
def test_what_is_no_number_behind_a_torn_string_is_told_at_its_byte(word: bytes) -> None:
    """A string that nobody ended may have lost its end anywhere: what follows is read as if outside of it."""
    line = b'{"a": 1, "torn: ' + word + b", 2"
    data, _, faults = repair_line(line)
    assert data == b'{"a": 1, "torn: null, 2'
    assert [(fault.at, fault.slug) for fault in faults] == [(line.index(word), "bad-number")]
