"""``ctxctl record``: sessions of other programs, while they run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ctxctl.cli import options as opt
from ctxctl.cli.parameters import Argument, Done, Option

if TYPE_CHECKING:
    from ctxctl.record.options import Options

_PORT = 4318
"""Of the receivers: what OTLP/HTTP has by its specification."""

Command = Annotated[
    list[str] | None,
    Argument(
        metavar="[-- COMMAND...]",
        help="Run this program with its model calls going through a recording proxy; "
        "with --mcp: the MCP server to run.",
        show_default=False,
    ),
]
Output = Annotated[
    str | None,
    Option(
        "--output", "-o", metavar="FILE",
        help="Trace to append to. Default: ctxctl-DATE-TIME.jsonl here.", show_default=False,
    ),
]  # fmt: skip
Proxy = Annotated[bool, Option("--proxy", help="Run the proxy alone, for programs started elsewhere.")]
Otlp = Annotated[bool, Option("--otlp", help="Receive OpenTelemetry GenAI spans and events (OTLP/HTTP).")]
Events = Annotated[bool, Option("--events", help="Receive events: POST /v1/events, NDJSON.")]
Mcp = Annotated[bool, Option("--mcp", help="Sit between an MCP client and the server COMMAND, over stdio.")]
Stdin = Annotated[bool, Option("--stdin", help="Read events, or any known format, from standard input.")]
Watch = Annotated[
    Path | None,
    Option(
        "--watch", metavar="DIR", help="Keep importing the captures that another tool writes there.",
        autocompletion=opt.complete_files, show_default=False,
    ),
]  # fmt: skip
Port = Annotated[
    int | None,
    Option(
        "--port", metavar="N", min=0, max=65535, show_default=False,
        help="Port on 127.0.0.1; 0: any free one. Default: 4318 for --otlp and --events, else any.",
    ),
]  # fmt: skip
Upstream = Annotated[
    list[str] | None,
    Option(
        "--upstream", metavar="NAME=URL", show_default=False,
        help="Send calls to NAME to this URL; NAME is a provider (openai) or a variable that the program"
        " reads. Repeatable.",
    ),
]  # fmt: skip
Session = Annotated[
    str | None, Option("--session", metavar="ID", help="Name of the session.", show_default=False)
]
Source = Annotated[
    str | None,
    Option(
        "--source",
        metavar="NAME",
        help="Name of the application, written to each event as its source.",
        show_default=False,
    ),
]
Redact = Annotated[
    Path | None,
    Option(
        "--redact", metavar="RULES",
        help="Your own redaction rules (TOML), in addition to the built-in ones.",
        autocompletion=opt.complete_files, show_default=False,
    ),
]  # fmt: skip
NoRedact = Annotated[bool, Option("--no-redact", help="Leave secrets in the trace.")]
Fsync = Annotated[bool, Option("--fsync", help="Wait until each event is on disk.")]
Rotate = Annotated[
    str | None,
    Option(
        "--rotate", metavar="SIZE",
        help="Rename FILE before it grows beyond this size: 100M, 2G; off: never. Default: 1G.",
        show_default=False,
    ),
]  # fmt: skip


@opt.takes("read_as redact no_redact fsync rotate quiet")
def record(
    options: opt.CommonOptions,
    command: Command = None,
    output: Output = None,
    proxy: Proxy = False,
    otlp: Otlp = False,
    events: Events = False,
    mcp: Mcp = False,
    stdin: Stdin = False,
    watch: Watch = None,
    port: Port = None,
    upstream: Upstream = None,
    session: Session = None,
    source: Source = None,
    redact: Redact = None,
    no_redact: NoRedact = False,
    fsync: Fsync = False,
    rotate: Rotate = None,
) -> None:
    """Record sessions as they happen: run a program through a recording proxy, or receive its events.

    Give one of -- COMMAND, --proxy, --otlp and/or --events, --mcp -- SERVER, --stdin, --watch DIR.
    Secrets are replaced before anything is written. To follow the recording live: ctxctl watch FILE.
    """
    # Once no more files can be opened, what tells of that cannot be imported any more.
    import ctxctl.cli.output  # noqa: F401

    if options.format is not None:
        from ctxctl.cli.run import note_old_format

        note_old_format()
    modes = {
        "--proxy": proxy, "--otlp": otlp, "--events": events, "--mcp": mcp, "--stdin": stdin,
        "--watch": watch is not None,
    }  # fmt: skip
    given = [name for name, on in modes.items() if on]
    _check(given, command or [], port=port, format=options.capture_format, session=session, rotate=rotate)
    _refuse_beside("--upstream", bool(upstream), given[0] if given else "-- COMMAND", "-- COMMAND", "--proxy")
    recording = _options(
        output, session=session, source=source, redact=_redaction(redact, no_redact), fsync=fsync,
        rotate=rotate, quiet=options.quiet,
    )  # fmt: skip
    code = _run(
        given,
        command or [],
        recording,
        port=port,
        watch=watch,
        format_name=options.capture_format,
        upstreams=upstream or [],
    )
    raise Done(code)


def _run(
    given: list[str], command: list[str], options: Options, *, port: int | None, watch: Path | None,
    format_name: str | None, upstreams: list[str],
) -> int:  # fmt: skip
    """The mode's exit code; each is imported only here, as most need what others do not."""
    if "--mcp" in given:
        from ctxctl.record.mcp import tap

        return tap(command, options)
    if "--stdin" in given:
        from ctxctl.record.stdin import stdin

        return stdin(options, format_name=format_name)
    if watch is not None:
        from ctxctl.record.watch import watch as watch_captures

        return watch_captures(watch, options, format_name=format_name)
    if "--otlp" in given or "--events" in given:
        from ctxctl.record import receive

        otlp, events = "--otlp" in given, "--events" in given
        return receive.serve(options, _PORT if port is None else port, otlp=otlp, events=events)
    from ctxctl.record.proxy import run

    if "--proxy" in given:
        return run.serve(options, 0 if port is None else port, upstreams)
    return run.run_command(command, options, upstreams)


def _check(
    given: list[str], command: list[str], *, port: int | None, format: str | None, session: str | None,  # noqa: A002
    rotate: str | None,
) -> None:  # fmt: skip
    """Raise UsageError where the options do not go together."""
    from ctxctl.errors import UsageError

    if not given and not command:
        raise UsageError(
            "nothing-to-record", "there is nothing to record",
            hint="ctxctl record -- COMMAND, or one of --proxy, --otlp, --events, --mcp -- SERVER, --stdin, "
            "--watch DIR",
        )  # fmt: skip
    if len(given) > 1 and set(given) != {"--otlp", "--events"}:
        why = f"{given[0]} and {given[1]} cannot be combined"
        raise UsageError(
            "record-modes", why,
            hint="give one, or run ctxctl record twice, each with a trace of its own (--otlp and --events "
            "can be combined)",
        )  # fmt: skip
    mode = given[0] if given else "-- COMMAND"
    if mode == "--mcp" and not command:
        raise UsageError(
            "record-modes", "--mcp needs the server to run", hint="ctxctl record --mcp -- SERVER ARGUMENT..."
        )
    if given and mode != "--mcp" and command:
        hint = f"leave out the command, or {mode}"
        if mode == "--proxy":
            hint = "without --proxy, COMMAND runs behind a proxy of its own"
        raise UsageError("record-modes", f"{mode} runs no command, but `{command[0]}` was given", hint=hint)
    _refuse_beside("--port", port is not None, mode, "--proxy", "--otlp", "--events")
    _refuse_beside("--read-as", format is not None, mode, "--stdin", "--watch")
    _refuse_beside(
        "--session", session is not None, mode, "-- COMMAND", "--proxy", "--mcp", "--otlp", "--events"
    )
    _refuse_beside(
        "--rotate", rotate is not None, mode, "-- COMMAND", "--proxy", "--mcp", "--otlp", "--events"
    )


def _refuse_beside(name: str, on: bool, mode: str, *modes: str) -> None:
    from ctxctl.errors import UsageError

    if on and mode not in modes:
        raise UsageError(
            "record-modes", f"{name} cannot be combined with {mode}", hint=f"it works with {', '.join(modes)}"
        )


def _redaction(rules: Path | None, off: bool) -> bool | Path:
    from ctxctl.errors import UsageError

    if off and rules is not None:
        raise UsageError(
            "record-modes", "--redact and --no-redact contradict each other", hint="give one of them"
        )
    return rules if rules is not None else not off


def _options(
    output: str | None, *, session: str | None, source: str | None, redact: bool | Path, fsync: bool,
    rotate: str | None, quiet: bool,
) -> Options:  # fmt: skip
    from ctxctl.errors import UsageError
    from ctxctl.record import options as made

    if output in ("-", ""):
        raise UsageError(
            "output-needed",
            "a recording must be a file, so that others can read it meanwhile",
            hint="give -o FILE",
        )
    return made.Options(
        Path(output) if output is not None else made.default_name(), session=session, source=source,
        redact=redact, fsync=fsync, rotate_bytes=made.ROTATE_BYTES if rotate is None else _rotation(rotate),
        quiet=quiet,
    )  # fmt: skip


def _rotation(text: str) -> int | None:
    """The bytes of ``--rotate``, None for never; raises UsageError("bad-size")."""
    from ctxctl.config import size_of
    from ctxctl.errors import UsageError

    if text.lower() in ("off", "never"):
        return None
    size = size_of(text)
    if size is None or size < 1 << 10:
        raise UsageError(
            "bad-size", f"--rotate {text}: not a size", hint="give at least 1 KiB (500K, 100M, 2G), or off"
        )
    return size
