"""The thread that watches a session while it is written, in the place of one that reads it once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from textual.message import Message

from ctxctl.tui import gather, messages
from ctxctl.tui.outline import Grouping
from ctxctl.tui.watching import Watching

if TYPE_CHECKING:
    from ctxctl.inspector import Inspector
    from ctxctl.inspector.live import Live, News

ANEW: Final = "replayed-anew"
"""Slug of the reason that is none to tell: nothing happened to the session."""
_LOOK: Final = 0.25
"""Seconds after which a quiet watch is told anew: its rate has changed."""


class Follower:
    """Polls a `Live` and tells what is new.

    `tell` sends a message to the event loop and raises to stop; `hand` gives the inspector to whoever answers
    requests, and None takes back what is kept of earlier answers.
    """

    def __init__(
        self, live: Live, tell: Callable[[Message], None], hand: Callable[[Inspector | None], None]
    ) -> None:
        self._live = live
        self._tell = tell
        self._hand = hand
        self._epoch: int | None = None
        self._inspector: Inspector | None = None
        self._grouping = Grouping()
        self._told: Watching | None = None

    def look(self, stopping: Callable[[], bool], check: Callable[[], None]) -> bool:
        """Wait for news a while and tell them; whether there were any."""
        news = self._live.poll(_LOOK, stopping)
        check()
        if news.epoch != self._epoch:
            self._begin(news)
        if news.inspector is not self._inspector and news.inspector is not None:
            self._inspector = news.inspector
            self._hand(news.inspector)
            self._tell(messages.Opened(gather.trace(news.inspector, live=True)))
        if news.changed and news.inspector is not None:
            self._hand(None)
            growth = self._grouping.take(news.rows, check, kept=news.kept)
            share = _share(news)
            self._tell(messages.Grown(growth, share, news.kept))
        watching = _watching(news)
        if watching != self._told:
            self._told = watching
            self._tell(messages.Watched(watching, news.problems))
        return news.changed or news.state == "reading"

    def _begin(self, news: News) -> None:
        """Another session, or the same name with another content: nothing of before is true any more."""
        first = self._epoch is None
        self._epoch = news.epoch
        self._grouping = Grouping()
        self._told = None
        if not first:
            self._inspector = None
            why = news.why
            same = why is not None and why.slug == ANEW
            self._tell(messages.Anew(news.name, why.message if why is not None else "", same=same))


def _share(news: News) -> float:
    """How much of what is written has been read, 0 to 1; only news of a file says how large it is."""
    size = news.inspector.trace.source.size if news.inspector is not None else 0
    return 1.0 if not news.behind or not size else max(0.0, 1.0 - news.behind / size)


def _watching(news: News) -> Watching:
    why = news.why.message if news.why is not None else ""
    return Watching(news.state, news.behind, round(news.rate, 1), news.events, news.rows.settled, why)
