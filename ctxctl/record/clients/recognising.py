"""Which program a command runs, however it is started.

By its name or path, through npx, uvx, node, `python -m`, `env`, `timeout` or a shell.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from ctxctl.record.clients.table import CLIENTS, Client

_ENDINGS: Final = re.compile(r"\.(?:exe|cmd|bat|ps1|js|mjs|cjs|ts|py|sh|bin)\Z", re.IGNORECASE)
_VERSION: Final = re.compile(r"(?<=.)(?:@|==).*\Z")
"""Behind the name of a package."""
_ASSIGNED: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_SHELLS: Final = frozenset(("sh", "bash", "zsh", "dash", "ksh", "fish", "ash"))
_CUT: Final = re.compile(r"[;&|()\n]+|\b(?:then|do|else|exec|time)\b")
_WRAPPERS: Final[Mapping[str, tuple[int, str]]] = {
    # How many arguments of its own each takes, and which options have a value in the next word.
    "env": (0, "uCS"), "nohup": (0, ""), "nice": (0, "n"), "ionice": (0, "cnp"), "time": (0, "of"),
    "timeout": (1, "ks"), "gtimeout": (1, "ks"), "stdbuf": (0, "ioe"), "setsid": (0, ""),
    "sudo": (0, "ugCDhpRrTtU"), "doas": (0, "uC"), "caffeinate": (0, "tw"), "command": (0, ""),
    "exec": (0, "a"), "unbuffer": (0, ""), "xvfb-run": (0, "nsfew"), "dotenv": (0, "fe"), "mise": (1, ""),
    "arch": (0, ""), "chrt": (1, ""), "taskset": (1, ""),
}  # fmt: skip
_RUNNERS: Final[Mapping[str, tuple[str, ...]]] = {
    # Programs that run a package by its name, and the words that may come before it.
    "npx": (), "bunx": (), "pnpx": (), "uvx": (), "npm": ("exec", "x"), "pnpm": ("exec", "dlx"),
    "yarn": ("dlx", "exec"), "bun": ("x", "run"), "uv": ("tool", "run"), "pipx": ("run",), "volta": ("run",),
}  # fmt: skip
_VALUED: Final = frozenset(
    ("-p", "--package", "--from", "--with", "--python", "--spec", "--index-url", "--directory", "--project",
     "--env-file", "-w", "--workspace", "--prefix", "--registry", "--node")
)  # fmt: skip
"""Options of those with a value in the next word."""
_ENGINES: Final = re.compile(r"(?:node|bun|deno|tsx|python[0-9.]*|pypy[0-9.]*|ruby)\Z")
_ENGINE_VALUED: Final = frozenset(("-r", "--require", "--import", "--loader", "-W", "-X", "--env-file", "-C"))
_SEEN: Final = 4096
"""Bytes of a script that are looked at."""
_DEPTH: Final = 8


class Found(NamedTuple):
    """A program that was recognised."""

    client: Client
    at: int | None
    """Where its arguments begin in the command; None: a shell starts it."""
    arguments: tuple[str, ...]
    """Its arguments, as far as they can be told."""


def recognised(command: Sequence[str], home: Path | None = None) -> list[Found]:
    """The programs that a command runs, in order: more than one only behind a shell; none: it is not known.

    Args:
        command: The program and its arguments.
        home: The user's; the process's own by default.
    """
    return list(_walk(command, home or Path.home()))


def _walk(command: Sequence[str], home: Path) -> Iterator[Found]:
    at = 0
    for _ in range(_DEPTH):
        while at < len(command) and _ASSIGNED.match(command[at]):
            at += 1
        if at >= len(command):
            return
        name = bare(command[at])
        client = _by_name(command[at], home)
        if client is not None:
            yield Found(client, at + 1, tuple(command[at + 1 :]))
            return
        if name in _SHELLS:
            yield from _in_shell(command[at + 1 :], home)
            return
        if name in _WRAPPERS:
            at = _behind_wrapper(command, at, *_WRAPPERS[name])
        elif name in _RUNNERS:
            yield from _in_runner(command, at, _RUNNERS[name], home)
            return
        elif _ENGINES.match(name):
            yield from _in_engine(command, at + 1, home)
            return
        else:
            return


def bare(word: str) -> str:
    """A program's name: without its folder and its ending."""
    return _ENDINGS.sub("", os.path.basename(word.replace("\\", "/").rstrip("/"))).lower()


def _behind_wrapper(command: Sequence[str], at: int, own: int, valued: str) -> int:
    at += 1
    while at < len(command):
        word = command[at]
        if word == "--":
            return at + 1
        if word.startswith("-") and len(word) > 1:
            at += 2 if len(word) == 2 and word[1] in valued else 1
        elif _ASSIGNED.match(word):
            at += 1
        elif own:
            own, at = own - 1, at + 1
        else:
            break
    return at


def _in_shell(arguments: Sequence[str], home: Path) -> Iterator[Found]:
    """What `-c` runs, as far as words tell."""
    at = next((n for n, word in enumerate(arguments) if re.fullmatch(r"-[a-z]*c", word)), None)
    if at is None or at + 1 >= len(arguments):
        return
    seen: set[str] = set()
    for part in _CUT.split(arguments[at + 1][: 1 << 16]):
        try:
            words = shlex.split(part, comments=False)
        except ValueError:
            words = part.split()
        for found in _walk(words, home) if words else ():
            if found.client.name not in seen:
                seen.add(found.client.name)
                yield Found(found.client, None, found.arguments)


def _in_runner(command: Sequence[str], at: int, verbs: Sequence[str], home: Path) -> Iterator[Found]:
    at += 1
    while at < len(command) and command[at] in verbs:
        at += 1
    while at < len(command) and command[at].startswith("-"):
        if command[at] in ("-c", "--call") and at + 1 < len(command):
            yield from _in_shell(("-c", command[at + 1]), home)
            return
        if command[at] == "--":
            at += 1
            break
        at += 2 if command[at] in _VALUED else 1
    if at >= len(command):
        return
    package = _VERSION.sub("", command[at])
    client = next((one for one in CLIENTS if package in one.packages or package in one.commands), None)
    if client is not None:
        yield Found(client, at + 1, tuple(command[at + 1 :]))
    elif bare(command[at]) in _SHELLS or _ENGINES.match(bare(command[at])):
        for found in _walk(command[at:], home):
            yield found._replace(at=None if found.at is None else found.at + at)


def _in_engine(command: Sequence[str], at: int, home: Path) -> Iterator[Found]:
    """A script of Node's or Python's, or a module."""
    while at < len(command) and command[at].startswith("-"):
        if command[at] == "-m" and at + 1 < len(command):
            module = command[at + 1].partition(".")[0].replace("_", "-")
            client = next((one for one in CLIENTS if module in _plain(one)), None)
            if client is not None:
                yield Found(client, at + 2, tuple(command[at + 2 :]))
            return
        if command[at] in ("-c", "-e", "--eval", "-p"):
            return
        at += 2 if command[at] in _ENGINE_VALUED else 1
    if at < len(command) and command[at] in ("run",):
        at += 1
    if at < len(command):
        client = _by_place(Path(command[at])) or _by_name(command[at], home)
        if client is not None:
            yield Found(client, at + 1, tuple(command[at + 1 :]))


def _plain(client: Client) -> set[str]:
    return {name.rpartition("/")[2].replace("_", "-") for name in (*client.packages, *client.commands)}


def _by_name(word: str, home: Path) -> Client | None:
    """By what a program is called, or by the file that its name stands for."""
    name = bare(word)
    client = next((one for one in CLIENTS if name in one.commands), None)
    if client is not None and client.sure:
        return client
    path = shutil.which(word)
    if path is None:
        return None
    found = _by_place(Path(path))
    if client is None:
        return found
    shown = found is client or any(package in _beginning(Path(path)) for package in client.packages)
    return client if shown or (home / client.home).is_dir() else None


def _by_place(path: Path) -> Client | None:
    """By the package that a file belongs to, links followed."""
    try:
        real = path.resolve().as_posix()
    except (OSError, RuntimeError):
        return None
    inside = real.rpartition("/node_modules/")[2] if "/node_modules/" in real else ""
    parts = inside.split("/")
    package = "/".join(parts[:2]) if inside.startswith("@") else parts[0]
    if not package:
        package = _named(Path(real))
    return next((one for one in CLIENTS if package and package in one.packages), None)


def _named(path: Path) -> str:
    """The name in the nearest package.json, for a program that runs from its sources."""
    import orjson

    for folder in list(path.parents)[:4]:
        try:
            with (folder / "package.json").open("rb") as file:
                found = orjson.loads(file.read(1 << 20))
        except (OSError, orjson.JSONDecodeError):
            continue
        name = found.get("name") if isinstance(found, dict) else None
        return name if isinstance(name, str) else ""
    return ""


def _beginning(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_SEEN).decode("utf-8", "replace")
    except OSError:
        return ""
