"""The terms of a query: what each matches, and how it is written.

Logic has three values. None means that the trace does not say (an unrecorded text, an unknown limit), or that
a term is about a change and only the step is at hand. So `-word` does not match an item without a text.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias

from ctxctl.engine.query import facts
from ctxctl.model.results import Change, Step

Truth: TypeAlias = bool | None

_PLAIN: Final = re.compile(r'[^\s"()<>:=,-][^\s"()<>:=,]*')
_OPS: Final[dict[str, Callable[[int, int], bool]]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
}
OPERATORS: Final = frozenset({"or", "and", "not", "OR", "AND", "NOT"})
_MEANT: Final = OPERATORS | {"is"}
"""Words with a meaning of their own."""


def casefolded(text: str) -> str:
    """Return a text for comparison without case. For ASCII, character positions are the same."""
    return text.lower() if text.isascii() else text.casefold()


def quoted(text: str) -> str:
    """Return a text in quotation marks, with escapes."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


class QueryContext(Protocol):
    """What a step itself does not hold: its whole window, and prices."""

    def holds(self, field: str, value: Value) -> Truth:
        """Return whether the window has an item of that name (`has`), or a text that contains it (`text`)."""
        ...

    def cost(self) -> int | None:
        """Return the step's billed cost in nanodollars; None if the bill or a price is unknown."""
        ...


@dataclass(slots=True)
class QuerySubject:
    """A step alone, or one of its changes, that a query is matched against."""

    step: Step
    change: Change | None = None
    segment: str | None = None
    contains: Callable[[Word], Truth] | None = None
    """Returns whether the item's text has a word; None if unknown."""
    around: QueryContext | None = None
    """None if not looked up."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A text to find in others. Case counts only if it has a capital letter."""

    text: str
    needle: str = field(init=False, compare=False, repr=False)
    any_case: bool = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        any_case = not any(char.isupper() for char in self.text)
        object.__setattr__(self, "any_case", any_case)
        object.__setattr__(self, "needle", casefolded(self.text) if any_case else self.text)

    def is_in(self, text: str) -> bool:
        """Return whether a text contains it."""
        return self.needle in (casefolded(text) if self.any_case else text)

    def equals(self, text: str) -> bool:
        """Return whether a text equals it."""
        return self.needle == (casefolded(text) if self.any_case else text)


@dataclass(frozen=True, slots=True)
class Word(Pattern):
    """A word or phrase in an item's text or title. An item without a title has its id instead."""

    def test(self, subject: QuerySubject) -> Truth:
        """Return whether the item's title or text contains it."""
        change = subject.change
        if change is None:
            return None
        if self.is_in(change.title or change.item):
            return True
        return None if subject.contains is None else subject.contains(self)

    def __str__(self) -> str:
        plain = _PLAIN.fullmatch(self.text) and self.text not in _MEANT and self.text not in facts.BARE
        return self.text if plain else quoted(self.text)


@dataclass(frozen=True, slots=True)
class Value(Pattern):
    """A value that a field may have: a part of it, or with `exact` the whole."""

    exact: bool = False
    alias: str = field(default="", compare=False)
    """The typed word, if it is an alias: a trace may have that very word as a value."""

    def fits(self, text: str) -> bool:
        """Return whether a field's value matches."""
        if self.alias and text.casefold() == self.alias:
            return True
        return self.equals(text) if self.exact else self.is_in(text)

    def __str__(self) -> str:
        return "=" * self.exact + (self.text if _PLAIN.fullmatch(self.text) else quoted(self.text))


@dataclass(frozen=True, slots=True)
class Field:
    """Matches a field with one of some values. A field that the trace lacks matches none."""

    name: str
    values: tuple[Value, ...]

    def test(self, subject: QuerySubject) -> Truth:
        """Return whether the field matches."""
        if self.name in facts.OF_WINDOW:
            return self._around(subject.around)
        of_step = facts.OF_STEP.get(self.name)
        if of_step is not None:
            return self._fits(of_step(subject.step))
        change = subject.change
        if change is None:
            return None
        if self.name == "segment":
            return self._fits(subject.segment)
        if self.name == "flag":
            return any(self._fits(flag) for flag in change.flags)
        return self._fits(facts.OF_CHANGE[self.name](change))

    def _around(self, around: QueryContext | None) -> Truth:
        if around is None:
            return None
        truth: Truth = False
        for value in self.values:
            found = around.holds(self.name, value)
            if found:
                return True
            truth = None if found is None else truth
        return truth

    def _fits(self, found: str | None) -> bool:
        return found is not None and any(value.fits(found) for value in self.values)

    def __str__(self) -> str:
        return f"{self.name}:{','.join(map(str, self.values))}"


@dataclass(frozen=True, slots=True)
class Range:
    """Matches a turn's or step's number in one of some ranges; None is an open end."""

    name: str
    runs: tuple[tuple[int | None, int | None], ...]

    def test(self, subject: QuerySubject) -> Truth:
        """Return whether the number is in one of the ranges."""
        number = facts.RANGES[self.name](subject.step)
        return any((a is None or a <= number) and (b is None or number <= b) for a, b in self.runs)

    def __str__(self) -> str:
        return f"{self.name}:{','.join(_run(a, b) for a, b in self.runs)}"


def _run(a: int | None, b: int | None) -> str:
    if a is not None and a == b:
        return str(a)
    return f"{'' if a is None else a}..{'' if b is None else b}"


@dataclass(frozen=True, slots=True)
class Number:
    """A comparison with tokens or nanodollars; with `percent`, with that share of the window's cap."""

    name: str
    op: str
    value: int
    percent: bool = False

    def test(self, subject: QuerySubject) -> Truth:
        """Return whether the comparison holds; None if the number, or the cap, is unknown."""
        if self.name == facts.COST:
            return self._compared(None if subject.around is None else subject.around.cost(), 1)
        of_step = facts.STEP_NUMBERS.get(self.name)
        if of_step is None:
            change = subject.change
            return None if change is None else self._compared(facts.CHANGE_NUMBERS[self.name](change), 1)
        cap = subject.step.window.cap
        if not self.percent:
            return self._compared(of_step(subject.step), 1)
        return None if cap is None else self._compared(of_step(subject.step), cap)

    def _compared(self, number: int | None, whole: int) -> Truth:
        if number is None:
            return None
        compare = _OPS[self.op]
        return compare(number * 100, self.value * whole) if self.percent else compare(number, self.value)

    def __str__(self) -> str:
        if self.name == facts.COST:
            whole, part = divmod(self.value, 10**facts.CENTS)
            digits = f"{part:0{facts.CENTS}}".rstrip("0")
            return f"{self.name}{self.op}{whole}{'.' * bool(digits)}{digits}"
        return f"{self.name}{self.op}{self.value}{'%' * self.percent}"


@dataclass(frozen=True, slots=True)
class StepState:
    """A step's state, such as `overflow`; its test is in `facts.STEP_STATES`."""

    name: str

    def test(self, subject: QuerySubject) -> Truth:
        """Return whether the step has the state."""
        return facts.STEP_STATES[self.name](subject.step)

    def __str__(self) -> str:
        return f"is:{self.name}"


@dataclass(frozen=True, slots=True)
class Not:
    """A negated term. It is unknown if the term is."""

    term: Term

    def test(self, subject: QuerySubject) -> Truth:
        """Return whether the term is known not to match."""
        truth = self.term.test(subject)
        return None if truth is None else not truth

    def __str__(self) -> str:
        inner = str(self.term)
        return f"-({inner})" if isinstance(self.term, And | Or | Not) else f"-{inner}"


@dataclass(frozen=True, slots=True)
class And:
    """All of two or more terms; made by `all_of`."""

    terms: tuple[Term, ...]
    ordered: tuple[Term, ...] = field(init=False, compare=False, repr=False)
    """The terms in the order of testing: those that read texts come last."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "ordered", tuple(sorted(self.terms, key=_reads)))

    def test(self, subject: QuerySubject) -> Truth:
        """Return whether all match."""
        truth: Truth = True
        for term in self.ordered:
            found = term.test(subject)
            if found is False:
                return False
            if found is None:
                truth = None
        return truth

    def __str__(self) -> str:
        return " ".join(f"({t})" if isinstance(t, Or) else str(t) for t in self.terms)


@dataclass(frozen=True, slots=True)
class Or:
    """Any of two or more terms; made by `any_of`."""

    terms: tuple[Term, ...]
    ordered: tuple[Term, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ordered", tuple(sorted(self.terms, key=_reads)))

    def test(self, subject: QuerySubject) -> Truth:
        """Return whether any matches."""
        truth: Truth = False
        for term in self.ordered:
            found = term.test(subject)
            if found is True:
                return True
            if found is None:
                truth = None
        return truth

    def __str__(self) -> str:
        return " or ".join(map(str, self.terms))


Term: TypeAlias = Word | Field | Range | Number | StepState | Not | And | Or


def _reads(term: Term) -> bool:
    return any(isinstance(leaf, Word) for leaf, _ in leaves(term))


def leaves(
    term: Term, negated: bool = False
) -> Iterator[tuple[Word | Field | Range | Number | StepState, bool]]:
    """Yield the terms without subterms, each with whether it is negated, in the order written."""
    if isinstance(term, Not):
        yield from leaves(term.term, not negated)
    elif isinstance(term, And | Or):
        for part in term.terms:
            yield from leaves(part, negated)
    else:
        yield term, negated


def all_of(terms: list[Term]) -> Term:
    """Return the terms joined by `and`, without nesting."""
    flat = [part for term in terms for part in (term.terms if isinstance(term, And) else (term,))]
    return flat[0] if len(flat) == 1 else And(tuple(flat))


def any_of(terms: list[Term]) -> Term:
    """Return the terms joined by `or`."""
    flat = [part for term in terms for part in (term.terms if isinstance(term, Or) else (term,))]
    return flat[0] if len(flat) == 1 else Or(tuple(flat))
