from __future__ import annotations

import json
from typing import Any

from ctxctl.ingest.parts import LIMIT, shallow


def nested(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = {"a": value}
    return value


def test_what_lies_too_deep_is_an_ellipsis() -> None:
    assert shallow(nested(LIMIT)) == nested(LIMIT)
    cut = json.dumps(shallow(nested(LIMIT + 5)))
    assert cut.count("{") == LIMIT
    assert "\\u2026" in cut


def test_the_bytes_tell_that_there_is_nothing_to_do() -> None:
    value = nested(3)
    assert shallow(value, json.dumps(value).encode()) is value
    deep = nested(LIMIT + 5)
    assert shallow(deep, json.dumps(deep).encode()) != deep
