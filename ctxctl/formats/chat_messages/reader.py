"""A list of chat messages as requests: each answer was given to the messages before it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ctxctl.formats.build import Json
from ctxctl.formats.kit.document import document
from ctxctl.formats.kit.parts import string
from ctxctl.formats.kit.run import Run
from ctxctl.formats.lines import Report
from ctxctl.formats.wire import by_name
from ctxctl.formats.wire.dialect import Names
from ctxctl.trace.source import Source

NAME: Final = "chat-messages"


def read(source: Source, report: Report) -> Iterator[Json]:
    """The list's events; an answer in several messages is one."""
    run = Run(NAME, report)
    conversation = run.thread(None)
    dialect = by_name("openai-chat")
    names = Names()
    found = document(source, run.report)
    before: str | None = None
    prompts = 0
    for position, message in enumerate(found if isinstance(found, list) else []):
        if not isinstance(message, dict):
            run.problem("not-a-record", "not a message; skipped")
            continue
        role = string(message.get("role"))
        if role == "assistant" and before not in (None, "assistant"):
            conversation.request(derived=True)
        elif role == "user":
            prompts += 1
            conversation.turn = f"turn-{prompts}"
        for part in dialect.message(message, position, names=names):
            # A list is no request body: places in one would be made up.
            part.wire = ""
            conversation.append(part)
        before = role
        yield from run.drain()
    if not conversation.steps and len(conversation):
        conversation.request(derived=True)
    yield from run.finish()
