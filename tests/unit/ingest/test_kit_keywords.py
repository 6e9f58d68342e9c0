"""A keyword that the kit does not know is refused, and the nearest one is named."""

from __future__ import annotations

import re

import pytest

from ctxctl.ingest.build import Maker
from ctxctl.ingest.conversation import Conversation
from ctxctl.ingest.parts import Part


def window() -> Conversation:
    return Conversation(Maker("test", "t-"), [])


def test_a_part() -> None:
    says = "Part has no keyword 'tittle'; did you mean 'title'? it takes: key, source, title,"
    with pytest.raises(TypeError, match=re.escape(says)):
        Part("user_message", "text", "user", tittle="x")
    assert Part("image", None, "user", mime_type="image/png", byte_size=3).data["byte_size"] == 3


def test_a_request() -> None:
    says = "request has no keyword 'modl'; did you mean 'model'? it takes: step, line, model,"
    with pytest.raises(TypeError, match=re.escape(says)):
        window().request(modl="m")


def test_marks_of_one_s_own_go_by_their_own_argument() -> None:
    out: list[dict[str, object]] = []
    made = Conversation(Maker("test", "t-"), out)
    made.request(model="m", derived=True, marks={"kiln_heat": 900})
    marks = out[0]["data"]["metadata"]["ctxctl"]  # type: ignore[index]
    assert marks == {"mode": "window", "derived": True, "kiln_heat": 900, "model": "m"}


def test_a_compaction() -> None:
    with pytest.raises(TypeError, match=re.escape("compact has no keyword 'metod'; did you mean 'method'?")):
        window().compact([], metod="x")


def test_what_is_near_to_nothing() -> None:
    with pytest.raises(TypeError, match=re.escape("Part has no keyword 'zzz'; it takes: key,")):
        Part("user_message", "text", "user", zzz=1)
