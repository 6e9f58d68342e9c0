"""A plan that goes on from where a recorded session is: its window as it was then, and how it grew so far."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from ctxctl.budget.beside import fewer_tokens, part_name, part_of
from ctxctl.budget.derive import earlier_lines, free_name, model_lines, part_lines, quoted
from ctxctl.budget.observe import Observed, PartGroup, SessionGrowth
from ctxctl.budget.plan import DRIFT, MOST_DRAWS, MOST_SEEN, MOST_START, MOST_TURNS, Arrival
from ctxctl.model.results import Placement, Step
from ctxctl.session.walked import walked
from ctxctl.text import visible
from ctxctl.wording import plural

if TYPE_CHECKING:
    from ctxctl.session import Inspector
    from ctxctl.session.facade import Progress

LEAST_TURNS: Final = 10
"""Turns that a session must have had for turns to be drawn; of one with fewer, requests are."""
RUNS: Final = 200
MOST_ROWS: Final = 400
"""Rows of history that a plan may hold."""
_AHEAD: Final = 3
"""How many times as far as the session has come the plan looks ahead."""
_LEAST_AHEAD: Final = 30


class SessionSoFar(NamedTuple):
    """A session up to one of its requests."""

    observed: Observed
    course: SessionGrowth
    unit: str
    """`turn` or `request`."""
    number: int
    """The last unit."""
    step: Step
    placements: Sequence[Placement]


def session_so_far(inspector: Inspector, address: str, progress: Progress | None = None) -> SessionSoFar:
    """Replay a session as far as a frame; raises UsageError as `Inspector.resolve` does."""
    last = inspector.resolve(address)
    spans = inspector.places().spans
    key = (spans[last].session, spans[last].thread)
    turns = {span.turn for span in spans[: last + 1] if (span.session, span.thread) == key}
    unit = "turn" if len(turns) >= LEAST_TURNS else "request"
    observed, course, number = Observed(), SessionGrowth(), 0
    walk = walked(inspector, progress, settle=True, whole=last == len(spans) - 1)
    for ordinal, one in enumerate(walk):
        at, step = one.at, one.at.step
        if (step.session, step.thread) == key:
            number = step.turn if unit == "turn" else number + 1
            course.add(step, number)
            observed.add(step, at.placements, number, one.delta)
        if ordinal == last:
            found = SessionSoFar(observed, course, unit, number, step, list(at.placements))
            if last == len(spans) - 1:
                # The trace's end tells what its format lacks.
                deque(walk, 0)
            return found
    raise AssertionError("a step that was resolved is walked")


def continuation_plan(found: SessionSoFar, name: str, encoding: str, lacking: str = "") -> str:
    """The plan as TOML.

    Args:
        found: The session so far.
        name: Of the trace.
        encoding: What the sizes were counted with.
        lacking: What the capture's format holds nothing of, in words.
    """
    threads = [found.observed]
    history, _ = found.course.history(found.placements, MOST_ROWS)
    now = _now(found.observed)
    used, beside = found.step.window.used, found.step.window.unrecorded or 0
    rest = used - max(0, beside) - sum(now.values()) - sum(map(sum, history))
    if rest < 0:
        history = fewer_tokens(history, -rest)
    seen = _newest(found.course.seen())
    unit, requests = found.unit, sum(map(len, seen))
    drawn = plural(len(seen), unit) + (f" with {plural(requests, 'request')}" if unit == "turn" else "")
    out = [
        f"# {visible(name)} from {unit} {found.number:,} on, with {used:,} tokens in its window.",
        f"# What comes is drawn from {drawn} of what was.",
    ]
    window = found.step.window
    if window.unrecorded is None:
        out.append("# Nothing was billed, so sizes are those of the record alone.")
    elif window.used_method == "expected":
        error = f", off by {window.used_error:,} at most nine times of ten" if window.used_error else ""
        out.append(f"# That request was not billed: its size is expected from the bill before{error}.")
    if beside < 0:
        out.append(f"# Billed were {-beside:,} fewer than counted: the history is made smaller by as much.")
    if found.observed.uncounted:
        blank = plural(found.observed.uncounted, "message")
        out.append(f"# Without text and size in the record, counted as 0: {blank}.")
    out += ["", "version = 1", 'policy = "fifo"', f"runs = {RUNS}", ""]
    out += model_lines(threads, encoding)
    taken: set[str] = set()
    if beside > 0:
        told = f"Billed in addition to what is recorded, at {unit} {found.number:,}."
        out += part_of(quoted(free_name(part_name(lacking), taken)), str(beside), beside, told)
    out += part_lines(threads, taken, now, unit)
    if rest > 0:
        out += earlier_lines(rest, taken)
    out += _start(found, name, history)
    out += _conversation(seen, unit, found.number, len(taken))
    return "\n".join(out) + "\n"


def _now(observed: Observed) -> dict[PartGroup, int]:
    """What the parts hold at the last request."""
    return {group: sum(sizes.values()) for group, sizes in observed.turns[-1].groups.items()}


def _newest(units: list[tuple[Arrival, ...]]) -> list[tuple[Arrival, ...]]:
    """As many of the last units as a plan may hold."""
    left = MOST_SEEN
    for at in range(len(units) - 1, -1, -1):
        left -= len(units[at])
        if left < 0:
            return units[at + 1 :] or [units[-1][-MOST_SEEN:]]
    return units


def _start(found: SessionSoFar, name: str, history: list[Arrival]) -> Iterator[str]:
    yield "[start]"
    yield f"trace = {quoted(name[:200])}"
    yield f"turn = {min(MOST_START, found.number)}"
    yield "# What is in the window of each, the oldest first: user, answers, tool calls, tool results."
    yield "history = ["
    for row in history:
        yield f"  {list(row)},"
    yield from ("]", "")


def _conversation(seen: list[tuple[Arrival, ...]], unit: str, number: int, parts: int) -> Iterator[str]:
    each = 5 + parts + sum(map(len, seen)) / len(seen)
    turns = min(MOST_TURNS, max(_LEAST_AHEAD, _AHEAD * number), int(MOST_DRAWS / (RUNS * each)))
    yield "[conversation]"
    yield f'unit = "{unit}"'
    yield f"turns = {max(1, turns)}   # to look ahead"
    yield "together = 5   # so many are drawn in a row"
    yield f"drift = {DRIFT}   # how far the growth to come may be from what was seen"
    yield "# What was new in each of its requests: user, answer, tool calls, tool results."
    yield "seen = ["
    for arrivals in seen:
        yield f"  [{', '.join(str(list(arrival)) for arrival in arrivals)}],"
    yield "]"
