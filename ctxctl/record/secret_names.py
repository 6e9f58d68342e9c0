"""Names of fields whose values are secrets, in JSON and in the arguments of a command."""

from __future__ import annotations

import re
from typing import Any, Final

from ctxctl.record.placeholders import SAID_OF_VALUES, is_innocent
from ctxctl.record.rules import FIELDS, SUFFIXES

_FOLD: Final = str.maketrans("", "", "-_. :*/\u200b\u200c\u200d\ufeff")
_PASSWORD: Final = re.compile(r"passw(?:or)?d|passphrase|passcode|pwd\Z|dbpass\Z")
_OF_HEADERS: Final = re.compile(r"(?:https?)?(?:request|response)headers?")
_NUMBERED: Final = re.compile(r"(?:confirmation|confirm|(?<!s)s)?[0-9]*\Z")
_FLAG: Final = re.compile(r"--?[A-Za-z][A-Za-z0-9_-]*\Z")
_PATH: Final = re.compile(r"(?:[/~]|[A-Za-z]:[\\/])")
_NAMES: Final = ("name", "key", "header", "variable", "id")
_VALUES: Final = frozenset(("value", "values", "val"))
_LEAST: Final = 4
"""Characters of a text that is a secret, and no password."""
_SHORTEST: Final = 1000
"""The least number that is a password: smaller ones are counts."""
_SCHEMA: Final = frozenset(("string", "object", "array", "number", "integer", "boolean", "null"))


def folded(name: str) -> str:
    """Return the name of a field or header in lower case, without separators."""
    return name.translate(_FOLD).lower()


def header_name(name: str) -> str:
    """The folded name of a header, without what OpenTelemetry puts in front of it."""
    return _OF_HEADERS.sub("", folded(name), count=1)


def hides(name: str, value: Any) -> bool:
    """Whether a text or a number is a secret because of the (folded) name of its field."""
    key = name if name in FIELDS else _NUMBERED.sub("", name)
    if key not in FIELDS and not key.endswith(SUFFIXES):
        return False
    password = _PASSWORD.search(key) is not None
    if isinstance(value, int) and not isinstance(value, bool):
        return password and value >= _SHORTEST
    if not isinstance(value, str) or not value:
        return False
    value = value.strip() if not password else value  # a model's tokens begin with blanks
    if password and value.lower().encode("utf-8", "replace") in SAID_OF_VALUES:
        return False
    if (key.endswith("pwd") and _PATH.match(value)) or (not password and len(value) < _LEAST):
        return False  # the working directory of a shell, a letter
    return not is_innocent(value.encode("utf-8", "replace"), words=not password)


def named_beside(field: str, holder: dict[str, Any]) -> str:
    """The name that stands beside a value: `{"name": "Authorization", "value": …}`; empty where none does."""
    if folded(field) not in _VALUES:
        return ""
    low = {name.lower(): value for name, value in holder.items() if len(holder) <= 16}
    return next((low[name] for name in _NAMES if isinstance(low.get(name), str)), "")


def flag_of(argument: Any) -> str:
    """The folded name of an argument that is a flag without its value (`--password`); else empty."""
    if not isinstance(argument, str) or len(argument) > 64 or _FLAG.match(argument) is None:
        return ""
    return folded(argument)


def is_schema(value: Any) -> bool:
    """Whether a field's value is its schema, as in the parameters of a tool."""
    if not isinstance(value, dict):
        return False
    kind = value.get("type")
    known = isinstance(kind, list) or kind in _SCHEMA if isinstance(kind, str | list) else False
    return known or "$ref" in value or "anyOf" in value or "oneOf" in value
