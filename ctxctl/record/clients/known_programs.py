"""The table of known programs, and which of them a command runs.

A program is recognised by its name or path, also through npx, uvx, node, `python -m`, `env`, `timeout` or a
shell.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

_ENDINGS: Final = re.compile(r"\.(?:exe|cmd|bat|ps1|js|mjs|cjs|ts|py|sh|bin)\Z", re.IGNORECASE)
_VERSION: Final = re.compile(r"(?<=.)(?:@|==).*\Z")
"""The version behind a package's name."""
_ASSIGNED: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_SHELLS: Final = frozenset(("sh", "bash", "zsh", "dash", "ksh", "fish", "ash"))
_CUT: Final = re.compile(r"[;&|()\n]+|\b(?:then|do|else|exec|time)\b")
_WRAPPERS: Final[Mapping[str, tuple[int, str]]] = {
    # The number of a wrapper's own arguments, and its options with a value in the next word.
    "env": (0, "uCS"), "nohup": (0, ""), "nice": (0, "n"), "ionice": (0, "cnp"), "time": (0, "of"),
    "timeout": (1, "ks"), "gtimeout": (1, "ks"), "stdbuf": (0, "ioe"), "setsid": (0, ""),
    "sudo": (0, "ugCDhpRrTtU"), "doas": (0, "uC"), "caffeinate": (0, "tw"), "command": (0, ""),
    "exec": (0, "a"), "unbuffer": (0, ""), "xvfb-run": (0, "nsfew"), "dotenv": (0, "fe"), "mise": (1, ""),
    "arch": (0, ""), "chrt": (1, ""), "taskset": (1, ""),
}  # fmt: skip
_RUNNERS: Final[Mapping[str, tuple[str, ...]]] = {
    # Programs that run a package by its name, and the words that may stand before that.
    "npx": (), "bunx": (), "pnpx": (), "uvx": (), "npm": ("exec", "x"), "pnpm": ("exec", "dlx"),
    "yarn": ("dlx", "exec"), "bun": ("x", "run"), "uv": ("tool", "run"), "pipx": ("run",), "volta": ("run",),
}  # fmt: skip
_VALUED: Final = frozenset(
    ("-p", "--package", "--from", "--with", "--python", "--spec", "--index-url", "--directory", "--project",
     "--env-file", "-w", "--workspace", "--prefix", "--registry", "--node")
)  # fmt: skip
"""Options of these with a value in the next word."""
_ENGINES: Final = re.compile(r"(?:node|bun|deno|tsx|python[0-9.]*|pypy[0-9.]*|ruby)\Z")
_ENGINE_VALUED: Final = frozenset(("-r", "--require", "--import", "--loader", "-W", "-X", "--env-file", "-C"))
_SEEN: Final = 4096
"""Bytes of a script that are read."""
_DEPTH: Final = 8


class RecognisedProgram(NamedTuple):
    """A program that was recognised."""

    client: Client
    at: int | None
    """The index in the command where its arguments begin; None: a shell starts it."""
    arguments: tuple[str, ...]
    """Its arguments, as far as they are known."""


def recognised(command: Sequence[str], home: Path | None = None) -> list[RecognisedProgram]:
    """Return the known programs that a command runs, in order; more than one only behind a shell.

    Args:
        command: The program and its arguments.
        home: The user's home; the process's own by default.
    """
    return list(_walk(command, home or Path.home()))


def _walk(command: Sequence[str], home: Path) -> Iterator[RecognisedProgram]:
    at = 0
    for _ in range(_DEPTH):
        while at < len(command) and _ASSIGNED.match(command[at]):
            at += 1
        if at >= len(command):
            return
        name = program_name(command[at])
        client = _by_name(command[at], home)
        if client is not None:
            yield RecognisedProgram(client, at + 1, tuple(command[at + 1 :]))
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


def program_name(word: str) -> str:
    """Return a program's name without its folder and ending, in lower case."""
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


def _in_shell(arguments: Sequence[str], home: Path) -> Iterator[RecognisedProgram]:
    """Yield what a shell's `-c` runs, as far as its words show."""
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
                yield RecognisedProgram(found.client, None, found.arguments)


def _in_runner(
    command: Sequence[str], at: int, verbs: Sequence[str], home: Path
) -> Iterator[RecognisedProgram]:
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
        yield RecognisedProgram(client, at + 1, tuple(command[at + 1 :]))
    elif program_name(command[at]) in _SHELLS or _ENGINES.match(program_name(command[at])):
        for found in _walk(command[at:], home):
            yield found._replace(at=None if found.at is None else found.at + at)


def _in_engine(command: Sequence[str], at: int, home: Path) -> Iterator[RecognisedProgram]:
    """Yield the program in a script of Node or Python, or in a module."""
    while at < len(command) and command[at].startswith("-"):
        if command[at] == "-m" and at + 1 < len(command):
            module = command[at + 1].partition(".")[0].replace("_", "-")
            client = next((one for one in CLIENTS if module in _plain(one)), None)
            if client is not None:
                yield RecognisedProgram(client, at + 2, tuple(command[at + 2 :]))
            return
        if command[at] in ("-c", "-e", "--eval", "-p"):
            return
        at += 2 if command[at] in _ENGINE_VALUED else 1
    if at < len(command) and command[at] in ("run",):
        at += 1
    if at < len(command):
        client = _by_place(Path(command[at])) or _by_name(command[at], home)
        if client is not None:
            yield RecognisedProgram(client, at + 1, tuple(command[at + 1 :]))


def _plain(client: Client) -> set[str]:
    return {name.rpartition("/")[2].replace("_", "-") for name in (*client.packages, *client.commands)}


def _by_name(word: str, home: Path) -> Client | None:
    """Return the program of this name, or of the file that the name stands for."""
    name = program_name(word)
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
    """Return the program whose package a file belongs to, links followed."""
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
    """Return the name in the nearest package.json, for a program that runs from its sources."""
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


class Client(NamedTuple):
    """A known program.

    Attributes:
        name: As its makers write it.
        commands: Names of its command, without an ending.
        packages: Names of its packages in npm, PyPI and the like; of its module for `python -m`.
        way: How it is redirected to the relay, in words.
        advice: What to do where no request came.
        sure: False: other programs have this name too, so the file has to show whose it is.
        home: A directory that it makes under the user's home, which shows that it is the one meant.
    """

    name: str
    commands: tuple[str, ...]
    packages: tuple[str, ...]
    way: str
    advice: str
    sure: bool = True
    home: str = ""


_VARIABLES: Final = "the providers' variables"

CLIENTS: Final = (
    Client(
        "Claude Code", ("claude",), ("@anthropic-ai/claude-code",),
        "`ANTHROPIC_BASE_URL`; where its settings hold one of their own, `--settings`",
        "with Bedrock, Vertex or Foundry it asks no server that could be recorded; its own log can be: "
        "ctxctl record --watch ~/.claude/projects",
    ),
    Client(
        "Codex", ("codex",), ("@openai/codex",),
        "`-c openai_base_url=…`, or `-c model_providers.NAME.base_url=…` of the provider that it is set to",
        "a provider of your own needs its base_url in config.toml; its own log can be recorded: "
        "ctxctl record --watch ~/.codex/sessions",
    ),
    Client(
        "opencode", ("opencode",), ("opencode-ai",),
        "the providers' variables, Anthropic's with `/v1`; addresses of its own settings by "
        "`OPENCODE_CONFIG_CONTENT`",
        "a provider that opencode.json does not name is reached at its own address: write its "
        "`options.baseURL` there, and it is led to the recorder",
    ),
    Client(
        "pi", ("pi",), ("@earendil-works/pi-coding-agent", "@mariozechner/pi-coding-agent"),
        "an extension in a temporary folder, by `--extension`",
        "providers other than Anthropic, OpenAI, Google and those of models.json are reached at their own "
        "addresses: write a `baseUrl` for yours there, and it is led to the recorder",
        sure=False, home=".pi/agent",
    ),
    Client(
        "Copilot CLI", ("copilot",), ("@github/copilot",),
        "`COPILOT_PROVIDER_BASE_URL`, where it is set",
        "with GitHub's own models it signs in to GitHub's server, which is not led to the recorder; its own "
        "log can be recorded: ctxctl record --watch ~/.copilot/session-state",
    ),
    Client(
        "Gemini CLI", ("gemini",), ("@google/gemini-cli",),
        "`GOOGLE_GEMINI_BASE_URL`, with Google's login `CODE_ASSIST_ENDPOINT`; where its settings do not say "
        "how to sign in, a directory of links to them by `GEMINI_CLI_HOME`",
        "choose how to sign in first (`gemini`, then `/auth`), and then record",
    ),
    Client(
        "Qwen Code", ("qwen",), ("@qwen-code/qwen-code",),
        "`OPENAI_BASE_URL`, where it is set; addresses of its settings by `QWEN_CODE_SYSTEM_SETTINGS_PATH`",
        "with Qwen's login it goes to an address that the login names: give one that you choose, as "
        "--upstream openai=URL",
    ),
    Client(
        "Cline", ("cline",), ("cline",),
        "a copy of its providers' settings in a temporary folder, by `CLINE_PROVIDER_SETTINGS_PATH`, "
        "without its hub",
        "Cline's own models are asked at its own server, which is not led to the recorder; with a provider "
        "of yours (cline auth) they are recorded",
    ),
    Client(
        "Continue", ("cn",), ("@continuedev/cli",),
        "a copy of its config.yaml in a temporary folder, by `--config`",
        "models of its hub, and a config that is not in ~/.continue, are not led to the recorder: give yours "
        "with --config FILE",
        sure=False, home=".continue",
    ),
    Client(
        "aider", ("aider",), ("aider-chat", "aider"), _VARIABLES,
        "an address in .aider.conf.yml or .env goes before the variable: give it as --upstream openai=URL "
        "instead",
    ),
    Client(
        "mini-swe-agent", ("mini", "mini-swe-agent", "mini-extra"), ("mini-swe-agent", "minisweagent"),
        _VARIABLES,
        "an `api_base` in its configuration goes before the variable: give it as --upstream openai=URL "
        "instead",
    ),
    Client(
        "Goose", ("goose",), ("goose",), "`ANTHROPIC_HOST`, `OPENAI_HOST`",
        "its other providers have variables of their own: give one as --upstream NAME=URL",
    ),
    Client(
        "Crush", ("crush",), ("@charmland/crush",), "`ANTHROPIC_API_ENDPOINT`, `OPENAI_API_ENDPOINT`, "
        "`GEMINI_API_ENDPOINT`",
        "a `base_url` in crush.json goes before the variable",
    ),
    Client(
        "Amp", ("amp",), ("@sourcegraph/amp", "@ampcode/cli"), "not at all: its own server asks the models",
        "its own server asks the models, so no request can be recorded here",
    ),
)  # fmt: skip
"""Every known program; `redirects` has what is done for it."""
