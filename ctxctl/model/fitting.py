"""What a fitting policy decides from and what it decides: plain values, so that a policy is a pure function.

A fitting policy is given everything that would be in the window if nothing had ever been left out, and the
room that there is, and says what goes, what is cut and what stands in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable


class Candidate(NamedTuple):
    """One placement as a policy sees it."""

    name: str
    """The same for the same copy of the same version at every step of a thread."""
    item: str
    kind: str
    """Context kind, such as `tool_result`."""
    segment: str
    role: str | None
    tokens: int
    """Its text's and its own wrapper's; 0 where nobody knows."""
    chars: int = 0
    """Length of its text in UTF-8 bytes, which is no less than its characters; 0 where the trace lacks it.
    Who needs characters reads the text."""
    priority: float | None = None
    """As recorded; more is kept longer."""
    score: float | None = None
    """Relevance as recorded."""
    pairs: tuple[str, ...] = ()
    """Ids of tool calls: candidates that share one stay or go together."""
    source: str | None = None
    title: str | None = None
    turn: int = 0
    """The turn in which it came in."""
    read: Callable[[], str | None] = lambda: None
    """Its text, for the few rules that look into it; None where the trace does not have it."""


def characters(candidate: Candidate) -> int:
    """Characters of its text; where nobody knows that, as many as it may have."""
    text = candidate.read()
    return candidate.chars if text is None else len(text)


class Room(NamedTuple):
    """What may be used, in tokens."""

    cap: int
    """Most that a prompt may hold: min(max_input, window - reserve)."""
    window: int | None = None
    reserve: int | None = None
    max_input: int | None = None
    max_output: int | None = None
    """Of the model, where it is known."""


class Drop(NamedTuple):
    """A candidate that is left out."""

    at: int
    """Index of the candidate."""
    reason: str
    """An omission reason of the Agent Context standard, or the policy's own."""


class Cut(NamedTuple):
    """A candidate of which a part stays; the engine cuts it exactly at a token bound."""

    at: int
    tokens: int
    """At most this many stay, the marker included."""
    side: Literal["head", "tail"] = "head"
    """Which end stays."""
    reason: str = "too_large"


class Swap(NamedTuple):
    """A candidate that another text stands for."""

    at: int
    text: str
    reason: str = "too_large"


class Note(NamedTuple):
    """A text of the policy's own: a summary, a notice."""

    before: int
    """Index of the candidate that it goes in front of; their number: at the end."""
    text: str | None
    """None: nobody knows the text (a summary that a model would write), only its size."""
    tokens: int | None = None
    """Size where the text is not known."""
    role: str | None = None
    kind: str = "thread_summary"
    sources: tuple[int, ...] = ()
    """Candidates that it stands for."""


Verdict = Literal["fits", "fitted", "still_over", "rejected", "asks", "blocked"]
"""`fits`: nothing had to be done.  `fitted`: something was, and it fits.  `still_over`: all that may be done
was, and it does not.  `rejected`, `asks`, `blocked`: nothing was done, the request is not sent as it is."""


class Fit(NamedTuple):
    """What a policy did with one step."""

    verdict: Verdict
    drops: tuple[Drop, ...] = ()
    cuts: tuple[Cut, ...] = ()
    swaps: tuple[Swap, ...] = ()
    notes: tuple[Note, ...] = ()
    level: int | None = None
    """How far up its ladder the policy went, where it has one."""
    state: Any = None
    """What it is given at the next step; None at the first."""
    told: Mapping[str, int] | None = None
    """What the runtime that it follows would have recorded of it, in that one's words; None: nothing."""
    doubt: str | None = None
    """Why a record that says otherwise need not be wrong: what the trace lacks; None: it holds all."""


@runtime_checkable
class Fitter(Protocol):
    """A deterministic strategy with its parameters; it has no state but what it is handed back."""

    @property
    def name(self) -> str:
        """As it is asked for."""
        ...

    def fit(self, candidates: Sequence[Candidate], room: Room, state: Any) -> Fit:
        """Decide one step; `candidates` are in the order of the window."""
        ...


class Seat:
    """A candidate in the window of a thread, for as long as it is there.

    Policies that keep what they work out from step to step are given seats; see `Keeper`.
    """

    __slots__ = ("candidate", "fate", "place", "placement", "shown", "unit", "was")

    def __init__(self, candidate: Candidate, place: int, placement: Any = None) -> None:
        self.candidate = candidate
        self.place = place
        """Where it is: the more, the further back.  A multiple of four, and never another one."""
        self.fate: Fate = None
        """What the keeper decided last; only it sets this."""
        self.unit: Any = None
        """The keeper's own."""
        self.placement = placement
        """The caller's own: what it is."""
        self.shown: Any = None
        """The caller's own: what is in the frame for it."""
        self.was: Fate = None
        """The caller's own: the fate that this is for."""


Fate = Drop | Cut | Swap | None
"""What becomes of a candidate; None: it stays as it is.  The index in it says nothing."""


class Moves(NamedTuple):
    """How a window differs from the one of the step before."""

    seats: Sequence[Seat]
    """All that are in it, in order."""
    left: Sequence[Seat]
    came: Sequence[Seat]
    """In order."""
    altered: Sequence[Seat]
    """Those that stayed and of which the trace says another priority or score."""


class Outcome(NamedTuple):
    """What a keeper did with one step: as `Fit`, and what of it is other than at the step before."""

    verdict: Verdict
    changed: Collection[Seat]
    """All whose fate is another than before, those that came with a fate included; more may be in it."""
    dropped: int = 0
    """How many seats are dropped now."""
    cut: int = 0
    """How many are cut or swapped."""
    notes: tuple[tuple[int, Note], ...] = ()
    """Each with its place: one more than a seat's is behind it, one less before it."""
    summary: bool = False
    """What is dropped went into the (one) note."""
    level: int | None = None
    told: Mapping[str, int] | None = None


class Keeper(Protocol):
    """A policy on one thread that keeps what it worked out: a step costs what changed, not the history.

    It is a shortcut and no other policy: at each step it decides what `fit` would from the same candidates,
    the same room and the state of the step before.  The candidates name one pair at most.
    """

    def start(self, seats: Sequence[Seat], state: Any) -> None:
        """Begin with these, after a step that left `state`; nothing is decided yet."""
        ...

    def step(self, moves: Moves, room: Room | None) -> Outcome:
        """Decide one step.  Without room nothing is left out, and nothing remembered.

        After `start` the first `moves` have nothing that left or came.
        """
        ...

    def state(self) -> Any:
        """What `fit` would have left for the next step; it never changes."""
        ...


@runtime_checkable
class Kept(Fitter, Protocol):
    """A strategy that has a shortcut for sessions: replays and budgets ask its keeper in place of `fit`."""

    def keeper(self) -> Keeper | None:
        """A new one, for one thread; None: not with these parameters."""
        ...


@runtime_checkable
class Follower(Fitter, Protocol):
    """A strategy of a runtime whose records tell what it did: it can be held against them."""

    early: bool
    """It decides by a measure of its own, also where all fits by the trace's count."""

    def as_told(self, native: Mapping[str, Any], view: Sequence[Candidate]) -> Fitter | None:
        """The same strategy with the parameters that a record names; None: it is not its runtime's record.

        `view`: what was sent, for parameters that no record names and that show there.
        """
        ...

    def between(self, recorded: Fitter) -> Fitter:
        """The strategy for steps without a record, after one with the parameters of `recorded`."""
        ...

    def differing(self, recorded: Mapping[str, int], native: Mapping[str, Any]) -> list[str]:
        """Names of what a record says otherwise than `Fit.told`."""
        ...
