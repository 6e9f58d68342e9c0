"""The table of formats says what each declaration says, and no hint passes a capture over."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.importers import registry
from ctxctl.importers.table import TABLE, Entry, HeadWords
from ctxctl.ingest import database
from ctxctl.ingest.declaration import Format
from ctxctl.ingest.outline import outline
from ctxctl.trace.source import open_source
from ctxctl.trace.unknown_file import is_native

ROOT = Path(__file__).resolve().parents[3]
SURE = 50


def files() -> list[Path]:
    return sorted(path for path in (ROOT / "fixtures").rglob("*") if path.is_file())


def heads(path: Path) -> Iterator[bytes]:
    """What detection may look at of a file: whole heads, heads that are cut short, outlines, schemas."""
    try:
        with open_source(path) as source:
            head = source.read(0, registry.HEAD)
    except Exception:
        return
    if head.startswith(b"SQLite format 3\0"):
        yield from database.schemas(path, lambda: head)
    yield head
    yield from (head[:size] for size in (200, 1000, 5000, 20_000) if size < len(head))
    yield outline(head)
    yield b"\xef\xbb\xbf \n" + head


WORDS = sorted({word for entry in TABLE for hint in entry.hints for word in hint.split(" & ")})


@given(st.lists(st.sampled_from((*WORDS, '"', "x", ": ", "_", "\n", "y" * 60)), max_size=12))
def test_a_word_is_found_wherever_it_stands(parts: list[str]) -> None:
    head = "".join(parts).encode("latin-1")
    words = HeadWords(head)
    for word in WORDS:
        if len(word) > 1:
            assert words._has(word) == (word.encode("latin-1") in head), word


@pytest.mark.parametrize("folder", sorted({path.relative_to(ROOT / "fixtures").parts[0] for path in files()}))
def test_no_format_that_accepts_a_capture_is_passed_over(folder: str) -> None:
    declared = {one.name: one for one in registry.built_in()}
    missed: list[str] = []
    for path in files():
        if path.relative_to(ROOT / "fixtures").parts[0] != folder:
            continue
        for head in heads(path):
            words = HeadWords(head)
            scores = {entry: declared[entry.name].detect(head) for entry in TABLE}
            missed += [
                f"{entry.name}: {path.name}, {len(head)} bytes, {score}"
                for entry, score in scores.items()
                if (score >= SURE and not words.admit(entry)) or score > entry.most
            ]
            best = max(scores.values())
            asked = registry.of_head(head) if not is_native(head) else None
            expected = next((e.name for e, score in scores.items() if score == best >= SURE), None)
            name = asked.name if asked else None
            if not is_native(head) and name != expected:
                missed.append(f"{path.name}, {len(head)} bytes: detected as {name}, not as {expected}")
    assert not missed, (
        "the hints in ctxctl/importers/table.py pass these over; each must stand in every such file"
    )


@pytest.mark.parametrize("entry", TABLE, ids=lambda entry: entry.name)
def test_no_detector_can_be_surer_than_the_table_says(entry: Entry) -> None:
    made = registry.by_name(entry.name)
    scores = [n for n in _numbers(inspect.unwrap(made.detect), set()) if 50 <= n <= 100]
    assert scores, "its scores stand somewhere else"
    assert max(scores) <= entry.most


def _numbers(function: Any, seen: set[Any]) -> set[int]:
    """The whole numbers that a function can come by: those in its source, and in what of ours it names."""
    if function in seen:
        return set()
    seen.add(function)
    found: set[int] = set()
    module = sys.modules[function.__module__]
    for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(function)))):
        named: Any = None
        if isinstance(node, ast.Constant):
            named = node.value
        elif isinstance(node, ast.Name):
            named = getattr(module, node.id, None)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            named = getattr(getattr(module, node.value.id, None), node.attr, None)
        if inspect.isfunction(named) and named.__module__.startswith("ctxctl"):
            found |= _numbers(named, seen)
        for one in named if isinstance(named, tuple) else (named,):
            if type(one) is int:
                found.add(one)
    return found


@cache
def _heads_and_formats() -> list[tuple[Path, bytes, Format | None]]:
    """Of some files, what they are found to be where nothing is likely."""
    some = [(path, path.read_bytes()[: 1 << 16]) for path in files()[::7]]
    return [(path, head, registry.of_head(head)) for path, head in some]


@pytest.mark.parametrize("likely", [None, *sorted(entry.name for entry in TABLE)])
def test_what_is_likely_makes_no_difference(likely: str | None) -> None:
    for path, head, plain in _heads_and_formats():
        assert registry.of_head(head, likely) is plain, path


def test_names_are_those_of_the_declarations() -> None:
    assert [entry.name for entry in TABLE] == [one.name for one in registry.built_in()]


@pytest.mark.parametrize(
    "head",
    [
        b'{"\\u0074ype":"thread.started","thread_id":"t"}',
        b'{"record_\\u0074ype":"state","type":"x"}',
    ],
)
def test_keys_that_are_spelled_by_number_are_found(head: bytes) -> None:
    assert registry.of_head(head) is not None


def test_most_files_load_few_declarations() -> None:
    head = (ROOT / "fixtures/claude_code/session.jsonl").read_bytes()[: registry.HEAD]
    words = HeadWords(head)
    admitted = [entry.name for entry in TABLE if words.admit(entry)]
    assert "claude-code" in admitted
    assert len(admitted) < len(TABLE) / 3
