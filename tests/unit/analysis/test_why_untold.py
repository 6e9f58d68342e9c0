"""`ctxctl why` of a compaction that does not tell which messages it left: nothing is claimed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ctxctl.analysis.why.answer import explain_item
from ctxctl.analysis.why.supposing import supposed_outcomes
from ctxctl.model.why import Why
from ctxctl.session import Inspector
from tests.unit.importers.agent_help import written
from tests.unit.importers.test_amplifier import ASK, Log, body, user


@pytest.fixture
def inspector(tmp_path: Path) -> Iterator[Inspector]:
    """Two prompts, a compaction before the second request, and a last request whose body the log holds."""
    log = Log()("prompt:submit", prompt="a")("llm:request", **ASK, has_system=True, message_count=2)
    log("llm:response", **ASK, usage={"input": 9})("prompt:submit", prompt="b")
    log(
        "context:compaction",
        before_messages=4,
        after_messages=2,
        after_tokens=50,
        budget=90,
        messages_removed=2,
    )
    log("llm:request", **ASK, has_system=True, message_count=2)("llm:response", **ASK, usage={"input": 9})
    log("llm:request", **ASK, has_system=True, message_count=3)("llm:response", **ASK, usage={"input": 9})
    log("prompt:submit", prompt="c")("llm:request", **ASK, raw=body(user("c")))
    with Inspector.open(str(written(tmp_path, *log.rows))) as made:
        yield made


def of(why: Why, verdict: str) -> list[str]:
    return [link.text for link in why.links if link.verdict == verdict]


@pytest.mark.parametrize("ordinal", [1, 2])
def test_what_an_untold_compaction_took_in_may_be_there_or_not(inspector: Inspector, ordinal: int) -> None:
    why = explain_item(inspector, ordinal, "user_message-1")
    assert (why.state, why.present) == ("untold", False)
    assert not of(why, "compacted")
    told = of(why, "not-told")
    assert told[0].startswith("may have been taken out by the compaction (custom, ")
    assert "represents what that left of it and of 1 other item" in told[0]
    assert not [link for link in why.links if link.stage == "room"], "nobody knows whether it lacks room"
    assert {link.stage for link in supposed_outcomes(inspector, why).links} <= {"cost"}, (
        "no limit is said to bring it in"
    )


def test_the_prompt_that_is_to_be_answered_was_sent(inspector: Inspector) -> None:
    why = explain_item(inspector, 1, "user_message-2")
    assert why.state == "untold"
    assert of(why, "not-told")[0].startswith("is, as the prompt to be answered, part of “2 of 4 messages")


def test_a_later_request_that_is_known_tells(inspector: Inspector) -> None:
    assert explain_item(inspector, 0, "user_message-1").state == "current"
    assert explain_item(inspector, 3, "user_message-1").state == "out"
    assert explain_item(inspector, 3, "context-view").state == "out"
