"""A whole query."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ctxctl.engine.query import facts
from ctxctl.engine.query.terms import (
    Field,
    Number,
    QueryContext,
    QuerySubject,
    StepState,
    Term,
    Truth,
    Value,
    Word,
    casefolded,
    leaves,
)
from ctxctl.model.results import Change, Step
from ctxctl.model.vocab import segment_of

Contains = Callable[[Word], Truth]
"""Returns whether an item's text has a word; None if the text is unknown."""


@dataclass(frozen=True, slots=True)
class Query:
    """A query about steps or their changes. `str` returns a text that parses to it."""

    term: Term
    words: tuple[Word, ...] = field(init=False, compare=False, repr=False)
    """Words searched in texts. Without any, no text is read."""
    shown: tuple[Word, ...] = field(init=False, compare=False, repr=False)
    """The words that a match may show: those not negated."""
    about_steps: bool = field(init=False, compare=False, repr=False)
    """Whether it is only about whole steps, not about single changes."""
    asks_segment: bool = field(init=False, compare=False, repr=False)
    """Whether it asks for window segments, which a change alone does not have."""
    asks_skipped: bool = field(init=False, compare=False, repr=False)
    """Whether it asks for unchanged items. Every step has as many as its window holds."""
    window: tuple[tuple[str, Value], ...] = field(init=False, compare=False, repr=False)
    """What it asks of whole windows, as (field, value). The caller must search them."""
    asks_cost: bool = field(init=False, compare=False, repr=False)
    """Whether it asks for money. The caller must know prices."""
    asks_limit: bool = field(init=False, compare=False, repr=False)
    """Whether it depends on the limit in force, so that the answer should name the limit and its source."""

    def __post_init__(self) -> None:
        found = list(leaves(self.term))
        words = dict.fromkeys(leaf for leaf, _ in found if isinstance(leaf, Word))
        shown = dict.fromkeys(leaf for leaf, negated in found if isinstance(leaf, Word) and not negated)
        object.__setattr__(self, "words", tuple(words))
        object.__setattr__(self, "shown", tuple(shown))
        object.__setattr__(self, "about_steps", not any(_of_changes(leaf) for leaf, _ in found))
        segments = any(isinstance(leaf, Field) and leaf.name == "segment" for leaf, _ in found)
        object.__setattr__(self, "asks_segment", segments)
        held = [x for x, _ in found if isinstance(x, Field) and x.name in facts.OF_WINDOW]
        object.__setattr__(
            self, "window", tuple(dict.fromkeys((x.name, value) for x in held for value in x.values))
        )
        cost = any(isinstance(leaf, Number) and leaf.name == facts.COST for leaf, _ in found)
        object.__setattr__(self, "asks_cost", cost)
        object.__setattr__(self, "asks_limit", any(_of_limits(leaf) for leaf, _ in found))
        object.__setattr__(self, "asks_skipped", any(not neg and _names_skipped(x) for x, neg in found))

    @property
    def unvouched(self) -> tuple[tuple[str, Value], ...]:
        """Values with their fields that ctxctl does not know, so that only the trace can."""
        found = [leaf for leaf, _ in leaves(self.term) if isinstance(leaf, Field)]
        return tuple(
            dict.fromkeys(
                (one.name, value)
                for one in found
                for value in one.values
                if one.name in facts.VOCABULARIES and not any(map(value.fits, facts.VOCABULARIES[one.name]))
            )
        )

    @property
    def asks_frames(self) -> bool:
        """Whether the copies in a window, or their texts, must be read."""
        return bool(self.words or self.window) or self.asks_segment

    @property
    def asks_around(self) -> bool:
        """Whether it asks for what a step itself does not hold; see `QueryContext`."""
        return bool(self.window) or self.asks_cost

    def matches_step(self, step: Step, around: QueryContext | None = None) -> Truth:
        """Return whether it matches a step; None if that depends on its changes, or is unknown.

        False means that it matches none of the changes either.
        """
        return self.term.test(QuerySubject(step, around=around))

    def matches_change(
        self,
        step: Step,
        change: Change,
        contains: Contains | None = None,
        segment: str | None = None,
        around: QueryContext | None = None,
    ) -> bool:
        """Return whether it is known to match one of a step's changes.

        `contains` tests the item's text, and is called only if nothing else decides; None if unknown.
        """
        return self.verdict(step, change, contains, segment, around) is True

    def verdict(
        self,
        step: Step,
        change: Change,
        contains: Contains | None = None,
        segment: str | None = None,
        around: QueryContext | None = None,
    ) -> Truth:
        """Return `matches_change`, but None if the trace does not say."""
        where = segment if segment is not None else segment_of(change.kind)
        return self.term.test(QuerySubject(step, change, where, contains, around))

    def __str__(self) -> str:
        return str(self.term)


def contained_text(text: str | None) -> Contains:
    """Return a test for `Query.matches_change` of a given text."""
    low: list[str] = []

    def contains(word: Word) -> Truth:
        if text is None:
            return None
        if not word.any_case:
            return word.needle in text
        if not low:
            low.append(casefolded(text))
        return word.needle in low[0]

    return contains


def _of_changes(leaf: Term) -> bool:
    if isinstance(leaf, Field):
        return leaf.name not in facts.OF_STEP and leaf.name not in facts.OF_WINDOW
    return isinstance(leaf, Word) or (isinstance(leaf, Number) and leaf.name in facts.CHANGE_NUMBERS)


def _of_limits(leaf: Term) -> bool:
    if isinstance(leaf, Number):
        return leaf.percent or leaf.name in ("free", "limit")
    return leaf == StepState("over") or (isinstance(leaf, Field) and leaf.name == "limit")


def _names_skipped(leaf: Term) -> bool:
    return isinstance(leaf, Field) and leaf.name == "status" and any(v.fits("skipped") for v in leaf.values)
