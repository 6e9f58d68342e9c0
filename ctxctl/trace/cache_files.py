"""Files in the user's cache directory: their paths, the file that each belongs to, and safe reading and
writing."""

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
"""Bytes of a capture or trace from which on its results are cached."""
_CHUNK: Final = 1 << 20
_SAMPLES: Final = 16
_SAMPLE_BYTES: Final = 4096


class DamagedError(Exception):
    """Something cached is damaged."""


def cache_directory() -> Path | None:
    """Return the cache directory: CTXCTL_CACHE_DIR, else the user's; None if CTXCTL_CACHE is `off`."""
    if os.environ.get("CTXCTL_CACHE", "").strip().lower() in {"off", "0", "no", "false"}:
        return None
    named = os.environ.get("CTXCTL_CACHE_DIR")
    if named:
        return Path(named)
    return user_folder("cache")


_KEEPING: Final[ContextVar[bool]] = ContextVar("keeping", default=True)


@contextmanager
def only_reading() -> Iterator[None]:
    """Within this context, on this thread, read cached imports and replays but cache no new ones.

    This is for reading many captures for one answer each, which would evict what the user returns to.
    """
    token = _KEEPING.set(False)
    try:
        yield
    finally:
        _KEEPING.reset(token)


def is_keeping() -> bool:
    """Return whether results are cached."""
    return _KEEPING.get()


def cache_file(source: Source, kind: str = "steps") -> Path | None:
    """Return the path of a cache file about `source`; None if nothing can be cached."""
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
    """Return whether it is the same file: not edited in place, and with the same samples of what was read."""
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
    """Open a file for reading that belongs to the user and is no link. Raises OSError for any other."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.getuid():
        os.close(fd)
        raise OSError("not a file of ours")
    return os.fdopen(fd, "rb")


def read_own(path: Path, most: int) -> bytes:
    """Return at most `most` bytes of a user's own file. Raises OSError like `open_own`.

    Memory is allocated before reading, so no more is requested than exists.
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
    """Return 32 hex digits over the names, sizes and times of ctxctl's modules, which change with the code.

    A version number alone would keep results of a working copy after a fix.
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
