"""Findings for reports that walk through a trace anyway: the rules look on, and no second replay is made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctxctl.engine.replay.cursor import StepAt
from ctxctl.engine.replay.run import Engine
from ctxctl.lint.run import LintPass
from ctxctl.lint.selection import configured_rules
from ctxctl.model.event import Event
from ctxctl.model.findings import Finding
from ctxctl.session import Inspector


class Looking:
    """The rules of the settings, beside a walk.

    Args:
        own: The settings of `lint`.
        models: Models of the user's own, as the settings have them.
    """

    def __init__(
        self, inspector: Inspector, own: Mapping[str, Any], models: Mapping[str, dict[str, Any]]
    ) -> None:
        self._pass = LintPass(inspector, configured_rules(own), dict(models))

    def seen(self, event: Event, engine: Engine) -> None:
        """For `Inspector.walk`."""
        self._pass.seen(event, engine)

    def step(self, at: StepAt, engine: Engine) -> None:
        """The next step."""
        self._pass.step(at, engine)

    def findings(self) -> list[Finding]:
        """What was found, the worst first; once the walk is over."""
        return self._pass.over().findings
