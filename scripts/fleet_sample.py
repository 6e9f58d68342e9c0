"""Sessions of a made-up team: for the picture of `ctxctl fleet`, and for the laws of its screens."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from random import Random
from typing import Final, NamedTuple

from ctxctl.dataset.session_values import Figures, Places, SessionRow, SessionRows


class _Client(NamedTuple):
    format: str
    versions: tuple[str, ...]
    model: str
    limit: int
    dollars: float
    """What a million tokens of input cost, most of them out of a cache."""
    folder: str
    billed: float
    """The share of its sessions that say what a request cost in tokens."""


CLIENTS: Final = {
    "Claude Code": _Client(
        "claude-code", ("2.1.2", "2.1.3"), "claude-opus-4-5", 200_000, 1.1, ".claude/projects", 1.0
    ),
    "Codex": _Client("codex", ("0.64.0", "0.66.0"), "gpt-5.1-codex", 272_000, 0.4, ".codex/sessions", 0.95),
    "Gemini CLI": _Client(
        "gemini-cli", ("0.19.4",), "gemini-3-pro", 1_048_576, 0.9, ".gemini/tmp", 0.9
    ),
    "opencode": _Client("opencode", ("1.0.150",), "qwen3-coder", 131_072, 0.0, "exports", 0.4),
}  # fmt: skip
PROJECTS: Final = {
    "storefront": 30,
    "search-index": 22,
    "billing": 15,
    "mobile-app": 9,
    "infra": 6,
    "docs": 4,
}
"""By project, its sessions."""
TITLES: Final = (
    "Carts lose an item when two tabs are open", "Speed up the nightly reindex",
    "Retry webhooks that time out", "Upgrade to the new router",
    "Why does the queue grow at noon?", "Dark colours for the settings page",
    "A flaky test of the importer", "Rename the tenant table",
    "Explain the release script", "Drop Python 3.10",
)  # fmt: skip
_NEWEST: Final = datetime(2026, 11, 20, 16, 5)


def sample() -> SessionRows:
    """Sessions of eight weeks, the same each time."""
    chance = Random(19)
    rows = [
        _session(chance, number, project if number % 29 else None)
        for number, project in enumerate(
            (name for name, count in PROJECTS.items() for _ in range(count)), start=1
        )
    ]
    rows.sort(key=lambda row: (row.started is not None, row.started), reverse=True)
    return SessionRows("fleet", 12, tuple(rows), len(rows))


def _session(chance: Random, number: int, project: str | None) -> SessionRow:
    name = chance.choices(list(CLIENTS), (6, 3, 2, 1))[0]
    client = CLIENTS[name]
    began = _NEWEST - timedelta(minutes=chance.randrange(8 * 7 * 24 * 60))
    session = str(uuid.UUID(int=chance.getrandbits(128), version=4))
    own = _figures(chance, client)
    places = Places("14.3", "9.1" if own.usd is not None else None, "6.2" if own.misses else None)
    return SessionRow(
        key=f"{number:016x}", source=f"{number + 4096:016x}", name=session,
        title=chance.choice(TITLES) if chance.random() < 0.7 else None,
        project=project, branch=chance.choice(("main", "main", "fix-retries", None)), client=name,
        client_version=chance.choice(client.versions), model=client.model, format=client.format,
        started=began, turns=chance.randint(2, 40), labels=(),
        path=f"/home/kim/{client.folder}/{project or 'tmp'}/{session}.jsonl", sessions=1, own=own,
        copied=Figures(), places=places,
    )  # fmt: skip


def _figures(chance: Random, client: _Client) -> Figures:
    requests = chance.randint(6, 160)
    largest = chance.uniform(0.15, 0.97) * client.limit
    sent = int(requests * largest * chance.uniform(0.4, 0.6))
    billed = chance.random() < client.billed
    priced = billed and client.dollars > 0
    return Figures(
        requests=requests, sent=sent, unbilled=0 if billed else requests, filled=largest / client.limit,
        unlimited=0, read=int(sent * chance.uniform(0.55, 0.96)) if billed else None,
        read_of=sent if billed else None, usd=sent * client.dollars / 1e6 if priced else None,
        unpriced=0 if priced else requests, misses=chance.choice((0, 0, 0, 1, 2, 5)) if billed else None,
        unread=0 if billed else 1, compactions=chance.choice((0, 0, 0, 0, 1, 2)),
    )  # fmt: skip
