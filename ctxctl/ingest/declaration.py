"""What an importer is: a value that says which captures it reads, how they are told, and what reads them.

It names its reader by module and name, so that declaring a format loads nothing that reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ctxctl.entry_points import loaded
from ctxctl.errors import UsageError
from ctxctl.ingest.about import FACT_NAMES, About, explained
from ctxctl.ingest.checkpoint import checkpoint_of
from ctxctl.trace.source import Source

if TYPE_CHECKING:
    from ctxctl.ingest.folder import Folder, Importer
    from ctxctl.ingest.lines import Report

Events = Iterator[dict[str, Any]]


@explained
@dataclass(frozen=True, slots=True)
class Format:
    """One foreign runtime's trace format.

    Modules are named as entry points name them, `module:name`, and are imported when a capture is read.
    """

    name: str
    """As `--read-as` takes it."""
    title: str
    """The name for people."""
    detect: Callable[[bytes], int]
    """How sure the first bytes of a file look like this format: 0 (not at all) to 100."""
    reader: str
    """What reads a file: a function `(source, report)` that yields events, or a class made with
    `(name, report)` of which `events(source)` is asked."""
    about: About
    """What is read, from where, by which rules, and how far it can be trusted."""
    default_policy: str = "recorded"
    """The policy that replays such a trace unless another is asked for."""
    detect_folder: Callable[[Folder], int] | None = None
    """How sure a directory is one capture of this format, 0 to 100; reads the heads of few files.

    None where captures are files."""
    folder_reader: str | Callable[[Folder, Report], Events] | None = None
    """What reads a directory: a function `(folder, report)`; None where the reader is a class that has
    `folder_events(folder)`.  Its events carry `source_file` (`Maker.file`)."""
    beside: str | None = None
    """Where several captures of a directory may tell the same: a function `(folder, names, report)` that
    returns for each file a reader which knows of the others."""

    going_on: str | None = None
    """How the import of a file that has grown is gone on with (`checkpoint.GoingOn`); None: it is made anew.
    What was handed in as `reader` is asked for `events(source)` then."""

    def __post_init__(self) -> None:
        unknown = sorted(set(self.about.claims) - set(FACT_NAMES))
        if unknown:
            raise TypeError(
                f"{self.name} claims {unknown[0]!r}, which is no fact; there are: {', '.join(FACT_NAMES)}"
            )

    @property
    def reads_folders(self) -> bool:
        """Whether a directory can be one capture of this format."""
        return self.detect_folder is not None

    def events(self, source: Source, report: Report) -> Events:
        """The file as complete `context_event` records, in an order that replay can follow.

        Problems name the line and byte of the foreign file.  Nothing in the file raises.
        """
        checkpoint = checkpoint_of(source)
        if checkpoint is not None and checkpoint.state:
            going_on: Events = checkpoint.state["reader"].events(source)
            return going_on
        made = loaded(self.reader)
        found: Events = (
            made(self.name, report).events(source) if isinstance(made, type) else made(source, report)
        )
        return found

    def folder_events(self, folder: Folder, report: Report) -> Events:
        """The same as `events`, of a whole directory.

        Raises UsageError (`not-a-folder-format`) for a format whose captures are files.
        """
        if self.detect_folder is None:
            raise UsageError("not-a-folder-format", f"{self.name} captures are files, not directories")
        read = self.folder_reader
        found: Events
        if read is None:
            found = loaded(self.reader)(self.name, report).folder_events(folder)
        else:
            found = (loaded(read) if isinstance(read, str) else read)(folder, report)
        return found

    def read(self, source: Source | Folder, report: Report) -> Events:
        """The events of a file or of a whole directory."""
        if isinstance(source, Source):
            return self.events(source, report)
        return self.folder_events(source, report)

    def readers(self, folder: Folder, names: list[str], report: Report) -> dict[str, Importer]:
        """The reader of each file of a directory: this format, or one that knows of the others beside it."""
        if self.beside is None:
            return dict.fromkeys(names, self)
        found: dict[str, Importer] = loaded(self.beside)(folder, names, report)
        return found
