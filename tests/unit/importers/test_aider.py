"""aider's chat histories and logs of requests."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxctl.importers import registry
from tests.unit.importers.agent_help import FIXTURES, Json, Window, imported, of_type, windows

NAME = "aider"
CHAT = FIXTURES / "aider" / "chat.history.md"
LOG = FIXTURES / "aider" / "llm.history"
USAGE = "ctxctl.usage.reported"
HEAD = "# aider chat started at 2025-01-01 00:00:00\n\n"


def shown(folder: Path, text: str) -> list[Window]:
    path = folder / "history.md"
    path.write_text(HEAD + text)
    return windows(path, NAME)


def derived(item: Json) -> bool:
    return bool(item.get("metadata", {}).get("ctxctl", {}).get("derived"))


def test_each_start_of_the_program_is_a_session() -> None:
    found = windows(CHAT, NAME)
    assert [w.step.session for w in found] == ["2025-03-01 09:00:00"] * 3 + ["2025-03-02 10:00:00"]
    assert [w.turn for w in found] == ["turn-1", "turn-2", "turn-3", "turn-1"]
    assert [w.step.model for w in found] == ["claude-3-7-sonnet-20250219"] * 3 + ["gpt-4o"]


def test_files_are_in_the_window_until_they_are_dropped() -> None:
    first, second, third, _ = windows(CHAT, NAME)
    assert first.items == [
        ("external_resource", None),
        ("external_resource", None),
        ("user_message", "Print the heights,\none per line."),
    ]
    said = ["user_message", "assistant_message"]
    assert second.kinds() == [*said, "policy_note", "assistant_message", "external_resource", "user_message"]
    told = "I committed the changes with git hash 1a2b3c4 & commit msg: feat: Print heights one per line"
    assert second.texts()[2:4] == [told, "Ok."]
    assert third.items == [("external_resource", None), ("user_message", "Thanks")]


def test_what_was_said_stands_at_the_line_that_is_named() -> None:
    lines = CHAT.read_text().splitlines()
    found, _ = imported(NAME, CHAT.read_bytes())
    kinds = ("user_message", "assistant_message")
    said = [e for e in found if e["data"].get("context_kind") in kinds and not derived(e["data"])]
    assert len(said) >= 6
    for event in said:
        at = event["metadata"]["ctxctl"]["source_line"]
        assert event["data"]["content"].split("\n")[0] in lines[at - 1]


def test_only_counts_in_full_are_bills() -> None:
    shown_windows = windows(CHAT, NAME)
    assert [w.billed() for w in shown_windows] == [5244, None, None, 900]
    first = shown_windows[0].step.usage
    assert first is not None
    assert first.provenance == "derived"
    events, _ = imported(NAME, CHAT.read_bytes())
    assert [(u["input_tokens"], u["output_tokens"]) for u in of_type(events, USAGE)] == [
        (5244, 604),
        (900, 8),
    ]
    kept = [item.get("metadata", {}).get("native") for item in of_type(events, "context.item.added")]
    assert {"tokens": "5.9k sent, 12 received"} in kept


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("> Tokens: 1,234 sent, 5 received.  ", 1234),
        ("> Tokens: 12k sent, 5 received.  ", None),
        ("> Tokens: 12 sent, 1.2k received.  ", None),
        ("> Tokens: 900 sent, 800 cache hit, 5 received. Cost: $0.1 message, $0.1 session.  ", None),
        ("> Tokens: many sent, few received.  ", None),
    ],
)
def test_counts(tmp_path: Path, line: str, wanted: int | None) -> None:
    (one,) = shown(tmp_path, f"#### hi  \n\nHello.\n\n{line}\n")
    assert one.billed() == wanted


def test_an_answer_to_nothing_typed_is_a_request_too(tmp_path: Path) -> None:
    found = shown(
        tmp_path,
        "#### fix it  \n\nDone.\n\n> Tokens: 10 sent, 1 received.  \n> Attempt to fix lint errors? y  \n\n"
        "Fixed.\n\n"
        "> Tokens: 20 sent, 1 received.  \n",
    )
    assert [w.billed() for w in found] == [10, 20]
    assert found[1].kinds() == ["user_message", "assistant_message"]


def test_commands_that_are_not_answered_are_left_out(tmp_path: Path) -> None:
    found = shown(tmp_path, "#### /run ls  \n> a.py  \n\n#### /ask why?  \n> Note  \n\nBecause.\n")
    assert found[0].items == [("user_message", "/ask why?")]


def test_prose_after_a_quote_is_the_same_answer(tmp_path: Path) -> None:
    found = shown(tmp_path, "#### hi  \n\nIt says\n> quoted\nand so on.\n")
    assert len([w for w in found if w.kinds() == ["user_message"]]) == 1


def test_the_log_has_whole_requests() -> None:
    first, second = windows(LOG, NAME)
    assert first.items == [
        ("system_prompt", "Act as an expert programmer.\nBe brief."),
        ("user_message", "I have *added these files to the chat*:\n\ntides.py"),
        ("assistant_message", "Ok."),
        ("user_message", "Print the heights."),
    ]
    assert second.items[2] == ("assistant_message", "Done.\n\nTwo heights.")
    assert second.items[-1] == ("user_message", "Sorted?")
    assert [w.turn for w in (first, second)] == ["turn-1", "turn-2"]


def test_headings_and_quotes_alone_are_not_claimed() -> None:
    importer = registry.by_name(NAME)
    assert importer.detect(b"# Notes\n\n#### A heading\n\n> a quote\n") == 0
    assert importer.detect(b"#### A heading\n\n> Tokens: rare\n") == 0
    assert importer.detect(b"TO LLM or not to LLM\n") == 0
    assert registry.of_head(CHAT.read_bytes()) is importer
    assert registry.of_head(LOG.read_bytes()) is importer
    assert importer.detect(b"#### hi\n\n> Tokens: 10 sent, 1 received.\n") >= 80


def test_bytes_that_are_no_text_are_tolerated() -> None:
    imported(NAME, HEAD.encode() + b"#### \xff\xfe\n\n\x00\n####\n> \n>\n# aider chat started at x\n")
    imported(NAME, b"TO LLM 2025-03-01T09:00:10\n-------\nUSER\nLLM RESPONSE 2025-03-01T09:00:10\n")


def test_a_command_that_prints_nothing_is_no_part_of_the_prompt_behind_it(tmp_path: Path) -> None:
    asked = "#### {}  \n\n{}\n\n> Tokens: {} sent, 9 received.  \n\n"
    text = asked.format("one\n#### and more", "First.", "9,000") + "#### /clear  \n\n"
    found = shown(tmp_path, text + asked.format("two", "Second.", "900"))
    assert [w.texts() for w in found] == [["one\nand more"], ["two"]]
    assert {c.cause for c in found[1].step.changes if c.status == "removed"} == {"cleared"}
