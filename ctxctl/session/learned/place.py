"""The directory of learned sets, separate from the slow-to-import module that reads them."""

from __future__ import annotations

import os
from pathlib import Path

from ctxctl.user_folders import user_folder


def sets_folder() -> Path:
    """Return the sets' directory: in `CTXCTL_DATA_DIR`, else in the user's data directory."""
    named = os.environ.get("CTXCTL_DATA_DIR")
    if named:
        return Path(named) / "learned"
    return user_folder("data") / "learned"
