"""Write docs/formats/ from what the importers declare (run by ``make docs``).

One page a format: what is read, from where on disk, how turns are told apart, and how far each fact can be
trusted; and an index of them.  A guard test holds the pages against the declarations.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from ctxctl.importers.registry import built_in
from ctxctl.ingest.about import FACTS, Level, sentence
from ctxctl.ingest.declaration import Format
from ctxctl.report.fidelity import held_words

PAGES = Path(__file__).resolve().parent.parent / "docs" / "formats"
NOTE = "<!-- Written by `make docs` from the importer's declaration: change that, not this page. -->"
ASKED = ("system_prompt", "tool_definitions", "messages", "reminders", "compaction", "input_tokens")
"""The facts of the index's table."""
SHORT = {
    Level.NATIVE: "yes",
    Level.DERIVED: "derived",
    Level.SIMULATED: "simulated",
    Level.IN_TOTALS: "in totals",
    Level.NOT_RECORDED: "-",
}


def page(found: Format) -> str:
    """The page of one format."""
    return "\n".join(_page(found)) + "\n"


def _page(found: Format) -> Iterator[str]:
    about = found.about
    yield from (NOTE, f"# {found.title}", "", f"`--read-as {found.name}`", "", about.reads, "")
    yield from ("## Where it is found", "")
    yield from (f"- {_code(place)}" for place in about.places)
    if found.reads_folders:
        yield from ("", "A directory of it can be opened as one capture.")
    yield from ("", "## Turns and steps", "", about.turns, "")
    yield from ("## What it tells", "", "| stage | fact | known | note |", "|---|---|---|---|")
    for stage, facts in groupby(FACTS, key=lambda fact: fact.stage):
        for fact in facts:
            claim = about.claim(fact.name)
            yield f"| {stage} | {fact.asks} | {claim.level.value} | {_cell(claim.note)} |"
    if about.limits:
        yield from ("", "## Left out", "")
        yield from (f"- {sentence(limit)}" for limit in about.limits)
    if told := held_words(about):
        yield from ("", "## Checked against", "", f"{told}.")
    if found.default_policy != "recorded":
        yield from ("", f"Replayed under the policy `{found.default_policy}` unless another is named.")
    if about.origin:
        yield from ("", f"Facts about the format: {about.origin}.")


def index() -> str:
    """The list of formats."""
    rows = [
        NOTE,
        "# Formats",
        "",
        "What ctxctl opens beside its own traces. Formats are told by content; `--read-as NAME` overrides.",
        "`ctxctl formats NAME` prints the same as these pages, and each import says what the capture at hand",
        "really held (`ctxctl validate`, the end of `ctxctl replay`, `summary.fidelity` in `--json`).",
        "",
        "| format | what | " + " | ".join(name.replace("_", " ") for name in ASKED) + " |",
        "|---|---|" + "---|" * len(ASKED),
    ]
    for found in sorted(built_in(), key=lambda f: f.title.lower()):
        told = (SHORT[found.about.claim(name).level] for name in ASKED)
        rows.append(f"| [`{found.name}`]({found.name}.md) | {_cell(found.title)} | {' | '.join(told)} |")
    return "\n".join(rows) + "\n"


def pages() -> dict[str, str]:
    """Every page by its file name."""
    return {"README.md": index(), **{f"{found.name}.md": page(found) for found in built_in()}}


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _code(place: str) -> str:
    """A place, its path as code where it is one."""
    path, blank, rest = place.partition(" ")
    return f"`{path}`{blank}{rest}" if path[:1] in "~./<" else place


def main() -> int:
    """Write the pages, and remove those of formats that are gone."""
    PAGES.mkdir(parents=True, exist_ok=True)
    written = pages()
    for old in PAGES.glob("*.md"):
        if old.name not in written:
            old.unlink()
    for name, text in written.items():
        (PAGES / name).write_text(text, encoding="utf-8")
    print(f"docs/formats: {len(written)} pages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
