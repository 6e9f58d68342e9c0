"""The command line: the app, and the one place where an exception becomes a message and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from ctxctl.cli import (
    bisect,
    blame,
    budget,
    calibrate,
    convert,
    cost,
    diff,
    export,
    find,
    formats,
    learn,
    lint,
    log,
    models,
    policies,
    record,
    replay,
    show,
    validate,
    watch,
    why,
)
from ctxctl.errors import CtxctlError, Exit, PluginError, UnreadableError

BUG = 70
"""Exit code of a bug in ctxctl (EX_SOFTWARE), never of bad input."""

_EPILOG = (
    "Exit codes: 0 fine, 1 findings (--strict, --exit-code, validate) or output that cannot be written, "
    "2 wrong usage, 3 unreadable input, 4 something optional is missing, 130 interrupted."
)

app = typer.Typer(
    name="ctxctl",
    help="What the model saw on this turn, why, what changed since the last one, and what it cost.",
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


app.command("replay", short_help="Every step and turn of a trace: UI or report.")(replay.replay)
app.command("watch", short_help="A session while it is written: UI or lines.")(watch.watch)
app.command(
    "record", short_help="Sessions of other programs, while they run.",
    context_settings={"allow_interspersed_args": False},
)(record.record)  # fmt: skip
app.command("diff", short_help="Two frames: what entered and left between them.")(diff.diff)
app.command("show", short_help="One frame: its stages, items, assembled text.")(show.show)
app.command("blame", short_help="Whose each line of a frame's text is, since when.")(blame.blame)
app.command("find", short_help="Steps at which a predicate holds.")(find.find)
app.command("bisect", short_help="Where a predicate turns true, or two traces part.")(bisect.bisect)
app.command("log", short_help="An item's life, from step to step.")(log.log)
app.command("why", short_help="Why an item is, or is not, in a window.")(why.why)
app.command("cost", short_help="What a session cost, and on what.")(cost.cost)
app.command("budget", short_help="Will a planned context fit, and a gate for CI.")(budget.budget)
app.command("lint", short_help="Waste, contradictions and leaks in traces.")(lint.lint)
app.command("validate", short_help="Check a trace against schemas and rules.")(validate.validate)
app.command("import", short_help="Convert foreign captures to a trace.")(convert.convert)
app.command("export", short_help="Write a trace in another form.")(export.export)
app.command("formats", short_help="What can be opened, and what each format tells.")(formats.formats)
app.command("policies", short_help="What a session can be replayed under.")(policies.policies)
app.command("calibrate", short_help="Fit token counts to what providers billed.")(calibrate.calibrate)
app.command("learn", short_help="Complete a client's logs by recordings of it.")(learn.learn)
app.command("models", short_help="Windows, limits and prices of models, offline.")(models.models)


def run(arguments: Sequence[str]) -> int:
    """Run one command; never raises, whatever the input was."""
    from ctxctl.cli.output import complain
    from ctxctl.cli.selection import shielded

    try:
        code = app(args=shielded(arguments), prog_name="ctxctl", standalone_mode=False)
        if code == Exit.INTERRUPTED:  # the parser has turned KeyboardInterrupt into this
            return _interrupted()
        return code if isinstance(code, int) else Exit.OK
    except CtxctlError as error:
        return _told(error)
    except KeyboardInterrupt:
        return _interrupted()
    except SystemExit as error:
        if type(sys.stdout).__name__ == "PacifyFlushWrapper":  # the parser's help met a reader that went away
            return Exit.OK
        return error.code if isinstance(error.code, int) else Exit.OK
    except MemoryError:
        complain("out of memory")
        return Exit.UNREADABLE
    except OSError as error:
        return _failed(error)
    except BaseException as error:  # a panic of a native library is no Exception
        if hasattr(error, "format_message"):
            return _misused(error, arguments)
        return _bug(error)


def _told(error: CtxctlError) -> int:
    """An error's message and hint; of a plug-in's failure, on request, the whole story."""
    from ctxctl.cli.output import complain, note

    if error.__cause__ is not None and isinstance(error, PluginError) and os.environ.get("CTXCTL_TRACEBACK"):
        import traceback

        note("".join(traceback.format_exception(error.__cause__)).rstrip("\n"))
    hint = error.hint
    if isinstance(error, UnreadableError):
        from ctxctl.importers.registry import hint_with_plugins

        hint = hint_with_plugins(error)
    complain(error.message, hint)
    return int(error.exit_code)


def _interrupted() -> int:
    from ctxctl.cli.output import note

    note("ctxctl: interrupted")
    return Exit.INTERRUPTED


def _failed(error: OSError) -> int:
    """The system refused something that no module expected, or standard output took no help."""
    from ctxctl.cli.output import complain, stdout_failed

    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        failed = stdout_failed(error)
        complain(failed.message)
        return int(failed.exit_code)
    name = f"{error.filename}: " if isinstance(error.filename, str) else ""
    complain(f"{name}{error.strerror or type(error).__name__}")
    return Exit.UNREADABLE


def _misused(error: Any, arguments: Sequence[str]) -> int:
    """Wrong usage found by the parser: its message, or the help if there was no argument at all."""
    from ctxctl.cli.output import complain, note

    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError" and context is not None:
        note(context.get_help())
        return Exit.USAGE
    names = [command.name for command in app.registered_commands]
    known = arguments[:1] if arguments and arguments[0] in names else []
    path = context.command_path if context is not None else " ".join(["ctxctl", *known])
    complain(str(error.format_message()), f"`{path} --help` lists what there is")
    return Exit.USAGE


def _bug(error: BaseException) -> int:
    """One line that says where, without the data that caused it; the whole story only on request."""
    import traceback

    from ctxctl.cli.output import complain, note

    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if f"{os.sep}ctxctl{os.sep}" in f.filename]
    where = ""
    if ours:
        name = ours[-1].filename.rpartition(f"{os.sep}ctxctl{os.sep}")[2]
        where = f" at {name}:{ours[-1].lineno}"
    if os.environ.get("CTXCTL_TRACEBACK"):
        note("".join(traceback.format_exception(error)).rstrip("\n"))
    complain(
        f"bug in ctxctl: {type(error).__name__}{where}",
        "please report it, with what CTXCTL_TRACEBACK=1 prints (it may quote the trace)",
    )
    return BUG


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
