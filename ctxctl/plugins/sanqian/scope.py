"""Who is in charge and what is attached: agents, runtime attachments, and which apps may push.

What apps push is held for the session, and shown while the app is on the allow-list.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Protocol

from ctxctl.ingest.build import Json


class Scope:
    """The agents of a log, the one in charge, and what the person attached and selected.

    An app may push resources if the agent's own contexts name it, or if the person attached one of its
    contexts or selected it in the conversation.
    """

    def __init__(self) -> None:
        self.app = ""
        """The app that registered last; names without an app are its own."""
        self.agents: dict[str | None, dict[str, None]] = {}
        """Contexts by agent, in order; None: of the registration, where no agent says otherwise."""
        self.told: set[str | None] = set()
        """Agents of which the log gives the contexts, be it none."""
        self.agent: str | None = None
        self.attached: dict[str, None] = {}
        """What the person attached, in order."""
        self.selected: dict[str, None] = {}
        """Apps that the person selected, in order."""

    def contexts(self) -> list[str]:
        """The attached contexts in the host's order: dedup(user_attached + agent_default)."""
        return list(self.attached | self.agents.get(self.agent, {}))

    def holder(self, name: str) -> str | None:
        """The first attached context in the host's order that an item is, or is of; None where none is."""
        for contexts in (self.attached, self.agents.get(self.agent, {})):
            found = [one for one in _and_above(name) if one in contexts]
            if len(found) > 1:
                order = list(contexts)
                return min(found, key=order.index)
            if found:
                return found[0]
        return None

    def is_attached(self, name: str) -> bool:
        """Whether a context is attached itself, by the person or of the agent's own."""
        return name in self.attached or name in self.agents.get(self.agent, {})

    def full(self, name: str, app: str | None = None) -> str:
        """A name with its app's in front of it."""
        app = app or self.app
        return name if ":" in name or not app else f"{app}:{name}"

    def names(self, value: Json) -> list[str]:
        """The contexts that a record names."""
        found: list[str] = []
        for key in ("attached_contexts", "attachedContexts", "contexts", "context", "provider_id"):
            given = value.get(key)
            for name in given if isinstance(given, list) else [given]:
                if isinstance(name, str) and name:
                    found.append(self.full(name))
        return found

    def define(self, agent: str | None, value: Json) -> None:
        """Take over an agent's own contexts."""
        names = dict.fromkeys(self.names(value))
        if names or agent not in self.agents:
            self.agents[agent] = names
        if any(key in value for key in ("attached_contexts", "attachedContexts")):
            self.agents[agent] = names
            self.told.add(agent)

    def detach(self, gone: set[str]) -> None:
        """Take contexts away, the person's and the agent's."""
        for name in gone:
            self.attached.pop(name, None)
        own = self.agents.get(self.agent)
        if own is not None:
            self.agents[self.agent] = {name: None for name in own if name not in gone}

    @property
    def size(self) -> int:
        """Names that say which apps may push."""
        return len(self.attached) + len(self.agents.get(self.agent, ())) + len(self.selected)

    def allowed(self) -> list[str] | None:
        """Apps that may push; None where the log does not give the agent's contexts."""
        if self.agent not in self.told:
            return None
        apps = [name.partition(":")[0] for name in self.contexts() if ":" in name]
        return list(dict.fromkeys([*apps, *self.selected]))


def string(value: Json, *keys: str) -> str | None:
    """The first of the fields that holds a non-empty string."""
    for key in keys:
        found = value.get(key)
        if isinstance(found, str) and found:
            return found
    return None


def id_of_item(value: Any) -> str | None:
    """The id of a piece of context data, if it has one."""
    found = value.get("id") if isinstance(value, dict) else None
    return (
        str(found) if isinstance(found, str | int) and not isinstance(found, bool) and found != "" else None
    )


def is_held(attached: Collection[str], name: str) -> bool:
    """Whether an item is attached itself, or through its provider."""
    return any(one in attached for one in _and_above(name))


def _and_above(name: str) -> Iterator[str]:
    """A name, and each name that it stands below: `notes:library/n9/2` of `notes:library`."""
    yield name
    at = name.find("/", 1)
    for _ in range(_LEVELS):
        if at < 0:
            return
        yield name[:at]
        at = name.find("/", at + 1)


_LEVELS = 64
"""Levels of a name, from the first on, that may be attached: each is compared as a text of its own."""


def catalogue(value: Json) -> Json | None:
    """What a provider's list offered to pick from: ids and titles; None if it is no list."""
    data = value.get("data")
    rows = data.get("items") if isinstance(data, dict) else data
    if not isinstance(rows, list):
        return None
    items = [
        {"id": id_of_item(row), "title": row.get("title")} for row in rows[:_LISTED] if isinstance(row, dict)
    ]
    more = data.get("hasMore", data.get("has_more")) if isinstance(data, dict) else None
    return {"items": items, "count": len(rows), "has_more": more}


_LISTED = 100
"""Entries of a list that a surface repeats."""


class Resource:
    """One pushed resource."""

    __slots__ = ("app", "data", "derived", "line", "shown")

    def __init__(self, app: str, data: Json, derived: bool, line: int) -> None:
        self.app = app
        self.data = data
        self.derived = derived
        """It was pushed without an id."""
        self.line = line
        """Where it was pushed."""
        self.shown = False
        """Its app may push: the agent in charge sees it."""


class ResourceWriter(Protocol):
    """Who tells what becomes of a resource."""

    def show(self, name: str, resource: Resource) -> None:
        """It is there, or there anew."""

    def gone(self, name: str, native: str) -> None:
        """It is there no more; `native`: the call that did it."""

    def refused(self, name: str, app: str) -> None:
        """Its app may not push."""


class Resources:
    """The resources of one conversation."""

    def __init__(self, scope: Scope, to: ResourceWriter) -> None:
        self._scope = scope
        self._to = to
        self.held: dict[str, Resource] = {}
        self.looked = 0
        """Resources, and names that say which apps may push, that were looked at so far."""

    def push(self, value: Json, line: int) -> bool:
        """Take a push; False if it has no content.  One without an id is named after its line."""
        data = value.get("resource")
        if not isinstance(data, dict) or not isinstance(data.get("content"), str):
            return False
        stored = next((v for k, v in value.items() if k.startswith("stored") and isinstance(v, dict)), data)
        app = string(data, "appName", "app") or string(stored, "appName") or string(value, "app", "appName")
        native = string(stored, "fullId") or id_of_item(data)
        name = self._scope.full(native or f"resource-{line}", app)
        before = self.held.get(name)
        resource = self.held[name] = Resource(app or name.partition(":")[0], data, native is None, line)
        resource.shown = before is not None and before.shown
        self.settle("pushResource", name)
        return True

    def settle(self, native: str, pushed: str | None = None) -> None:
        """Show the resources of apps that may push now, take back those of apps that may not any more."""
        if not self.held:
            return
        told = self._scope.allowed()
        allowed = None if told is None else set(told)
        self.looked += len(self.held) + self._scope.size
        for name, resource in self.held.items():
            may = allowed is None or resource.app in allowed
            if may and (name == pushed or not resource.shown):
                self._to.show(name, resource)
            elif resource.shown and not may:
                self._to.gone(name, native)
            elif not may and name == pushed:
                self._to.refused(name, resource.app)
            resource.shown = may

    def remove(self, value: Json) -> None:
        """The app, or the person, takes one back."""
        name = string(value, "resourceId", "resource_id", "fullId")
        if name is not None:
            self._release(self._scope.full(name, string(value, "app", "appName")), "removeResource")

    def end(self, value: Json) -> None:
        """The end of a session, or of an app's connection, clears what was pushed."""
        app = string(value, "app", "appName") if value.get("kind") == "disconnect" else None
        for name, resource in list(self.held.items()):
            if app is None or resource.app == app:
                self._release(name, str(value.get("kind")))

    def _release(self, name: str, native: str) -> None:
        resource = self.held.pop(name, None)
        if resource is not None and resource.shown:
            self._to.gone(name, native)
