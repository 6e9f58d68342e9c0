"""Redaction has no cap: of ten thousand redacted items no export says one, not even in a key."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.cli.main import run
from ctxctl.session.redaction.secrets import LEAST, Secrets
from tests.oracle.build import event, item, lines

MANY = 10_000
WORDS = st.text(alphabet="ab", min_size=0, max_size=12)


def secret(n: int) -> str:
    return f"s3cret-{n:05d}-{random.Random(n).randrange(1 << 40):010x}"


def trace(path: Path, count: int, *, redacted: bool = True) -> None:
    """Items, their redactions, and a last item whose metadata has one of the secrets as a key."""
    made: list[dict[str, Any]] = []
    for n in range(count):
        made.append(item(f"i{n}", secret(n)))
    for n in range(count if redacted else 0):
        made.append(event("context.redaction.applied", {"item_id": f"i{n}", "redaction_state": "removed"}))
    last = item("last", f"it was {secret(count - 1)} all along")
    last["data"]["metadata"] = {secret(count // 2): "as a key", "deep": [{f"x {secret(1)}": 1}]}
    made.append(last)
    path.write_bytes(lines(made))


@pytest.mark.parametrize("form", ["events", "markdown", "csv", "otlp", "envelopes"])
def test_of_three_hundred_redacted_texts_none_is_exported(form: str, tmp_path: Path) -> None:
    path, out = tmp_path / "t.jsonl", tmp_path / "out"
    trace(path, 300)
    assert run(["export", str(path), "--format", form, "-o", str(out)]) in (0, 1)
    files = [out] if out.is_file() else [p for p in out.rglob("*") if p.is_file()]
    text = "".join(p.read_text(errors="replace") for p in files)
    assert [n for n in range(300) if secret(n) in text] == []


def test_what_nobody_redacted_is_exported(tmp_path: Path) -> None:
    path, out = tmp_path / "t.jsonl", tmp_path / "out.jsonl"
    trace(path, 3, redacted=False)
    assert run(["export", str(path), "-o", str(out)]) == 0
    assert all(secret(n) in out.read_text() for n in range(3))


@pytest.mark.slow
def test_nor_of_ten_thousand(tmp_path: Path) -> None:
    path, out = tmp_path / "t.jsonl", tmp_path / "out.jsonl"
    trace(path, MANY)
    assert run(["export", str(path), "--format", "events", "-o", str(out)]) == 0
    text = out.read_text()
    assert "s3cret-" not in text
    assert len([json.loads(line) for line in text.splitlines()]) >= 2 * MANY


@given(st.lists(st.tuples(st.booleans(), WORDS), max_size=120), WORDS, st.text("ab", max_size=60))
def test_what_a_text_holds_is_found_however_many_there_are(
    edits: list[tuple[bool, str]], other: str, text: str
) -> None:
    """Against the plain definition, on both sides of the number from which it is looked for otherwise."""
    known, plain = Secrets(), dict[str, str]()
    for n in range(80 if len(other) > 5 else 0):
        known.add(f"filler{n:03}", "filler")
        plain[f"filler{n:03}"] = "filler"
    for add, word in edits:
        if add:
            known.add(word, word)
            if len(word) >= LEAST:
                plain[word] = word
        else:
            known.discard([word])
            plain.pop(word, None)
    held = [one for one in plain if one in text]
    found = known.held_by(text)
    assert all(text[one.start : one.end] == one.secret in plain for one in found)
    assert len(known) == len(plain)
    masked = known.masked(text, lambda secret: "*")
    assert not [one for one in plain if one in masked]
    assert (known.first(text) is None) is (not held)
