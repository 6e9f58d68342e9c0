"""Histories that the provider holds: a request that names an earlier answer goes on from there."""

from __future__ import annotations

from typing import NamedTuple

from ctxctl.formats.kit.parts import string
from ctxctl.formats.wire.prints import Request
from ctxctl.formats.wire.threads import Thread


class _Link(NamedTuple):
    thread: Thread
    epoch: int
    rows: int
    """Rows behind the head that the answer was given to, and its own."""


class Chains:
    """Answers that were seen, by the provider's id."""

    def __init__(self) -> None:
        self._links: dict[str, _Link] = {}

    def answered(self, response_id: str | None, thread: Thread) -> None:
        """Remember what an answer's history is: the window as it is now."""
        if response_id is not None:
            rows = len(thread.conversation) - thread.rows_before()
            self._links[response_id] = _Link(thread, thread.epoch, rows)

    def keep(self, most: int) -> None:
        """Forget the oldest beyond so many."""
        for name in list(self._links)[: max(0, len(self._links) - most)]:
            del self._links[name]

    def drop(self, threads: list[Thread]) -> None:
        """Forget the answers of these threads."""
        names = {id(thread) for thread in threads}
        self._links = {name: link for name, link in self._links.items() if id(link.thread) not in names}

    def before(self, request: Request) -> tuple[Thread, int] | None:
        """The thread of a request's history, and its rows behind the head; None if it is not known."""
        named = string(request.body.get("previous_response_id"))
        link = self._links.get(named) if named is not None else None
        if link is None or link.thread.epoch != link.epoch:
            return None
        if len(link.thread.conversation) - link.thread.rows_before() < link.rows:
            return None
        for other in [n for n, x in self._links.items() if x.thread is link.thread and x.rows > link.rows]:
            # What came after it is cut off by what comes now.
            del self._links[other]
        return link.thread, link.rows
