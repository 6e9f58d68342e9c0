"""What apps push by themselves: held for the session, shown while the app is on the allow-list."""

from __future__ import annotations

from typing import Any, Protocol

from ctxctl.formats.sanqian.scope import Scope, ident, string

Json = dict[str, Any]


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


class Shows(Protocol):
    """Who tells what becomes of a resource."""

    def show(self, name: str, resource: Resource) -> None:
        """It is there, or there anew."""

    def gone(self, name: str, native: str) -> None:
        """It is there no more; `native`: the call that did it."""

    def refused(self, name: str, app: str) -> None:
        """Its app may not push."""


class Resources:
    """The resources of one conversation."""

    def __init__(self, scope: Scope, to: Shows) -> None:
        self._scope = scope
        self._to = to
        self.held: dict[str, Resource] = {}

    def push(self, value: Json, line: int) -> bool:
        """Take a push; False if it has no content.  One without an id is named after its line."""
        data = value.get("resource")
        if not isinstance(data, dict) or not isinstance(data.get("content"), str):
            return False
        stored = next((v for k, v in value.items() if k.startswith("stored") and isinstance(v, dict)), data)
        app = string(data, "appName", "app") or string(stored, "appName") or string(value, "app", "appName")
        native = string(stored, "fullId") or ident(data)
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
        allowed = self._scope.allowed()
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
