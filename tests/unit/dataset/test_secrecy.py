"""Without `--texts` no file of a dataset holds a secret, a sentence, or what would let one be tried."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="needs the extra `fleet`")
pytest.importorskip("obstore", reason="needs the extra `fleet`")

import xxhash

from ctxctl.dataset.keys import KeyedDigests
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
    """All bytes of a dataset's files, as they are and unpacked."""
    import pyarrow.parquet as pq

    found = b""
    for path in place.rglob("*"):
        if path.is_file():
            found += path.read_bytes()
            if path.suffix == ".parquet":
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
