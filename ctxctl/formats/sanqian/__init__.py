"""sanqian provider-call logs: what a desktop app's context providers returned, turn by turn.

sanqian has no public wire format, so this log format is ours; field names are those of its SDK.  JSON Lines,
one call each, `kind` says which; a line without `turn` belongs to the turn before it:

- ``{"kind": "registration", "app", "providers": [{"id"}], "attachedContexts": ["app:provider"]}``:
  the app's providers, and the contexts attached where no agent says otherwise.
- ``{"kind": "createAgent" | "agent", "agent_id", "attached_contexts": […]}``: an agent and its own contexts.
  The first one is in charge until a switch, if the registration attached nothing.
- ``{"kind": "switchAgent", "turn", "agent_id"}``: another agent takes over, with its contexts.
- ``{"kind": "attach" | "detach", "turn", "contexts": […]}``: the person attaches or detaches contexts at run
  time, ``app:provider`` or ``app:provider/item``.
- ``{"kind": "load_items", "turn", "provider_id", "items": [ContextData, …]}``: picked items of a list; each
  is attached as ``app:provider/item``.
- ``{"kind": "getCurrent", "turn", "provider_id", "data": ContextData | [ContextData, …] | null}``
- ``{"kind": "getById", "turn", "provider_id", "id", "data": ContextData | null}``: context only while that
  item is attached; otherwise, like ``getList``, an answer to a picker or a tool.
- ``{"kind": "pushResource", "resource": {"id", "title", "content"}}``,
  ``{"kind": "removeResource", "resourceId"}``: what the app pushes by itself.
- ``{"kind": "message", "turn", "role": "user" | "assistant", "content"}``: the conversation, where logged.

ContextData is ``{content, id?, title?, version?, summary?, type?, link?, metadata?}``; agent fields are read
in camelCase and in snake_case.  An item is `app:provider`, or `app:provider/item` where the data has
an id of its own; its version is the given one, else the first 16 hex digits of the content's SHA-256 (a
change of summary or metadata alone is invisible to the host).  Each turn ends with its surface: the attached
contexts in the host's order, the person's before the agent's, without duplicates.  What the host injects is
not in such a log; the `sanqian` policy simulates it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import orjson

from ctxctl.formats.lines import Report
from ctxctl.formats.sanqian.log import NAME, Log
from ctxctl.trace.source import Source

_SURE = 90
_LINES = 20
_MARKS: Final[dict[str, tuple[str, ...]]] = {
    "registration": ("providers",),
    "createAgent": ("agent_id",),
    "agent": ("agent_id",),
    "switchAgent": ("agent_id",),
    "attach": ("turn",),
    "detach": ("turn",),
    "load_items": ("provider_id",),
    "getCurrent": ("provider_id",),
    "getList": ("provider_id",),
    "getById": ("provider_id",),
    "pushResource": ("resource",),
    "removeResource": ("resourceId",),
}


class Sanqian:
    """The importer for sanqian provider-call logs."""

    name: str = NAME
    title: str = "sanqian provider calls"
    default_policy: str = NAME

    def detect(self, head: bytes) -> int:
        """How sure the first lines look like provider calls."""
        for line in head.removeprefix(b"\xef\xbb\xbf").split(b"\n")[:_LINES]:
            try:
                value = orjson.loads(line)
            except orjson.JSONDecodeError:
                continue
            kind = value.get("kind") if isinstance(value, dict) else None
            marks = _MARKS.get(kind) if isinstance(kind, str) else None
            if marks is not None and all(mark in value for mark in marks):
                return _SURE
        return 0

    def events(self, source: Source, report: Report) -> Iterator[dict[str, Any]]:
        """Items, missing context and a surface for each turn; streams, holds one version of each item."""
        return Log(report).events(source)
