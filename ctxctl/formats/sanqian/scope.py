"""Who is in charge and what is attached: agents, runtime attachments, and which apps may push."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


class Scope:
    """The agents of a log, the one in charge, and what the person attached and selected.

    An app may push resources if the agent's own contexts name it, or if the person attached one of its
    contexts or selected it in the conversation.
    """

    def __init__(self) -> None:
        self.app = ""
        """The app that registered last; names without an app are its own."""
        self.agents: dict[str | None, list[str]] = {}
        """Contexts by agent; None: of the registration, where no agent says otherwise."""
        self.told: set[str | None] = set()
        """Agents of which the log gives the contexts, be it none."""
        self.agent: str | None = None
        self.attached: list[str] = []
        """What the person attached, in order."""
        self.selected: dict[str, None] = {}
        """Apps that the person selected, in order."""

    def contexts(self) -> list[str]:
        """The attached contexts in the host's order: dedup(user_attached + agent_default)."""
        return list(dict.fromkeys([*self.attached, *self.agents.get(self.agent, ())]))

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
        names = self.names(value)
        if names or agent not in self.agents:
            self.agents[agent] = names
        if any(key in value for key in ("attached_contexts", "attachedContexts")):
            self.agents[agent] = names
            self.told.add(agent)

    def detach(self, gone: set[str]) -> None:
        """Take contexts away, the person's and the agent's."""
        self.attached = [name for name in self.attached if name not in gone]
        own = self.agents.get(self.agent)
        if own is not None:
            self.agents[self.agent] = [name for name in own if name not in gone]

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


def ident(value: Any) -> str | None:
    """The id of a piece of context data, if it has one."""
    found = value.get("id") if isinstance(value, dict) else None
    return (
        str(found) if isinstance(found, str | int) and not isinstance(found, bool) and found != "" else None
    )


def holds(attached: set[str], name: str) -> bool:
    """Whether an item is attached itself, or through its provider."""
    if name in attached:
        return True
    return any(name.startswith(f"{context}/") for context in attached)


def catalogue(value: Json) -> Json | None:
    """What a provider's list offered to pick from: ids and titles; None if it is no list."""
    data = value.get("data")
    rows = data.get("items") if isinstance(data, dict) else data
    if not isinstance(rows, list):
        return None
    items = [{"id": ident(row), "title": row.get("title")} for row in rows[:_LISTED] if isinstance(row, dict)]
    more = data.get("hasMore", data.get("has_more")) if isinstance(data, dict) else None
    return {"items": items, "count": len(rows), "has_more": more}


_LISTED = 100
"""Entries of a list that a surface repeats."""
