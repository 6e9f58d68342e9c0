"""From a path to the capture there: a file or a directory, and the format that reads it.

What a directory holds: one capture in several files, or several captures, the sessions of one trace.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ctxctl.errors import UsageError
from ctxctl.trace.guess import is_native
from ctxctl.trace.source import Source, open_source

if TYPE_CHECKING:
    from ctxctl.formats.kit.folder import Folder
    from ctxctl.formats.registry import Format
from collections.abc import Iterator
from typing import Any

from ctxctl.errors import CtxctlError, UnreadableError
from ctxctl.formats import registry
from ctxctl.formats.fidelity import About
from ctxctl.formats.kit.folder import Folder, Importer, Neighbourly, several
from ctxctl.formats.lines import Report
from ctxctl.formats.registry import FolderFormat, Format

NATIVE = "native"
_HEAD = 1 << 16


class Capture(NamedTuple):
    """What a path names; the caller closes the source."""

    source: Source | Folder
    format: Format | None
    """None: a native trace, or nothing that is known (which the reader of traces tells in its own words)."""

    def __enter__(self) -> Capture:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the file, if it is one."""
        if isinstance(self.source, Source):
            self.source.close()


def open_capture(path: str | Path, format_name: str | None = None) -> Capture:
    """Open a file, a directory or standard input (`-`), and find its format unless one is named.

    Raises what `open_source` and `folders.detect` raise, and UsageError (`unknown-format`,
    `not-a-folder-format`).
    """
    if str(path) not in ("", "-") and Path(path).is_dir():
        return _folder(Path(path), format_name)
    source = open_source(path)
    try:
        # The registry is slow to import, and a native trace does not need it.
        if format_name == NATIVE or (format_name is None and is_native(source.read(0, _HEAD))):
            return Capture(source, None)
        from ctxctl.formats import registry

        found = registry.detect(source) if format_name is None else registry.by_name(format_name)
        return Capture(source, found)
    except BaseException:
        source.close()
        raise


def _folder(path: Path, format_name: str | None) -> Capture:
    """A directory: one capture in several files, several captures, or a single trace."""
    from ctxctl.formats import registry
    from ctxctl.formats.kit.folder import Folder

    folder = Folder(str(path), path)
    found = detect(folder) if format_name is None else registry.by_name(format_name)
    if isinstance(found, str):
        return Capture(open_source(path / found), None)
    if not isinstance(found, registry.FolderFormat):
        raise UsageError("not-a-folder-format", f"{found.name} captures are files, not directories")
    return Capture(folder, found)


_SURE = 50
_SHOWN = 5
_MIXED = About(reads="captures of several formats in one directory", places=(), turns="", claims={})


def detect(folder: Folder) -> Format | str:
    """The format that reads a directory, or the name of the one native trace in it.

    Raises:
        UnreadableError: `nothing-known-in-directory`, `several-traces-in-directory`.
    """
    whole = _whole(folder)
    if whole is not None:
        return whole
    found: list[tuple[str, Format]] = []
    traces: list[str] = []
    for name in folder.files:
        head = folder.head(name, registry.HEAD)
        if not head:
            continue
        if is_native(head):
            traces.append(name)
        elif (known := _known(folder, name, head)) is not None:
            found.append((name, known))
    if traces and not found and len(traces) == 1:
        return traces[0]
    if not found:
        raise _refused(folder, traces)
    return Several(found)


def _known(folder: Folder, name: str, head: bytes) -> Format | None:
    try:
        with folder.open(name) as source:
            return registry.of_file(None if source.spooled else source.path, head, source)
    except (CtxctlError, OSError):
        return registry.of_head(head)


def _whole(folder: Folder) -> Format | None:
    best: Format | None = None
    top = _SURE - 1
    for candidate in registry.available():
        if isinstance(candidate, FolderFormat) and isinstance(candidate, Format):
            score = candidate.detect_folder(folder)
            if score > top:
                best, top = candidate, score
    return best


def _refused(folder: Folder, traces: list[str]) -> UnreadableError:
    if traces:
        names = ", ".join(traces[:_SHOWN]) + (" …" if len(traces) > _SHOWN else "")
        return UnreadableError(
            "several-traces-in-directory", f"{folder.name} holds {len(traces)} traces: {names}",
            hint="name one of them",
        )  # fmt: skip
    return UnreadableError(
        "nothing-known-in-directory",
        f"{folder.name}: none of its {len(folder.files)} files is a trace or a known capture",
        hint="ctxctl formats lists what can be opened",
    )


class Several:
    """Captures beside each other, read in the order of their names; a capture without a session is one."""

    def __init__(self, captures: list[tuple[str, Format]]) -> None:
        self._captures = captures
        kinds = {importer.name: importer for _, importer in captures}
        one = next(iter(kinds.values()))
        self.name = one.name if len(kinds) == 1 else "several"
        self.title = one.title if len(kinds) == 1 else "captures of several kinds"
        self.default_policy = one.default_policy if len(kinds) == 1 else "recorded"
        self.about: About = one.about if len(kinds) == 1 else _MIXED

    def detect(self, head: bytes) -> int:
        """Only ever made for a directory."""
        return 0

    def events(self, source: Source, report: Report) -> Iterator[dict[str, Any]]:
        """Not asked for."""
        return iter(())

    def detect_folder(self, folder: Folder) -> int:
        """Only ever made for a directory that nobody claimed as a whole."""
        return 0

    def folder_events(self, folder: Folder, report: Report) -> Iterator[dict[str, Any]]:
        """Each capture's events; ids and sessions are told apart by the file's name."""
        readers: dict[str, Importer] = dict(self._captures)
        for importer in {one.name: one for _, one in self._captures}.values():
            if isinstance(importer, Neighbourly):
                names = [name for name, one in self._captures if one.name == importer.name]
                readers.update(importer.beside(folder, names, report))
        yield from several(folder, list(readers.items()), report)
