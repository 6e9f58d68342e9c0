"""What a session of Factory Droid's was billed: with a message, or as a sum in the settings beside it."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import orjson

from ctxctl.errors import CtxctlError
from ctxctl.formats.build import Json
from ctxctl.formats.kit.parts import count, string
from ctxctl.formats.kit.usage import usage_record
from ctxctl.formats.wire.anthropic import Anthropic
from ctxctl.trace.source import Source, open_source

_DIALECT = Anthropic()
_MOST: Final = 1 << 20
"""Bytes of settings that are read."""


class Settings(NamedTuple):
    """What `<session>.settings.json` tells of the session."""

    name: str = ""
    """Of the file; empty where there is none."""
    model: str | None = None
    usage: Json | None = None
    """Tokens, summed over the session."""


def settings_of(source: Source) -> Settings:
    """The settings beside a session's file; nothing where that is a stream, a copy, or stands alone."""
    if source.path is None or source.spooled or source.path.suffix != ".jsonl":
        return Settings()
    beside = source.path.with_suffix(".settings.json")
    try:
        with open_source(beside) as file:
            told = orjson.loads(file.read(0, _MOST)) if file.size <= _MOST else None
    except (CtxctlError, OSError, orjson.JSONDecodeError):
        return Settings()
    if not isinstance(told, dict):
        return Settings()
    usage = told.get("tokenUsage")
    usage = usage if isinstance(usage, dict) and any(count(value) for value in usage.values()) else None
    return Settings(beside.name, string(told.get("model")), usage)


def bill(usage: Any, model: str | None) -> Json | None:
    """The record of a bill in Anthropic's names or in Droid's; both count the input without the cache.

    Droid does not tell whether `thinkingTokens` are among its `outputTokens`: they are kept as they stand.
    """
    if not isinstance(usage, dict):
        return None
    if "inputTokens" not in usage:
        return _DIALECT.usage({"usage": usage}, model)
    return usage_record(
        input_tokens=usage["inputTokens"],
        output_tokens=usage.get("outputTokens"),
        cached=usage.get("cacheReadTokens"),
        cache_write=usage.get("cacheCreationTokens"),
        excludes_cache=True,
        model=model,
        native=usage,
    )


def bill_of(record: Json, message: Json, model: str | None) -> Json | None:
    """The bill that stands with an assistant's message."""
    told = (message.get("usage"), record.get("usage"), record.get("tokenUsage"))
    return next((made for one in told if (made := bill(one, model)) is not None), None)
