"""The trace that `ctxctl record` appends to: what may be appended to, and what is said of it at the end."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Final

from ctxctl.errors import UnreadableError, UsageError
from ctxctl.labels import plural

if TYPE_CHECKING:
    from ctxctl.record.options import Counts, Options
    from ctxctl.record.recorder import Recorder

_HEAD: Final = 1 << 16


def opened(options: Options, *, must: bool) -> Recorder:
    """A recorder whose file is open; raises as `Options.recorder` says."""
    check(str(options.out))
    try:
        recorder = _recorder(options, strict=True)
    except OSError as error:
        if must:
            raise UnreadableError(
                "not-writable", f"{options.out}: {error.strerror}", hint="give another name with -o FILE"
            ) from None
        options.say(f"ctxctl: {options.out}: cannot be written: {error.strerror}; going on without")
        return _recorder(options, strict=False)
    # Strict for opening only: what is recorded must not suffer from a single call.
    recorder._core.journal.strict = False
    return recorder


def _recorder(options: Options, *, strict: bool) -> Recorder:
    from ctxctl.record.recorder import Recorder

    return Recorder(
        options.out, session=options.session, source=options.source, fsync=options.fsync,
        redact=options.redact, rotate_bytes=options.rotate_bytes, strict=strict,
    )  # fmt: skip


def check(path: str) -> None:
    """Raise UsageError (`not-a-trace`) if something is there that is no trace of ours to append to."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise UsageError("not-a-trace", f"{path} is not a regular file", hint=_HINT)
        head = os.read(fd, _HEAD)
    finally:
        os.close(fd)
    if not _is_trace(head):
        raise UsageError("not-a-trace", f"{path} is there already and is not a trace", hint=_HINT)


_HINT: Final = "events are appended, never written over: give another name with -o FILE"


def _is_trace(head: bytes) -> bool:
    """Whether a file's first lines are those of a trace; a recorder may have been killed in any of them."""
    import orjson

    if not head.strip():
        return True
    for line in head.split(b"\n")[:50]:
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if isinstance(value, dict) and isinstance(value.get("event_type"), str):
            return True
    # A first line longer than what was read, or torn: it begins as all of ours do.
    return head.lstrip().startswith(b'{"schema_version":"')


def summary(counts: Counts, options: Options) -> str:
    """What was written, lost and replaced, as one line."""
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
    told = sorted(replaced.items(), key=lambda one: (-one[1], one[0]))
    more = f", {len(told) - 5} more kinds" if len(told) > 5 else ""
    return f" ({', '.join(f'{kind} {n}' for kind, n in told[:5])}{more})"
