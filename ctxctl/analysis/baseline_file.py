"""A gate's committed JSON file of known findings. It is read and replaced as a whole."""

from __future__ import annotations

from collections.abc import Callable
from decimal import InvalidOperation
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from ctxctl.errors import CtxctlError, UnreadableError
from ctxctl.text import visible

T = TypeVar("T")

_VERSION: Final = 1


class BaselineKind(NamedTuple):
    """The content of one gate's baselines, and its message for an invalid one."""

    most: int
    """Most bytes of a file that are read."""
    damaged: str
    """What an invalid file is not, such as `no baseline of findings`."""
    missing_hint: str
    damaged_hint: str

    def read(self, path: Path, parse: Callable[[dict[str, Any]], T]) -> T:
        """Return what `parse` makes of the file's object; for a wrong shape, it may raise ValueError.

        Raises UnreadableError: `no-such-file`, `bad-baseline`.
        """
        import json

        shown = visible(str(path))
        try:
            if not path.is_file():
                raise UnreadableError("no-such-file", f"{shown}: no such file", hint=self.missing_hint)
            with path.open("rb") as file:
                data: Any = json.loads(file.read(self.most))
            if data["version"] != _VERSION:
                raise ValueError
            return parse(data)
        except OSError as error:
            raise UnreadableError("bad-baseline", f"{shown}: {error.strerror}") from None
        except (ValueError, TypeError, KeyError, AttributeError, InvalidOperation, RecursionError):
            raise UnreadableError(
                "bad-baseline", f"{shown} is {self.damaged}", hint=self.damaged_hint
            ) from None


def replace_baseline(path: Path, fields: dict[str, Any]) -> None:
    """Replace a baseline, with its version first. Raises CtxctlError("write-failed")."""
    import json

    from ctxctl.whole_file import replace_file

    text = json.dumps({"version": _VERSION, **fields}, indent=2)
    try:
        replace_file(path, f"{text}\n".encode(), mode=0o666)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "not a usable name"
        raise CtxctlError("write-failed", f"{visible(str(path))}: {why}") from None
