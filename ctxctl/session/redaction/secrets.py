"""Find any number of secrets in texts.

Texts are also read without escapes of JSON (at any depth), URLs and HTML (`Unescaped`), so a secret is found
in any spelling.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, Final, NamedTuple, Protocol, TypeVar

LEAST: Final = 6
"""Shortest secret, in characters: shorter ones occur by chance."""
_MAX_YOUNG: Final = 32
"""Most secrets that are searched one by one before an automaton is built."""
_HEAD: Final = 128
"""Characters at the start of a longer secret that are searched; the rest is compared."""
_MAX_TIER: Final = 1 << 19
"""Most characters of secrets' heads in one automaton."""
_MEMORY: Final = 256 << 20
_LONE: Final = re.compile("[\ud800-\udfff]")
"""Characters that the automata cannot read. They are replaced one by one, so that offsets stay."""


class Held(NamedTuple):
    """A secret found in a text."""

    start: int
    end: int
    secret: str


class Secrets:
    """Secrets with the items that they belong to, in the order of addition.

    A search takes time linear in the text, however many secrets there are.  They are in automata of growing
    sizes, so that adding one is cheap too.

    Args:
        readings: Whether they are also found in other spellings, in a text with escapes.
    """

    def __init__(self, *, readings: bool = True) -> None:
        self._of: dict[str, str] = {}
        self._order: dict[str, int] = {}
        self._young: dict[str, None] = {}
        """Secrets that are in no automaton yet."""
        self._tiers: list[_Tier] = []
        self._readings = Secrets(readings=False) if readings else None
        """The secrets without escapes, searched in texts that have some."""
        self._spells: dict[str, str] = {}
        """The first added secret of each reading."""

    def __len__(self) -> int:
        return len(self._of)

    def add(self, secret: str, name: str) -> None:
        """Add a secret. One shorter than `LEAST` is ignored."""
        if len(secret) < LEAST:
            return
        if secret not in self._of:
            self._order.setdefault(secret, len(self._order) + 1)
            self._young[secret] = None
            self._of[secret] = name
            self._read(secret, name)
            if len(self._young) > _MAX_YOUNG:
                self._settle()

    def discard(self, secrets: Collection[str]) -> None:
        """Remove some secrets, if known. The others keep their numbers."""
        gone = [secret for secret in secrets if self._of.pop(secret, None) is not None]
        old = [secret for secret in gone if secret not in self._young]
        for secret in gone:
            self._young.pop(secret, None)
        if self._readings is not None:
            read = [_reading(secret) for secret in gone]
            mine = [one for one, secret in zip(read, gone, strict=True) if self._spells.get(one) == secret]
            self._readings.discard(mine)
            for one in mine:
                del self._spells[one]
        if old:
            self._tiers = [tier.without(old) for tier in self._tiers]

    def _read(self, secret: str, name: str) -> None:
        if self._readings is None:
            return
        reading = _reading(secret)
        if len(reading) >= LEAST and reading not in self._spells:
            self._spells[reading] = secret
            self._readings.add(reading, name)

    def number(self, secret: str) -> int:
        """Return the number of a secret, from 1."""
        return self._order[secret]

    def of(self, secret: str) -> str:
        """Return the name that a secret belongs to."""
        return self._of[secret]

    def held_by(self, text: str) -> list[Held]:
        """Return the secrets in a text, in order; of two that overlap, the first, else the longer."""
        if len(text) < LEAST or not self._of:
            return []
        if not text.isascii():
            text = _LONE.sub("\ufffd", text)
        found = [Held(at, at + len(one), one) for one in self._young for at in _places(text, one)]
        for tier in self._tiers:
            found += tier.held_by(text)
        if self._readings is not None and SPELT.search(text) is not None:
            view = Unescaped(text)
            found += [
                Held(view.at(held.start), view.end(held.end), self._spells[held.secret])
                for held in self._readings.held_by(view.text)
            ]
        return list(apart(found)) if len(found) > 1 else found

    def first(self, text: str) -> str | None:
        """Return the name that the first secret in a text belongs to; None without a secret."""
        held = self.held_by(text)
        return self._of[held[0].secret] if held else None

    def masked(self, text: str, mask: Callable[[str], str]) -> str:
        """Return a text with each secret replaced by `mask(secret)`."""
        pieces, end = [], 0
        for held in self.held_by(text):
            pieces += [text[end : held.start], mask(held.secret)]
            end = held.end
        return "".join([*pieces, text[end:]]) if pieces else text

    def _settle(self) -> None:
        """Build an automaton of the new secrets and of automata that are not much larger."""
        secrets, self._young = list(self._young), {}
        size = _size(secrets)
        while self._tiers and (self._tiers[-1].size <= 2 * size and self._tiers[-1].size + size <= _MAX_TIER):
            secrets += self._tiers[-1].secrets
            size += self._tiers.pop().size
        self._tiers.append(_Tier(secrets))


class _Tier:
    """Secrets in one automaton, which is built on first use."""

    def __init__(self, secrets: list[str]) -> None:
        self.secrets = dict.fromkeys(secrets)
        self.size = _size(secrets)
        self._by_head: dict[str, list[str]] = {}
        self._find: Any = None

    def without(self, secrets: Collection[str]) -> _Tier:
        """Return an automaton without some of its secrets."""
        if self.secrets.keys().isdisjoint(secrets):
            return self
        gone = set(secrets)
        return _Tier([secret for secret in self.secrets if secret not in gone])

    def held_by(self, text: str) -> Iterator[Held]:
        """Yield its secrets in a text, in order and without overlaps."""
        if self._find is None:
            self._find = self._made()
        at: int | None = 0
        while at is not None:
            at, before = None, at
            end = before
            for match in self._find(text[before:] if before else text):
                start, stop = before + match.start(), before + match.end()
                if start < end:
                    if stop > end:  # it may contain the beginning of another secret
                        at = end
                        break
                    continue
                secret = self._longest(text, start, stop)
                if secret is None:
                    at = start + 1
                    break
                end = start + len(secret)
                yield Held(start, end, secret)

    def _longest(self, text: str, start: int, stop: int) -> str | None:
        """Return the longest secret at a place where the longest head ends at `stop`."""
        for end in range(stop, start + LEAST - 1, -1):
            for secret in self._by_head.get(text[start:end], ()):
                if text.startswith(secret, start):
                    return secret
        return None

    def _made(self) -> Any:
        from ctxctl.linear import re2

        if not self.secrets:
            return lambda text: ()
        for secret in sorted(self.secrets, key=len, reverse=True):
            self._by_head.setdefault(secret[:_HEAD], []).append(secret)
        options = re2.Options()
        options.max_mem = _MEMORY
        options.longest_match = True
        options.log_errors = False
        return re2.compile("|".join(map(re2.escape, self._by_head)), options).finditer


def _reading(secret: str) -> str:
    return secret if secret.isprintable() and SPELT.search(secret) is None else Unescaped(secret).text


def _size(secrets: list[str]) -> int:
    return sum(min(len(secret), _HEAD) for secret in secrets)


def _places(text: str, secret: str) -> Iterator[int]:
    at = text.find(secret)
    while at >= 0:
        yield at
        at = text.find(secret, at + len(secret))


_ESCAPE: Final = re.compile(
    r"(?:\\(?:u005[cC])?)+"  # backslashes, of as many levels as there are
    r"(?:u([dD][89abAB][0-9a-fA-F]{2})\\+u([dD][c-fC-F][0-9a-fA-F]{2})"  # one character above 65,535
    r"|u([0-9a-fA-F]{4})|([nrtbf]))?"
    r"|[\x00-\x1f]"
    r"|((?:%[0-9a-fA-F]{2})+)"  # as URLs spell it
    r"|&(#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]{2,8});"  # as HTML does
)
SPELT: Final = re.compile(r"[\\%&]")
"""What a text with escapes contains at least."""


class Unescaped:
    """A text with its escapes of JSON, URLs and HTML replaced by what they spell.

    Line ends and tabs are read as spaces.

    All spellings of one text give the same reading, also the text itself if it has backslashes: the level of
    an escape is ambiguous, so a reading is only compared with readings, and never shown.
    """

    def __init__(self, text: str) -> None:
        pieces: list[str] = []
        self._read: list[int] = [0]
        """Offsets in the reading at which the distance to the text changes."""
        self._stands: list[int] = [0]
        """The text's offset for each of them."""
        size = last = 0
        for match in _ESCAPE.finditer(text):
            pieces.append(text[last : match.start()])
            size += match.start() - last
            last = match.start()
            for sign, width in _signs(match):
                pieces.append(sign)
                if sign:
                    self._read.append(size)
                    self._stands.append(last)
                size += len(sign)
                last += width
                self._read.append(size)
                self._stands.append(last)
        self.text = "".join([*pieces, text[last:]])

    def at(self, place: int) -> int:
        """Return where in the text a character of the reading begins."""
        n = bisect_right(self._read, place) - 1
        return self._stands[n] + place - self._read[n]

    def end(self, place: int) -> int:
        """Return where in the text a range ends that ends before `place` of the reading, above 0."""
        n = bisect_right(self._read, place - 1) - 1
        after = self._stands[n] + place - self._read[n]
        if n + 1 < len(self._read) and self._read[n + 1] == place:
            return max(after, self._stands[n + 1])
        return after


def _signs(match: re.Match[str]) -> Iterator[tuple[str, int]]:
    """Yield what each escape of a match spells, and its length."""
    if match[5] is not None:
        octets = bytes.fromhex(match[5].replace("%", ""))
        at = 0
        while at < len(octets):
            width = next((n for n in range(1, 5) if _is_character(octets[at : at + n])), 1)
            yield _spaced(octets[at : at + width].decode("utf-8", "replace")), 3 * width
            at += width
    elif match[6] is not None:
        spelt = html.unescape(match[0])
        yield (_spaced(spelt) if len(spelt) == 1 else spelt), len(match[0])
    else:
        yield _sign(match), len(match[0])


def _is_character(octets: bytes) -> bool:
    try:
        return len(octets.decode()) == 1
    except UnicodeDecodeError:
        return False


def _spaced(sign: str) -> str:
    return " " if sign < " " else sign


def _sign(match: re.Match[str]) -> str:
    high, low, unit, letter = match.groups()[:4]
    if high:
        return chr(0x10000 + ((int(high, 16) & 0x3FF) << 10) + (int(low, 16) & 0x3FF))
    if unit:
        return _spaced(chr(int(unit, 16)))
    return " " if letter or match[0] < " " else ""


class Stretch(Protocol):
    """A range of a text."""

    @property
    def start(self) -> int:
        """Offset of its first character."""

    @property
    def end(self) -> int:
        """Offset after its last character."""


_Stretch = TypeVar("_Stretch", bound=Stretch)


def apart(found: Iterable[_Stretch]) -> Iterator[_Stretch]:
    """Return ranges in order; of two that overlap, the first, else the longer."""
    end = 0
    for one in sorted(found, key=lambda held: (held.start, -held.end)):
        if one.start >= end:
            yield one
            end = one.end
