"""What a compaction took out of a window, and what of it is handed on: in its summary, or met again later.

Four things can be looked for word for word: paths and commands of tool calls, figures and the user's own
messages, and open tasks of a list that a tool keeps.  What is said in other words is not found, so `NOWHERE`
means that the words stand nowhere, and not that the matter is forgotten.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from ctxctl.analysis.compacting import Compacting, compacting
from ctxctl.analysis.turn_sums import ThreadName
from ctxctl.engine.replay.frames import entered_between
from ctxctl.item_names import is_rooted
from ctxctl.model.results import Placement, Step
from ctxctl.session.item_words import directory_of

if TYPE_CHECKING:
    from ctxctl.engine.replay.cursor import StepAt
    from ctxctl.session.facade import Inspector, Progress

KINDS: Final = ("path", "command", "task", "figure", "message")
"""What is looked for, in the order in which it is told."""
SUMMARY: Final = "summary"
"""It stands in the summary."""
LATER: Final = "later"
"""It does not, but in an item that came after it."""
NOWHERE: Final = "nowhere"
"""Its words stand in neither."""
UNKNOWN: Final = "unknown"
"""The text of the summary, or of a part of it, is not recorded, and its words stand in nothing later."""

_MOST_TEXT: Final = 1 << 20
"""Characters of one text that are looked at."""
_PATH: Final = re.compile(
    r"(?<![\w:/.@+\\-])(?:~|\.{1,2}|[A-Za-z]:)?(?:[/\\][\w.@+-]+|[\w.@+-]+[/\\][\w.@+-]+)(?:[/\\][\w.@+-]+)*"
)
_NAME: Final = re.compile(r"[\w@+-][\w.@+-]*\.[A-Za-z]\w{0,7}")
_FIGURE: Final = re.compile(r"(?<![\w.,/\\-])\d[\d,]*(?:\.\d+)?%?(?![\w/\\-])")
_LEAST_DIGITS: Final = 3
_MOST_FACTS: Final = 500
"""Facts of one kind that are looked for, those with the most mentions; how many more there are is told."""
_COMMANDS: Final = ("command", "cmd", "script")
_PATH_KEYS: Final = re.compile(
    r"(?:^|_)(?:path|file|filename|dir|directory|notebook)s?(?:_path)?$", re.IGNORECASE
)
_OPEN: Final = frozenset(
    {"pending", "in_progress", "in-progress", "open", "todo", "not_started", "not-started"}
)
_TASK_KEYS: Final = ("content", "step", "title", "task", "text")
_MESSAGE: Final = 80
"""Characters of a message that must stand somewhere for it to be found."""
_DEEP: Final = 40


class Fact(NamedTuple):
    """One thing that can be looked for."""

    kind: str
    text: str


@dataclass
class Handed:
    """One fact of what was taken, and where it stands now."""

    fact: Fact
    mentions: int
    """Items of those taken that hold it."""
    where: str = NOWHERE
    turn: int | None = None
    step: int | None = None
    """The first step whose new items hold it again, where it is `LATER`."""


@dataclass
class Compaction:
    """One compaction, and what became of what it took."""

    session: str | None
    thread: str
    taken: Compacting
    summary: tuple[str, ...]
    """Ids of the summary's items; empty where none is recorded."""
    summary_tokens: int
    unread: int
    """Items taken of which the trace has no text: what they held is not known."""
    is_summary_read: bool = True
    """The trace has the whole text of the summary, if there is one."""
    facts: list[Handed] = field(default_factory=list)
    """By kind, those with the most mentions first."""
    unsought: dict[str, int] = field(default_factory=dict)
    """By kind, how many more were not looked for, because there are too many."""

    @property
    def turn(self) -> int:
        """Its turn, from 1."""
        return self.taken.turn

    @property
    def step(self) -> int:
        """Its step in the turn, from 1."""
        return self.taken.step

    def of(self, kind: str, where: str | None = None) -> list[Handed]:
        """The facts of a kind, or those of it that stand in one place."""
        return [one for one in self.facts if one.fact.kind == kind and where in (None, one.where)]


def compactions(
    inspector: Inspector, progress: Progress | None = None, see: Callable[[StepAt], None] | None = None
) -> list[Compaction]:
    """All compactions of a trace, in the order of their steps.  Reads each step once, and once the texts of
    what was taken and of what came into those threads afterwards.  `see` is shown each step.
    """
    reader = _Reader(inspector)
    for at in inspector.steps(progress):
        reader.step(at.step, at.placements)
        if see is not None:
            see(at)
    return reader.found


class _Reader:
    """Follows the threads of a trace from compaction to compaction."""

    def __init__(self, inspector: Inspector) -> None:
        self.found: list[Compaction] = []
        self._inspector = inspector
        self._before: dict[ThreadName, list[Placement]] = {}
        self._open: dict[ThreadName, dict[Fact, list[Handed]]] = {}
        """By thread, what was taken and stands nowhere so far."""
        self._directory = (directory_of(inspector) or "").rstrip("/\\")

    def step(self, step: Step, placements: list[Placement]) -> None:
        key = (step.session, step.thread)
        before = self._before.get(key, [])
        self._before[key] = placements
        compacted = "compacted" in step.flags or bool(step.annotations.compactions)
        if not compacted and not self._open.get(key):
            return
        entered = {change.item for change in step.changes if change.status in ("added", "updated")}
        came = entered_between(before, placements) if entered else []
        fresh = [p for p in came if p.item in entered and not p.stale]
        self._meet(key, step, fresh)
        if compacted:
            # An item that was removed stands nowhere any more: not in what both windows begin and end with.
            self._compacted(key, step, entered_between(placements, before), fresh)

    def _meet(self, key: ThreadName, step: Step, fresh: Iterable[Placement]) -> None:
        """Take what new items hold off the list of what stands nowhere."""
        left = self._open.get(key)
        if not left:
            return
        for placement in fresh:
            for fact in set(facts_of(placement.kind, self._text(placement) or "")):
                for one in (*left.pop(fact, ()), *left.pop(self._rooted(fact), ())):
                    one.where, one.turn, one.step = LATER, step.turn, step.step

    def _compacted(self, key: ThreadName, step: Step, left: list[Placement], fresh: list[Placement]) -> None:
        taken = compacting(step)
        gone = {c.item for c in step.changes if c.status == "removed" and c.cause == "compacted"}
        into = {c.into for c in step.changes if c.into}
        into |= {one.summary.partition("@")[0] for one in step.annotations.compactions if one.summary}
        said = [p for p in fresh if p.item in into] or [p for p in fresh if p.kind == "thread_summary"]
        counts, unread = self._held([p for p in left if p.item in gone and not p.stale])
        found = Compaction(
            step.session, step.thread, taken, tuple(dict.fromkeys(p.item for p in said)),
            sum(p.tokens for p in said), unread, not any(self._text(p) is None for p in said),
        )  # fmt: skip
        summary = Text("\n".join(self._text(p) or "" for p in said))
        rest = [p for p in fresh if p not in said]
        met = {fact for p in rest for fact in facts_of(p.kind, self._text(p) or "")}
        met |= {self._rooted(fact) for fact in met}
        names = _unique_names(counts)
        nowhere = self._open.setdefault(key, {})
        sought: dict[str, int] = {}
        for fact, mentions in sorted(counts.items(), key=_rank):
            sought[fact.kind] = sought.get(fact.kind, 0) + 1
            if sought[fact.kind] > _MOST_FACTS:
                found.unsought[fact.kind] = found.unsought.get(fact.kind, 0) + 1
                continue
            one = Handed(fact, mentions)
            if said and summary.holds(fact, names):
                one.where = SUMMARY
            elif fact in met:
                one.where, one.turn, one.step = LATER, step.turn, step.step
            else:
                one.where = NOWHERE if found.is_summary_read else UNKNOWN
                nowhere.setdefault(fact, []).append(one)
            found.facts.append(one)
        self.found.append(found)

    def _held(self, taken: list[Placement]) -> tuple[dict[Fact, int], int]:
        """The facts of what was taken with the number of items that hold each, and how many have no text.

        Of lists of tasks only the last one says what is open.
        """
        counts: dict[Fact, int] = {}
        unread, tasks = 0, set[Fact]()
        for placement in taken:
            text = self._text(placement)
            if text is None:
                unread += 1
                continue
            facts = set(facts_of(placement.kind, text))
            listed = {fact for fact in facts if fact.kind == "task"}
            if listed or (placement.kind == "tool_call" and _has_list(text)):
                tasks = listed
            for fact in facts - listed:
                counts[fact] = counts.get(fact, 0) + 1
        for fact in [one for one in counts if self._rooted(one) != one and self._rooted(one) in counts]:
            counts[self._rooted(fact)] += counts.pop(fact)  # one file, called in two ways
        return counts | dict.fromkeys(tasks, 1), unread

    def _rooted(self, fact: Fact) -> Fact:
        """A path with the session's directory before it, where it has no root of its own."""
        path = fact.text.removeprefix("./")
        if fact.kind != "path" or not self._directory or is_rooted(path):
            return fact
        return Fact("path", f"{self._directory}/{path}")

    def _text(self, placement: Placement) -> str | None:
        return None if placement.content is None else self._inspector.text(placement.content)


def _rank(row: tuple[Fact, int]) -> tuple[int, int, str]:
    fact, mentions = row
    return KINDS.index(fact.kind), -mentions, fact.text


class Text:
    """A summary, in which facts are looked for."""

    def __init__(self, text: str) -> None:
        self._text = text = text[:_MOST_TEXT]
        self._plain = " ".join(text.split())
        self._figures = {_plain_figure(found) for found in _FIGURE.findall(text)}

    def holds(self, fact: Fact, names: frozenset[str]) -> bool:
        """Whether it says a fact word for word.

        A path counts also by its last two parts, or by its file name if that is one of `names`.
        """
        if fact.kind == "figure":
            return fact.text in self._figures
        if fact.kind != "path":
            return " ".join(fact.text.split()) in self._plain
        parts = re.split(r"[/\\]", fact.text)
        said = [fact.text, "/".join(parts[-2:]) if len(parts) > 2 else "", parts[-1]]
        return any(_stands_in(word, self._text) for word in said[:2] if word) or (
            parts[-1] in names and _stands_in(parts[-1], self._text)
        )


def _stands_in(word: str, text: str) -> bool:
    """Whether a word stands in a text and not as a part of a longer name."""
    at = text.find(word)
    while at >= 0:
        after = text[at + len(word) : at + len(word) + 2]
        before = text[at - 1 : at]
        cut = after[:1].isalnum() or after[:1] in "_-" or (after[:1] == "." and after[1:].isalnum())
        if not cut and not (before.isalnum() or before in ("_", "-", ".")):
            return True
        at = text.find(word, at + 1)
    return False


def _unique_names(counts: Iterable[Fact]) -> frozenset[str]:
    """File names that only one of the paths has."""
    seen: dict[str, int] = {}
    for fact in counts:
        if fact.kind == "path":
            name = re.split(r"[/\\]", fact.text)[-1]
            seen[name] = seen.get(name, 0) + 1
    return frozenset(name for name, times in seen.items() if times == 1 and _NAME.fullmatch(name))


def facts_of(kind: str, text: str) -> Iterator[Fact]:
    """What of one item can be looked for: of calls and of messages; results repeat what others hold.

    Args:
        kind: The item's kind.
        text: Its text as it was sent.
    """
    text = text[:_MOST_TEXT]
    if kind == "tool_call":
        yield from _of_call(_arguments(text))
    elif kind in ("user_message", "assistant_message"):
        yield from (Fact("path", path) for path in _paths(text))
        for found in _FIGURE.findall(text):
            if sum(char.isdigit() for char in found) >= _LEAST_DIGITS:
                yield Fact("figure", _plain_figure(found))
        if kind == "user_message" and (said := " ".join(text.split())):
            yield Fact("message", said[:_MESSAGE])


def _plain_figure(found: str) -> str:
    return found.replace(",", "")


def _paths(text: str) -> Iterator[str]:
    for match in _PATH.finditer(text):
        path = match[0].rstrip(".")
        if _NAME.fullmatch(re.split(r"[/\\]", path)[-1]):
            yield path


def _arguments(text: str) -> Any:
    """The arguments of a call as JSON; None where it has none that can be read."""
    at = text.find("{")
    if at < 0:
        return None
    try:
        return orjson.loads(text[at:])
    except orjson.JSONDecodeError:
        return None


def _of_call(arguments: Any) -> Iterator[Fact]:
    for key, value in _leaves(arguments):
        if key in _COMMANDS:
            line = value.strip().partition("\n")[0]
            if line:
                yield Fact("command", line)
            yield from (Fact("path", path) for path in _paths(value))
        elif _PATH_KEYS.search(key) and "\n" not in value and value.strip():
            yield Fact("path", value.strip())
    yield from (Fact("task", task) for task in _tasks(arguments))


def _leaves(value: Any, key: str = "", deep: int = 0) -> Iterator[tuple[str, str]]:
    """The texts in a JSON value with the names that they stand under; a list of words is one text."""
    if deep > _DEEP:
        return
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(inner, name, deep + 1)
    elif isinstance(value, list):
        if key in _COMMANDS and value and all(isinstance(word, str) for word in value):
            yield key, " ".join(value)
            return
        for inner in value:
            yield from _leaves(inner, key, deep + 1)


def _lists(value: Any, deep: int = 0) -> Iterator[list[Any]]:
    """The lists of tasks in a call's arguments: of objects that each have a status."""
    if deep > _DEEP:
        return
    if isinstance(value, list):
        if value and all(isinstance(one, dict) and isinstance(one.get("status"), str) for one in value):
            yield value
        else:
            for inner in value:
                yield from _lists(inner, deep + 1)
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _lists(inner, deep + 1)


def _has_list(text: str) -> bool:
    return next(_lists(_arguments(text)), None) is not None


def _tasks(arguments: Any) -> Iterator[str]:
    for listed in _lists(arguments):
        for task in listed:
            name = next((task[key] for key in _TASK_KEYS if isinstance(task.get(key), str)), "").strip()
            if name and task["status"].lower() in _OPEN:
                yield name
