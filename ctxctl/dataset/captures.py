"""Which captures there are under the places that `fleet add` is given."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from ctxctl.dataset.add import Found
from ctxctl.errors import CtxctlError, UnreadableError
from ctxctl.fleet.captures import NATIVE, UNREAD, captures_in
from ctxctl.importers.capture import open_capture
from ctxctl.importers.transcript_folders import KnownFile
from ctxctl.ingest.folder import unread_words
from ctxctl.trace.inputs import FileState, file_state, files_under

_NEVER: Final = FileState(0, 0, 0, 0, 0)


def captures_at(
    places: Iterable[str],
    format_name: str | None,
    failed: Callable[[str, CtxctlError], None],
    known: Callable[[str], KnownFile | None] = lambda _: None,
) -> Iterator[Found]:
    """The captures of some directories and files.

    Args:
        places: As they were typed.
        format_name: The format that all of them are; None: what is detected.
        failed: Told of a place that holds none, and why.
        known: What is known of a file, by its absolute path.

    Raises UsageError("unknown-format").
    """
    for place in places:
        path = os.path.realpath(place)
        # A file that is alone in its directory is itself the capture: others may come beside it.
        try:
            inside = captures_in(path, format_name, _below(path, known), 1) if os.path.isdir(path) else []
        except UnreadableError as error:
            failed(place, error)
            continue
        for one in inside:
            found = os.path.join(path, *one.name.split("/"))
            if one.format == UNREAD:
                failed(
                    os.path.join(place, one.name), UnreadableError("not-readable", unread_words(Path(found)))
                )
            else:
                yield _found(found, one.format)
        if not inside:
            try:
                with open_capture(path, format_name) as capture:
                    name = NATIVE if capture.format is None else capture.format.name
            except CtxctlError as error:
                failed(place, error)
                continue
            yield _found(path, name)


def _below(path: str, known: Callable[[str], KnownFile | None]) -> Callable[[str], KnownFile | None]:
    """What is known of a file by its name in a directory."""
    return lambda name: known(os.path.join(path, *name.split("/")))


def _found(path: str, format_name: str) -> Found:
    if os.path.isdir(path):
        names = (os.path.join(path, name) for name in files_under(Path(path)).files)
        states = [state for name in names if (state := file_state(name)) is not None] or [_NEVER]
    else:
        states = [file_state(path) or _NEVER]
    newest = max(state.mtime_ns for state in states)
    month = datetime.fromtimestamp(newest / 1e9, UTC).strftime("%Y-%m")
    now = time.time()
    settled = all(state.settled(now) for state in states)
    return Found(path, format_name, sum(state.size for state in states), month, settled)
