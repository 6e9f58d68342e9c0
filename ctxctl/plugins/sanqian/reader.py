"""Reads a provider-call log and gives its items, missing context and surfaces."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from ctxctl.ingest import build
from ctxctl.ingest.build import Json, Maker, Place
from ctxctl.ingest.lines import Line, Report, values
from ctxctl.ingest.parts import shallow
from ctxctl.ingest.run import most_work, too_much_work
from ctxctl.model import vocab
from ctxctl.model.problem import Problem
from ctxctl.plugins.sanqian.scope import (
    Resource,
    Resources,
    Scope,
    catalogue,
    id_of_item,
    is_held,
    string,
)
from ctxctl.trace.source import Source

NAME: Final = "sanqian"
_OFFERED: Final = frozenset({"external_resource", "manual_note"})
_LOOKS: Final = 64
"""Looks at what was pushed, and at who may push, that count for one at an earlier window."""


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
    """Reads one log."""

    def __init__(self, name: str, report: Report) -> None:
        self._report = report
        self._make = Maker(name, "sq-")
        self._out: list[Json] = []
        self._line = Line(0, 0, b"")
        self._session: str | None = None
        self._turn: str | None = None
        self._turns: dict[str | None, dict[str | None, None]] = {}
        """By session, its turns in the order in which they began; all but the last are over."""
        self._scope = Scope()
        self._listed: dict[str, Json] = {}
        """By provider, what its list offered since the last surface."""
        self._resources = Resources(self._scope, self)
        self._items: dict[str, _Item] = {}
        self._parked: dict[str | None, Any] = {}
        """By session, what conversations other than the present one hold."""
        self._messages = 0
        self._handlers: dict[str, Callable[[Json], None]] = {
            "registration": self._registration,
            "createAgent": self._define,
            "agent": self._define,
            "switchAgent": self._switch,
            "attach": self._attach,
            "detach": self._detach,
            "selectApp": self._select,
            "getList": self._list,
            "load_items": self._load,
            "getCurrent": self._current,
            "getById": self._by_id,
            "pushResource": self._push,
            "resourcePushed": self._push,
            "removeResource": self._resources.remove,
            "resourceRemoved": self._resources.remove,
            "sessionEnd": self._resources.end,
            "disconnect": self._resources.end,
            "message": self._message,
        }

    def events(self, source: Source) -> Iterator[Json]:
        """The log's events, in line order, each turn closed by its surface."""
        most = most_work(source)
        for line, value in values(source, self._report):
            if self._make.work + self._resources.looked // _LOOKS > most:
                self._problem("windows-too-large", too_much_work(most))
                break
            if not isinstance(value, dict):
                self._report(Problem(line.number, line.offset, "not-a-record", "not a JSON object; skipped"))
                continue
            value = shallow(value, line.data)
            self._line = line
            kind = value.get("kind")
            handler = self._handlers.get(kind) if isinstance(kind, str) else None
            if handler is not None:
                self._enter(value, line)
                handler(value)
            elif kind == "updateContexts":
                self._enter(value, line)
            else:  # its session and its turn are not this log's
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

    def _enter(self, value: Json, line: Line) -> None:
        """Take over time, session and turn of a line; a new turn closes the one before.

        What names a turn that is over belongs to the open one, and is told: the request of its turn is gone.
        """
        for key in ("time", "timestamp"):
            if key in value:
                self._make.at(value[key])
        session = string(value, "session_id", "sessionId", "conversation_id")
        if session is not None and session != self._session:
            self._change(session)
        turn = value.get("turn")
        name = f"t{turn}" if isinstance(turn, int | str) and not isinstance(turn, bool) else self._turn
        turns = self._turns.setdefault(self._session, {})
        if name in turns and name != next(reversed(turns)):
            message = f"a line of turn {turn}, which is over; it counts for the open one"
            self._report(Problem(line.number, line.offset, "late-event", message))
            return
        if name is not None:
            turns[name] = None
        if name != self._turn:
            self._surface()
        self._turn = name

    def _change(self, session: str) -> None:
        """Go on with another conversation: what it holds and what is attached in it is its own.

        What was attached before any session had a name is the first one's; what was written then is not.
        """
        scope = self._scope
        if self._session is not None or self._make.count:
            self._surface()
            held = (
                self._items,
                self._resources.held,
                self._listed,
                scope.attached,
                scope.selected,
                scope.agent,
            )
            self._parked[self._session] = held
            unnamed = self._session is None
            attached = dict(scope.attached) if unnamed else {}
            selected = dict(scope.selected) if unnamed else {}
            again = self._parked.pop(session, ({}, {}, {}, attached, selected, scope.agent))
            self._items, self._resources.held, self._listed, scope.attached, scope.selected, scope.agent = (
                again
            )
            self._turn = None
        self._session = session

    # -- what is attached -------------------------------------------------------------------------------

    def _registration(self, value: Json) -> None:
        self._scope.app = string(value, "app", "appName") or self._scope.app
        self._scope.define(None, value)

    def _define(self, value: Json) -> None:
        scope, agent = self._scope, string(value, "agent_id", "agentId")
        scope.agents.pop(agent, None)
        scope.define(agent, value)
        if scope.agent is None and not scope.agents.get(None):
            scope.agent = agent
        if agent == scope.agent:
            self._drop("agent")

    def _switch(self, value: Json) -> None:
        agent = string(value, "agent_id", "agentId")
        if agent not in self._scope.agents:
            self._problem("unknown-agent", f"switch to agent {agent!r}, which the log does not define")
        self._scope.agent = agent
        self._drop("switchAgent")

    def _attach(self, value: Json) -> None:
        self._scope.attached |= dict.fromkeys(self._scope.names(value))
        self._resources.settle("attach")

    def _detach(self, value: Json) -> None:
        self._scope.detach(set(self._scope.names(value)))
        self._drop("detach")

    def _select(self, value: Json) -> None:
        app = string(value, "app", "appName")
        if app is not None:
            self._scope.selected[app] = None
            self._resources.settle("selectApp")

    def _drop(self, native: str) -> None:
        """Remove the items of contexts that are attached no longer, and see which resources count."""
        self._resources.settle(native)
        attached = set(self._scope.contexts())
        self._make.work += len(attached) + len(self._items)
        for name, item in list(self._items.items()):
            if item.kind == "external_resource" and not is_held(attached, name):
                self.gone(name, native)

    def gone(self, name: str, native: str) -> None:
        """An item is not there any more; `native`: the call that did it."""
        item = self._items.pop(name, None)
        if item is None:
            return
        meta = {"cause": "detached", "native": {"type": native}}
        self._emit(vocab.ITEM_REMOVED, build.opaque_item(name, item.kind, None, metadata=meta))

    def _surface(self) -> None:
        """Close a turn: what was attached in it, and which items were there to be taken."""
        if self._turn is None:
            return
        attached = self._scope.contexts()
        order = {name: at for at, name in enumerate(attached)}
        last = len(order)
        self._make.work += last + len(self._items)
        names = [name for name, item in self._items.items() if item.available and item.kind in _OFFERED]
        names.sort(key=lambda name: min(order.get(name, last), order.get(name.rpartition("/")[0], last)))
        meta: Json = {"user_attached": list(self._scope.attached)}
        if self._scope.agent is not None:
            meta["agent_id"] = self._scope.agent
        allowed = self._scope.allowed()
        if allowed is not None:
            meta["allowed_apps"] = allowed
        if self._listed:
            meta["listed"], self._listed = self._listed, {}
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
                self._take(f"{provider}/{id_of_item(one)}" if id_of_item(one) is not None else provider, one)
        else:
            self._take(provider, data, value.get("error"))

    def _by_id(self, value: Json) -> None:
        provider = self._provider(value)
        native = value.get("id")
        if provider is None or not isinstance(native, str | int):
            return
        name = f"{provider}/{native}"
        if self._scope.is_attached(name):
            self._take(name, value.get("data"), value.get("error"))

    def _load(self, value: Json) -> None:
        provider = self._provider(value)
        items = value.get("items")
        if provider is None:
            return
        for one in items if isinstance(items, list) else ():
            name = f"{provider}/{id_of_item(one)}" if id_of_item(one) is not None else provider
            self._scope.attached.setdefault(name)
            if isinstance(one, dict) and "content" in one:
                # Else it is a reference, and the content comes by `getById`.
                self._take(name, one)
        self._resources.settle("load_items")

    def _list(self, value: Json) -> None:
        provider, found = self._provider(value), catalogue(value)
        if provider is not None and found is not None:
            self._listed[provider] = found

    def _provider(self, value: Json) -> str | None:
        name = string(value, "provider_id", "providerId")
        if name is None:
            self._problem("unknown-record", "the call names no provider; skipped")
            return None
        return self._scope.full(name)

    def _take(self, name: str, data: Any, error: Any = None) -> None:
        """One item as a provider returned it; null while attached is context that is missing."""
        context = self._scope.holder(name)
        if context is None:
            return
        if not isinstance(data, dict) or not isinstance(data.get("content"), str):
            self._missing(name, error)
            return
        meta: Json = {k: data[k] for k in ("type", "summary", "link", "metadata") if data.get(k) is not None}
        source = {
            "schema_version": vocab.SCHEMA_VERSION,
            "source_id": context,
            "uri": f"sanqian://{name.replace(':', '/', 1)}",
            "source_kind": "context_provider",
        }
        self._put(name, "external_resource", data, meta, source)

    def _missing(self, name: str, error: Any) -> None:
        item = self._items.get(name)
        if item is not None:
            item.available = False
        record = self._make.record(
            missing_id=f"missing-{self._turn}-{name}",
            scope="turn",
            question=f"{name} failed while attached: {error}"
            if isinstance(error, str) and error
            else f"{name} returned nothing while attached",
            severity="high" if error else "info",
            status="open",
            candidate_sources=[{"source_id": name}],
        )
        self._emit(vocab.MISSING_DETECTED, record)

    def _put(
        self, name: str, kind: str, data: Json, native: Json, source: Json | None,
        marks: Json | None = None,
    ) -> None:  # fmt: skip
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
        if marks:
            meta["ctxctl"] = marks
        if source is not None:
            source["digest"] = f"sha256-16:{digest[: build.VERSION_DIGITS]}"
        title = data.get("title")
        record = build.text_item(
            name,
            kind,
            content,
            title=title if isinstance(title, str) else None,
            source_refs=[source] if source is not None else None,
            metadata=meta,
        )
        self._emit(vocab.ITEM_ADDED if known is None else vocab.ITEM_UPDATED, record)

    # -- what the app pushes, and what was said ---------------------------------------------------------

    def _push(self, value: Json) -> None:
        if not self._resources.push(value, self._line.number):
            self._problem("unknown-record", "the pushed resource has no content; skipped")

    def show(self, name: str, resource: Resource) -> None:
        """A pushed resource counts now."""
        data = resource.data
        meta: Json = {k: data[k] for k in ("type", "summary") if data.get(k) is not None}
        marks = {"identity": "derived"} if resource.derived else None
        line, self._line = self._line, self._line._replace(number=resource.line)
        self._put(name, "manual_note", data, {**meta, "push": True, "app": resource.app}, None, marks)
        self._line = line

    def refused(self, name: str, app: str) -> None:
        """A push that the agent in charge does not take: the host's rule, not a record of it."""
        record = self._make.record(
            missing_id=f"refused-{self._turn}-{name}-{self._line.number}",
            scope="session",
            question=f"the resource {name} stays out: {app} is not on the agent's allow-list",
            severity="info",
            status="blocked",
            metadata={"native": {"type": "pushResource", "app": app}, "ctxctl": {"derived": True}},
        )
        self._emit(vocab.MISSING_DETECTED, record)

    def _message(self, value: Json) -> None:
        content = value.get("content")
        if not isinstance(content, str):
            self._problem("unknown-record", "the message has no text; skipped")
            return
        self._messages += 1
        kind = "assistant_message" if value.get("role") == "assistant" else "user_message"
        name = string(value, "id") or f"message-{self._messages}"
        self._emit(vocab.ITEM_ADDED, build.text_item(name, kind, content))
