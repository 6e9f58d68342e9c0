"""Arguments and options that several commands share, so that each help text exists once."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from typing import Annotated, Any, NamedTuple, get_type_hints

from ctxctl.cli.parameters import Argument, Option

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
    Argument(metavar="TRACE", help="Trace or foreign capture; - is stdin.", autocompletion=complete_files),
]
NewestArg = Annotated[
    str | None,
    Argument(
        metavar="[TRACE]",
        help="Trace or foreign capture; - is stdin. Default: the newest session of the current directory.",
        autocompletion=complete_files,
        show_default=False,
    ),
]
TurnArg = Annotated[
    str | None,
    Argument(
        metavar="[TRACE[@TURN]]",
        help="Trace or foreign capture, or a turn of one (run.jsonl@3); - is stdin. Default: the newest"
        " session of the current directory.",
        autocompletion=complete_files,
        show_default=False,
    ),
]
ItemArg = Annotated[
    str | None,
    Argument(
        metavar="ITEM",
        help="The item: its title or path, or part of one; its id; its name in a list; words of its text.",
        show_default=False,
    ),
]
FrameArg = Annotated[
    str | None,
    Argument(
        metavar="[TRACE][@ADDRESS]",
        help="A frame: run.jsonl@3, @3.2, @-1, @explorer:2. No address: the last frame of the main"
        " thread. No trace: the newest session of the current directory.",
        autocompletion=complete_files,
        show_default=False,
    ),
]
EveryProblem = Annotated[bool, Option("--all", help="List every problem, however many there are.")]
TurnOf = Annotated[
    str | None,
    Option("--turn", metavar="TURN[.STEP]", help="The same as @TURN[.STEP] after the trace."),
]
ThreadOf = Annotated[
    str | None, Option("--thread", metavar="NAME", help="The thread to look in if the address names none.")
]


class CommonOptions(NamedTuple):
    """The options that several commands share, each with its help; those that a command does not take are
    as if they had not been given.
    """

    plain: Annotated[bool, Option("--plain", help="Print the plain report, even on a terminal.")] = False
    json: Annotated[bool, Option("--json", help="Print JSON Lines, version 2 (docs/json.md).")] = False
    quiet: Annotated[bool, Option("--quiet", "-q", help="Hide progress and notes.")] = False
    no_pager: Annotated[bool, Option("--no-pager", help="Show long reports without a pager.")] = True
    """Also of commands that do not take it: they are not paged."""
    oneline: Annotated[
        bool,
        Option(
            "--oneline", help="Print one line per result, fields separated by tabs: for grep, cut and awk."
        ),
    ] = False
    canonical: Annotated[
        bool,
        Option(
            "--canonical",
            help="Show JSON in canonical form (keys sorted, no spaces), not as it was sent.",
        ),
    ] = False
    everything: Annotated[
        bool, Option("--all", help="Also list skipped (unchanged) items, and every problem.")
    ] = False
    ids: Annotated[bool, Option("--ids", help="Also list the ids of items.")] = False
    turn: Annotated[
        str | None,
        Option(
            "--turn",
            metavar="N|A..B",
            help="Only this turn, or these turns; negative numbers count from the end.",
        ),
    ] = None
    thread: Annotated[str | None, Option("--thread", metavar="NAME", help="Only this thread.")] = None
    target: Annotated[
        str | None,
        Option(
            "--target",
            metavar="NAME",
            help="Show what this target received: model (the default), tool, user, ...",
            autocompletion=complete_targets,
        ),
    ] = None
    model: Annotated[
        str | None,
        Option("--model", metavar="NAME", help="Count tokens for this model, not for the one in the trace."),
    ] = None
    encoding: Annotated[
        str | None,
        Option(
            "--encoding",
            metavar="NAME",
            help="Count tokens with this encoding.",
            autocompletion=complete_encodings,
        ),
    ] = None
    policy: Annotated[
        str | None,
        Option(
            "--policy",
            metavar="NAME",
            help="Replay under this policy: it decides what is left out (ctxctl policies).",
            autocompletion=complete_policies,
        ),
    ] = None
    calibration: Annotated[
        str | None,
        Option(
            "--calibration",
            metavar="NAME",
            help="Calibration for models without a public tokenizer: saved, shipped, none,"
            " session, a digest or a file.",
            autocompletion=complete_calibrations,
        ),
    ] = None
    no_learned: Annotated[
        bool,
        Option("--no-learned", help="Show only what the log holds, without learned items (docs/learn.md)."),
    ] = False
    read_as: Annotated[
        str | None,
        Option(
            "--read-as",
            metavar="NAME",
            help="Read as this format instead of detecting it.",
            autocompletion=complete_formats,
        ),
    ] = None
    format: Annotated[
        str | None,
        Option("--format", metavar="NAME", autocompletion=complete_formats, hidden=True),
    ] = None
    """The old spelling of `read_as`, in commands in which it does not say what is written."""
    strict: Annotated[
        bool | None,
        Option(
            "--strict",
            help="Exit 1 on problems in the input, or if the replay differs from the record.",
            show_default=False,
        ),
    ] = None
    color: Annotated[
        str | None,
        Option("--color", metavar="WHEN", help="Use colour: auto, always or never.", show_default=False),
    ] = None

    @property
    def paged(self) -> bool:
        """Whether a pager shows what is printed, where there is a terminal."""
        return not (self.no_pager or self.json)

    @property
    def capture_format(self) -> str | None:
        """The format that what is read was said to have, by the option or by its old spelling."""
        return self.format if self.read_as is None else self.read_as

    def flags(self) -> dict[str, object]:
        """What is said to the settings; None: what they say themselves."""
        return {
            "target": self.target, "model": self.model, "encoding": self.encoding, "policy": self.policy,
            "calibration": self.calibration, "learned": "none" if self.no_learned else None,
            "read_as": self.capture_format, "strict": self.strict, "color": self.color,
        }  # fmt: skip


PRINTED = "plain json quiet"
"""How a report is printed."""
PAGED = f"{PRINTED} no_pager"
"""The same of a report that may be longer than a screen."""
COUNTED = "target model encoding policy"
"""What decides which items are in a window, and how many tokens they have."""
READ = "no_learned read_as strict color"
"""How a trace is read, and what is said of it."""
_SHARED = get_type_hints(CommonOptions, include_extras=True)


def takes(*names: str, **variants: object) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Let a command take shared options beside its own; it gets them as one `CommonOptions`, its `options`.

    Args:
        names: Options in the order of the help, words apart.  The command's own parameters stand in front of
            them, but for those that are named among them.
        variants: Shared options that this command words otherwise, each an annotation as in `CommonOptions`.
    """
    words = " ".join(names).split()

    def taking(command: Callable[..., None]) -> Callable[..., None]:
        own = dict(inspect.signature(command, eval_str=True).parameters)
        del own["options"]
        order = words + ["format"] * ("read_as" in words and "format" not in own)
        shared = [name for name in order if name not in own]
        parameters = [own[name] for name in own if name not in order]
        parameters += [own[name] if name in own else _parameter(name, variants) for name in order]

        def called(**given: Any) -> None:
            options = CommonOptions(**{name: given.pop(name) for name in shared})
            command(options, **given)

        # Not by functools.wraps: the parser would look through it, at a signature without shared options.
        called.__name__, called.__qualname__ = command.__name__, command.__qualname__
        called.__module__, called.__doc__ = command.__module__, command.__doc__
        called.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return called

    return taking


def _parameter(name: str, variants: Mapping[str, object]) -> inspect.Parameter:
    return inspect.Parameter(
        name, inspect.Parameter.POSITIONAL_OR_KEYWORD,
        default=name != "no_pager" and CommonOptions._field_defaults[name],
        annotation=variants.get(name, _SHARED[name]),
    )  # fmt: skip
