"""Settings: built-in defaults, then the nearest file, then ``CTXCTL_*`` variables, then flags; the last wins.

The file is ``ctxctl.toml``, or ``pyproject.toml`` with a ``[tool.ctxctl]`` table, in the current directory or
the nearest one above it (not above a repository's root).  ``CTXCTL_CONFIG`` names another file, ``off`` none.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from ctxctl.errors import UsageError

COLORS: Final = ("auto", "always", "never")
THEMES: Final = (
    "auto",
    "dark",
    "light",
    "contrast-dark",
    "contrast-light",
    "terminal-dark",
    "terminal-light",
)
"""Looks of the terminal UI; `auto` is dark or light, whichever the terminal says that it is."""
MODEL_FIELDS: Final = {
    "like": str,
    "provider": str,
    "window": int,
    "max_input": int,
    "max_output": int,
    "input_price": float,
    "output_price": float,
    "cache_read_price": float,
    "cache_write_price": float,
    "cache_write_1h_price": float,
}
"""What a model of the user's own may have; `like` is a known model that the rest is taken from."""
_MAX_FILE: Final = 1 << 20
_NAME: Final = "ctxctl.toml"


class Settings(msgspec.Struct, frozen=True):
    """What the whole program is told once; None means "let the trace decide"."""

    target: str = "model"
    model: str | None = None
    encoding: str | None = None
    policy: str | None = None
    format: str | None = None
    calibration: str = "saved"
    """`none`, `saved` (the shipped one where none was saved), `shipped`, `session`, or a digest or file."""
    learned: str = "auto"
    """What completes logs: `auto`, `none`, or the `CLIENT@VERSION` of a set; true is `auto`, false `none`."""
    strict: bool = False
    """Problems in the input, or a replay that differs from the record, make the exit code 1."""
    color: str = "auto"
    """One of `COLORS`; `auto` is colour on a terminal that can show it, and never under ``NO_COLOR``."""
    problems: int = 20
    """How many problems a plain report prints before it only counts them."""
    theme: str = "auto"
    """One of `THEMES`."""
    mouse: bool = True
    """Whether the terminal UI takes the mouse; without, the terminal's own selecting works as usual."""
    remember: bool = True
    """Whether the terminal UI remembers for each trace where it was left."""
    keys: dict[str, tuple[str, ...]] = {}
    """Keys of the terminal UI by id of what they do, as they were written; `ctxctl.tui.remap` knows both."""
    models: dict[str, dict[str, Any]] = {}
    """Models of the user's own by name: limits in tokens and prices in US dollars for a million tokens, as
    `MODEL_FIELDS` names them."""
    lint: dict[str, Any] = {}
    """What `ctxctl lint` looks for: `select`, `ignore`, `severity`, `baseline`, and `rules` with parameters
    by code or name; `ctxctl.lint.selection` knows them."""
    file: str | None = None
    """The file that settings were read from."""


def load(*, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> Settings:
    """The settings in force before any flag: the defaults, the nearest file, the environment.

    Raises UsageError (`bad-config`, `unknown-setting`, `bad-setting`) naming where the value came from.
    """
    env = os.environ if env is None else env
    settings = Settings()
    found = _find(env, cwd)
    if found is not None:
        path, table = found
        settings = _apply(settings, table, str(path))
        settings = msgspec.structs.replace(settings, file=str(path))
    named = {
        name: env[f"CTXCTL_{name.upper()}"]
        for name in _READ
        if name not in _TABLES and env.get(f"CTXCTL_{name.upper()}")
    }
    return _apply(settings, named, "environment")


def with_flags(settings: Settings, flags: Mapping[str, object]) -> Settings:
    """The settings with what the command line says; a flag that is None was not given.

    Raises UsageError (`bad-setting`).
    """
    given = {name: value for name, value in flags.items() if value is not None and name in _READ}
    return _apply(settings, given, "command line")


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("a text")
    return value


def _switch(value: object) -> bool:
    if isinstance(value, bool):
        return value
    words = {"1": True, "true": True, "yes": True, "on": True}
    words |= {"0": False, "false": False, "no": False, "off": False}
    if isinstance(value, str) and value.lower() in words:
        return words[value.lower()]
    raise ValueError("true or false")


def _learned(value: object) -> str:
    try:
        return "auto" if _switch(value) else "none"
    except ValueError:
        pass
    if isinstance(value, str) and (value in ("auto", "none") or "@" in value):
        return value
    raise ValueError("true, false or CLIENT@VERSION")


def _count(value: object) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value[:9])
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError("a number from 0 up")
    return value


def _color(value: object) -> str:
    if value not in COLORS:
        raise ValueError(f"one of {', '.join(COLORS)}")
    return str(value)


def _theme(value: object) -> str:
    if value not in THEMES:
        raise ValueError(f"one of {', '.join(THEMES)}")
    return str(value)


def _keys(value: object) -> dict[str, tuple[str, ...]]:
    """A table of ids; each has a key or a list of keys, an empty one takes all keys away."""
    if not isinstance(value, dict):
        raise ValueError('a table such as [keys] with lines like "turn.next" = ["n"]')
    table = {}
    for ident, keys in _flat(value):
        keys = [keys] if isinstance(keys, str) else keys
        if not isinstance(keys, list) or not all(isinstance(key, str) and key for key in keys):
            raise ValueError(f'a table of keys, and "{ident}" a key or a list of keys')
        table[ident] = tuple(keys)
    return table


def _models(value: object) -> dict[str, dict[str, Any]]:
    """A table of models by name."""
    want = 'tables such as [models."my-model"] with lines like window = 128000'
    if not isinstance(value, dict):
        raise ValueError(want)
    for name, entry in value.items():
        if not isinstance(entry, dict):
            raise ValueError(want)
        for field, told in entry.items():
            kind = MODEL_FIELDS.get(field)
            if kind is None:
                raise ValueError(f'{want}; "{name}" has {field!r}, known are {", ".join(MODEL_FIELDS)}')
            fits = isinstance(told, str) if kind is str else _positive(told, kind)
            if not fits:
                what = {str: "a text", int: "a number of tokens", float: "US dollars for a million tokens"}
                raise ValueError(f'{want}; {field} of "{name}" is {what[kind]}')
    return value


def _lint(value: object) -> dict[str, Any]:
    """A table of what to lint; names of rules are checked where they are known."""
    want = 'a table such as [lint] with lines like ignore = ["CTX011"], and [lint.rules.CTX009]'
    if not isinstance(value, dict):
        raise ValueError(want)
    table: dict[str, Any] = {}
    for name, told in value.items():
        if name in ("select", "ignore"):
            told = [told] if isinstance(told, str) else told
            fits = isinstance(told, list) and all(isinstance(one, str) for one in told)
        elif name in ("severity", "baseline"):
            fits = isinstance(told, str) and bool(told)
        else:
            tables = told.values() if isinstance(told, dict) else ("",)
            fits = name == "rules" and all(isinstance(one, dict) for one in tables)
        if not fits:
            raise ValueError(f"{want}; {name!r} does not fit")
        table[name] = told
    return table


def _positive(value: object, kind: type) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return isinstance(value, int) and 0 < value <= 1 << 40 if kind is int else 0 <= value < 1e9


def _flat(table: Mapping[str, object], before: str = "") -> Iterator[tuple[str, object]]:
    """Entries by their full ids: TOML reads an unquoted ``turn.next`` as a table in a table."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield before + name, value


_READ: Final[dict[str, Callable[[object], Any]]] = {
    "target": _text,
    "model": _text,
    "encoding": _text,
    "policy": _text,
    "format": _text,
    "calibration": _text,
    "learned": _learned,
    "strict": _switch,
    "color": _color,
    "problems": _count,
    "theme": _theme,
    "mouse": _switch,
    "remember": _switch,
    "keys": _keys,
    "models": _models,
    "lint": _lint,
}
_TABLES: Final = frozenset(("keys", "lint", "models"))
"""Settings that only a file can have."""


def _apply(settings: Settings, table: Mapping[str, object], where: str) -> Settings:
    values: dict[str, Any] = {}
    for name, value in table.items():
        key = name.replace("-", "_")
        if key in _READ:
            try:
                values[key] = _READ[key](value)
            except ValueError as error:
                raise UsageError("bad-setting", f"{where}: {name} must be {error}, not {value!r}") from None
        else:
            known = ", ".join(f for f in Settings.__struct_fields__ if f != "file")
            raise UsageError(
                "unknown-setting", f"{where}: there is no setting {name!r}", hint=f"settings are: {known}"
            )
    return msgspec.structs.replace(settings, **values) if values else settings


def _find(env: Mapping[str, str], cwd: Path | None) -> tuple[Path, dict[str, object]] | None:
    """The settings table in force and its file."""
    named = env.get("CTXCTL_CONFIG")
    if named == "off":
        return None
    if named:
        path = Path(named)
        table = _table(path)
        if table is None:
            raise UsageError("bad-config", f"{named} (from CTXCTL_CONFIG) is not a readable settings file")
        return path, table
    try:
        here = Path.cwd() if cwd is None else cwd
    except OSError:  # the current directory was removed
        return None
    for folder in (here, *here.parents):
        for path in (folder / _NAME, folder / "pyproject.toml"):
            table = _table(path)
            if table is not None:
                return path, table
        if (folder / ".git").exists():
            break
    return None


def _table(path: Path) -> dict[str, object] | None:
    """The settings that a file holds; None where there is no such file or it says nothing about ctxctl."""
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_FILE + 1)
    except OSError:
        return None
    inside = path.name == "pyproject.toml"
    if len(data) > _MAX_FILE or (inside and b"ctxctl" not in data):
        return None
    import tomllib

    try:
        parsed: dict[str, Any] = tomllib.loads(data.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError("bad-config", f"{path}: {error}") from None
    if not inside:
        return parsed
    tool = parsed.get("tool")
    table = tool.get("ctxctl") if isinstance(tool, dict) else None
    return table if isinstance(table, dict) else None
