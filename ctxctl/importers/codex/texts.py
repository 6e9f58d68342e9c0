"""Tells what a text in a Codex rollout is: the harness writes context into messages of users and developers.

The markers are those of Codex' contextual fragments (0.2 to 0.146).
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple


class TextReading(NamedTuple):
    """How one text of a message is to be read."""

    kind: str
    """The context kind."""
    title: str | None
    """Codex' own name for it; None for what a person or the model wrote."""


_USER: Final = {
    "environment_context": "runtime_state",
    "user_shell_command": "runtime_state",
    "user_instructions": "durable_memory",
    "additional_context": "external_resource",
    "external_context": "external_resource",
    "extension_context": "policy_note",
    "codex_internal_context": "policy_note",
    "skill": "external_resource",
    "turn_aborted": "policy_note",
    "user_action": "policy_note",
    "hook_prompt": "policy_note",
    "goal_context": "policy_note",
    "subagent_notification": "peer_agent_message",
}
"""The context kind by the tag that wraps the whole text of a user message."""
_NEVER_TYPED: Final = frozenset(("environment_context", "user_instructions"))
"""Tags that tell without a closing one: tools that share a rollout cut long texts."""
_EXTERNAL: Final = "external_"
"""What a client adds is wrapped in an element of its own name behind this."""
_WARNINGS: Final = (
    "Warning: The maximum number of unified exec processes you can keep open is",
    "Warning: apply_patch was requested via ",
    "Warning: Your account was flagged for potentially high-risk cyber activity",
)
"""What older versions told the model in the person's place."""
_IMAGE: Final = re.compile(r"</?image(?: name=[^>]*)?>\Z")
"""What Codex puts around an image."""
AGENTS_MD: Final = "AGENTS.md"
_AGENTS_START: Final = "# AGENTS.md instructions"
_OPENING: Final = re.compile(r"<([A-Za-z][A-Za-z0-9_-]*)(?: instructions)?[ >]")
_PROMPT: Final = TextReading("user_message", None)
INSTRUCTIONS: Final = "model.base_instructions"
"""Codex' name for the instructions that a session begins with, where they are a message of the history."""
_TYPED: Final = "user.text"
_UNNAMED: Final = "unknown"


def of_user(text: str, told: str | None = None) -> TextReading:
    """Read a text of a user message; `told` is Codex' own name for its kind, where it gives one."""
    if told == _TYPED:
        return _PROMPT
    found = _by_markers(text)
    if found is _PROMPT and told is not None and told != _UNNAMED and not told.startswith("user."):
        return TextReading("policy_note", told)
    return found


def _by_markers(text: str) -> TextReading:
    body = text.lstrip()
    if body.startswith(_WARNINGS):
        return TextReading("policy_note", "warning")
    if not body.startswith(("<", "#")):
        return _PROMPT
    if _IMAGE.match(body.rstrip()):
        return TextReading("policy_note", "image")
    if body.startswith(_AGENTS_START):
        return TextReading("durable_memory", AGENTS_MD)
    match = _OPENING.match(body)
    if match is None:
        return _PROMPT
    tag = match.group(1).lower()
    kind = _USER.get(tag) or ("external_resource" if tag.startswith(_EXTERNAL) else None)
    closed = tag in _NEVER_TYPED or body.rstrip().lower().endswith(f"</{tag}>")
    return TextReading(kind, tag) if kind is not None and closed else _PROMPT


def of_developer(text: str, told: str | None = None) -> TextReading:
    """Read a text of a developer message; `told` as in `of_user`."""
    if told == INSTRUCTIONS:
        return TextReading("system_prompt", "base_instructions")
    match = _OPENING.match(text.lstrip())
    return TextReading("developer_instruction", match.group(1) if match is not None else None)


_PLANS: Final = re.compile(
    r"^## (?:`update_plan`|Planning\n\nYou have access to an `update_plan` tool).*?(?=^## |^# |\Z)"
    r"|^- If you create a checklist or task list,[^\n]*\n",
    re.DOTALL | re.MULTILINE,
)
"""What the instructions say about Codex' tool for plans."""
_TODAY: Final = (0, 152)


def is_today(version: str | None) -> bool:
    """Whether a version leaves passages out of its instructions, and may log what comes before the history as
    a part of it."""
    numbers = re.match(r"(\d+)\.(\d+)", version or "")
    return numbers is not None and (int(numbers[1]), int(numbers[2])) >= _TODAY


def without_plans(instructions: str, version: str | None) -> str | None:
    """The instructions as Codex sends them with its tool for plans off, which is how it comes.

    Found in runs of 0.146 to 0.169 beside what they sent.  A log does not tell whether the tool was on.

    Returns:
        None where nothing would be left out: the version is older, or the instructions are silent about it.
    """
    if not is_today(version):
        return None
    left = _PLANS.sub("", instructions)
    return left if left != instructions else None
