"""Arguments and options that several commands share, so that each help text exists once."""

from __future__ import annotations

import os
from typing import Annotated

import typer

_ENCODINGS = ("o200k_base", "cl100k_base", "o200k_harmony")
_TARGETS = ("model", "tool", "runtime", "ui", "user", "reviewer", "peer_agent", "evidence_export")
_STAGES = ("surface", "selection", "budget", "window", "assembly", "injection", "evidence")


def complete_files(incomplete: str) -> list[str]:
    """Files and directories that begin with what was typed; their names only, nothing is opened."""
    folder, typed = os.path.split(incomplete)
    try:
        with os.scandir(folder or ".") as entries:
            found = sorted(
                os.path.join(folder, entry.name) + ("/" if entry.is_dir() else "")
                for entry in entries
                if entry.name.startswith(typed) and (typed or not entry.name.startswith("."))
            )
    except OSError:
        return []
    return found[:500]


def complete_encodings(incomplete: str) -> list[str]:
    """Names of the embedded encodings."""
    return [name for name in _ENCODINGS if name.startswith(incomplete)]


def complete_targets(incomplete: str) -> list[str]:
    """Names of the targets."""
    return [name for name in _TARGETS if name.startswith(incomplete)]


def complete_calibrations(incomplete: str) -> list[str]:
    """Words, digests of those that are saved, and files."""
    from ctxctl.tokens.calibrate.store import all_saved

    names = ["none", "saved", "session", "shipped", *(digest for digest, _ in all_saved())]
    return [name for name in names if name.startswith(incomplete)] or complete_files(incomplete)


def complete_stages(incomplete: str) -> list[str]:
    """Names of the stages."""
    return [name for name in _STAGES if name.startswith(incomplete)]


def complete_formats(incomplete: str) -> list[str]:
    """Names of the formats, those of plug-ins included."""
    from ctxctl.importers.registry import available

    return [name for name in ("native", *(f.name for f in available())) if name.startswith(incomplete)]


def complete_policies(incomplete: str) -> list[str]:
    """Names of the policies, those of plug-ins included."""
    from ctxctl.policies.registry import policy_names

    return [name for name in policy_names() if name.startswith(incomplete)]


TraceArg = Annotated[
    str,
    typer.Argument(
        metavar="TRACE", help="Trace or foreign capture; - is stdin.", autocompletion=complete_files
    ),
]
FrameArg = Annotated[
    str,
    typer.Argument(
        metavar="TRACE[@ADDRESS]",
        help="A frame: run.jsonl@3, @3.2, @-1, @explorer:2. No address: the last frame.",
        autocompletion=complete_files,
    ),
]
Plain = Annotated[bool, typer.Option("--plain", help="Plain report, also on a terminal.")]
Canonical = Annotated[
    bool,
    typer.Option(
        "--canonical", help="Texts with JSON in canonical form (keys sorted, no spaces), not as it was sent."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="JSON lines, version 2 (docs/json.md).")]
Everything = Annotated[bool, typer.Option("--all", help="List skipped items and every problem too.")]
EveryProblem = Annotated[bool, typer.Option("--all", help="List every problem, however many there are.")]
TurnOf = Annotated[
    str | None,
    typer.Option("--turn", metavar="TURN[.STEP]", help="The same as @TURN[.STEP] after the trace."),
]
Turn = Annotated[
    str | None,
    typer.Option("--turn", metavar="N|A..B", help="Only this turn, or these; negative from the end."),
]
Where = Annotated[
    str | None,
    typer.Option("--where", metavar="PREDICATE", help="Only steps at which this holds (docs/search.md)."),
]
Thread = Annotated[str | None, typer.Option("--thread", metavar="NAME", help="Only this thread.")]
ThreadOf = Annotated[
    str | None, typer.Option("--thread", metavar="NAME", help="The thread of addresses that name none.")
]
Target = Annotated[
    str | None,
    typer.Option(
        "--target", metavar="NAME", help="Whose view: model, tool, user, ...", autocompletion=complete_targets
    ),
]
Model = Annotated[
    str | None,
    typer.Option("--model", metavar="NAME", help="Count as for this model, whatever the trace names."),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        "--encoding", metavar="NAME", help="Count with this encoding.", autocompletion=complete_encodings
    ),
]
Policy = Annotated[
    str | None,
    typer.Option("--policy", metavar="NAME", help="Replay by this policy.", autocompletion=complete_policies),
]
Window = Annotated[
    str | None,
    typer.Option(
        "--window", metavar="TOKENS", help="Suppose a model with this window: 128000, 128k, 1m (simulated)."
    ),
]
Reserve = Annotated[
    str | None,
    typer.Option("--reserve", metavar="TOKENS", help="Suppose that this much is kept for the answer."),
]
MaxInput = Annotated[
    str | None, typer.Option("--max-input", metavar="TOKENS", help="Suppose this limit on the prompt.")
]
Drop = Annotated[
    list[str] | None,
    typer.Option(
        "--drop",
        metavar="KIND|SOURCE|SERVER",
        help="Suppose that these items had never been there: kind:tool_result, source:app:notes,"
        " server:github, item:ID, or a bare word. Repeatable.",
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="ITEM=FILE",
        help="Suppose this text in the place of an item's (ITEM@VERSION: of one version's); - is stdin."
        " Repeatable.",
    ),
]
Compare = Annotated[
    bool, typer.Option("--compare", help="Recorded and simulated side by side, turn by turn.")
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="NAME",
        help="Read as this format instead of detecting it.",
        autocompletion=complete_formats,
    ),
]
Calibration = Annotated[
    str | None,
    typer.Option(
        "--calibration",
        metavar="NAME",
        help="Tokens of a model without a public tokenizer: saved, shipped, none, session, a digest or a"
        " file.",
        autocompletion=complete_calibrations,
    ),
]
NoLearned = Annotated[
    bool,
    typer.Option(
        "--no-learned", help="Show what the log itself holds, without learned items (docs/learn.md)."
    ),
]
Strict = Annotated[
    bool | None,
    typer.Option(
        "--strict", help="Exit 1 on problems in the input, or if a replay differs.", show_default=False
    ),
]
Color = Annotated[
    str | None, typer.Option("--color", metavar="WHEN", help="auto, always or never.", show_default=False)
]


def learned(off: bool) -> str | None:
    """What `--no-learned` asks for; None: what the settings say."""
    return "none" if off else None
