"""The commands by name: where each is, and its line in the list of all; one is imported when it is run.

A name of two words is a command of the group that the first word is; that one is a command of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Final, NamedTuple


class Command(NamedTuple):
    """One command."""

    place: str
    """The function that it is, as ``MODULE:NAME`` of `ctxctl.cli`."""
    line: str
    """What it does, in the list of all commands."""
    interspersed: bool = True
    """Whether its options may follow its arguments."""

    def function(self) -> Callable[..., None]:
        """The function; imports its module."""
        module, _, name = self.place.partition(":")
        found: Callable[..., None] = getattr(import_module(f"ctxctl.cli.{module}"), name)
        return found


COMMANDS: Final = {
    "ls": Command("ls:ls", "List the sessions on this machine, or in a directory."),
    "replay": Command("replay:replay", "Replay a trace turn by turn: UI or report."),
    "watch": Command("watch:watch", "Follow a running session: UI or lines."),
    "record": Command("record:record", "Record other programs' sessions while they run.", interspersed=False),
    "diff": Command("diff:diff", "Compare two frames: what entered, what left."),
    "show": Command("show:show", "Show one frame: stages, items, assembled text."),
    "blame": Command("blame:blame", "Show which item each part of the text is from, and since when."),
    "find": Command("find:find", "Find the steps that match a query."),
    "bisect": Command("bisect:bisect", "Find where a query first matches, or two traces diverge."),
    "log": Command("log:log", "Show the history of an item, step by step."),
    "why": Command("why:why", "Explain why an item is, or is not, in a window."),
    "compactions": Command("compactions:compactions", "Show what compactions removed, and what is lost."),
    "cost": Command("cost:cost", "Show what a session cost, and where the money went."),
    "budget": Command("budget:budget", "Check whether a planned context fits; a gate for CI."),
    "lint": Command("lint:lint", "Find waste, contradictions and leaks in traces."),
    "check": Command("check:check", "Check a recorded session against conditions; for CI."),
    "validate": Command("validate:validate", "Check a trace against schemas and rules."),
    "import": Command("convert:convert", "Convert foreign captures to a trace."),
    "export": Command("export:export", "Write a trace in another form."),
    "sql": Command("sql:sql", "Run an SQL query on a trace."),
    "formats": Command("formats:formats", "List the formats that can be opened, and what each records."),
    "policies": Command("policies:policies", "List the policies that a session can be replayed under."),
    "calibrate": Command("calibrate:calibrate", "Fit token counts to what providers billed."),
    "learn": Command("learn:learn", "Complete a client's logs from recordings of it."),
    "fleet": Command("dataset.overview:fleet", "Show many captures as one dataset, and ask it questions."),
    "fleet add": Command("dataset.add:add", "Read captures into a dataset; unchanged ones are not read."),
    "fleet status": Command("dataset.keep:status", "Show the version, rows, files and size of a dataset."),
    "fleet files": Command("dataset.keep:files", "List the files that hold a table, for other engines."),
    "fleet compact": Command("dataset.keep:compact", "Join small files of a dataset into larger ones."),
    "fleet vacuum": Command("dataset.keep:vacuum", "Remove files that a dataset no longer uses."),
    "fleet forget": Command("dataset.keep:forget", "Remove sessions from a dataset for good."),
    "fleet ask": Command("dataset.ask:ask", "Ask a dataset a question by name, or by SQL."),
    "fleet diff": Command("dataset.diff:diff", "Compare two groups of sessions: versions, weeks, prompts."),
    "fleet check": Command("dataset.check:check", "Check a dataset against rules; for CI."),
    "fleet report": Command("dataset.report:report", "Write an HTML page about a dataset."),
    "models": Command("models:models", "Show windows, limits and prices of models, offline."),
    "cache": Command("cache:cache", "Show, prune or clear the results kept between runs."),
}
"""In the order of the help."""


def words_of(group: str) -> dict[str, Command]:
    """The commands of a group, by their second word."""
    return {name.partition(" ")[2]: one for name, one in COMMANDS.items() if name.startswith(f"{group} ")}


def named_words(arguments: Sequence[str]) -> int:
    """How many words of a command line name its command: 0, 1 or 2."""
    if " ".join(arguments[:2]) in COMMANDS:
        return min(len(arguments), 2)
    return int(bool(arguments) and arguments[0] in COMMANDS)
