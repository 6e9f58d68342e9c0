"""Which session store an inspector reads, and what writes one: the part that is loaded with every replay."""

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
    """The kept replays of one trace, one by what it is replayed under.  Not thread-safe."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._found: SessionStore | None = None
        self._asked: object = None
        self._tried = False
        """Whether a replay of a part of the trace was looked for."""

    def of(self, inspector: Inspected) -> SessionStore | None:
        """The kept replay of what an inspector shows, gone on with where its log has grown; None where none
        is kept."""
        asked = inspector.params, inspector.strategy, inspector.edits
        kept = self.find(*asked)
        if kept is None and (grown := self._marked(*asked)) is not None and grown.bring_up(inspector):
            kept = self.find(*asked)
        return kept

    def find(self, params: Params, strategy: Strategy | None, edits: Edits | None) -> SessionStore | None:
        """The kept replay; None where none is kept."""
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
        """Whether a pass can be written down."""
        key = self.key(params, strategy, edits)
        return is_keeping() and key is not None and key.path is not None and key.steady()

    def writer(self, params: Params, strategy: Strategy | None, edits: Edits | None) -> StoreWriter | None:
        """What writes a pass down; None where it cannot be kept, or is by another."""
        key = self.key(params, strategy, edits) if is_keeping() else None
        if key is None:
            return None
        from ctxctl.store.file import StoreWriter

        writer = StoreWriter(key, self._trace.contents, self._look_again)
        return writer if writer.writes else None

    def _marked(self, params: Params, strategy: Strategy | None, edits: Edits | None) -> GrownReplay | None:
        """A kept replay of a part of the trace, told once; None where there is none."""
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
        """What was found is damaged: remove it."""
        if self._found is not None:
            self._found.drop()
            self._found = None

    def close(self) -> None:
        """Let the file go."""
        if self._found is not None:
            self._found.close()
            self._found = None

    def key(self, params: Params, strategy: Strategy | None, edits: Edits | None) -> StoreKey | None:
        """What is kept of a replay is kept under this.

        None for a trace with redactions, a small or a growing one, and for what is supposed.
        """
        source = self._trace.source
        if self._trace.redactor is not None or source.spooled or source.path is None or source.size < LEAST:
            return None
        from ctxctl.store.file import StoreKey

        under = made_under(params, strategy, edits)
        return None if under is None else StoreKey(source, under)


def made_under(params: Params, strategy: Strategy | None, edits: Edits | None) -> str | None:
    """All that a replay depends on besides the trace; None where its results are of no use to another run."""
    if edits is not None:
        return None
    if strategy is not None and not type(strategy).__module__.startswith("ctxctl."):
        return None  # nobody knows when a plug-in changes
    limits = str(params.limits) if params.limits.given else ""
    encoding = f"{params.encoding}{' for all' if params.one_encoding else ''}"
    named = (code_state(), sys.byteorder, params.target, params.policy, params.model or "", encoding, limits)
    return "\n".join((*named, *_sizes_under(params)))


def _sizes_under(params: Params) -> tuple[str, ...]:
    """What sizes and limits rest on besides: a calibration, the model table, the user's own models."""
    from ctxctl.tokens.catalogue.table import load_table

    found = params.calibration.calibration
    weighed = params.calibration.origin + (f" {found.digest}" if found is not None else "")
    return weighed, load_table().date, str(sorted(params.own_models.items()))
