"""Which captures a directory holds, each of them a session (or several) that is read by itself."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from ctxctl.model.problem import may_pass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ctxctl.importers.transcript_folders import KnownFile
    from ctxctl.ingest.folder import Folder
    from ctxctl.model.problem import Problem

NATIVE: Final = "native"
"""The format of a trace of our own."""
UNREAD: Final = ""
"""The format of what nobody could look at."""


class CaptureFile(msgspec.Struct, frozen=True, array_like=True):
    """One capture of a directory."""

    name: str
    """Its path relative to the directory, `/`-separated."""
    format: str
    """As `--read-as` takes it; `UNREAD`: a file that could not be read, or a directory that could not be
    listed: there may be captures."""


def captures_in(
    path: str,
    format_name: str | None = None,
    known: Callable[[str], KnownFile | None] = lambda _: None,
    least: int = 2,
) -> list[CaptureFile]:
    """The captures under a directory, by name; none where all of it is one capture, in one file or several.

    However many files there are, all of them are looked at.

    A directory within it that is one capture in several files is one.  What the system does not let be read
    is named as well, but does not count.

    Args:
        path: The directory.
        format_name: With one, only its captures.
        known: What is known of a file, by its name in the directory: an unchanged one is not looked at.
        least: With fewer captures than that, none; 1: a capture in one file is named too.

    Raises UsageError (`unknown-format`).
    """
    from ctxctl.importers import registry
    from ctxctl.importers.claude_code import main_transcripts
    from ctxctl.importers.transcript_folders import APART, is_mixed, whole_sessions
    from ctxctl.ingest.folder import Folder

    folder = Folder(path, Path(path), sys.maxsize)
    if format_name is None:
        whole = registry.format_of_folder(folder)
    else:
        named = None if format_name == NATIVE else registry.by_name(format_name)
        whole = named if named is not None and named.reads_folders else None
        format_name = NATIVE if named is None else named.name
    if whole is not None and (
        format_name is not None or not is_mixed(folder, whole, registry.format_in, known)
    ):
        found = [CaptureFile(name, APART) for name in main_transcripts(folder.files)]
        unlisted = [CaptureFile(name, UNREAD) for name in folder.unlisted]
        return found + unlisted if whole.name == APART and len(found) >= least else []
    found = [*_found_in(folder, known)]
    whole_ones = whole_sessions([(one.name, one.format) for one in found])
    kept = [
        one
        for one in found
        if one.format != UNREAD and format_name in (None, one.format) and one.name in whole_ones
    ]
    unread = [
        *(one for one in found if one.format == UNREAD),
        *(CaptureFile(name, UNREAD) for name in folder.unlisted),
    ]
    return sorted(kept + unread, key=lambda one: one.name) if len(kept) >= least else []


def _found_in(folder: Folder, known: Callable[[str], KnownFile | None]) -> Iterator[CaptureFile]:
    """Directories that are one capture, and the files elsewhere that are."""
    from ctxctl.importers import registry
    from ctxctl.importers.transcript_folders import APART
    from ctxctl.ingest.folder import Folder, why_unread

    inside_of: dict[str, str | None] = {"": None}
    """By directory, the one that is a capture: itself, or one that it is in."""
    likely: str | None = None
    apart = {name.rpartition("/")[0] for name in folder.files if known(name) is not None}
    """Directories that hold captures, and so are none."""
    for name in folder.files:
        parts = name.split("/")[:-1]
        for depth in range(1, len(parts) + 1):
            inside = "/".join(parts[:depth])
            if inside in inside_of:
                continue
            inside_of[inside] = inside_of["/".join(parts[: depth - 1])]
            if inside_of[inside] is not None:
                continue
            if inside in apart:
                continue
            whole = registry.format_of_folder(Folder(inside, folder.path / inside))
            if whole is not None and whole.name != APART:
                inside_of[inside] = inside
                yield CaptureFile(inside, whole.name)
        if inside_of["/".join(parts)] is None:
            before = known(name)
            same = before is not None and before.unchanged
            kind = before.format if before is not None and same else registry.format_in(folder, name, likely)
            if kind is not None:
                likely = kind
                yield CaptureFile(name, kind)
            elif why_unread(folder.path / name) is not None:
                yield CaptureFile(name, UNREAD)


def by_bytes(path: str, _format: str, words: bytes, _more: bytes) -> tuple[bytes, bool]:
    """`captures_in` as a piece of work; plug-ins may find something else tomorrow."""
    from ctxctl.importers import registry

    found = captures_in(path, msgspec.msgpack.decode(words, type=str | None))
    # A file's name may be no UTF-8, which texts of MessagePack are.
    rows = [(os.fsencode(one.name), one.format) for one in found]
    return msgspec.msgpack.encode(rows), registry.only_ours()


def of_bytes(data: bytes) -> list[CaptureFile]:
    """The captures that `by_bytes` found."""
    rows = msgspec.msgpack.decode(data, type=list[tuple[bytes, str]])
    return [CaptureFile(os.fsdecode(name), kind) for name, kind in rows]


def lasting(format_name: str, policy: str | None, problems: Iterable[Problem]) -> bool:
    """Whether a capture is read the same way tomorrow: by our own code, and without what may pass."""
    from ctxctl.importers import registry
    from ctxctl.policies.registry import is_own

    native = format_name == NATIVE
    ours = native or registry.is_ours(registry.by_name(format_name))
    named = policy is None or is_own(policy.partition(":")[0])
    return ours and named and not any(may_pass(problem.slug) for problem in problems)
