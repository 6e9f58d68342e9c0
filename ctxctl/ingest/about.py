"""What a format declares: what is read, from where, by which rules, and how each fact is known.

A fact of context assembly is `native` (the capture holds it), `derived` (computed from what it holds),
`simulated` (rebuilt from rules), `in totals` (held for several requests together) or `not recorded`.  A
declaration says what a format can tell at best; `fidelity` measures what one capture told.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, NamedTuple, TypeVar

from ctxctl.model.vocab import Level as Level
from ctxctl.model.vocab import Stage

_Declared = TypeVar("_Declared", bound=type)


def explained(declared: _Declared) -> _Declared:
    """Make a dataclass answer an unknown keyword with the keywords that it has.

    Python's own TypeError names only the wrong one.
    """
    plain = declared.__init__  # type: ignore[misc]
    known = [field.name for field in fields(declared)]

    def checked(self: Any, *values: Any, **named: Any) -> None:
        for name in named:
            if name not in known:
                takes = ", ".join(known)
                raise TypeError(f"{declared.__name__} has no keyword {name!r}; it takes: {takes}")
        plain(self, *values, **named)

    declared.__init__ = checked  # type: ignore[misc]
    return declared


def wrong_keyword(called: str, given: Iterable[str], known: Collection[str]) -> TypeError:
    """The error for the first of `given` that is not `known`; it names the known one that comes nearest."""
    from difflib import get_close_matches

    name = next(name for name in given if name not in known)
    near = get_close_matches(name, known, n=1, cutoff=0.5)
    meant = f"; did you mean {near[0]!r}?" if near else ";"
    return TypeError(f"{called} has no keyword {name!r}{meant} it takes: {', '.join(known)}")


class Fact(NamedTuple):
    """One thing that a capture may or may not tell."""

    name: str
    stage: Stage
    asks: str
    """What the fact is, as a noun phrase for people."""


FACTS: Final = (
    Fact("candidates", "surface", "what was available before selection"),
    Fact("sources", "surface", "where items come from (files, servers, providers)"),
    Fact("item_ids", "surface", "identity of items"),
    Fact("selected", "selection", "which candidates were kept"),
    Fact("omitted", "selection", "which candidates were left out, and why"),
    Fact("limit", "budget", "the window or input limit"),
    Fact("reserved", "budget", "room kept for the answer"),
    Fact("truncation", "budget", "what was cut or dropped to fit"),
    Fact("system_prompt", "window", "the system prompt"),
    Fact("tool_definitions", "window", "the tool definitions"),
    Fact("messages", "window", "user and assistant messages, tool calls and results"),
    Fact("reasoning", "window", "the text of the model's reasoning"),
    Fact("reminders", "window", "context that the harness injects (reminders, files, notes)"),
    Fact("compaction", "window", "that history was compacted, and what left"),
    Fact("summary", "window", "the text that replaced it"),
    Fact("order", "assembly", "the order of blocks in the request"),
    Fact("wrapper", "assembly", "text and markup around items"),
    Fact("requests", "injection", "where one model request ends and the next begins"),
    Fact("turns", "injection", "which prompt set a request off"),
    Fact("threads", "injection", "which conversation a request belongs to"),
    Fact("model", "injection", "the model that was asked"),
    Fact("times", "injection", "when it happened"),
    Fact("input_tokens", "evidence", "what the provider billed as input"),
    Fact("cached_tokens", "evidence", "how much of it came from the provider's cache"),
    Fact("output_tokens", "evidence", "what it billed as output"),
)
FACT_NAMES: Final = tuple(fact.name for fact in FACTS)
IN_USAGE: Final = ("input_tokens", "cached_tokens", "output_tokens")
"""The facts that a bill tells."""


class Claim(NamedTuple):
    """What a format says of one fact at best."""

    level: Level
    note: str = ""
    """When, where or why; one short phrase."""
    beside: tuple[str, ...] = ()
    """Keys that look like the fact and are something else: a session's total is no bill of a request.

    Each from the outermost key on, dots between them, lists left out; what stands under it counts too.
    """


@explained
@dataclass(frozen=True, slots=True)
class HeldAgainst:
    """What an importer was held against: whose versions, and which types of records."""

    client: str = ""
    """Whose versions these are: a program or a schema, as people call it."""
    newest: str = ""
    """The newest version of which real captures were read; empty where captures name none."""
    oldest: str = ""
    """The oldest one; empty where nobody noted it."""
    records: frozenset[str] = frozenset()
    """The types of records that the importer knows, those that it passes over on purpose included.

    Empty where records have no type.  `""` stands for a record without one.
    """
    key: str = "type"
    """The key of a record that says its type; empty where the importer tells of types by itself."""


@explained
@dataclass(frozen=True, slots=True)
class About:
    """A format's declaration: what is read, from where, by which rules, and how far it can be trusted."""

    reads: str
    """What a capture of this format is, and which versions or variants are read; a sentence or two."""
    places: tuple[str, ...]
    """Where on disk, or by which command, people find such a capture."""
    turns: str
    """The rule by which turns and steps are told apart."""
    claims: Mapping[str, Claim]
    """By fact name; a fact that is not named is not recorded."""
    limits: tuple[str, ...] = ()
    """What is not read, or read only in part."""
    origin: str = ""
    """Where the facts about the format come from: a project, a specification, a version."""
    held_against: HeldAgainst | None = None
    """What the importer was held against; None where captures have neither versions nor types of records."""

    def claim(self, fact: str) -> Claim:
        """The claim about a fact; `not recorded` where the format makes none."""
        return self.claims.get(fact, _SILENT)


_SILENT = Claim(Level.NOT_RECORDED)


def sentence(limit: str) -> str:
    """A limit as a sentence: declarations also hold fragments."""
    started = limit[:1].upper() + limit[1:]
    return started if started.endswith((".", "!", "?")) else f"{started}."


def native(note: str = "", beside: tuple[str, ...] = ()) -> Claim:
    """The capture holds it."""
    return Claim(Level.NATIVE, note, beside)


def derived(note: str = "", beside: tuple[str, ...] = ()) -> Claim:
    """It is computed from what the capture holds."""
    return Claim(Level.DERIVED, note, beside)


def simulated(note: str = "") -> Claim:
    """It is rebuilt from the runtime's rules."""
    return Claim(Level.SIMULATED, note)


def in_totals(note: str = "") -> Claim:
    """The capture holds it for several requests together (`ctxctl.total.stated`), not for each."""
    return Claim(Level.IN_TOTALS, note)


def absent(note: str = "", beside: tuple[str, ...] = ()) -> Claim:
    """The capture does not hold it; the note says what it holds instead, if anything."""
    return Claim(Level.NOT_RECORDED, note, beside)
