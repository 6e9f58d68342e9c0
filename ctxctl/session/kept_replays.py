"""Choose the session store that an inspector reads or writes; every replay loads this module."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ctxctl.trace.cache_files import LEAST, code_state, is_keeping

if TYPE_CHECKING:
    from ctxctl.engine.replay.edits import Edits
    from ctxctl.policies.registry import Strategy
    from ctxctl.session.grown_replay import GrownReplay, Inspected
    from ctxctl.session.params import Params
    from ctxctl.store.file import SessionStore, StoreKey, StoreWriter
    from ctxctl.trace.reader import Trace


class KeptReplays:
    """The cached replays of one trace, by replay parameters. Not thread-safe."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._found: SessionStore | None = None
        self._asked: object = None
        self._tried = False
        """Whether a replay of a part of the trace was looked up."""

    def of(self, inspector: Inspected) -> SessionStore | None:
        """Return the cached replay of an inspector's view, continued if its log has grown; None without
        one."""
        asked = inspector.params, inspector.strategy, inspector.edits
        kept = self.find(*asked)
        if kept is None and (grown := self._marked(*asked)) is not None and grown.bring_up(inspector):
            kept = self.find(*asked)
        return kept

    def find(self, params: Params, strategy: Strategy | None, edits: Edits | None) -> SessionStore | None:
        """Return the cached replay; None without one."""
        asked = (params, strategy, edits)
        if asked != self._asked:
            self._asked, self._tried = asked, False
            self.close()
            key = self.key(params, strategy, edits)
            if key is not None:
                from ctxctl.store.file import SessionStore

                self._found = SessionStore.open(key, self._trace.contents)
        return self._found

    def keeps(self, params: Params, strategy: Strategy | None, edits: Edits | None) -> bool:
        """Return whether a pass can be cached."""
        key = self.key(params, strategy, edits)
        return is_keeping() and key is not None and key.path is not None and key.steady()

    def writer(self, params: Params, strategy: Strategy | None, edits: Edits | None) -> StoreWriter | None:
        """Return the writer of a pass; None if it cannot be cached, or another process does so."""
        key = self.key(params, strategy, edits) if is_keeping() else None
        if key is None:
            return None
        from ctxctl.store.file import StoreWriter

        writer = StoreWriter(key, self._trace.contents, self._look_again)
        return writer if writer.writes else None

    def _marked(self, params: Params, strategy: Strategy | None, edits: Edits | None) -> GrownReplay | None:
        """Return a cached replay of a part of the trace, once; None without one."""
        key = None if self._tried else self.key(params, strategy, edits)
        self._tried = True
        if key is None:
            return None
        from ctxctl.session.grown_replay import GrownReplay

        return GrownReplay.find(key, self._trace, self._look_again)

    def _look_again(self, place: Path) -> None:
        self._asked = None
        from ctxctl.session.cache_room import prune_cache

        source = self._trace.source
        prune_cache(spare=source.kept.parent if source.kept is not None else place)

    def forget(self) -> None:
        """Remove a damaged cached replay."""
        if self._found is not None:
            self._found.drop()
            self._found = None

    def close(self) -> None:
        """Close the file."""
        if self._found is not None:
            self._found.close()
            self._found = None

    def key(self, params: Params, strategy: Strategy | None, edits: Edits | None) -> StoreKey | None:
        """Return the key of a cached replay.

        None for a trace with redactions, for a small or a growing one, and for a what-if.
        """
        source = self._trace.source
        if self._trace.redactor is not None or source.spooled or source.path is None or source.size < LEAST:
            return None
        from ctxctl.store.file import StoreKey

        under = made_under(params, strategy, edits)
        return None if under is None else StoreKey(source, under)


def made_under(params: Params, strategy: Strategy | None, edits: Edits | None) -> str | None:
    """Return all that a replay depends on besides the trace; None if other runs cannot use its results."""
    if edits is not None:
        return None
    if strategy is not None and not type(strategy).__module__.startswith("ctxctl."):
        return None  # changes of a plug-in cannot be detected
    limits = str(params.limits) if params.limits.given else ""
    encoding = f"{params.encoding}{' for all' if params.one_encoding else ''}"
    named = (code_state(), sys.byteorder, params.target, params.policy, params.model or "", encoding, limits)
    return "\n".join((*named, *_sizes_under(params)))


def _sizes_under(params: Params) -> tuple[str, ...]:
    """Return what else sizes and limits depend on: a calibration, the model table, the user's own models."""
    from ctxctl.tokens.catalogue.table import load_table

    found = params.calibration.calibration
    weighed = params.calibration.origin + (f" {found.digest}" if found is not None else "")
    return weighed, load_table().date, str(sorted(params.own_models.items()))
