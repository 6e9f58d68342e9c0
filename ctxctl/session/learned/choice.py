"""Choose the learned set for a log, and measure how well it fits the bills."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ctxctl.model.results import Step, Turn

if TYPE_CHECKING:
    from ctxctl.ingest.folder import Folder
    from ctxctl.session.learned.book import LearnedSet
    from ctxctl.trace.source import Source

AUTO: Final = "auto"
OFF: Final = "none"
TOLERATED: Final = 0.02
"""Largest unexplained share of what was sent without a warning."""


class LearnedUse:
    """A learned set used for a log."""

    def __init__(self, learned: LearnedSet, log: str | None, *, exact: bool, named: bool) -> None:
        self.learned = learned
        self.log = log
        """The version that the log names."""
        self.exact = exact
        """Whether the set is of exactly that version."""
        self.named = named
        """Whether the user named the set."""
        self.items = 0
        """Number of items added, over all threads."""
        self.told = False
        """Whether a header has named it."""
        self.grows = False
        """Whether the log is still being written, so that no bill is searched."""

    def put_into(self, events: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Yield the log's events with the learned items added."""
        from ctxctl.session.learned.insert import LearnedInserter

        inserted = LearnedInserter(self.learned)
        for event in inserted.events(events):
            self.items = inserted.shown
            yield event


class Fit(NamedTuple):
    """The items compared with the main thread's first bill, in tokens of the model."""

    sent: int
    before: int
    """Unrecorded tokens with the log alone."""
    explained: int
    """Tokens of the learned items."""
    left: int
    """Tokens that stay unrecorded; negative if more is shown than was sent."""

    @property
    def warns(self) -> bool:
        """Whether the unexplained part exceeds `TOLERATED`."""
        return abs(self.left) > TOLERATED * self.sent


def choose_set(format_name: str, source: Source | Folder, learned: str) -> LearnedUse | None:
    """Return the set for a capture: `none`, `auto` (by its client and version) or `CLIENT@VERSION`.

    A set is used for logs of its own client only. Raises UsageError("not-learned") for an unknown name, and
    UnreadableError("bad-learned").
    """
    if learned == OFF:
        return None
    from ctxctl.session.learned import store

    if format_name not in store.CLIENTS:
        return None
    if learned != AUTO:
        match = store.named_set(learned)
        if match.learned.client != format_name:
            return None
        version = store.version_of(format_name, source)
        return LearnedUse(match.learned, version, exact=version == match.learned.version, named=True)
    if all(client != format_name for client, _ in store.set_names()):
        return None
    version = store.version_of(format_name, source)
    found = store.find_set(format_name, version)
    return LearnedUse(found.learned, version, exact=found.exact, named=False) if found is not None else None


def fit_of(results: Iterable[Step | Turn]) -> Fit | None:
    """Return how the items fit the main thread's first billed request; None without a bill.

    It consumes the results of a replay up to that request.
    """
    from ctxctl.session.learned.insert import PREFIX

    shown: dict[str | None, int] = {}
    """Tokens of the learned items, by session."""
    for result in results:
        if not isinstance(result, Step) or result.thread != "main":
            continue
        explained = shown.get(result.session, 0)
        explained += sum(change.in_window for change in result.changes if change.item.startswith(PREFIX))
        shown[result.session] = explained
        window = result.window
        if result.usage is not None and window.unrecorded is not None:
            sent = window.recorded + window.unrecorded
            return Fit(sent, window.unrecorded + explained, explained, window.unrecorded)
    return None


def described_learned(
    used: LearnedUse | None, replay: Callable[[], Iterable[Step | Turn]]
) -> dict[str, Any] | None:
    """Return a header's note on the set in use; None without one.

    `replay` reads the log up to its first bill, unless the log still grows.
    """
    if used is None:
        return None
    fit = None if used.grows else fit_of(replay())
    return {
        "client": used.learned.client,
        "version": used.learned.version,
        "digest": used.learned.digest,
        "items": used.items,
        "log_version": used.log,
        "match": "exact" if used.exact else "named" if used.named else "minor",
        "fit": None
        if fit is None
        else {
            "sent": fit.sent,
            "unrecorded_without": fit.before,
            "explained": fit.explained,
            "unexplained": fit.left,
            "warning": fit.warns,
        },
    }
