"""Files and directories that nobody may read, for whoever runs the tests: of root, modes keep nothing."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest


def forbid(monkeypatch: pytest.MonkeyPatch, *paths: Path) -> None:
    """Let the system refuse to open these files, and to list these directories, in this process."""
    import builtins
    import io

    closed = {os.fspath(path.resolve()) for path in paths}

    def refusing(function: Any) -> Any:
        def called(path: Any = ".", *given: Any, **named: Any) -> Any:
            if not isinstance(path, int) and os.path.realpath(os.fsdecode(path)) in closed:
                raise PermissionError(errno.EACCES, "Permission denied", os.fspath(path))
            return function(path, *given, **named)

        return called

    for module, name in ((os, "scandir"), (os, "open"), (builtins, "open"), (io, "open")):
        monkeypatch.setattr(module, name, refusing(getattr(module, name)))
