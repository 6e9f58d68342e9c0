"""Answers of captures as bytes, whatever the names of files are that they tell."""

from __future__ import annotations

from typing import Any

import msgspec

from ctxctl.text import visible


def packed(answer: object) -> bytes:
    """An answer as MessagePack; a text that is no UTF-8, as a file's name can be, is made visible."""
    try:
        return msgspec.msgpack.encode(answer)
    except UnicodeEncodeError:
        return msgspec.msgpack.encode(_sayable(msgspec.to_builtins(answer, builtin_types=(bytes,))))


def _sayable(value: Any) -> Any:
    if isinstance(value, str):
        return value if value.isascii() or _is_utf8(value) else visible(value, newline=True)
    if isinstance(value, dict):
        return {_sayable(key): _sayable(held) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [_sayable(one) for one in value]
    return value


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
