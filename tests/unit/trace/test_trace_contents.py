"""The content store: one object per digest, texts on demand."""

from __future__ import annotations

import hashlib
import json
import threading

import pytest

from ctxctl.trace import contents as module
from ctxctl.trace.contents import Contents, canonical, digest_of_raw
from ctxctl.trace.source import Source


def store(*raws: bytes) -> tuple[Contents, bytes]:
    data = b"\n".join(raws)
    return Contents(Source.from_bytes("memory", data)), data


def test_digest_is_that_of_the_text() -> None:
    contents, line = store(b'"caf\\u00e9"')
    content = contents.intern(line, line, 0)
    assert content.digest == hashlib.sha256("café".encode()).hexdigest()
    assert (content.size, content.form) == (5, "text")
    assert contents.text(content) == "café"


def test_spellings_of_one_text_are_one_content() -> None:
    raws = [b'"caf\\u00e9"', '"café"'.encode(), b'"\\u0063af\\u00e9"']
    contents, data = store(*raws)
    first, *others = [contents.intern(raw, data, 0) for raw in raws]
    assert all(other is first for other in others)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (b'{"b":1,"a":[1,2]}', b'{ "a" : [1, 2], "b" : 1 }'),
        (b"[18446744073709551616]", b"[ 18446744073709551616 ]"),
        (b'{"a":1.50}', b'{"a":1.5}'),
    ],
)
def test_structured_contents_are_canonical_json(one: bytes, other: bytes) -> None:
    contents, data = store(one, other)
    first = contents.intern(one, data, 0)
    assert contents.intern(other, data, 0) is first
    assert first.form == "json"
    text = contents.text(first)
    assert json.loads(text) == json.loads(one)
    assert text == canonical(json.loads(one))
    assert digest_of_raw(one) == first.digest


def test_texts_are_read_again_from_the_source() -> None:
    raws = [json.dumps(f"text {number} " + "é" * 100).encode() for number in range(50)]
    contents, _ = store(*raws)
    offset, made = 0, []
    for raw in raws:
        made.append(contents.intern(raw, raw, offset))
        offset += len(raw) + 1
    contents._texts.clear()
    assert [contents.text(content) for content in made] == [json.loads(raw) for raw in raws]


def test_a_text_that_the_file_does_not_hold_is_spilled() -> None:
    contents, _ = store(b'"something else"')
    content = contents.intern(b'"repaired"', b"{damaged}", 0)
    contents._texts.clear()
    assert contents.text(content) == "repaired"
    contents.close()
    assert contents.text(content) == ""


def test_the_cache_is_bounded_but_keeps_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CACHE_BYTES", 100)
    raws = [json.dumps(str(number) * 60).encode() for number in range(9)]
    contents, data = store(*raws)
    for raw in raws:
        contents.intern(raw, data, 0)
    assert list(contents._texts.values()) == ["8" * 60]


def test_resolve_knows_only_what_was_shown_before() -> None:
    contents, data = store(b'"shown later"')
    content = contents.intern(data, data, 500)
    assert contents.resolve(content.digest, 500) is None
    assert contents.resolve(content.digest, 501) is content
    contents.intern(data, data, 100)
    assert contents.resolve(content.digest, 101) is content
    assert contents.resolve("0" * 64, 1000) is None
    assert contents.by_digest(content.digest) is content


def test_derived_and_literal_contents() -> None:
    contents, data = store(b'"middle"')
    base = contents.intern(data, data, 0)
    wrapped = contents.derive("<", base, ">")
    assert contents.derive("<", base, ">") is wrapped
    assert contents.text(wrapped) == "<middle>"
    literal = contents.literal("<middle>")
    assert literal is wrapped
    assert contents.by_digest(wrapped.digest) is None
    large = contents.literal("z" * 10_000)
    contents._texts.clear()
    assert contents.text(large) == "z" * 10_000
    assert contents.text(wrapped) == "<middle>"
    assert contents.text(contents.literal("half \ud83d")) == "half \ufffd"
    contents.close()


def test_a_text_made_by_us_and_then_shown_is_known_by_its_digest() -> None:
    contents, data = store(b'"twice"')
    made = contents.literal("twice")
    assert contents.by_digest(made.digest) is None
    assert contents.intern(data, data, 0) is made
    assert contents.by_digest(made.digest) is made


def test_threads_get_one_object_per_digest() -> None:
    raws = [json.dumps(f"text {number % 40}").encode() for number in range(400)]
    contents, data = store(*raws)
    found: list[set[int]] = []

    def work() -> None:
        found.append({id(contents.intern(raw, data, 0)) for raw in raws})

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set().union(*found)) == 40


def test_a_closed_store_holds_no_file_open() -> None:
    contents, _ = store(b'"x"')
    long = contents.literal("long " * module.LITERAL_BYTES)
    spill = contents._spill
    assert spill is not None
    assert contents.text(long)
    contents.close()
    assert spill.closed
    assert contents.text(long) == ""


def test_what_became_known_aside_is_forgotten_and_what_was_known_is_not() -> None:
    contents, data = store(b'"middle"')
    base = contents.intern(data, data, 0)
    with contents.aside():
        first = contents.derive("<", base, ">")
    assert contents.text(first) == "<middle>"
    # One object a digest: the forgotten one must not come back beside the one that is made anew.
    literal = contents.literal("<middle>")
    assert literal is not first
    assert contents.derive("<", base, ">") is literal
    mark = contents.mark()
    with contents.aside():
        contents.derive("(", base, ")")
    assert contents.mark() == mark
    assert contents.derive("<", base, ">") is literal
    contents.close()


def test_a_spelling_that_comes_again_is_not_decoded_and_complained_of_again() -> None:
    deep = b"[" * 300 + b"]" * 300
    raws = [deep, b'"one"', b'"two"', b'"three"', deep]
    contents, data = store(*raws)
    faults: list[str] = []
    found = [
        contents.intern(raw, data, offset, lambda slug, _message: faults.append(slug))
        for offset, raw in enumerate(raws)
    ]
    assert found[-1] is found[0]
    assert faults == ["too-deep"]
