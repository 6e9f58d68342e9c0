"""Sessions under the plan's policy: what each request sends, what is left out, what a cache gives back.

The policy is asked as replays ask it: where a request would be over the cap (at every request if it decides
by a measure of its own), and about everything that would be in it had nothing ever been left out.  Texts are
not known; where a policy looks into one, a text of the same size stands for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from ctxctl.budget.measure import Measured
from ctxctl.budget.plan import Arrival, Part, Plan, Start
from ctxctl.budget.sessions import TALK, Piece, Turn, Unit, session
from ctxctl.engine.simulate.state import SeatList
from ctxctl.model.fitting import Candidate, Fit, Fitter, Keeper, Kept, Moves, Room
from ctxctl.policies.fitting.stepwise import fit_of

LONGEST: Final = 4
RESTLESS: Final = 0.5
"""Chance of a change in each turn."""
_NOT_SENT: Final = frozenset(("rejected", "asks", "blocked"))
_KINDS: Final = {"tools": "tool_definition", "system": "system_prompt", "history": "session_history"}
Block = tuple[object, int]
"""What a cache compares: a name and a size."""


class Request(NamedTuple):
    """One request as it is sent, in tokens."""

    turn: int
    sent: int
    prefix: int
    """Of these, what it begins with like the request before."""
    output: int


class Run(NamedTuple):
    """One session."""

    requests: tuple[Request, ...]
    first_acted: int | None
    """The first turn in which the policy did something."""
    first_over: int | None
    """The first turn in which a request is over the cap all the same, or is not sent."""
    left_out: tuple[tuple[str, int], ...]
    """What the policy took out or cut when it first did something: a part or one of `TALK`, tokens."""
    stopped: int | None
    """The turn whose request is not sent; the session ends there."""


class _Decisions:
    """This asks the policy about each request; a keeper is told what changed since the one before."""

    def __init__(self, policy: Fitter, room: Room) -> None:
        self._policy = policy
        self._room = room
        self.forget()

    def forget(self) -> None:
        """Begin anew after a request that was sent whole."""
        self._state: Any = None
        self._keeper: Keeper | None = None
        self._list: SeatList[Candidate] = SeatList()

    def fit(self, wanted: list[Candidate]) -> Fit:
        """Decide one request."""
        moves = self._list.move_to(wanted, _itself)
        seats = self._list.seats
        if moves is None or self._keeper is None:
            if self._keeper is not None:
                self._state = self._keeper.state()
            self._keeper = self._policy.keeper() if isinstance(self._policy, Kept) else None
            if self._keeper is None:
                fit = self._policy.fit(wanted, self._room, self._state)
                self._state = fit.state
                return fit
            self._keeper.start(seats, self._state)
            moves = Moves(seats, (), (), ())
        return fit_of(seats, self._keeper.step(moves, self._room))


def _itself(candidate: Candidate) -> Candidate:
    return candidate


class Session:
    """One session under way."""

    def __init__(
        self,
        parts: Sequence[Measured],
        policy: Fitter,
        room: Room,
        count: Callable[[str], int],
        start: Start | None = None,
    ) -> None:
        self._parts = parts
        self._decisions = _Decisions(policy, room)
        self._early = asked_at_every_request(policy)
        self._room = room
        self._count = count
        self._first = start.turn + 1 if start is not None else 1
        self._log: list[Candidate] = list(_history(start)) if start is not None else []
        self._goes_on = start is not None
        self._used = 0
        self._before: list[Block] = []
        self._requests: list[Request] = []
        self._most: int | None = None
        self._looked_at = 1
        """The first turn whose requests matter."""
        self._acted: int | None = None
        self._over: int | None = None
        self._left: tuple[tuple[str, int], ...] = ()
        self.work = 0
        """Candidates that were looked at; those that the policy was shown weigh eightfold."""

    def run(self, turns: Iterable[Turn], most: int) -> Run | None:
        """Go through all turns, or to the one whose request is not sent; None after more than `most` work."""
        self._most = most
        stopped = None
        for number, turn in enumerate(turns, self._first):
            if not self._turn(number, turn):
                stopped = number
                break
        if self.work > most:
            return None
        return Run(tuple(self._requests), self._acted, self._over, self._left, stopped)

    def until_acted(self, turns: Iterable[Turn], first: int) -> Run:
        """Go to where the policy first does something; no request before turn `first` is over the cap."""
        self._looked_at = first
        for number, turn in enumerate(turns, self._first):
            if not self._turn(number, turn) or self._acted is not None:
                break
        return Run((), self._acted, self._over, self._left, None)

    def _turn(self, number: int, turn: Turn) -> bool:
        head: list[Candidate] = []
        contexts: list[Candidate] = []
        for piece in turn.pieces:
            part = self._parts[piece.part].part
            made = self._of(piece, number)
            if part.stays:
                if piece.fresh:
                    self._log.append(made)
            else:
                # A recorded context that hardly changes has a place of its own; the newest message moves on.
                near = part.where == "context" and (turn.unit is None or part.rate >= RESTLESS)
                (contexts if near else head).append(made)
        order = {"tools": 0, "system": 1}
        head.sort(key=lambda c: order.get(c.segment, 2))
        if self._goes_on:
            self._before = [(c.name, c.tokens) for c in (*head, *self._log)]
            self._goes_on = False
        before = [*head, *self._log, *contexts]
        if turn.unit is not None:
            return self._recorded(number, before, turn.unit)
        now = [_said(f"user {number}", "user_message", "user", turn.user, number)]
        for index, round_ in enumerate(turn.rounds):
            if not self._request(number, before, now, sum(call.call for call in round_)):
                return False
            for nth, call in enumerate(round_):
                pair = (f"{number}.{index}.{nth}",)
                name = f"call {pair[0]}"
                now.append(_said(name, "tool_call", "history", call.call, number)._replace(pairs=pair))
            for nth, call in enumerate(round_):
                pair = (f"{number}.{index}.{nth}",)
                name = f"result {pair[0]}"
                now.append(_said(name, "tool_result", "history", call.result, number)._replace(pairs=pair))
        if not self._request(number, before, now, turn.answer):
            return False
        self._log += now
        self._log.append(_said(f"answer {number}", "assistant_message", "history", turn.answer, number))
        return True

    def _recorded(self, number: int, before: list[Candidate], unit: Unit) -> bool:
        """The requests of a turn that was drawn whole; False where one is not let go."""
        now: list[Candidate] = []
        for nth, arrival in enumerate(unit.arrivals):
            now += _arrived(f"{number}.{nth}", arrival, number)
            if not self._request(number, before, now, arrival[1] + arrival[2]):
                return False
        self._log += now
        return True

    def _of(self, piece: Piece, turn: int) -> Candidate:
        part = self._parts[piece.part].part
        return Candidate(
            piece.name, piece.name, _kind_of(part), part.where, "system", piece.tokens, 4 * piece.tokens,
            read=partial(_stand_in, piece.tokens), priority=part.priority, source=part.server,
            title=part.name, turn=turn,
        )  # fmt: skip

    def _request(self, turn: int, before: list[Candidate], now: list[Candidate], output: int) -> bool:
        """Send one; False where the policy does not let it go."""
        if turn < self._looked_at:
            return True
        wanted = [*before, *now]
        total = sum(candidate.tokens for candidate in wanted)
        self.work += len(wanted)
        if self._most is not None and self.work > self._most:
            return False
        if total <= self._room.cap and not self._early:
            self._decisions.forget()
            blocks: list[Block] = [(c.name, c.tokens) for c in wanted]
        else:
            self.work += 7 * len(wanted)
            fit = self._decisions.fit(wanted)
            blocks = self._carried_out(wanted, fit)
            if self._acted is None and fit.verdict != "fits":
                self._acted = turn
                self._left = tuple(_left(wanted, fit))
            if fit.verdict != "fitted" and fit.verdict != "fits" and self._over is None:
                self._over = turn
            if fit.verdict in _NOT_SENT:
                return False
        same = 0
        for one, other in zip(self._before, blocks, strict=False):
            if one != other:
                break
            same += one[1]
        self._before = blocks
        self._requests.append(Request(turn, sum(block[1] for block in blocks), same, output))
        return True

    def _carried_out(self, wanted: list[Candidate], fit: Fit) -> list[Block]:
        gone = {drop.at for drop in fit.drops}
        sizes = {cut.at: min(cut.tokens, wanted[cut.at].tokens) for cut in fit.cuts}
        sizes.update((swap.at, self._count(swap.text)) for swap in fit.swaps)
        notes: dict[int, list[Block]] = {}
        for note in fit.notes:
            tokens = self._count(note.text) if note.text is not None else note.tokens or 0
            made = (note.kind, note.text, tuple(wanted[at].name for at in note.sources))
            notes.setdefault(note.before, []).append((made, tokens))
        blocks: list[Block] = []
        for at, candidate in enumerate(wanted):
            blocks += notes.get(at, ())
            if at not in gone:
                blocks.append((candidate.name, sizes.get(at, candidate.tokens)))
        return blocks + notes.get(len(wanted), [])


def fitted_runs(
    plan: Plan,
    parts: tuple[Measured, ...],
    policy: Fitter,
    room: Room,
    count: Callable[[str], int],
    most: int,
) -> list[Run]:
    """The first runs of a plan under its policy: all, or until `most` work is done (`Session.work`).

    None at all where already the first is `LONGEST` times that much.
    """
    runs: list[Run] = []
    work = 0
    while len(runs) < plan.runs and work < most:
        one = Session(parts, policy, room, count, plan.start)
        run = one.run(session(plan, parts, len(runs)), LONGEST * most)
        if run is None:
            break
        runs.append(run)
        work += one.work
    return runs


def runs_until_acting(
    plan: Plan,
    parts: tuple[Measured, ...],
    policy: Fitter,
    room: Room,
    count: Callable[[str], int],
    firsts: Sequence[int | None],
    done: Sequence[Run],
) -> list[Run]:
    """All runs as far as to where the policy first does something; only `done` if it decides early.

    Args:
        plan: The plan, and what follows is as for `fitted_runs`.
        parts: Its parts.
        policy: Its policy.
        room: What a prompt may hold.
        count: Tokens of a text.
        firsts: By run, the first turn that is over the cap if nothing is left out.
        done: The first runs, where they are known whole.
    """
    runs = list(done)
    for number in range(len(done), 0 if asked_at_every_request(policy) else plan.runs):
        first = firsts[number]
        if first is None:
            runs.append(Run((), None, None, (), None))
        else:
            turns = session(plan, parts, number)
            one = Session(parts, policy, room, count, plan.start)
            runs.append(one.until_acted(turns, first))
    return runs


_TALK_OF: Final = dict(
    zip(("user_message", "assistant_message", "tool_call", "tool_result"), TALK, strict=True)
)


def _said(name: str, kind: str, segment: str, tokens: int, turn: int) -> Candidate:
    role = {"user_message": "user", "tool_result": "tool"}.get(kind, "assistant")
    read = partial(_stand_in, tokens)
    return Candidate(name, name, kind, segment, role, tokens, 4 * tokens, turn=turn, read=read)


def _arrived(name: str, arrival: Arrival, turn: int) -> Iterable[Candidate]:
    """What is new in one recorded request, in its order; calls that came at once are one."""
    user, answer, call, result = arrival
    if answer:
        yield _said(f"answer {name}", "assistant_message", "history", answer, turn)
    if call or result:
        pair = (name,)
        yield _said(f"call {name}", "tool_call", "history", call, turn)._replace(pairs=pair)
        yield _said(f"result {name}", "tool_result", "history", result, turn)._replace(pairs=pair)
    if user:
        yield _said(f"user {name}", "user_message", "user", user, turn)


def _history(start: Start) -> Iterable[Candidate]:
    """What is in the window of a session that goes on."""
    for back, arrival in zip(range(len(start.history), 0, -1), start.history, strict=True):
        yield from _arrived(f"before {back}", arrival, max(1, start.turn - back + 1))


def _stand_in(tokens: int) -> str:
    """A text of so many tokens, in every embedded encoding, and of four characters each."""
    return " the" * tokens


def asked_at_every_request(policy: Fitter) -> bool:
    """Whether a policy is also asked where all fits."""
    return bool(getattr(policy, "early", False))


def _kind_of(part: Part) -> str:
    """The context kind that policies see."""
    context = "retrieval_result" if part.items is not None else "file" if part.files else "runtime_state"
    return _KINDS.get(part.where, context)


def _left(wanted: Sequence[Candidate], fit: Fit) -> Iterable[tuple[str, int]]:
    """What was taken out, by what it is, in the order of the window."""
    lost: dict[str, int] = {}
    changed = [(drop.at, 0) for drop in fit.drops] + [(cut.at, cut.tokens) for cut in fit.cuts]
    changed += [(swap.at, 0) for swap in fit.swaps]
    for at, kept in sorted(changed):
        candidate = wanted[at]
        name = candidate.title or _TALK_OF[candidate.kind]
        lost[name] = lost.get(name, 0) + max(0, candidate.tokens - kept)
    return lost.items()
