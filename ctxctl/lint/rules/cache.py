"""What keeps a prompt from being read from the cache: prefixes that change each time, and misses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from ctxctl.lint.rule import Hit, Rule
from ctxctl.model.missed import miss_reason

if TYPE_CHECKING:
    from ctxctl.lint.context import StepContext
    from ctxctl.model.results import Placement, Step

_LONGEST: Final = 200_000
_VOLATILE: Final = re.compile(
    r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"
    r"|\b(?=[a-f]*[0-9])[0-9a-f]{7,64}\b"
    r"|\b(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?\b"
    r"|\b(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sep(?:tember)?"
    r"|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)\b"
    r"|\b[AaPp]\.?[Mm]\b\.?"
    r"|\d+"
)
_RUNS: Final = re.compile("(?:\0[ ,.:/+TZ-]*)+")


def masked(text: str) -> str:
    """The text with every time, id and number made the same."""
    return _RUNS.sub("\0", _VOLATILE.sub("\0", text))


class VolatilePrefix(Rule):
    """An item near the head of the window changes from request to request in a time, id or counter only.

    A prompt cache reads the longest equal head.  From the first differing byte on everything is billed as if
    it had never been sent, and written to the cache again at a higher rate.
    """

    code = "CTX007"
    name = "volatile-prefix"
    needs = "texts of the items"
    fix = "Move the value to after the history, or round it off (the date without the time)."
    parameters = {"tokens": "smallest loss that counts, in tokens"}  # noqa: RUF012
    tokens = 1024

    def step(self, look: StepContext) -> Iterator[Hit]:
        """A step whose possible prefix was broken by an item that changed in such a value only."""
        cache = look.step.cache
        broken = cache.broken_by
        if (
            broken is None
            or broken.item is None
            or broken.status != "updated"
            or cache.possible_prefix is None
        ):
            return
        lost = look.step.ledger.window_before - cache.possible_prefix
        if lost < self.tokens:
            return
        new = _one(look.came, broken.item)
        old = _one(look.left, broken.item)
        if old is None or new is None:
            return
        values = _volatile(look.text(old), look.text(new))
        if values is None:
            return
        again = _billed_again(look.step)
        if again is not None:
            if again < self.tokens:
                return  # the provider's cache got further: the order of the frame is not that of the request
            lost = min(lost, again)
        message = (
            f"{look.called(new)} changes only in {values} and breaks the cached prefix "
            f"after {cache.possible_prefix:,} tokens; {lost:,} after it cannot be read from the cache"
        )
        yield Hit(broken.item, message, look.place(new.line), broken.item, lost, look.cost.broken)


def _billed_again(step: Step) -> int | None:
    """Tokens billed as not read from a cache beyond what entered: at most so many were lost to a break.

    Held against what was billed and not against the prefix by our count: a provider's cached tokens hold its
    own prompt, too.  None where the bill does not say.
    """
    usage = step.usage
    if usage is None or usage.reported_input is None or usage.reported_cached is None:
        return None
    return usage.reported_input - usage.reported_cached - step.ledger.new


def _one(placements: list[Placement], item: str) -> Placement | None:
    found = [p for p in placements if p.item == item and not p.stale]
    return found[0] if len(found) == 1 else None


def _volatile(old: str | None, new: str | None) -> str | None:
    """The values in which two texts differ, shown; None where they differ in anything else."""
    if old is None or new is None or old == new or max(len(old), len(new)) > _LONGEST:
        return None
    if masked(old) != masked(new):
        return None
    at = next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    begin = max(old.rfind(mark, 0, at) for mark in (" ", "\n", '"', ">", "(")) + 1
    return f"“{_word(old, begin)}” → “{_word(new, begin)}”"


def _word(text: str, begin: int) -> str:
    match = re.compile(r"[^\s\"<>()]{1,40}").match(text, begin)
    return match[0].rstrip(".,;:") if match is not None else ""


class CacheMissed(Rule):
    """The provider read back less than it could, and no recorded change explains it.

    What it had is billed again, at ten times the price of a read and more: after a pause that is longer than
    the cache is kept, with another model, behind instructions or tools that changed without a record, or for
    no reason that anybody can see.
    """

    code = "CTX028"
    name = "cache-missed"
    severity = "info"
    needs = "usage with cache figures"
    fix = (
        "Ask for a longer lifetime if pauses are usual, and keep model, instructions and tools the same "
        "within a thread."
    )
    parameters = {"tokens": "smallest miss that counts, in tokens"}  # noqa: RUF012
    tokens = 20_000

    def step(self, look: StepContext) -> Iterator[Hit]:
        """A step that the engine finds a miss in; misses of one cause are one finding."""
        miss = look.step.cache.miss
        if miss is None or miss.tokens < self.tokens:
            return
        message = (
            f"{miss.tokens:,} tokens that the cache could have given were billed again ({miss_reason(miss)})"
        )
        yield Hit(miss.cause, message, look.place(), None, miss.tokens, look.cost.missed)
