"""What-ifs as values: what is supposed, and what comes of it beside what was recorded.

Everything called `simulated` here is the result of a replay under a supposition; nothing of it happened.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Final

import msgspec

from ctxctl.model.money import ZERO
from ctxctl.model.vocab import UsedMethod

MOST_TOKENS: Final = 10**12
"""Largest limit that can be supposed; above it numbers say nothing and columns overflow."""

_TOKENS: Final = re.compile(r"(\d{1,15}(?:[_,]\d{3}){0,4})(\.\d{1,6})?\s*([km])?", re.ASCII | re.IGNORECASE)
_SCALES: Final = {"": 1, "k": 1_000, "m": 1_000_000}


class Limits(msgspec.Struct, frozen=True):
    """Limits of a window in tokens.  As a supposition None means: as recorded; in force it means: unknown."""

    window: int | None = None
    """The model's whole window."""
    reserve: int | None = None
    """Of the window, what is kept free for the answer."""
    max_input: int | None = None
    """A limit on the prompt by itself."""

    @property
    def given(self) -> bool:
        """Whether any is set."""
        return self.window is not None or self.reserve is not None or self.max_input is not None

    @property
    def cap(self) -> int | None:
        """What a prompt may hold: min(max_input, window - reserve), never below 0; None if neither is known.

        A reserve alone limits nothing.
        """
        if self.window is None:
            return self.max_input
        left = max(0, self.window - (self.reserve or 0))
        return left if self.max_input is None else min(left, self.max_input)

    def over(self, recorded: Limits) -> Limits:
        """These limits, and where one is None the recorded one."""
        return Limits(
            recorded.window if self.window is None else self.window,
            recorded.reserve if self.reserve is None else self.reserve,
            recorded.max_input if self.max_input is None else self.max_input,
        )


AS_RECORDED: Final = Limits()
"""No limit is supposed."""


class Replacement(msgspec.Struct, frozen=True):
    """A text to put in the place of an item's."""

    item: str
    """`ID`, all its versions, or `ID@VERSION`."""
    text: str
    name: str | None = None
    """What the text came from, for people: the base name of a file, `-` for standard input."""


Texts = Mapping[str, str] | Sequence[Replacement]
"""Texts by what they replace."""


class Dropped(msgspec.Struct, frozen=True):
    """What one selector matched."""

    selector: str
    """With its facet: `kind:tool_result`."""
    items: int


class Replaced(msgspec.Struct, frozen=True):
    """What one replacement replaced."""

    item: str
    version: str | None
    """None: all its versions."""
    name: str | None
    sha256: str
    """Of the text in UTF-8: that of the file."""
    size: int
    """In bytes."""
    versions: int
    """Versions that had another text."""


class Edited(msgspec.Struct, frozen=True):
    """Edits of a session against its trace: what they come to."""

    drops: tuple[Dropped, ...] = ()
    calls: int = 0
    """Tool calls and results that no selector matched, and that belong to one that went."""
    summaries: int = 0
    """Summaries of which all that they stand for is dropped."""
    texts: tuple[Replaced, ...] = ()

    @property
    def given(self) -> bool:
        """Whether there are any."""
        return bool(self.drops or self.texts)


UNEDITED: Final = Edited()


class Supposition(msgspec.Struct, frozen=True):
    """What a replay is to be made under; None: as recorded."""

    model: str | None = None
    window: int | None = None
    reserve: int | None = None
    max_input: int | None = None
    policy: str | None = None
    encoding: str | None = None
    drop: tuple[str, ...] = ()
    """Selectors of items that had never been there."""
    set: tuple[Replacement, ...] = ()

    @property
    def limits(self) -> Limits:
        """The part that is about limits."""
        return Limits(self.window, self.reserve, self.max_input)

    @property
    def given(self) -> dict[str, str | int]:
        """What is supposed, by field."""
        fields = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return {name: _said(value) for name, value in fields if value is not None and value != ()}


def _said(value: str | int | tuple[str | Replacement, ...]) -> str | int:
    if not isinstance(value, tuple):
        return value
    return " ".join(one if isinstance(one, str) else f"{one.item}={one.name or '…'}" for one in value)


class Side(msgspec.Struct, frozen=True, gc=False):
    """One step of one of the two replays, in tokens; `cap` and what hangs on it are None when unknown."""

    used: int
    """What was sent, or would have been: how that is known is its `method`."""
    cap: int | None
    free: int | None
    over: int | None
    uncounted: int
    omitted: int
    """Items left out at this step."""
    truncated: int
    """Items of its changes that were cut to fit or blanked."""
    compactions: int
    prefix: int | None
    """Tokens that it begins with like its thread's request before; None in the first."""
    broke: bool = False
    """Its possible prefix broke: not all of the request before could be kept."""
    lost: int = 0
    """Tokens of the request before that came behind the break."""
    cost: Decimal | None = None
    """US dollars for its context, the answer left out; None: no price is known."""
    method: UsedMethod = "recorded"
    recorded: int = 0
    """Of `used`, the frame's content."""

    @property
    def is_known(self) -> bool:
        """Whether `used` says anything: not where nobody billed the step, nor counted any of its items."""
        return bool(self.used or not self.uncounted)


class Pair(msgspec.Struct, frozen=True, gc=False):
    """One step as recorded and as simulated."""

    ordinal: int
    """0-based, the same in both replays."""
    session: str | None
    thread: str
    turn: int
    step: int
    recorded: Side
    simulated: Side


class Totals(msgspec.Struct, frozen=True):
    """Sums over the steps of one side."""

    steps: int = 0
    over: int = 0
    """Steps over their cap."""
    unknown: int = 0
    """Steps whose cap is not known: nobody can say whether they fit."""
    first_over: Pair | None = None
    """The first step that does not fit."""
    worst: Pair | None = None
    """The step that is furthest over, the first of several."""
    peak: Pair | None = None
    """The step with most tokens, the first of several."""
    omitted: int = 0
    truncated: int = 0
    compactions: int = 0
    prefix: int = 0
    """Sum of the tokens that requests begin with like the one before."""
    sent: int = 0
    """Sum of the tokens of all requests."""
    breaks: int = 0
    """Steps whose possible prefix broke."""
    lost: int = 0
    """Tokens of the requests before them that came behind the break."""
    cost: Decimal = ZERO
    """US dollars for the contexts of the steps whose price is known."""
    unpriced: int = 0
    """Steps whose price is not."""
    by_method: dict[str, int] = {}
    """Tokens of the recorded content of all windows by counting method."""
    known_by: dict[UsedMethod, int] = {}
    """Steps by how it is known what they sent: what the numbers rest on."""

    def is_known(self, *, simulated: bool) -> bool:
        """Whether it is known of any step what it sent."""
        return self.peak is None or (self.peak.simulated if simulated else self.peak.recorded).is_known


def parse_tokens(text: str, *, least: int = 1) -> int:
    """A number of tokens as people write it: 128000, 128,000, 128_000, 128k (128,000), 1.5m (1,500,000).

    Raises ValueError, whose text completes "must be …".
    """
    wanted = f"a number of tokens from {least} up, such as 128000, 128k or 1m"
    match = _TOKENS.fullmatch(text.strip())
    if match is None:
        raise ValueError(wanted)
    whole, part, suffix = match[1], match[2] or "", (match[3] or "").lower()
    digits = re.sub("[_,]", "", whole)
    scale = _SCALES[suffix]
    if part and scale % 10 ** len(part.rstrip("0").removeprefix(".")):
        raise ValueError(wanted)
    found = int(digits) * scale
    if part:
        found += int(part[1:]) * scale // 10 ** (len(part) - 1)
    if not least <= found <= MOST_TOKENS:
        raise ValueError(wanted)
    return found
