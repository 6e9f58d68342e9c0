"""Redaction on what agents really read and write: ordinary text is left, planted secrets are found."""

from __future__ import annotations

import json
import random
import string
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ctxctl.record.redact import FoundSecrets, SecretRedactor
from ctxctl.tokens.counter import Counter

BYTES = 12_000_000
FOLDERS = ("claude-code", "codex", "pi", "amplifier")


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from texts(inner)


@pytest.fixture(scope="module")
def ordinary() -> list[str]:
    """Distinct texts of captures, some of each folder."""
    import os

    found: dict[str, None] = {}
    for folder in FOLDERS:
        size = 0
        for path in sorted((Path(os.environ["CTXCTL_CORPUS"]) / "data" / folder).rglob("*.jsonl")):
            for line in path.read_bytes().split(b"\n") if path.stat().st_size < 2_000_000 else ():
                try:
                    value = json.loads(line)
                except ValueError:
                    continue
                for text in texts(value):
                    if 20 <= len(text) < 200_000:
                        found[text] = None
                        size += len(text)
            if size > BYTES // len(FOLDERS):
                break
    return list(found)


@pytest.mark.corpus
def test_hardly_any_ordinary_text_is_changed(ordinary: list[str]) -> None:
    redactor = SecretRedactor(b"k" * 32)
    changed = [text for text in ordinary if redactor.text(text, FoundSecrets()) != text]
    assert len(ordinary) > 5000
    assert len(changed) / len(ordinary) < 0.001


class Keeping(SecretRedactor):
    """A redactor that remembers what it replaced, by kind."""

    def __init__(self) -> None:
        super().__init__(b"k" * 32)
        self.replaced: dict[str, list[str]] = {}

    def stub(self, kind: str, secret: bytes, found: FoundSecrets) -> str:
        self.replaced.setdefault(kind, []).append(secret.decode("utf-8", "replace"))
        return super().stub(kind, secret, found)


def everything(most: int) -> Iterator[str]:
    """Distinct texts of every folder of captures, up to so many characters of each."""
    import os

    seen: set[int] = set()
    for folder in sorted((Path(os.environ["CTXCTL_CORPUS"]) / "data").iterdir()):
        size = 0
        for path in sorted(folder.rglob("*.json*")) if folder.is_dir() else ():
            for line in path.read_bytes().split(b"\n") if path.stat().st_size < 4_000_000 else ():
                try:
                    value = json.loads(line)
                except ValueError:
                    value = line.decode("utf-8", "replace")
                for text in texts(value):
                    if len(text) >= 6 and hash(text) not in seen:
                        seen.add(hash(text))
                        size += len(text)
                        yield text
            if size > most:
                break


@pytest.mark.corpus
def test_less_than_a_thousandth_of_the_tokens_is_replaced(capsys: pytest.CaptureFixture[str]) -> None:
    """Of real captures, in which hardly a secret stands: most of it is replaced for nothing."""
    counter, redactor, tokens = Counter("o200k_base"), Keeping(), 0
    for text in everything(600_000):
        tokens += counter.count(text)[0]
        redactor.text(text, FoundSecrets())
    by_kind = {kind: sum(counter.count(one)[0] for one in found) for kind, found in redactor.replaced.items()}
    with capsys.disabled():
        print(f"\nreplaced {sum(by_kind.values())} of {tokens} tokens: {by_kind}")
    assert tokens > 1_000_000
    assert sum(by_kind.values()) < tokens / 1000, by_kind


@pytest.mark.corpus
def test_every_secret_that_is_planted_in_it_is_found(ordinary: list[str]) -> None:
    chance = random.Random(3)
    redactor = SecretRedactor(b"k" * 32)
    kept = [text for text in ordinary if len(text) < 20_000]
    missed = []
    for number in range(2000):
        body = "".join(chance.choices(string.ascii_letters + string.digits, k=35)) + "7"
        secret = ("ghp_", "sk-ant-api03-", "npm_", "hf_", "gsk_")[number % 5] + body
        text = chance.choice(kept)
        at = chance.randrange(len(text))
        made = redactor.text(f"{text[:at]} {secret} {text[at:]}", FoundSecrets())
        if body in made:
            missed.append(made[max(0, made.find(body) - 60) : made.find(body) + 60])
    assert missed == []
