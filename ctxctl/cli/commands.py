"""The commands by name: where each is, and its line in the list of all; one is imported when it is run."""

from __future__ import annotations

from collections.abc import Callable
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
    "ls": Command("ls:ls", "The sessions of this machine, or of a directory."),
    "replay": Command("replay:replay", "Every step and turn of a trace: UI or report."),
    "watch": Command("watch:watch", "A session while it is written: UI or lines."),
    "record": Command("record:record", "Sessions of other programs, while they run.", interspersed=False),
    "diff": Command("diff:diff", "Two frames: what entered and left between them."),
    "show": Command("show:show", "One frame: its stages, items, assembled text."),
    "blame": Command("blame:blame", "Whose each line of a frame's text is, since when."),
    "find": Command("find:find", "Steps at which a predicate holds."),
    "bisect": Command("bisect:bisect", "Where a predicate turns true, or two traces part."),
    "log": Command("log:log", "An item's life, from step to step."),
    "why": Command("why:why", "Why an item is, or is not, in a window."),
    "compactions": Command("compactions:compactions", "What compactions took, and what of it is lost."),
    "cost": Command("cost:cost", "What a session cost, and on what."),
    "budget": Command("budget:budget", "Will a planned context fit, and a gate for CI."),
    "lint": Command("lint:lint", "Waste, contradictions and leaks in traces."),
    "check": Command("check:check", "A gate for CI: what a recorded session must keep to."),
    "validate": Command("validate:validate", "Check a trace against schemas and rules."),
    "import": Command("convert:convert", "Convert foreign captures to a trace."),
    "export": Command("export:export", "Write a trace in another form."),
    "formats": Command("formats:formats", "What can be opened, and what each format tells."),
    "policies": Command("policies:policies", "What a session can be replayed under."),
    "calibrate": Command("calibrate:calibrate", "Fit token counts to what providers billed."),
    "learn": Command("learn:learn", "Complete a client's logs by recordings of it."),
    "models": Command("models:models", "Windows, limits and prices of models, offline."),
    "cache": Command("cache:cache", "What is kept between runs: show, prune, clear."),
}
"""In the order of the help."""
