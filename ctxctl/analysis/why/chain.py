"""The chain of decisions about one item of a trace, from where it became available to one step."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from ctxctl.analysis.why.cost import share_of_sent, step_sizes
from ctxctl.analysis.why.evidence import Called, StepEvidence, came_numbers
from ctxctl.analysis.why.reading import StepReader
from ctxctl.engine.replay.item_table import version_of
from ctxctl.model.event import Event
from ctxctl.model.records import Item
from ctxctl.model.why import Link, Moment, Rest, State
from ctxctl.session.resolver import ItemRefs
from ctxctl.store.lives import Entry, LifeMoment, Lives
from ctxctl.wording import step_name

if TYPE_CHECKING:
    from ctxctl.session.facade import Inspector

_MAX_LATEST: Final = 4
"""Number of a life's latest changes that the chain names, besides the first."""
_MAX_VERSIONS: Final = 200
"""Most changes whose version is looked up if a certain one is requested."""
_STAYS: Final = ("added", "updated", "skipped")

_MAX_FATES: Final = 8
"""Most summaries of summaries that are followed."""


def called_in(lives: Lives, thread: int, *, ids: bool) -> Called:
    """Return how sentences about a thread's items name other items."""

    def title(ref: str) -> str | None:
        entry = lives.find(thread, ref) or lives.find(thread, ref.rpartition("@")[0])
        return entry.title if entry is not None else None

    return Called(title, ids=ids)


def summary_fate(
    lives: Lives, reader: StepReader, ordinal: int, thread: int, summary: str, target: str,
    called: Called,
) -> Iterator[Link]:  # fmt: skip
    """Yield a sentence for each summary of a summary up to a step, down to one that is there or is lost."""
    seen = set[str]()
    for _ in range(_MAX_FATES):
        entry = lives.find(thread, summary) or lives.find(thread, summary.rpartition("@")[0])
        if entry is None or entry.item in seen:
            return
        seen.add(entry.item)
        life = lives.life(entry.number, ordinal)
        if not life:
            text = f"{called.summary(entry.item)} was in no frame so far"
            yield Link("compaction", "summary-absent", text, None, None, {"item": entry.item}, "derived")
            return
        last = life[-1]
        if last.status in _STAYS:
            # A provider's own compaction is encrypted, so it has no token count.
            size = f"{last.tokens:,} tokens" if last.tokens else "its size is not known"
            text = f"{called.summary(entry.item)} is in the window, {size}"
            yield Link(
                "compaction", "summary-present", text, reader.moment(last.first), reader.rest_at(last.line),
                {"item": entry.item, "tokens": last.tokens or None}, "derived",
            )  # fmt: skip
            return
        evidence = StepEvidence(reader, last.first, ItemRefs(entry.item), target, called)
        compacted = next(evidence.compacted(), None)
        window = evidence.window()
        why, rest = f"left the window ({last.cause or 'unrecorded'})", reader.rest(window) if window else None
        into = None
        if compacted is not None:
            why, rest, into = compacted.text, compacted.event, compacted.numbers.get("into")
        text = f"{called.summary(entry.item)} {why}"
        yield Link("compaction", "summary-left", text, evidence.moment, rest, {"item": entry.item}, "derived")
        if not isinstance(into, str):
            return
        summary = into


class SentenceChain:
    """Makes the sentences of a chain, in the order of the events."""

    def __init__(
        self, inspector: Inspector, lives: Lives, reader: StepReader, ordinal: int,
        entry: Entry, life: list[LifeMoment], state: State, *, ids: bool,
    ) -> None:  # fmt: skip
        self._lives = lives
        self._reader = reader
        self._ordinal = ordinal
        self._entry = entry
        self._life = life
        self._state: State = state
        self._target = inspector.params.target
        self._policy = inspector.params.policy
        self._called = called_in(lives, entry.thread, ids=ids)
        prefix = f"{entry.item}@"
        others = lives.fitting(entry.thread, lambda item: item.startswith(prefix))
        self._named = ItemRefs(entry.item, frozenset(other.item for other in others))

    def links(self, *, everything: bool) -> tuple[list[Link], int]:
        """Return the chain, and the number of changes left out of its middle."""
        found = list(self._origin())
        life = self._life
        rows = life if everything or len(life) <= 1 + _MAX_LATEST else [life[0], *life[-_MAX_LATEST:]]
        for row in rows:
            found += self._row(row)
        if not life or life[-1].last != self._ordinal:
            found += self._now()
        found += self._keeps()
        return _without_repeats(found), len(life) - len(rows)

    def untold(self) -> bool:
        """Return whether the last compaction does not tell what it left, and its result is in the window."""
        if not self._life or self._life[-1].simulated:
            return False
        links = [*self._evidence(self._life[-1].last).left(self._life[-1].cause)]
        view = links[0].numbers.get("view") if links and links[0].verdict == "not-told" else None
        entry = self._lives.find(self._entry.thread, view) if isinstance(view, str) else None
        return entry is not None and entry.number in self._lives.frame(self._ordinal)

    def _evidence(self, ordinal: int) -> StepEvidence:
        return StepEvidence(self._reader, ordinal, self._named, self._target, self._called)

    # Where it is from

    def _origin(self) -> Iterator[Link]:
        line = self._entry.line
        event = self._reader.at_line(line)
        if event is None or not isinstance(event.record, Item):
            text = "has no record of its own: only its id is known, from records that name it"
            yield Link("surface", "undescribed", text, provenance="derived")
            return
        if self._state == "later":
            text = f"is not there yet: it {self._called.came(event.record)} after this step"
            yield self._on(event, "surface", "later", text, **came_numbers(event.record))
            return
        yield self._on(
            event, "surface", "available", self._called.came(event.record), **came_numbers(event.record)
        )
        if not self._entry.visible:
            seen = ", ".join(event.record.visibility) or "nobody"
            text = f"is not visible to {self._target}: its record names {seen}"
            yield self._on(event, "surface", "hidden", text)

    # One change

    def _row(self, row: LifeMoment) -> Iterator[Link]:
        if row.simulated and row.status in _BY_POLICY:
            yield self._by_policy(row)
            return
        say = {
            "added": self._added, "updated": self._updated, "removed": self._removed,
            "skipped": self._touched, "omitted": self._omitted, "gone": self._gone,
        }[row.status]  # fmt: skip
        for link in say(row):
            yield _simulated(link) if row.simulated else link

    def _by_policy(self, row: LifeMoment) -> Link:
        """Return the sentence for a change by the replay's policy, which no record describes."""
        what = _BY_POLICY[row.status].format(policy=self._policy)
        why = f" ({row.cause})" if row.cause else ""
        tokens = f"; {row.tokens:,} tokens" if row.status == "updated" else ""
        rest = self._rest(self._evidence(row.first).window())
        return Link(
            "window", row.cause or row.status, what + why + tokens, self._reader.moment(row.first), rest,
            {"policy": self._policy, "cause": row.cause}, "simulated",
        )  # fmt: skip

    def _added(self, row: LifeMoment) -> Iterator[Link]:
        evidence = self._evidence(row.first)
        yield from evidence.surface()
        yield from evidence.selection()
        yield from evidence.budget()
        assembled = list(evidence.assembly())
        event = evidence.window()
        if "carried-in" in row.flags:
            text = "was in the window before the trace begins: current, but its text is not recorded"
            yield self._derived("window", "carried-in", text, row.first, event)
            return
        size = f"; {row.tokens:,} tokens" if row.tokens else "; its size is not known"
        if assembled and assembled[0].verdict == "assembled":
            link = assembled[0]
            text = f"entered the window: {link.text.removeprefix('is ')}{size}"
            yield Link(
                "assembly", "entered", text, link.at, link.event, {**link.numbers, "tokens": row.tokens}
            )
        else:
            basis = self._lives.step(row.first).basis
            text = f"entered the window, by {_BASIS.get(basis, basis)}{size}"
            came = evidence.came()
            rest = self._rest(event) if basis in ("assembly", "selection") or came is None else came.event
            yield Link("window", "entered", text, evidence.moment, rest, {"tokens": row.tokens}, "derived")
        yield from evidence.injection()

    def _updated(self, row: LifeMoment) -> Iterator[Link]:
        evidence = self._evidence(row.first)
        yield from evidence.budget()
        yield from evidence.redacted()
        came = evidence.came()
        size = f"; {row.tokens:,} tokens now, {row.held:,} in all its copies" if row.held else ""
        if came is not None:
            version = came.numbers.get("version")
            text = f"was updated to {'version ' + str(version) if version else 'another version'}{size}"
            yield Link("window", "updated", text, came.at, came.event, {**came.numbers, "tokens": row.tokens})
        else:
            text = f"was updated: the window holds another version or rendering{size}"
            yield self._derived("window", "updated", text, row.first, evidence.window(), tokens=row.tokens)
        if "stale" in row.flags:
            text = "its older copies stayed in the window, stale"
            event = evidence.window() or self._reader.at_line(row.line)
            yield self._derived("window", "stale", text, row.first, event, held=row.held)

    def _touched(self, row: LifeMoment) -> Iterator[Link]:
        evidence = self._evidence(row.first)
        if "rescored" in row.flags:
            yield from evidence.selection()
        if "moved" in row.flags:
            text = "was moved to another place in the window"
            yield self._derived("window", "moved", text, row.first, evidence.window())
        if not {"moved", "rescored"} & set(row.flags):
            size = f"its copies hold {row.held:,} tokens" if row.held else "their size is not known"
            text = f"is unchanged itself; from here on {size}"
            yield self._derived("window", "touched", text, row.first, evidence.window(), held=row.held)

    def _omitted(self, row: LifeMoment) -> Iterator[Link]:
        evidence = self._evidence(row.first)
        found = list(evidence.about(kept=False)) or list(evidence.compacted())
        if row.last != row.first:
            last = self._evidence(row.last)
            found += list(last.about(kept=False))
        if not found:
            text = "was named as a candidate and not kept; nothing recorded says why"
            found = [self._derived("selection", "omitted", text, row.first, evidence.window())]
        yield from found
        if row.steps > 1:
            first, last_at = self._reader.moment(row.first), self._reader.moment(row.last)
            text = (
                f"was left out at each of {row.steps:,} steps in a row, "
                f"from turn {_named(first)} to turn {_named(last_at)}"
            )
            yield Link(
                "selection", "left-out", text, last_at, None, {"steps": row.steps}, provenance="derived"
            )
        yield from self._against(row.last, found)

    def _against(self, ordinal: int, said: list[Link]) -> Iterator[Link]:
        """Yield a sentence on the step's limits, unless the decision named them."""
        reasons = {link.numbers.get("reason") for link in said}
        if {"max_tokens", "max_chars"} & {name for link in said for name in link.numbers}:
            return
        if reasons & {"budget_limit", "too_large"}:
            limits = self._evidence(ordinal).limits()
            if limits is not None:
                event, text, numbers = limits
                numbers = {name: value for name, value in numbers.items() if value is not None}
                yield self._on(
                    event, "budget", "limits", f"the limits there{text.replace(';', ':', 1)}", **numbers
                )

    def _removed(self, row: LifeMoment) -> Iterator[Link]:
        evidence = self._evidence(row.first)
        found = list(evidence.left(row.cause))
        cause = row.cause or "unrecorded"
        if not found:
            text = _CAUSES.get(cause, "left the window ({cause})").format(cause=cause)
            if cause == "expired" and self._target == "tool":
                text = "left the view: it was given to one call, which has ended"
            found = [self._derived("window", cause, text, row.first, evidence.window(), cause=cause)]
        yield from found
        yield from self._against(row.first, found)
        for link in found:
            into = link.numbers.get("into")
            if link.verdict == "compacted" and isinstance(into, str):
                thread = self._entry.thread
                yield from summary_fate(
                    self._lives, self._reader, self._ordinal, thread, into, self._target, self._called
                )
                break
        if row.held:
            text = f"its old copies stayed in the window, stale, with {row.held:,} tokens"
            yield self._derived("window", "stale", text, row.first, evidence.window(), held=row.held)

    def _gone(self, row: LifeMoment) -> Iterator[Link]:
        event = self._evidence(row.first).window()
        if row.held:
            text = f"some of its stale copies left the window; {row.held:,} tokens of them are there"
        else:
            text = "its last stale copies left the window"
        yield self._derived("window", "gone", text, row.first, event, held=row.held)

    # The step itself

    def _now(self) -> Iterator[Link]:
        """Yield what the step's own records say about an item that did not change there."""
        if self._state == "later":
            return
        evidence = self._evidence(self._ordinal)
        yield from evidence.about(kept=self._state == "current")
        if self._state == "untold":
            text = "whether it is still part of what replaces the compacted window is not recorded"
            yield self._derived("window", "not-told", text, self._ordinal, evidence.window())
        if self._state == "available":
            text = "no selection, budget or assembly has named it so far"
            yield Link("selection", "not-named", text, evidence.moment, None, {}, "derived")
        if self._state == "omitted" and not any(True for _ in evidence.about(kept=False)):
            text = "was not named at this step at all"
            yield self._derived("selection", "not-named", text, self._ordinal, evidence.window())

    def _keeps(self) -> Iterator[Link]:
        """Yield since when the item is there, and what keeps it."""
        if self._state != "current":
            return
        since = next(row for row in reversed(self._life) if row.status in _STAYS)
        start = since
        for row in reversed(self._life):
            if row.status not in _STAYS:
                break
            start = row
        step, moment = self._lives.step(self._ordinal), self._reader.moment(self._ordinal)
        size = (
            f"its copies hold {share_of_sent(since.held, step.window)}"
            if since.held
            else "its size is not known"
        )
        text = (
            f"is in the window since turn {_named(self._reader.moment(start.first))}; {size}; "
            f"{_KEEPS.get(step.mode, '')}"
        )
        evidence = self._evidence(self._ordinal)
        yield Link(
            "window", "current", text.rstrip("; "), moment,
            self._rest(evidence.window()) or self._reader.rest_at(since.line),
            {
                "held": since.held or None, **step_sizes(step.window),
                "since_turn": self._reader.moment(start.first).turn,
            },
            "derived",
        )  # fmt: skip
        yield from evidence.injection()
        if step.layer != "injected":
            text = "that the window was sent is not recorded: there is no injection for this step"
            yield Link("injection", "not-recorded", text, moment, None, {}, "derived")

    def measured(self) -> Rest | None:
        """Return the event with the step's figures: its last budget record, else what made its frame."""
        evidence = self._evidence(self._ordinal)
        limits = evidence.limits()
        return self._rest(limits[0] if limits is not None else evidence.window())

    def version(self, wanted: str | None) -> tuple[State, list[Link]]:
        """Return the state of a requested version, and the links to what replaced it."""
        if wanted is None or not self._life or self._state in ("later", "available"):
            return self._state, []
        at: LifeMoment | None = None
        after: tuple[LifeMoment, Item, Event] | None = None
        for row in self._life[-_MAX_VERSIONS:]:
            if row.status not in ("added", "updated"):
                continue
            event = self._reader.at_line(row.line)
            if event is None or not isinstance(event.record, Item):
                continue
            if _is_version(event.record, wanted):
                at, after = row, None
            elif at is not None and after is None:
                after = row, event.record, event
        if at is None:
            text = f"version {wanted} was in no frame so far"
            return "omitted", [Link("window", "never", text, None, None, {"version": wanted}, "derived")]
        if after is None:
            return self._state, []
        row, record, event = after
        text = f"version {wanted} was replaced by version {version_of(record) or '?'}"
        link = Link(
            "window", "superseded", text, self._reader.moment(row.first), self._reader.rest(event),
            {"version": wanted, "by": version_of(record)}, "derived",
        )  # fmt: skip
        return ("stale" if "stale" in self._life[-1].flags else "out"), [link]

    def _derived(
        self, stage: str, verdict: str, text: str, ordinal: int, event: Event | None,
        **numbers: int | float | str | None,
    ) -> Link:  # fmt: skip
        known = {name: value for name, value in numbers.items() if value is not None}
        return Link(stage, verdict, text, self._reader.moment(ordinal), self._rest(event), known, "derived")

    def _on(
        self, event: Event, stage: str, verdict: str, text: str, **numbers: int | float | str | None
    ) -> Link:
        known = {name: value for name, value in numbers.items() if value is not None}
        return Link(stage, verdict, text, self._moment_of(event), self._reader.rest(event), known)

    def _moment_of(self, event: Event) -> Moment | None:
        """Return the thread's step whose lines hold an event."""
        steps = self._reader.steps_of(self._ordinal)
        at = bisect_right(steps, event.line, key=lambda ordinal: self._reader.span(ordinal).line) - 1
        return self._reader.moment(steps[at]) if at >= 0 else None

    def _rest(self, event: Event | None) -> Rest | None:
        return self._reader.rest(event) if event is not None else None


_BY_POLICY: Final = {
    "removed": "was taken out by policy {policy}",
    "omitted": "was left out by policy {policy}",
    "updated": "was changed, cut or replaced by policy {policy}",
}
_BASIS: Final = {
    "assembly": "the recorded assembly", "selection": "the recorded selection",
    "items": "the items recorded so far", "repeat": "nothing new recorded", "policy": "the policy",
    "none": "nothing recorded",
}  # fmt: skip
_KEEPS: Final = {
    "append": "it stays until it changes or the history is cut",
    "window": "nothing recorded has taken it out",
}
_CAUSES: Final = {
    "detached": "left the window: its source was detached",
    "expired": "left the window: it had expired",
    "branched": "left the window: the conversation went on from an earlier point, on another branch",
    "cleared": "left the window: the conversation was cleared",
    "unrecorded": "left the window; nothing recorded says why",
}


def _is_version(record: Item, wanted: str) -> bool:
    version = version_of(record)
    return version == wanted or (len(wanted) >= 4 and version is not None and version.startswith(wanted))


def _named(moment: Moment) -> str:
    return step_name(moment.turn, moment.step)


def _simulated(link: Link) -> Link:
    if link.event is not None and link.provenance == "native":
        return link
    return Link(
        link.stage, link.verdict, link.text, link.at, link.event, link.numbers, provenance="simulated"
    )


def _without_repeats(links: list[Link]) -> list[Link]:
    """Return the sentences without repeats for one event."""
    seen = set[tuple[str, int | None, int | None]]()
    found = []
    for link in links:
        key = (
            link.text, link.event.line if link.event is not None else None,
            link.at.ordinal if link.at is not None and link.event is None else None,
        )  # fmt: skip
        if key not in seen:
            seen.add(key)
            found.append(link)
    return found
