"""Prepares a program's variables, arguments and files so that its calls come to the relay.

This takes two steps, as the relay's ports are known only when it listens: `Setup` finds the addresses that
the program goes to, `Start` gives it those of the relay instead.
"""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from ctxctl.record.clients.known_programs import RecognisedProgram, recognised
from ctxctl.record.options import say
from ctxctl.record.proxy.upstreams import (
    FAMILIES,
    Route,
    family_of,
    given_addresses,
    parsed,
    pointed,
    routes,
)

if TYPE_CHECKING:
    from types import TracebackType

Ready = Callable[["Start"], None]
"""Gives a program its redirected addresses, once the ports are known."""
_VERSIONED: Final = {"anthropic": "/v1", "openai": "/v1", "gemini": "/v1beta"}


class Setup:
    """The addresses that a command's programs go to, and what redirects them.

    Args:
        command: The program and its arguments.
        environment: The user's.
        given: `NAME=URL` of `--upstream`.
        home: The user's home; the process's own by default.
        folder: Where the program is started; the working directory by default.

    Attributes:
        found: The programs that were recognised.
        notes: What is left alone, and why.

    Raises:
        UsageError: `bad-upstream`.
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], given: Iterable[str] = (), *,
        home: Path | None = None, folder: Path | None = None,
    ) -> None:  # fmt: skip
        self.command, self.environment = list(command), environment
        self.home = home or Path(environment.get("HOME") or os.path.expanduser("~"))
        self.folder = folder or _here()
        asked = list(given)
        self.given = given_addresses(asked)
        self.found: list[RecognisedProgram] = recognised(command, self.home)
        ways, self.notes = routes(environment, asked)
        self._ways = {way.variable: way for way in ways}
        self._ready: list[tuple[RecognisedProgram, Ready]] = []

    def prepare(self, ways: Mapping[str, Callable[[Setup, Sequence[str]], Ready | None]]) -> None:
        """Prepare each recognised program by its function in `ways`, a table by the programs' names."""
        for found in self.found:
            way = ways.get(found.client.name)
            ready = way(self, found.arguments) if way is not None else None
            if ready is not None:
                self._ready.append((found, ready))

    @property
    def ways(self) -> list[Route]:
        """All addresses that are redirected to the relay."""
        return list(self._ways.values())

    def path(self, variable: str, *usual: str) -> Path:
        """Return the directory that a variable names, else the usual one below the home."""
        named = self.environment.get(variable, "").strip()
        return Path(os.path.expanduser(named)) if named else self.home.joinpath(*usual)

    # -- addresses ----------------------------------------------------------------------------------------

    def chosen(self, family: str) -> str | None:
        """Return where the user sends a provider's calls, by `--upstream` or a variable; None: not said."""
        if family in self.given:
            return self.given[family]
        for variable in FAMILIES[family][1]:
            url = self.given.get(variable) or self.environment.get(variable, "").strip()
            if url:
                return url
        return None

    def address(self, family: str) -> str:
        """Return where a provider's calls go: where the user sends them, else to the provider itself."""
        return self.chosen(family) or FAMILIES[family][0]

    def redirect(self, setting: str, url: object) -> Route | None:
        """Redirect the address in a program's setting to the relay; None: it is none, or of another kind."""
        if not isinstance(url, str):
            return None
        upstream = parsed(url)
        if upstream is None:
            self.notes.append(
                f"{setting} is not an http or https address: left as it is; what goes there is not recorded"
            )
            return None
        return self._ways.setdefault(setting, Route(setting, url, upstream, exported=False))

    def export(self, variable: str, url: str) -> None:
        """Redirect a program's variable to the relay, and that to the user's address, else to this one."""
        url = self.given.get(variable) or self.environment.get(variable, "").strip() or url
        upstream = parsed(url)
        if upstream is not None:
            self._ways.setdefault(variable, Route(variable, url, upstream))

    def withhold(self, variable: str) -> None:
        """Do not set a variable that the user has not set either."""
        way = self._ways.get(variable)
        if way is not None and self.chosen(family_of(variable) or "openai") is None:
            del self._ways[variable]

    def versioned(self, family: str) -> None:
        """Make a provider's variables end with its API's version, for programs that append none."""
        for variable, way in list(self._ways.items()):
            if way.exported and family_of(variable) == family:
                self._ways[variable] = way._replace(url=with_version(way.url, family))

    # -- the start ----------------------------------------------------------------------------------------

    def start(self, ports: Mapping[Route, int]) -> Start:
        """Return the command and its environment for these ports; leave its `with` after the command."""
        start = Start(self, ports)
        for found, ready in self._ready:
            try:
                start.give(found, ready)
            except OSError as error:
                # A full disk, say: the program runs without being recorded.
                why = error.strerror or type(error).__name__
                self.notes.append(f"{found.client.name} is not led to the recorder: {why}")
        return start


class Start:
    """A command as it is run, redirected to the relay.

    Attributes:
        command: The command, with the arguments that redirect it.
        environment: Its environment, with the variables that redirect it.
    """

    def __init__(self, setup: Setup, ports: Mapping[Route, int]) -> None:
        self.command = list(setup.command)
        self.environment = pointed(setup.environment, ports)
        self._ports = ports
        self._folder: Path | None = None
        self._endings: list[Callable[[], None]] = []
        self._arguments: list[str] = []

    def __enter__(self) -> Start:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()

    def give(self, found: RecognisedProgram, ready: Ready) -> None:
        """Redirect one program of the command."""
        self._arguments = []
        ready(self)
        if not self._arguments:
            return
        if found.at is None:
            self._stand_in(found)
        else:
            before = self.command[: found.at]
            runner = ["--"] if before[:1] == ["npm"] and "--" not in before else []
            self.command[found.at : found.at] = [*runner, *self._arguments]

    def address(self, route: Route) -> str:
        """Return the relay's address for a route."""
        return route.pointed(self._ports[route])

    def argue(self, *arguments: str) -> None:
        """Add arguments in front of the program's own."""
        self._arguments += arguments

    def replace(self, before: str, after: str) -> None:
        """Replace one of the program's own arguments."""
        self.command = [after if word == before else word for word in self.command]

    def file(self, name: str, data: bytes) -> Path:
        """Write a temporary file for the program, which nobody else can read; return its path."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="ctxctl-record-"))
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        path.write_bytes(data)
        return path

    def at_end(self, call: Callable[[], None]) -> None:
        """Call this when the program has ended, before its temporary files are removed."""
        self._endings.append(call)

    def close(self) -> None:
        """Remove what was made for the program, which has ended; what it wrote there itself is kept.

        Where a file of the program's (a sign-in, say) cannot be brought to its place, the folder stays, and
        that is said.
        """
        failed = None
        for call in self._endings:
            try:
                call()
            except (OSError, ValueError) as error:
                failed = getattr(error, "strerror", None) or str(error)
        self._endings.clear()
        if failed is not None and self._folder is not None:
            say(f"ctxctl: what the program saved could not be put in its place ({failed}): {self._folder}")
            self._folder = None
        if self._folder is not None:
            with suppress(OSError):  # not all that it meets is ignored by it
                shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _stand_in(self, found: RecognisedProgram) -> None:
        """Put a script of the program's name before it in PATH, for a shell: it adds the arguments."""
        name = found.client.commands[0]
        real = shutil.which(name, path=self.environment.get("PATH"))
        if real is None:
            return
        line = shlex.join((real, *self._arguments))
        script = self.file(f"bin/{name}", f'#!/bin/sh\nexec {line} "$@"\n'.encode())
        script.chmod(0o700)
        self.environment["PATH"] = f"{script.parent}{os.pathsep}{self.environment.get('PATH', os.defpath)}"


def _here() -> Path:
    """Return the working directory; `/` if somebody has removed it."""
    try:
        return Path.cwd()
    except OSError:
        return Path("/")


def with_version(url: str, family: str) -> str:
    """Return an address with the version of the provider's API at its end, unless it has a version."""
    import re

    parts = urlsplit(url)
    path = parts.path.rstrip("/")
    if re.search(r"/v[0-9]+[a-z0-9]*\Z", path):
        return url
    return parts._replace(path=path + _VERSIONED[family]).geturl()
