"""What a server offered and what was used of it, in tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ctxctl.labels import plural

if TYPE_CHECKING:
    from ctxctl.formats.kit.parts import Part

ENCODING: Final = "o200k_base"
_TEXT: Final = 1 << 20
"""Longest text that is counted: the server should not have to share the processor with that."""
_SHOWN: Final = 5
_WORDS: Final = {
    "tools": ("tool definition", "tool definitions"),
    "initialize": ("instructions", "instructions"),
}
_LISTS: Final = {
    "resources": ("resource", "resources"),
    "resourceTemplates": ("template of resources", "templates of resources"),
    "prompts": ("prompt", "prompts"),
}
_USES: Final = {
    "tool_result": ("tool result", "tool results"),
    "external_resource": ("resource", "resources"),
    "user_message": ("prompt message", "prompt messages"),
    "assistant_message": ("prompt message", "prompt messages"),
    "image": ("image", "images"),
}


class Books:
    """Counts; exact by the encoding that is named, but a model of another provider counts otherwise."""

    def __init__(self) -> None:
        self.chatter = self.errors = self.progress = self.unanswered = 0
        self._definitions: dict[str, dict[str, str]] = {}
        self._lists: dict[str, int] = {}
        self._uses: dict[str, list[int]] = {}
        """By sort: how many, their tokens, how many were not counted."""

    def definition(self, offered: str, name: str, text: str) -> None:
        """What a list holds now."""
        self._definitions.setdefault(offered, {})[name] = text

    def offered(self, name: str, count: int) -> None:
        """How long another list is."""
        self._lists[name] = count

    def used(self, parts: list[Part]) -> None:
        """What came of a call, or was read."""
        for part in parts:
            if part.kind == "tool_call":
                continue
            counts = self._uses.setdefault(_USES.get(part.kind, (part.kind, part.kind))[1], [0, 0, 0])
            counts[0] += 1
            tokens = _tokens(part.text)
            if tokens is None:
                counts[2] += 1
            else:
                counts[1] += tokens

    def told(self, name: str) -> list[str]:
        """The lines of the summary."""
        lines = [self._offer(name, offered, texts) for offered, texts in self._definitions.items() if texts]
        if self._lists:
            told = ", ".join(
                plural(count, *_LISTS.get(what, (what, what))) for what, count in self._lists.items()
            )
            lines.append(f"{name} lists {told}")
        for what, (count, tokens, uncounted) in self._uses.items():
            less = f"; {uncounted:,} not counted" if uncounted else ""
            uses = plural(count, _single(what), what)
            lines.append(f"{uses}: {plural(tokens, 'token', 'tokens')} ({ENCODING}){less}")
        odd = [
            plural(count, one, many)
            for count, one, many in (
                (self.errors, "error", "errors"),
                (self.unanswered, "call never answered", "calls never answered"),
                (self.progress, "note of progress", "notes of progress"),
                (self.chatter, "line that is no message", "lines that are no messages"),
            )
            if count
        ]
        return [*lines, ", ".join(odd)] if odd else lines

    def _offer(self, name: str, offered: str, texts: dict[str, str]) -> str:
        counts = {one: _tokens(text) for one, text in texts.items()}
        known = {one: count for one, count in counts.items() if count is not None}
        one, many = _WORDS.get(offered, (offered, offered))
        head = f"{name} offers {plural(len(texts), one, many)}: "
        if offered == "initialize":
            head = f"{name} has instructions: "
        ranked = sorted(known.items(), key=lambda pair: (-pair[1], pair[0]))
        shown = ", ".join(f"{title} {count:,}" for title, count in ranked[:_SHOWN])
        rest = f", {len(ranked) - _SHOWN} more" if len(ranked) > _SHOWN else ""
        detail = f": {shown}{rest}" if len(ranked) > 1 else ""
        return f"{head}{plural(sum(known.values()), 'token', 'tokens')} ({ENCODING}){detail}"


def _tokens(text: str | None) -> int | None:
    if text is None or len(text) > _TEXT:
        return None
    from ctxctl.tokens.counter import Counter

    return Counter(ENCODING).count(text)[0]


def _single(many: str) -> str:
    return next((one for one, several in _USES.values() if several == many), many)
