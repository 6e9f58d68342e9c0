"""What is remembered of conversations, bounded: the importers' memory is as long as their file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from ctxctl.formats.build import Json
from ctxctl.formats.kit.parts import Part
from ctxctl.formats.wire.threads import Chains, Thread, Threads

_MESSAGES: Final = 100_000
"""Fingerprints of messages, over all conversations."""
_THREADS: Final = 1_000
_LINKS: Final = 4_096
_PROMPTS: Final = 10_000
_NAMES: Final = 100_000
_FEW_TOKENS: Final = 64
_SCHEMAS: Final = ("response_format", "output_config", "output_format", "text", "generationConfig")
_ASIDE: Final = ("title", "topic", "summar", "classif", "quota")


class Remembered(Threads):
    """Threads that are forgotten when there are too many, those first that were not heard of for longest."""

    def __init__(self) -> None:
        super().__init__()
        self._tick = 0
        self._last: dict[int, int] = {}
        self._by_branch: dict[tuple[str | None, str], list[Thread]] = {}
        self.mark = ""
        """What names of new threads end in, where another writer of the file may give the same ones."""

    def name(self, kind: str, about: str) -> str:
        """As the importers name a thread; side questions of one kind share one, whoever records them."""
        made = super().name(kind, about)
        return made if kind == "side" and self._used[made] == 1 else f"{made}{self.mark}"

    def threads(self) -> list[Thread]:
        """All that are remembered."""
        return self._all

    def used(self, thread: Thread) -> None:
        """A thread was heard of."""
        self._tick += 1
        self._last[id(thread)] = self._tick

    # -- branches -------------------------------------------------------------------------------------------

    def branch(self, name: str) -> str:
        """A name for another branch of a thread."""
        base = name.partition("~")[0]
        self._used[f"{base}~"] += 1
        return f"{base}~{self._used[f'{base}~'] + 1}{self.mark}"

    def said_by(self, thread: Thread, parts: Iterable[Part]) -> None:
        """Remember a branch's answer, which may be another one's too."""
        for part in parts:
            self._by_branch.setdefault((thread.conversation.session, _key(part)), []).append(thread)

    def sayer(self, session: str | None, parts: Iterable[Part], family: list[Thread]) -> Thread | None:
        """The one of a family that was given one of the answers that are sent back; None if none was."""
        for part in parts:
            for thread in reversed(self._by_branch.get((session, _key(part)), ())):
                if thread in family:
                    return thread
        return None

    # -- memory ---------------------------------------------------------------------------------------------

    def sweep(self, busy: Mapping[int, Any], chains: Chains) -> list[Thread]:
        """Forget what is too much; returns the threads that went."""
        chains.keep(_LINKS)
        if len(self._prompts) > _PROMPTS:
            for name in list(self._prompts)[: _PROMPTS // 2]:
                del self._prompts[name]
        if len(self._used) > _NAMES:
            self._used.clear()
        size = len(self._carried) + len(self._said) + len(self._by_branch)
        if size <= _MESSAGES and len(self._all) <= _THREADS:
            return []
        order = sorted(self._all, key=lambda thread: self._last.get(id(thread), 0), reverse=True)
        few = order[: max(1, len(order) // 2)]
        kept = {id(thread) for thread in few} | set(busy)
        gone = [thread for thread in self._all if id(thread) not in kept]
        self._all = [thread for thread in self._all if id(thread) in kept]
        for thread in self._all:
            thread.conversation.forget_gone()
        # Of those that stay, what their windows no longer have.
        windows = {id(thread): frozenset(thread.prints) for thread in self._all}
        carried = {}
        for (session, made), threads in self._carried.items():
            own = tuple(t for t in threads if made in windows.get(id(t), ()))
            if own:
                carried[session, made] = own
        self._carried = carried
        refs = {id(t): {row[0].item for row in t.conversation.rows} for t in self._all}
        self._said = {
            key: t for key, t in self._said.items() if id(t) in kept and _still(key[1], refs[id(t)], t)
        }
        self._by_branch = {}
        self._last = {id(t): self._last.get(id(t), 0) for t in self._all}
        chains.drop(gone)
        return gone


def _key(part: Part) -> str:
    """What an answer's item is known by among branches, where a short text tells enough."""
    return part.item if part.kind == "tool_call" and part.item else f"{part.kind}:{part.mark}"


def _still(key: str, items: set[str], thread: Thread) -> bool:
    """Whether an answer is in its thread's window."""
    mark = key.partition(":")[2]
    return key in items or (mark != "" and any(row[0].ref.endswith(mark) for row in thread.conversation.rows))


def is_aside(body: Json) -> bool:
    """Whether a request without tools is likely a question that a product asks beside its conversation.

    Such come before the first prompt: a check of the quota, a title, a classification.
    """
    limits = (body.get("max_tokens"), body.get("max_completion_tokens"), body.get("max_output_tokens"))
    if any(isinstance(limit, int) and limit <= _FEW_TOKENS for limit in limits):
        return True
    head = body.get("system") or body.get("instructions") or body.get("systemInstruction")
    messages = body.get("messages")
    if head is None and isinstance(messages, list) and messages and isinstance(messages[0], dict):
        head = messages[0].get("content") if messages[0].get("role") in ("system", "developer") else None
    start = str(head)[:400].lower() if head is not None else ""
    if "title" in start and "generat" in start:
        return True
    return any(word in start for word in _ASIDE) and any(body.get(name) for name in _SCHEMAS)
