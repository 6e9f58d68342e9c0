"""What the host returned for a call: where the LLM context stands in it, and how the result is written."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

SEPARATOR: Final = "\n---\n"
"""Between LLM context and result, as the host's documentation has it."""
BLOCK: Final = "content_block"
"""Names what is between them where each is a content block of its own: nothing that is text."""
_BEFORE: Final = re.compile(r"\r?\n-{3,}\r?\n")
_AFTER: Final = re.compile(r"(?:\r?\n-{3,})?(?:\r?\n)+\Z")


class Arrangement(NamedTuple):
    """How LLM context and result stand in what the host returned."""

    name: str
    """`before`, `after`, `block`, `within` (the context is somewhere in it), `alone` (one of the two), or
    `result` (there is no context)."""
    order: tuple[str, ...]
    """Of `context` and `result`, what was returned, in order."""
    separator: str | None = None
    result: str | None = None
    """The result as it was returned, where that is not its own text: JSON is written in many ways."""


def arrangement(context: str | None, result: str | None, returned: tuple[str, ...]) -> Arrangement | None:
    """How a host arranged the two; None where nothing of it was captured, or the response was empty.

    Args:
        context: The LLM context that the skill set.
        result: The result as a text; None: it has none.
        returned: Texts of the content blocks.

    A result may hold a line `---` itself, so the two are looked for as they are before anything is split.
    """
    if not returned or (context is None and result is None):
        return None
    if result is None:
        return Arrangement("alone", ("context",)) if context in returned else None
    whole = "\n".join(returned)
    if context is None:
        return _alone("result", result, whole)
    return _joined(context, result, returned) or _separate(context, result, returned, whole)


def _joined(context: str, result: str, returned: tuple[str, ...]) -> Arrangement | None:
    """Both in one block."""
    for text in returned:
        if text.startswith(context) and (match := _BEFORE.match(text, len(context))):
            return Arrangement("before", ("context", "result"), match[0], _other(text[match.end() :], result))
        head = text.removesuffix(context)
        if head == text or not head:
            continue
        found = _AFTER.match(head, len(result)) if head.startswith(result) else _AFTER.search(head)
        if found is not None:
            return Arrangement(
                "after", ("result", "context"), found[0], _other(head[: found.start()], result)
            )
    return None


def _separate(context: str, result: str, returned: tuple[str, ...], whole: str) -> Arrangement:
    """Each in blocks of its own, or one of them alone."""
    told = [text.strip() for text in returned]
    if context.strip() not in told or told == [result.strip()]:
        return _alone("within" if context in whole else "alone", result, whole)
    if len(told) == 1:
        return Arrangement("alone", ("context",))
    at = told.index(context.strip())
    rest = "\n".join(text for n, text in enumerate(returned) if n != at)
    order = ("context", "result") if at == 0 else ("result", "context")
    return Arrangement("block", order, BLOCK, _other(rest, result))


def _alone(name: str, result: str, whole: str) -> Arrangement:
    return Arrangement(name, ("result",), None, _other(whole, result))


def _other(text: str, result: str) -> str | None:
    return None if text == result else text
