"""What commands do that are given a directory of captures: find them, ask them, and tell what went wrong."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ctxctl.cli.output import note
from ctxctl.config import Settings
from ctxctl.errors import Exit
from ctxctl.model.problem import Problem

if TYPE_CHECKING:
    from ctxctl.cli.run import Run
    from ctxctl.fleet.asking import Asker, Failed, Question
    from ctxctl.fleet.captures import CaptureFile
    from ctxctl.fleet.store import AnswerStore

_PART = 8
"""Which part of the cache's room the answers may take: one in so many."""


class Fleet(NamedTuple):
    """A directory of several captures, ready to be asked."""

    directory: str
    captures: list[CaptureFile]
    asker: Asker
    rests_on: str


@contextmanager
def fleet(path: str, run: Run, doing: str, *, alone: bool = False) -> Iterator[Fleet | None]:
    """The captures of a directory, with a progress line; None where the path is one capture, or a file.

    With `alone`, such a capture is a fleet of one; standard input never is.  Raises UsageError
    (`unknown-format`), and with `alone` what `open_capture` raises.
    """
    if path == "-" or not (alone or os.path.isdir(path)):
        yield None
        return
    from ctxctl.fleet.asking import Asker
    from ctxctl.fleet.surroundings import surroundings

    settings = run.settings
    rests_on = surroundings(kept_things(settings.calibration))
    with ExitStack() as open_things:
        open_things.enter_context(run.out.progress(doing))
        store = open_things.enter_context(answers(settings.cache))
        asker = Asker(path, store, run.out.progressed)
        captures = asker.captures(settings.read_as, rests_on) if os.path.isdir(path) else []
        if alone and not captures:
            place, one = _single(path, settings.read_as)
            captures, asker = [one], Asker(place, store, run.out.progressed)
        if captures:
            yield Fleet(path, captures, asker, rests_on)
            return
    yield None


def _single(path: str, format_name: str | None) -> tuple[str, CaptureFile]:
    """A capture by itself and the directory that it lies in; of a directory with one trace, that trace."""
    from ctxctl.fleet.captures import NATIVE, CaptureFile
    from ctxctl.importers.capture import open_capture
    from ctxctl.trace.inputs import real_place

    with open_capture(path, format_name) as capture:
        found = NATIVE if capture.format is None else capture.format.name
        place = real_place(capture.source.path or path)
    return os.fspath(place.parent), CaptureFile(place.name, found)


@contextmanager
def answers(cache: Mapping[str, int]) -> Iterator[AnswerStore | None]:
    """Where answers are kept; None where nothing is to be kept."""
    from ctxctl.fleet.store import FILE_NAME, AnswerStore
    from ctxctl.trace.cache_files import cache_directory

    directory = cache_directory()
    if directory is None:
        yield None
        return
    with AnswerStore(directory / "answers" / FILE_NAME, cache.get("max", 1 << 31) // _PART) as store:
        yield store


def kept_things(calibration: str) -> Iterable[Path]:
    """What the user keeps that answers depend on: calibrations and learned sets."""
    from ctxctl.session.learned.place import sets_folder
    from ctxctl.tokens.calibrate.store import folder

    return (folder(), sets_folder(), Path(calibration))


def asked_settings(settings: Settings) -> Settings:
    """The settings that answers may depend on, without those of views: as a part of what is asked."""
    return Settings(
        target=settings.target, model=settings.model, encoding=settings.encoding, policy=settings.policy,
        calibration=settings.calibration, learned=settings.learned, models=settings.models,
    )  # fmt: skip


def in_order(
    fleet: Fleet, question: Question, more: Mapping[str, bytes] | None = None
) -> Iterator[tuple[str, bytes | Failed]]:
    """Each capture's answer in the order of their names, whichever is there first."""
    waiting = deque(one.name for one in fleet.captures)
    early: dict[str, bytes | Failed] = {}
    for one, data in fleet.asker.ask(question, fleet.captures, more, largest_first=False):
        early[one.name] = data
        while waiting and waiting[0] in early:
            name = waiting.popleft()
            yield name, early.pop(name)


class Told(NamedTuple):
    """What one capture has to say beside its answer."""

    name: str
    problems: Sequence[Problem]
    number: int
    """How many problems there were, those not kept included."""


def failure(name: str, why: Failed) -> Told:
    """A capture that could not be read, as its problem."""
    return Told(name, [Problem(0, 0, why.slug, why.message)], 1)


def problem_lines(told: Iterable[Told]) -> Iterator[bytes]:
    """Problems of all captures as lines of JSON."""
    from ctxctl.report import jsonout

    for one in told:
        for problem in one.problems:
            yield jsonout.line(jsonout.problem(problem, source=one.name))


def tell_all(directory: str, told: Iterable[Told], run: Run) -> None:
    """Problems of all captures: as JSON on standard output, else on standard error, no more than allowed."""
    from ctxctl.report.tables import listed, problem_line, unshown_line

    if run.json:
        for data in problem_lines(told):
            run.out.write(data)
        return
    cap = None if run.everything else run.settings.problems
    shown: list[str] = []
    count = 0
    for one in told:
        count += one.number
        room = None if cap is None else max(cap - len(shown), 0)
        path = os.path.join(directory, one.name)
        shown += [problem_line(path, problem) for problem in listed(one.problems, room)]
    run.out.flush()
    for line in shown:
        note(line)
    if count > len(shown):
        note(unshown_line(directory, count - len(shown), count))


def verdict(findings: int, run: Run) -> Exit:
    """The exit code: under ``--strict``, problems are findings."""
    return Exit.FINDINGS if run.settings.strict and findings else Exit.OK
