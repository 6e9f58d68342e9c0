"""Encodes any value as JSON; what has no JSON becomes a stub with its type, never an exception.

No `__repr__`, `__str__`, property or iterator of a foreign object is run, as it may raise, hang or give
secrets away.  Only a method that makes JSON on purpose is: `model_dump` of pydantic's models.
"""

from __future__ import annotations

import math
from typing import Any, Final

import orjson

DEPTH: Final = 100
"""Levels of nesting that are kept."""
TEXT: Final = 8 << 20
"""Characters of one text that are kept."""
VALUES: Final = 500_000
"""Values of one record that are kept."""
TOTAL: Final = 24 << 20
"""Characters of one record that are kept."""
_STUB: Final = "ctxctl.stub"
_WHOLE: Final = 1 << 63
_SPELLED: Final = frozenset(("datetime", "uuid", "decimal", "pathlib", "fractions", "ipaddress", "zoneinfo"))
"""Modules of the standard library whose values are safe to spell as text."""


def encoded(value: Any) -> bytes:
    """Return the value as JSON; the caller may change the value afterwards."""
    if is_plain(value):
        try:
            return orjson.dumps(value)
        except (orjson.JSONEncodeError, RecursionError):
            pass  # a lone surrogate, or changed by another thread meanwhile
    return orjson.dumps(_JsonCopy().value(value, 0))


def encoded_texts(value: dict[str, Any]) -> bytes:
    """Return a table of short texts as JSON."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        return encoded(value)


def is_plain(value: Any) -> bool:
    """Whether a value is plain JSON within the limits; takes about 0.1 µs for each value in it."""
    left, room = VALUES, TOTAL
    stack: list[Any] = [value]
    depth = 0
    while stack:
        depth += 1
        if depth > DEPTH:
            return False
        level: list[Any] = []
        left -= len(stack)
        if left < 0:
            return False
        for one in stack:
            kind = type(one)
            if kind is str:
                room -= len(one)
                if len(one) > TEXT:
                    return False
            elif kind is dict:
                try:
                    for name, inner in one.items():
                        if type(name) is not str:
                            return False
                        room -= len(name)
                        level.append(inner)
                except RuntimeError:
                    return False
            elif kind is list:
                level += one
            elif kind is float:
                if not math.isfinite(one):
                    return False
            elif kind is int:
                if not -_WHOLE <= one < _WHOLE:
                    return False
            elif kind is not bool and one is not None:
                return False
        if room < 0:
            return False
        stack = level
    return True


def shortened(text: str) -> str:
    """Return a text cut to `TEXT` characters, its lone surrogates replaced."""
    if len(text) > TEXT:
        text = f"{text[:TEXT]}\n[ctxctl: cut here; {len(text)} characters in all]"
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def stub(kind: str, **facts: Any) -> dict[str, Any]:
    """Return the JSON that stands for a value without any."""
    return {_STUB: kind, **facts}


def type_name(value: Any) -> str:
    """Return the name of a value's type, bounded and safe against a type that forges its name."""
    kind = type(value)
    try:
        module, name = type.__getattribute__(kind, "__module__"), type.__getattribute__(kind, "__qualname__")
    except Exception:
        return "object"
    known = isinstance(module, str) and isinstance(name, str)
    return shortened(f"{module}.{name}"[:200]) if known else "object"


class _JsonCopy:
    """Copies one value as JSON, within the limits."""

    def __init__(self) -> None:
        self._above: set[int] = set()
        self._left = VALUES
        self._room = TOTAL

    def value(self, value: Any, depth: int) -> Any:
        self._left -= 1
        if self._left < 0:
            return stub("cut", reason="more than half a million values")
        if value is None or value is True or value is False:
            return value
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, int):
            return self._int(value)
        if isinstance(value, float):
            number = float.__float__(value)
            return number if math.isfinite(number) else stub("float", value=float.__repr__(value))
        if isinstance(value, bytes | bytearray | memoryview):
            return stub("bytes", bytes=value.nbytes if isinstance(value, memoryview) else len(value))
        if depth >= DEPTH:
            return stub("too deep", type=type_name(value))
        if id(value) in self._above:
            return stub("cycle", type=type_name(value))
        self._above.add(id(value))
        try:
            return self._container(value, depth)
        except (KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException as error:
            return stub("unreadable", type=type_name(value), error=type_name(error))
        finally:
            self._above.discard(id(value))

    def _text(self, value: str) -> str:
        text = shortened(str.__str__(value))
        self._room -= len(text)
        return text if self._room >= 0 else "[ctxctl: left out, the record is too large]"

    def _int(self, value: int) -> Any:
        number = int.__int__(value)
        if -_WHOLE <= number < _WHOLE:
            return number
        return (
            stub("int", value=str(number))
            if number.bit_length() < 4000
            else stub("int", bits=number.bit_length())
        )

    def _container(self, value: Any, depth: int) -> Any:
        if isinstance(value, dict):
            return {self._key(k): self.value(v, depth + 1) for k, v in list(dict.items(value))}
        if isinstance(value, list):
            return [self.value(one, depth + 1) for one in list.__getitem__(value, slice(0, VALUES))]
        if isinstance(value, tuple):
            names = getattr(type(value), "_fields", None)
            made = [self.value(one, depth + 1) for one in tuple.__getitem__(value, slice(0, VALUES))]
            if isinstance(names, tuple) and len(names) == len(made):
                return {self._key(name): one for name, one in zip(names, made, strict=True)}
            return made
        if isinstance(value, set | frozenset):
            # A set's order is chance; what is written is sorted.
            items = [self.value(one, depth + 1) for one in list(frozenset(value))]
            return stub("set", items=sorted(items, key=orjson.dumps))
        return self._object(value, depth)

    def _object(self, value: Any, depth: int) -> Any:
        kind = type(value)
        module = kind.__module__
        if module in _SPELLED:
            return self._text(value.isoformat() if hasattr(kind, "isoformat") else str(value))
        if type(kind).__name__ in ("EnumMeta", "EnumType"):
            return self.value(object.__getattribute__(value, "_value_"), depth + 1)
        dump = getattr(kind, "model_dump", None)
        if dump is not None:
            return self.value(dump(value, exclude_unset=True), depth + 1)
        fields = getattr(kind, "__dataclass_fields__", None) or getattr(kind, "__struct_fields__", None)
        if fields:
            return {
                self._key(n): self.value(object.__getattribute__(value, n), depth + 1) for n in list(fields)
            }
        if kind.__name__ == "mappingproxy":
            return self.value(dict(value), depth)
        return stub("object", type=type_name(value))

    def _key(self, key: Any) -> str:
        if isinstance(key, str):
            return shortened(str.__str__(key))
        if key is None or isinstance(key, bool | int | float):
            made = self.value(key, 0)
            return made if isinstance(made, str) else orjson.dumps(made).decode()
        return f"({type_name(key)})"
