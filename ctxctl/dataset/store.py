"""Where a dataset is: a folder, or any object store that has a URL: read and written in one way.

What it rests on is that an object can be made only if there is none of its name (`create`), which every store
of these kinds has.  Endpoints and credentials are those of the environment (`AWS_…`, `GOOGLE_…`, `AZURE_…`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from ctxctl.errors import UnavailableError, UnreadableError
from ctxctl.text import visible
from ctxctl.trace.inputs import absolute_path

_URL: Final = re.compile(r"[a-z][a-z0-9+]{1,15}://", re.IGNORECASE)
_UNFINISHED: Final = re.compile(r"#\d+$")
"""How the library names a file that it has not written to its end."""
_SAID: Final = 300
"""Characters of an error's text that are shown."""


class StoredObject(NamedTuple):
    """What a store says of one object."""

    path: str
    """From the dataset on, `/`-separated."""
    size: int
    """Bytes."""
    written: datetime
    """UTC, by the store's clock."""


class DatasetStore:
    """The objects of one dataset.

    Args:
        place: A folder or a URL (`s3://bucket/path`, `gs://`, `az://`), as the user typed it.

    Raises UnavailableError (`needs-fleet`) and UnreadableError (`dataset-unreachable`).
    """

    def __init__(self, place: str) -> None:
        try:
            import obstore
            import obstore.store
        except ImportError:
            raise UnavailableError(
                "needs-fleet", "a dataset of many captures needs the packages of the extra `fleet`",
                hint="pip install 'ctxctl[fleet]'",
            ) from None  # fmt: skip
        self.place = place
        self._os = obstore
        self.folder = None if _URL.match(place) else Path(absolute_path(place))
        """None: it is no folder of this machine."""
        with self._told():
            self._store: Any = (
                obstore.store.from_url(place)
                if self.folder is None
                else obstore.store.LocalStore(self.folder, mkdir=True)
                if self.folder.is_dir()
                else None
            )

    def make(self) -> None:
        """Make the folder, where it is one."""
        if self._store is None:
            with self._told():
                self._store = self._os.store.LocalStore(self.folder, mkdir=True)

    def get(self, path: str) -> bytes | None:
        """An object's bytes; None where there is none of that name."""
        if self._store is None:
            return None
        with self._told():
            try:
                return bytes(self._os.get(self._store, path).bytes())
            except FileNotFoundError:
                return None

    def put(self, path: str, data: bytes) -> None:
        """Write an object, whole, whatever was there."""
        with self._told():
            self._os.put(self._store, path, data, use_multipart=False)
            self._sync(path)

    def create(self, path: str, data: bytes) -> bool:
        """Write an object whole if there is none of its name; whether that was so.  Of several, one."""
        from obstore.exceptions import AlreadyExistsError

        with self._told():
            try:
                self._os.put(self._store, path, data, mode="create", use_multipart=False)
            except AlreadyExistsError:
                return False
            self._sync(path)
            return True

    def objects(self, prefix: str) -> Iterator[StoredObject]:
        """The objects whose names begin with some whole parts of a path."""
        if self._store is None:
            return
        with self._told():
            if self.folder is not None:
                yield from _files(self.folder, prefix)
                return
            for some in self._os.list(self._store, prefix):
                for one in some:
                    yield StoredObject(one["path"], one["size"], one["last_modified"])

    def written(self, path: str) -> datetime | None:
        """When an object was written; None where there is none."""
        with self._told():
            try:
                found: datetime = self._os.head(self._store, path)["last_modified"]
            except FileNotFoundError:
                return None
            return found

    def delete(self, path: str) -> None:
        """Remove an object, if it is there."""
        with self._told():
            try:
                self._os.delete(self._store, path)
            except FileNotFoundError:
                return

    def url(self, path: str) -> str:
        """How engines are told to read an object: an absolute path, or a URL."""
        return f"{self.place.rstrip('/')}/{path}" if self.folder is None else str(self.folder / path)

    def unfinished(self) -> list[Path]:
        """Files of a folder that a writer has begun and not finished: nothing lists or reads them."""
        if self.folder is None:
            return []
        return [path for path in self.folder.rglob("*#*") if _UNFINISHED.search(path.name) and path.is_file()]

    def _sync(self, path: str) -> None:
        """Have a file on the disk before anybody is told of it."""
        if self.folder is not None:
            for one in (self.folder / path, (self.folder / path).parent):
                with suppress_missing():
                    number = os.open(one, os.O_RDONLY)
                    try:
                        os.fsync(number)
                    finally:
                        os.close(number)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Say what the store says where it cannot be reached."""
        from obstore.exceptions import BaseError

        try:
            yield
        except (BaseError, OSError, ValueError) as error:
            if isinstance(error, FileNotFoundError):
                raise
            said = visible(str(error).partition("\n")[0][:_SAID])
            raise UnreadableError(
                "dataset-unreachable", f"{visible(self.place)}: {said}",
                hint="a folder, or a URL whose endpoint and credentials are in the environment",
            ) from error  # fmt: skip


def _files(folder: Path, prefix: str) -> Iterator[StoredObject]:
    """The finished files below a place in a folder.  Raises OSError.

    The library leaves out a file whose state the system fails to tell; a commit that is left out is a version
    that never was.
    """

    def failed(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            raise error

    for directory, _, names in os.walk(folder / prefix, onerror=failed):
        for name in names:
            path = Path(directory, name)
            if _UNFINISHED.search(name):
                continue
            try:
                found = path.stat()
            except FileNotFoundError:  # removed since
                continue
            written = datetime.fromtimestamp(found.st_mtime, UTC)
            yield StoredObject(path.relative_to(folder).as_posix(), found.st_size, written)


@contextmanager
def suppress_missing() -> Iterator[None]:
    """Pass over what cannot be opened: a system that has no directories to open has nothing to be synced."""
    try:
        yield
    except OSError:
        return
