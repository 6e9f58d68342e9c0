"""Where the words of a prompt begin, if a program has put elements of its own before or around them.

A list of turns or sessions has room for a line of each prompt.  Clients begin many of them alike: with what
they attach (`<system-reminder>…</system-reminder>`, `<uploaded_files>…`), or with the name of what follows
(`<user_query>`, `[[ ## user_query ## ]]`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

_Prompt = TypeVar("_Prompt")

_OPENING: Final = re.compile(r"<([A-Za-z][\w.:-]{0,60})(?:\s[^<>]{0,500})?>")
_HEADING: Final = re.compile(r"\[\[ ## \w{1,60} ## \]\]\s*")
"""What DSPy puts before each field of a prompt."""
_REQUESTS: Final = frozenset(
    [
        "issue",
        "issuedescription",
        "prdescription",
        "problem",
        "problemstatement",
        "prompt",
        "query",
        "question",
        "request",
        "task",
        "taskdescription",
        "userinput",
        "usermessage",
        "userprompt",
        "userquery",
        "userrequest",
    ]
)
"""Names of elements that hold the request, without `-` and `_`, in small letters: `userRequest` of Copilot
Chat, `user_query` of Cursor, `pr_description` of mini-swe-agent."""
_COMMAND: Final = re.compile(
    r"(?:\s*<command-(?:message|contents)>[^<>]{0,200}</command-(?:message|contents)>)?"
    r"\s*<command-name>\s*(?P<name>/?[^<>\s]{1,200})\s*</command-name>"
    r"(?:\s*<command-message>[^<>]{0,200}</command-message>)?"
    r"(?:\s*<command-args>(?P<args>[^<>]{0,400})</command-args>)?\s*\Z"
)
"""How Claude Code writes down that somebody typed `/name args`."""
_AGENTS: Final = "# AGENTS.md instructions"
"""What Codex begins a project's instructions with."""
_MOST: Final = 32
"""Elements looked at before the words."""
_TITLE: Final = 200
"""Characters of a prompt kept as a turn's title."""
LOOKED_AT: Final = 16
"""Messages of one step that are looked at for the prompt."""


def title_of(prompt: str) -> str:
    """What of a prompt is its turn's title."""
    return prompt_words(prompt)[:_TITLE]


def own_prompt(prompts: Sequence[_Prompt], text_of: Callable[[_Prompt], str | None]) -> _Prompt:
    """Of several messages that came at once the first that is not a client's own note, else the first.

    `text_of` gives a message's text; a message without one is no note.
    """
    if len(prompts) == 1:
        return prompts[0]
    told = (one for one in prompts[:LOOKED_AT] if (text := text_of(one)) is None or not is_note(text))
    return next(told, prompts[0])


def prompt_words(text: str) -> str:
    """The text from where a person's words begin; all of it where no element stands before them.

    An element goes if it is closed, its name is none of HTML's (it has a `-`, a `_` or a capital inside), and
    something stands behind it that is no element.  Of an element that holds the request this is its inside,
    and of a command as Claude Code writes it down what was typed.
    """
    if (command := _COMMAND.match(text)) is not None:
        return f"{command['name']} {(command['args'] or '').strip()}".rstrip()
    rest = text.lstrip()
    for _ in range(_MOST):
        heading = _HEADING.match(rest)
        if heading is not None:
            rest = rest[heading.end() :]
            continue
        opening = _OPENING.match(rest)
        if opening is None:
            return rest or text
        name = opening.group(1)
        end = rest.find(f"</{name}>", opening.end())
        if re.sub("[-_]", "", name).lower() in _REQUESTS:
            inside = rest[opening.end() : end if end >= 0 else None].strip()
            return inside or text
        if end < 0 or not _is_own(name):
            break
        behind = rest[end + len(name) + 3 :].lstrip()
        if not behind:
            break
        rest = behind
    return text


def is_note(text: str) -> bool:
    """Whether a text is only what a program put there: elements, or a project's instructions as of Codex."""
    start = text.lstrip()
    if start.startswith(_AGENTS) or _COMMAND.match(text) is not None:
        return True
    opening = _OPENING.match(start)
    return opening is not None and _is_own(opening.group(1)) and prompt_words(text) == text


def says_words(text: str) -> bool:
    """Whether a turn's title is a person's words: no program's element, and no command without arguments."""
    start = text.strip()
    return not start.startswith("<") and not (start.startswith("/") and not any(map(str.isspace, start)))


def _is_own(name: str) -> bool:
    """Whether a program has made the name up: HTML's are words in small letters."""
    return not name.islower() or "-" in name or "_" in name
