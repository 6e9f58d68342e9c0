"""A plan from recorded sessions: sizes as they were where they never changed, else measured percentiles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ctxctl.budget.beside import part_name, part_of
from ctxctl.budget.distribution import measured_spread
from ctxctl.budget.observe import GroupSizes, Observed, PartGroup, TurnTalk, answers_of, groups_of, talk_of
from ctxctl.budget.plan import DRIFT, MOST_DRAWN, MOST_DRAWS, MOST_SEEN, MOST_TURNS, Arrival
from ctxctl.errors import UnreadableError
from ctxctl.session.walked import walked
from ctxctl.text import visible
from ctxctl.tokens.model_encodings import resolve_encoding
from ctxctl.wording import LIMIT_SOURCES

if TYPE_CHECKING:
    from ctxctl.session import Inspector
    from ctxctl.session.facade import Progress

MOST_DRIFT: Final = 1.0
"""Largest drift that a plan is given: of sessions that differ by more, no plan says much."""
_PLURAL: Final = {"tool_definition": "tools", "system_prompt": "system prompt"}
LEAST_REQUESTS: Final = 10
"""Requests that each session must have had; a turn of fewer is drawn as one."""
_RUNS: Final = 200


def is_single(threads: Sequence[Observed]) -> bool:
    """Whether the sessions have one turn each, of many requests."""
    return all(len(thread.turns) == 1 and thread.steps >= LEAST_REQUESTS for thread in threads)


def _task_sizes(threads: Sequence[Observed]) -> list[int]:
    """By session, what of the conversation its first request brings: the task."""
    return [max(0, sum(thread.course.arrivals[0]) - thread.earlier) for thread in threads]


def _single_turns(threads: Sequence[Observed]) -> int:
    """Requests of the longest session, as far as they can be drawn."""
    most = int(MOST_DRAWS / (_RUNS * 20))
    return min(MOST_TURNS, most, max(thread.steps for thread in threads))


def _later_arrivals(thread: Observed) -> list[Arrival]:
    """What each request after the first brought."""
    return thread.course.arrivals[1:]


def _single_conversation(threads: Sequence[Observed], drift: float | None) -> Iterator[str]:
    """The table: requests as they were, in place of sizes."""
    seen = [arrival for thread in threads for arrival in _later_arrivals(thread)][-MOST_SEEN:]
    yield "[conversation]"
    yield 'unit = "request"   # each session has one prompt'
    yield f"turns = {_single_turns(threads)}   # the longest session"
    yield "together = 5   # so many are drawn in a row"
    meaning = "by so much the growth of a request differs from session to session"
    yield f"drift = {DRIFT if drift is None else drift:.2f}   # {meaning}"
    yield f"# What was new in {len(seen):,} requests: user, answer, tool calls, tool results."
    yield "seen = ["
    yield from (f"  [{list(arrival)}]," for arrival in seen)
    yield "]"


def observed(inspector: Inspector, progress: Progress | None = None) -> list[Observed]:
    """The thread with most steps of each session of a trace, in their order."""
    threads: dict[tuple[str | None, str], Observed] = {}
    for one in walked(inspector, progress, settle=True):
        step = one.at.step
        threads.setdefault((step.session, step.thread), Observed()).add(
            step, one.at.placements, delta=one.delta
        )
    longest: dict[str | None, Observed] = {}
    for (session, _), thread in threads.items():
        if session not in longest or thread.steps > longest[session].steps:
            longest[session] = thread
    return list(longest.values())


def derived_plan(threads: Sequence[Observed], names: Sequence[str], encoding: str, lacking: str = "") -> str:
    """The plan as TOML.

    Args:
        threads: What was seen.
        names: Of the traces, for the first line.
        encoding: What the sizes were counted with.
        lacking: What the captures' format holds nothing of, in words.

    Raises UnreadableError("no-events") where nothing was seen.
    """
    if not any(thread.turns for thread in threads):
        raise UnreadableError("no-events", "the traces hold no step to derive a plan from")
    steps = sum(thread.steps for thread in threads)
    turns = sum(len(thread.turns) for thread in threads)
    sources = ", ".join(visible(name) for name in names[:5]) + (", …" if len(names) > 5 else "")
    out = [
        f"# Derived from {sources}.",
        f"# Sessions: {len(threads):,}, turns: {turns:,}, requests: {steps:,}.",
        "# Of each session, the thread with most requests. Sizes are percentiles of what was seen.",
    ]
    blank = sum(thread.uncounted for thread in threads)
    if blank:
        out.append(f"# {blank:,} messages have neither text nor size in the record and count 0.")
    bare = sum(thread.sent.first is None for thread in threads)
    if bare:
        out.append(
            f"# Nothing was billed, so sizes are those of the record alone: {bare:,} of these sessions."
        )
    out += ["", "version = 1", 'policy = "fifo"', ""]
    out += model_lines(threads, encoding)
    taken: set[str] = set()
    out += _unrecorded(threads, taken, lacking)
    out += part_lines(threads, taken)
    earlier = [thread.earlier for thread in threads]
    if any(earlier):
        out += earlier_lines(measured_spread(earlier), taken)
    if is_single(threads):
        out += _task(threads, taken)
        out += _single_conversation(threads, _drift(threads))
    else:
        out += _conversation(threads)
    out += _limits(threads)
    return "\n".join(out) + "\n"


def model_lines(threads: Sequence[Observed], encoding: str) -> Iterator[str]:
    """The table of the model: its name and limits where they are recorded."""
    from ctxctl.tokens.catalogue.names import provider_of

    models: Counter[tuple[str, str | None]] = Counter()
    for thread in threads:
        models.update(thread.models)
    yield "[model]"
    named = next(iter(models.most_common(1)), None)
    name = named[0][0] if named is not None else None
    if named is not None:
        yield f"name = {quoted(named[0][0])}"
        provider = provider_of(named[0][1])
        if provider is not None:
            yield f"provider = {quoted(provider)}"
    found = resolve_encoding(name)
    if encoding != found.encoding:
        yield f"encoding = {quoted(encoding)}"
    yield from _limit_lines(threads)
    yield ""


def _limit_lines(threads: Sequence[Observed]) -> Iterator[str]:
    """The limits in force at the last request that has some, and who says so."""
    last = next((t.last.window for t in reversed(threads) if t.last is not None and t.last.window.cap), None)
    if last is None:
        yield "# window = 128000   # no trace records one: without it, what is known of the model counts"
        yield "# reserve = 16000"
        return
    if last.limit_source is not None:
        note = f": {visible(last.limit_note)}" if last.limit_note else ""
        yield f"# Limits: {LIMIT_SOURCES[last.limit_source]}{note}"
    if last.limit is not None:
        yield f"window = {last.limit}"
    if last.limit is not None and last.reserved is not None:
        yield f"reserve = {last.reserved}"
    cap = last.cap if last.limit is None or last.cap != last.limit - (last.reserved or 0) else None
    if last.threshold is not None and last.threshold < (last.cap or 0):
        source = f": {visible(last.threshold_source)}" if last.threshold_source else "."
        yield f"# The client compacts by itself at {last.threshold:,}{source}"
        cap = last.threshold
    if cap is not None:
        yield f"max_input = {cap}"


def part_lines(
    threads: Sequence[Observed],
    taken: set[str],
    now: Mapping[PartGroup, int] | None = None,
    unit: str = "turn",
) -> Iterator[str]:
    """The parts, their names added to `taken`; of a session that goes on, `now` has what each holds."""
    for group, seen in groups_of(threads).items():
        if not any(seen.sizes):
            continue
        yield "[[part]]"
        yield f"name = {quoted(_name(group, taken))}"
        yield f'segment = "{group.segment}"'
        if group.segment == "tools" and group.source:
            yield f"server = {quoted(group.source[:200])}"
        yield f"tokens = {spread_text(measured_spread(seen.sizes))}"
        if now is not None:
            yield f"now = {now.get(group, 0)}"
        yield from _rate(seen, unit)
        yield ""


def _unrecorded(threads: Sequence[Observed], taken: set[str], lacking: str) -> Iterator[str]:
    """A part for what was billed and is not recorded: its sizes at the first requests of the sessions."""
    found = [thread.sent.first for thread in threads if thread.sent.first is not None]
    if not any(found):
        return
    less = sum(tokens < 0 for tokens in found)
    comment = (
        f"Billed in addition to what is recorded: at the first request, {len(found):,} of {len(threads):,}."
    )
    if less:
        comment += f" In {less:,} of them fewer were billed than counted: 0 here."
    size = spread_text(measured_spread([max(0, tokens) for tokens in found]))
    yield from part_of(quoted(free_name(part_name(lacking), taken)), size, None, comment)


def _limits(threads: Sequence[Observed]) -> Iterator[str]:
    """What ``--check`` demands of it: that no turn overflows."""
    yield from ("", "[limits]")
    over = [thread for thread in threads if thread.over]
    if over:
        many = sum(thread.over for thread in over)
        where = f"{many:,} requests, in {len(over):,} of {len(threads):,} sessions"
        yield f"# Over the cap of their time: {where}."
    unit = "request" if is_single(threads) else "turn"
    yield f"overflow_turn = {_turns(threads) + 1}   # no {unit} may overflow"


def _turns(threads: Sequence[Observed]) -> int:
    if is_single(threads):
        return _single_turns(threads)
    return min(MOST_TURNS, max(len(thread.turns) for thread in threads))


def earlier_lines(tokens: Any, taken: set[str]) -> Iterator[str]:
    """A part for messages that were there before, or for what stands for them."""
    yield from ("[[part]]", f"name = {quoted(free_name('earlier messages', taken))}", 'segment = "history"')
    yield f"tokens = {spread_text(tokens)}"
    yield ""


def _task(threads: Sequence[Observed], taken: set[str]) -> Iterator[str]:
    """What the first request brings beside the parts, in front of what follows."""
    sizes = _task_sizes(threads)
    if any(sizes):
        yield from ("[[part]]", f"name = {quoted(free_name('first request', taken))}", 'segment = "history"')
        yield from (f"tokens = {spread_text(measured_spread(sizes))}", "")


def _rate(seen: GroupSizes, unit: str) -> Iterator[str]:
    rate = seen.changed / seen.chances if seen.chances else 0.0
    yield f"changes = {rate:.3f}   # in {seen.changed:,} of {seen.chances:,} {unit}s"
    if seen.stays:
        yield "stays = true"


def _conversation(threads: Sequence[Observed]) -> Iterator[str]:
    talk = talk_of(threads)
    yield "[conversation]"
    yield f"turns = {_turns(threads)}   # the longest session"
    rows: tuple[tuple[str, list[int]], ...] = (
        ("user", [turn.user for turn in talk]),
        ("answer", answers_of(threads)),
        ("calls", [min(MOST_DRAWN, len(turn.calls)) for turn in talk]),
        ("parallel", [min(MOST_DRAWN, n) for turn in talk for n in turn.parallel]),
        ("call", [tokens for turn in talk for tokens in turn.calls]),
        ("result", [tokens for turn in talk for tokens in turn.results]),
    )
    for name, values in rows:
        if values:
            yield f"{name} = {spread_text(measured_spread(values))}   # {len(values):,} seen"
    if (drift := _drift(threads)) is not None:
        yield f"drift = {drift:.2f}   # by so much the growth of a turn differs from session to session"


def _drift(threads: Sequence[Observed]) -> float | None:
    """Standard deviation over the sessions of the logarithm of what a unit brings; None of a single one."""
    from math import log
    from statistics import stdev

    if is_single(threads):
        rows = [[sum(arrival) for arrival in _later_arrivals(thread)] for thread in threads]
    else:
        rows = [[_size(turn) for turn in talk_of([thread])] for thread in threads]
    found = [log(sum(row) / len(row)) for row in rows if sum(row)]
    return min(MOST_DRIFT, stdev(found)) if len(found) > 1 else None


def _size(talk: TurnTalk) -> int:
    return talk.user + talk.answer + sum(talk.calls) + sum(talk.results)


def _name(group: PartGroup, taken: set[str]) -> str:
    kind = _PLURAL.get(group.kind, group.kind.replace("_", " "))
    return free_name(f"{kind}: {group.source}" if group.source else kind, taken)


def free_name(name: str, taken: set[str]) -> str:
    """The name as it can stand in a plan, with a number where it is taken."""
    name = visible(name[:150])[:190]
    found, number = name, 1
    while found in taken:
        number += 1
        found = f"{name} {number}"
    taken.add(found)
    return found


def spread_text(value: Any) -> str:
    """TOML of what `measured_spread` gives."""
    if isinstance(value, int):
        return str(value)
    return "{ " + ", ".join(f"{name} = {number}" for name, number in value.items()) + " }"


def quoted(text: str) -> str:
    """A TOML string; what is invisible is shown, so that JSON's escapes are enough."""
    import json

    return json.dumps(visible(text), ensure_ascii=False)
