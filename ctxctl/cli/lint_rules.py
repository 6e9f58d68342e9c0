"""Which rules ``ctxctl lint`` is asked for, and what they found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ctxctl.lint.registry import RuleChoice
    from ctxctl.model.findings import Finding, Tally


class RuleWords(NamedTuple):
    """What the command line and the settings say of rules."""

    select: list[str] | None
    ignore: list[str] | None
    severity: str | None
    given: list[str] | None
    """Parameters, as `RULE.NAME=VALUE`."""
    own: dict[str, Any]
    """The settings' table."""


class Found:
    """What was found in all traces."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.tallies: dict[str, Tally] = {}
        self.foreign: set[str] = set()
        """Traces whose lines are not those of their file."""
        self.code = 0
        """0, or what could not be read."""


def chosen_rules(asked: RuleWords) -> RuleChoice:
    """Flags before settings; parameters of both, and of one that both name the flag's."""
    from ctxctl.lint.registry import choose_rules, parsed_parameters

    own = asked.own
    values: dict[str, dict[str, Any]] = {name: dict(table) for name, table in own.get("rules", {}).items()}
    for rule, name, value in parsed_parameters(asked.given or ()):
        values.setdefault(rule, {})[name] = value
    return choose_rules(
        asked.select or own.get("select", ()),
        [*(asked.ignore or ()), *own.get("ignore", ())],
        asked.severity or own.get("severity"),
        values,
    )
