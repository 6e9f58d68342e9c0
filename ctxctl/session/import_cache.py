"""Imports of foreign captures, cached as native traces.

Each capture has a directory `captures/KEY`. `about` records its files and their states, the code that
imported it, and the findings. `NAME.jsonl` is the trace; its step index, item history and steps are beside
it. `about` is replaced last and atomically, and names the trace with its digest. So anything torn, foreign or
outdated is ignored.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

import msgspec
import xxhash

from ctxctl.model.problem import Problem, may_pass
from ctxctl.trace.cache_files import (
    LEAST,
    cache_directory,
    code_state,
    is_keeping,
    open_own,
    read_own,
    replace_file,
)
from ctxctl.trace.inputs import FileState, Inputs, file_state, note_inputs, real_place
from ctxctl.trace.source import Source
from ctxctl.typed_decoding import from_msgpack
from ctxctl.user_folders import make_private

if TYPE_CHECKING:
    from collections.abc import Callable

    from ctxctl.ingest.declaration import Format
    from ctxctl.ingest.folder import Folder
    from ctxctl.session.import_mark import MarkedImport
    from ctxctl.session.learned.choice import LearnedUse

FORMAT: Final = 1
FREE: Final = 4
"""An import is cached if the disk has room for this many times the capture."""
_CHUNK: Final = 1 << 20
_BUFFER: Final = 1 << 18
"""Bytes of a trace that are written together."""
_ABOUT: Final = "about"
_MARK: Final = "mark"
"""Where the import can continue, once its log has grown (`import_mark`)."""
_MAX_ABOUT: Final = 64 << 20


class _About(msgspec.Struct, frozen=True):
    """What an import depended on, and its result."""

    format: int
    code: str
    importer: str
    learned: str
    files: dict[str, FileState | None]
    listings: list[tuple[str, str, str]]
    """Directory, pattern, digest."""
    ends: str
    """Digest of the capture's first and last bytes; empty for a directory."""
    trace: str
    """Name of the trace's file."""
    digest: bytes
    problems: tuple[Problem, ...]
    faults: tuple[Problem, ...]
    """Faults of the file itself, for example a truncated gzip member."""
    items: int
    """Number of items added from a learned set."""
    young: dict[str, bytes] = {}
    """Digests of files that had just changed, because their states alone are not conclusive."""


class ImportSlot:
    """The cache entry of one capture, for one importer and one learned set."""

    def __init__(self, source: Source | Folder, importer: Format, learned: LearnedUse | None) -> None:
        self._source = source
        self._importer = importer
        self._learned = "" if learned is None else f"{learned.learned.digest} {learned.log} {learned.named}"
        directory = cache_directory()
        place = _place(source)
        self._folder: Path | None = None
        if directory is not None and place is not None and _worth(source):
            words = "\0".join((*place, importer.name, self._learned))
            key = hashlib.sha256(words.encode("utf-8", "surrogateescape")).hexdigest()[:32]
            self._folder = directory / "captures" / key

    @property
    def usable(self) -> bool:
        """Whether anything may be cached: only for a large capture that is a file or a directory."""
        return self._folder is not None

    def load(self, problems: list[Problem], learned: LearnedUse | None) -> Source | None:
        """Return the cached import, and add its problems and learned items. None if there is none of the
        current capture."""
        if self._folder is None:
            return None
        try:
            about = self._about()
            if about is None:
                return None
            kept = self._folder / about.trace
            with open_own(kept) as file:
                if _digest(file) != about.digest:
                    return None
                fd = os.dup(file.fileno())
        except (OSError, ValueError, msgspec.MsgspecError):
            return None
        problems += about.problems
        if learned is not None:
            learned.items = about.items
        return self._opened(kept, fd, about.faults)

    def _written(self) -> _About | None:
        """Return the description of the cached import, even of an outdated one."""
        assert self._folder is not None
        data = read_own(self._folder / _ABOUT, _MAX_ABOUT)
        if xxhash.xxh3_128_digest(data[16:]) != data[:16]:
            return None
        about = from_msgpack(data[16:], _About)
        return about if os.path.basename(about.trace) == about.trace else None

    def _about(self) -> _About | None:
        about = self._written()
        if about is None or self._folder is None:
            return None
        if (about.format, about.importer, about.learned) != (FORMAT, self._importer.name, self._learned):
            return None
        if about.code != code_state():
            return None
        inputs = Inputs()
        inputs.files = about.files
        inputs.listings = {(directory, pattern): digest for directory, pattern, digest in about.listings}
        inputs.young = dict(about.young)
        if not inputs.unchanged() or about.ends != _ends(self._source):
            return None
        note_inputs(inputs)
        os.utime(self._folder / _ABOUT)  # the oldest are removed first
        return about

    def write(
        self,
        inputs: Inputs,
        problems: list[Problem],
        learned: LearnedUse | None,
        convert: Callable[[BinaryIO, MarkedImport | None], None],
    ) -> Source | None:
        """Import into the cache; return None, without changing `problems`, if that is impossible.

        The result is used in any case, but found again only if nothing that it depends on changed meanwhile.
        `convert` writes the trace and fills `problems`, continuing an earlier import if possible. What it
        raises, other than OSError, is passed on.
        """
        if self._folder is None or not is_keeping() or not self._room():
            return None
        known, marked = len(problems), self._marked(inputs, learned)
        beginning = b"" if marked is None else marked.beginning()
        name = f"{secrets.token_hex(8)}.jsonl"
        kept = self._folder / name
        try:
            make_private(self._folder)
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            with open(os.open(kept, flags, 0o600), "w+b", buffering=_BUFFER) as file:
                convert(file, marked)
                file.flush()
                faults = tuple(self._source.problems) if isinstance(self._source, Source) else ()
                fd = os.dup(file.fileno())
                if not os.fstat(fd).st_size:
                    os.close(fd)
                    raise OSError("no events")
        except BaseException as error:
            _remove(kept)
            if not isinstance(error, OSError):
                raise
            del problems[known:]
            return None
        stands = inputs.unchanged() or (marked is not None and marked.only_grew(beginning))
        if inputs.steady and stands and not any(may_pass(one.slug) for one in problems):
            about = _About(
                FORMAT,
                code_state(),
                self._importer.name,
                self._learned,
                inputs.files,
                [(*key, digest) for key, digest in inputs.listings.items()],
                _ends(self._source),
                name,
                b"",
                tuple(problems),
                faults,
                0 if learned is None else learned.items,
                dict(inputs.young),
            )
            if marked is not None and marked.may_be_kept():
                with suppress(OSError):  # without it, the next import starts from the beginning
                    marked.save(fd)
            if self._keep(about, fd):
                return self._opened(kept, fd, faults)
        _remove(kept)
        return self._opened(None, fd, faults)

    def _marked(self, inputs: Inputs, learned: LearnedUse | None) -> MarkedImport | None:
        """Return the mark for an import of a file; None for what is not a single file."""
        source = self._source
        if self._folder is None or learned is not None or self._importer.going_on is None:
            return None
        if not isinstance(source, Source) or source.spooled or source.path is None:
            return None
        from ctxctl.session.import_mark import MarkedImport

        try:
            earlier = self._written()
        except (OSError, ValueError, msgspec.MsgspecError):
            earlier = None
        name = None if earlier is None else earlier.trace
        return MarkedImport(self._folder, name, source, self._importer, inputs)

    def _keep(self, about: _About, fd: int) -> bool:
        assert self._folder is not None
        try:
            with open(os.dup(fd), "rb") as file:
                data = msgspec.msgpack.encode(msgspec.structs.replace(about, digest=_digest(file)))
        except (OSError, UnicodeEncodeError):  # a file's name, or what a problem quotes, may be no text
            return False
        if not replace_file(self._folder / _ABOUT, xxhash.xxh3_128_digest(data) + data):
            return False
        with suppress(OSError):  # the next run will
            self._clear(about.trace.removesuffix(".jsonl"))
        from ctxctl.session.cache_room import prune_cache

        prune_cache(spare=self._folder)
        return True

    def _clear(self, name: str) -> None:
        """Remove earlier imports, except what may be continued."""
        assert self._folder is not None
        for other in self._folder.iterdir():
            first, _, kind = other.name.partition(".")
            if other.name in (_ABOUT, _MARK) or first == name:
                continue
            if kind == "steps" or (kind.startswith("replay-") and ".new" not in kind):
                with suppress(OSError):
                    os.replace(other, other.with_name(f"{name}.{kind}"))
            else:
                _remove(other)

    def _opened(self, kept: Path | None, fd: int, faults: tuple[Problem, ...]) -> Source:
        made = Source(self._source.name, fd=fd, path=self._source.path, spooled=kept is None, problems=faults)
        made.kept = kept
        return made

    def _room(self) -> bool:
        assert self._folder is not None
        place = self._folder
        try:
            while not place.exists() and place != place.parent:
                place = place.parent
            return shutil.disk_usage(place).free >= FREE * _size(self._source)
        except OSError:
            return False


def _place(source: Source | Folder) -> tuple[str, str] | None:
    """Return where a capture is, however its path is spelled, and the name that its importer may use."""
    if source.path is None:
        return None
    if isinstance(source, Source):
        return str(real_place(source.path)), os.path.basename(source.name)
    path = os.path.realpath(source.path)
    return path, os.path.basename(path)


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink()


def _worth(source: Source | Folder) -> bool:
    return source.name not in ("", "-") and _size(source) >= LEAST


def _size(source: Source | Folder) -> int:
    """Return the bytes to read."""
    if isinstance(source, Source):
        return source.size
    states = (file_state(os.path.join(source.path, name)) for name in source.files)
    return sum(state.size for state in states if state is not None)


def _ends(source: Source | Folder) -> str:
    if not isinstance(source, Source):
        return ""
    digest = hashlib.sha256(source.read(0, 1 << 16))
    digest.update(source.read(max(0, source.size - (1 << 16)), 1 << 16))
    return digest.hexdigest()


def _digest(file: BinaryIO) -> bytes:
    digest = xxhash.xxh3_128()
    file.seek(0)
    while data := file.read(_CHUNK):
        digest.update(data)
    return digest.digest()
