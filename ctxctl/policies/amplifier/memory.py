"""What context-simple remembers of a session."""

from __future__ import annotations

from typing import NamedTuple

from ctxctl.policies.amplifier.messages import Sizes


class Memory(NamedTuple):
    """What a session has decided so far; the older version decides anew each time, and keeps none of it."""

    removed: frozenset[str] = frozenset()
    truncated: frozenset[str] = frozenset()
    stubbed: frozenset[str] = frozenset()
    level: int = 0
    told: dict[str, int] | None = None
    """Of the last compaction, which the notice goes on telling."""
    sizes: Sizes = {}  # noqa: RUF012 (never the default: each session has its own)
    """Sizes measured so far; what they are of never changes, so all copies share them."""
    doubt: str | None = None
    """Why what was decided may not be what the runtime decided."""
