"""Formats of other packages: what fails in one is told as that plug-in's failure, and fails nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

from ctxctl.entry_points import Plugin, error_in
from ctxctl.errors import CtxctlError, PluginError
from ctxctl.ingest.declaration import Events, Format

if TYPE_CHECKING:
    from ctxctl.ingest.folder import Folder, Importer
    from ctxctl.ingest.lines import Report
    from ctxctl.trace.source import Source

_HINT: Final = "CTXCTL_TRACEBACK=1 prints its traceback, for whoever wrote the plug-in"
_PROBES: Final = (b"", b"{}\n")
"""Heads that `detect` is asked about to see whether it works at all."""


class _Score:
    """Asks a plug-in's `detect`; one that raises, or gives no number, scores 0 and is remembered."""

    def __init__(self, plugin: Plugin, detect: Callable[[Any], int]) -> None:
        self._plugin = plugin
        self._detect = detect
        self.error: str | None = None

    def __call__(self, asked: Any) -> int:
        try:
            score = self._detect(asked)
            if not isinstance(score, int):
                raise TypeError(f"detect gave {score!r:.40}, and not a whole number from 0 to 100")
        except (Exception, SystemExit) as error:
            self.error = error_in(error, self._plugin.value)
            return 0
        return max(0, min(score, 100))


@dataclass(frozen=True, slots=True)
class PluginFormat(Format):
    """A format as its plug-in declares it, guarded; its errors are PluginErrors (`plugin-failed`)."""

    plugin: Plugin = Plugin("", "")  # noqa: RUF009 - a tuple

    @property
    def broken(self) -> Plugin | None:
        """The plug-in with what failed when it was asked for a score; None where that works."""
        for probe in _PROBES:
            self.detect(probe)
        for score in (self.detect, self.detect_folder):
            if isinstance(score, _Score) and score.error is not None:
                return self.plugin._replace(error=score.error)
        return None

    def events(self, source: Source, report: Report) -> Events:
        """As `Format.events`, each event checked for the shape that everything else relies on."""
        yield from self._guarded(lambda: Format.events(self, source, report))

    def folder_events(self, folder: Folder, report: Report) -> Events:
        """As `Format.folder_events`."""
        yield from self._guarded(lambda: Format.folder_events(self, folder, report))

    def readers(self, folder: Folder, names: list[str], report: Report) -> dict[str, Importer]:
        """As `Format.readers`."""
        try:
            return Format.readers(self, folder, names, report)
        except CtxctlError:
            raise
        except (Exception, SystemExit) as error:
            raise self._failed(error) from error

    def _guarded(self, begin: Callable[[], Events]) -> Iterator[dict[str, Any]]:
        try:
            for event in begin():
                _check(event)
                yield event
        except (CtxctlError, MemoryError):
            raise
        except (Exception, SystemExit) as error:
            raise self._failed(error) from error

    def _failed(self, error: BaseException) -> PluginError:
        readers = [one for one in (self.reader, self.folder_reader, self.beside) if isinstance(one, str)]
        told = error_in(error, self.plugin.value, *readers)
        return PluginError("plugin-failed", f"the plug-in {self.plugin.value} failed: {told}", hint=_HINT)


def guarded(plugin: Plugin) -> Plugin:
    """A plug-in whose format can fail without failing anything else."""
    made = plugin.made
    if not isinstance(made, Format):
        return plugin
    values = {field.name: getattr(made, field.name) for field in fields(Format)}
    values["detect"] = _Score(plugin, made.detect)
    if made.detect_folder is not None:
        values["detect_folder"] = _Score(plugin, made.detect_folder)
    return plugin._replace(made=PluginFormat(**values, plugin=plugin))


def _check(event: Any) -> None:
    if not isinstance(event, dict):
        raise TypeError(f"its reader yielded {type(event).__name__} where an event (a dict) belongs")
    if not isinstance(event.get("event_type"), str):
        raise TypeError("its reader yielded an event without an event_type; make events with ctxctl.ingest")
    marks = event.get("metadata", {})
    if not isinstance(marks, dict) or not isinstance(marks.get("ctxctl", {}), dict):
        raise TypeError("its reader yielded an event whose metadata is no object")
