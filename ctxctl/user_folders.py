"""Where files of ours are kept for a user: caches, settings, data, state.

On Linux two variables say so.  platformdirs knows every system and every odd value of these, and is slow to
import: it is asked where the answer is not plain.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
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


def make_private(folder: Path) -> None:
    """Make a folder, and each missing one above it, for the user alone.  Raises OSError."""
    if not folder.is_dir():
        make_private(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def _is_plain(path: str) -> bool:
    """Whether it is an absolute path in which nothing stands for something else."""
    return path.startswith("/") and path == path.strip() and "~" not in path and "$" not in path
