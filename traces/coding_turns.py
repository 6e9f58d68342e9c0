# ruff: noqa: E501 - the documents in here keep their own line lengths
"""What is asked, called and answered in coding-agent.jsonl."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from traces import coding_files as files
from traces.coding_tools import EXPLORER, REVIEWER


@dataclass(frozen=True)
class Call:
    """A tool call and its result; `sub_agent` is a conversation that the call sets off in a thread of its own."""

    tool: str
    arguments: dict[str, Any]
    result: str
    thought: str = ""
    sub_agent: SubAgent | None = None


@dataclass(frozen=True)
class SubAgent:
    """A sub-agent: its calls, then its answer, which is the result of the call that started it."""

    thread: str
    system: str
    task: str
    calls: tuple[Call, ...]
    answer: str


@dataclass(frozen=True)
class Turn:
    """One prompt, the calls it sets off one request each, and the answer."""

    prompt: str
    calls: tuple[Call, ...]
    answer: str
    plan: str | None = None
    """The plan as it stands from this turn on; None: unchanged."""
    status: str | None = None
    """State of the working tree from this turn on; None: unchanged."""
    compact: bool = False
    """The history is compacted before this turn's first request."""
    blank: tuple[str, ...] = field(default_factory=tuple)
    """Results of these calls are cut to a line from this turn on."""


STATUS_0 = """\
Repository: tidewatch, branch main, clean
Python 3.12, tests with pytest, types with mypy
Today: 2026-03-31"""

SUMMARY = """\
[Summary of the conversation so far]
Problem: since 29 March all printed tables for Eastmouth and Sandhaven are an hour early. Cause: the constant
OFFSET = 1 h in tidewatch/clock.py, also used by tidewatch/export.py; tables.py and export.py take a day for
24 hours of wall time. gauge.py is right: it keeps UTC without a zone and needs no change (asked and answered).

Done, tests green (12 passed):
- clock.py: to_local and to_gauge go through ZoneInfo("Europe/Amsterdam"); OFFSET is gone.
- export.py: _day uses to_gauge and to_local; the CSV header is unchanged, as asked.
- tests/test_clock.py: summer time, the 25 hour day in October, the 23 hour day in March.

Known and left alone: cli.py line 25 takes the machine's time for the default month. Open: tables.py still takes
a day for 24 hours; the zone name stands in clock.py and not in the settings.

The person wants small changes, and no commit before being asked."""


def _edit(path: str, old: str, new: str, thought: str = "") -> Call:
    return Call("edit_file", {"path": path, "old": old, "new": new}, f"{path}: 1 passage replaced", thought)


def _read(path: str, text: str, thought: str = "") -> Call:
    return Call("read_file", {"path": path}, text, thought)


def _run(command: str, output: str, thought: str = "") -> Call:
    return Call("run", {"command": command}, output, thought)


def _passed(number: int) -> str:
    return f"{'.' * number}\n{number} passed in 0.4{number % 10}s"


_EXPLORE = SubAgent(
    "explorer", EXPLORER,
    "Find every place in tidewatch that converts between gauge time (UTC) and wall time, or that takes a wall "
    "day to be 24 hours long. The repository has a constant OFFSET that should not be constant.",
    (
        Call("search", {"pattern": "OFFSET"}, files.SEARCH_OFFSET),
        Call("search", {"pattern": r"datetime\(|now\(|today\(|strptime|timedelta,"}, files.SEARCH_NAIVE),
        _read("tidewatch/export.py", files.EXPORT),
        _read("tidewatch/cli.py", files.CLI),
    ),
    """\
Conversions: clock.py:11 and :16 (to_local, to_gauge, with OFFSET); export.py:26 and :29, its own arithmetic
with OFFSET instead of the two functions.
A day taken for 24 hours: tables.py:24 to 25, and from UTC midnight at that; export.py:27.
cli.py:25 takes the machine's own time for the default month: matters only in the first hour of a month.
gauge.py:34 parses UTC into naive times on purpose (see the docstring): no change needed.
tests/test_clock.py:4 imports OFFSET. Not looked at: README.md, CHANGELOG.md.""",
)  # fmt: skip

_REVIEW = SubAgent(
    "reviewer", REVIEWER,
    "Review this diff. Intention: wall time comes from the zone in settings.toml, days may have 23 or 25 hours, "
    "nothing else changes.\n\n" + files.DIFF,
    (
        _read("tidewatch/gauge.py", files.GAUGE),
        _read("settings.toml", '[time]\nzone = "Europe/Amsterdam"\n\n' + files.SETTINGS),
        Call("search", {"pattern": "day_bounds|is_night"}, """\
tidewatch/clock.py:30:def day_bounds(moment: datetime) -> tuple[datetime, datetime]:
tidewatch/clock.py:37:def is_night(moment: datetime) -> bool:
tidewatch/tables.py:26:    start, end = day_bounds(to_gauge(datetime(day.year, day.month, day.day, 12)))
tests/test_clock.py:4:from tidewatch.clock import day_bounds, is_night, to_local"""),
    ),
    """\
1. clock.py: settings.toml is opened relative to the current directory when the module is imported. From
   another directory every command fails with FileNotFoundError, also `--help`.
2. export.py: the first extreme of a day needs the reading before midnight (gauge.extremes skips index 0). That
   was so before, but the test now depends on it: 119 rows, not 120. Worth a comment.
3. clock.py, to_gauge: of the hour that comes twice in October it takes the first. No test says so.
Otherwise the diff does what it says.""",
)  # fmt: skip

_ZONE_OLD = 'ZONE = ZoneInfo("Europe/Amsterdam")'
_ZONE_NEW = """\
def _zone() -> ZoneInfo:
    with Path("settings.toml").open("rb") as file:
        return ZoneInfo(tomllib.load(file).get("time", {}).get("zone"))


ZONE = _zone()"""

TURNS = (
    Turn(
        "Since Sunday the printed tables for Eastmouth are an hour early. Please find out why, don't change "
        "anything yet.",
        (
            Call("list_files", {"path": "."}, files.LIST, "I start with what is there."),
            _read("tidewatch/tables.py", files.TABLES),
            _read("tidewatch/clock.py", files.CLOCK, "The table takes its time from clock.to_local."),
        ),
        """\
clock.py adds a constant hour (line 6, OFFSET). That is right in winter; on Sunday, 29 March, the clocks went
forward, and since then the wall is two hours ahead of the gauges. tables.py has a second fault, hidden behind
the first: rows() takes a day from UTC midnight to UTC midnight (line 24), so the first hour or two of a wall
day come from the day before.""",
        plan="1. [done] find the cause\n2. [open] find other places with the same mistake",
    ),
    Turn(
        "Is clock.py the only place?",
        (
            Call(
                "delegate", {"role": "explorer", "task": _EXPLORE.task}, _EXPLORE.answer,
                "That is a search over everything; an explorer can do it.", sub_agent=_EXPLORE,
            ),
        ),
        """\
No. export.py does the same arithmetic itself (lines 26 and 29) and also takes a day for 24 hours. cli.py:25
uses the machine's time for the default month, which matters in the first hour of a month only. The gauge
reader is fine.""",
        plan="1. [done] find the cause\n2. [done] find other places: export.py, tables.py, (cli.py)\n"
        "3. [open] see what the tests say",
    ),
    Turn(
        "What do the tests say right now?",
        (_run("pytest", files.TESTS_1),),
        """\
Two of nine fail, both because of the change of clocks: the table of 30 March prints 04:12 where 05:12 is right,
and the March export counts 120 extremes where there are 119.""",
    ),
    Turn(
        "Fix clock.py first.",
        (
            _edit("tidewatch/clock.py", files.CLOCK_OLD, files.CLOCK_NEW, "A real zone instead of the constant."),
            _run("pytest", files.TESTS_2),
        ),
        """\
clock.py now asks the zone. Two test files cannot be imported yet, because export.py and tests/test_clock.py
still want OFFSET, which is gone; both are next.""",
        plan="1. [done] find the cause\n2. [done] find other places: export.py, tables.py, (cli.py)\n"
        "3. [done] see what the tests say\n4. [done] clock.py\n5. [open] export.py and its tests",
        status="Repository: tidewatch, branch main, 1 file changed: tidewatch/clock.py\n"
        "Python 3.12, tests with pytest, types with mypy\nToday: 2026-03-31",
    ),
    Turn(
        "Before you touch export.py: why 120 rows and not 119?",
        (
            _read("tidewatch/export.py", files.EXPORT),
            _run("git stash && pytest -x tests/test_export.py --tb=long; git stash pop", files.EXPORT_FAIL,
                 "I run it once more on the old code."),
        ),
        """\
Because days overlap: each one is 24 hours of wall time shifted by a constant, and around the change the high
water at 05:12 on the 30th falls into two of them. With days that really end at midnight it is counted once.""",
    ),
    Turn(
        "All right, fix it, but keep the CSV header, the office parses it.",
        (
            _edit(
                "tidewatch/export.py",
                "    start = datetime(day.year, day.month, day.day) - OFFSET\n"
                "    found = extremes(harbour, start, start + timedelta(hours=24))",
                "    start = to_gauge(datetime(day.year, day.month, day.day))\n"
                "    end = to_gauge(datetime(day.year, day.month, day.day) + timedelta(days=1))\n"
                "    found = extremes(harbour, start, end)",
            ),
            _edit("tidewatch/export.py", "        local = extreme.at + OFFSET",
                  "        local = to_local(extreme.at)"),
            _run("pytest tests/test_export.py tests/test_tables.py", _passed(6)),
        ),
        "export.py uses to_local and to_gauge now, and its days end at midnight. The header is as it was: date, "
        "time, metres, tide.",
        status="Repository: tidewatch, branch main, 2 files changed: tidewatch/clock.py, tidewatch/export.py\n"
        "Python 3.12, tests with pytest, types with mypy\nToday: 2026-03-31",
    ),
    Turn(
        "Add tests for the nights when the clocks change.",
        (
            _read("tests/test_clock.py", files.TEST_CLOCK),
            _edit("tests/test_clock.py", "from tidewatch.clock import OFFSET, day_bounds",
                  "from tidewatch.clock import day_bounds"),
            _edit("tests/test_clock.py", "    assert is_night(datetime(2026, 1, 10, hour) + OFFSET - OFFSET)",
                  files.TEST_NEW + "\n\n    assert is_night(datetime(2026, 1, 10, hour))"),
            _run("pytest", _passed(12)),
        ),
        "Three tests more: summer time, the day of 25 hours in October and the one of 23 hours in March. All 12 "
        "pass.",
        plan="1. [done] find the cause\n2. [done] find other places: export.py, tables.py, (cli.py)\n"
        "3. [done] see what the tests say\n4. [done] clock.py\n5. [done] export.py and its tests\n"
        "6. [done] tests for the change of clocks\n7. [open] tables.py: days of 23 and 25 hours",
        blank=("call-1", "call-5"),
    ),
    Turn(
        "And gauge.py? It also has naive datetimes.",
        (_read("tidewatch/gauge.py", files.GAUGE),),
        """\
It can stay. The files hold UTC, the class says so, and nothing in it converts. Times with a zone would be safer
in the long run, but that touches every caller.""",
    ),
    Turn(
        "Then put the name of the zone into settings.toml, please.",
        (
            _read("settings.toml", files.SETTINGS),
            _edit("settings.toml", "[harbours]", '[time]\nzone = "Europe/Amsterdam"\n\n[harbours]'),
            _edit("tidewatch/clock.py", _ZONE_OLD, _ZONE_NEW),
            _run("pytest", _passed(12)),
        ),
        "clock.py reads the zone from settings.toml, section [time]. All 12 tests pass.",
        plan="1. [done] find the cause, fix clock.py and export.py, tests\n"
        "2. [done] the zone's name in settings.toml\n3. [open] tables.py: days of 23 and 25 hours",
        status="Repository: tidewatch, branch main, 4 files changed: settings.toml, tests/test_clock.py,\n"
        "tidewatch/clock.py, tidewatch/export.py\n"
        "Python 3.12, tests with pytest, types with mypy\nToday: 2026-03-31",
        compact=True,
    ),
    Turn(
        "Now tables.py, then types.",
        (
            _read("tidewatch/tables.py", files.TABLES, "I have to read it again."),
            _edit(
                "tidewatch/tables.py",
                "    start = datetime(day.year, day.month, day.day)\n"
                "    found = extremes(harbour, start, start + timedelta(days=1))",
                "    start, end = day_bounds(to_gauge(datetime(day.year, day.month, day.day, 12)))\n"
                "    found = extremes(harbour, start, end)",
            ),
            _run("mypy tidewatch && pytest", files.MYPY),
        ),
        "tables.py takes its day from day_bounds now. mypy has two complaints: one is old (csv._writer), the other "
        "is mine: the zone may be missing in the settings.",
    ),
    Turn(
        "Fix both.",
        (
            _edit("tidewatch/clock.py", '.get("time", {}).get("zone"))', '["time"]["zone"])',
                  "A missing zone should fail loudly."),
            _edit("tidewatch/export.py", 'writer: "csv._writer"', "writer: Writer"),
            _run("mypy tidewatch && pytest", "Success: no issues found in 6 source files\n" + _passed(12)),
        ),
        "Both fixed: a missing zone is a KeyError at start, and the writer has a small protocol of its own.",
        plan="1. [done] find the cause, fix clock.py and export.py, tests\n"
        "2. [done] the zone's name in settings.toml\n3. [done] tables.py: days of 23 and 25 hours\n"
        "4. [done] types\n5. [open] review",
    ),
    Turn(
        "Let somebody else look at the whole diff.",
        (
            _run("git diff", files.DIFF),
            Call("delegate", {"role": "reviewer", "task": "Review this diff ..."}, _REVIEW.answer, sub_agent=_REVIEW),
        ),
        """\
Three remarks. The first is serious: settings.toml is looked for in the current directory, at import. The second
wants a comment, the third a test for the hour that comes twice.""",
    ),
    Turn(
        "Do the first and the third.",
        (
            _edit("tidewatch/clock.py", 'Path("settings.toml").open("rb")',
                  'SETTINGS.open("rb")', "The settings lie beside the package."),
            _edit("tests/test_clock.py", "def test_day_of_the_change_forward", """\
def test_hour_that_comes_twice_is_the_first():
    assert to_gauge(datetime(2026, 10, 25, 2, 30)) == datetime(2026, 10, 25, 0, 30)


def test_day_of_the_change_forward"""),
            _run("mypy tidewatch && pytest", "Success: no issues found in 6 source files\n" + _passed(13)),
        ),
        "Done: the path comes from the package, and a test says that the first of the two hours is meant. 13 pass.",
        plan="1. [done] find the cause, fix clock.py and export.py, tests\n"
        "2. [done] the zone's name in settings.toml\n3. [done] tables.py: days of 23 and 25 hours\n"
        "4. [done] types\n5. [done] review, remarks 1 and 3\n6. [open] change log",
    ),
    Turn(
        "Write the change log entry.",
        (
            _read("CHANGELOG.md", files.CHANGELOG),
            _edit("CHANGELOG.md", "## Unreleased\n", "## Unreleased\n- Tables and exports follow summer time; the "
                  "zone is set in `settings.toml`.\n- The export no longer counts a high water twice on the day "
                  "after the change.\n"),
        ),
        "Two lines under Unreleased: summer time with the zone in the settings, and the row that was counted twice.",
    ),
    Turn(
        "Good. Commit it, one commit.",
        (_run('git commit -aqm "Follow summer time" && git log --oneline -1', "3f1c2ab Follow summer time"),),
        "Committed as 3f1c2ab on main, not pushed.",
        status="Repository: tidewatch, branch main, clean, 1 commit ahead of origin\n"
        "Python 3.12, tests with pytest, types with mypy\nToday: 2026-03-31",
    ),
)  # fmt: skip
