"""A fleet of any size from real shapes: captures repeated under other ids, in other words, at other times.

Every copy has the structure of its shape: as many records, calls, windows and tokens or nearly so.  What ties
captures together is changed in it (ids of sessions, records, requests and calls), plain words are exchanged
for others of the same length, and times are moved by whole weeks.  The same number gives the same copy.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from ctxctl.errors import CtxctlError
from ctxctl.model.results import Step
from ctxctl.session.facade import Inspector

_UUID = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_ID = re.compile(rb"\b(toolu|msg|req|call|chatcmpl|resp|rs|fc|ses|prt)(?:_|-)(?:vrtx_)?([A-Za-z0-9]{8,64})\b")
_TIME = re.compile(rb"\b(20[0-9]{2})-([01][0-9])-([0-3][0-9])(?=[T ][0-2][0-9]:[0-5][0-9])")
_WORD = re.compile(rb"(?<=[a-z] )[a-z]{4,12}(?=[ ,.])")
_MONTHS = 6
"""Months over which a fleet is spread."""
_DIGITS = b"0123456789abcdef"
_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"


class Shape(NamedTuple):
    """A capture that others are made of."""

    path: Path
    folder: str
    """Captures of one format are below it."""
    size: int


class Made(NamedTuple):
    """A fleet."""

    captures: int
    bytes: int


def shapes(places: Iterable[tuple[str, Path]], mean: int) -> list[Shape]:
    """Single files to make a fleet of, less the largest: they have `mean` bytes on average, or fewer."""
    found = [
        Shape(path, folder, path.stat().st_size)
        for folder, place in places
        for path in sorted(place.rglob("*.jsonl"))
        if path.is_file() and "subagents" not in path.parts and not path.name.startswith("agent-")
    ]
    found = [one for one in found if _has_requests(one.path)]
    found.sort(key=lambda one: (one.size, str(one.path)))
    while found and sum(one.size for one in found) > mean * len(found):
        found.pop()
    return sorted(found, key=lambda one: str(one.path))


def _has_requests(path: Path) -> bool:
    """Whether it is a session: some logs hold notes alone."""
    try:
        with Inspector.open(path, learned="none") as inspector:
            return any(isinstance(one, Step) for one in islice(inspector.replay(), 1))
    except CtxctlError:
        return False


def make(found: list[Shape], to: Path, captures: int) -> Made:
    """Write so many captures below a directory."""
    texts = [one.path.read_bytes() for one in found]
    words = _vocabulary(texts)
    whole = 0
    for number in range(captures):
        shape, text = found[number % len(found)], texts[number % len(found)]
        data = copy_of(text, number, words)
        folder = to / shape.folder / f"project-{number % 97:02}"
        folder.mkdir(parents=True, exist_ok=True)
        name = _UUID.sub(lambda match, n=number: _uuid(match[0], n), shape.path.name.encode()).decode()
        (folder / f"{number:07}-{name[-60:]}").write_bytes(data)
        whole += len(data)
    return Made(captures, whole)


def copy_of(text: bytes, number: int, words: dict[int, list[bytes]]) -> bytes:
    """A capture as the copy of a number."""
    text = _UUID.sub(lambda match: _uuid(match[0], number), text)
    text = _ID.sub(lambda match: match[0][: -len(match[2])] + _spelled(match[2], number, _LETTERS), text)
    text = _TIME.sub(lambda match: _day(match, number), text)
    known: dict[bytes, bytes] = {}

    def other(match: re.Match[bytes]) -> bytes:
        word = match[0]
        if word not in known:
            same = words[len(word)]
            at = int.from_bytes(blake2b(word, digest_size=4, key=number.to_bytes(4)).digest())
            known[word] = same[at % len(same)] if same else word
        return known[word]

    return _WORD.sub(other, text)


def _vocabulary(texts: list[bytes]) -> dict[int, list[bytes]]:
    """The words that there are, by length."""
    found: dict[int, set[bytes]] = {n: set() for n in range(4, 13)}
    for text in texts:
        for word in _WORD.findall(text):
            found[len(word)].add(word)
    return {size: sorted(some) for size, some in found.items()}


def _uuid(was: bytes, number: int) -> bytes:
    plain = _spelled(was.replace(b"-", b""), number, _DIGITS)
    return b"-".join((plain[:8], plain[8:12], plain[12:16], plain[16:20], plain[20:]))


def _spelled(was: bytes, number: int, letters: bytes) -> bytes:
    """Another id of the same length."""
    made = b""
    while len(made) < len(was):
        made += blake2b(was + made, digest_size=64, key=number.to_bytes(4)).digest()
    return bytes(letters[one % len(letters)] for one in made[: len(was)])


def _day(match: re.Match[bytes], number: int) -> bytes:
    """The same day of another month of the last ones."""
    month = 2026 * 12 + 9 - number * 7919 % _MONTHS
    return b"%04d-%02d-%02d" % (month // 12, month % 12 + 1, min(int(match[3]), 28))


def change(to: Path, every: int) -> int:
    """Let one capture in so many grow by a record that it has; how many did."""
    grown = 0
    for number, path in enumerate(_files(to)):
        if number % every == 0:
            lines = path.read_bytes().rstrip(b"\n").split(b"\n")
            last = _UUID.sub(lambda match, n=number: _uuid(match[0], n + (1 << 20)), lines[-1])
            path.write_bytes(b"\n".join([*lines, last]) + b"\n")
            grown += 1
    return grown


def _files(to: Path) -> Iterator[Path]:
    yield from sorted(path for path in to.rglob("*.jsonl") if path.is_file())
