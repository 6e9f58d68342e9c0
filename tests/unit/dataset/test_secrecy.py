"""Without `--texts` no file of a dataset holds a secret, a sentence, or what would let one be tried."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import get_args

import pytest

pytest.importorskip("pyarrow", reason="needs the extra `fleet`")
pytest.importorskip("obstore", reason="needs the extra `fleet`")

import xxhash

from ctxctl.dataset.keys import KeyedDigests, Use
from ctxctl.dataset.log import fold
from ctxctl.trace import inputs
from tests.unit.dataset.fleet_kit import opened, rows_in, run, session, words, write

_SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
_SENTENCE = "the merger with Northwind closes on the ninth"
_PLANTED = f"{_SENTENCE} and the key is {_SECRET}"


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sessions whose prompts, answers, branches and tools are what nobody is to see."""
    monkeypatch.setattr(inputs, "YOUNG", -60.0)
    folder = tmp_path / "logs"
    data = session(1, 3, _PLANTED)
    write(folder / "a.jsonl", data)
    write(
        folder / "b.jsonl",
        data.replace(b'"gitBranch":"main"', f'"gitBranch":"{_SECRET}"'.encode()).replace(b"s-1", b"s-9"),
    )
    call = (
        b'"content":[{"type":"tool_use","id":"toolu_1","name":"%s","input":{"file_path":"%s"}},{"type":"text","text":"done'
        % (_SENTENCE.encode(), _SENTENCE.encode())
    )
    write(
        folder / "c.jsonl",
        data.replace(b'"content":[{"type":"text","text":"done', call).replace(b"s-1", b"s-7"),
    )
    write(
        folder / "d.jsonl",
        data.replace(b'"/home/a/p"', f'"/home/a/{_SECRET}"'.encode()).replace(b"s-1", b"s-5"),
    )
    return folder


def _held(place: Path) -> bytes:
    """All bytes of a dataset's files, as they are and unpacked, and their names and what footers say."""
    import pyarrow.parquet as pq

    found = b""
    for path in sorted(place.rglob("*")):
        found += str(path.relative_to(place)).encode()
        if path.is_file():
            found += path.read_bytes()
            if path.suffix == ".parquet":
                footer = pq.read_metadata(path)
                found += repr(footer.to_dict()).encode() + repr(footer.metadata).encode()
                for name, values in pq.read_table(path).to_pydict().items():
                    found += name.encode() + repr(values).encode()
                    found += b"".join(one for one in values if isinstance(one, bytes))
    return found


def _spellings(text: str) -> list[bytes]:
    """What a text could be told by, or tried by, without a key."""
    data = text.encode()
    digests = [
        hashlib.sha256(data),
        hashlib.blake2b(data, digest_size=8),
        hashlib.md5(data),
        hashlib.sha1(data),
    ]
    return [
        data,
        *(one.hexdigest().encode() for one in digests),
        *(one.digest()[:8] for one in digests),
        *(
            str(int.from_bytes(one.digest()[:8], order)).encode()
            for one in digests
            for order in ("big", "little")
        ),
        str(xxhash.xxh64_intdigest(data)).encode(),
    ]


def test_no_file_holds_a_planted_text_or_its_plain_digests(logs: Path, tmp_path: Path) -> None:
    before = opened(tmp_path / "d")
    run(before, [logs])
    held = _held(tmp_path / "d")
    for text in (_SECRET, _SENTENCE, _PLANTED, f"{_PLANTED} 0", f"done {_PLANTED} 0"):
        for spelt in _spellings(text):
            assert spelt not in held, text
    rows = rows_in(fold(before.store, before.head))
    assert rows["contents"]
    assert any("'main'" in row for row in rows["sessions"])  # what may be shown is


def test_a_guess_needs_the_key(logs: Path, tmp_path: Path) -> None:
    before = opened(tmp_path / "d")
    run(before, [logs])
    held = {row[3] for row in rows_in(fold(before.store, before.head))["contents"]}
    guess = hashlib.sha256(f"{_PLANTED} 0".encode()).digest()
    assert repr(KeyedDigests(bytes(range(32))).number("content", guess)) in held
    assert repr(KeyedDigests(bytes(32)).number("content", guess)) not in held


_WORDS = ("yes", "no", "ok", "continue", "run the tests", "hunter2", "approve the merger", "count the boats")


def _tried(held: bytes, texts: Iterable[bytes], key: bytes | None) -> list[tuple[bytes, str]]:
    """The texts of which a file has a digest that whoever has this key (None: none) can work out, and how."""
    found = []
    windows = {held[at : at + 8] for at in range(len(held))}
    for text in texts:
        inner = [text, hashlib.sha256(text).digest(), hashlib.sha256(text).hexdigest().encode()]
        for number, data in enumerate(inner):
            for name, digest in _digests(data, key):
                spelt = {
                    digest, digest.hex().encode(), digest[::-1],
                    *(str(int.from_bytes(digest[:8], order)).encode() for order in ("big", "little")),
                }  # fmt: skip
                if any(len(one) >= 8 and one[:8] in windows and one in held for one in spelt):
                    found.append((text, f"{name} of {number}"))
    return found


def _digests(data: bytes, key: bytes | None) -> Iterator[tuple[str, bytes]]:
    """Every digest that a guess could be tried by, whole and cut to eight bytes."""
    if key is None:
        plain = {name: hashlib.new(name, data).digest() for name in ("sha256", "sha1", "md5", "sha512")}
        plain |= {"blake2b": hashlib.blake2b(data).digest(), "blake2s": hashlib.blake2s(data).digest()}
        plain |= {"xxh64": xxhash.xxh64_digest(data), "xxh3": xxhash.xxh3_128_digest(data)}
        for name, digest in plain.items():
            yield name, digest
            yield f"{name} cut", digest[:8]
    for person in _USES:
        tried = hashlib.blake2b(data, digest_size=8, key=key or b"", person=person)
        yield f"blake2b for {person!r}", tried.digest()


_USES = (*(use.encode() for use in get_args(Use)), b"", b"check", b"seal", b"stream")


def _said_in(turns: int) -> Iterator[bytes]:
    """What a session whose every turn says one of the words holds, as far as anybody would guess."""
    for said in _WORDS:
        for turn in range(turns):
            yield f"{said} {turn}".encode()
            yield f"done {said} {turn}".encode()


def test_what_can_be_guessed_is_found_with_the_key_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dictionary of guesses is tried by plain digests and by keyed ones of other keys, over every file."""
    monkeypatch.setattr(inputs, "YOUNG", -60.0)
    for number, said in enumerate(_WORDS):
        write(tmp_path / "logs" / f"{number}.jsonl", session(number, 2, said))
    before = opened(tmp_path / "d")
    run(before, [tmp_path / "logs"])
    held, guesses = _held(tmp_path / "d"), list(_said_in(2))
    head = (tmp_path / "d" / "dataset.json").read_bytes()
    assert bytes(range(32)).hex().encode() not in held
    for key in (None, bytes(32), b"dataset", hashlib.sha256(head).digest(), bytes.fromhex("00" * 16)):
        assert _tried(held, guesses, key) == []
    with_it = {text for text, _ in _tried(held, guesses, bytes(range(32)))}
    asked = {f"{said} {turn}".encode() for said in _WORDS for turn in range(2)}
    assert with_it >= asked  # the attempt itself works: the key is all that is missing


def test_paths_are_left_out_where_nobody_wants_them(logs: Path, tmp_path: Path) -> None:
    before = opened(tmp_path / "d", paths=False)
    run(before, [logs], asked=words(paths=False))
    held = _held(tmp_path / "d")
    assert str(logs).encode() not in held
    assert b"a.jsonl" not in held


def test_texts_that_are_kept_are_without_secrets(logs: Path, tmp_path: Path) -> None:
    before = opened(tmp_path / "d", texts=True)
    run(before, [logs], asked=words(texts=True))
    held = _held(tmp_path / "d")
    assert _SENTENCE.encode() in held
    assert _SECRET.encode() not in held
