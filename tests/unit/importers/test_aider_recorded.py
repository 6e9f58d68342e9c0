"""A chat history of aider 0.86.2 beside what it sent: an edit, and a start that restores the history."""

from __future__ import annotations

from pathlib import Path

from tests.unit.importers.agent_help import FIXTURES, Json, Window, windows
from tests.unit.importers.recorded_help import recorded

NAME = "aider"
CHAT = FIXTURES / "aider" / "restored.chat.history.md"
_FILES = "I have *added these files to the chat*"


def requests() -> list[list[Json]]:
    """The messages of each request but the one that writes a commit message, without system prompts."""
    found = [one["messages"] for one in recorded("aider.json")["wire"] if one["model"] == "gpt-4o"]
    assert len(found) == 5
    return found


def texts(window: Window) -> list[str]:
    return [str(text).strip() if text is not None else _FILES for text in window.texts()]


def test_frames_are_what_was_sent_in_order() -> None:
    for window, body in zip(windows(CHAT, NAME), requests(), strict=True):
        sent = [str(message["content"]).strip() for message in body]
        files = next(at for at, text in enumerate(sent) if text.startswith(_FILES))
        # What aider has the model say to the files stands in no chat history.
        del sent[files + 1]
        sent[files] = _FILES
        assert texts(window) == sent


def test_an_edit_moves_what_was_said_before_the_files() -> None:
    first, second, *_ = windows(CHAT, NAME)
    assert first.kinds() == ["external_resource", "user_message"]
    assert second.kinds()[-2:] == ["external_resource", "user_message"]
    assert str(second.texts()[2]).startswith("I committed the changes with git hash ")


def test_a_long_history_is_restored_as_a_summary_that_is_not_recorded(tmp_path: Path) -> None:
    path = tmp_path / ".aider.chat.history.md"
    text = CHAT.read_text()
    start = text.index("#### What are they about?")
    path.write_text(f"{text[:start]}#### {'Tell me more. ' * 3000}\n\nMore.\n\n{text[start:]}")
    restored = windows(path, NAME)[-2]
    assert restored.items[0] == ("thread_summary", None)
    assert restored.kinds() == ["thread_summary", "external_resource", "user_message"]


def test_what_was_restored_goes_with_the_rest_when_the_chat_is_cleared(tmp_path: Path) -> None:
    path = tmp_path / ".aider.chat.history.md"
    printed = "> Tokens: 1 sent, 1 received.\n"
    cleared = f"#### /clear  \n> All chat history cleared.  \n\n#### Anew?  \n\nYes.\n\n{printed}"
    path.write_text(CHAT.read_text() + "\n" + cleared)
    assert windows(path, NAME)[-1].kinds() == ["external_resource", "user_message"]
