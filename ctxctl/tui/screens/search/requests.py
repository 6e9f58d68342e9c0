"""The requests of the search screen, and their answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ctxctl.engine.query import Query
from ctxctl.model.hits import Found
from ctxctl.tui.requests import Request


@dataclass(frozen=True, slots=True)
class Hits:
    """How much further a search has come.  Each has hits of its own, so none replaces another."""

    serial: int
    found: Found


@dataclass(frozen=True, slots=True)
class SearchRequest(Request):
    """Everything in the trace that a query holds of."""

    worker: ClassVar[str] = "search"

    query: Query
    serial: int
