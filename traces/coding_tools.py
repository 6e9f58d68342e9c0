# ruff: noqa: E501 - the documents in here keep their own line lengths
"""The tools and system prompts of the agents in coding-agent.jsonl."""

from __future__ import annotations

from typing import Any

TOOLS: dict[str, dict[str, Any]] = {
    "list_files": {
        "name": "list_files",
        "description": "List the files below a directory of the working tree, with their sizes in lines.",
        "input_schema": {
            "type": "object",
            "properties": {"path": {"type": "string", "description": "Relative to the root; '.' for all."}},
            "required": ["path"],
        },
    },
    "read_file": {
        "name": "read_file",
        "description": "Read a text file. Long files come in pieces of 400 lines; ask again with an offset.",
        "input_schema": {
            "type": "object",
            "properties": {"path": {"type": "string"}, "offset": {"type": "integer", "minimum": 1}},
            "required": ["path"],
        },
    },
    "search": {
        "name": "search",
        "description": "Search all tracked files for a regular expression; returns path, line number and line.",
        "input_schema": {
            "type": "object",
            "properties": {"pattern": {"type": "string"}, "glob": {"type": "string"}},
            "required": ["pattern"],
        },
    },
    "edit_file": {
        "name": "edit_file",
        "description": "Replace one passage of a file. `old` must occur exactly once in it.",
        "input_schema": {
            "type": "object",
            "properties": {
                "path": {"type": "string"}, "old": {"type": "string"}, "new": {"type": "string"},
            },
            "required": ["path", "old", "new"],
        },
    },
    "run": {
        "name": "run",
        "description": "Run a command in the working tree, without network, for at most two minutes.",
        "input_schema": {
            "type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"],
        },
    },
    "delegate": {
        "name": "delegate",
        "description": "Give a task to a sub-agent with a fresh context of its own. It can read but not write; "
        "its last message comes back as the result.",
        "input_schema": {
            "type": "object",
            "properties": {"role": {"enum": ["explorer", "reviewer"]}, "task": {"type": "string"}},
            "required": ["role", "task"],
        },
    },
}  # fmt: skip

READING = ("list_files", "read_file", "search")

SYSTEM = """\
You are a coding agent in a terminal. You work on one repository, with the tools given, for one person who
reads along.

How to work
- Look before you change. Read a file before you edit it, and the test before you fix what it tests.
- Make the smallest change that solves the problem. Leave formatting, names and unrelated code alone.
- After a change run the tests that cover it. Report failures as they are; never weaken a test to make it pass.
- Give broad searches to an explorer, and a finished diff to a reviewer. They see nothing of this conversation.
- Keep the plan up to date: one line per step, done or open.

How to answer
- Say what you found, then what follows from it. Name files and lines.
- Do not repeat code that is already on the screen. No headings in answers shorter than ten lines.
- If something is uncertain, say what would settle it.

Never
- commit, push or delete branches without being asked,
- touch files outside the repository,
- run a command that asks for input."""

EXPLORER = """\
You explore a repository for another agent. You can read, list and search, nothing else. Answer the question
you were given, completely and in as few lines as possible: path, line, what is there, and whether it matters
for the question. If you did not look at something, say so."""

REVIEWER = """\
You review a diff for another agent. You can read, list and search, nothing else. Look for behaviour that
changed by accident, for cases that no test covers, and for names that say something else than the code does.
Give at most five remarks, the most important first, each with file and line. If the diff is fine, say so."""
