"""The cost of an item where it is in the window, and the room that it would need where it is not."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from typing import Final

from ctxctl.analysis.why.reading import StepReader
from ctxctl.model.results import Window
from ctxctl.model.sizes import NOT_KNOWN, limit_words, only_recorded, sent_words
from ctxctl.model.vocab import segment_of
from ctxctl.model.why import Link
from ctxctl.store.lives import LifeMoment, Lives
from ctxctl.wording import plural, share

_SEEN: Final = ("added", "updated", "skipped")
_ORDERS: Final = ("summarize_oldest", "truncate_tail")
"""Overflow strategies that remove whole items in an order that follows from the frame."""
_MAX_NAMED: Final = 6
"""Most items of a set that are named."""


class CarryingRequests:
    """The requests with an item, as runs of steps with the same tokens."""

    def __init__(self, reader: StepReader, ordinal: int, life: list[LifeMoment]) -> None:
        self.runs: list[tuple[list[int], int]] = []
        """Ordinals of the thread's steps, and the tokens of all copies in each."""
        steps = reader.steps_of(ordinal)
        for n, row in enumerate(life):
            if row.held <= 0:
                continue
            start = bisect_left(steps, row.first)
            stop = (
                bisect_left(steps, life[n + 1].first) if n + 1 < len(life) else bisect_right(steps, ordinal)
            )
            if start < stop:
                self.runs.append((steps[start:stop], row.held))

    @property
    def requests(self) -> int:
        """Number of requests with the item."""
        return sum(len(steps) for steps, _ in self.runs)

    @property
    def tokens(self) -> int:
        """Tokens of the item in all these requests together."""
        return sum(len(steps) * held for steps, held in self.runs)


def carried_cost(lives: Lives, reader: StepReader, ordinal: int, life: list[LifeMoment]) -> list[Link]:
    """Return what an item has cost so far, in tokens; none if no frame had tokens of it."""
    found = CarryingRequests(reader, ordinal, life)
    if not found.requests:
        return []
    windows = [lives.step(n).window for steps, _ in found.runs for n in steps]
    all_used = sum(window.used for window in windows)
    part = f", {share(found.tokens, all_used, fine=True)} of what {_was_sent(windows)}" if all_used else ""
    requests = plural(found.requests, "request")
    text = f"has cost {found.tokens:,} tokens in {requests} so far{part}"
    numbers = {"requests": found.requests, "tokens": found.tokens, "of": all_used}
    return [Link("cost", "spent", text, reader.moment(ordinal), None, numbers, "derived")]


def _was_sent(windows: list[Window]) -> str:
    """Return what a sum over requests refers to."""
    if all(window.used_method == "reported" for window in windows):
        return "was billed for them" if len(windows) > 1 else "was billed for it"
    if all(only_recorded(window.used_method, window.unrecorded) for window in windows):
        return "is recorded of them" if len(windows) > 1 else "is recorded of it"
    return "is known to have been sent in them"


def _sent(window: Window) -> str:
    return sent_words(window.used, window.used_method, window.unrecorded, window.used_error)


def share_of_sent(tokens: int, window: Window) -> str:
    """Return tokens as a share of what a step sent."""
    text = f"{tokens:,} of {_sent(window)}"
    if tokens and window.used > 0:
        text += f", {share(tokens, window.used, fine=True)}"
    return f"{text}; {NOT_KNOWN}" if only_recorded(window.used_method, window.unrecorded) else text


def step_sizes(window: Window) -> dict[str, int | float | str | None]:
    """Return the known figures of that share by name."""
    known = {"used": window.used, "recorded": window.recorded, "unrecorded": window.unrecorded}
    return {**_known(known), "used_method": window.used_method, **_known({"used_error": window.used_error})}


def uncut_tokens(life: list[LifeMoment]) -> int | None:
    """Return an item's tokens when it was last uncut, or else its tokens after the cut."""
    if not life:
        return None
    uncut = [row.tokens for row in life if row.status in _SEEN and "truncated" not in row.flags]
    return life[-1].tokens if life[-1].status == "omitted" or not uncut else uncut[-1]


def room_needed(
    lives: Lives, reader: StepReader, ordinal: int, life: list[LifeMoment], said: list[Link]
) -> list[Link]:
    """Return what an absent item would need: tokens, and items that would have to go."""
    tokens = uncut_tokens(life)
    moment, window = reader.moment(ordinal), lives.step(ordinal).window
    if not tokens:
        text = "its size is not recorded: what it would take to have it here is not known"
        return [Link("room", "unknown", text, moment, None, {}, "derived")]
    numbers = {"tokens": tokens, **step_sizes(window), "cap": window.cap, "limit_source": window.limit_source}
    if window.cap is None:
        why = f" ({window.limit_note.rstrip('.')})" if window.limit_note else ""
        text = f"it would take {tokens:,} tokens; "
        text += _in_characters(said, ordinal) or (
            f"no limit is known{why}, so whether they were free is not known"
        )
        return [Link("room", "no-limit", text, moment, None, _known(numbers), "derived")]
    cap, free = limit_words(window.cap, window.limit_source), window.cap - window.used
    numbers["free"] = free
    if tokens <= free:
        text = (
            f"its size would have fitted: {tokens:,} tokens, and {free:,} of {cap} were free{_with(window)}"
        )
        text += _by_its_own(said, ordinal)
        return [Link("room", "fits", text, moment, None, _known(numbers), "derived")]
    need = tokens - free
    over = f"{free:,} free" if free >= 0 else f"over by {-free:,} already"
    text = (
        f"it would take {tokens:,} tokens with {over} of {cap}{_with(window)}: {need:,} would have to go, "
        f"or {_limit_of(window, need)}"
    )
    numbers["need"] = need
    found = [Link("room", "short", text, moment, None, _known(numbers), "derived")]
    return found + _sets(lives, reader, ordinal, need, _strategy(said))


def _with(window: Window) -> str:
    """Return what was sent, and the source of a limit that no record states."""
    text = f" after {_sent(window)}"
    if window.limit_source == "catalogue" and window.limit_note:
        text += f" ({window.limit_note.rstrip('.')})"
    return text


def compaction_figures(lives: Lives, reader: StepReader, ordinal: int, life: list[LifeMoment]) -> list[Link]:
    """Return the client's compaction threshold, and the previous request's size, for an item that a
    compaction removed. None if the client's rule is unknown."""
    left = next((row for row in reversed(life) if row.status == "removed"), None)
    steps = reader.steps_of(ordinal)
    at = bisect_left(steps, left.first) if left is not None else 0
    if left is None or left.cause != "compacted" or at == 0:
        return []
    before = lives.step(steps[at - 1]).window
    if before.threshold is None:
        return []
    size = _sent(before)
    rule = f" ({before.threshold_source.rstrip('.')})" if before.threshold_source else ""
    text = (
        f"the client compacts by itself at {before.threshold:,} tokens{rule}; "
        f"the request before the compaction: {size}"
    )
    numbers = {"threshold": before.threshold, "sent_before": before.used}
    return [Link("room", "compacts", text, reader.moment(left.first), None, _known(numbers), "derived")]


def _by_its_own(said: list[Link], ordinal: int) -> str:
    """Return the count of the step's budget record, which may differ from the frame."""
    for link in reversed(said):
        used, limit = link.numbers.get("actual_tokens"), link.numbers.get("max_tokens")
        here = link.at is not None and link.at.ordinal == ordinal
        if here and isinstance(used, int) and isinstance(limit, int):
            return f"; this is ctxctl's count: the budget itself counted {used:,} of {limit:,} used"
    return ""


def _in_characters(said: list[Link], ordinal: int) -> str | None:
    """Return a note if the step's budget is in characters, which cannot be compared with tokens."""
    for link in reversed(said):
        used, limit = link.numbers.get("actual_chars"), link.numbers.get("max_chars")
        if link.at is not None and link.at.ordinal == ordinal and isinstance(limit, int):
            of = f"{used:,} of {limit:,}" if isinstance(used, int) else f"{limit:,}"
            why = "so no number of tokens says what it had room for"
            return f"the budget there counts characters ({of}), {why}"
    return None


def _limit_of(window: Window, need: int) -> str:
    """Return which limit would have to be how high."""
    assert window.cap is not None
    if window.limit is not None and window.cap >= window.limit - (window.reserved or 0):
        return f"the window would have to be {window.limit + need:,} instead of {window.limit:,}"
    return f"the limit on input would have to be {window.cap + need:,} instead of {window.cap:,}"


def _strategy(said: list[Link]) -> str | None:
    """Return the overflow strategy of the last budget record in the chain."""
    named = (link.numbers.get("overflow_strategy") for link in reversed(said))
    return next((name for name in named if isinstance(name, str)), None)


def _sets(lives: Lives, reader: StepReader, ordinal: int, need: int, strategy: str | None) -> list[Link]:
    """Return which items would make the room: by the recorded strategy, and as few as possible."""
    frame = lives.frame(ordinal)
    held = {item: row.held for item, row in frame.items() if row.held > 0}
    moment = reader.moment(ordinal)
    found = []
    order = _in_order(lives, frame, strategy)
    for what, names in ((f"in the order of {strategy}", order), ("the fewest", fewest_items(held, need))):
        if what != "the fewest":
            names = _until(names, held, need)
        if not names:
            continue
        total = sum(held[item] for item in names)
        shown = ", ".join(f"{lives.entry(item).item} ({held[item]:,})" for item in names[:_MAX_NAMED])
        more = f" and {len(names) - _MAX_NAMED:,} more" if len(names) > _MAX_NAMED else ""
        count = plural(len(names), "item")
        text = f"{what} that would have to go: {count} with {total:,} tokens: {shown}{more}"
        verdict = "fewest" if what == "the fewest" else "in-order"
        numbers: dict[str, int | float | str | None] = {"items": len(names), "tokens": total}
        if verdict == "in-order":
            text, numbers["strategy"] = text.replace(" that would", ", what would"), strategy
        found.append(Link("room", verdict, text, moment, None, numbers, "derived"))
    if not found:
        text = "removing everything that is recorded would not make enough room"
        return [Link("room", "impossible", text, moment, None, {"need": need}, "derived")]
    return found


def _in_order(lives: Lives, frame: dict[int, LifeMoment], strategy: str | None) -> list[int] | None:
    """Return the removable items in a strategy's order; None if it has no order."""
    if strategy not in _ORDERS:
        return None
    kept = ("tools", "system")
    loose = [n for n in frame if segment_of(lives.entry(n).kind) not in kept and frame[n].held > 0]
    came = {n: lives.life(n)[0].number for n in loose}
    return sorted(loose, key=came.__getitem__, reverse=strategy == "truncate_tail")


def _until(names: list[int] | None, held: dict[int, int], need: int) -> list[int] | None:
    """Return as many of the first items as needed; None if all do not suffice."""
    total = 0
    for at, item in enumerate(names or ()):
        total += held[item]
        if total >= need and names is not None:
            return names[: at + 1]
    return None


def fewest_items(held: dict[int, int], need: int) -> list[int] | None:
    """Return the fewest items with `need` tokens together, the last one as small as possible."""
    ordered = sorted(held, key=lambda item: (-held[item], item))
    chosen: list[int] = []
    left = need
    for at, item in enumerate(ordered):
        if held[item] >= left:
            # Take the smallest one that suffices.
            enough = [other for other in ordered[at:] if held[other] >= left]
            return [*chosen, enough[-1]]
        chosen.append(item)
        left -= held[item]
    return None


def _known(numbers: Mapping[str, int | float | str | None]) -> dict[str, int | float | str | None]:
    return {name: value for name, value in numbers.items() if value is not None}
