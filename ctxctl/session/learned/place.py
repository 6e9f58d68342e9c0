"""Where learned sets are kept; apart from what reads them, which is slow to import."""

from __future__ import annotations

import os
from pathlib import Path


def sets_folder() -> Path:
    """Where sets are kept: in `CTXCTL_DATA_DIR`, else the user's data directory."""
    named = os.environ.get("CTXCTL_DATA_DIR")
    if named:
        return Path(named) / "learned"
    from platformdirs import user_data_path

    return user_data_path("ctxctl", appauthor=False) / "learned"
