"""What the stand-in says: two tool calls, one after the other, then a text; by what a request holds."""

from __future__ import annotations

import json
import re
from typing import Any, Final, NamedTuple

Json = dict[str, Any]

MARK: Final = re.compile(r"\[task \w+\]")
"""Stands in each prompt, so that the script finds where a turn begins whatever a client puts around it."""
_SHELLS: Final = (
    "bash", "shell", "exec_command", "run_shell_command", "run_commands", "execute_command",
    "run_terminal_command", "shell_command", "local_shell", "execute_bash", "developer__shell",
)  # fmt: skip
_COMMANDS: Final = ("command", "cmd", "commands", "script")
_STEPS: Final = ("ls", "cat notes.txt")
"""What the model runs, a step each."""


class Tool(NamedTuple):
    """A tool that a request offers."""

    name: str
    schema: Json


class Ask(NamedTuple):
    """What a request says that the script goes by."""

    tools: list[Tool]
    messages: list[Any]
    """In order, as the dialect has them; items of the Responses API."""


class Say(NamedTuple):
    """What the model answers."""

    text: str
    calls: list[tuple[str, Json]]


def answer(ask: Ask, calling: re.Pattern[str]) -> Say:
    """The next step of the script.

    Args:
        ask: The request.
        calling: Found in the JSON of a message that holds tool calls of the model.
    """
    told = [json.dumps(message) for message in ask.messages]
    begun = max((at for at, text in enumerate(told) if MARK.search(text)), default=0)
    done = sum(bool(calling.search(text)) for text in told[begun:])
    shell = next((tool for name in _SHELLS for tool in ask.tools if tool.name.lower() == name), None)
    if shell is None:
        return Say("The notes are on bees.", [])
    if done < len(_STEPS):
        return Say(f"Step {done + 1}: I look.", [(shell.name, filled(shell.schema, _STEPS[done]))])
    if any(tool.name == "bash" for tool in ask.tools) and len(ask.tools) == 1 and done == len(_STEPS):
        # An agent whose only tool is a shell ends its run with a command (mini-swe-agent).
        return Say(
            "Done.", [(shell.name, filled(shell.schema, "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"))]
        )
    return Say("The notes hold three lines on bees.", [])


def filled(schema: Json, command: str) -> Json:
    """Arguments that a schema takes: the command where it belongs, and something for all else it requires."""
    properties: Json = schema.get("properties") or {}
    wanted = next((name for name in _COMMANDS if name in properties), _COMMANDS[0])
    required = dict.fromkeys((wanted, *(schema.get("required") or ())))
    return {
        name: _command(name, properties.get(name, {}), command)
        if name == wanted
        else _some(properties.get(name, {}))
        for name in required
    }


def _command(name: str, schema: Json, command: str) -> Any:
    if _kind(schema) != "array":
        return command
    return [command] if name == "commands" else ["bash", "-lc", command]


def _some(schema: Json) -> Any:
    """Any value of a schema."""
    if schema.get("enum"):
        return schema["enum"][0]
    made = {"array": [], "object": {}, "boolean": False, "integer": 10, "number": 10}
    return made.get(_kind(schema), "look around")


def _kind(schema: Json) -> str:
    kind = schema.get("type") or next((one.get("type") for one in schema.get("anyOf", ())), "string")
    return str(kind[0] if isinstance(kind, list) else kind).lower()
