"""VS Code's own store of a chat: a snapshot on the first line, then a change of it on each (since 1.109)."""

from __future__ import annotations

import re
from typing import Any, Final

from ctxctl.formats.build import Json
from ctxctl.formats.kit.run import Run
from ctxctl.trace.source import Source

_ENTRY: Final = re.compile(rb'\{\s*"kind"\s*:\s*(?:0\s*,\s*"v"|[123]\s*,\s*"k")\s*:')
_REQUESTS: Final = re.compile(rb'"k"\s*:\s*\[\s*"requests"')
_INITIAL, _SET, _PUSH, _DELETE = range(4)


def is_log(body: bytes) -> bool:
    """Whether a file begins like such a store."""
    return _ENTRY.match(body) is not None


def changes_requests(body: bytes) -> bool:
    """Whether a store's first line changes the requests: its snapshot is lost."""
    return is_log(body) and _REQUESTS.search(body[:200]) is not None


def final_state(run: Run, source: Source) -> Any:
    """What the store holds in the end; changes of what is not there are passed over."""
    state: Any = {}
    for record in run.records(source):
        kind = record.get("kind")
        if kind == _INITIAL and isinstance(record.get("v"), dict):
            state = record["v"]
        elif kind in (_SET, _PUSH, _DELETE):
            _change(state, record)
        else:
            run.problem("unknown-record", "no change that is known; skipped")
    return state


def _change(state: Any, record: Json) -> None:
    path = record.get("k")
    if not isinstance(path, list) or not path:
        return
    for name in path[:-1]:
        state = _at(state, name)
    kind, name = record["kind"], path[-1]
    if kind == _PUSH:
        _push(state, name, record)
    elif kind == _SET and "v" in record:
        if (isinstance(state, dict) and isinstance(name, str)) or _index(state, name):
            state[name] = record["v"]
    elif kind == _DELETE and isinstance(state, dict) and isinstance(name, str):
        state.pop(name, None)


def _push(state: Any, name: Any, record: Json) -> None:
    """Cut the list at `i`, if that is given, and put `v` at its end."""
    found = _at(state, name)
    if found is None and isinstance(state, dict) and isinstance(name, str):
        found = state[name] = []
    if not isinstance(found, list):
        return
    at, more = record.get("i"), record.get("v")
    if isinstance(at, int) and 0 <= at < len(found):
        del found[at:]
    if isinstance(more, list):
        found += more


def _at(state: Any, name: Any) -> Any:
    if isinstance(state, dict) and isinstance(name, str):
        return state.get(name)
    return state[name] if _index(state, name) else None


def _index(state: Any, name: Any) -> bool:
    return (
        isinstance(state, list)
        and isinstance(name, int)
        and not isinstance(name, bool)
        and 0 <= name < len(state)
    )
