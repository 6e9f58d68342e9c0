"""What `ctxctl fleet check` holds a dataset to: rules of a TOML file, read and decided.

A rule is a bound on a measure of sessions, or on a column of a question's answer.  `worse_by_at_most` holds a
period against the one before, as far as there are sessions enough to tell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final, Literal, NamedTuple

import msgspec

from ctxctl import wording
from ctxctl.dataset import comparing, questions
from ctxctl.errors import UsageError

Outcome = Literal["holds", "fails", "unknown"]
Ask = Callable[[str, Mapping[str, Any]], list[dict[str, Any]]]
"""Rows of a question, by the names of its columns."""
_DAY: Final = timedelta(days=1)
_MOST: Final = 10_000_000
_SHOWN: Final = 3


class Rule(msgspec.Struct, forbid_unknown_fields=True, rename="kebab", frozen=True):
    """One rule, as a table ``[[rule]]`` has it; a name may be written with `_` for `-`."""

    name: str
    measure: str | None = None
    question: str | None = None
    column: str | None = None
    """Of the question's answer; every row is held to the bound."""
    at_most: float | None = None
    at_least: float | None = None
    worse_by_at_most: str | None = None
    """Per cent, of a measure, from the period before to the last one."""
    days: int = 30
    """Length of the period; of rules without `worse-by-at-most`, 0 is all there is."""
    where: dict[str, str] = {}
    """Sessions, by the parameters that every question takes."""
    param: dict[str, str | float] = {}
    """The question's own parameters."""


class Decided(NamedTuple):
    """What came of one rule."""

    rule: Rule
    outcome: Outcome
    message: str
    """One sentence without a full stop: the number found, over what."""
    value: float | None
    """The worst value that was found."""
    sessions: int
    """That were looked at."""


def read_rules(data: bytes, name: str) -> list[Rule]:
    """The rules of a file; raises UsageError (`bad-rules`)."""
    import tomllib

    try:
        table = tomllib.loads(data.decode())
        listed = table.pop("rule", [])
        if table or not listed:
            raise ValueError("it has [[rule]] tables and nothing else")
        made = [
            msgspec.convert({key.replace("_", "-"): value for key, value in one.items()}, Rule)
            for one in listed
        ]
        for one in made:
            _checked(one)
        return made
    except (ValueError, TypeError, AttributeError, msgspec.ValidationError) as error:
        raise UsageError(
            "bad-rules", f"{name}: {error}", hint="docs/fleet.md shows a file of rules"
        ) from None


def _checked(rule: Rule) -> None:
    """Raises ValueError where a rule cannot be decided."""

    def bad(why: str) -> ValueError:
        return ValueError(f"rule {rule.name!r}: {why}")

    if (rule.measure is None) == (rule.question is None):
        raise bad("it has a measure or a question")
    if rule.at_most is None and rule.at_least is None and rule.worse_by_at_most is None:
        raise bad("it has no bound: at-most, at-least or worse-by-at-most")
    known = {one.name for one in questions.COMMON} - {"since", "until", "limit"}
    if unknown := sorted({name.replace("-", "_") for name in rule.where} - known):
        raise bad(f"there is no {unknown[0]!r} to choose sessions by; there are {', '.join(sorted(known))}")
    if rule.days < 0:
        raise bad("days are 0 or more")
    if rule.question is not None:
        _check_question(rule, bad)
        return
    try:
        measure = comparing.measure(rule.measure or "")
    except KeyError:
        names = ", ".join(one.name for one in comparing.MEASURES)
        raise bad(f"there is no measure {rule.measure!r}; there are {names}") from None
    if rule.worse_by_at_most is not None:
        if measure.better is None:
            raise bad(f"neither way of {measure.name} is worse")
        if not rule.days:
            raise bad("worse-by-at-most needs days")
        _per_cent(rule)


def _check_question(rule: Rule, bad: Callable[[str], ValueError]) -> None:
    try:
        question = questions.question(rule.question or "")
    except KeyError:
        raise bad(f"there is no question {rule.question!r}; `ctxctl fleet ask` lists them") from None
    if rule.worse_by_at_most is not None:
        raise bad("worse-by-at-most goes with a measure")
    numeric = [one.name for one in question.columns if one.type not in ("text", "digest")]
    if rule.column not in numeric:
        raise bad(f"column must be one of {', '.join(numeric)}")
    own = {one.name for one in question.parameters}
    if set(rule.param) - own or {one.name for one in question.parameters if one.required} - set(rule.param):
        raise bad(f"the question's own parameters are {', '.join(sorted(own)) or 'none'}")


def _per_cent(rule: Rule) -> float:
    text = (rule.worse_by_at_most or "").strip()
    try:
        if not text.endswith("%"):
            raise ValueError
        value = float(text[:-1])
        if not 0 <= value < 1e6:
            raise ValueError
    except ValueError:
        raise ValueError(f'rule {rule.name!r}: worse-by-at-most is per cent, such as "10%"') from None
    return value / 100


def tables_of_rules(rules: Sequence[Rule]) -> set[str]:
    """The questions that have to be asked for some rules."""
    return {rule.question or "measures" for rule in rules}


def decided(rule: Rule, ask: Ask, now: datetime) -> Decided:
    """Whether a rule holds; `now` is the end of its period."""
    given: dict[str, Any] = {name.replace("-", "_"): value for name, value in rule.where.items()}
    if rule.days:
        given |= {"since": now - rule.days * _DAY, "until": now}
    if rule.question is not None:
        return _of_question(rule, ask(rule.question, {**given, **rule.param, "limit": _MOST}))
    rows = ask("measures", {**given, "limit": _MOST})
    if rule.worse_by_at_most is None:
        return _of_measure(rule, rows)
    past = given | {"since": now - 2 * rule.days * _DAY, "until": now - rule.days * _DAY}
    return _of_change(rule, ask("measures", {**past, "limit": _MOST}), rows)


def _of_question(rule: Rule, rows: Sequence[Mapping[str, Any]]) -> Decided:
    assert rule.column is not None
    values = [(float(row[rule.column]), row) for row in rows if row[rule.column] is not None]
    sessions = sum(int(row.get("sessions") or 0) for row in rows)
    if not values:
        said = f"no row says {rule.column}" if rows else "no row"
        return Decided(rule, "unknown" if rows else "holds", said, None, sessions)
    broken = [(value, row) for value, row in values if not _within(rule, value)]
    worst = max if rule.at_most is not None else min
    if not broken:
        return Decided(
            rule, "holds", f"{len(values):,} rows, {_edge(rule)} {worst(v for v, _ in values):g}",
            worst(v for v, _ in values), sessions,
        )  # fmt: skip
    broken.sort(key=lambda one: one[0], reverse=rule.at_most is not None)
    named = "; ".join(f"{_row_name(row)}: {value:g}" for value, row in broken[:_SHOWN])
    more = f" and {len(broken) - _SHOWN:,} more" if len(broken) > _SHOWN else ""
    return Decided(
        rule, "fails", f"{len(broken):,} of {len(values):,} rows: {named}{more}", broken[0][0], sessions
    )


def _row_name(row: Mapping[str, Any]) -> str:
    """A row by its words."""
    words = [str(value) for value in row.values() if isinstance(value, str)]
    return " ".join(words[:4]) or "not recorded"


def _edge(rule: Rule) -> str:
    return "the largest is" if rule.at_most is not None else "the smallest is"


def _within(rule: Rule, value: float) -> bool:
    return (rule.at_most is None or value <= rule.at_most) and (
        rule.at_least is None or value >= rule.at_least
    )


def _of_measure(rule: Rule, rows: Sequence[comparing.Row]) -> Decided:
    measure = comparing.measure(rule.measure or "")
    found = comparing.side(measure, rows)
    if found.value is None:
        return Decided(rule, "unknown", f"none of {len(rows):,} sessions says", None, len(rows))
    value = _worded(found.value, measure)
    said = f"{value} ({measure.says} per {measure.over}), over {found.sessions:,} sessions"
    if found.silent:
        said += f"; {found.silent:,} do not say"
    return Decided(rule, "holds" if _within(rule, found.value) else "fails", said, found.value, len(rows))


def _worded(value: float, measure: comparing.Measure) -> str:
    if measure.type == "usd":
        return wording.dollars(Decimal(repr(value)))
    return wording.share(value, fine=True) if measure.type == "share" else wording.mean(value)


def _of_change(rule: Rule, past: Sequence[comparing.Row], now: Sequence[comparing.Row]) -> Decided:
    """A measure of a period held against the one before; it fails where more than chance is worse."""
    measure = comparing.measure(rule.measure or "")
    (found,) = comparing.compared(past, now, [measure])
    if found.difference is None:
        which = "before" if found.a.value is None else "in the period"
        return Decided(rule, "unknown", f"no session {which} says", None, len(past) + len(now))
    before, after = found.a.value or 0.0, found.b.value or 0.0
    worse = found.difference if measure.better == "lower" else -found.difference
    share = worse / abs(before) if before else float(worse > 0)
    said = (
        f"{_worded(before, measure)} before ({found.a.sessions:,} sessions), "
        f"{_worded(after, measure)} now ({found.b.sessions:,})"
    )
    outcome: Outcome = "holds"
    if not _within(rule, after):
        outcome = "fails"
    elif share > _per_cent(rule):
        outcome = "fails" if found.is_certain else "unknown"
        said += f": {wording.share(share, fine=True)} worse"
        if not found.is_certain:
            said += ", with too few sessions to tell" if found.is_too_small else ", which may be chance"
    return Decided(rule, outcome, said, after, len(past) + len(now))
