"""How long the next question about a large capture takes that was read before."""

from __future__ import annotations

from collections.abc import Sequence

from tools.bench.cases import Bench, command
from tools.bench.rows import MB, Row, measured, megabytes
from tools.bench.section import Section
from tools.bench.sections.start import add_bare_start
from tools.bench.sections.transcript import ORJSON, add_floors

CALL = "toolu_17dbf0fa00000001"
"""The first call of the session: every compaction took it out."""
QUESTIONS: dict[str, tuple[str, ...]] = {
    "show": ("show", "--json", "{}@-1"),
    "diff": ("diff", "--json", "{}@-5", "{}@-1"),
    "why": ("why", "--json", "{}@-1", CALL),
    "log": ("log", "--json", "{}", CALL),
    "cost": ("cost", "--json", "{}"),
    "find": ("find", "--json", "{}", "compacted"),
    "lint": ("lint", "--json", "{}"),
    "blame": ("blame", "--json", "--stat", "{}@-1"),
}
"""Questions with small answers."""
STARTS = 38
"""Bare starts that an answer may cost: half a second where one takes 13 ms."""
MOST = 60 * MB
_FINDS = ("find", "lint")
"""Commands whose exit code 1 says that something was found or was not."""
REPLAY = "replay, 50 MB session, again"
WRITING = "writing the output of that replay"


def name_of(question: str) -> str:
    """The name of a question's case."""
    return f"{question}, 50 MB session, again"


def filled(words: Sequence[str], path: object) -> list[str]:
    """The arguments of a question about a file."""
    return [word.replace("{}", str(path)) for word in words]


def _add(bench: Bench) -> None:
    add_bare_start(bench)
    path = add_floors(bench)
    replay = ("replay", "--json", str(path))
    written = bench.scratch / "replay.json"

    def keep_output() -> None:
        bench.run_once(command(*replay), "again", keep=True)
        (bench.scratch / "stdout").replace(written)

    bench.before(keep_output)
    bench.add_probe(WRITING, "write", str(written), cache="again", keep=True)
    bench.add_command(REPLAY, *replay, cache="again")
    for question, words in QUESTIONS.items():
        bench.prime(*filled(words, path), cache="again")
        allowed = (0, 1) if question in _FINDS else (0,)
        bench.add(name_of(question), command(*filled(words, path)), cache="again", allowed=allowed)


def _answer(bench: Bench, question: str) -> Row:
    case = name_of(question)

    def value() -> tuple[str, bool]:
        spent, held = bench.cases[case].cpu, bench.cases[case].rss
        starts = spent / bench.cases["pass"].cpu
        told = f"{starts:.1f} × ({spent:.2f} s, {spent / bench.cases[ORJSON].cpu:.1f} orjson passes), {megabytes(held)}"
        return told, starts <= STARTS and held <= MOST

    words = " ".join(filled(QUESTIONS[question], "SESSION"))
    target = f"≤ {STARTS} × `python -c pass`, ≤ {megabytes(MOST)}"
    return measured(bench, f"`{words}`", target, (case, "pass", ORJSON), value)


def _replay(bench: Bench) -> Row:
    def value() -> tuple[str, bool]:
        floor = bench.cases[ORJSON].cpu + bench.cases[WRITING].printed(0)
        times = bench.cases[REPLAY].cpu / floor
        size = bench.cases[WRITING].printed(1)
        return f"{times:.2f} × ({bench.cases[REPLAY].cpu:.2f} s for {megabytes(size)})", times <= 2

    target = "≤ 2 × (an orjson pass + writing its output)"
    return measured(bench, "`replay --json SESSION`", target, (REPLAY, ORJSON, WRITING), value)


def _rows(bench: Bench) -> list[Row]:
    return [*(_answer(bench, question) for question in QUESTIONS), _replay(bench)]


SECTION = Section(
    "again",
    "And the next question about it?",
    "The same 50 MB Claude Code session, unchanged, after each question was asked once. `why` asks about an item that "
    f"the first compaction removed. {STARTS} bare starts are half a second if one takes 13 ms.",
    _add,
    _rows,
)
