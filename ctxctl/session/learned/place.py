"""Where learned sets are kept; apart from what reads them, which is slow to import."""

from __future__ import annotations

import os
from pathlib import Path

from ctxctl.user_folders import user_folder


def sets_folder() -> Path:
    """Return where sets are kept: in `CTXCTL_DATA_DIR`, else the user's data directory."""
    named = os.environ.get("CTXCTL_DATA_DIR")
    if named:
        return Path(named) / "learned"
    return user_folder("data") / "learned"
