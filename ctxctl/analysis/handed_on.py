"""What compactions removed from a window, and which facts of it survive: in the summary, or later.

Four kinds of facts are searched by their words: paths and commands of tool calls, figures, the user's own
messages, and open tasks of a tool's list. A paraphrase is not found, so `NOWHERE` means that the words occur
nowhere, not that the matter is forgotten.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, islice
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
"""Kinds of facts, in the order of display."""
SUMMARY: Final = "summary"
"""The summary has its words."""
KEPT: Final = "kept"
"""Only an item that stayed in the window has them."""
LATER: Final = "later"
"""Only an item that came later has them."""
NOWHERE: Final = "nowhere"
"""None of these has them."""
UNKNOWN: Final = "unknown"
"""The text of the summary, or part of it, is not recorded, and nothing later has its words."""

_MAX_TEXT: Final = 1 << 20
"""Most characters of one text that are searched."""
_PATH: Final = re.compile(
    r"(?<![\w:/.@+\\-])(?:~|\.{1,2}|[A-Za-z]:)?(?:[/\\][\w.@+-]+|[\w.@+-]+[/\\][\w.@+-]+)(?:[/\\][\w.@+-]+)*"
)
_NAME: Final = re.compile(r"[\w@+-][\w.@+-]*\.[A-Za-z]\w{0,7}")
_FIGURE: Final = re.compile(r"(?<![\w.,/\\-])\d[\d,]*(?:\.\d+)?%?(?![\w/\\-])")
_TIME: Final = re.compile(
    r"(?<![\w:])(?:\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d+)?(?![\w:])|1[4-9]\d{8}(?:\d{3}|\.\d+)?(?![\w.,]))"
)
"""Times of day, and seconds or milliseconds since 1970, which do not count as figures."""
_SPOKEN: Final = ("user_message", "assistant_message")
_MIN_DIGITS: Final = 3
_MAX_FACTS: Final = 500
"""Most facts of one kind that are searched, by mentions. The number of the others is reported."""
_COMMANDS: Final = ("command", "cmd", "script")
_PATH_KEYS: Final = re.compile(
    r"(?:^|_)(?:path|file|filename|dir|directory|notebook)s?(?:_path)?$", re.IGNORECASE
)
_OPEN: Final = frozenset(
    {"pending", "in_progress", "in-progress", "open", "todo", "not_started", "not-started"}
)
_TASK_KEYS: Final = ("content", "step", "title", "task", "text")
_MESSAGE_HEAD: Final = 80
"""Characters of a message that must occur for it to count as found."""
_MAX_DEPTH: Final = 40


class Fact(NamedTuple):
    """One fact that can be searched."""

    kind: str
    text: str


@dataclass
class Handed:
    """One removed fact, and where it is now."""

    fact: Fact
    mentions: int
    """Number of removed items that hold it."""
    where: str = NOWHERE
    turn: int | None = None
    step: int | None = None
    """The first step whose new items hold it again, if it is `LATER`."""


@dataclass
class Compaction:
    """One compaction, and what happened to the facts that it removed."""

    session: str | None
    thread: str
    taken: Compacting
    summary: tuple[str, ...]
    """Ids of the summary's items; empty if none is recorded."""
    summary_tokens: int
    unread: int
    """Number of removed items without a text in the trace, whose facts are unknown."""
    is_summary_read: bool = True
    """Whether the trace has the whole text of a summary that a model wrote."""
    facts: list[Handed] = field(default_factory=list)
    """Facts by kind, those with the most mentions first."""
    unsought: dict[str, int] = field(default_factory=dict)
    """Number of facts not searched because there are too many, by kind."""

    @property
    def turn(self) -> int:
        """The turn's number, from 1."""
        return self.taken.turn

    @property
    def step(self) -> int:
        """The step's number in the turn, from 1."""
        return self.taken.step

    def of(self, kind: str, where: str | None = None) -> list[Handed]:
        """Return the facts of a kind, or only those in one place."""
        return [one for one in self.facts if one.fact.kind == kind and where in (None, one.where)]


def compactions(
    inspector: Inspector, progress: Progress | None = None, see: Callable[[StepAt], None] | None = None
) -> list[Compaction]:
    """Return all compactions of a trace, in the order of their steps. Reads each step once, then the texts of
    removed and later items. `see` is called with each step."""
    reader = _Reader(inspector)
    for at in inspector.steps(progress):
        reader.step(at.step, at.placements)
        if see is not None:
            see(at)
    return reader.found


class _Reader:
    """Follows the threads of a trace from one compaction to the next."""

    def __init__(self, inspector: Inspector) -> None:
        self.found: list[Compaction] = []
        self._inspector = inspector
        self._before: dict[ThreadName, list[Placement]] = {}
        self._open: dict[ThreadName, dict[Fact, list[Handed]]] = {}
        """Removed facts that were found nowhere so far, by thread."""
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
            new = {id(p) for p in fresh}
            kept = [p for p in placements if id(p) not in new and not p.stale]
            # A removed item is in neither end that both windows share.
            self._compacted(key, step, entered_between(placements, before), fresh, kept)

    def _meet(self, key: ThreadName, step: Step, fresh: Iterable[Placement]) -> None:
        """Mark facts that new items hold as found."""
        left = self._open.get(key)
        if not left:
            return
        for placement in fresh:
            for fact in self._mentioned(placement):
                for one in left.pop(fact, ()):
                    one.where, one.turn, one.step = LATER, step.turn, step.step

    def _mentioned(self, placement: Placement) -> set[Fact]:
        """Return the facts that an item mentions, in the form for comparison."""
        text = self._text(placement) or ""
        facts = facts_of(placement.kind, text)
        if placement.kind not in _SPOKEN:
            facts = chain(facts, _words_of(text))
        return {self._compared(fact) for fact in facts}

    def _compacted(
        self,
        key: ThreadName,
        step: Step,
        left: list[Placement],
        fresh: list[Placement],
        kept: list[Placement],
    ) -> None:
        taken = compacting(step)
        gone = {c.item for c in step.changes if c.status == "removed" and c.cause == "compacted"}
        into = {c.into for c in step.changes if c.into}
        into |= {one.summary.partition("@")[0] for one in step.annotations.compactions if one.summary}
        said = [p for p in fresh if p.item in into] or [p for p in fresh if p.kind == "thread_summary"]
        counts, unread = self._held([p for p in left if p.item in gone and not p.stale])
        was_written = any(one.request is not None for one in step.annotations.compactions)
        found = Compaction(
            step.session, step.thread, taken, tuple(dict.fromkeys(p.item for p in said)),
            sum(p.tokens for p in said), unread,
            all(self._text(p) is not None for p in said) if said else not was_written,
        )  # fmt: skip
        summary = Text("\n".join(self._text(p) or "" for p in said))
        met = {fact for p in fresh if p not in said for fact in self._mentioned(p)}
        stayed = {fact for p in kept for fact in self._mentioned(p)}
        names = _unique_names(counts)
        nowhere = self._open.setdefault(key, {})
        sought: dict[str, int] = {}
        for fact, mentions in sorted(counts.items(), key=_rank):
            sought[fact.kind] = sought.get(fact.kind, 0) + 1
            if sought[fact.kind] > _MAX_FACTS:
                found.unsought[fact.kind] = found.unsought.get(fact.kind, 0) + 1
                continue
            one = Handed(fact, mentions)
            if said and summary.holds(fact, names):
                one.where = SUMMARY
            elif self._compared(fact) in stayed:
                one.where = KEPT
            elif self._compared(fact) in met:
                one.where, one.turn, one.step = LATER, step.turn, step.step
            else:
                one.where = NOWHERE if found.is_summary_read else UNKNOWN
                nowhere.setdefault(self._compared(fact), []).append(one)
            found.facts.append(one)
        self.found.append(found)

    def _held(self, taken: list[Placement]) -> tuple[dict[Fact, int], int]:
        """Return the removed facts, each with its number of items, and the number of items without a text.

        Of task lists, only the last one shows what is open.
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
        for fact in [one for one in counts if self._compared(one) != one and self._compared(one) in counts]:
            counts[self._compared(fact)] += counts.pop(fact)  # one file, named in two ways
        return counts | dict.fromkeys(tasks, 1), unread

    def _compared(self, fact: Fact) -> Fact:
        """Return a fact for comparison: a command by its programs, a relative path from the session's
        directory."""
        if fact.kind == "command":
            return Fact("command", " && ".join(" ".join(one) for one in commands_of(fact.text)))
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
    """A summary in which facts are searched."""

    def __init__(self, text: str) -> None:
        self._text = text = text[:_MAX_TEXT]
        self._plain = " ".join(text.split())
        self._figures = {_plain_figure(found) for found in _FIGURE.findall(text)}

    def holds(self, fact: Fact, names: frozenset[str]) -> bool:
        """Return whether it contains a fact word for word.

        A path also counts by its last two parts, or by its file name if that is one of `names`.
        """
        if fact.kind == "figure":
            return fact.text in self._figures
        if fact.kind == "command":
            return all(self._runs(program, argument) for program, argument in commands_of(fact.text))
        if fact.kind != "path":
            return " ".join(fact.text.split()) in self._plain
        parts = re.split(r"[/\\]", fact.text)
        said = [fact.text, "/".join(parts[-2:]) if len(parts) > 2 else "", parts[-1]]
        return any(_stands_in(word, self._text) for word in said[:2] if word) or (
            parts[-1] in names and _stands_in(parts[-1], self._text)
        )

    def _runs(self, program: str, argument: str) -> bool:
        """Return whether the text has the program as a word, and soon after it the argument."""
        at = self._plain.find(program)
        while at >= 0:
            end = at + len(program)
            behind = self._plain[end : end + _ARGUMENT_DISTANCE + len(argument)]
            if _stands_in(program, self._plain[max(0, at - 1) : end + 2]) and (
                not argument
                or _stands_in(argument, behind)
                or _stands_in(argument.rstrip("/").rpartition("/")[2], behind)
            ):
                return True
            at = self._plain.find(program, end)
        return False


def _stands_in(word: str, text: str) -> bool:
    """Return whether a text has a word that is not part of a longer name."""
    at = text.find(word)
    while at >= 0:
        after = text[at + len(word) : at + len(word) + 2]
        before = text[at - 1 : at]
        cut = after[:1].isalnum() or after[:1] in ("_", "-") or (after[:1] == "." and after[1:].isalnum())
        if not cut and not (before.isalnum() or before in ("_", "-", ".")):
            return True
        at = text.find(word, at + 1)
    return False


def _unique_names(counts: Iterable[Fact]) -> frozenset[str]:
    """Return the file names that only one of the paths has."""
    seen: dict[str, int] = {}
    for fact in counts:
        if fact.kind == "path":
            name = re.split(r"[/\\]", fact.text)[-1]
            seen[name] = seen.get(name, 0) + 1
    return frozenset(name for name, times in seen.items() if times == 1 and _NAME.fullmatch(name))


def _words_of(text: str) -> Iterator[Fact]:
    """Yield the paths and figures of any text."""
    yield from (Fact("path", path) for path in _paths(text[:_MAX_TEXT]))
    # Figures and times contain no blank, and most words are letters only.
    text = " ".join([word for word in text[:_MAX_TEXT].split() if not word.isalpha()])
    for found in _FIGURE.findall(_TIME.sub(" ", text)):
        if sum(char.isdigit() for char in found) >= _MIN_DIGITS:
            yield Fact("figure", _plain_figure(found))


def facts_of(kind: str, text: str) -> Iterator[Fact]:
    """Yield the facts of one item that are searched; only calls and messages have any.

    Args:
        kind: The item's kind.
        text: Its text as sent.
    """
    text = text[:_MAX_TEXT]
    if kind == "tool_call":
        yield from _of_call(_arguments(text))
    elif kind in _SPOKEN:
        yield from _words_of(text)
        if kind == "user_message" and (said := " ".join(text.split())):
            yield Fact("message", said[:_MESSAGE_HEAD])


def _plain_figure(found: str) -> str:
    return found.replace(",", "")


def _paths(text: str) -> Iterator[str]:
    for word in text.split():
        if "/" not in word and "\\" not in word:
            continue
        for match in _PATH.finditer(word):
            path = match[0].rstrip(".")
            if _NAME.fullmatch(re.split(r"[/\\]", path)[-1]):
                yield path


def _arguments(text: str) -> Any:
    """Return the arguments of a call as JSON; None if there are none, or they are invalid."""
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


_ARGUMENT_DISTANCE: Final = 80
"""Characters after a program in which its argument is searched."""
_MAX_WORDS: Final = 200
_WRAPPERS: Final = frozenset(
    {"sudo", "time", "env", "nohup", "exec", "command", "npx", "uvx", "timeout", "nice", "do", "then", "else",
     "if", "while", "!", "{"}
)  # fmt: skip
"""Programs that only start another one."""
_RUNNERS: Final = frozenset(
    {("uv", "run"), ("poetry", "run"), ("pipenv", "run"), ("python", "-m"), ("python3", "-m")}
)
_SHELLS: Final = frozenset({"bash", "sh", "zsh"})
_IGNORED: Final = frozenset(
    {"cd", "pushd", "popd", "echo", "export", "set", "source", ".", "true", "sleep", "for", "done", "fi", "}"}
)
"""Commands that are ignored if the line has others."""
_JOINS: Final = frozenset({"&&", "||", ";", "&", "|&"})


@lru_cache(maxsize=4096)
def commands_of(line: str) -> tuple[tuple[str, str], ...]:
    """Return the commands of a line, each as its program and its main argument.

    Left out are commands after a pipe (`tail`), redirections, quotes, options, variables, programs that only
    start another one, and a change of directory unless it is the only command.
    """
    found = [one for words in _segments(line) if (one := _command(words)) is not None]
    return tuple([one for one in found if one[0] not in _IGNORED] or found) or ((line, ""),)


def _segments(line: str) -> Iterator[list[str]]:
    lexer = shlex.shlex(line[:_MAX_LINE], posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    words: list[str] = []
    piped = redirected = False
    try:
        tokens = list(islice(lexer, _MAX_WORDS))
    except ValueError:  # an unclosed quote
        tokens = line[:_MAX_LINE].replace('"', " ").replace("'", " ").split()[:_MAX_WORDS]
    for token in tokens:
        if not token:  # an empty quoted argument
            continue
        if token in _JOINS:
            yield words
            words, piped, redirected = [], False, False
        elif redirected:
            redirected = False
        elif token[0] in "<>" or token in ("&>", "&>>"):
            redirected = True
            if words and words[-1].isdigit():
                words.pop()
        elif token == "|":
            piped = True
        elif not piped and token not in "()":
            words.append(token)
    yield words


def _command(words: list[str]) -> tuple[str, str] | None:
    """Return the program and its main argument: the first that is not an option or a flag's value."""
    while words and (_ASSIGNED.match(words[0]) or words[0] in _WRAPPERS or words[0].isdigit()):
        words = words[1:]
    if len(words) > 2 and (words[0].rpartition("/")[2], words[1]) in _RUNNERS:
        return _command(words[2:])
    if not words:
        return None
    program, rest = words[0].rpartition("/")[2] or words[0], words[1:]
    if program in _SHELLS and len(rest) > 1 and rest[0] in ("-c", "-lc"):
        return next(iter(commands_of(rest[1])), None)
    plain = [at for at, word in enumerate(rest) if not word.startswith("-")]
    free = [at for at in plain if not at or not _LETTER.fullmatch(rest[at - 1])]
    main = next(iter(free or plain), None)
    return program, "" if main is None else rest[main][:_MESSAGE_HEAD]


_ASSIGNED: Final = re.compile(r"[A-Za-z_]\w*=")
_LETTER: Final = re.compile(r"-[A-Za-z]")
_MAX_LINE: Final = 4096


def _leaves(value: Any, key: str = "", deep: int = 0) -> Iterator[tuple[str, str]]:
    """Yield the texts in a JSON value with their keys. A list of words is one text."""
    if deep > _MAX_DEPTH:
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
    """Yield the task lists in a call's arguments: lists of objects that each have a status."""
    if deep > _MAX_DEPTH:
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
