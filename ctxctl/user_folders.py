"""Where files of ours are kept for a user: caches, settings, data, state.

On Linux two variables say so.  platformdirs knows every system and every odd value of these, and is slow to
import: it is asked where the answer is not plain.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal

Kind = Literal["cache", "config", "data", "state"]
_OURS: Final = "ctxctl"
_PLACES: Final = {
    "cache": ("XDG_CACHE_HOME", ".cache"),
    "config": ("XDG_CONFIG_HOME", ".config"),
    "data": ("XDG_DATA_HOME", ".local/share"),
    "state": ("XDG_STATE_HOME", ".local/state"),
}
"""By kind, the variable that names its folder, and where that is below the user's own where none does."""
_DATA: Final = "CTXCTL_DATA_DIR"
_NAMED: Final = (
    ("CTXCTL_CACHE_DIR", "captures"), ("CTXCTL_CACHE_DIR", "index"), ("CTXCTL_CACHE_DIR", "answers"),
    (_DATA, "learned"), (_DATA, "calibration"),
)  # fmt: skip
"""Variables that name a folder, which may hold other things too, and our folder in it."""


def user_folder(kind: Kind, env: Mapping[str, str] | None = None) -> Path:
    """Our folder of a kind; not made.  Raises RuntimeError where nobody knows the user's own folder."""
    env = os.environ if env is None else env
    variable, below = _PLACES[kind]
    named, home = env.get(variable, ""), env.get("HOME", "")
    if sys.platform == "linux" and "ANDROID_DATA" not in env:
        if _is_plain(named):
            return Path(named, _OURS)
        if not named and _is_plain(home):
            return Path(home, below, _OURS)
    import platformdirs  # slow to import

    asked = {
        "cache": platformdirs.user_cache_path,
        "config": platformdirs.user_config_path,
        "data": platformdirs.user_data_path,
        "state": platformdirs.user_state_path,
    }
    return asked[kind](_OURS, appauthor=False)


def own_below(top: str | os.PathLike[str]) -> frozenset[str]:
    """The folders below a directory that ctxctl keeps for itself, `/`-separated: nothing there is a session.

    `""` is the directory itself, if it is such a folder or lies in one.
    """
    env = os.environ
    kept = [Path(env[name], inner) for name, inner in _NAMED if env.get(name)]
    for told in (env, {"HOME": env.get("HOME", "")}):
        with suppress(RuntimeError):
            kept += [user_folder("cache", told), user_folder("state", told)]
            kept += [user_folder("data", told) / inner for name, inner in _NAMED if name == _DATA]
    here = os.path.realpath(top)
    found: set[str] = set()
    for one in kept:
        real = os.path.realpath(one)
        if f"{here}{os.sep}".startswith(f"{real}{os.sep}"):
            return frozenset(("",))
        if real.startswith(f"{here.rstrip(os.sep)}{os.sep}"):
            found.add(os.path.relpath(real, here).replace(os.sep, "/"))
    return frozenset(found)


def make_private(folder: Path) -> None:
    """Make a folder, and each missing one above it, for the user alone.  Raises OSError."""
    if not folder.is_dir():
        make_private(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def _is_plain(path: str) -> bool:
    """Whether it is an absolute path in which nothing stands for something else."""
    return path.startswith("/") and path == path.strip() and "~" not in path and "$" not in path
