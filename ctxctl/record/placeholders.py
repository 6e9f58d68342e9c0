"""What stands in a secret's place and is none: references, placeholders, types, words about a value."""

# ruff: noqa: E501 - patterns and lists of words stand in one piece

from __future__ import annotations

import re
from typing import Final

from ctxctl.linear import re2

STUB: Final = b"[redacted "
"""What the stub of a secret begins with."""
_PLAIN: Final = re2.compile(
    rb"[A-Za-z][a-z]+(?:[A-Z][a-z]+){0,5}\d{0,2}|[A-Z]+\d{0,2}|\d{1,12}(?:\.\d+)*|[*.xX-]+"
    rb"|[A-Za-z]+\d{0,2}(?:[-_. /][A-Za-z]+\d{0,2})+"
)
"""Words, names as programs spell them, and numbers."""
_OBJECTS: Final = (
    "process|os|env|self|this|config|settings|args|options|opts|params|req|request|ctx|context|secrets?|vars?"
)
_EXAMPLES: Final = "example|placeholder|change[_-]?me|dummy|redacted|insert|replace"
_PLACEHOLDER: Final = re2.compile(
    r"(?:\$[a-z_][a-z0-9_]*|\$[0-9@*#?]|\$[({].*"  # a shell's
    r"|%[a-z]|%\([a-z_]+\)[a-z]?|%[a-z_]+%|%?\{[a-z_][a-z0-9_.\[\]'\"()]*\}"  # of a template
    r"|(?:~|/(?:home|users|root|tmp|var|usr|opt|etc|mnt|private|work|app|srv|data))/.*"
    r"|\[redacted.*|<[^<>]*>|<[a-z _-]*"
    rf"|(?:{_OBJECTS})\??\.[a-z_][a-z0-9_.?\[\]'\"()]*"  # of a program
    r"|[a-z_]+(?:::[a-z_]+)+(?:\(.*)?|[a-z_]+\?\.[a-z_?.]+|[a-z_][a-z0-9_.]*\([^()]*\)|[a-z_.]*getenv.*"
    r"|(?:str|int|bool|string)(?:[\[|?].*)?"
    r"|[x*.•-]+|[a-z_-]*x{4,}[x_-]*|.{0,10}(?:\.\.\.|…)"  # masked or cut
    rf"|[a-z_ -]*(?:{_EXAMPLES})[a-z_ -]*[0-9]{{0,2}}|your[-_ ][a-z_ -]*[0-9]{{0,2}}"
    r"|(?:my|the|some|an?)[-_ ][a-z_ -]*(?:secret|token|key|here|value|passwd)[0-9]{0,2}"
    r"|[a-z_-]*(?:0?123456789?0?(?:abcdef)?)+"
    ")".encode()
)
"""Values, in small letters, that refer to a secret or stand for one."""
_HOLDS: Final = re2.compile(rb"\$\{[a-z_][a-z0-9_.]{0,64}[}:-]|\{\{[^{}]{0,100}\}\}|\{\{\z|\*\*\*")
"""What values hold, in small letters, that are filled in later, or are masked."""
_LONGEST: Final = 200
"""Bytes of what can stand for a secret."""
_VARIABLE: Final = re2.compile(rb"\$[A-Z_][A-Z0-9_]*[/:.,@-].*")
"""A variable of a shell, and what stands behind it."""
_REFERENCE: Final = re2.compile(
    rb"(?:[A-Za-z_][A-Za-z0-9_.]*\(|\[redacted|.*[[<>]redacted"
    rb"|![a-z]+\z|\*[A-Za-z_][A-Za-z0-9_]*\z|(?:vault:|arn:|projects/|op://|ref\+|file:|/run/secrets/))"
)
"""What references begin with that stand without quotes."""
_TYPE: Final = re2.compile(
    rb"(?:Optional|Union|List|Field|Secret|Annotated|Mapped|Column|Literal|None|Any)\b.*|[a-z]+(?:\.[A-Za-z_]+)+"
)
_NUMBER: Final = re2.compile(rb"[0-9]{1,4}|true|false|True|False")
_NAME: Final = re2.compile(
    rb"[A-Z][A-Za-z]*[a-z][A-Za-z]*|[a-z]+[A-Z][A-Za-z]*|[A-Za-z_]+_[A-Za-z_]*|_[a-z]+"
)
"""What programs call things: `SecretStr`, `userInput`, `new_password`."""
_WORD: Final = re2.compile(
    rb"[A-Za-z_]+(?:[-.][A-Za-z_]+)*|(?:password|passwd|pass|pwd|pw|secret|token|value|arg|var)[0-9]+"
    rb"|[0-9]{1,4}|.*(?:==|!=|\+=).*"
)
SAID_OF_VALUES: Final = frozenset(
    b"""none null nil true false yes no on off str string int integer bool boolean bytes byte float number any
    object unknown undefined text varchar char blob password passwd passphrase passcode pwd secret token hidden
    required optional missing invalid incorrect correct wrong failed failure expired disabled enabled empty unset
    set changed changeme change_me placeholder example redacted masked default field input prompt value data user
    username email name type token key auth basic bearer plain plaintext hash hashed encrypted md5 sha1 sha256
    sha512 bcrypt scrypt argon2 argon2id utf8 utf-8 base64 int32 int64 float64 todo tbd n/a not your the this that
    and with for from must should will can cannot is are was were has have when where which what how why dummy
    insert replace replace_me replaceme test testing here same see""".split()
)
"""Words that describe a value and are none."""
_SAID_OF_PASSWORDS: Final = frozenset(
    (b"none", b"null", b"true", b"false", b"required", b"text", b"hidden", b"secret")
)
_A_PASSWORD: Final = re2.compile(rb"[a-z_-]*password[a-z_-]*")
_PROSE: Final = re.compile(
    rb"[A-Za-z'\x80-\xff-]+[.,:;!?)]*|\(?[A-Za-z'-]+[.,:;!?)]*|[0-9]{1,3}[.,:;!?)]*|[-/&+]|%[sd]|\{\w*\}"
)
"""A word of a sentence."""


_OF_SENTENCES: Final = frozenset(
    b"""must should shall will can cannot is are was were has have had be been your the this that these not for
    with from at of to if when than please required invalid incorrect least most characters""".split()
)
"""Words of sentences about a value."""


_A_WORD: Final = r"(?:[A-Z]?[a-z]+|[A-Z]+|[a-z]{2,}(?:[A-Z][a-z]+)+|\d+)\d{0,2}"
_OF_TEXT: Final = re2.compile(f"{_A_WORD}(?:[-_. /]{_A_WORD})*".encode())


def begins_text(data: bytes) -> bool:
    """Whether what stands behind a whole key is a word of another text, by its letters, and no part of the
    key."""
    return _OF_TEXT.fullmatch(data) is not None


def is_word(data: bytes) -> bool:
    """Whether what could be a part of a key is words or a number."""
    return _PLAIN.fullmatch(data) is not None


def is_innocent(secret: bytes, *, words: bool) -> bool:
    """Whether a text in a secret's place is a placeholder or, with `words`, a word or a number."""
    if secret.startswith(STUB) or _stands_for(secret):
        return True
    if not words:
        low = secret.lower()
        return low in _SAID_OF_PASSWORDS or _A_PASSWORD.fullmatch(low) is not None
    return _PLAIN.fullmatch(secret) is not None


def _stands_for(value: bytes) -> bool:
    if len(value) > _LONGEST:
        return False
    low = value.lower()
    return bool(_PLACEHOLDER.fullmatch(low) or _HOLDS.search(low) or _VARIABLE.fullmatch(value))


def is_left(weak: int, value: bytes) -> bool:
    """Whether a rule of this weakness (`Rule.weak`) leaves a text in a secret's place as it is."""
    if weak < 3:
        return is_innocent(value, words=weak > 1)
    if weak == PHRASE:
        return is_innocent(value, words=True) or _is_prose(value)
    if value.startswith(STUB) or _stands_for(value) or _REFERENCE.match(value) is not None:
        return True
    if value.strip(b",.:").lower() in SAID_OF_VALUES or _TYPE.fullmatch(value) is not None:
        return True
    if weak == 3:
        return _NUMBER.fullmatch(value) is not None
    return (_WORD if weak > 4 else _NAME).fullmatch(value) is not None


PHRASE: Final = 6
"""The weakness (`Rule.weak`) of rules for values with spaces."""


def _is_prose(value: bytes) -> bool:
    """Whether a text with spaces is a sentence about a secret, and not a phrase that is one.

    A sentence has words alone, or one of those that hardly stand in a phrase of few words.
    """
    words = value.split()
    if all(_PROSE.fullmatch(word) and not word.isdigit() for word in words):
        return True
    return any(word.strip(b".,:;!?()").lower() in _OF_SENTENCES for word in words)
