"""Stretches inside a secret text that are secrets by themselves, by their shape."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

_SHAPES: Final = re.compile(
    r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+"  # an address
    r"|\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?\b"  # an account (IBAN)
    r"|\+?\(?\d[\d ()./-]{6,}\d"  # a card, a telephone, any long number
    r"|[A-Za-z0-9_+/=~-][A-Za-z0-9_+/=.~-]{8,}[A-Za-z0-9_+/=~-]"  # a key, told from a word by its digits
)
_WORDS: Final = re.compile(r"[A-Za-z]+(?:[_./+=~-]+[A-Za-z]+)*\d{0,2}(?:\.[a-z]{1,5})?")
"""Words, paths of words and names as programs spell them."""
_DATE: Final = re.compile(r"\d{4}[-/.]\d\d[-/.]\d\d.*|\d\d[-/.]\d\d[-/.]\d{4}.*")
_NAMED: Final = re.compile(
    r"(?i)(?:pass(?:word|phrase|code|wd)?|pwd|secret|token|key|pin|credentials?)[\"'\]]{0,2}\s*(?:=>|:=|=|:|\bis\b)\s*"
    r"[\"']?([^\s\"',;]{6,})"
)
"""What stands behind a name that says so."""
_VOCABULARY: Final = re.compile(r"[a-z]+(?:[_./:-][a-z]+)*")
_ID: Final = re.compile(r"(?:\A|_)(?:id|ids|ref|refs|type|kind|role|name|model|version|digest|hash)\Z|Id\Z")
"""Keys whose values are names, not what is said."""
_DEPTH: Final = 64


def shaped(text: str) -> Iterator[str]:
    """Addresses, long numbers and keys in a text, and what is named a password in it."""
    for match in _NAMED.finditer(text):
        yield match[1].rstrip(".)]}")
    for match in _SHAPES.finditer(text):
        found = match.group().strip(" .-/")
        told = any(map(str.isdigit, found)) or "@" in found
        if told and not _WORDS.fullmatch(found) and not _DATE.fullmatch(found):
            yield found


def values(text: str) -> Iterator[str]:
    """The texts in structured content, given as JSON, except names and words of a vocabulary."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return
    yield from _values(value, 0)


def _values(value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        if not _VOCABULARY.fullmatch(value):
            yield value.strip()
    elif depth < _DEPTH:
        if isinstance(value, dict):
            for key, one in value.items():
                if not (isinstance(one, str) and _ID.search(key)):
                    yield from _values(one, depth + 1)
        elif isinstance(value, list):
            for one in value:
                yield from _values(one, depth + 1)


def spellings(secret: str) -> Iterator[str]:
    """A secret as it is, and as JSON spells it inside a text."""
    yield secret
    plain = json.dumps(secret, ensure_ascii=False)[1:-1]
    if plain != secret:
        yield plain
    escaped = json.dumps(secret)[1:-1]
    if escaped not in (secret, plain):
        yield escaped
