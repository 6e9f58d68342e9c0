"""What every command that reads a trace does: settings, opening, the header, problems, the exit code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from ctxctl.cli.options import CommonOptions
from ctxctl.cli.output import Output, hush, narrate, note
from ctxctl.cli.parameters import Done
from ctxctl.errors import Exit
from ctxctl.model.whatif import AS_RECORDED, Limits, Replacement
from ctxctl.report.heading import Header, base_name

if TYPE_CHECKING:
    from ctxctl.config import Settings
    from ctxctl.model.problem import Problem
    from ctxctl.session import Inspector


class Run(NamedTuple):
    """One run of a command: what it was asked for, under which settings, and where it prints."""

    options: CommonOptions
    ordinary: Settings
    """The settings before the options had their say."""
    settings: Settings
    out: Output
    limits: Limits = AS_RECORDED
    """Limits that are supposed in place of the recorded ones."""
    drop: tuple[str, ...] = ()
    """Selectors of items that are supposed never to have been there."""
    texts: tuple[Replacement, ...] = ()
    """Texts that are supposed in the place of items' own."""

    @property
    def json(self) -> bool:
        """Whether lines of JSON are printed."""
        return self.options.json

    @property
    def everything(self) -> bool:
        """Whether skipped items and all problems are listed."""
        return self.options.everything


def begin(
    options: CommonOptions, *, limits: Limits = AS_RECORDED, drop: Sequence[str] = (),
    texts: tuple[Replacement, ...] = (),
) -> Run:  # fmt: skip
    """Load the settings, apply the options, and open the output; once a run.

    A plain report of a command with ``--no-pager`` is paged on a terminal.

    Raises UsageError for a setting, and OutputError where standard output is closed.
    """
    from ctxctl import config
    from ctxctl.whole_file import begin_noting

    hush(quiet=options.quiet)
    begin_noting()  # what is read is never written over (cli.destination)
    if options.format is not None:
        note_old_format()
    ordinary = config.load()
    settings = config.with_flags(ordinary, options.flags())
    return Run(
        options,
        ordinary,
        settings,
        Output(color=settings.color, paged=options.paged),
        limits,
        tuple(drop),
        texts,
    )


def note_old_format() -> None:
    """Say what the old spelling of ``--read-as`` is now called."""
    narrate("ctxctl: --format is now called --read-as; the old name still works")


def inspector_of(path: str, run: Run) -> Inspector:
    """An inspector on a trace, to be closed by the caller; raises what `Inspector.open` raises."""
    from ctxctl.session import Inspector

    settings = run.settings
    return Inspector.open(
        path,
        target=settings.target,
        model=settings.model,
        encoding=settings.encoding,
        policy=settings.policy,
        format=settings.read_as,
        limits=run.limits,
        drop=run.drop,
        set=run.texts,
        calibration=settings.calibration,
        learned=settings.learned,
        own_models=settings.models,
    )


@contextmanager
def opened(path: str, run: Run, doing: str) -> Iterator[Inspector]:
    """An inspector on a trace, with a progress line for as long as it is open and nothing is printed.

    Raises what `Inspector.open` raises.
    """
    with run.out.progress(doing), inspector_of(path, run) as inspector:
        yield inspector


@contextmanager
def reported(path: str, run: Run, doing: str) -> Iterator[Inspector]:
    """As `opened`, for a command that prints what it finds in one trace.

    Behind what was printed it puts the problems of the trace, and ends the command with its exit code.
    """
    with opened(path, run, doing) as inspector:
        yield inspector
        run.out.flush()
        tell_problems(inspector, run)
        run.out.flush()
        code = verdict(inspector, run)
    raise Done(code)


def header(
    inspector: Inspector, *, thread: str | None = None, turn: str | None = None, late: int = 0
) -> Header:
    """The resolved parameters of a replay."""
    from ctxctl import __version__
    from ctxctl.session.calibration import calibration_note
    from ctxctl.session.learned import choice

    params = inspector.params
    if inspector.learned is not None:
        inspector.learned.told = True
    return Header(
        trace=base_name(inspector.name),
        format=inspector.format,
        policy=params.policy,
        model=params.model,
        encoding=params.encoding,
        encoding_known=not params.assumed,
        assumed=params.assumed,
        target=params.target,
        version=__version__,
        thread=thread,
        turn=turn,
        late=late,
        limits=params.limits,
        edited=params.edited,
        fitting=params.fitting,
        calibration=calibration_note(params.calibration, params.encoding, params.first_model, params.target),
        doubts=inspector.doubts,
        learned=choice.described_learned(inspector.learned, inspector.replay),
    )


def tell_learned(inspector: Inspector, *, always: bool = False) -> None:
    """Name what a log was completed by on standard error, unless a header has: never done in silence."""
    from ctxctl.text import visible

    used = inspector.learned
    if used is not None and (always or not used.told):
        used.told = True
        what = f"{visible(used.learned.name)}, {used.items:,} items, digest {used.learned.digest}"
        note(f"{visible(base_name(inspector.name))}: learned {what}; --no-learned goes without")


def tell_problems(inspector: Inspector, run: Run) -> None:
    """Problems as lines of JSON on standard output, or as plain lines on standard error."""
    from ctxctl.report import jsonout

    tell_learned(inspector)
    problems = inspector.problems
    if run.json:
        for problem in problems:
            run.out.json(jsonout.problem(problem))
        return
    if not problems:
        return
    run.out.flush()
    note_problems(inspector.name, problems, inspector.problem_count, run)


def note_problems(name: str, problems: Sequence[Problem], count: int, run: Run) -> None:
    """List problems on standard error, unless all are asked for no more than the settings allow.

    Args:
        name: What was read.
        problems: Those that were kept, in order.
        count: How many there were.
        run: The command that read it.
    """
    from ctxctl.report.tables import problem_lines

    cap = None if run.everything else run.settings.problems
    for line in problem_lines(name, problems, count, cap):
        note(line)


def verdict(inspector: Inspector, run: Run, *, differs: bool = False) -> Exit:
    """The exit code: under ``--strict``, problems and a replay that differs are findings."""
    if run.settings.strict and (inspector.finding_count or differs):
        return Exit.FINDINGS
    return Exit.OK
