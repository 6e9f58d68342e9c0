"""The first prompt of a session, from the events of its import: what a list of sessions calls it.

A turn's title is made by the rule of `engine.replay.sums`: from the messages of a user that its requests add.
Here they are taken from the blocks that an assembly lists, as long as these have never been in the thread's
windows before.  What rests on more (a summary, a message that comes again) is for the whole reading.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ctxctl.engine.replay.step_tracker import ThreadKey
from ctxctl.model.session_list import PROMPT
from ctxctl.model.vocab import MAIN_THREAD, MODEL
from ctxctl.prompt_words import own_prompt, says_words, title_of

LOOKED_AT = 16
"""Turns whose prompts are looked through for one that does not begin with a client's own note (`<…>`)."""


class _Message(NamedTuple):
    """A user's message."""

    text: str | None
    title: str | None


def first_of(prompts: Sequence[str]) -> str | None:
    """Of the prompts of a session's first turns the first in a person's words, else the first."""
    return next((text for text in prompts if says_words(text)), (*prompts, None)[0])


class FirstPrompt:
    """Looks for the first prompt; told of the items and assemblies of a capture in their order."""

    def __init__(self) -> None:
        self.is_sure = True
        self._over = False
        """Nothing that comes can change the answer."""
        self._key: ThreadKey | None = None
        """The main thread."""
        self._items: dict[str, tuple[str, _Message | None]] = {}
        """By id the kind of each item, and what a user's message says."""
        self._placed: set[str] = set()
        self._turn: int | None = None
        """The turn whose prompt was found last."""
        self._assembled: tuple[int, int] | None = None
        """The turn and step of the last assembly."""
        self._found: list[str] = []

    @property
    def text(self) -> str | None:
        """The prompt; None where there is none."""
        return first_of(self._found)

    def looks_at(self, key: ThreadKey) -> bool:
        """Whether a thread still has to be looked at."""
        if self._over or not self.is_sure or key.thread != MAIN_THREAD:
            return False
        if self._key is None:
            self._key = key
        self.is_sure = self._key == key  # of several sessions it matters whose turn ends first
        return self.is_sure

    def item(self, data: dict[str, Any]) -> None:
        """An item comes, or comes in another version."""
        name, kind = data["item_id"], data.get("context_kind", "custom")
        message = None
        if kind == "user_message":
            text, seen = data.get("content"), data.get("visibility") or (MODEL,)
            if name in self._items or not isinstance(text, str | None) or MODEL not in seen:
                self.is_sure = False
            message = _Message(text, data.get("title"))
        self._items[name] = kind, message

    def assembled(self, turn: int, step: int, blocks: Sequence[dict[str, Any]]) -> None:
        """A request's assembly with the blocks that are new in its window."""
        if self._assembled == (turn, step):
            self.is_sure = False
        self._assembled = turn, step
        prompts: list[_Message] = []
        for block in blocks:
            name = block["block_id"]
            kind, message = self._items.get(name, ("", None))
            if kind in ("", "thread_summary"):
                self.is_sure = False
            elif message is not None:
                if name in self._placed or "content" in block or "wrapper" in block:
                    self.is_sure = False
                prompts.append(message)
            self._placed.add(name)
        if prompts and turn != self._turn and self.is_sure:
            self._add(turn, own_prompt(prompts, lambda one: one.text))

    def closed(self, turn: int, step: int) -> None:
        """A request is over: without an assembly its window is worked out from all items that are live."""
        self.is_sure = self.is_sure and self._assembled == (turn, step)

    def _add(self, turn: int, prompt: _Message) -> None:
        title = prompt.title if prompt.text is None else title_of(prompt.text)
        if title is not None:
            self._turn = turn
        if title:
            try:
                title.encode()
            except UnicodeEncodeError:  # a trace has another text in place of what is none
                self.is_sure = False
            self._found.append(title[:PROMPT])
            self._over = says_words(self._found[-1]) or len(self._found) == LOOKED_AT
