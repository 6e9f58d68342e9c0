"""Write man/ from the help (run by ``make docs``): ``ctxctl.1``, and ``ctxctl-NAME.1`` for each command.

What the help says stands in them word for word; a test holds the two together.  The wheel ships them, so that
``man ctxctl`` finds them wherever ``ctxctl`` is found.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from typer.main import get_command

from ctxctl.cli.app import app, whole
from ctxctl.cli.commands import COMMANDS, words_of
from ctxctl.cli.examples import EXAMPLES

PAGES: Final = Path(__file__).resolve().parent.parent / "man"

FILES: Final = (
    (
        "~/.config/ctxctl/config.toml",
        "Your own settings. macOS: ~/Library/Application Support/ctxctl/config.toml.",
    ),
    (
        "ctxctl.toml, pyproject.toml",
        "The project's settings, in the current directory or the nearest one above.",
    ),
)
ENVIRONMENT: Final = (
    ("CTXCTL_CONFIG", "A file of settings in place of both; off: none."),
    ("CTXCTL_CACHE_DIR, CTXCTL_CACHE=off", "Where to keep what is kept between runs; keep nothing."),
    ("CTXCTL_STATE_DIR, CTXCTL_STATE=off", "Where the terminal UI remembers where a trace was left; do not."),
    ("CTXCTL_DATA_DIR", "Where saved calibrations and what was learned of clients are kept."),
    ("CTXCTL_PAGER, PAGER", "The program that shows long reports on a terminal; cat: none."),
    ("NO_COLOR", "Print without colour."),
)

_FLAG: Final = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]*")
_STARTS_REQUEST: Final = re.compile(r"^([.'])", re.MULTILINE)


def pages() -> dict[str, str]:
    """Every page by its file name."""
    found = {"ctxctl.1": _page("ctxctl", _top())}
    for name in COMMANDS:
        page = _called(name)
        found[f"{page}.1"] = _page(page, _command(name))
    return found


def _called(name: str) -> str:
    """A command's page."""
    return f"ctxctl-{name.replace(' ', '-')}"


def _page(title: str, lines: Iterable[str]) -> str:
    head = [
        '.\\" Written by `make docs` from the help of the command: change that, not this page.',
        f'.TH {_escaped(title.upper())} 1 "" ctxctl "ctxctl manual"',
        ".nh",  # what is to be copied is not hyphenated, nor spread over the line
        ".ad l",
    ]
    return "\n".join([*head, *lines]) + "\n"


def _group() -> tuple[Any, Any]:
    """All of the command line, and the context in which its commands are asked for their help."""
    group = get_command(app)
    return group, group.make_context("ctxctl", [], resilient_parsing=True)


def _top() -> Iterator[str]:
    group, context = _group()
    yield from _name("ctxctl", group.help or "")
    yield from _usage("ctxctl", group, context)
    yield from (".SH DESCRIPTION", *_text(group.help or ""), ".PP")
    yield from _text("Without a command, on a terminal: choose one of the sessions on this machine.")
    yield from _records(".SH OPTIONS", group, context)
    yield ".SH COMMANDS"
    for name, command in COMMANDS.items():
        if " " in name:
            continue
        yield from (".TP", f".BR {_escaped(_called(name))} (1)", *_text(command.line))
    yield from (".SH EXIT STATUS", *_text((group.epilog or "").removeprefix("Exit codes: ")))
    for title, listed in (("FILES", FILES), ("ENVIRONMENT", ENVIRONMENT)):
        yield f".SH {title}"
        for name, what in listed:
            yield from (".TP", f".B {_escaped(name)}", *_text(what))


def _command(name: str) -> Iterator[str]:
    command = whole(name)
    called = f"ctxctl {name}"
    context = command.make_context(name, [], parent=_group()[1], resilient_parsing=True)
    yield from _name(_called(name), COMMANDS[name].line)
    yield from _usage(called, command, context)
    yield ".SH DESCRIPTION"
    yield from _paragraphs(command.help or "")
    yield from _records(".SH ARGUMENTS", command, context, "argument")
    yield from _records(".SH OPTIONS", command, context)
    if words := words_of(name):
        yield ".SH COMMANDS"
        for word, one in words.items():
            yield from (".TP", f".BR {_escaped(_called(f'{name} {word}'))} (1)", *_text(one.line))
    yield ".SH EXAMPLES"
    for n, example in enumerate(EXAMPLES[name]):
        if n:
            yield ".PP"
        yield from _text(f"{example.what[:1].upper()}{example.what[1:]}:")
        yield from (".PP", ".RS 4", ".nf", *_text(example.line), ".fi", ".RE")
    yield from (".SH SEE ALSO", ".BR ctxctl (1)")


def _name(title: str, line: str) -> Iterator[str]:
    said = line.strip().rstrip(".")
    yield from (".SH NAME", f"{_escaped(title)} \\- {_escaped(said[:1].lower() + said[1:])}")


def _usage(called: str, command: Any, context: Any) -> Iterator[str]:
    yield from (".SH SYNOPSIS", f".B {_escaped(called)}")
    yield _escaped(" ".join(command.collect_usage_pieces(context)))


def _records(heading: str, command: Any, context: Any, kind: str = "option") -> Iterator[str]:
    """The arguments or options with their help, under a heading; nothing where there are none."""
    shown = [
        one.get_help_record(context) for one in command.get_params(context) if one.param_type_name == kind
    ]
    records = [record for record in shown if record]
    if records:
        yield heading
    for left, right in records:
        yield from (".TP", _FLAG.sub(lambda flag: f"\\fB{_escaped(flag[0])}\\fR", _escaped_but_flags(left)))
        yield from _text(right)


def _escaped_but_flags(text: str) -> str:
    """A text as roff has it, its flags left for `_records`."""
    parts, at = [], 0
    for flag in _FLAG.finditer(text):
        parts += [_escaped(text[at : flag.start()]), flag[0]]
        at = flag.end()
    return "".join([*parts, _escaped(text[at:])])


def _paragraphs(text: str) -> Iterator[str]:
    for n, paragraph in enumerate(part for part in text.split("\n\n") if part.strip()):
        if n:
            yield ".PP"
        yield from _text(" ".join(paragraph.split()))


def _text(text: str) -> Iterator[str]:
    """A text as lines of roff, none of them a request."""
    yield from _STARTS_REQUEST.sub(r"\\&\1", _escaped(text)).splitlines()


def _escaped(text: str) -> str:
    """A text whose signs stand as they are typed, hyphens and quotes of commands above all."""
    for sign, name in (
        ("\\", "\\e"),
        ("-", "\\-"),
        ("'", "\\(aq"),
        ("`", "\\(ga"),
        ("^", "\\(ha"),
        ("~", "\\(ti"),
    ):
        text = text.replace(sign, name)
    return text


def main() -> None:
    """Write all of them, and take away those of commands that are no more."""
    PAGES.mkdir(exist_ok=True)
    made = pages()
    for path in PAGES.glob("*.1"):
        if path.name not in made:
            path.unlink()
    for name, text in made.items():
        (PAGES / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
