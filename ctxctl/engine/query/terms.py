"""The parts of a query: what each holds of, and how it is written.

Logic has three values: None where the trace does not say (a text that was not recorded, an unknown limit), or
where a term speaks of a change and only the step is at hand.  What is not known is neither so nor not so:
`-word` does not hold of an item without a text.
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
"""Words that mean something where they stand."""


def casefolded(text: str) -> str:
    """A text without regard to case; positions are those of `text` where it is ASCII."""
    return text.lower() if text.isascii() else text.casefold()


def quoted(text: str) -> str:
    """A text as it stands between quotation marks."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


class QueryContext(Protocol):
    """What a step itself does not tell: its whole window, and prices."""

    def holds(self, field: str, value: Value) -> Truth:
        """Whether the window has an item of that name (`has`), or a text that says it (`text`)."""
        ...

    def cost(self) -> int | None:
        """What the step was billed, in nanodollars; None where that, or a price, is not known."""
        ...


@dataclass(slots=True)
class QuerySubject:
    """What a query is asked of: a step alone, or one of its changes."""

    step: Step
    change: Change | None = None
    segment: str | None = None
    contains: Callable[[Word], Truth] | None = None
    """Whether the item's text has a word; None: not known."""
    around: QueryContext | None = None
    """None: nobody has looked."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A text to be found in others: case counts only where it has a capital letter."""

    text: str
    needle: str = field(init=False, compare=False, repr=False)
    any_case: bool = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        any_case = not any(char.isupper() for char in self.text)
        object.__setattr__(self, "any_case", any_case)
        object.__setattr__(self, "needle", casefolded(self.text) if any_case else self.text)

    def is_in(self, text: str) -> bool:
        """Whether a text has it."""
        return self.needle in (casefolded(text) if self.any_case else text)

    def equals(self, text: str) -> bool:
        """Whether a text is it."""
        return self.needle == (casefolded(text) if self.any_case else text)


@dataclass(frozen=True, slots=True)
class Word(Pattern):
    """A word or phrase in an item's text or title; an item without a title goes by its id."""

    def test(self, subject: QuerySubject) -> Truth:
        """Whether the item's title or text has it."""
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
    """One value that a field may have: a part of it, or with `exact` the whole."""

    exact: bool = False
    alias: str = field(default="", compare=False)
    """What was typed for it, if that is another word: a trace may have that very word as a value."""

    def fits(self, text: str) -> bool:
        """Whether a field's value is this one."""
        if self.alias and text.casefold() == self.alias:
            return True
        return self.equals(text) if self.exact else self.is_in(text)

    def __str__(self) -> str:
        return "=" * self.exact + (self.text if _PLAIN.fullmatch(self.text) else quoted(self.text))


@dataclass(frozen=True, slots=True)
class Field:
    """A field that has one of some values; one that the trace does not give has none."""

    name: str
    values: tuple[Value, ...]

    def test(self, subject: QuerySubject) -> Truth:
        """Whether it has."""
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
    """A turn's or step's number, in one of some runs; None: open on that side."""

    name: str
    runs: tuple[tuple[int | None, int | None], ...]

    def test(self, subject: QuerySubject) -> Truth:
        """Whether it is in one of them."""
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
    """A comparison with a number of tokens, or of nanodollars; `percent`: with that share of the window's
    cap.
    """

    name: str
    op: str
    value: int
    percent: bool = False

    def test(self, subject: QuerySubject) -> Truth:
        """Whether it holds; None where the number, or the cap, is not known."""
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
    """A word such as `overflow` that a step alone decides; its test is in `facts.STEP_STATES`."""

    name: str

    def test(self, subject: QuerySubject) -> Truth:
        """Whether it holds."""
        return facts.STEP_STATES[self.name](subject.step)

    def __str__(self) -> str:
        return f"is:{self.name}"


@dataclass(frozen=True, slots=True)
class Not:
    """A negated term; where the term is unknown, so is this."""

    term: Term

    def test(self, subject: QuerySubject) -> Truth:
        """Whether the term is known not to hold."""
        truth = self.term.test(subject)
        return None if truth is None else not truth

    def __str__(self) -> str:
        inner = str(self.term)
        return f"-({inner})" if isinstance(self.term, And | Or | Not) else f"-{inner}"


@dataclass(frozen=True, slots=True)
class And:
    """All of two or more terms; make it by `all_of`."""

    terms: tuple[Term, ...]
    ordered: tuple[Term, ...] = field(init=False, compare=False, repr=False)
    """The terms in the order in which they are tested: those that read texts come last."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "ordered", tuple(sorted(self.terms, key=_reads)))

    def test(self, subject: QuerySubject) -> Truth:
        """Whether all hold."""
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
    """Any of two or more terms; make it by `any_of`."""

    terms: tuple[Term, ...]
    ordered: tuple[Term, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ordered", tuple(sorted(self.terms, key=_reads)))

    def test(self, subject: QuerySubject) -> Truth:
        """Whether any holds."""
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
    """The parts that say something themselves, with whether they are negated, in the order written."""
    if isinstance(term, Not):
        yield from leaves(term.term, not negated)
    elif isinstance(term, And | Or):
        for part in term.terms:
            yield from leaves(part, negated)
    else:
        yield term, negated


def all_of(terms: list[Term]) -> Term:
    """The terms joined by `and`; what is joined so already becomes a part of it."""
    flat = [part for term in terms for part in (term.terms if isinstance(term, And) else (term,))]
    return flat[0] if len(flat) == 1 else And(tuple(flat))


def any_of(terms: list[Term]) -> Term:
    """The terms joined by `or`."""
    flat = [part for term in terms for part in (term.terms if isinstance(term, Or) else (term,))]
    return flat[0] if len(flat) == 1 else Or(tuple(flat))
