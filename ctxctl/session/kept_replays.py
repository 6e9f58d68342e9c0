"""Which kept replay an inspector reads, and what keeps one: the part that is loaded with every replay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxctl.trace.cache_files import LEAST, is_keeping

if TYPE_CHECKING:
    from ctxctl.engine.replay.edits import Edits
    from ctxctl.policies.registry import Strategy
    from ctxctl.session.grown_replay import GrownReplay, Inspected
    from ctxctl.session.params import Params
    from ctxctl.session.replay_cache import KeptReplay
    from ctxctl.session.replay_rows import ReplayKey
    from ctxctl.session.replay_writer import ReplayWriter
    from ctxctl.trace.reader import Trace


class KeptReplays:
    """The kept replays of one trace, one by what it is replayed under.  Not thread-safe."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._found: KeptReplay | None = None
        self._asked: object = None
        self._tried = False
        """Whether a replay of a part of the trace was looked for."""

    def of(self, inspector: Inspected) -> KeptReplay | None:
        """The kept replay of what an inspector shows, gone on with where its log has grown; None where none
        is kept."""
        asked = inspector.params, inspector.strategy, inspector.edits
        kept = self.find(*asked)
        if kept is None and (grown := self._marked(*asked)) is not None and grown.bring_up(inspector):
            kept = self.find(*asked)
        return kept

    def find(self, params: Params, strategy: Strategy | None, edits: Edits | None) -> KeptReplay | None:
        """The kept replay; None where none is kept."""
        asked = (params, strategy, edits)
        if asked != self._asked:
            self._asked, self._tried = asked, False
            self.close()
            key = self.key(params, strategy, edits)
            if key is not None:
                from ctxctl.session.replay_cache import KeptReplay

                self._found = KeptReplay.open(key, self._trace.contents)
        return self._found

    def keeps(self, params: Params, strategy: Strategy | None, edits: Edits | None) -> bool:
        """Whether a pass can be written down."""
        key = self.key(params, strategy, edits)
        return is_keeping() and key is not None and key.path is not None and key.steady()

    def writer(self, params: Params, strategy: Strategy | None, edits: Edits | None) -> ReplayWriter | None:
        """What writes a pass down; None where it cannot be kept, or is by another."""
        key = self.key(params, strategy, edits) if is_keeping() else None
        if key is None:
            return None
        from ctxctl.session.replay_writer import ReplayWriter

        writer = ReplayWriter(key, self._trace.contents, self._look_again)
        return writer if writer.writes else None

    def _marked(self, params: Params, strategy: Strategy | None, edits: Edits | None) -> GrownReplay | None:
        """A kept replay of a part of the trace, told once; None where there is none."""
        key = None if self._tried else self.key(params, strategy, edits)
        self._tried = True
        if key is None:
            return None
        from ctxctl.session.grown_replay import GrownReplay

        return GrownReplay.find(key, self._trace, self._look_again)

    def _look_again(self) -> None:
        self._asked = None

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

    def key(self, params: Params, strategy: Strategy | None, edits: Edits | None) -> ReplayKey | None:
        """What is kept of a replay is kept under this.

        None for a trace with redactions, a small or a growing one, and for what is supposed.
        """
        source = self._trace.source
        if self._trace.redactor is not None or source.spooled or source.path is None or source.size < LEAST:
            return None
        from ctxctl.session.cache_key import made_under
        from ctxctl.session.replay_rows import ReplayKey

        under = made_under(params, strategy, edits)
        return None if under is None else ReplayKey(source, under)
