"""How long the next question about a log takes that has grown since."""

from __future__ import annotations

import time
from pathlib import Path

from tools.bench.cases import SETTLED, Bench, command
from tools.bench.measure import Sample
from tools.bench.rows import Row, measured
from tools.bench.section import Section
from tools.bench.sections.again import QUESTIONS, REPLAY, filled, name_of
from tools.bench.sections.transcript import FIRST, add_first_reading, add_floors

ASKED = {"show": QUESTIONS["show"], "replay": ("replay", "--json", "{}")}
UNCHANGED = {"show": name_of("show"), "replay": REPLAY}
BEGIN = 0.98
"""Share of the session that is there at first; the rest comes bit by bit."""
MOST = 0.15
"""Of a first reading: to open what is kept, to see that the beginning is as it was, and to load a vocabulary for the
few new texts takes half a second, however little was appended."""


class GrowingLog:
    """A log to whose end the next part of a session is written before each run."""

    def __init__(self, session: Path, path: Path, parts: int) -> None:
        lines = session.read_bytes().splitlines(keepends=True)
        begin = int(len(lines) * BEGIN)
        each = max(1, (len(lines) - begin) // parts)
        self.path = path
        self._coming = [b"".join(lines[at : at + each]) for at in range(begin, len(lines), each)]
        path.write_bytes(b"".join(lines[:begin]))
        self.share = each / len(lines)
        """Of the session, in one part."""

    def grow(self) -> None:
        """Append the next part and wait until the file is trusted to be left alone.  Raises IndexError."""
        with self.path.open("ab") as file:
            file.write(self._coming.pop(0))
        time.sleep(SETTLED)


def _first(question: str) -> str:
    return FIRST if question == "replay" else f"{question}, 50 MB session, first"


def _grown(question: str) -> str:
    return f"{question}, 50 MB session, grown"


def _share(bench: Bench) -> float:
    return (1 - BEGIN) / bench.runs


def _add(bench: Bench) -> None:
    path = add_floors(bench)
    add_first_reading(bench)
    bench.add_command(_first("show"), *filled(ASKED["show"], path), runs=2, cache="cold")
    for question, words in ASKED.items():
        log = GrowingLog(path, bench.scratch / f"growing-{question}.jsonl", bench.runs)
        argv = command(*filled(words, log.path))
        cache = f"grow-{question}"

        def go(log: GrowingLog = log, argv: list[str] = argv, cache: str = cache) -> Sample:
            log.grow()
            return bench.run_once(argv, cache)

        bench.prime(*argv[3:], cache=cache)
        bench.add_case(_grown(question), go)
        unchanged = filled(words, path)
        bench.prime(*unchanged, cache="again")
        bench.add_command(UNCHANGED[question], *unchanged, cache="again")


def _row(bench: Bench, question: str) -> Row:
    first, grown, unchanged = _first(question), _grown(question), UNCHANGED[question]

    def value() -> tuple[str, bool]:
        spent = {name: bench.cases[name].cpu for name in (first, grown, unchanged)}
        share = max(0.0, spent[grown] - spent[unchanged]) / spent[first]
        told = (
            f"{share:.2f} × ({spent[grown]:.2f} of {spent[first]:.2f} s; unchanged {spent[unchanged]:.2f} s)"
        )
        return told, share <= MOST

    words = " ".join(filled(ASKED[question], "SESSION"))
    label = f"`{words}`, {_share(bench):.1%} of the session was appended"
    return measured(
        bench,
        label,
        f"≤ {MOST:g} × a first reading, above the same question unchanged",
        (first, grown, unchanged),
        value,
    )


def _rows(bench: Bench) -> list[Row]:
    return [_row(bench, question) for question in ASKED]


SECTION = Section(
    "grow",
    "And after the log has grown?",
    "The same session, with 98 % of it read. Before each run some more is appended, as a client does "
    "while it works. What the answer itself takes, on a log that has not changed, is no part of it: `replay "
    "--json` prints 41 MB either way.",
    _add,
    _rows,
)
