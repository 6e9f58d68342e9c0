"""The files that ctxctl keeps between runs in the user's cache directory: where they are, of which file they
speak, and how they are written whole and read warily.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Final

import xxhash

from ctxctl.trace.inputs import real_place
from ctxctl.trace.source import Source
from ctxctl.user_folders import make_private, user_folder

LEAST: Final = 1 << 20
"""Bytes of a capture or a trace from which on what is made of it is kept."""
_CHUNK: Final = 1 << 20
_SAMPLES: Final = 16
_SAMPLE_BYTES: Final = 4096


class DamagedError(Exception):
    """Something that was kept turned out to be damaged."""


def cache_directory() -> Path | None:
    """Where ctxctl keeps caches: CTXCTL_CACHE_DIR, else the user's; None if CTXCTL_CACHE is `off`."""
    if os.environ.get("CTXCTL_CACHE", "").strip().lower() in {"off", "0", "no", "false"}:
        return None
    named = os.environ.get("CTXCTL_CACHE_DIR")
    if named:
        return Path(named)
    return user_folder("cache")


_KEEPING: Final[ContextVar[bool]] = ContextVar("keeping", default=True)


@contextmanager
def only_reading() -> Iterator[None]:
    """In here, by this thread, imports and replays that are kept are read and no new ones are kept.

    For whoever reads many captures for one answer each: it would push out what the user comes back to.
    """
    token = _KEEPING.set(False)
    try:
        yield
    finally:
        _KEEPING.reset(token)


def is_keeping() -> bool:
    """Return whether what is made of a capture is kept for the next question about it."""
    return _KEEPING.get()


def cache_file(source: Source, kind: str = "steps") -> Path | None:
    """Return where something is kept about a file; None if nothing can be."""
    if source.kept is not None:
        return source.kept.with_suffix(f".{kind}")
    directory = cache_directory()
    if directory is None or source.path is None:
        return None
    name = hashlib.sha256(os.fsencode(real_place(source.path))).hexdigest()[:32]
    return directory / "index" / f"{name}.{kind}"


def fingerprint_of(source: Source, covered: int) -> dict[str, Any]:
    """Identity of the file and hashes of its head, of the bytes before `covered` and of samples between."""
    identity = source.identity()
    return {**identity._asdict(), "samples": _samples(source, covered)}


def _samples(source: Source, covered: int) -> str:
    digest = hashlib.sha256()
    last = max(0, covered - _SAMPLE_BYTES)
    for number in range(_SAMPLES + 1):
        at = last * number // _SAMPLES
        digest.update(source.read(at, min(_SAMPLE_BYTES, covered - at)))
    return digest.hexdigest()


def same_file(known: dict[str, Any], source: Source, covered: int) -> bool:
    """Not an edit in place: the same size needs the same time, and what was read needs the same samples."""
    now = source.identity()
    if (known["device"], known["inode"]) != (now.device, now.inode) or now.size < covered:
        return False
    times = (now.mtime_ns, now.ctime_ns)
    if now.size < known["size"] or (
        now.size == known["size"] and times != (known["mtime_ns"], known["ctime_ns"])
    ):
        return False
    return bool(known["samples"] == _samples(source, covered))


def digest_of_beginning(source: Source, size: int) -> bytes:
    """Digest of the first bytes of a source."""
    digest, at = xxhash.xxh3_128(), 0
    while at < size and (data := source.read(at, min(_CHUNK, size - at))):
        digest.update(data)
        at += len(data)
    return digest.digest()


def open_own(path: Path) -> Any:
    """Return a file for reading that belongs to the user and is no link; raises OSError for any other."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.getuid():
        os.close(fd)
        raise OSError("not a file of ours")
    return os.fdopen(fd, "rb")


def read_own(path: Path, most: int) -> bytes:
    """Return what a file of the user's own holds, up to so many bytes; raises OSError as `open_own` does.

    Memory for all that is asked for is taken before anything is read: no more is asked for than is there.
    """
    with open_own(path) as file:
        size = os.fstat(file.fileno()).st_size
        data: bytes = file.read(min(size, most))
    return data


def replace_file(path: Path, data: bytes) -> bool:
    """Write a file whole or not at all; False if it cannot be written."""
    import tempfile  # slow to import

    temporary = None
    try:
        make_private(path.parent)
        fd, temporary = tempfile.mkstemp(dir=path.parent, prefix=".steps-")
        with os.fdopen(fd, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except OSError:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        return False
    return True


def code_state() -> str:
    """Changes with ctxctl itself: 32 hex digits over the names, sizes and times of its modules.

    What is kept was made by some code; a version number alone would keep what a working copy has mended.
    """
    global _code
    if _code is None:
        top = Path(__file__).parents[1]
        digest = hashlib.sha256()
        for folder, folders, names in os.walk(top):
            folders[:] = sorted(name for name in folders if name != "__pycache__")
            for name in sorted(names):
                if name.endswith((".py", ".json", ".toml")):
                    now = os.stat(f"{folder}/{name}")
                    digest.update(f"{folder}/{name}\0{now.st_size}\0{now.st_mtime_ns}\n".encode())
        _code = digest.hexdigest()[:32]
    return _code


_code: str | None = None
