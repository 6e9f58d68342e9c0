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
- ``{"kind": "selectApp", "turn", "app"}``: the person selects an app in the conversation: it may push.
- ``{"kind": "getList", "provider_id", "data": {"items": [{"id", "title"}], "hasMore"} | [{…}, …]}``: what a
  provider offers to pick from; the turn's surface says so, none of it is context.
- ``{"kind": "load_items", "turn", "provider_id", "items": [ContextData | {"id"}, …]}``: picked items of a
  list; each is attached as ``app:provider/item``.
- ``{"kind": "getCurrent", "turn", "provider_id", "data": ContextData | [ContextData, …] | null, "error"?}``
- ``{"kind": "getById", "turn", "provider_id", "id", "data": ContextData | null}``: context only while that
  item is attached; otherwise, like ``getList``, an answer to a picker or a tool.
- ``{"kind": "pushResource", "app"?, "resource": {"id"?, "title", "content"}}``,
  ``{"kind": "removeResource", "resourceId"}`` (or the SDK's events ``resourcePushed`` and
  ``resourceRemoved``): what an app pushes by itself; held until it is removed, the session ends
  (``{"kind": "sessionEnd"}``) or the app goes (``{"kind": "disconnect", "app"}``).
- ``{"kind": "message", "turn", "role": "user" | "assistant", "content"}``: the conversation, where logged.

ContextData is ``{content, id?, title?, version?, summary?, type?, link?, metadata?}``; agent fields are read
in camelCase and in snake_case.  An item is `app:provider`, or `app:provider/item` where the data has
an id of its own; its version is the given one, else the first 16 hex digits of the content's SHA-256 (a
change of summary or metadata alone is invisible to the host).  Each turn ends with its surface: the attached
contexts in the host's order, the person's before the agent's, without duplicates.  What the host injects is
not in such a log; the `sanqian` policy simulates it.

A pushed resource is context only while its app is on the allow-list: the apps that the contexts of the agent
in charge name, those of contexts that the person attached, and those that the person selected.  A push by
another app is told as missing context.  Where the log does not give the agent's contexts, every app may push.
"""

from __future__ import annotations

from typing import Final

import orjson

from ctxctl.ingest.about import About, HeldAgainst, absent, native, simulated
from ctxctl.ingest.declaration import Format

_SURE = 97
_LINES = 20
_MARKS: Final[dict[str, tuple[str, ...]]] = {
    "registration": ("providers",),
    "createAgent": ("agent_id",),
    "agent": ("agent_id",),
    "switchAgent": ("agent_id",),
    "attach": ("turn",),
    "detach": ("turn",),
    "selectApp": ("app",),
    "load_items": ("provider_id",),
    "getCurrent": ("provider_id",),
    "getList": ("provider_id",),
    "getById": ("provider_id",),
    "pushResource": ("resource",),
    "resourcePushed": ("resource",),
    "removeResource": ("resourceId",),
    "resourceRemoved": ("resourceId",),
}


ABOUT: Final = About(
    reads=(
        "JSON lines of calls between sanqian and an app's context providers (SDK 0.3): registration, agents,"
        " attachments, getCurrent, getList, getById, load_items, pushed and removed resources, messages."
    ),
    places=("a wrapper around the app's providers that writes each call as a line",),
    turns="`turn` of a line; a line without one belongs to the turn before it. One step a turn.",
    claims={
        "candidates": native("what is attached at each turn; what a list offered stands beside it"),
        "sources": native("app and provider"),
        "item_ids": native("made of app, provider and item; derived for a resource pushed without an id"),
        "selected": simulated("by the policy `sanqian`: the version diff"),
        "omitted": simulated("by the policy `sanqian`: unchanged versions"),
        "limit": absent(),
        "messages": native("where the log has them"),
        "reminders": native("the providers' contents"),
        "order": simulated("by the policy `sanqian`"),
        "wrapper": simulated("by the policy `sanqian`: `[Context: …]` in `<system_reminder>`"),
        "requests": absent("the host's requests are not in such a log"),
        "turns": native(),
        "threads": absent("one conversation"),
        "times": native("where lines have them"),
    },
    limits=(
        "The host is closed: how it sends its messages over the wire is not known, and not read.",
        "An agent's system prompt and tools are not shown as context.",
        "The allow-list is computed from the agents' contexts: what the host refused is not in the log.",
    ),
    held_against=HeldAgainst("SDK", "0.3", "0.3"),
    origin="the sanqian blog post on Context; yushaw/sanqian-notes 0.5.3",
)


def detect(head: bytes) -> int:
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


FORMAT: Final = Format(
    name="sanqian",
    title="sanqian provider calls",
    detect=detect,
    reader="ctxctl.plugins.sanqian.reader:Log",
    about=ABOUT,
    default_policy="sanqian",
)
