"""Which dataset is meant, and the filters that every question takes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

from ctxctl.cli import options as opt
from ctxctl.cli.parameters import Option

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from ctxctl.cli.run import Run
    from ctxctl.dataset.opening import OpenDataset
    from ctxctl.dataset.questions import Parameter

VARIABLE = "CTXCTL_FLEET_DATASET"
Dataset = Annotated[
    str | None,
    Option(
        "--dataset",
        metavar="DATASET",
        help="The dataset: a folder or URL. Default: CTXCTL_FLEET_DATASET, or the setting fleet.dataset.",
        autocompletion=opt.complete_files,
    ),
]
Since = Annotated[
    str | None,
    Option(
        "--since", metavar="WHEN", help="Only sessions that began since then: 2d, 12h, or a date: 2026-11-01."
    ),
]
Until = Annotated[str | None, Option("--until", metavar="WHEN", help="Only sessions that began before then.")]
Project = Annotated[str | None, Option("--project", metavar="NAME", help="Only sessions of this project.")]
Client = Annotated[
    str | None, Option("--client", metavar="NAME", help="Only sessions of this client: Codex, 'Claude Code'.")
]
Label = Annotated[str | None, Option("--label", metavar="KEY=VALUE", help="Only sessions with this label.")]
Limit = Annotated[
    str | None, Option("--limit", metavar="N", help="Print at most this many rows. Default: 20.")
]
Params = Annotated[
    list[str] | None,
    Option("--param", metavar="NAME=VALUE", help="Set a parameter of the question. Repeatable."),
]


def place_of(dataset: str | None, run: Run) -> str:
    """The dataset that is meant.  Raises UsageError (`no-dataset-named`)."""
    from ctxctl.errors import UsageError

    place = dataset or os.environ.get(VARIABLE) or run.settings.fleet.get("dataset")
    if not place:
        raise UsageError(
            "no-dataset-named", run.settings.refused.get("fleet.dataset", "no dataset is named"),
            hint=f"--dataset DATASET, {VARIABLE}, or dataset in [fleet] of your own settings",
        )  # fmt: skip
    return str(place)


def opened(dataset: str | None, run: Run, tables: Collection[str] | None = None) -> OpenDataset:
    """The newest version of the dataset that is meant, with these tables, or all.

    Raises as `place_of` and `opening.opened` do.
    """
    from ctxctl.dataset import opening

    return opening.opened(place_of(dataset, run), tables)


def given_values(
    flags: dict[str, str | None], params: Sequence[str] | None, parameters: Sequence[Parameter] | None
) -> dict[str, Any]:
    """What was given, by parameter, as the values that they take.

    Args:
        flags: Of the options that are parameters of every question, what was typed; None: not given.
        params: Of ``--param``, as typed.
        parameters: Those that there are; None: any, as text.

    Raises UsageError (`no-such-parameter`, `bad-parameter`, `bad-time`, `needs-parameter`).
    """
    from ctxctl.errors import UsageError

    typed = {name: text for name, text in flags.items() if text is not None}
    for word in params or ():
        name, equals, text = word.partition("=")
        if not equals:
            raise UsageError("bad-parameter", f"--param {word[:80]}: no value", hint="--param NAME=VALUE")
        typed[name.replace("-", "_")] = text
    if parameters is None:
        return {
            name: _timed(name, text) if name in ("since", "until") else _loose(text)
            for name, text in typed.items()
        }
    known = {one.name: one for one in parameters}
    for name in typed:
        if name not in known:
            raise UsageError(
                "no-such-parameter",
                f"there is no parameter {name[:80]!r}",
                hint=f"there are: {', '.join(known)}",
            )
    for one in parameters:
        if one.required and one.name not in typed:
            raise UsageError(
                "needs-parameter", f"{one.name} is not given: {one.says}", hint=f"--param {one.name}=VALUE"
            )
    return {name: _value(known[name], text) for name, text in typed.items()}


def _value(parameter: Parameter, text: str) -> Any:
    from ctxctl.errors import UsageError

    if parameter.type == "time":
        return _timed(parameter.name, text)
    if parameter.name == "label" and "=" not in text:
        raise UsageError("bad-parameter", f"--label {text[:80]}: no value", hint="--label KEY=VALUE")
    if parameter.type == "text":
        return text
    try:
        number = float(text)
        if parameter.type == "number" and abs(number) < 1e15:
            return number
        if parameter.type == "int" and 0 < int(text) <= 10_000_000:
            return int(text)
    except ValueError:
        pass
    raise UsageError("bad-parameter", f"{parameter.name} must be a number, not {text[:80]!r}")


def _timed(name: str, text: str) -> Any:
    import time
    from datetime import UTC, datetime

    from ctxctl.cli.ls import moment_since

    return datetime.fromtimestamp(moment_since(text, time.time(), f"--{name}"), UTC)


def _loose(text: str) -> Any:
    """A value for SQL of somebody's own: a number where it reads as one."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
