"""The command line as Typer has it: help, completion, what is wrong with a command line, and every line that
`ordinary` leaves to it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, get_args

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from ctxctl.cli.commands import COMMANDS, Command, words_of
from ctxctl.cli.examples import example_lines
from ctxctl.cli.parameters import Argument, Done, Option

_EPILOG = (
    "Exit codes: 0 fine, 1 findings (lint, check, validate, --strict, ...), nothing found (find, bisect) or "
    "output that cannot be written, 2 wrong usage, 3 unreadable input, 4 something optional is missing, "
    "130 interrupted."
)


class _Commands(TyperGroup):
    """The commands; of those that are only listed, nothing is imported."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.commands = _listed({name: one for name, one in COMMANDS.items() if " " not in name})

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is run or asked for its help, whole."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command if name is None else whole(name), rest


class _Words(TyperGroup):
    """A command that has commands: alone, it is its own."""

    def __init__(self, name: str, own: TyperCommand) -> None:
        super().__init__(
            name=name, help=own.help, short_help=own.short_help, epilog=own.epilog, params=own.params,
            callback=own.callback, invoke_without_command=True, rich_markup_mode=None,
            context_settings=own.context_settings,
        )  # fmt: skip
        self.commands = _listed(words_of(name))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is run or asked for its help, whole."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command if name is None else whole(f"{self.name} {name}"), rest

    def invoke(self, ctx: Any) -> Any:
        """Run the command that is named, or its own."""
        if ctx.invoked_subcommand is None and not (rest := [*ctx._protected_args, *ctx.args]):
            return super().invoke(ctx)
        given = [one.opts[-1] for one in self.params if ctx.params.get(one.name) != one.get_default(ctx)]
        if given:
            ctx.fail(f"{given[0]} belongs after the subcommand: ctxctl {self.name} {rest[0]} {given[0]}")
        self.callback = None
        return super().invoke(ctx)


def _listed(commands: Mapping[str, Command]) -> dict[str, Any]:
    """Commands as a list of them shows them; nothing is imported."""
    return {
        name: TyperCommand(name, short_help=command.line, rich_markup_mode=None)
        for name, command in commands.items()
    }


app = typer.Typer(
    name="ctxctl",
    cls=_Commands,
    help="See what a model saw on each turn, why, what changed, and what it cost. Without a command, on a"
    " terminal, you choose from the sessions of this machine.",
    epilog=_EPILOG,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _version(asked: bool) -> None:
    if asked:
        from ctxctl import __version__
        from ctxctl.cli.output import Output

        out = Output()
        out.lines([f"ctxctl {__version__}"])
        out.flush()
        raise typer.Exit(0)


@app.callback()
def _top(
    version: Annotated[
        bool, typer.Option("--version", "-V", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    pass


def whole(name: str) -> Any:
    """A command with its parameters, as the parser wants it; imports it."""
    command = COMMANDS[name]
    alone = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    examples = "\b\n" + "\n".join(example_lines(name))  # \b: lines stay as they are
    word = name.rpartition(" ")[2]
    alone.command(word, short_help=command.line, epilog=examples, context_settings=_settings(command))(
        declared(command.function())
    )
    own = get_command(alone)
    return _Words(name, own) if words_of(name) and isinstance(own, TyperCommand) else own


def _settings(command: Command) -> dict[str, Any]:
    return {} if command.interspersed else {"allow_interspersed_args": False}


def declared(function: Callable[..., None]) -> Callable[..., None]:
    """A command's function with its parameters declared as Typer reads them, and ended as Typer ends one."""

    def called(**given: Any) -> None:
        try:
            function(**given)
        except Done as done:
            raise typer.Exit(done.code) from None

    signature = inspect.signature(function, eval_str=True)
    parameters = [
        one.replace(annotation=_annotation(one.annotation)) for one in signature.parameters.values()
    ]
    called.__name__, called.__doc__ = function.__name__, function.__doc__
    called.__annotations__ = {one.name: one.annotation for one in parameters}
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return called


def _annotation(annotation: Any) -> Any:
    kind, how = get_args(annotation)
    if isinstance(how, Option):
        return Annotated[kind, typer.Option(*how.flags, **how.said)]
    if isinstance(how, Argument):
        return Annotated[kind, typer.Argument(**how.said)]
    raise TypeError(f"{how!r} declares no parameter")
