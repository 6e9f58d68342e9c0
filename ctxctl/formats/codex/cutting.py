"""How Codex cuts a tool's output in the middle before the model gets it: rollouts hold it as it came."""

from __future__ import annotations

from typing import Any, Final

from ctxctl.formats.kit.parts import count

_ALLOWANCE: Final = 1.2
"""Codex lets an item be longer than the limit by this factor, for its JSON."""
_BYTES: Final = 4
"""Of a token, by Codex' rule of thumb."""
_SHOWN: Final = ("tokens truncated…", "chars truncated…")


def cut(text: str, policy: Any) -> str | None:
    """The text as the model got it; None where it is short enough, or was cut before it was logged.

    Args:
        text: The output as the rollout holds it.
        policy: `truncation_policy` of the turn: `{"mode": "tokens" | "bytes", "limit": …}`.
    """
    mode = policy.get("mode") if isinstance(policy, dict) else None
    limit = count(policy.get("limit")) if mode in ("tokens", "bytes") else None
    if not limit:
        return None
    budget = _rounded_up(limit) * (_BYTES if mode == "tokens" else 1)
    if len(text) * 4 <= budget or any(mark in text for mark in _SHOWN):
        return None
    data = text.encode("utf-8", "surrogatepass")
    if len(data) <= budget:
        return None
    before = data[: budget // 2].decode("utf-8", "ignore")
    after = data[len(data) - (budget - budget // 2) :].decode("utf-8", "ignore")
    if mode == "tokens":
        return f"{before}…{(len(data) - budget + _BYTES - 1) // _BYTES} tokens truncated…{after}"
    return f"{before}…{len(text) - len(before) - len(after)} chars truncated…{after}"


def _rounded_up(limit: int) -> int:
    return -int(-limit * _ALLOWANCE // 1)
