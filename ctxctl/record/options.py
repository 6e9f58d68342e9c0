"""The options of every mode of `ctxctl record`, the check of its trace, and the summary at the end."""

from __future__ import annotations

import os
import stat
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from ctxctl.errors import UnreadableError, UsageError
from ctxctl.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable

    from ctxctl.record.recorder import Recorder


ROTATE_BYTES = 1 << 30


class Counts(Protocol):
    """What a recording counts, for its summary."""

    @property
    def written(self) -> int:
        """Events in the file."""
        ...

    @property
    def dropped(self) -> int:
        """Events that are not in the file."""
        ...

    @property
    def redacted(self) -> dict[str, int]:
        """Secrets replaced, by kind."""
        ...


def say(line: str) -> None:
    """Write a line to stderr, if there is a stderr; never raises."""
    from ctxctl.text import FITTING, inert, visible

    try:
        encoding = sys.stderr.encoding or "utf-8"
        sys.stderr.write(inert(visible(line)).encode(encoding, FITTING).decode(encoding) + "\n")
        sys.stderr.flush()
    except (AttributeError, OSError, ValueError):
        pass


def default_name() -> Path:
    """Return the default trace: a new file in the working directory."""
    stem = time.strftime("ctxctl-%Y%m%d-%H%M%S")
    path, number = Path(f"{stem}.jsonl"), 1
    while path.exists():
        number += 1
        path = Path(f"{stem}-{number}.jsonl")
    return path


WITHOUT_RE2: Final = "google-re2 is not installed: secrets are found as with it, some 20 times slower"


@dataclass(frozen=True)
class Options:
    """The options that all modes of `ctxctl record` share.

    Attributes:
        out: The trace that is appended to.
        session: The id of the session; None: the mode finds one.
        source: The events' `source`; None: the mode's own.
        redact: As for `Recorder`: True, False, or True with the user's rules in this file.
        fsync: Whether to wait until each event is on the disk.
        rotate_bytes: As for `Recorder`.
        quiet: Whether to say only what went wrong.
        say: Takes one line for the user, without a line end, and writes it to stderr.
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
        """Return a recorder with these options and its file open; none of its calls raises.

        Args:
            must: Raise where the file cannot be opened.  False: say so, and count events as lost until it can
                be, for a program that has to run in any case.

        Raises:
            UsageError: `bad-redaction-rules`; `not-a-trace`: the name is another file's.
            UnreadableError: `not-writable`: the file cannot be opened.
        """
        return _opened(self, must=must)

    def begin(self, *lines: str) -> None:
        """Say first what the mode does or where it listens, and how to watch the trace."""
        if not self.quiet:
            for line in lines:
                self.say(f"ctxctl: {line}")
            if self.redact is not False and not _is_linear():
                self.say(f"ctxctl: {WITHOUT_RE2}")
            self.say(f"ctxctl: to follow it: ctxctl watch {_quoted(str(self.out))}")

    def finish(self, recorder: Recorder, *lines: str) -> None:
        """Close the recorder, which reports losses itself, and say the summary."""
        recorder.close()
        self.conclude(recorder, *lines)

    def conclude(self, counts: Counts, *lines: str) -> None:
        """Say the summary of the recording, then these lines; if `quiet`, only a summary with losses."""
        if not self.quiet or counts.dropped:
            self.say(f"ctxctl: {_summary(counts, self)}")
        if not self.quiet:
            for line in lines:
                self.say(f"ctxctl: {line}")


def _is_linear() -> bool:
    from ctxctl.linear import IS_LINEAR

    return IS_LINEAR


def _quoted(path: str) -> str:
    import shlex

    return shlex.quote(path)


def _opened(options: Options, *, must: bool) -> Recorder:
    """Open a recorder and its file, with the errors of `Options.recorder`."""
    check_appendable(str(options.out))
    try:
        recorder = _recorder(options, strict=True)
    except OSError as error:
        if must:
            raise UnreadableError(
                "not-writable", f"{options.out}: {error.strerror}", hint="give another name with -o FILE"
            ) from None
        options.say(f"ctxctl: {options.out}: cannot be written: {error.strerror}; going on without")
        return _recorder(options, strict=False)
    # Strict while opening only: one failed call must not end a recording.
    recorder._core.journal.strict = False
    return recorder


def _recorder(options: Options, *, strict: bool) -> Recorder:
    from ctxctl.record.recorder import Recorder

    recorder = Recorder(
        options.out, session=options.session, source=options.source, fsync=options.fsync,
        redact=options.redact, rotate_bytes=options.rotate_bytes, strict=strict,
    )  # fmt: skip
    # What cannot be opened yet may be another file by the time that it can.
    recorder._core.journal.require_trace()
    return recorder


def check_appendable(path: str) -> None:
    """Raise UsageError (`not-a-trace`) where the path is neither free nor a trace to append to."""
    from ctxctl.record.sink import HEAD, begins_as_trace

    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise UsageError("not-a-trace", f"{path} is not a regular file", hint=_HINT)
        head = os.read(fd, HEAD)
    finally:
        os.close(fd)
    if not begins_as_trace(head):
        raise UsageError("not-a-trace", f"{path} already exists and is not a trace", hint=_HINT)


_HINT: Final = "events are appended, never written over: give another name with -o FILE"


def _summary(counts: Counts, options: Options) -> str:
    """Return one line: the events written and lost, and the secrets replaced."""
    written, dropped, replaced = counts.written, counts.dropped, counts.redacted
    parts = [f"{options.out}: {plural(written, 'event')} written"]
    if dropped:
        parts.append(f"{plural(dropped, 'event')} lost")
    if options.redact is False:
        parts.append("secrets left in (--no-redact)")
    else:
        parts.append(f"{plural(sum(replaced.values()), 'secret')} replaced{_kinds(replaced)}")
    return ", ".join(parts)


def _kinds(replaced: dict[str, int]) -> str:
    if not replaced:
        return ""
    ranked = sorted(replaced.items(), key=lambda one: (-one[1], one[0]))
    more = f", {len(ranked) - 5} more kinds" if len(ranked) > 5 else ""
    return f" ({', '.join(f'{kind} {n}' for kind, n in ranked[:5])}{more})"
