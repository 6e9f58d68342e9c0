"""The embedded ranks are the published ones, and an encoding made of them is tiktoken's."""

from __future__ import annotations

import hashlib
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tiktoken.load
from tiktoken_ext import openai_public

from ctxctl.errors import UsageError
from ctxctl.tokens import ranks
from ctxctl.tokens.counter import LONGEST_TOKEN


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, Any]]:
    """What the installed tiktoken says of each encoding, with the demanded hash in place of the ranks."""
    monkeypatch.setattr(openai_public, "load_tiktoken_bpe", lambda url, expected_hash: expected_hash)
    return {name: openai_public.ENCODING_CONSTRUCTORS[name]() for name in ranks.NAMES}


@pytest.mark.parametrize("name", ["o200k_base", "cl100k_base"])
def test_ranks_are_the_published_ones(name: str, published: dict[str, dict[str, Any]]) -> None:
    text = ranks.published_text(ranks.ranks(name))
    digest = hashlib.sha256(text).hexdigest()
    assert digest == ranks.PUBLISHED_SHA256[name] == published[name]["mergeable_ranks"]


@pytest.mark.parametrize("name", ranks.NAMES)
def test_pattern_and_special_tokens_are_those_of_tiktoken(
    name: str, published: dict[str, dict[str, Any]]
) -> None:
    assert ranks.PATTERNS[ranks.RANKS_OF[name]] == published[name]["pat_str"]
    assert ranks.special_tokens(name) == published[name]["special_tokens"]
    assert ranks.PUBLISHED_SHA256[ranks.RANKS_OF[name]] == published[name]["mergeable_ranks"]


@pytest.mark.parametrize("name", ["o200k_base", "cl100k_base"])
def test_tokens_are_bytes_and_short_enough(name: str) -> None:
    tokens = ranks.ranks(name)
    assert max(map(len, tokens)) <= LONGEST_TOKEN
    assert all(bytes([byte]) in tokens for byte in range(256))


@pytest.mark.parametrize("name", ranks.NAMES)
def test_get_builds_one_object_without_a_network(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("read a file")

    monkeypatch.setattr(tiktoken.load, "read_file", fail)
    encoding = ranks.get_encoding(name)
    assert encoding is ranks.get_encoding(name)
    assert encoding.name == name
    assert (
        encoding.decode(encoding.encode_ordinary("Zwölf Boxkämpfer, 你好 🎉")) == "Zwölf Boxkämpfer, 你好 🎉"
    )
    assert encoding.n_vocab == {"o200k_base": 200019, "cl100k_base": 100277, "o200k_harmony": 201088}[name]


def test_unknown_encoding_names_the_known_ones() -> None:
    with pytest.raises(UsageError) as caught:
        ranks.get_encoding("p50k_base")
    assert caught.value.slug == "unknown-encoding"
    assert "p50k_base" in caught.value.message
    assert all(name in (caught.value.hint or "") for name in ranks.NAMES)


def test_importing_is_cheap() -> None:
    code = (
        "import sys; from ctxctl.tokens import cache, chunks, counter, model_encodings, ranks; "
        "model_encodings.resolve_encoding('gpt-4o'); "
        "counter.Counter('o200k_base', cache.CountCache('nowhere')); "
        "print([m for m in ('tiktoken', 'sqlite3', 'platformdirs', 'regex') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_build_script_refuses_other_ranks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = runpy.run_path(str(Path(__file__).parents[3] / "scripts" / "build_vocab.py"))
    other = tmp_path / "o200k_base.tiktoken"
    other.write_bytes(b"IQ== 0\n")
    assert script["main"]([str(other)]) == 1
    assert "not the published ranks" in capsys.readouterr().err
    with pytest.raises(ValueError, match="rank 1, expected 0"):
        script["read_published"](b"IQ== 1\n")


def test_build_script_packs_what_unpacks_to_the_same() -> None:
    script = runpy.run_path(str(Path(__file__).parents[3] / "scripts" / "build_vocab.py"))
    text = b"IQ== 0\nIg== 1\nICEhISE= 2\n"
    packed = script["pack"](script["read_published"](text))
    assert ranks.published_text(ranks.unpack_ranks(packed)) == text


def test_counting_keeps_no_second_vocabulary_in_memory() -> None:
    code = (
        "import tracemalloc; tracemalloc.start(); from ctxctl.tokens import counter, ranks; "
        "print(counter.Counter('o200k_base').count('one two ' * 40_000)); "
        "kept = tracemalloc.get_traced_memory()[0]; known = ranks.ranks('o200k_base'); "
        "print(kept < 20e6, tracemalloc.get_traced_memory()[0] > 34e6)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "(80001, True)\nTrue True\n"
