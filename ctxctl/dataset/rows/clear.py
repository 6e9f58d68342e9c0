"""What of a capture may stand in a dataset in clear: names and paths of a narrow shape, without secrets.

Names of tools, servers, branches and models are a stranger's text.  They are kept only where they look like a
name, and only where the redactor finds nothing in them; anything else is as if it were not recorded.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

_NAME: Final = re.compile(r"[^\s\x00-\x1f\x7f-\x9f]{1,128}")
_PATH: Final = re.compile(r"[^\x00-\x1f\x7f-\x9f\u2028\u2029]{1,300}")
_WORDS: Final = 4
"""Words between spaces from which on a path reads like a sentence."""
_KEPT: Final = 1 << 16

Redact = Callable[[str], str]
"""A text without its secrets."""


class ClearTexts:
    """What may be shown of names and paths, each looked at once.

    Args:
        redact: Takes secrets out.
    """

    def __init__(self, redact: Redact) -> None:
        self._redact = redact
        self._known: dict[tuple[bool, str], str | None] = {}

    def redacted(self, text: str) -> str:
        """A text without its secrets."""
        return self._redact(text)

    def name(self, text: str | None) -> str | None:
        """A name as it is; None where it is none, or holds a secret."""
        return None if not text else self._checked(text, path=False)

    def path(self, text: str | None) -> str | None:
        """The path of a file as it is; None where it is none, or holds a secret."""
        return None if not text else self._checked(text, path=True)

    def _checked(self, text: str, *, path: bool) -> str | None:
        key = (path, text)
        if key not in self._known:
            if len(self._known) >= _KEPT:
                self._known.clear()
            shape = _PATH if path else _NAME
            plain = shape.fullmatch(text) is not None and text.isprintable() and len(text.split()) < _WORDS
            self._known[key] = text if plain and not self._holds_secret(text) else None
        return self._known[key]

    def _holds_secret(self, text: str) -> bool:
        """Whether a name does, or a part of `mcp__SERVER__TOOL`: rules take `_` for a part of a word."""
        parts = text.split("__") if "__" in text else ()
        return any(self._redact(one) != one for one in (text, *parts))
