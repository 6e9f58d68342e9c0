"""Asks every view of a trace for the same values, and how each of them words it."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ctxctl
from ctxctl import wording
from ctxctl.cli.main import run
from ctxctl.model.results import Step
from ctxctl.report.step import facts
from ctxctl.session import Inspector
from ctxctl.tui.screens.turns.header import sent_pieces

VIEWS: dict[str, tuple[str, ...]] = {
    "replay": ("replay", "{}"),
    "show": ("show", "{}@-1"),
    "cost": ("cost", "{}"),
    "lint": ("lint", "{}"),
    "find": ("find", "{}", "tokens>0"),
    "markdown": ("export", "{}", "--format", "markdown"),
}
_SHARE = re.compile(r"(?<![\w.,])[\d.,]*\d ?%(?!\w)")
_SHARE_FORM = re.compile(r"(?:0|\d{1,3}(?:,\d{3})*(?:\.\d)?|\d\.\d\d)%")
"""As `wording` words one: no space, at most one digit; the errors of a calibration have two."""
_MONEY = re.compile(r"\$[\d.,]*\d")
_MONEY_FORM = re.compile(r"\$\d{1,3}(?:,\d{3})*\.\d{4}")
_MINUS = re.compile(r"(?<![\w.\-:/@+])-\d[\d,]*(?![\w\-])(?! ?%)")
_LONG = re.compile(r"(?<![\w.,\-/:@+#])\d{5,}(?= (?:tokens|new|freed|free|recorded|sent|billed))")
_BASE = Path(ctxctl.__file__).parent / "report" / "html" / "assets" / "base.js"

Said = Callable[[tuple[str, ...]], str]


def output(path: Path, view: str, read: Said) -> str:
    """Return what a command prints of a trace; `read` runs it."""
    return read(tuple(str(path) if word == "{}" else word.replace("{}", str(path)) for word in VIEWS[view]))


def faults(text: str, raw: str) -> list[str]:
    """Return shares, money and signs that `wording` words otherwise, and that the trace does not say."""
    found = [one[0] for one in _SHARE.finditer(text) if not _SHARE_FORM.fullmatch(one[0])]
    found += [one[0] for one in _MONEY.finditer(text) if not _MONEY_FORM.fullmatch(one[0])]
    found += [one[0] for one in _MINUS.finditer(text)]
    found += [one[0] for one in _LONG.finditer(text)]
    return [one for one in found if one not in raw]


def words(step: Step) -> dict[str, str]:
    """Return what `wording` says of the values of a step that all views show."""
    window = step.window
    if not window.used and window.uncounted and window.used_method == "recorded":
        return {"used": "not known"}
    made = {"used": wording.number(window.used)}
    if window.cap:
        made |= {"cap": wording.number(window.cap), "share": wording.share(window.used, window.cap)}
        if window.over:
            made["over"] = wording.number(window.over)
        else:
            made["free"] = wording.number(window.free)
    if window.limit_source is not None:
        made["limit"] = wording.LIMIT_SOURCES[window.limit_source]
    return made


def views_of(step: Step) -> dict[str, str]:
    """Return the lines in which the text report and the UI say a step's size."""
    return {
        "text": dict(facts(step))["sent"],
        "ui": " | ".join(piece.text for piece in sent_pieces(step.window)),
    }


def disagreements(path: Path) -> tuple[list[str], int]:
    """Return (values that a view words otherwise, number of values asked), over all steps of a trace."""
    found, asked = [], 0
    pages: list[tuple[str, list[Any]]] = []
    expected: list[str] = []
    for step in steps_of(path):
        for view, text in views_of(step).items():
            for name, word in words(step).items():
                asked += 1
                if not re.search(rf"(?<![\d,.]){re.escape(word)}(?![\d,])", text):
                    found.append(f"{view} of {step.turn}.{step.step}: {name} is not {word!r} in {text!r}")
        window = step.window
        pages.append(("number", [window.used]))
        expected.append(wording.number(window.used))
        if window.cap:
            pages.append(("shareOf", [window.used, window.cap]))
            expected.append(wording.share(window.used, window.cap))
        pages.append(("signed", [step.ledger.new - step.ledger.freed]))
        expected.append(wording.signed(step.ledger.new - step.ledger.freed))
        pages += [("SIGNS", [name]) for name in wording.SIGNS]
        expected += list(wording.SIGNS.values())
    said = page_words(pages)
    asked += len(said)
    for (how, value), shown, expected_word in zip(pages, said, expected, strict=True):
        if shown != expected_word:
            found.append(f"page: {how}{value} is {shown!r}, not {expected_word!r}")
    return found, asked


def steps_of(path: Path) -> Iterator[Step]:
    """Yield the steps of a plain replay."""
    with Inspector.open(path) as inspector:
        yield from (result for result in inspector.replay() if isinstance(result, Step))


def page_words(asked: list[tuple[str, list[Any]]]) -> list[str]:
    """Return what the script of the HTML report says of some values; needs a JavaScript engine."""
    script = (
        f"const LABELS = {json.dumps(dict(wording.tables()), default=dict)};\nconst document = {{}};\n"
        f"{_BASE.read_text('utf-8')}\n"
        "const how = { number, shareOf, signed, SIGNS: (name) => SIGNS[name],"
        " atLeast: (n) => atLeast(dollars(n), n) };\n"
        "const asked = JSON.parse(require('fs').readFileSync(0, 'utf8'));\n"
        "console.log(JSON.stringify(asked.map(([name, values]) => how[name](...values))));"
    )
    done = subprocess.run(
        ["node", "-e", script], input=json.dumps(asked).encode(), capture_output=True, check=True, timeout=60
    )
    made: list[str] = json.loads(done.stdout)
    return made


def printed(capsys: Any) -> Said:
    """Return what runs a command and gives what it prints."""

    def said(command: tuple[str, ...]) -> str:
        capsys.readouterr()
        assert run([*command]) in (0, 1)
        return str(capsys.readouterr().out)

    return said
