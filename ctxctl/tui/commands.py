"""What the line of commands takes: actions by name, addresses, themes.  Plain Python.

Names are found by a few typed letters.  Textual's own matcher (`textual.fuzzy`) is not used for it: it finds
words only in the order of the name ("TURN NEXT" leads to "open" there, here to "next turn"), and it tries
every way to place scattered letters, whose number grows exponentially.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal, NamedTuple

from ctxctl.tui import keys
from ctxctl.wording import plural

_PREFIX, _WORD, _INSIDE, _LETTERS = range(4)


class Match(NamedTuple):
    """How well a text fits, and which of its characters were typed; a lower cost is a better fit."""

    cost: int
    places: tuple[int, ...]


def match(query: str, text: str) -> Match | None:
    """Every word of the query is found in the text: at a word's beginning, inside one, or letter by letter.

    Letters in their order, upper or lower case; the order of the query's words does not matter.
    """
    folded = text.casefold() if len(text.casefold()) == len(text) else text.lower()
    if len(folded) != len(text):
        folded = text
    cost = 0
    places: set[int] = set()
    for word in query.casefold().split():
        found = _word(word, folded)
        if found is None:
            return None
        cost += found.cost
        places.update(found.places)
    return Match(cost, tuple(sorted(places)))


def _word(word: str, text: str) -> Match | None:
    at = _at_word(word, text)
    if at is None:
        at = text.find(word)
        if at >= 0:
            return Match(_INSIDE * 1000 + min(at, 99), tuple(range(at, at + len(word))))
        return _letters(word, text)
    grade = _PREFIX if at == 0 else _WORD
    return Match(grade * 1000 + min(at, 99), tuple(range(at, at + len(word))))


def _at_word(word: str, text: str) -> int | None:
    """Where a word of the text begins with this one."""
    at = text.find(word)
    while at >= 0:
        if at == 0 or not text[at - 1].isalnum():
            return at
        at = text.find(word, at + 1)
    return None


def _letters(word: str, text: str) -> Match | None:
    """The letters one after the other, beginnings of words before others, with as few gaps as that allows."""
    best: Match | None = None
    for start in _starts(word[0], text):
        places = [start]
        for letter in word[1:]:
            at = text.find(letter, places[-1] + 1)
            if at < 0:
                break
            if at != places[-1] + 1:
                at = next((n for n in _starts(letter, text) if n > places[-1]), at)
            places.append(at)
        if len(places) < len(word):
            continue
        gaps = sum(b - a > 1 for a, b in pairwise(places))
        cost = _LETTERS * 1000 + gaps * 20 + min(places[-1] - places[0], 99)
        if best is None or cost < best.cost:
            best = Match(cost, tuple(places))
    return best


def _starts(letter: str, text: str) -> Sequence[int]:
    """Where a letter begins a word; everywhere it is, if nowhere so."""
    found = [n for n, other in enumerate(text) if other == letter]
    first = [n for n in found if n == 0 or not text[n - 1].isalnum()]
    return first + [n for n in found if n not in first][:1] if first else found


Kind = Literal["action", "goto", "theme", "none"]

_ADDRESS: Final = re.compile(r"(?:.+/)?(?:[^/]+:)?-?\d{1,18}(?:\.-?\d{1,18})?|ctx:.+", re.DOTALL | re.ASCII)
"""As in `ctxctl.session.addresses`, which resolves it."""
_MOST: Final = 200


@dataclass(frozen=True, slots=True)
class Command:
    """One line of the palette, and what is done when it is chosen."""

    kind: Kind
    argument: str
    """The action's id, the address or the theme's name."""
    title: str
    key: str = ""
    """The key that does the same, for people."""
    marked: tuple[int, ...] = ()
    """Characters of the title that were typed."""


@dataclass(frozen=True, slots=True)
class Choices:
    """What a typed line can mean, the likeliest first, and which one is chosen."""

    commands: tuple[Command, ...]
    at: int = 0

    @property
    def chosen(self) -> Command | None:
        """What Enter does."""
        return self.commands[self.at] if self.commands else None

    def moved(self, by: int) -> Choices:
        """Choose another one; the ends of the list do not meet."""
        return Choices(self.commands, min(max(self.at + by, 0), max(len(self.commands) - 1, 0)))


def choices_for(line: str, ids: Sequence[str], themes: Iterable[str], *, turns: bool = True) -> Choices:
    """What a typed line can mean where the actions `ids` have an effect, in the order in which they do.

    `7`, `7.2`, `-1`, `explorer:2` and `SESSION/7` are addresses; `theme NAME` is a theme; everything else is
    looked for in the names and ids of the actions.  Without `turns` no trace is open: there are no addresses.
    """
    text = line.strip().removeprefix(":").removeprefix("@").strip()
    if turns and text and _ADDRESS.fullmatch(text):
        return Choices((Command("goto", text, f"go to {_place(text)}"),))
    first, _, rest = text.partition(" ")
    if first == "theme":
        found = [(match(rest, theme), theme) for theme in themes]
        ranked = sorted((match.cost, n) for n, (match, _) in enumerate(found) if match is not None)
        named = [Command("theme", found[n][1], f"colours: {found[n][1]}") for _, n in ranked]
        return Choices((*named, *_actions(text, ids)) if not rest else tuple(named))
    return Choices(tuple(_actions(_ALIASES.get(text, text), ids))[:_MOST])


_ALIASES: Final = {"q": "quit", "q!": "quit", "wq": "quit", "x": "quit", "qa": "quit", "h": "help"}
"""What fingers type that know vim."""


def _place(address: str) -> str:
    """An address in words, as far as it is plain."""
    thread, _, place = address.rpartition(":") if not address.startswith("ctx:") else ("", "", address)
    where = f" of {thread}" if thread else ""
    turn, _, step = place.partition(".")
    if turn == "-1" and not step:
        return f"the last turn{where}"
    if turn.startswith("-") and turn[1:].isdigit() and not step:
        return f"{plural(int(turn[1:]) - 1, 'turn')} before the last one{where}"
    if turn.isdigit():
        return f"step {place}{where}" if step else f"turn {turn}{where}"
    return address


def _actions(text: str, ids: Sequence[str]) -> list[Command]:
    ranked = []
    for n, ident in enumerate(ids):
        action = keys.BY_ID[ident]
        by_help, by_id = match(text, action.help), match(text, ident)
        costs = [match.cost for match in (by_help, by_id) if match is not None]
        if text == ident:
            costs.append(-1)
        if costs:
            ranked.append((min(costs), n, action, by_help.places if by_help is not None else ()))
    ranked.sort(key=lambda found: found[:2])
    return [
        Command("action", action.id, action.help, keys.key_of(action.id), places)
        for _, _, action, places in ranked
    ]
