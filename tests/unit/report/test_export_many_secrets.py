"""Redaction has no cap: of ten thousand redacted items no export says one, in no form, option or spelling."""

from __future__ import annotations

import html
import json
import random
import re
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.cli.main import run
from ctxctl.session.redaction.secrets import LEAST, Secrets
from tests.oracle.build import (
    Event,
    assembly,
    at,
    block,
    budget,
    compact,
    event,
    item,
    lines,
    select,
    summary,
)
from tests.unit.report.page_help import Page

MANY = 10_000
WORDS = st.text(alphabet="ab", min_size=0, max_size=12)
WAYS: list[tuple[str, ...]] = [
    ("events",),
    ("events", "--strict"),
    ("events", "--target", "evidence_export"),
    ("events", "--strict", "--target", "evidence_export"),
    ("envelopes",),
    ("html",),
    ("html", "--max-content", "20K"),
    ("html", "--model", "gpt-4o"),
    ("markdown",),
    ("markdown", "--turn", "1"),
    ("markdown", "--turn", "-2"),
    ("csv",),
    ("csv", "--table", "changes"),
    ("otlp",),
    ("parquet",),
    ("parquet", "--table", "changes"),
]
"""Every form, without and with each option that chooses content."""


def core(n: int) -> str:
    """What no export may say: the part of a secret that JSON never escapes; of some it looks like no key."""
    if n % 8 == 7:
        return "wordy" + "".join(chr(ord(digit) + 49) for digit in f"{n:05d}")
    return f"s3cret-{n:05d}-{random.Random(n).randrange(1 << 40):010x}"


def secret(n: int) -> str:
    """A redacted text: bare, with letters and signs that JSON escapes, a path, more than one line."""
    bare = core(n)
    return (
        bare,
        f'café {bare} "quoted" naïve',
        f"home/{bare}/notes.txt",
        f"first\n\t{bare}\nlast",
        f"C:\\files\\{bare}",
        f"€/{bare}/\U0001f511",
        f'über "{bare}" /größe/ \U0001f511',
    )[n % 7]


def nested(text: str, depth: int) -> str:
    """JSON in a JSON string in a JSON string, as tools pass it on."""
    for level in range(depth):
        text = json.dumps({"in": [text]}, ensure_ascii=bool(level % 2))
    return text


def spelt(text: str) -> list[str]:
    """The same inside JSON, as different writers escape it."""
    escaped = json.dumps({"says": text})
    upper = re.sub(r"\\u([0-9a-f]{4})", lambda m: f"\\u{m[1].upper()}", escaped)
    every = "".join(
        f"\\u{ord(sign):04x}" if not sign.isalnum() else sign for sign in text if ord(sign) < 65536
    )
    return [
        escaped,
        json.dumps({"says": text}, ensure_ascii=False),
        escaped.replace("/", "\\/"),
        upper,
        upper.replace("/", "\\/"),
        json.dumps({"says": text}, ensure_ascii=False).replace("/", "\\/"),
        f'{{"says": "{every}"}}',
        *(nested(text, depth) for depth in (2, 3, 4)),
        f"https://h/?q={quote(text, safe='')}&page=2",
        f"<p>{html.escape(text)}</p>",
        "".join(sign if sign.isalnum() and sign.isascii() else f"&#{ord(sign)};" for sign in text),
    ]


def trace(path: Path, count: int, *, redacted: bool = True) -> None:
    """Items, their redactions, and a last item whose metadata has one of the secrets as a key."""
    made: list[Event] = [item(f"i{n}", secret(n)) for n in range(count)]
    made.append(assembly("before", [f"i{n}" for n in range(min(count, 300))], turn_id="t0", step_id="s0"))
    for n in range(count if redacted else 0):
        made.append(event("context.redaction.applied", {"item_id": f"i{n}", "redaction_state": "removed"}))
    made += _telling(count)
    path.write_bytes(lines(made))


def _telling(count: int) -> Iterator[Event]:
    """Later events that say secrets in each place that a trace has."""

    def any_secret() -> str:
        return secret(chosen.randrange(count))

    chosen = random.Random(count)
    told = item("told", f"it was {any_secret()} all along")
    told["data"]["metadata"] = {
        any_secret(): "as a key", "deep": [{f"x {any_secret()}": 1, "y": [any_secret()]}],
        "title": any_secret(), "path": any_secret(), "version": any_secret(), "model": any_secret(),
        "hash": any_secret(), "client": any_secret(), "reason": any_secret(), "time": any_secret(),
        "role": any_secret(), "json": nested(any_secret(), 3),
    }  # fmt: skip
    deep: Any = any_secret()
    for _ in range(150):
        deep = [deep]
    told["data"]["metadata"]["deeper"] = deep
    told["data"]["source_refs"] = [
        {"schema_version": "0.1.1", "source_id": any_secret(), "uri": f"file:///{any_secret()}",
         "source_kind": any_secret(), "digest": any_secret()}
    ]  # fmt: skip
    told["data"]["title"] = any_secret()
    names = [any_secret() for _ in range(6)]
    spellings = [one for n in (*range(7), 15, 63) for one in spelt(secret(n))]
    yield from at(
        "t1", "s1", told, item(f"file:{names[0]}", "a file"), item(names[1], "a name"),
        *(item(f"spelt{n}", text, kind="tool_result") for n, text in enumerate(spellings)),
        item("whole", {"args": {any_secret(): any_secret()}, "json": nested(any_secret(), 2)}),
        select(["told"], {f"file:{names[0]}": f"not needed for {any_secret()}"}),
        budget(900, 10, {names[1]: any_secret()}),
        assembly(
            any_secret(),
            ["told", f"file:{names[0]}", block(names[1], wrapper=f"<{any_secret()}>"), "whole"]
            + [f"spelt{n}" for n in range(len(spellings))]
            + [block("told", block_id=any_secret(), content=any_secret(), role=any_secret())],
        ),
    )  # fmt: skip
    yield from at(
        any_secret(), any_secret(), summary(f"sum {names[2]}", f"We spoke of {any_secret()}."),
        compact(["told", names[1]], f"sum {names[2]}"),
        event(
            "context.missing.detected",
            {"missing_id": any_secret(), "reason": any_secret(), "description": any_secret(),
             "needed_refs": [any_secret()], "severity": any_secret(), "question": any_secret(),
             "scope": any_secret(), "status": any_secret()},
        ),
        event(any_secret(), {"anything": any_secret(), any_secret(): None}, source=any_secret()),
        event("ctxctl.usage.reported", {"input_tokens": 70, "model": any_secret(), "provider": any_secret()}),
        assembly("after", [f"sum {names[2]}", "told"]), thread_id=f"thread {names[3]}",
    )  # fmt: skip
    yield from at("t3", "s3", assembly("then", ["told"], session_id=f"session {names[4]}"))


def said(out: Path, form: str) -> str:
    """Everything that an exported file says, unpacked, and JSON without its escapes."""
    data = out.read_bytes()
    if form == "parquet":
        import pyarrow.parquet as pq

        text = json.dumps(pq.read_table(BytesIO(data)).to_pylist(), default=str)
    elif form == "html":
        page = Page(data)
        text = data.decode() + "".join(block.decode() for block in page.blocks.values())
    else:
        text = data.decode()
    for _ in range(6):
        text = re.sub(r"\\+u00([2-7][0-9a-fA-F])", lambda m: chr(int(m[1], 16)), text)
    return text


def leaks(path: Path, way: tuple[str, ...], count: int, err: str = "") -> list[str]:
    """The secrets that an export says, or that are in what it says beside."""
    out = path.with_name("out")
    assert run(["export", str(path), "--format", *way, "-o", str(out), "--force"]) in (0, 1)
    text = said(out, way[0])
    known = {core(n) for n in range(count)}
    return sorted(set(re.findall(r"s3cret-\d{5}-[0-9a-f]{10}|wordy[a-j]{5}", text + err)) & known)


@pytest.mark.parametrize("way", WAYS, ids=" ".join)
def test_of_three_hundred_redacted_texts_none_is_exported(
    way: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.jsonl"
    trace(path, 300)
    assert leaks(path, way, 300) == []
    assert "s3cret-" not in "".join(capsys.readouterr())


@pytest.mark.parametrize("way", [("events",), ("html",), ("csv", "--table", "changes"), ("markdown",)])
def test_what_nobody_redacted_is_exported(way: tuple[str, ...], tmp_path: Path) -> None:
    """The same trace without its redactions says its secrets, so that the tests above can fail."""
    path = tmp_path / "t.jsonl"
    trace(path, 30, redacted=False)
    assert leaks(path, way, 30) != []


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS, ids=" ".join)
def test_nor_of_ten_thousand(way: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    trace(path, MANY)
    assert leaks(path, way, MANY) == []


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
