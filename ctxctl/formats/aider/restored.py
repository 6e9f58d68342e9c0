"""What aider makes of its own chat history when it restores it (`--restore-chat-history`)."""

from __future__ import annotations

from typing import Final

from ctxctl.formats.kit.parts import Part

_VERBATIM: Final = 32 * 1024
"""Characters that are restored as they are: beyond some 8,000 tokens every model's restored history is
summarised."""


class Restored:
    """The messages of the file so far, as `split_chat_history_markdown` tells them apart."""

    def __init__(self) -> None:
        self._messages: list[tuple[str, str]] = []
        self._role = "assistant"
        self._lines: list[str] = []
        self._size = 0

    def take(self, line: str) -> None:
        """One line of the file, without what ends it."""
        if line.startswith("# "):
            return
        if line.startswith("> "):
            self._close()
            return
        role = "user" if line.startswith("#### ") else "assistant"
        if role != self._role:
            self._close()
            self._role = role
        if self._size <= _VERBATIM:
            text = (line[5:] if role == "user" else line) + "\n"
            self._size += len(text)
            self._lines.append(text)

    def parts(self, line: int) -> list[Part]:
        """The restored messages; for those of a long file, that a summary stands for them."""
        if self._size > _VERBATIM:
            title = "restored history, summarised"
            return [Part("thread_summary", None, "user", title=title, version="not-recorded", line=line)]
        self._close()
        made = []
        for role, text in self._messages:
            kind = "user_message" if role == "user" else "assistant_message"
            made.append(Part(kind, text, role, line=line))
        return made

    def _close(self) -> None:
        text = "".join(self._lines)
        if text.strip():
            self._messages.append((self._role, text))
        self._lines = []
