"""Reads a provider-call log and gives its items, missing context and surfaces."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from ctxctl.formats import build
from ctxctl.formats.build import Maker, Place
from ctxctl.formats.lines import Json, Line, Report, values
from ctxctl.model import vocab
from ctxctl.model.problem import Problem
from ctxctl.trace.source import Source

NAME: Final = "sanqian"
_OFFERED: Final = frozenset({"external_resource", "manual_note"})


class _Item:
    """An item as last seen."""

    __slots__ = ("available", "digest", "kind", "version")

    def __init__(self, kind: str, version: str, digest: str) -> None:
        self.kind = kind
        self.version = version
        self.digest = digest
        self.available = True
        """The provider returned it when it was last asked."""


class Log:
    """One import."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._make = Maker(NAME, "sq-")
        self._out: list[Json] = []
        self._line = Line(0, 0, b"")
        self._app = ""
        self._session: str | None = None
        self._turn: str | None = None
        self._agents: dict[str | None, list[str]] = {}
        self._agent: str | None = None
        self._attached: list[str] = []
        """What the person attached, in order."""
        self._items: dict[str, _Item] = {}
        self._messages = 0
        self._handlers: dict[str, Callable[[Json], None]] = {
            "registration": self._registration,
            "createAgent": self._define,
            "agent": self._define,
            "switchAgent": self._switch,
            "attach": self._attach,
            "detach": self._detach,
            "load_items": self._load,
            "getCurrent": self._current,
            "getById": self._by_id,
            "pushResource": self._push,
            "removeResource": self._remove,
            "message": self._message,
        }

    def events(self, source: Source) -> Iterator[Json]:
        """The log's events, in line order, each turn closed by its surface."""
        for line, value in values(source, self._report):
            if not isinstance(value, dict):
                self._report(Problem(line.number, line.offset, "not-a-record", "not a JSON object; skipped"))
                continue
            self._enter(value)
            self._line = line
            kind = value.get("kind")
            handler = self._handlers.get(kind) if isinstance(kind, str) else None
            if handler is not None:
                handler(value)
            elif kind != "getList":
                self._problem("unknown-record", f"no provider call: kind {kind!r}; skipped")
            yield from self._out
            self._out.clear()
        self._surface()
        if not self._make.count:
            data: Json = {"format": NAME, "file": source.name.rpartition("/")[2]}
            self._emit("ctxctl.source.opened", data)
        yield from self._out

    def _problem(self, slug: str, message: str) -> None:
        self._report(Problem(self._line.number, self._line.offset, slug, message))

    def _emit(self, event_type: str, data: Json) -> None:
        place = Place(self._session, None, self._turn, None)
        self._out.append(self._make.event(event_type, data, place, self._line.number))

    def _enter(self, value: Json) -> None:
        """Take over time, session and turn of a line; a new turn closes the one before."""
        turn = value.get("turn")
        name = f"t{turn}" if isinstance(turn, int | str) and not isinstance(turn, bool) else self._turn
        if name != self._turn:
            self._surface()
        self._turn = name
        for key in ("time", "timestamp"):
            self._make.at(value.get(key))
        session = _string(value, "session_id", "sessionId", "conversation_id")
        self._session = session or self._session

    # -- what is attached -------------------------------------------------------------------------------

    def _contexts(self) -> list[str]:
        """The attached contexts in the host's order: dedup(user_attached + agent_default)."""
        return list(dict.fromkeys([*self._attached, *self._agents.get(self._agent, ())]))

    def _full(self, name: str) -> str:
        """A context's name with the app's in front of it."""
        return name if ":" in name or not self._app else f"{self._app}:{name}"

    def _names(self, value: Json) -> list[str]:
        found: list[str] = []
        for key in ("attached_contexts", "attachedContexts", "contexts", "context", "provider_id"):
            given = value.get(key)
            for name in given if isinstance(given, list) else [given]:
                if isinstance(name, str) and name:
                    found.append(self._full(name))
        return found

    def _registration(self, value: Json) -> None:
        self._app = _string(value, "app", "appName") or self._app
        names = self._names(value)
        if names or None not in self._agents:
            self._agents[None] = names

    def _define(self, value: Json) -> None:
        agent = _string(value, "agent_id", "agentId")
        self._agents[agent] = self._names(value)
        if self._agent is None and not self._agents.get(None):
            self._agent = agent
        if agent == self._agent:
            self._drop("agent")

    def _switch(self, value: Json) -> None:
        agent = _string(value, "agent_id", "agentId")
        if agent not in self._agents:
            self._problem("unknown-agent", f"switch to agent {agent!r}, which the log does not define")
        self._agent = agent
        self._drop("switchAgent")

    def _attach(self, value: Json) -> None:
        self._attached += [name for name in self._names(value) if name not in self._attached]

    def _detach(self, value: Json) -> None:
        gone = set(self._names(value))
        self._attached = [name for name in self._attached if name not in gone]
        own = self._agents.get(self._agent)
        if own is not None:
            self._agents[self._agent] = [name for name in own if name not in gone]
        self._drop("detach")

    def _drop(self, native: str) -> None:
        """Remove the items of contexts that are attached no longer."""
        attached = set(self._contexts())
        for name, item in list(self._items.items()):
            if item.kind == "external_resource" and not _holds(attached, name):
                self._gone(name, native)

    def _gone(self, name: str, native: str) -> None:
        item = self._items.pop(name)
        meta = {"cause": "detached", "native": {"type": native}}
        self._emit(vocab.ITEM_REMOVED, build.opaque_item(name, item.kind, None, metadata=meta))

    def _surface(self) -> None:
        """Close a turn: what was attached in it, and which items were there to be taken."""
        if self._turn is None:
            return
        attached = self._contexts()
        order = {name: at for at, name in enumerate(attached)}
        last = len(order)
        names = [name for name, item in self._items.items() if item.available and item.kind in _OFFERED]
        names.sort(key=lambda name: min(order.get(name, last), order.get(name.rpartition("/")[0], last)))
        meta: Json = {"user_attached": list(self._attached)}
        if self._agent is not None:
            meta["agent_id"] = self._agent
        record = self._make.record(
            surface_id=f"surface-{self._turn}",
            scope="turn",
            surface_kind="turn_surface",
            available_source_refs=attached,
            available_item_refs=[f"{name}@{self._items[name].version}" for name in names],
            metadata={"native": meta},
        )
        self._emit(vocab.SURFACE_CREATED, record)

    # -- what providers return --------------------------------------------------------------------------

    def _current(self, value: Json) -> None:
        provider = self._provider(value)
        if provider is None:
            return
        data = value.get("data")
        several = data if isinstance(data, list) else data.get("items") if isinstance(data, dict) else None
        if isinstance(several, list):
            for one in several:
                self._take(f"{provider}/{_id(one)}" if _id(one) is not None else provider, one)
        else:
            self._take(provider, data)

    def _by_id(self, value: Json) -> None:
        provider = self._provider(value)
        native = value.get("id")
        if provider is None or not isinstance(native, str | int):
            return
        name = f"{provider}/{native}"
        if name in self._contexts():
            self._take(name, value.get("data"))

    def _load(self, value: Json) -> None:
        provider = self._provider(value)
        items = value.get("items")
        if provider is None:
            return
        for one in items if isinstance(items, list) else ():
            name = f"{provider}/{_id(one)}" if _id(one) is not None else provider
            if name not in self._attached:
                self._attached.append(name)
            self._take(name, one)

    def _provider(self, value: Json) -> str | None:
        name = _string(value, "provider_id", "providerId")
        if name is None:
            self._problem("unknown-record", "the call names no provider; skipped")
            return None
        return self._full(name)

    def _take(self, name: str, data: Any) -> None:
        """One item as a provider returned it; null while attached is context that is missing."""
        if not _holds(set(self._contexts()), name):
            return
        if not isinstance(data, dict) or not isinstance(data.get("content"), str):
            self._missing(name)
            return
        meta: Json = {k: data[k] for k in ("type", "summary", "link", "metadata") if data.get(k) is not None}
        sources = [
            {
                "schema_version": vocab.SCHEMA_VERSION,
                "source_id": next(c for c in self._contexts() if _holds({c}, name)),
                "uri": f"sanqian://{name.replace(':', '/', 1)}",
                "source_kind": "context_provider",
                "digest": f"sha256-16:{build.digest_of(data['content'])[: build.VERSION_DIGITS]}",
            }
        ]
        self._put(name, "external_resource", data, meta, sources)

    def _missing(self, name: str) -> None:
        item = self._items.get(name)
        if item is not None:
            item.available = False
        record = self._make.record(
            missing_id=f"missing-{self._turn}-{name}",
            scope="turn",
            question=f"{name} returned nothing while attached",
            severity="info",
            status="open",
            candidate_sources=[{"source_id": name}],
        )
        self._emit(vocab.MISSING_DETECTED, record)

    def _put(self, name: str, kind: str, data: Json, native: Json, sources: list[Json] | None) -> None:
        """Announce an item if it is new or its version changed."""
        content: str = data["content"]
        digest = build.digest_of(content)
        given = data.get("version")
        supplied = isinstance(given, str | int) and not isinstance(given, bool)
        version = str(given) if supplied else digest[: build.VERSION_DIGITS]
        known = self._items.get(name)
        if known is not None:
            known.available = True
            if known.version == version:
                if known.digest != digest:
                    known.digest = digest
                    message = f"{name} changed but kept its version {version}: the host skips it"
                    self._problem("same-version-other-content", message)
                return
        self._items[name] = _Item(kind, version, digest)
        meta: Json = {"version": version} if supplied else {}
        native["version_source"] = "supplied" if supplied else "computed"
        if known is not None:
            native["last_version"] = known.version
        meta["native"] = native
        title = data.get("title")
        record = build.text_item(
            name,
            kind,
            content,
            title=title if isinstance(title, str) else None,
            source_refs=sources,
            metadata=meta,
        )
        self._emit(vocab.ITEM_ADDED if known is None else vocab.ITEM_UPDATED, record)

    # -- what the app pushes, and what was said ---------------------------------------------------------

    def _push(self, value: Json) -> None:
        data = value.get("resource")
        native = _id(data)
        if not isinstance(data, dict) or not isinstance(data.get("content"), str) or native is None:
            self._problem("unknown-record", "the pushed resource has no id or no content; skipped")
            return
        meta: Json = {k: data[k] for k in ("type", "summary") if data.get(k) is not None}
        self._put(self._full(native), "manual_note", data, {**meta, "push": True}, None)

    def _remove(self, value: Json) -> None:
        name = _string(value, "resourceId", "resource_id")
        full = self._full(name) if name is not None else None
        if full is not None and full in self._items:
            self._gone(full, "removeResource")

    def _message(self, value: Json) -> None:
        content = value.get("content")
        if not isinstance(content, str):
            self._problem("unknown-record", "the message has no text; skipped")
            return
        self._messages += 1
        kind = "assistant_message" if value.get("role") == "assistant" else "user_message"
        name = _string(value, "id") or f"message-{self._messages}"
        self._emit(vocab.ITEM_ADDED, build.text_item(name, kind, content))


def _string(value: Json, *keys: str) -> str | None:
    """The first of the fields that holds a non-empty string."""
    for key in keys:
        found = value.get(key)
        if isinstance(found, str) and found:
            return found
    return None


def _id(value: Any) -> str | None:
    """The id of a piece of context data, if it has one."""
    found = value.get("id") if isinstance(value, dict) else None
    return (
        str(found) if isinstance(found, str | int) and not isinstance(found, bool) and found != "" else None
    )


def _holds(attached: set[str], name: str) -> bool:
    """Whether an item is attached itself, or through its provider."""
    if name in attached:
        return True
    return any(name.startswith(f"{context}/") for context in attached)
