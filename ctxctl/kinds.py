"""The one table of kinds of items: what each is called in data, in views, and by people who type it.

A kind's name is what a trace and `--json` say.  Views that have no room for it show its word; lists that have
hardly any, its brief word.  Whoever asks for a kind may write any of these, or an alias.  Kinds are an open
vocabulary: one that is not in the table is somebody's own, and goes by its name everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

BRIEF: Final = 6
"""Letters of the longest brief word."""


class Kind(NamedTuple):
    """One kind of item."""

    name: str
    """As in a trace and in `--json`."""
    word: str
    """What views show where the name has no room.  Kinds that nobody tells apart at a glance share one."""
    brief: str
    """At most `BRIEF` letters: the word, or the word shortened."""
    segment: str
    """Window segment that it belongs to where the trace names none."""
    aliases: tuple[str, ...] = ()
    """What else people call it: words of providers' APIs, and of everyday speech."""


KINDS: Final = (
    Kind("system_prompt", "system", "system", "system", ("sys", "system_message")),
    Kind("developer_instruction", "developer", "dev", "system", ("developer_message",)),
    Kind("tool_definition", "definition", "def", "tools", ("schema", "tool_schema", "tooldef")),
    Kind("user_message", "user", "user", "user", ("human",)),
    Kind(
        "assistant_message", "assistant", "asst", "history", ("reply", "answer", "response", "model_message")
    ),
    Kind("reasoning", "reasoning", "reason", "history", ("thinking", "think", "thought", "thoughts")),
    Kind("tool_call", "call", "call", "history", ("tool_use", "function_call")),
    Kind("tool_result", "result", "result", "history", ("output", "tool_output", "function_call_output")),
    Kind("thread_summary", "summary", "summ", "history"),
    Kind("computed_summary", "summary", "summ", "context"),
    Kind("session_history", "history", "hist", "history"),
    Kind("peer_agent_message", "peer", "peer", "history", ("agent_message",)),
    Kind("image", "image", "image", "history", ("picture",)),
    Kind("marker", "marker", "marker", "context"),
    Kind("file_excerpt", "file", "file", "context"),
    Kind("document_excerpt", "document", "doc", "context"),
    Kind("artifact_ref", "artifact", "artif", "context"),
    Kind("external_resource", "resource", "resrc", "context"),
    Kind("retrieval_result", "retrieval", "retr", "context", ("retrieved", "found")),
    Kind("knowledge_pack_item", "knowledge", "know", "context"),
    Kind("durable_memory", "memory", "memory", "context", ("memo",)),
    Kind("working_memory", "memory", "memory", "context"),
    Kind("team_memory", "memory", "memory", "context"),
    Kind("policy_note", "policy", "policy", "context", ("rule",)),
    Kind("policy_instruction", "policy", "policy", "context"),
    Kind("manual_note", "note", "note", "context"),
    Kind("runtime_state", "state", "state", "context"),
    Kind("browser_state", "browser", "brows", "context"),
    Kind("custom", "custom", "custom", "context", ("other",)),
)
"""The draft's kinds and ours, in the order of a window."""
_BY_NAME: Final[Mapping[str, Kind]] = {kind.name: kind for kind in KINDS}


def _words() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for kind in KINDS:
        for word in dict.fromkeys((kind.name, kind.word, kind.brief, *kind.aliases)):
            found[word] = (*found.get(word, ()), kind.name)
    for kind in KINDS:  # an alias means what the word means that views show
        for alias in kind.aliases:
            found[alias] = found[kind.word]
    return found


WORDS: Final[Mapping[str, tuple[str, ...]]] = _words()
"""The kinds that each name, word and alias means."""


def kinds_called(word: str) -> tuple[str, ...]:
    """The names of the kinds that a word means, whatever its case; nothing for one that is not in the table.

    `tool-result` and `tool result` are `tool_result`.
    """
    return WORDS.get(word.strip().casefold().replace("-", "_").replace(" ", "_"), ())


def short_kind(name: str) -> str:
    """A kind's word; a kind of somebody's own as it is (untrusted text)."""
    kind = _BY_NAME.get(name)
    return name if kind is None else kind.word


def brief_kind(name: str) -> str:
    """A kind in at most `BRIEF` letters; one of somebody's own is cut (untrusted text)."""
    kind = _BY_NAME.get(name)
    return name[:BRIEF] if kind is None else kind.brief


def usual_segment(name: str) -> str:
    """The window segment that a kind belongs to where the trace names none."""
    kind = _BY_NAME.get(name)
    return "context" if kind is None else kind.segment
