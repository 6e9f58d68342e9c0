"""Where the words of a prompt begin."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.prompt_words import is_note, prompt_words

MESSAGE = "<command-message>a</command-message>"
REMINDER = "<system-reminder>\nThe user opened\n/foo.txt\n</system-reminder>"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("fix the <b> tag", "fix the <b> tag"),
        (f"{REMINDER}\n\nhello", "hello"),
        (f"{REMINDER}\n{REMINDER}\nhello <x-y>", "hello <x-y>"),
        ("<userRequest>\ncreate a file\n</userRequest>\n", "create a file"),
        ("<attachment id='1'>\na\n</attachment>\n<user_query>\nhi\n</user_query>", None),
        ("<file-note id='1'>\na\n</file-note>\n<user_query>\nhi\n</user_query>", "hi"),
        ("<pr_description>\nAdd eval\n</pr_description>\n<instructions>\nDo\n</instructions>", "Add eval"),
        ("<task>cut off", "cut off"),
        ("[[ ## user_query ## ]]\n\nWhat is 2+2?", "What is 2+2?"),
        ("<div>a</div> is not centred", None),
        (REMINDER, None),
        ("<command-name>/clear</command-name>\n<command-args></command-args>", "/clear"),
        (f"{MESSAGE}\n<command-name>/a</command-name>\n<command-args>12 now</command-args>", "/a 12 now"),
        (f"<command-name>/a</command-name> {MESSAGE}\n <command-args></command-args>", "/a"),
        ("<command-name>/a</command-name> and then words", "and then words"),
        ("<environment_context>\n <cwd>/home …", None),
        ("<task></task>", None),
        ("", None),
    ],
)
def test_words_begin_behind_what_a_program_put_before_them(text: str, words: str | None) -> None:
    assert prompt_words(text) == (text if words is None else words)


@given(st.text(alphabet="<>/a-_ [#]\n"))
def test_words_are_a_part_of_the_text_and_never_nothing(text: str) -> None:
    found = prompt_words(text)
    assert found in text
    assert bool(found.strip()) or not text.strip() or found == text


@pytest.mark.parametrize(
    ("text", "note"),
    [
        (REMINDER, True),
        ("<environment_context>\n <cwd>/home …", True),
        ("# AGENTS.md instructions for /home/ada\n\n<INSTRUCTIONS>", True),
        (f"{REMINDER}\nhello", False),
        ("<user_query>\nhi\n</user_query>", False),
        ("<div>a</div> is not centred", False),
        ("hello", False),
        ("", False),
    ],
)
def test_a_note_has_no_words_of_a_person(text: str, note: bool) -> None:
    assert is_note(text) is note
