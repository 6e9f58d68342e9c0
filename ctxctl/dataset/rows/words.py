"""What a capture is read under for a dataset: all that its rows depend on beside the capture itself."""

from __future__ import annotations

import msgspec

from ctxctl.analysis.cost_groups import CostWords


class DatasetWords(msgspec.Struct, frozen=True, array_like=True):
    """The dataset's key and settings, and what `fleet add` was told."""

    asked: CostWords
    key: bytes
    host: str
    """As it stands in the tables."""
    texts: bool
    paths: bool
    redactor: str
    """`module:name` of a function of a key that returns one of a text, which takes secrets out: rooms below
    the recorder do not know its rules."""
    labels: dict[str, str] = {}
