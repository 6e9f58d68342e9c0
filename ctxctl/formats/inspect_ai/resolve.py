"""Puts back what a log took out of its events: long texts, and messages that several events share."""

from __future__ import annotations

from typing import Any, Final

from ctxctl.formats.build import Json

_SCHEMES: Final = ("attachment://", "tc://")
"""Of addresses of texts; `tc` is what logs of 2024 have, also where a newer version has rewritten them."""
_MAX_DEPTH: Final = 100


class Pools:
    """What a sample holds apart from its events."""

    def __init__(self, sample: Json) -> None:
        self._texts: Json = {**_dict(_dict(sample.get("transcript")).get("content"))}
        self._texts |= _dict(sample.get("attachments"))
        data = sample.get("events_data")
        data = data if isinstance(data, dict) else {}
        pooled = _list(data.get("messages")) or _list(sample.get("message_pool"))
        self._messages = [self.texts(message) for message in pooled]
        pooled = _list(data.get("calls")) or _list(sample.get("call_pool"))
        self._calls = [self.texts(message) for message in pooled]

    def texts(self, value: Any, depth: int = 0) -> Any:
        """A value with its attachments in place; one that is lost stays as its address."""
        if isinstance(value, str):
            if value.startswith(_SCHEMES):
                found = self._texts.get(value.partition("://")[2])
                return found if isinstance(found, str) else value
            return value
        if depth > _MAX_DEPTH:
            return value
        if isinstance(value, dict):
            return {name: self.texts(field, depth + 1) for name, field in value.items()}
        if isinstance(value, list):
            return [self.texts(one, depth + 1) for one in value]
        return value

    def input(self, event: Json) -> list[Any]:
        """The messages of a model event."""
        found = _list(event.get("input"))
        if not found and self._messages:
            return _ranges(event.get("input_refs"), self._messages)
        return _list(self.texts(found))

    def conversation(self, sample: Json) -> list[Any]:
        """The sample's own messages: as they stand, or by their places in the pool."""
        found = _list(sample.get("messages"))
        return _list(self.texts(found)) if found else _ranges(sample.get("message_refs"), self._messages)

    def request(self, event: Json) -> Json | None:
        """The request as it went over the wire, where the log holds it."""
        call = event.get("call")
        request = call.get("request") if isinstance(call, dict) else None
        if not isinstance(call, dict) or not isinstance(request, dict):
            return None
        resolved = self.texts(request)
        if call.get("call_refs") is not None:
            key = call.get("call_key")
            resolved[key if isinstance(key, str) else "messages"] = _ranges(call["call_refs"], self._calls)
        return resolved if isinstance(resolved, dict) else None


def _ranges(refs: Any, pool: list[Any]) -> list[Any]:
    """The items of a pool that `[start, end)` pairs name; no request repeats more than the pool holds."""
    found: list[Any] = []
    for ref in _list(refs):
        start, end = ref if isinstance(ref, list) and len(ref) == 2 else (0, 0)
        if isinstance(start, int) and isinstance(end, int) and 0 <= start < end:
            found += pool[start:end]
        if len(found) > 2 * len(pool):
            break
    return found


def events_of(sample: Json) -> Any:
    """A sample's events; logs of 2024 have them in its transcript."""
    return sample.get("events") or _dict(sample.get("transcript")).get("events")


def _dict(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
