"""An item's cost in money, and the smallest change of limit or policy that would put it into a window.

Changes are found by replays of the item's own session up to the step. Fitting policies are given everything
that was ever left out for lack of room; no limit brings back what left for another reason. Results are
cached, except for costs, because prices change.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ctxctl.analysis.why.money import money_for_item
from ctxctl.analysis.why.probes import Probes, Sought
from ctxctl.analysis.why.reading import StepReader
from ctxctl.engine.replay.step_tracker import ThreadKey
from ctxctl.engine.simulate.unfitted_window import FOR_ROOM, ROOM_REASONS
from ctxctl.errors import UsageError
from ctxctl.model import vocab
from ctxctl.model.fitting import Fitter
from ctxctl.model.sizes import limit_words, rounded_size
from ctxctl.model.why import Link, WhatIf, Why
from ctxctl.policies.registry import policy_by_name
from ctxctl.session.answer_cache import answers_of
from ctxctl.session.params import fitter_of
from ctxctl.session.store_rows import lives_of

if TYPE_CHECKING:
    from ctxctl.model.results import Window
    from ctxctl.session.facade import Inspector, Progress

_MAX_BYTES: Final = 128 << 20
"""Most bytes of a session up to the step; a longer one is not replayed for this."""
_MAX_EVENTS_FULL: Final = 20_000
"""Number of events above which fewer replays are made."""
_MAX_EVENTS_UNASKED: Final = 3_000
"""Most events for which replays are made without asking: about two seconds of processor time."""
_MAX_PROBES: Final = 40
"""Most replays of a bisection: enough for any limit."""
_FEW_PROBES: Final = 8
_OTHERS: Final = (
    "fifo", "priority", "truncate_tail", "truncate_middle", "summarize_oldest", "summarize_low_priority",
)  # fmt: skip
"""Policies to try under the recorded limit."""


def supposed_outcomes(
    inspector: Inspector, why: Why, models: dict[str, dict[str, Any]] | None = None,
    *, progress: Progress | None = None, however_long: bool = True,
) -> WhatIf:  # fmt: skip
    """Return an item's cost in money, and a limit or policy under which it would be in the window.

    `models` are the user's own prices. It replays the session up to the step some dozen times if lack of room
    removed the item, else not at all; a long session only if `however_long`.
    """
    found = list(money_for_item(inspector, why, models))
    search = _RoomSearch(inspector, why, progress, however_long=however_long)
    if why.state == "out":
        found += search.links()
    elif why.state == "omitted":
        found += _never_placed(why)
    return WhatIf(tuple(found), search.count)


def _reason(why: Why) -> tuple[str, str | None]:
    """Return the last recorded cause and reason of the item's removal."""
    taken = ("compacted", "dropped", "omitted", "removed", "redacted", *vocab.CAUSES)
    for link in reversed(why.links):
        if link.verdict in taken:
            cause, reason = link.numbers.get("cause"), link.numbers.get("reason")
            names = {"dropped": "truncated", "removed": str(cause or "unrecorded")}
            return names.get(link.verdict, link.verdict), reason if isinstance(reason, str) else None
    return "unrecorded", None


def _never_placed(why: Why) -> list[Link]:
    cause, reason = _reason(why)
    if cause == "truncated" or reason in ROOM_REASONS:
        text = "no replay can put it there: it never was in a frame; what it would take is derived above"
    else:
        said = reason or "for a reason that is not recorded"
        text = f"no limit and no fitting policy brings it in: it was left out as {said}, not for lack of room"
    return [Link("whatif", "not-tried", text, None, None, {}, "derived")]


class _RoomSearch:
    """Finds what it would take to have an item at a step, by replays or from the cache."""

    def __init__(
        self, inspector: Inspector, why: Why, progress: Progress | None, *, however_long: bool
    ) -> None:
        self._however_long = however_long
        self.count = 0
        """Number of replays made."""
        self._inspector = inspector
        self._why = why
        self._progress = progress

    def links(self) -> list[Link]:
        """Return the results."""
        cause, reason = _reason(self._why)
        by_policy = any(link.numbers.get("policy") for link in self._why.links)
        fitted = by_policy and self._inspector.params.fitting
        if not (fitted or cause in FOR_ROOM or (cause == "omitted" and reason in ROOM_REASONS)):
            said = f"{cause}{f' ({reason})' if reason else ''}"
            text = f"no limit brings it back: it left as {said}, not for lack of room"
            return [Link("whatif", "not-room", text, None, None, {"cause": cause}, "derived")]
        start, line, stop = self._stretch()
        if stop - start > _MAX_BYTES:
            text = (
                f"not tried: its session has {(stop - start) >> 20:,} MB so far; "
                "`ctxctl replay --policy fifo --window TOKENS` supposes a limit for all of it"
            )
            return [Link("whatif", "too-long", text, None, None, {"bytes": stop - start}, "derived")]
        return self._known_or_tried(start, line, stop)

    def _known_or_tried(self, start: int, line: int, stop: int) -> list[Link]:
        policy, whose = self._policy()
        kept = answers_of(self._inspector)
        question = f"room for {self._why.ordinal} {policy.name}{whose} {self._why.item}"
        known = kept.find(question) if kept is not None else None
        if known is not None:
            with suppress(msgspec.MsgspecError):
                self.count, links = msgspec.msgpack.decode(known, type=tuple[int, list[Link]])
                return links
        if not self._however_long and (records := self._records(line)) > _MAX_EVENTS_UNASKED:
            text = (
                f"ctxctl did not look for what would keep it: that takes replays of {records:,} records; "
                "`--what-if` runs them"
            )
            return [Link("whatif", "not-asked", text, None, None, {"records": records}, "derived")]
        probes = self._probes(start, line, stop)
        found = self._tried(probes, policy, whose)
        self.count = probes.count
        if kept is not None:
            kept.keep(question, msgspec.msgpack.encode((self.count, found)))
        return found

    def _stretch(self) -> tuple[int, int, int]:
        """Return the byte and line where the session begins, and the byte where the step ends."""
        places = self._inspector.places()
        mine = [span for span in places.spans if span.session == self._why.session]
        first = min(mine, key=lambda span: span.start)
        return first.start, first.line, places.spans[self._why.ordinal].end

    def _records(self, line: int) -> int:
        """Return the number of the session's records up to the step; an upper bound if the trace has several
        sessions."""
        return self._inspector.places().spans[self._why.ordinal].line - line + 1

    def _probes(self, start: int, line: int, stop: int) -> Probes:
        inspector, why = self._inspector, self._why
        end = stop if stop < inspector.trace.source.size else None
        events = [e for e in inspector.trace.events(start, line, end) if e.may_be_of(why.session)]
        sought = Sought(why.item, ThreadKey(why.session, why.thread), why.turn, why.step)
        return Probes(inspector.rules(), events, sought, self._told)

    def _told(self, number: int) -> None:
        if self._progress is not None:
            self._progress(min(0.99, number / 20))

    def _tried(self, probes: Probes, policy: Fitter, whose: str) -> list[Link]:
        window = lives_of(self._inspector).step(self._why.ordinal).window
        low = window.cap or 0
        most = probes.unlimited(policy)
        moment = StepReader(self._inspector).moment(self._why.ordinal)
        name = f"policy {policy.name}{whose}"
        if not most.present:
            text = f"none found: under {name} it is not there even with no limit at all"
            return [Link("whatif", "none", text, moment, None, {"policy": policy.name}, "simulated")]
        now = "none is known" if window.cap is None else _now(window)
        found = []
        numbers: dict[str, int | float | str | None] = {"policy": policy.name, "recorded": window.cap}
        if window.cap is not None:
            numbers["limit_source"] = window.limit_source
        if window.cap is not None and probes.present(policy, low):
            text = f"under {name} it would be there with {_the_limit(window)} tokens of input"
            found.append(Link("whatif", "policy", text, moment, None, {**numbers, "cap": low}, "simulated"))
        else:
            absent, present = _bisected(probes, policy, low, max(most.wanted, low + 1))
            text = (
                f"under {name} it would be there with a limit of {present:,} tokens of input or more ({now})"
            )
            text += _beside(window, present)
            if present == 1:
                text = f"under {name} it would be there whatever the limit: the policy does not take it out"
            elif present - absent > 1:
                text += f"; with {absent:,} it would not, and what is between was not tried"
            numbers |= {"cap": present, "absent_at": absent}
            found.append(Link("whatif", "limit", text, moment, None, numbers, "simulated"))
        return found + (_others(probes, policy, window, window.cap) if window.cap is not None else [])

    def _policy(self) -> tuple[Fitter, str]:
        """Return the policy for which the limit is searched, and the reason for choosing it."""
        own = fitter_of(self._inspector.strategy)
        if own is not None:
            return own, ""
        for link in reversed(self._why.links):
            strategy = link.numbers.get("overflow_strategy")
            if isinstance(strategy, str) and strategy in _OTHERS:
                return _fitter(strategy), " (as its budget names it)"
        if any(link.verdict == "compacted" for link in self._why.links):
            return _fitter("summarize_oldest"), " (ctxctl's own; it was compacted)"
        return _fitter("fifo"), " (ctxctl's own; the trace names none)"


def _bisected(probes: Probes, policy: Fitter, absent: int, present: int) -> tuple[int, int]:
    """Return two close limits: the item is absent with the first and present with the second."""
    for _ in range(_MAX_PROBES if probes.events <= _MAX_EVENTS_FULL else _FEW_PROBES):
        if present - absent <= 1:
            break
        middle = (absent + present) // 2
        if probes.present(policy, middle):
            present = middle
        else:
            absent = middle
    return absent, present


def _others(probes: Probes, tried: Fitter, window: Window, cap: int) -> list[Link]:
    if probes.events > _MAX_EVENTS_FULL:
        return []
    keeps = [name for name in _OTHERS if name != tried.name and probes.present(_fitter(name), cap)]
    names = ", ".join(keeps)
    text = (
        f"with {_the_limit(window)} it would be there under {names}"
        if keeps
        else f"with {_the_limit(window)} none of the other policies keeps it: "
        f"{', '.join(name for name in _OTHERS if name != tried.name)}"
    )
    return [Link("whatif", "policies", text, None, None, {"cap": cap, "policies": names}, "simulated")]


def _now(window: Window) -> str:
    """Return the limit in force, as an addition to another one."""
    assert window.cap is not None
    whose = "recorded" if window.limit_source in _OF_RECORD else "now"
    return f"{whose}: {limit_words(window.cap, window.limit_source)}"


def _the_limit(window: Window) -> str:
    assert window.cap is not None
    kind = "recorded limit" if window.limit_source in _OF_RECORD else "limit"
    return f"the {kind} of {limit_words(window.cap, window.limit_source)}"


def _beside(window: Window, limit: int) -> str:
    """Return how much of a limit is taken by unrecorded content, which no policy can leave out."""
    beside = window.unrecorded or 0
    if not 0 < beside < limit:
        return ""
    return f", about {rounded_size(beside):,} of them for what is sent and not recorded"


_OF_RECORD: Final = ("recorded", None)
"""Sources of a limit that a budget record states."""


def _fitter(name: str) -> Fitter:
    found = fitter_of(policy_by_name(name))
    if found is None:  # an own name that fits nothing would be an error in this module
        raise UsageError("unknown-policy", f"{name} leaves nothing out")
    return found
