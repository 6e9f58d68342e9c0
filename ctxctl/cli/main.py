"""The command line: the one place where an exception becomes a message and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from ctxctl.cli.commands import named_words
from ctxctl.cli.ordinary import ordinary
from ctxctl.cli.parameters import Done
from ctxctl.cli.selection import shielded
from ctxctl.errors import CtxctlError, Exit, PluginError, UnreadableError

BUG = 70
"""Exit code of a bug in ctxctl (EX_SOFTWARE), never of bad input."""


def run(arguments: Sequence[str]) -> int:
    """Run one command; never raises, whatever the input was."""
    try:
        return _run(arguments)
    finally:
        if output := sys.modules.get("ctxctl.cli.output"):
            output.leave_pager()


def _run(arguments: Sequence[str]) -> int:
    try:
        return _ended(shielded(arguments))
    except CtxctlError as error:
        return _told(error)
    except KeyboardInterrupt:
        return _interrupted()
    except SystemExit as error:
        if type(sys.stdout).__name__ == "PacifyFlushWrapper":  # the parser's help met a reader that went away
            return Exit.OK
        return error.code if isinstance(error.code, int) else Exit.OK
    except MemoryError:
        return _out_of_memory()
    except OSError as error:
        return _failed(error)
    except BaseException as error:  # a panic of a native library is no Exception
        if hasattr(error, "format_message"):
            return _misused(error, arguments)
        return _bug(error)


def _ended(arguments: Sequence[str]) -> int:
    """Run one command to its end; its exit code.  Raises whatever it raises."""
    if not arguments and not os.environ.get("_CTXCTL_COMPLETE"):
        from ctxctl.cli.picker import at_terminal, from_all

        if at_terminal():
            return from_all()
    call = ordinary(arguments)
    code = _by_typer(arguments) if call is None else _called(call)
    if code == Exit.INTERRUPTED:  # Typer has turned KeyboardInterrupt into this
        return _interrupted()
    return code if isinstance(code, int) else Exit.OK


def _by_typer(arguments: Sequence[str]) -> Any:
    from ctxctl.cli.app import app  # slow to import

    return app(args=arguments, prog_name="ctxctl", standalone_mode=False)


def _called(call: Callable[[], None]) -> int:
    try:
        call()
    except Done as done:
        return done.code
    except BrokenPipeError:  # whoever read has gone: nobody is left to tell
        from ctxctl.cli.output import abandon_stdout

        abandon_stdout()
    return Exit.OK


def _out_of_memory() -> int:
    from ctxctl.cli.output import complain

    complain("out of memory")
    return Exit.UNREADABLE


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
        lost = _printing_help(error)
    except (OSError, ValueError):
        lost = True
    if lost:
        failed = stdout_failed(error)
        complain(failed.message)
        return int(failed.exit_code)
    name = f"{error.filename}: " if isinstance(error.filename, str) else ""
    complain(f"{name}{error.strerror or type(error).__name__}")
    return Exit.UNREADABLE


def _printing_help(error: OSError) -> bool:
    """Whether the parser met the error as it printed: an unbuffered stream fails there and not at its end."""
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    module = at.tb_frame.f_globals.get("__name__", "") if at is not None else ""
    return error.filename is None and module.partition(".")[0] in ("click", "typer", "rich")


def _misused(error: Any, arguments: Sequence[str]) -> int:
    """Wrong usage found by the parser: its message, or the help if there was no argument at all."""
    from ctxctl.cli.output import complain, note

    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError" and context is not None:
        note(context.get_help())
        return Exit.USAGE
    known = arguments[: named_words(arguments)]
    path = context.command_path if context is not None else " ".join(["ctxctl", *known])
    hint = f"`{path} --help` lists commands and options"
    if arguments and not known and context is not None and os.path.exists(arguments[0]):
        from shlex import quote

        from ctxctl.text import visible

        hint = f"to open it: ctxctl replay {quote(visible(arguments[0]))}"
    complain(str(error.format_message()), hint)
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
