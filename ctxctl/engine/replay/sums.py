"""Sums of steps: a turn with its changes since the previous turn, and the totals of a replay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxctl.engine.replay.changes import UNRECORDED, Cause, ChangeContext, NamedItem, changes_of
from ctxctl.engine.replay.frames import delta_of
from ctxctl.engine.replay.step_tracker import ThreadKey
from ctxctl.engine.replay.thread import SealedStep, ThreadState
from ctxctl.model.content import Content
from ctxctl.model.records import Fidelity
from ctxctl.model.results import Counts, Ledger, Placement, Step, Summary, Turn
from ctxctl.prompt_words import LOOKED_AT, own_prompt, title_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from ctxctl.engine.replay.rules import ReplayRules

_EARLIER = frozenset(("thread_summary", "assistant_message", "reasoning", "tool_call", "tool_result"))
_NOTE_TAGS = ("<local-command-", "<command-name>", "<command-message>", "<bash-")


class RunningTotals:
    """Totals of all steps so far."""

    def __init__(self) -> None:
        self.events = 0
        self.steps = 0
        self.turns = 0
        self.new = 0
        self.freed = 0
        self.reweighed = 0
        self.fidelity: tuple[Fidelity, ...] = ()
        """Fidelity records of imports, in line order."""
        self._counts = [0, 0, 0, 0, 0]
        self._last: dict[ThreadKey, dict[str, int]] = {}
        """The last window's tokens by counting method, by thread."""

    def copy(self) -> RunningTotals:
        """Return an independent copy, for a snapshot of a replay."""
        twin = RunningTotals()
        twin.__dict__.update(self.__dict__)
        twin._counts = list(self._counts)
        twin._last = dict(self._last)
        return twin

    def add(self, step: Step) -> None:
        """Add a finished step."""
        self.steps += 1
        self.new += step.ledger.new
        self.freed += step.ledger.freed
        self.reweighed += step.ledger.reweighed
        counts = step.counts
        sums = self._counts
        sums[0] += counts.added
        sums[1] += counts.updated
        sums[2] += counts.removed
        sums[3] += counts.skipped
        sums[4] += counts.omitted
        self._last[ThreadKey(step.session, step.thread)] = step.window.by_method

    def summary(self, *, problems: int, unique_contents: int) -> Summary:
        """Return the totals as a value."""
        added, updated, removed, skipped, omitted = self._counts
        by_method: dict[str, int] = {}
        for window in self._last.values():
            for method, tokens in window.items():
                by_method[method] = by_method.get(method, 0) + tokens
        return Summary(
            sessions=len({key.session for key in self._last}),
            threads=len(self._last),
            turns=self.turns,
            steps=self.steps,
            events=self.events,
            problems=problems,
            new=self.new,
            freed=self.freed,
            counts=Counts(added, updated, removed, skipped, omitted),
            unique_contents=unique_contents,
            by_method=by_method,
            fidelity=self.fidelity,
            reweighed=self.reweighed,
        )


class TurnState:
    """The open turn of one thread."""

    def __init__(self, thread: ThreadState, step: Step) -> None:
        sealed = thread.sealed
        assert sealed is not None
        self.number = step.turn
        self.before: list[Placement] = sealed.before.placements
        self.window_before = step.ledger.window_before
        self.was: dict[str, int] = {}
        """Current copies, at the turn's start, of the items that its steps changed."""
        self.causes: dict[str, Cause] = {}
        """The cause of each item that left during the turn and has not come back."""
        self.named: dict[str, NamedItem] = {}
        self.truncated: frozenset[str] = frozenset()
        self.rescored: frozenset[str] = frozenset()
        self.simulated = False
        self.steps = 0
        self.new = 0
        self.freed = 0
        self.reweighed = 0
        self.saved: int | None = None
        self.last: Step = step
        self.flags: dict[str, None] = {}
        self.title: str | Content | None = None
        """The prompt, or its name if the trace lacks its text."""

    def copy(self) -> TurnState:
        """Return an independent copy, for a snapshot of a replay."""
        twin = TurnState.__new__(TurnState)
        twin.__dict__.update(self.__dict__)
        twin.was = dict(self.was)
        twin.causes = dict(self.causes)
        twin.named = dict(self.named)
        twin.flags = dict(self.flags)
        return twin

    def add(self, thread: ThreadState, step: Step) -> None:
        """Add the thread's last closed step."""
        sealed = thread.sealed
        assert sealed is not None
        self.steps += 1
        self.last = step
        self.new += step.ledger.new
        self.freed += step.ledger.freed
        self.reweighed += step.ledger.reweighed
        if step.ledger.saved is not None:
            self.saved = (self.saved or 0) + step.ledger.saved
        for item, copies in sealed.was.items():
            self.was.setdefault(item, copies)
        context = sealed.context
        for named in context.named:
            self.named.setdefault(named.item, named)
        # Most steps cut nothing or repeat the first cut. Avoid copying an unchanged value.
        if self.truncated is not context.truncated:
            self.truncated = self.truncated | context.truncated if self.truncated else context.truncated
        self.rescored |= context.rescored
        self.simulated = self.simulated or context.simulated
        for change in step.changes:
            if change.status == "removed":
                simulated = change.provenance == "simulated"
                self.causes[change.item] = Cause(change.cause, change.reason, change.into, simulated)
            elif self.causes and change.status != "omitted":
                self.causes.pop(change.item, None)
        self.flags.update(dict.fromkeys(step.flags))
        if self.title is None:
            self.title = _title(sealed, thread.placer.text)

    def finish(self, thread: ThreadState, rules: ReplayRules) -> Turn:
        """Return the turn's value."""
        last = self.last
        if self.steps == 1:
            counts, changes = last.counts, last.changes
        else:
            after = thread.frame
            context = ChangeContext(
                self._cause_of, self.truncated, self.rescored, tuple(self.named.values()), self.simulated
            )
            delta = delta_of(self.before, after.placements)
            was = dict(self.was)
            result = changes_of(self.before, was, after, delta, context, list_skipped=rules.list_skipped)
            counts, changes = result.counts, result.changes
        ledger = last.ledger
        return Turn(
            session=thread.key.session,
            thread=thread.key.thread,
            turn=last.turn,
            turn_id=last.turn_id,
            target=rules.target,
            steps=self.steps,
            ledger=Ledger(
                self.window_before, self.new, self.freed, ledger.window_after, self.saved,
                ledger.stale, ledger.uncounted, self.reweighed,
            ),
            counts=counts,
            changes=changes,
            flags=tuple(self.flags),
            title=self._shown(thread, rules),
        )  # fmt: skip

    def _shown(self, thread: ThreadState, rules: ReplayRules) -> str | None:
        if not isinstance(self.title, Content):
            return self.title
        return title_of((rules.read or thread.placer.text)(self.title))

    def _cause_of(self, item: str) -> Cause:
        return self.causes.get(item, UNRECORDED)


def _title(sealed: SealedStep, read: Callable[[Content], str]) -> str | Content | None:
    """Return the prompt among the added items: the first that is not a client's own note, if any.

    With a summary, earlier messages and a runtime's notes on its own command enter again. Then it is the
    first user message after the last of them.
    """
    added = {change.item for change in sealed.changes.changes if change.status == "added"}
    inserted = sealed.delta.inserted
    prompts = [one for one in inserted if one.kind == "user_message" and one.item in added]
    if any(one.kind == "thread_summary" for one in inserted):
        last = max(at for at, one in enumerate(inserted) if one.kind in _EARLIER)
        behind = [one for one in inserted[last + 1 :] if one.kind == "user_message" and one.item in added]
        own = (one for one in behind[:LOOKED_AT] if one.content is None or not _of_command(read(one.content)))
        prompts = [one for one in (next(own, None),) if one is not None] or behind or prompts
    if not prompts:
        return None
    prompt = own_prompt(prompts, lambda one: None if one.content is None else read(one.content))
    return prompt.title if prompt.content is None else prompt.content


def _of_command(text: str) -> bool:
    """Return whether a message is empty or a runtime's note on its own command (Claude Code's `/compact`)."""
    return not text.strip() or text.lstrip().startswith(_NOTE_TAGS)
