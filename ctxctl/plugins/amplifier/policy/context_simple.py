"""The policy `amplifier`: context-simple's budget, trigger, ladder, memory and notice.

It decides by itself (`Amplifier`), or with the parameters of a recorded compaction (`Told`, and `Followed`
between two records).  No log holds a message as context-simple does: sizes are rebuilt, and a size decides
what goes.  A record says what all messages came to.  Where the rebuilt ones come to the same, to the token,
they are right.  Else the rest is spread over the messages in several ways: what comes of all of them is told,
and where they disagree nobody can tell.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from ctxctl.model.fitting import Candidate, Drop, Fit, Fitter, Keeper, Note, Room, Swap, Verdict
from ctxctl.plugins.amplifier.policy.incremental import Compactor
from ctxctl.plugins.amplifier.policy.ladder import Rules, climb
from ctxctl.plugins.amplifier.policy.messages import (
    NOTICE,
    SHAPES,
    UNRECORDED,
    Memory,
    Message,
    equal,
    is_remnant,
    of_candidates,
    texts,
    total,
)
from ctxctl.plugins.amplifier.policy.notice import BRIEF, notice

COUNTS: Final = (
    "strategy_level", "messages_removed", "messages_truncated", "user_messages_stubbed", "before_messages",
    "after_messages", "budget", "target_tokens",
)  # fmt: skip
_UNKNOWN_THRESHOLD: Final = "the share of the budget from which the runtime acts is in no record"

Weight = Callable[[int, int, Message], float]
"""How much of what is missing a message gets: of its place, the number of all, and itself."""

SPREADS: Final[tuple[Weight, ...]] = (
    lambda at, all_of, message: 1.0,
    lambda at, all_of, message: message.role == "assistant",
    lambda at, all_of, message: message.role == "tool",
    lambda at, all_of, message: message.role == "user",
    lambda at, all_of, message: message.role == "system",
    lambda at, all_of, message: 2 * at < all_of,
    lambda at, all_of, message: 2 * at >= all_of,
)
"""Over which messages what is missing is spread."""
_MORE: Final = "the runtime counted {:,} tokens more than the log's messages have, whose metadata it lacks"
_SIZES: Final = "{:,} of the {:,} tokens that the runtime counted are not in the log, and they decide"
_SETTINGS: Final = "the version and the settings of context-simple are not in the log, and they decide"
_EQUAL: Final = "some messages are equal to the letter, and which of them a request had is not in the log"
_EARLIER: Final = "what an earlier compaction decided cannot be told"
_MARKER: Final = re.compile(r"\[truncated: ~[\d,]+ tokens - call tool again if needed\] ")
_CHARS: Final = (0, 100, 250, 500, 1000, 2000)
"""What may be left of a result, where no view has shown it."""


class Amplifier(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """context-simple of Microsoft's Amplifier: eight levels of cutting, removing and stubbing.

    Rules of the newest version read (d82f5a4, autumn 2026); `sticky=false` is the older one (up to a9828fb,
    April 2026) in all that the two differ in.

    - Budget: window - int(max output x `output_reserve`) - `safety_margin`, less `notice_reserve` for the
      notice; where the budget itself is recorded, or a limit on the prompt is supposed, that. Where the most
      that the model writes is not known, the reserve stands for its share. Never above the cap.
    - Size: a quarter of the characters of each message's printed form; tool definitions and what the loop
      injects are not counted. The policy rebuilds that form from text, role and ids. Metadata that no capture
      holds is missing in it, up to 24 tokens a message: its sizes are close to the runtime's, and not equal.
    - It acts from `threshold` of the budget on, and aims at `target` of it.
    - Levels, until the target is reached: 1 cut the oldest quarter of the tool results, 2 the next quarter;
      3 remove the oldest messages but the last `protected_recent`, then stub user messages; 4 cut up to three
      quarters; 5 remove, sparing six tenths of that share; 6 cut all results but the last
      `protected_tool_results`; 7 remove, sparing three tenths; 8 stub a first message that no person wrote
      (older: any), and drop old stubs.
    - A cut result keeps `truncate_chars` characters behind a marker; a stub keeps fifty.
    - Never removed: system messages, the first and last message of a person (older: the last), user messages
      (stubs at level 8 aside), the last tool results (older: they are only not cut), one half of a tool call.
    - Newer: what was decided stays so, and level and counts are running totals. Older: each request is
      decided from the whole history.
    - Notice: a message of the user at the end; older: of the system, behind the first message.

    Not modelled: the meter by real usage, tool results cut when they are stored, retained injections.
    """

    name = "amplifier"
    early = True
    sticky: Annotated[bool, Meta(description="newer version; false: the older")] = True
    threshold: Annotated[float, Meta(description="share of the budget from which it acts", gt=0, le=1)] = 0.92
    target: Annotated[float, Meta(description="share of the budget to go down to", gt=0, le=1)] = 0.5
    protected_recent: Annotated[float, Meta(description="share of the messages spared", ge=0, le=1)] = 0.3
    protected_tool_results: Annotated[int, Meta(description="last tool results not cut", ge=0)] = 5
    truncate_chars: Annotated[int, Meta(description="characters left of a cut result", ge=0)] = 250
    notice: Annotated[bool, Meta(description="tell the model of a compaction")] = True
    notice_reserve: Annotated[int, Meta(description="tokens kept free for the notice", ge=0)] = 800
    output_reserve: Annotated[float, Meta(description="share of the output kept free", ge=0, le=1)] = 0.5
    max_output: Annotated[int, Meta(description="most that the model writes; 0: as known", ge=0)] = 0
    safety_margin: Annotated[int, Meta(description="tokens kept free besides", ge=0)] = 4096

    def budget(self, room: Room) -> int:
        """What the messages may take."""
        if room.window is None:
            return room.cap
        output = self.max_output or room.max_output
        reserve = int(output * self.output_reserve) if output else room.reserve or 0
        derived = room.window - reserve - self.safety_margin
        if self.notice and derived > self.notice_reserve:
            derived -= self.notice_reserve
        return min(derived, room.cap) if derived > 0 else room.cap

    def fit(self, candidates: Sequence[Candidate], room: Room, state: Any) -> Fit:
        """Linear in the candidates, but for what is measured for the first time."""
        memory: Memory = state if state is not None else Memory(sizes={})
        messages = of_candidates(candidates, memory.sizes)
        budget = self.budget(room)
        size = total(messages)
        if not self.exceeds(size, budget):
            return _untouched(candidates, memory, over=size > budget)
        return self._compacted(candidates, messages, budget, memory)

    def keeper(self) -> Keeper | None:
        """The same from step to step; the older version decides each request from the whole history."""
        return Compactor(self) if self.sticky else None

    def as_told(self, native: Mapping[str, Any], view: Sequence[Candidate] = ()) -> Amplifier | None:
        """This policy with the parameters of a `context:compaction` event; that it acted is one of them.

        What the event does not say shows in the view: whether there is a notice, and of which version; how
        much is left of a result.
        """
        if not isinstance(native.get("strategy_level"), int):
            return None
        budget, aim = native.get("budget"), native.get("target_tokens")
        exact = isinstance(budget, int) and isinstance(aim, int) and budget > 0
        recent, results = native.get("protected_recent"), native.get("protected_tool_results")
        own = msgspec.structs.asdict(self)
        if exact:
            # Half a token more, so that the target comes out whole.
            own["target"] = (aim + 0.5) / budget  # type: ignore[operator]
        if isinstance(recent, float | int):
            own["protected_recent"] = float(recent)
        if isinstance(results, int):
            own["protected_tool_results"] = results
        shown = seen_in(view) if view else {}
        known = own.pop("known", frozenset()).union(shown)
        return Told(**{**own, **shown}, known=known, native=dict(native))

    def between(self, told: Fitter) -> Amplifier:
        """What a record and its view said of the parameters holds until the next one."""
        return Followed(**{name: getattr(told, name) for name in Followed.__struct_fields__})

    def differing(self, told: Mapping[str, int], native: Mapping[str, Any]) -> list[str]:
        """What a `context:compaction` event says otherwise; sizes may be off by what no capture holds.

        What is left is known as well as what there was before: to the token where that is.
        """
        found = [key for key in COUNTS if key in native and native[key] != told.get(key)]
        before, after = native.get("before_tokens"), native.get("after_tokens")
        off = before - told["before_tokens"] if isinstance(before, int) else None
        if off is not None and abs(off) > UNRECORDED * told["before_messages"]:
            found.append("before_tokens")
        messages = told["after_messages"]
        slack = UNRECORDED * messages if off is None else abs(off) + messages * bool(off)
        if isinstance(after, int) and abs(told["after_tokens"] - after) > slack:
            found.append("after_tokens")
        return found

    def exceeds(self, tokens: int, budget: int) -> bool:
        """Whether it acts."""
        return budget > 0 and tokens / budget >= self.threshold

    def _compacted(
        self, candidates: Sequence[Candidate], messages: list[Message], budget: int, memory: Memory
    ) -> Fit:
        system = [message for message in messages if message.role == "system"]
        floor = total(system)
        rest = [message for message in messages if message.role != "system"]
        before = (floor + total(rest), len(messages))
        gone: list[Message] = []
        level = told = doubt = None
        if self.sticky:
            gone, rest = _again(rest, candidates, memory, self.truncate_chars)
        if self.exceeds(floor + total(rest), budget):
            doubt = _UNKNOWN_THRESHOLD if floor + total(rest) < budget else None
            rules = self.ladder(budget)
            made = climb(rest, rules, floor)
            gone, rest = gone + made.removed, made.kept
            counts = (made.level, len(made.removed), made.truncated, made.stubbed)
            if self.sticky:
                memory = _remembered(memory, candidates, gone, rest, made.level)
                counts = (memory.level, len(memory.removed), len(memory.truncated), len(memory.stubbed))
            after = (floor + total(rest), len(system) + len(rest))
            told = self.telling(counts, before, after, (budget, rules.target))
            level = counts[0]
            memory = memory._replace(told=told)
        over = floor + total(rest) > budget
        verdict: Verdict = "still_over" if over else "fitted"
        drops = [Drop(at, "budget_limit") for message in gone for at in message.of]
        swaps = [Swap(m.of[0], m.said) for m in rest if m.said is not None]
        notes = self._notice(candidates, [*system, *rest], memory.told, drops, swaps)
        return Fit(verdict, tuple(sorted(drops)), (), tuple(sorted(swaps)), notes, level, memory, told, doubt)

    def _notice(
        self,
        candidates: Sequence[Candidate],
        view: list[Message],
        told: Mapping[str, int] | None,
        drops: list[Drop],
        swaps: list[Swap],
    ) -> tuple[Note, ...]:
        """The policy's own notice: where the runtime has its own, in that one's place."""
        text = self.telling_text(told) if told is not None and not (self.sticky and _waits(view)) else None
        role = "user" if self.sticky else "system"
        for at, candidate in enumerate(candidates):
            if candidate.item != NOTICE:
                continue
            fate = self.noticed(candidate, text)
            if isinstance(fate, Drop):
                drops.append(fate._replace(at=at))
                continue
            if fate is not None:
                swaps.append(fate._replace(at=at))
            text = None
        if text is None:
            return ()
        behind = [at for message in (view if self.sticky else view[:1]) for at in message.of]
        return (Note(max(behind, default=-1) + 1, text, role=role, kind="policy_note"),)

    def ladder(self, budget: int) -> Rules:
        """What the ladder is climbed under."""
        aim = int(budget * self.target)
        recent, results = self.protected_recent, self.protected_tool_results
        return Rules(aim, recent, results, self.truncate_chars, not self.sticky)

    def telling(
        self,
        counts: tuple[int, int, int, int],
        before: tuple[int, int],
        after: tuple[int, int],
        sizes: tuple[int, int],
    ) -> dict[str, int]:
        """What is recorded of a compaction.

        Args:
            counts: Level, messages removed, cut and stubbed.
            before: Tokens and messages.
            after: The same.
            sizes: Budget and target.
        """
        told = dict(zip(COUNTS[:4], counts, strict=True))
        told |= {"before_tokens": before[0], "before_messages": before[1]}
        told |= {"after_tokens": after[0], "after_messages": after[1]}
        return told | {"budget": sizes[0], "target_tokens": sizes[1]}

    def telling_text(self, told: Mapping[str, int]) -> str | None:
        """The notice of a compaction; None: it gives none."""
        if not self.notice:
            return None
        spared = {"recent": self.protected_recent, "results": self.protected_tool_results}
        return notice(self._stated(told), **spared, older=not self.sticky)  # type: ignore[arg-type]

    def noticed(self, candidate: Candidate, text: str | None) -> Drop | Swap | None:
        """What becomes of the runtime's own notice where the policy's is `text`."""
        if text is None or candidate.role != ("user" if self.sticky else "system"):
            return Drop(0, "stale")
        shown = candidate.read() or ""
        if shown.strip() in (text, BRIEF):
            return None
        return Swap(0, shown[: len(shown) - len(shown.lstrip())] + text, "stale")

    def _stated(self, told: Mapping[str, int]) -> Mapping[str, int]:
        return told


def _untouched(candidates: Sequence[Candidate], memory: Memory, *, over: bool) -> Fit:
    """Nothing is done, but that a notice of the runtime's tells of what was not done here.

    `over`: there is no budget to act on, and all the same too much.
    """
    stale = tuple(Drop(at, "stale") for at, c in enumerate(candidates) if c.item == NOTICE)
    return Fit("still_over" if over else "fitted" if stale else "fits", stale, state=memory)


def _name(message: Message, candidates: Sequence[Candidate]) -> str:
    return candidates[message.of[0]].name


def _again(
    messages: list[Message], candidates: Sequence[Candidate], memory: Memory, chars: int
) -> tuple[list[Message], list[Message]]:
    """What was decided before, once more: what is gone, and what is left."""
    gone, left = [], []
    for message in messages:
        name = _name(message, candidates)
        if name in memory.removed:
            gone.append(message)
            continue
        if name in memory.truncated:
            message.truncate(chars)
            message.state = "truncated"
        elif name in memory.stubbed:
            message.stub()
        left.append(message)
    return gone, left


def _remembered(
    memory: Memory, candidates: Sequence[Candidate], gone: list[Message], left: list[Message], level: int
) -> Memory:
    removed = memory.removed.union(_name(message, candidates) for message in gone)
    states: dict[str, set[str]] = {"truncated": set(), "stubbed": set()}
    for message in left:
        if message.state:
            states[message.state].add(_name(message, candidates))
    return memory._replace(
        removed=removed,
        truncated=memory.truncated.union(states["truncated"]) - removed,
        stubbed=memory.stubbed.union(states["stubbed"]) - removed,
        level=max(memory.level, level),
    )


def _waits(view: list[Message]) -> bool:
    """Whether calls at the end have no result yet: a notice would stand between the two."""
    answered = {message.answers for message in view if message.answers is not None}
    for message in reversed(view):
        if message.role != "tool":
            return any(call not in answered for call in message.calls)
    return False


def seen_in(view: Sequence[Candidate]) -> dict[str, Any]:
    """Parameters that no record names, as far as what was sent shows them."""
    own = next((candidate for candidate in view if candidate.item == NOTICE), None)
    found: dict[str, Any] = {"notice": own is not None}
    if own is not None and own.role in ("system", "user"):
        found["sticky"] = own.role == "user"
    for candidate in view:
        text = (candidate.read() or "") if candidate.kind == "tool_result" else ""
        match = _MARKER.match(text)
        if match is not None and text.endswith("..."):
            found["truncate_chars"] = len(text) - match.end() - len("...")
    return found


class Followed(Amplifier, frozen=True, kw_only=True):
    """With parameters of the session that it is held against, between two of its records."""

    known: frozenset[str] = frozenset()
    """Of those that no record names, the ones that a view has shown."""


class Told(Followed, frozen=True, kw_only=True):
    """As a runtime's record has it: that it acted, and the sizes that its notice states."""

    native: dict[str, Any]

    def budget(self, room: Room) -> int:
        """What it says it kept to."""
        told = self.native.get("budget")
        return told if isinstance(told, int) and told > 0 else super().budget(room)

    def exceeds(self, tokens: int, budget: int) -> bool:
        """It acted, by its own count."""
        return True

    def fit(self, candidates: Sequence[Candidate], room: Room, state: Any) -> Fit:
        """What the record ought to say, and why nobody can tell where that is so."""
        memory: Memory = state if state is not None else Memory(sizes={})
        before = self.native.get("before_tokens")
        sizes = {shape: total(of_candidates(candidates, memory.sizes, shape)) for shape in SHAPES}
        shape, missing = SHAPES[0], 0
        if isinstance(before, int):
            shape = min(SHAPES, key=lambda one: abs(sizes[one] - before))
            missing = before - sizes[shape]
        held = len(of_candidates(candidates, memory.sizes))
        sure = sum(len(text) // 4 for text in texts(candidates))
        doubt = self._lacking(candidates, held) or memory.doubt
        spreads: tuple[Weight | None, ...] = (None,)
        if missing > UNRECORDED * held:
            doubt = doubt or _MORE.format(missing)
        elif missing and sizes[shape] + missing >= sure:
            spreads = (None, *SPREADS)
        fits: list[Fit] = []
        for policy in self._alike():
            for weight in spreads:
                messages = of_candidates(candidates, memory.sizes, shape)
                if weight is not None:
                    spread(messages, missing, weight)
                made = policy._compacted(candidates, messages, policy.budget(room), memory)
                fits.append(made._replace(told={**(made.told or {}), "before_tokens": sizes[shape]}))
        fit = self._nearest(fits)
        if len({_done(one) for one in fits}) > 1:
            doubt = doubt or (_SIZES.format(abs(missing), before) if len(spreads) > 1 else _SETTINGS)
        if doubt is not None and self.sticky and fit.state is not None:
            fit = fit._replace(state=fit.state._replace(doubt=_EARLIER))
        return fit._replace(doubt=doubt)

    def _alike(self) -> Iterator[Told]:
        """This policy, and the same with other values of what nobody knows."""
        versions = (self.sticky,) if "sticky" in self.known else (self.sticky, not self.sticky)
        chars = (self.truncate_chars,) if "truncate_chars" in self.known else (self.truncate_chars, *_CHARS)
        for sticky in versions:
            for most in dict.fromkeys(chars):
                yield msgspec.structs.replace(self, sticky=sticky, truncate_chars=most)

    def _lacking(self, candidates: Sequence[Candidate], held: int) -> str | None:
        """What of the history the log does not hold."""
        recorded = self.native.get("before_messages")
        if isinstance(recorded, int) and recorded != held:
            return f"the log has {held:,} messages where the runtime compacted {recorded:,}"
        cut = sum(map(is_remnant, candidates))
        if not cut:
            return _EQUAL if equal(candidates) else None
        were = "1 message was before it was" if cut == 1 else f"{cut:,} messages were before they were"
        return f"what {were} cut is not in the log"

    def _nearest(self, fits: Sequence[Fit]) -> Fit:
        """The one that says what the record does, else the first."""
        agreeing = [fit for fit in fits if self._counts_are(fit.told or {})]
        return min(agreeing, key=self._off) if agreeing else fits[0]

    def _counts_are(self, told: Mapping[str, int]) -> bool:
        return all(self.native[name] == told.get(name) for name in COUNTS if name in self.native)

    def _off(self, fit: Fit) -> int:
        after = self.native.get("after_tokens")
        return abs((fit.told or {}).get("after_tokens", 0) - after) if isinstance(after, int) else 0

    def _stated(self, told: Mapping[str, int]) -> Mapping[str, int]:
        sizes = ("before_tokens", "after_tokens")
        return {
            **told,
            **{name: self.native[name] for name in sizes if isinstance(self.native.get(name), int)},
        }


def _done(fit: Fit) -> tuple[Any, ...]:
    """What comes of a fit, sizes aside."""
    told = fit.told or {}
    counts = tuple(told.get(name) for name in COUNTS)
    return counts, tuple(d.at for d in fit.drops), tuple((s.at, s.text) for s in fit.swaps)


def spread(messages: list[Message], missing: int, weight: Weight) -> None:
    """Make the messages `missing` tokens larger (or smaller) altogether; changes them."""
    weights = [float(weight(at, len(messages), message)) for at, message in enumerate(messages)]
    whole = sum(weights)
    done = used = 0.0
    for message, share in zip(messages, weights, strict=True):
        used += share
        now = round(missing * used / whole) if whole else 0
        message.chars = max(0, message.chars + 4 * int(now - done))
        done = now
