"""The rules by code, those of plug-ins included (entry point group ``ctxctl.rules``)."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Final

from ctxctl.lint.rule import Rule

_OWN: Final = (
    "again:InjectedAgain",
    "versions:VersionWithoutChange",
    "versions:ChangeWithoutVersion",
    "residue:StaleCopies",
    "tools:ToolAsContext",
    "reference:UnreferencedSource",
    "prefix:VolatilePrefix",
    "tools:UnusedTools",
    "residue:LargeItem",
    "duplicates:Duplicate",
    "near_duplicates:NearDuplicate",
    "selection:SelectedNotInjected",
    "selection:InjectedNotSelected",
    "selection:OmittedWithoutReason",
    "budget:BudgetDoesNotAddUp",
    "budget:StillOverBudget",
    "compaction:CompactionWithoutCoverage",
    "calls:CallWithoutResult",
    "removed:RemovedStillCited",
    "redaction:RedactedReturns",
    "missing:MissingUnresolved",
    "status:DeclaresStatus",
    "versions:VersionKeyCollision",
    "selection:SecondSelection",
    "missing:NullWhileAttached",
    "bill:EstimateOffBill",
    "bill:UnrecordedCut",
    "missed:CacheMissed",
    "doubt:ImpossibleBill",
    "over:OverCap",
)
"""Where each rule is, below `ctxctl.lint.rules`, in the order of the codes."""


@lru_cache(maxsize=1)
def rules() -> tuple[type[Rule], ...]:
    """All rules, by code; of two plug-ins' with one code the first counts."""
    found = [*_own(), *_plugged()]
    known: dict[str, type[Rule]] = {}
    for rule in found:
        known.setdefault(rule.code, rule)
    return tuple(sorted(known.values(), key=lambda rule: rule.code))


def _own() -> list[type[Rule]]:
    made = []
    for entry in _OWN:
        module, _, name = entry.partition(":")
        made.append(getattr(import_module(f"ctxctl.lint.rules.{module}"), name))
    return made


def _plugged() -> list[type[Rule]]:
    """Rules of other packages; one that cannot be imported is passed over."""
    from importlib.metadata import entry_points

    found = []
    for entry in entry_points(group="ctxctl.rules"):
        try:
            made = entry.load()
        except Exception:
            continue
        if isinstance(made, type) and issubclass(made, Rule) and hasattr(made, "code"):
            found.append(made)
    return found
