"""context-simple's eight levels: what each cuts, removes or stubs, and where it stops.

Two versions differ in what they hold against the target and in what they spare; `Rules.older` says which.
The older one (up to spring 2026) forgets the system prompt once it has cut or removed something, so that it
stops early; its last user message is the last of that role.  The newer one counts the system prompt
throughout, spares the first and last message of a person and the last tool results from removal, and never
removes a call that has no result yet.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from ctxctl.plugins.amplifier.policy.messages import STUB, Message, total

_STUB_TOKENS = (STUB + 2) // 4
"""What context-simple takes a stub to be."""


class Rules(NamedTuple):
    """What the ladder is climbed under."""

    target: int
    recent: float = 0.3
    """Share of the messages, from the end, that level 3 spares; level 5 six tenths of it, level 7 three."""
    results: int = 5
    """Last tool results that are not cut."""
    chars: int = 250
    """Characters of a result that stay."""
    older: bool = False


class Climb(NamedTuple):
    """How far it went; the messages are changed in place."""

    level: int
    kept: list[Message]
    """Without the system prompt."""
    removed: list[Message]
    truncated: int
    """As context-simple counts them: also those that were too short to be cut."""
    stubbed: int


def climb(messages: Sequence[Message], rules: Rules, used: int) -> Climb:
    """Go up until no more than the target is used.

    Args:
        messages: Without system messages, oldest first; changed in place.
        rules: What to go by.
        used: Tokens of the system messages.
    """
    return _Ladder(list(messages), rules, used).run()


class _Ladder:
    def __init__(self, messages: list[Message], rules: Rules, system: int) -> None:
        self.messages = messages
        self.rules = rules
        self.floor = 0 if rules.older else system
        """What is added to the messages' sizes wherever they are held against the target."""
        self.now = system + total(messages)
        self.removed: list[Message] = []
        self.truncated = self.stubbed = 0

    def run(self) -> Climb:
        """Level by level."""
        recent = self.rules.recent
        acts: tuple[Callable[[], None], ...] = (
            partial(self.cut, 0.0, 0.25),
            partial(self.cut, 0.25, 0.5),
            partial(self.remove, recent),
            partial(self.cut, 0.5, 0.75),
            partial(self.remove, recent * 0.6),
            partial(self.cut, 0.0, 1.0),
            partial(self.remove, recent * 0.3),
            partial(self.last_resort, recent * 0.3),
        )
        level = 0
        for act in acts:
            level += 1
            act()
            if self.now <= self.rules.target:
                break
        return Climb(level, self.messages, self.removed, self.truncated, self.stubbed)

    # -- tool results ------------------------------------------------------------------------------------

    def results(self) -> list[int]:
        """Where the tool results are."""
        return [at for at, message in enumerate(self.messages) if message.role == "tool"]

    def spared(self, results: list[int]) -> set[int]:
        """The last of them; the older version spares all where none is to be spared."""
        if self.rules.results <= 0:
            return set(results) if self.rules.older else set()
        return set(results[-self.rules.results :])

    def cut(self, start: float, end: float) -> None:
        """Truncate a stretch of the tool results, the oldest first."""
        found = self.results()
        spared = self.spared(found)
        whole = total(self.messages) + self.floor
        for at in found[int(len(found) * start) : int(len(found) * end)]:
            if self.now <= self.rules.target:
                return
            message = self.messages[at]
            if at in spared or message.state == "truncated":
                continue
            whole -= message.size
            message.truncate(self.rules.chars)
            whole += message.size
            self.truncated += 1
            self.now = whole

    # -- removal -----------------------------------------------------------------------------------------

    def remove(self, recent: float) -> None:
        """Take out the oldest that may go, then stub what a user said in between."""
        first, last = self.bounds()
        kept = {at for at in (last, None if self.rules.older else first) if at is not None}
        kept.update(range(int(len(self.messages) * (1 - recent)), len(self.messages)))
        if not self.rules.older:
            kept |= self.spared(self.results())
        now = total(self.messages) + self.floor
        answers = self.answers()
        gone: set[int] = set()
        for at, message in enumerate(self.messages):
            if now <= self.rules.target:
                break
            if at in gone or at in kept or message.role == "user":
                continue
            for other in self.unit(at, kept, answers):
                if other not in gone:
                    gone.add(other)
                    now -= self.messages[other].size
        for at, message in enumerate(self.messages):
            if now <= self.rules.target:
                break
            if message.role == "user" and at not in kept and at not in (first, last):
                now -= self.stub(message)
        self.removed += [self.messages[at] for at in sorted(gone)]
        self.messages = [message for at, message in enumerate(self.messages) if at not in gone]
        self.now = total(self.messages) + self.floor

    def stub(self, message: Message) -> int:
        """Stub a message that is not one yet; what that is thought to save."""
        saving = message.saving if message.state != "stubbed" else None
        if saving is None:
            return 0
        message.stub()
        self.stubbed += 1
        return saving

    def bounds(self) -> tuple[int | None, int | None]:
        """First and last message of a person; the older version takes every one of the role user for it."""
        found = [
            at
            for at, message in enumerate(self.messages)
            if (message.role == "user" if self.rules.older else message.human)
        ]
        return (found[0], found[-1]) if found else (None, None)

    def answers(self) -> dict[str, list[int]]:
        """Where the results of each call are."""
        found: dict[str, list[int]] = {}
        for at, message in enumerate(self.messages):
            if message.answers is not None:
                found.setdefault(message.answers, []).append(at)
        return found

    def unit(self, at: int, kept: set[int], answers: dict[str, list[int]]) -> list[int]:
        """What goes with a message: a call with all of its results; nothing if a part of it must stay."""
        message = self.messages[at]
        if message.role == "tool":
            caller = self.caller(at)
            if caller is None or caller in kept:
                return []
            return self.unit(caller, kept, answers)
        if not message.calls:
            return [at]
        found = [at]
        for call in message.calls:
            results = answers.get(call, [])
            if not kept.isdisjoint(results) or not (results or self.rules.older):
                return []
            found += results
        return found

    def caller(self, at: int) -> int | None:
        """The answer that a result belongs to: the one before it, with other results between at most."""
        for before in range(at - 1, -1, -1):
            if self.messages[before].calls:
                return before
            if self.messages[before].role != "tool":
                return None
        return None

    # -- the last level ----------------------------------------------------------------------------------

    def last_resort(self, recent: float) -> None:
        """Stub the first message of the role user, then let old stubs go."""
        users = [at for at, message in enumerate(self.messages) if message.role == "user"]
        if len(users) > 1:
            first = self.messages[users[0]]
            if self.rules.older or not first.human:
                self.now -= self.stub(first)
        gone: set[int] = set()
        for at in users[:-1]:
            old = at < int(len(self.messages) * (1 - recent))
            if self.now > self.rules.target and old and self.messages[at].state == "stubbed":
                gone.add(at)
                self.now -= _STUB_TOKENS
        self.removed += [self.messages[at] for at in sorted(gone)]
        self.messages = [message for at, message in enumerate(self.messages) if at not in gone]
