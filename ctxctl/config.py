"""Settings: built-in defaults, then the user's file, then the project's, then ``CTXCTL_*`` variables, then
flags; the last wins.

The user's file is ``config.toml`` in ``~/.config/ctxctl`` or wherever the system has settings; the project's
is ``ctxctl.toml``, or ``pyproject.toml`` with a ``[tool.ctxctl]`` table, in the current directory or the
nearest one above it (not above a repository's root).  ``CTXCTL_CONFIG`` names a file in place of both, and
``off`` none.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args

import msgspec

from ctxctl.errors import UsageError

Color = Literal["auto", "always", "never"]
Theme = Literal[
    "auto", "dark", "light", "contrast-dark", "contrast-light", "terminal-dark", "terminal-light",
]  # fmt: skip
COLORS: Final = get_args(Color)
THEMES: Final = get_args(Theme)
"""Looks of the terminal UI; `auto` is dark or light, whichever the terminal says that it is."""
_MAX_FILE: Final = 1 << 20
"""Bytes of the largest settings file."""
_NAME: Final = "ctxctl.toml"
_TOOL: Final = rb"""(?m)^\s*\[?\s*["']?tool["']?\s*(?:[]=]|\.\s*["']?ctxctl)"""
"""What a ``pyproject.toml`` with settings has; one that names ctxctl elsewhere only is not parsed."""


class Settings(msgspec.Struct, frozen=True):
    """What the whole program is told once; None means "let the trace decide"."""

    target: str = "model"
    model: str | None = None
    encoding: str | None = None
    policy: str | None = None
    read_as: str | None = None
    """The format of captures, in place of what is detected."""
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
    """Keys of the terminal UI by id of what they do, as they were written; `ctxctl.tui.keymap` knows both."""
    models: dict[str, dict[str, Any]] = {}
    """Models of the user's own by name: limits in tokens and prices in US dollars for a million tokens, as
    `_MODEL_FIELDS` names them."""
    cache: dict[str, int] = {}
    """`max`: bytes that what is kept of traces may take together."""
    lint: dict[str, Any] = {}
    """What `ctxctl lint` looks for: `select`, `ignore`, `severity`, `baseline`, and `rules` with parameters
    by code or name; `ctxctl.lint.registry` knows them."""
    check: dict[str, Any] = {}
    """What `ctxctl check` holds a session to, by the names of its options with `_` for `-`; bounds are read
    where they are used."""
    fleet: dict[str, Any] = {}
    """`dataset`: the folder or URL of the dataset that `ctxctl fleet` is about."""
    files: tuple[str, ...] = ()
    """The files that settings were read from; a later one wins."""
    refused: dict[str, str] = {}
    """By table and name, why a setting of the project's file is refused."""


def load(*, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> Settings:
    """The settings in force before any flag: the defaults, the files, the environment.

    Raises UsageError (`bad-config`, `unknown-setting`, `bad-setting`) naming where the value came from.
    """
    env = os.environ if env is None else env
    settings = Settings()
    for path, table, refused in _files(env, cwd):
        settings = _apply(settings, table, str(path))
        files = (*settings.files, str(path))
        settings = msgspec.structs.replace(settings, files=files, refused=refused)
    named = {
        name: env[f"CTXCTL_{name.upper()}"]
        for name in (*_OLD, *_READ)
        if name not in _TABLES and env.get(f"CTXCTL_{name.upper()}")
    }
    return _apply(settings, named, "environment")


def with_flags(settings: Settings, flags: Mapping[str, object]) -> Settings:
    """The settings with what the command line says; a flag that is None was not given.

    Raises UsageError (`bad-setting`).
    """
    given = {name: value for name, value in flags.items() if value is not None and name in _READ}
    return _apply(settings, given, "command line")


def _checked(value: object, kind: Any, words: str) -> Any:
    """The value as it was given; raises ValueError with `words` unless it is of a type of msgspec's."""
    try:
        msgspec.convert(value, kind)
    except (msgspec.ValidationError, OverflowError):
        raise ValueError(words) from None
    return value


_Text = Annotated[str, msgspec.Meta(min_length=1)]
_Names = list[str]
_Tables = dict[str, dict[str, Any]]
_TOKENS: Final = (Annotated[int, msgspec.Meta(gt=0, le=1 << 40)], "a number of tokens")
_DOLLARS: Final = (Annotated[float, msgspec.Meta(ge=0, lt=1e9)], "US dollars for a million tokens")
_MODEL_FIELDS: Final = {
    "like": (str, "a text"),
    "provider": (str, "a text"),
    "window": _TOKENS,
    "max_input": _TOKENS,
    "max_output": _TOKENS,
    "input_price": _DOLLARS,
    "output_price": _DOLLARS,
    "cache_read_price": _DOLLARS,
    "cache_write_price": _DOLLARS,
    "cache_write_1h_price": _DOLLARS,
}
"""What a model of the user's own may have; `like` is a known model that the rest is taken from."""
_LINT_FIELDS: Final = {
    "select": _Names,
    "ignore": _Names,
    "severity": _Text,
    "baseline": _Text,
    "rules": _Tables,
}
_CHECK_FIELDS: Final = {
    "max": str | int,
    "max_growth": str | int,
    "max_tool_result": str | int,
    "max_cost": str | int | float,
    "stable_prefix": bool,
    "no_misses": bool,
    "no_compaction": bool,
    "never": _Names,
    "always": _Names,
    "allow_unknown": bool,
}


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


def _count(value: object) -> Any:
    """A number from 0 up; a variable of the environment has its digits, of which nine count."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value[:9])
    return _checked(value, Annotated[int, msgspec.Meta(ge=0)], "a number from 0 up")


def _keys(value: object) -> dict[str, tuple[str, ...]]:
    """A table of ids; each has a key or a list of keys, an empty one takes all keys away."""
    if not isinstance(value, dict):
        raise ValueError('a table such as [keys] with lines like "turn.next" = ["n"]')
    table = {}
    for ident, keys in _flat(value):
        keys = [keys] if isinstance(keys, str) else keys
        words = f'a table of keys, and "{ident}" a key or a list of keys'
        table[ident] = tuple(_checked(keys, list[_Text], words))
    return table


def _models(value: object) -> dict[str, dict[str, Any]]:
    """A table of models by name."""
    words = 'tables such as [models."my-model"] with lines like window = 128000'
    models: _Tables = _checked(value, _Tables, words)
    for name, entry in models.items():
        for field, given in entry.items():
            if field not in _MODEL_FIELDS:
                known = ", ".join(_MODEL_FIELDS)
                raise ValueError(f'{words}; "{name}" has {field!r}, known are {known}')
            kind, what = _MODEL_FIELDS[field]
            _checked(given, kind, f'{words}; {field} of "{name}" is {what}')
    return models


def _lint(value: object) -> dict[str, Any]:
    """A table of what to lint; names of rules are checked where they are known."""
    words = 'a table such as [lint] with lines like ignore = ["CTX011"], and [lint.rules.CTX009]'
    return _fields(value, _LINT_FIELDS, words)


def _check(value: object) -> dict[str, Any]:
    """A table of conditions; a name may be written with `-` as its option is."""
    words = 'a table such as [check] with lines like max = "80%" and stable-prefix = true'
    table = _checked(value, dict[str, Any], words)
    return _fields({name.replace("-", "_"): given for name, given in table.items()}, _CHECK_FIELDS, words)


def _fleet(value: object) -> dict[str, Any]:
    """A table of what `ctxctl fleet` is about."""
    return _fields(value, {"dataset": _Text}, 'a table such as [fleet] with a line like dataset = "../fleet"')


def _fields(value: object, fields: Mapping[str, Any], words: str) -> dict[str, Any]:
    """A table whose entries have these types; where names are wanted, one text is a list of one."""
    table: dict[str, Any] = {}
    for name, given in _checked(value, dict[str, Any], words).items():
        misfit = f"{words}; {name!r} does not fit"
        if name not in fields:
            raise ValueError(misfit)
        several = fields[name] is _Names and isinstance(given, str)
        table[name] = _checked([given] if several else given, fields[name], misfit)
    return table


def size_of(text: str) -> int | None:
    """The bytes of a size as it is typed, such as 500K, 20 MiB or 4096; None where it is no size."""
    found = re.fullmatch(r"([0-9]{1,15})\s*([kmgt]?)i?b?", text.strip(), re.ASCII | re.IGNORECASE)
    return None if found is None else int(found[1]) << 10 * " kmgt".index(found[2].lower() or " ")


def _cache(value: object) -> dict[str, int]:
    """A table of what may be kept: `max`, a size."""
    words = 'a table such as [cache] with a line like max = "2G"'
    table: dict[str, Any] = _checked(value, dict[str, str | Annotated[int, msgspec.Meta(ge=0)]], words)
    sizes = {name: size_of(given) if isinstance(given, str) else given for name, given in table.items()}
    if sizes.keys() - {"max"} or None in sizes.values():
        raise ValueError(words)
    return {name: size for name, size in sizes.items() if size is not None}


def _flat(table: Mapping[str, object], before: str = "") -> Iterator[tuple[str, object]]:
    """Entries by their full ids: TOML reads an unquoted ``turn.next`` as a table in a table."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield before + name, value


_text = partial(_checked, kind=_Text, words="a text")
_READ: Final[dict[str, Callable[[object], Any]]] = {
    "target": _text,
    "model": _text,
    "encoding": _text,
    "policy": _text,
    "read_as": _text,
    "calibration": _text,
    "learned": _learned,
    "strict": _switch,
    "color": partial(_checked, kind=Color, words=f"one of {', '.join(COLORS)}"),
    "problems": _count,
    "theme": partial(_checked, kind=Theme, words=f"one of {', '.join(THEMES)}"),
    "mouse": _switch,
    "remember": _switch,
    "keys": _keys,
    "models": _models,
    "cache": _cache,
    "lint": _lint,
    "check": _check,
    "fleet": _fleet,
}
"""Takes each setting from what was given for it, or raises ValueError with what it must be."""
_OLD: Final = {"format": "read_as"}
"""Settings by an old name, which is still understood."""
_TABLES: Final = frozenset(("cache", "check", "fleet", "keys", "lint", "models"))
"""Settings that only a file can have."""


def _apply(settings: Settings, table: Mapping[str, object], where: str) -> Settings:
    values: dict[str, Any] = {}
    for name, value in table.items():
        key = name.replace("-", "_")
        key = _OLD.get(key, key)
        if key in _READ:
            try:
                read = _READ[key](value)
                # Of a table, the user's lines hold where the project's say nothing.
                values[key] = {**getattr(settings, key), **read} if key in _TABLES else read
            except ValueError as error:
                raise UsageError("bad-setting", f"{where}: {name} must be {error}, not {value!r}") from None
        else:
            known = ", ".join(f for f in Settings.__struct_fields__ if f not in ("files", "refused"))
            raise UsageError(
                "unknown-setting", f"{where}: there is no setting {name!r}", hint=f"settings are: {known}"
            )
    return msgspec.structs.replace(settings, **values) if values else settings


_File = tuple[Path, dict[str, Any], dict[str, str]]
"""A settings file, its table, and what was refused of it (`Settings.refused`)."""


def _files(env: Mapping[str, str], cwd: Path | None) -> Iterator[_File]:
    """The files in force, the one that wins last."""
    named = env.get("CTXCTL_CONFIG")
    if named == "off":
        return
    if named:
        path = Path(named)
        table = _table(path)
        if table is None:
            what = "a readable settings file" if _may_be_file(path) else "a regular file"
            raise UsageError("bad-config", f"{named} (from CTXCTL_CONFIG) is not {what}")
        yield path, table, {}
        return
    for found in (_of_user(env), _of_project(cwd)):
        if found is not None:
            yield found


def _may_be_file(path: Path) -> bool:
    """Whether a path does not lead to a folder, a pipe or a device."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except (OSError, ValueError):
        return True


def _of_user(env: Mapping[str, str]) -> _File | None:
    """The user's own file."""
    from ctxctl.user_folders import user_folder

    try:
        path = user_folder("config", env) / "config.toml"
    except RuntimeError:  # nobody knows where
        return None
    table = _table(path)
    return None if table is None else (path, table, {})


def _of_project(cwd: Path | None) -> _File | None:
    """The nearest file from the current directory up."""
    try:
        here = Path.cwd() if cwd is None else cwd
    except OSError:  # the current directory was removed
        return None
    for folder in (here, *here.parents):
        for path in (folder / _NAME, folder / "pyproject.toml"):
            table = _table(path)
            if table is not None:
                return path, *_only_inside(path, table, here)
        if (folder / ".git").exists():
            break
    return None


_WRITTEN: Final = (("fleet", "dataset"), ("lint", "baseline"))
"""Settings that name what commands write: a project may name no place outside of itself."""


def _only_inside(path: Path, table: dict[str, Any], here: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """A project's settings without places outside of its folder, and why these are refused."""
    refused: dict[str, str] = {}
    for section, name in _WRITTEN:
        said: Any = table.get(section)
        place = said.get(name) if isinstance(said, dict) else None
        if isinstance(place, str) and not _is_inside(place, here, path.parent):
            table = {**table, section: {key: value for key, value in said.items() if key != name}}
            refused[f"{section}.{name}"] = f"{path} names {place}, which is outside of its folder"
    return table, refused


def _is_inside(place: str, here: Path, folder: Path) -> bool:
    try:
        return "://" not in place and (here / place).resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError, RuntimeError):
        return False


def _table(path: Path) -> dict[str, Any] | None:
    """The settings that a file holds; None where there is no such file or it says nothing about ctxctl."""
    data = _contents(path)
    inside = path.name == "pyproject.toml"
    if data is None or (inside and not (b"ctxctl" in data and re.search(_TOOL, data))):
        return None
    if len(data) > _MAX_FILE:
        raise UsageError("bad-config", f"{path}: settings of more than {_MAX_FILE >> 20} MB are not read")
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


def _contents(path: Path) -> bytes | None:
    """A file up to one byte more than the largest that is read; None where there is none, or no regular one.

    A pipe of that name would be waited for, and the null device is how people name an empty file.
    """
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode) and str(path) != os.devnull:
                return None
            return file.read(_MAX_FILE + 1)
    except OSError:
        return None
