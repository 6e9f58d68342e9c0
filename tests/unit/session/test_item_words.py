"""First words: of what was seen, read when they are shown, and never of what was redacted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ctxctl.model.content import Content
from ctxctl.session import Inspector
from ctxctl.session.item_words import ItemWords, directory_of, names_at

TRACES = Path(__file__).parents[3] / "traces"
NOTES = TRACES / "notes-assistant.jsonl"


def test_the_words_of_each_change_are_those_of_its_text() -> None:
    with Inspector.open(NOTES) as inspector:
        words, texts, told = ItemWords(inspector), dict[str, str](), 0
        for at in inspector.steps():
            texts |= {p.item: inspector.text(p.content) for p in at.placements if p.content and not p.title}
            words.see(at)
            for change in at.step.changes:
                if not change.title and change.item in texts:
                    assert words.of(change.item) == texts[change.item][:1000]
                    told += 1
    assert told > 10


def test_a_text_is_read_when_its_words_are_asked_for_and_then_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with Inspector.open(NOTES) as inspector:
        read: list[Content] = []
        plain = inspector.text
        ats = list(inspector.steps())
        monkeypatch.setattr(inspector, "text", lambda content: read.append(content) or plain(content))
        words = ItemWords(inspector)
        for at in ats:
            words.see(at)
        assert read == []
        assert words.of("message-1") == words.of("message-1") != ""
        assert len(read) == 1
        assert words.of("no such item") == ""


def _event(number: int, kind: str, **data: object) -> dict[str, object]:
    return {
        "schema_version": "0.1.1", "event_id": f"e{number}", "event_type": f"context.{kind}",
        "session_id": "s", "turn_id": "t", "step_id": "s1", "data": {"schema_version": "0.1.1", **data},
    }  # fmt: skip


def test_what_was_redacted_has_no_words(tmp_path: Path) -> None:
    secret = "the launch code is 4711-0815-42 and nobody may know it"
    said = {"context_kind": "user_message", "content_mode": "inline", "visibility": ["model"]}
    events = [
        _event(1, "item.added", item_id="a", content=secret, **said),
        _event(2, "item.added", item_id="b", content="harmless", **said),
        _event(3, "item.added", item_id="c", content=f"again: {secret}", **said),
        _event(4, "assembly.created", assembly_id="x", target="model", ordered_blocks=[
            {"block_id": name, "item_refs": [name], "role": "user"} for name in "abc"
        ], visibility=["model"]),
        _event(5, "redaction.applied", item_id="a", redaction_state="removed"),
    ]  # fmt: skip
    path = tmp_path / "t.jsonl"
    path.write_text("".join(f"{json.dumps(event)}\n" for event in events))
    with Inspector.open(path) as inspector:
        names = names_at(inspector, 0)
        assert [names.of(item, None) for item in "abc"] == ["a", "“harmless”", "c"]


def test_the_directory_is_that_of_the_first_event(tmp_path: Path) -> None:
    event = _event(
        1, "item.added", item_id="a", context_kind="user_message", content_mode="inline", content="x"
    )
    path = tmp_path / "t.jsonl"
    for cwd, found in (("/home/p", "/home/p"), (7, None), (None, None)):
        path.write_text(json.dumps({**event, "metadata": {"ctxctl": {"cwd": cwd}}}) + "\n")
        with Inspector.open(path) as inspector:
            assert directory_of(inspector) == found
