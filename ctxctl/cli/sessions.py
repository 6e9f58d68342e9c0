"""The sessions of this machine or of a directory, for commands that list them or take the newest one."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from ctxctl.errors import UnreadableError, UsageError
from ctxctl.model.session_list import ListedSession

if TYPE_CHECKING:
    from ctxctl.cli.run import Run
    from ctxctl.fleet.asking import Asker
    from ctxctl.fleet.session_files import ListPlace
    from ctxctl.fleet.session_list import SessionList
    from ctxctl.fleet.store import AnswerStore

_SUFFIXES = (".jsonl", ".json", ".gz", ".zst", ".db")
"""How names of files end that are taken for traces where an item may be meant."""


class Sessions(NamedTuple):
    """A list of sessions, and who reads them."""

    listed: SessionList
    asker: Asker


@contextmanager
def machine_sessions(run: Run) -> Iterator[Sessions]:
    """The sessions in the places of known clients, and those that lie in the current directory itself."""
    from ctxctl.cli.fleet import answers, kept_things
    from ctxctl.fleet.session_files import ListPlace, machine_places
    from ctxctl.fleet.surroundings import surroundings

    rests_on = surroundings(kept_things(run.settings.calibration))
    with answers(run.settings.cache) as store:
        places = machine_places(store, rests_on)
        here = current_directory()
        if here is not None:
            places.append(ListPlace(here, deep=False))
        with _sessions(places, store, rests_on, run) as found:
            yield found


@contextmanager
def directory_sessions(path: str, run: Run) -> Iterator[Sessions]:
    """The captures of a directory, as `ctxctl cost` has them; of a file, or a directory in one capture: it.

    Raises what `open_capture` raises of a file.
    """
    from ctxctl.cli.fleet import answers, fleet, kept_things
    from ctxctl.fleet.session_files import ListPlace
    from ctxctl.fleet.surroundings import surroundings
    from ctxctl.trace.inputs import absolute_path

    top, is_folder = absolute_path(path), os.path.isdir(path)
    with fleet(path, run, "looking for sessions", alone=not is_folder) as found:
        if found is not None:
            top = top if is_folder else os.path.dirname(top)
            named = {os.path.join(top, *one.name.split("/")): one.format for one in found.captures}
            place = ListPlace(top, (), named)
        else:
            whole = _format_of_all(path)
            place = ListPlace(top, (), None if whole is None else {top: whole})
    rests_on = surroundings(kept_things(run.settings.calibration))
    with answers(run.settings.cache) as store, _sessions([place], store, rests_on, run) as made:
        yield made


def _format_of_all(path: str) -> str | None:
    """The format of a directory that is one capture in several files; None for any other."""
    from pathlib import Path

    from ctxctl.importers.registry import format_of_folder
    from ctxctl.importers.session_places import APART
    from ctxctl.ingest.folder import Folder

    found = format_of_folder(Folder(path, Path(path)))
    return None if found is None or found.name in APART else found.name


@contextmanager
def _sessions(
    places: Sequence[ListPlace], store: AnswerStore | None, rests_on: str, run: Run
) -> Iterator[Sessions]:
    import msgspec

    from ctxctl.analysis.cost_groups import CostWords
    from ctxctl.fleet.asking import Asker, Question
    from ctxctl.fleet.session_list import WORK, SessionList

    settings = run.settings
    words = CostWords(
        settings.target, settings.model, settings.encoding, settings.policy, settings.calibration,
        settings.learned, settings.models,
    )  # fmt: skip
    listed = SessionList(places, store, Question(WORK, msgspec.msgpack.encode(words), rests_on))
    try:
        yield Sessions(listed, Asker("/", store, run.out.progressed))
    finally:
        listed.save()


def current_directory() -> str | None:
    """The current directory; None where it is gone."""
    try:
        return os.getcwd()
    except OSError:
        return None


def is_here(session: ListedSession, here: str) -> bool:
    """Whether a session was recorded in a directory or below it, or its file lies in it."""
    where = session.directory
    below = here.rstrip("/") + "/"
    return (where is not None and f"{where.rstrip('/')}/".startswith(below)) or (
        os.path.dirname(session.path) == here.rstrip("/")
    )


def newest_here(run: Run) -> str:
    """The session of the current directory that was written last; said on standard error.

    Raises UnreadableError (`no-session-here`).
    """
    from ctxctl.cli.output import narrate
    from ctxctl.report.session_list import age, short_path
    from ctxctl.wording import plural

    here = current_directory()
    now = time.time()
    with machine_sessions(run) as sessions:
        found = [
            one for one in sessions.listed.scan(now, live=False) if here is not None and is_here(one, here)
        ]
    if not found or here is None:
        raise UnreadableError(
            "no-session-here",
            f"no session was recorded in {short_path(here or '.')} or below it, or is stored there",
            hint="name a file; `ctxctl ls` lists the sessions of this machine, `ctxctl` alone lets you pick",
        )
    one = found[0]
    several = f", of {plural(len(found), 'session')} here" if len(found) > 1 else ""
    narrate(f"ctxctl: newest session here: {one.path} ({one.format}, written {age(one, now)} ago{several})")
    return one.path


def given_or_newest(trace: str | None, run: Run) -> str:
    """The trace of a command line: with its address, if any; without a name, of `newest_here`."""
    if trace is None:
        return newest_here(run)
    if trace.startswith("@") and not os.path.exists(trace):
        return f"{newest_here(run)}{trace}"
    return trace


def trace_and_item(first: str | None, second: str | None, run: Run) -> tuple[str, str]:
    """The trace and the item of a command line; an item alone is one of `newest_here`.

    Raises UsageError (`no-item`) where no item is named.
    """
    if second is not None:
        return given_or_newest(first, run), second
    if first is None or first == "-" or first.startswith("@") or _is_trace(first):
        raise UsageError(
            "no-item", "no item is named" if first is None else f"{first!r} is a trace, but no item is named",
            hint="name it by its id, title, source, or a piece of its text",
        )  # fmt: skip
    return newest_here(run), first


def _is_trace(argument: str) -> bool:
    """Whether a word that stands alone names a trace or a frame of one, and not an item."""
    from pathlib import Path

    from ctxctl.cli.selection import split_frame
    from ctxctl.session.live_choice import kind_of

    try:
        trace = split_frame(argument).trace
    except UsageError:
        return False
    if os.path.isdir(trace):
        return True
    known = kind_of(Path(trace), None)
    return known in ("native", "capture") and trace.endswith(_SUFFIXES)


def holds_several(path: str, run: Run) -> bool:
    """Whether a path is a directory of several captures."""
    if path == "-" or not os.path.isdir(path):
        return False
    from ctxctl.cli.fleet import fleet

    with fleet(path, run, "looking for sessions") as found:
        return found is not None
