"""What every way of recording from outside is told, and what it says of itself."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from ctxctl.record.recorder import Recorder

ROTATE_BYTES = 1 << 30


class Counts(Protocol):
    """What is counted while recording."""

    @property
    def written(self) -> int:
        """Events in the file."""
        ...

    @property
    def dropped(self) -> int:
        """Events that are not."""
        ...

    @property
    def redacted(self) -> dict[str, int]:
        """Secrets replaced, by kind."""
        ...


def say(line: str) -> None:
    """One line on stderr, if there is one; never raises."""
    from ctxctl.text import inert, visible

    try:
        encoding = sys.stderr.encoding or "utf-8"
        sys.stderr.write(inert(visible(line)).encode(encoding, "backslashreplace").decode(encoding) + "\n")
        sys.stderr.flush()
    except (AttributeError, OSError, ValueError):
        pass


def default_name() -> Path:
    """Where to record if nobody said: a new file in the working directory."""
    stem = time.strftime("ctxctl-%Y%m%d-%H%M%S")
    path, number = Path(f"{stem}.jsonl"), 1
    while path.exists():
        number += 1
        path = Path(f"{stem}-{number}.jsonl")
    return path


@dataclass(frozen=True)
class Options:
    """The options that all modes of `ctxctl record` share.

    Attributes:
        out: The trace that is appended to.
        session: Id of the session; None: the mode finds one.
        source: The events' `source`; None: the mode's own.
        redact: As for `Recorder`: True, False, or True with the user's rules in this file.
        fsync: Wait until each event is on the disk.
        rotate_bytes: As for `Recorder`.
        quiet: Say nothing but what went wrong.
        say: Takes one line of narration, without a line end; stderr's unless a test listens.
    """

    out: Path
    session: str | None = None
    source: str | None = None
    redact: bool | Path = True
    fsync: bool = False
    rotate_bytes: int | None = ROTATE_BYTES
    quiet: bool = False
    say: Callable[[str], None] = field(default=say)

    def recorder(self, *, must: bool = True) -> Recorder:
        """A recorder as the options have it, its file open; none of its calls raises.

        Args:
            must: A file that cannot be opened is an error.  False: it is said, and what is recorded counts as
                lost until the file can be opened, for a program that has to run in any case.

        Raises:
            UsageError: `bad-redaction-rules`; `not-a-trace`: there is something else under the name.
            UnreadableError: `not-writable`: the file cannot be opened.
        """
        from ctxctl.record.target import opened

        return opened(self, must=must)

    def begin(self, *lines: str) -> None:
        """Say where the mode listens, or what it does, and how to look; before anything else is said."""
        if not self.quiet:
            for line in lines:
                self.say(f"ctxctl: {line}")
            self.say(f"ctxctl: look at it: ctxctl watch {_quoted(str(self.out))}")

    def finish(self, recorder: Recorder, *lines: str) -> None:
        """Close the recorder and say what came of it; it says itself what was lost, also if `quiet`."""
        recorder.close()
        self.conclude(recorder, *lines)

    def conclude(self, counts: Counts, *lines: str) -> None:
        """Say what came of the recording."""
        from ctxctl.record.target import summary

        if not self.quiet or counts.dropped:
            self.say(f"ctxctl: {summary(counts, self)}")
        if not self.quiet:
            for line in lines:
                self.say(f"ctxctl: {line}")


def _quoted(path: str) -> str:
    import shlex

    return shlex.quote(path)
