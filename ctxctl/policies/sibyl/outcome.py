"""What a source reports of how a trajectory ended, as Sibyl 1.4 writes it under an item's name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

_KEY: Final = "operational_outcome"
_OLDEST: Final = 7
"""The first version of the metadata that has such a record."""
_LONGEST: Final = 256
"""Characters of a value, in quotes, that is written out."""
_FIXED: Final = {"basis": "source_report", "scope": "trajectory"}


def outcome_lines(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """The lines; none where the metadata holds no complete record of an outcome."""
    version = metadata.get("operational_schema_version")
    told = metadata.get(_KEY)
    if metadata.get("category") != "operational_experience" or type(version) is not int or version < _OLDEST:
        return ()
    if not isinstance(told, dict) or set(told) != {"version", *_FIXED, "present", "value"}:
        return ()
    present, value = told["present"], told["value"]
    fixed = type(told["version"]) is int and told["version"] == 1
    fixed = fixed and all(told[key] == wanted for key, wanted in _FIXED.items())
    if not fixed or type(present) is not bool or not isinstance(value, str) or (value and not present):
        return ()
    return (
        f"  - Source-reported trajectory outcome: {_shown(present, value)}",
        "    Actions and reasoning are agent reports; a trajectory outcome does not establish success of each"
        " action.",
    )


def _shown(present: bool, value: str) -> str:
    if not present:
        return "not recorded"
    quoted = json.dumps(value, ensure_ascii=False)
    if len(quoted) <= _LONGEST:
        return quoted
    digest = sha256(value.encode("utf-8", "replace")).hexdigest()
    return f"full value in {_KEY} metadata (sha256 {digest})"
