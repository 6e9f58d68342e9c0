"""Which captures a directory holds, each of them a session (or several) that is read by itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ctxctl.ingest.folder import Folder
    from ctxctl.model.problem import Problem

NATIVE: Final = "native"
"""The format of a trace of our own."""
_APART: Final = "claude-code"
"""The format whose directories hold many sessions, each in a file that is read with what lies beside it."""


class CaptureFile(msgspec.Struct, frozen=True, array_like=True):
    """One capture of a directory."""

    name: str
    """Its path relative to the directory, `/`-separated."""
    format: str
    """As `--read-as` takes it."""


def captures_in(path: str, format_name: str | None = None) -> list[CaptureFile]:
    """The captures under a directory, by name; none where all of it is one capture, in one file or several.

    A directory within it that is one capture in several files is one.  With a format, only its captures.
    Raises UsageError (`unknown-format`).
    """
    from ctxctl.importers import registry
    from ctxctl.importers.claude_code import main_transcripts
    from ctxctl.ingest.folder import Folder

    folder = Folder(path, Path(path))
    if format_name is None:
        whole = registry.format_of_folder(folder)
    else:
        named = None if format_name == NATIVE else registry.by_name(format_name)
        whole = named if named is not None and named.reads_folders else None
        format_name = NATIVE if named is None else named.name
    if whole is not None:
        found = [CaptureFile(name, _APART) for name in main_transcripts(folder.files)]
        return found if whole.name == _APART and len(found) > 1 else []
    found = [*_found_in(folder)]
    own = [one.name for one in found if one.format == _APART]
    mains = set(main_transcripts(own))
    kept = [
        one
        for one in found
        if format_name in (None, one.format) and (one.format != _APART or one.name in mains)
    ]
    return sorted(kept, key=lambda one: one.name) if len(kept) > 1 else []


def _found_in(folder: Folder) -> Iterator[CaptureFile]:
    """Directories that are one capture, and the files elsewhere that are."""
    from ctxctl.importers import registry
    from ctxctl.ingest.folder import Folder

    known: dict[str, str | None] = {"": None}
    """By directory, the one that is a capture: itself, or one that it is in."""
    for name in folder.files:
        parts = name.split("/")[:-1]
        for depth in range(1, len(parts) + 1):
            inside = "/".join(parts[:depth])
            if inside in known:
                continue
            known[inside] = known["/".join(parts[: depth - 1])]
            if known[inside] is not None:
                continue
            whole = registry.format_of_folder(Folder(inside, folder.path / inside))
            if whole is not None and whole.name != _APART:
                known[inside] = inside
                yield CaptureFile(inside, whole.name)
        if known["/".join(parts)] is None:
            kind = registry.format_in(folder, name)
            if kind is not None:
                yield CaptureFile(name, kind)


def listed(path: str, _format: str, words: bytes, _more: bytes) -> tuple[bytes, bool]:
    """`captures_in` as a piece of work; plug-ins may find something else tomorrow."""
    from ctxctl.importers import registry

    found = captures_in(path, msgspec.msgpack.decode(words, type=str | None))
    return msgspec.msgpack.encode(found), registry.only_ours()


_PASSING: Final = ("needs-", "plugin-", "not-readable", "read-failed", "no-space")
"""How slugs of problems begin that are of this machine at this time, and not of the capture."""


def lasting(format_name: str, policy: str | None, problems: Iterable[Problem]) -> bool:
    """Whether a capture is read the same way tomorrow: by our own code, and without what may pass."""
    from ctxctl.importers import registry
    from ctxctl.policies.registry import is_own

    native = format_name == NATIVE
    ours = native or registry.is_ours(registry.by_name(format_name))
    named = policy is None or is_own(policy.partition(":")[0])
    return ours and named and not any(problem.slug.startswith(_PASSING) for problem in problems)
