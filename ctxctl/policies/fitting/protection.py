"""Fitting policies share these parameters, which say what never leaves a window."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

HEAD_SEGMENTS: Final = frozenset(("tools", "system"))
PROMPTS: Final = frozenset(("user_message",))


class Protection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a policy never takes out of a window."""

    protect_head: Annotated[bool, Meta(description="tool definitions and the system prompt stay")] = True
    protect_recent: Annotated[
        int, Meta(description="the newest messages of the user that stay, with all that came after", ge=0)
    ] = 1
    protect_kinds: Annotated[tuple[str, ...], Meta(description="context kinds that stay, joined by +")] = ()
