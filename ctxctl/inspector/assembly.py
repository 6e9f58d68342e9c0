"""The assembled text of a frame, piece by piece."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from ctxctl.model.results import Placement, Step

if TYPE_CHECKING:
    from ctxctl.inspector.facade import Inspector

_NAME: Final = re.compile(r"[A-Za-z][\w.-]*", re.ASCII)
_NAMED: Final = {
    "none": "",
    "space": " ",
    "newline": "\n",
    "line": "\n",
    "blank_line": "\n\n",
    "double_newline": "\n\n",
    "paragraph": "\n\n",
}
"""Separators that are named in the place of their text (`separator_policy` is a free string)."""


class Joint(NamedTuple):
    """What stands between two placements."""

    text: str
    known: bool
    """Whether the assembly records it; else it is a line end, for want of anything better."""
    name: str = ""
    """The policy that the assembly names without saying what text it stands for, such as `message`."""


def joint(step: Step) -> Joint:
    """What the step's assembly puts between placements: a text, or the name of one.

    A word by itself is a name: nobody glues messages together with the word `message`.
    """
    stage = step.stages.get("assembly")
    separator = None if stage is None else stage.facts.get("separator")
    if not isinstance(separator, str):
        return Joint("\n", False)
    if not _NAME.fullmatch(separator):
        return Joint(separator, True)
    named = _NAMED.get(separator.lower())
    return Joint("\n", False, separator) if named is None else Joint(named, True)


def text_of(inspector: Inspector, placement: Placement) -> str:
    """A placement's text without what stands around it; what has none says so in brackets."""
    if placement.content is None:
        why = f"withheld, {placement.redaction}" if placement.redaction else "text not recorded"
        if placement.truncated and placement.method == "declared" and not placement.redaction:
            why = f"cut to {placement.tokens:,} tokens; which part of its text is left is not recorded"
        return f"[{placement.item}: {why}]"
    return inspector.text(placement.content)
