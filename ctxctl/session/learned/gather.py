"""From a recording's requests to a learned set: what stands in every request of a kind of thread."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

from ctxctl.ingest.build import Json, digest_of
from ctxctl.session.learned.book import STANDING, LearnedItem, LearnedSet, joined_sets
from ctxctl.session.learned.frames import CarriedRequest, HeldPlacement, requests

_KINDS: Final = STANDING | {"policy_note", "runtime_state", "durable_memory", "external_resource"}
_BILLING: Final = re.compile(
    r"x-anthropic-billing-header:\s*cc_version=(\d+(?:\.\d+)+?)(?:\.[0-9a-f]{3})?\s*(?:;|$)"
)
_REDACTED: Final = re.compile(r"\[redacted [a-z0-9-]{1,40}, \d{1,9} chars, #[0-9a-f]{12}\]")


class LearnedGatherer:
    """What a recording tells; sessions of one recording are recordings of their own.

    Args:
        clean: Takes secrets out of a text.
    """

    def __init__(self, clean: Callable[[str], str] = lambda text: text) -> None:
        self._clean = clean
        self._common: dict[tuple[str | None, str], dict[tuple[str, str], tuple[HeldPlacement, str]]] = {}
        """By session and kind of thread: what all requests so far have, by kind and version, in order."""
        self._counts: dict[tuple[str | None, str], int] = {}
        self.client: str | None = None
        """As the requests themselves say; None where they do not."""
        self.version: str | None = None
        self.requests = 0

    def take(self, events: Iterable[Json]) -> None:
        """All requests of a recording's events."""
        for carried in requests(events):
            self.requests += 1
            if carried.kind is not None:
                self._meet((carried.session, carried.kind), carried)

    def _meet(self, key: tuple[str | None, str], carried: CarriedRequest) -> None:
        present: dict[tuple[str, str], tuple[HeldPlacement, str]] = {}
        for held in carried.window:
            if held.kind in _KINDS and held.text:
                self._name(held.text)
                present.setdefault((held.kind, held.version), (held, held.text))
        known = self._common.get(key)
        if known is None:
            self._common[key] = present
        else:
            self._common[key] = {name: value for name, value in known.items() if name in present}
        self._counts[key] = self._counts.get(key, 0) + 1

    def _name(self, text: str) -> None:
        if self.version is None and text.startswith("x-anthropic-billing-header:"):
            found = _BILLING.match(text)
            if found is not None:
                self.client, self.version = "claude-code", found[1]

    def learned(self, client: str, version: str) -> LearnedSet | None:
        """The set, all sessions joined; None where no request has anything that all of its thread have."""
        made: LearnedSet | None = None
        sessions = dict.fromkeys(session for session, _ in self._common)
        for session in sessions:
            one = self._of(session, client, version)
            if one is not None:
                made = one if made is None else joined_sets(made, one)
        return made

    def _of(self, session: str | None, client: str, version: str) -> LearnedSet | None:
        threads: dict[str, tuple[LearnedItem, ...]] = {}
        contents: dict[str, str] = {}
        stubs = 0
        for (its, kind), common in self._common.items():
            if its != session or not common:
                continue
            items = []
            for held, text in common.values():
                clean = self._clean(text)
                stubs += len(_REDACTED.findall(clean)) - len(_REDACTED.findall(text))
                digest = digest_of(clean)
                contents[digest] = clean
                items.append(LearnedItem(held.kind, held.role, digest, held.title, held.segment))
            threads[kind] = tuple(items)
        if not threads:
            return None
        count = sum(number for (its, _), number in self._counts.items() if its == session)
        return LearnedSet(client, version, threads, contents, requests=count, redacted=stubs)
