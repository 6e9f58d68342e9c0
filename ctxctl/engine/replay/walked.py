"""One step of a walk through a replay, with its frame and its changes."""

from __future__ import annotations

from typing import NamedTuple

from ctxctl.engine.replay.cursor import StepAt
from ctxctl.engine.replay.frames import FrameDelta
from ctxctl.engine.replay.run import Engine
from ctxctl.engine.replay.step_tracker import ThreadKey
from ctxctl.model.content import Content
from ctxctl.model.results import Step

Omitted = dict[tuple[str, str | None], Content]
"""Texts of what a step left out, by item and version."""


class Walked(NamedTuple):
    """One step of a walk."""

    at: StepAt
    delta: FrameDelta
    """Difference from the thread's previous frame, in current sizes if the encoding has changed."""
    omitted: Omitted
    """Texts of the versions that its `omitted` changes name, if the trace has them."""

    @property
    def key(self) -> ThreadKey:
        """The step's thread."""
        return ThreadKey(self.at.step.session, self.at.step.thread)


def walked_by(engine: Engine, at: StepAt) -> Walked:
    """Return the step that an engine has just finished."""
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
