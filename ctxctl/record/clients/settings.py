"""Reads the settings of other programs: within bounds, without an error, and without changing them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import orjson

from ctxctl.whole_file import replace_file

_LIMIT: Final = 4 << 20
_PIECES: Final = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/|,(?=\s*[}\]])', re.DOTALL)
_LINE: Final = re.compile(
    r"^[ \t]*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*(.*?)[ \t]*$", re.MULTILINE
)

Json = dict[str, Any]


def text_of(path: Path | str) -> str:
    """Return a file's text; empty where there is no such file, or it is too large or no text."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(_LIMIT + 1)
        return data.decode("utf-8-sig") if len(data) <= _LIMIT else ""
    except (OSError, ValueError):
        return ""


def json_of(source: Path | str) -> Json:
    """Return the JSON object in a file, or in a text that begins with a brace; empty where there is none.

    Comments and trailing commas are passed over.
    """
    text = source if isinstance(source, str) and source.lstrip().startswith("{") else text_of(source)
    try:
        bare = _PIECES.sub(lambda found: found[0] if found[0].startswith('"') else "", text)
        found = orjson.loads(bare or "{}")
    except (orjson.JSONDecodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def toml_of(source: Path | str) -> Json:
    """Return the TOML table in a file; empty where there is none."""
    try:
        return tomllib.loads(text_of(source))
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}


def variables_of(folder: Path, home: Path, own: str) -> dict[str, str]:
    """Return the variables of the `.env` file that a program finds: from its folder upwards, then at home.

    Args:
        folder: Where the program is started.
        home: The user's home.
        own: The name of the program's own directory, which is searched first.
    """
    for place in (*(up for up in (folder, *folder.parents)), home):
        for path in (place / own / ".env", place / ".env"):
            text = text_of(path)
            if text:
                return {name: value.strip("\"'") for name, value in _LINE.findall(text)}
    return {}


def write_over(path: Path, data: bytes) -> None:
    """Replace a program's file by what the program itself has written, whole, with the same mode.

    Raises OSError; then the file is what it was before.
    """
    replace_file(path.resolve(), data, mode=path.stat().st_mode & 0o777, exactly=True)


def value_at(value: Any, *keys: Any) -> Any:
    """Return the value under these keys; None if there is none."""
    for key in keys:
        if isinstance(value, dict):
            value = value.get(key)
        elif isinstance(value, list) and isinstance(key, int) and key < len(value):
            value = value[key]
        else:
            return None
    return value


def put_at(value: Any, keys: Sequence[Any], new: str) -> None:
    """Put a text under these keys; what is no object on the way is replaced by one."""
    for key in keys[:-1]:
        if isinstance(value, dict) and not isinstance(value.get(key), dict | list):
            value[key] = {}
        value = value[key]
    value[keys[-1]] = new


def merged_with(below: Json, above: Json) -> Json:
    """Merge two settings, the second one the stronger: objects are merged, all else is replaced."""
    made = dict(below)
    for key, value in above.items():
        mine = made.get(key)
        made[key] = merged_with(mine, value) if isinstance(mine, dict) and isinstance(value, dict) else value
    return made
