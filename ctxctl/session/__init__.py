"""One opened trace, as every view uses it: the façade (`Inspector`) and its parts."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ctxctl.session.facade import Inspector, Progress
    from ctxctl.session.params import Params
    from ctxctl.session.results import FrameDiff, Outline

__all__ = ["FrameDiff", "Inspector", "Outline", "Params", "Progress"]

_WHERE: Final = {
    "FrameDiff": "results", "Inspector": "facade", "Outline": "results", "Params": "params",
    "Progress": "facade",
}  # fmt: skip
"""The module of each name. It is loaded on first use, because parts of this room do not need the engine."""


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
