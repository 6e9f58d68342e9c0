"""One step of a walk through a replay, with its frame and what changed in it."""

from __future__ import annotations

from typing import NamedTuple

from ctxctl.engine.replay.cursor import StepAt
from ctxctl.engine.replay.frames import FrameDelta
from ctxctl.engine.replay.run import Engine
from ctxctl.engine.replay.step_tracker import ThreadKey
from ctxctl.model.content import Content
from ctxctl.model.results import Step

Omitted = dict[tuple[str, str | None], Content]
"""By item and version, the texts of what a step left out."""


class Walked(NamedTuple):
    """One step of a walk."""

    at: StepAt
    delta: FrameDelta
    """How its frame differs from that of the step before in its thread, or where the encoding has changed,
    from that weighed anew."""
    omitted: Omitted
    """The texts of the versions that its `omitted` changes name, as far as the trace has them."""

    @property
    def key(self) -> ThreadKey:
        """The thread that the step is of."""
        return ThreadKey(self.at.step.session, self.at.step.thread)


def walked_by(engine: Engine, at: StepAt) -> Walked:
    """The step that an engine has just finished."""
    return Walked(at, engine.delta(), _omitted(at.step, engine))


def _omitted(step: Step, engine: Engine) -> Omitted:
    changes = [change for change in step.changes if change.status == "omitted"]
    if not changes:
        return {}
    versions = engine.threads[ThreadKey(step.session, step.thread)].book.versions
    found: Omitted = {}
    for change in changes:
        version = versions.get((change.item, change.version))
        if version is not None and version.content is not None:
            found[change.item, change.version] = version.content
    return found
