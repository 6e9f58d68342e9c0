"""What an item costs in money, and the smallest change of limit or policy that would put it into a window.

Changes are found by replays, each of the item's own session up to the step and of nothing else.  The fitting
policies are given all that was ever left out for lack of room; what left for another reason no limit brings
back.  What was found so is kept in the user's cache; what it costs is not, for prices change.
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

_MOST_BYTES: Final = 128 << 20
"""Of a session up to the step; a longer one is not replayed for this."""
_MANY: Final = 20_000
"""Events above which fewer replays are made."""
_AT_ONCE: Final = 3_000
"""Events up to which the replays are made unasked: about two seconds of a processor."""
_PROBES: Final = 40
"""Replays of a bisection: enough for any limit that can be written."""
_FEW: Final = 8
_OTHERS: Final = (
    "fifo", "priority", "truncate_tail", "truncate_middle", "summarize_oldest", "summarize_low_priority",
)  # fmt: skip
"""Policies that are tried under the recorded limit."""


def supposed_outcomes(
    inspector: Inspector, why: Why, models: dict[str, dict[str, Any]] | None = None,
    *, progress: Progress | None = None, however_long: bool = True,
) -> WhatIf:  # fmt: skip
    """What an item costs in money, and under which limit or policy it would be there.

    `models` are the user's own prices.  Replays the session up to the step some dozen times where room is
    what took the item out, and not at all otherwise; a long one only if `however_long`.
    """
    found = list(money_for_item(inspector, why, models))
    search = _RoomSearch(inspector, why, progress, however_long=however_long)
    if why.state == "out":
        found += search.links()
    elif why.state == "omitted":
        found += _never_placed(why)
    return WhatIf(tuple(found), search.count)


def _reason(why: Why) -> tuple[str, str | None]:
    """Why the item left last: the cause, and the reason that was recorded."""
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
    """What it would take to have an item at a step, found by replays or kept from another run."""

    def __init__(
        self, inspector: Inspector, why: Why, progress: Progress | None, *, however_long: bool
    ) -> None:
        self._however_long = however_long
        self.count = 0
        """Replays that it took."""
        self._inspector = inspector
        self._why = why
        self._progress = progress

    def links(self) -> list[Link]:
        """What was found."""
        cause, reason = _reason(self._why)
        by_policy = any(link.numbers.get("policy") for link in self._why.links)
        fitted = by_policy and self._inspector.params.fitting
        if not (fitted or cause in FOR_ROOM or (cause == "omitted" and reason in ROOM_REASONS)):
            said = f"{cause}{f' ({reason})' if reason else ''}"
            text = f"no limit brings it back: it left as {said}, not for lack of room"
            return [Link("whatif", "not-room", text, None, None, {"cause": cause}, "derived")]
        start, line, stop = self._stretch()
        if stop - start > _MOST_BYTES:
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
        if not self._however_long and (records := self._records(line)) > _AT_ONCE:
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
        """Where the session begins, the number of that line, and where the step ends."""
        places = self._inspector.places()
        mine = [span for span in places.spans if span.session == self._why.session]
        first = min(mine, key=lambda span: span.start)
        return first.start, first.line, places.spans[self._why.ordinal].end

    def _records(self, line: int) -> int:
        """How many records the session has up to the step, from its first line on; at most, where several
        sessions are in one trace."""
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
        """The policy that the limit is looked for under, and why it is that one."""
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
    """Two limits as close as can be found: with one the item is not there, with the other it is."""
    for _ in range(_PROBES if probes.events <= _MANY else _FEW):
        if present - absent <= 1:
            break
        middle = (absent + present) // 2
        if probes.present(policy, middle):
            present = middle
        else:
            absent = middle
    return absent, present


def _others(probes: Probes, tried: Fitter, window: Window, cap: int) -> list[Link]:
    if probes.events > _MANY:
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
    """The limit in force, behind another one."""
    assert window.cap is not None
    whose = "recorded" if window.limit_source in _OF_RECORD else "now"
    return f"{whose}: {limit_words(window.cap, window.limit_source)}"


def _the_limit(window: Window) -> str:
    assert window.cap is not None
    kind = "recorded limit" if window.limit_source in _OF_RECORD else "limit"
    return f"the {kind} of {limit_words(window.cap, window.limit_source)}"


def _beside(window: Window, limit: int) -> str:
    """How much of a limit is taken by what no policy can leave out: what was sent and is not recorded."""
    beside = window.unrecorded or 0
    if not 0 < beside < limit:
        return ""
    return f", about {rounded_size(beside):,} of them for what is sent and not recorded"


_OF_RECORD: Final = ("recorded", None)
"""Sources of a limit that a budget record of the trace says."""


def _fitter(name: str) -> Fitter:
    found = fitter_of(policy_by_name(name))
    if found is None:  # a name of ours that fits nothing would be a mistake of this module
        raise UsageError("unknown-policy", f"{name} leaves nothing out")
    return found
