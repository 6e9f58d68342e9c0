"""From a path to the capture there: a file or a directory, and the format that reads it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ctxctl.errors import UsageError
from ctxctl.trace.source import Source, open_source
from ctxctl.trace.unknown_file import is_native

if TYPE_CHECKING:
    from ctxctl.ingest.about import About
    from ctxctl.ingest.declaration import Format
    from ctxctl.ingest.folder import Folder

NATIVE = "native"
_HEAD = 1 << 16


class Capture(NamedTuple):
    """What a path names; the caller closes the source."""

    source: Source | Folder
    format: Format | None
    """None for a native trace, and for an unknown file, of which the reader of traces tells in its own
    words."""

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

    Raises what `open_source` and `registry.detect_folder` raise, and UsageError (`unknown-format`,
    `not-a-folder-format`).
    """
    if str(path) not in ("", "-") and Path(path).is_dir():
        return _folder(Path(path), format_name)
    source = open_source(path)
    try:
        # The registry is slow to import, and a native trace does not need it.
        if format_name == NATIVE or (format_name is None and is_native(source.read(0, _HEAD))):
            return Capture(source, None)
        from ctxctl.importers import registry

        found = registry.detect(source) if format_name is None else registry.by_name(format_name)
        return Capture(source, found)
    except BaseException:
        source.close()
        raise


def _folder(path: Path, format_name: str | None) -> Capture:
    """Open a directory: one capture in several files, several captures, or a single trace."""
    from ctxctl.importers import registry
    from ctxctl.ingest.folder import Folder

    folder = Folder(str(path), path)
    found = registry.detect_folder(folder) if format_name is None else registry.by_name(format_name)
    if isinstance(found, str):
        source = open_source(path / found)
        source.problems = (*source.problems, *folder.lacking)
        return Capture(source, None)
    if not found.reads_folders:
        raise UsageError("not-a-folder-format", f"{found.name} captures are files, not directories")
    return Capture(folder, found)


def about_format(name: str) -> About | None:
    """What a format can tell of each fact; None for a trace of our own, and for an unknown format."""
    if name == NATIVE:
        return None
    from ctxctl.importers import registry

    try:
        return registry.by_name(name).about
    except UsageError:
        return None
