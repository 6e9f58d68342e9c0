"""What limits a window where a trace records no limit: the model table, and the runtimes' own rules."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from ctxctl.engine.rules import Catalogued, Threshold
from ctxctl.model.whatif import Limits


class Limiter:
    """The table and the rules for the captures of one runtime; each question is answered once.

    Args:
        runtime: Format of the capture; None: the trace was recorded, and no client's rule applies.
        own: The user's table of models (`[models."name"]` of the settings).
    """

    def __init__(self, runtime: str | None, own: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        from ctxctl.tokens.catalogue.limits import LimitBook

        self._runtime = runtime
        self._book = LimitBook(own)
        self.compacts_at = lru_cache(maxsize=256)(self._compacts_at)
        """As `engine.rules.Rules.compacts_at` wants it."""

    def catalogue(self, model: str | None, provider: str | None, client: str | None) -> Catalogued | None:
        """As `engine.rules.Rules.catalogue` wants it: never a guess; without limits the note says why."""
        if model is None:
            return None
        known = self._book.of(model, provider, self._runtime, client)
        limits, own = Limits(known.window, None, known.max_input), known.how == "settings"
        return Catalogued(limits, known.note, known.max_output, own)

    def _compacts_at(
        self, limits: Limits, model: str | None, provider: str | None, client: str | None
    ) -> Threshold | None:
        if self._runtime is None or limits.cap is None:
            return None
        from ctxctl.tokens.catalogue.thresholds import threshold

        known = self._book.of(model, provider, self._runtime, client)
        most = limits.max_input
        if most is None and limits.window == known.window:
            most = known.max_input
        found = threshold(self._runtime, limits.window, known.max_output, client, max_input=most, model=model)
        return Threshold(found.tokens, found.source) if found is not None else None
