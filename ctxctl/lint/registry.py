"""The rules by code, those of plug-ins included (entry point group ``ctxctl.rules``), and which of them run.

Flags go before settings, settings before defaults.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from ctxctl.entry_points import installed, loaded
from ctxctl.errors import UsageError
from ctxctl.lint.rule import Rule
from ctxctl.model.findings import SEVERITIES

_OWN: Final = (
    "copies:InjectedAgain",
    "versions:VersionWithoutChange",
    "versions:ChangeWithoutVersion",
    "copies:StaleCopies",
    "tools:ToolAsContext",
    "citations:UnreferencedSource",
    "cache:VolatilePrefix",
    "tools:UnusedTools",
    "copies:LargeItem",
    "copies:Duplicate",
    "copies:NearDuplicate",
    "selection:SelectedNotInjected",
    "selection:InjectedNotSelected",
    "selection:OmittedWithoutReason",
    "budget:BudgetDoesNotAddUp",
    "budget:StillOverBudget",
    "budget:CompactionWithoutCoverage",
    "tools:CallWithoutResult",
    "citations:RemovedStillCited",
    "governance:RedactedReturns",
    "selection:MissingUnresolved",
    "governance:DeclaresStatus",
    "versions:VersionKeyCollision",
    "selection:SecondSelection",
    "selection:NullWhileAttached",
    "bill:EstimateOffBill",
    "bill:UnrecordedCut",
    "cache:CacheMissed",
    "bill:PartialOutput",
    "budget:OverCap",
)
"""Where each rule is, below `ctxctl.lint.rules`, in the order of the codes."""


@lru_cache(maxsize=1)
def rules() -> tuple[type[Rule], ...]:
    """All rules, by code; of two plug-ins' with one code the first counts."""
    # A plug-in that does not load is passed over.
    plugged = (plugin.made for plugin in installed("ctxctl.rules", _as_rule) if plugin.error is None)
    known: dict[str, type[Rule]] = {}
    for rule in (*_own(), *plugged):
        known.setdefault(rule.code, rule)
    return tuple(sorted(known.values(), key=lambda rule: rule.code))


def _own() -> list[type[Rule]]:
    return [loaded(f"ctxctl.lint.rules.{name}") for name in _OWN]


def _as_rule(found: Any) -> type[Rule]:
    """A rule's class; raises TypeError for anything else."""
    if isinstance(found, type) and issubclass(found, Rule) and hasattr(found, "code"):
        return found
    raise TypeError("is no rule with a code")


class Chosen(NamedTuple):
    """A rule with the values that were set for it."""

    rule: type[Rule]
    values: dict[str, Any]

    def __call__(self, _choice: object = None) -> Rule:
        """Make the rule for one trace, with its values set."""
        made = self.rule()
        for name, value in self.values.items():
            setattr(made, name, value)
        return made


class RuleChoice(NamedTuple):
    """The rules of one run, by code."""

    rules: tuple[Chosen, ...]


def choose_rules(
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    severity: str | None = None,
    values: Mapping[str, Mapping[str, Any]] | None = None,
) -> RuleChoice:
    """The rules to run.

    Args:
        select: Codes, beginnings of codes, or names; `all` is every rule.  None: those on by default.
        ignore: The same, of those not to run; it wins.
        severity: The least that is wanted.
        values: Parameters by code or name of the rule.

    Raises UsageError: `unknown-rule`, `unknown-severity`, `bad-rule-parameter`.
    """
    known = rules()
    if severity is not None and severity not in SEVERITIES:
        raise UsageError(
            "unknown-severity", f"no severity is called {severity!r}", hint=f"one of {', '.join(SEVERITIES)}"
        )
    wanted = _named(select, known)
    unwanted = _named(ignore, known) or set()
    least = SEVERITIES.index(severity) if severity is not None else len(SEVERITIES)
    found = []
    given = _given(values or {}, known)
    for rule in known:
        on = rule.default if wanted is None else rule.code in wanted
        if on and rule.code not in unwanted and SEVERITIES.index(rule.severity) <= least:
            found.append(Chosen(rule, given.get(rule.code, {})))
    return RuleChoice(tuple(found))


def parsed_parameters(given: Iterable[str]) -> Iterable[tuple[str, str, Any]]:
    """Parameters as they are typed, ``RULE.NAME=VALUE``; raises UsageError("bad-rule-parameter")."""
    for text in given:
        name, equals, value = text.partition("=")
        rule, dot, parameter = name.strip().partition(".")
        try:
            number: Any = float(value.replace("_", "")) if "." in value else int(value)
        except ValueError:
            number = None
        if not (rule and dot and parameter and equals) or number is None:
            raise UsageError(
                "bad-rule-parameter", f"{text[:80]!r} sets nothing", hint="for example --set CTX009.share=0.4"
            )
        yield rule, parameter, number


def configured_rules(own: Mapping[str, Any]) -> RuleChoice:
    """The rules that the settings ask for (`[lint]`); raises what `choose_rules` raises."""
    return choose_rules(
        own.get("select", ()), own.get("ignore", ()), own.get("severity"), own.get("rules", {})
    )


def find_rule(name: str) -> type[Rule]:
    """The rule of this code or name; raises UsageError("unknown-rule")."""
    found = next((r for r in rules() if name.upper() == r.code or name == r.name), None)
    if found is None:
        raise _unknown(name)
    return found


def _named(names: Iterable[str], known: Iterable[type[Rule]]) -> set[str] | None:
    """Codes that names, codes and beginnings of codes stand for; None where nothing is named."""
    found: set[str] = set()
    asked = [part.strip() for name in names for part in name.split(",") if part.strip()]
    for name in asked:
        matching = {
            r.code for r in known if name == "all" or r.name == name or r.code.startswith(name.upper())
        }
        if not matching:
            raise _unknown(name)
        found |= matching
    return found if asked else None


def _unknown(name: str) -> UsageError:
    from difflib import get_close_matches

    near = get_close_matches(name, [word for r in rules() for word in (r.code, r.name)], 2)
    hint = f"did you mean {' or '.join(near)}?" if near else "`ctxctl lint --rules` lists them"
    return UsageError("unknown-rule", f"no rule is called {name[:60]!r}", hint=hint)


def _given(values: Mapping[str, Mapping[str, Any]], known: Iterable[type[Rule]]) -> dict[str, dict[str, Any]]:
    """Checked parameters by code."""
    found: dict[str, dict[str, Any]] = {}
    for name, table in values.items():
        rule = find_rule(name)
        for parameter, value in table.items():
            if parameter not in rule.parameters:
                told = ", ".join(f"{p} = {getattr(rule, p)}" for p in rule.parameters) or "none"
                raise UsageError(
                    "bad-rule-parameter",
                    f"rule {rule.code} has no parameter {parameter!r}",
                    hint=f"parameters and their defaults: {told}",
                )
            found.setdefault(rule.code, {})[parameter] = _like(rule, parameter, value)
    return found


def _like(rule: type[Rule], parameter: str, value: Any) -> Any:
    """The value, checked to be of the default's kind: a number from 0 up, or a share from 0 to 1."""
    default = getattr(rule, parameter)
    number = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1 << 53
    if isinstance(default, float) and number and value <= 1:
        return float(value)
    if isinstance(default, int) and number and float(value).is_integer():
        return int(value)
    what = "a share from 0 to 1" if isinstance(default, float) else "a number from 0 up"
    raise UsageError("bad-rule-parameter", f"{rule.code}: {parameter} is {what}, not {value!r}")
