"""Which fitted model stands in for one that is not: the nearest of its vendor that splits texts alike.

Only where there is reason to think so.  The groups are as measured (docs/calibration.md): Claude makes some
1.1 to 1.2 tokens of one of o200k_base up to 4.6 and some 1.5 from 4.7 on; Gemini's 2.5 and 3 are alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple, Protocol, TypeVar

_CLAUDE: Final = re.compile(r"\b(?:claude|opus|sonnet|haiku|fable|mythos)\b")
_VERSION: Final = re.compile(r"(?<![\w.])(\d{1,2})(?:[-.](\d{1,2}))?(?![\d])")
_LINE: Final = re.compile(r"\b(?:opus|sonnet|haiku|fable|mythos|pro|flash|maverick|scout)\b")
_NEWER_CLAUDE: Final = (4, 7)
"""The first whose bills are of another tokenizer."""


class Kind(NamedTuple):
    """What a model's name says of its tokenizer."""

    group: str
    """Models of one group are taken to split texts alike."""
    version: tuple[int, int]
    line: str
    """`opus`, `flash` …; empty where the name has none."""


def relative_kind(model: str) -> Kind | None:
    """The group that a model's name (`points.family` of it) belongs to; None: there is no reason for one."""
    found = _VERSION.search(model)
    if found is None:
        return None
    version = (int(found[1]), int(found[2] or 0))
    line = _LINE.search(model)
    if _CLAUDE.search(model) and version >= (3, 0):
        group = "newer claude" if version >= _NEWER_CLAUDE else "claude"
    elif model.startswith("gemini-") and version >= (2, 0):
        group = "gemini"
    elif model.startswith("llama-4"):
        group = "llama-4"
    else:
        return None
    return Kind(group, version, line[0] if line is not None else "")


class Fitted(Protocol):
    """A fit of a model, as far as a relative is chosen by it."""

    @property
    def model(self) -> str:
        """`points.family` of its name."""

    @property
    def steps(self) -> int:
        """Number of steps that it was fitted to."""


_F = TypeVar("_F", bound=Fitted)


def nearest_fit(model: str, fits: Iterable[_F]) -> _F | None:
    """The fit of the nearest relative: by version, then of the same line, then the one of most steps."""
    own = relative_kind(model)
    if own is None:
        return None
    best: tuple[tuple[int, bool, int, str], _F] | None = None
    for fit in fits:
        other = relative_kind(fit.model)
        if other is None or other.group != own.group or fit.model == model:
            continue
        apart = 10 * (own.version[0] - other.version[0]) + own.version[1] - other.version[1]
        rank = (abs(apart), own.line != other.line, -fit.steps, fit.model)
        if best is None or rank < best[0]:
            best = (rank, fit)
    return best[1] if best is not None else None
