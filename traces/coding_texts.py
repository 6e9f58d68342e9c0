# ruff: noqa: E501, W293 - the documents in here keep their own line lengths
"""What is read and said in coding-agent.jsonl: tools, files, test output, answers.

The project in it, `tidewatch`, is made up: it prints tide tables for small harbours, and since the clocks went
forward they are an hour off.
"""

from __future__ import annotations

from dataclasses import dataclass, field
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
        "description": "Give a task to a helper with a fresh context of its own. It can read but not write; "
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

_LIST = """\
CHANGELOG.md              31
README.md                 58
pyproject.toml            44
settings.toml             12
tidewatch/__init__.py      3
tidewatch/cli.py          40
tidewatch/clock.py        29
tidewatch/export.py       39
tidewatch/gauge.py        56
tidewatch/tables.py       50
tests/test_clock.py       19
tests/test_export.py      41
tests/test_tables.py      36"""

_TABLES = '''\
"""Builds the printed table of one harbour and one day."""

from dataclasses import dataclass
from datetime import date, datetime, timedelta

from tidewatch.clock import to_local
from tidewatch.gauge import Extreme, extremes

HEADER = "Tides at {harbour} on {day:%A, %d %B %Y}"
COLUMNS = ("time", "height", "tide")


@dataclass(frozen=True)
class Row:
    """One high or low water as it is printed."""

    time: str
    height: str
    tide: str


def rows(harbour: str, day: date) -> list[Row]:
    """High and low waters of a day, in local time, earliest first."""
    start = datetime(day.year, day.month, day.day)
    found = extremes(harbour, start, start + timedelta(days=1))
    return [_row(extreme) for extreme in found]


def _row(extreme: Extreme) -> Row:
    local = to_local(extreme.at)
    return Row(
        time=f"{local:%H:%M}",
        height=f"{extreme.metres:.2f} m",
        tide="high" if extreme.high else "low",
    )


def render(harbour: str, day: date) -> str:
    """The whole table as text, two spaces between columns."""
    lines = [HEADER.format(harbour=harbour, day=day), ""]
    table = [COLUMNS, *((r.time, r.height, r.tide) for r in rows(harbour, day))]
    widths = [max(len(cells[i]) for cells in table) for i in range(len(COLUMNS))]
    for cells in table:
        lines.append("  ".join(cell.ljust(width) for cell, width in zip(cells, widths)).rstrip())
    return "\\n".join(lines) + "\\n"


def todays(harbour: str) -> str:
    """The table of the current day."""
    return render(harbour, date.today())
'''

_CLOCK = '''\
"""Conversion between the time of the gauges (UTC) and the time on the wall."""

from datetime import datetime, timedelta

# Eastmouth and Sandhaven are in the same zone.
OFFSET = timedelta(hours=1)


def to_local(moment: datetime) -> datetime:
    """Gauge time to wall time."""
    return moment + OFFSET


def to_gauge(moment: datetime) -> datetime:
    """Wall time to gauge time."""
    return moment - OFFSET


def day_bounds(moment: datetime) -> tuple[datetime, datetime]:
    """Start and end, in gauge time, of the wall day that a gauge time falls into."""
    local = to_local(moment)
    start = local.replace(hour=0, minute=0, second=0, microsecond=0)
    return to_gauge(start), to_gauge(start + timedelta(days=1))


def is_night(moment: datetime) -> bool:
    """Whether the harbour office is closed at a gauge time (22:00 to 06:00 on the wall)."""
    hour = to_local(moment).hour
    return hour >= 22 or hour < 6
'''

_GAUGE = '''\
"""Reads the gauges\' files and finds high and low waters."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

ROOT = Path("/var/lib/tidewatch/gauges")
STAMP = "%Y-%m-%dT%H:%MZ"


@dataclass(frozen=True)
class Reading:
    """One measurement; `at` is UTC without a zone, as the gauges send it."""

    at: datetime
    metres: float


@dataclass(frozen=True)
class Extreme:
    """A high or low water."""

    at: datetime
    metres: float
    high: bool


def readings(harbour: str, start: datetime, end: datetime) -> Iterator[Reading]:
    """Measurements from `start` up to and without `end`, oldest first."""
    with (ROOT / f"{harbour.lower()}.csv").open(newline="") as file:
        for stamp, metres in csv.reader(file):
            at = datetime.strptime(stamp, STAMP)
            if start <= at < end:
                yield Reading(at, float(metres))


def extremes(harbour: str, start: datetime, end: datetime) -> list[Extreme]:
    """Turning points of the level; a plateau counts once, at its middle."""
    found: list[Extreme] = []
    window = list(readings(harbour, start, end))
    index = 1
    while index < len(window) - 1:
        last = index
        while last < len(window) - 1 and window[last + 1].metres == window[index].metres:
            last += 1
        before, after = window[index - 1].metres, window[min(last + 1, len(window) - 1)].metres
        level = window[index].metres
        middle = window[(index + last) // 2]
        if before < level > after:
            found.append(Extreme(middle.at, level, True))
        elif before > level < after:
            found.append(Extreme(middle.at, level, False))
        index = last + 1
    return found
'''

_EXPORT = '''\
"""Writes a month of tides as CSV for the harbour office."""

import csv
from datetime import date, datetime, timedelta
from typing import TextIO

from tidewatch.clock import OFFSET
from tidewatch.gauge import extremes

HEADER = ("date", "time", "metres", "tide")


def month(harbour: str, year: int, number: int, out: TextIO) -> int:
    """Write one month; returns the number of rows without the header."""
    writer = csv.writer(out, lineterminator="\\n")
    writer.writerow(HEADER)
    day = date(year, number, 1)
    rows = 0
    while day.month == number:
        rows += _day(harbour, day, writer)
        day += timedelta(days=1)
    return rows


def _day(harbour: str, day: date, writer: "csv._writer") -> int:
    start = datetime(day.year, day.month, day.day) - OFFSET
    found = extremes(harbour, start, start + timedelta(hours=24))
    for extreme in found:
        local = extreme.at + OFFSET
        writer.writerow((
            f"{local:%Y-%m-%d}", f"{local:%H:%M}", f"{extreme.metres:.2f}",
            "high" if extreme.high else "low",
        ))
    return len(found)


def filename(harbour: str, year: int, number: int) -> str:
    """Name under which the office expects the file."""
    return f"{harbour.lower()}-{year}-{number:02d}.csv"
'''

_SEARCH_OFFSET = """\
tidewatch/clock.py:6:OFFSET = timedelta(hours=1)
tidewatch/clock.py:11:    return moment + OFFSET
tidewatch/clock.py:16:    return moment - OFFSET
tidewatch/export.py:7:from tidewatch.clock import OFFSET
tidewatch/export.py:26:    start = datetime(day.year, day.month, day.day) - OFFSET
tidewatch/export.py:29:        local = extreme.at + OFFSET
tests/test_clock.py:4:from tidewatch.clock import OFFSET, day_bounds, is_night, to_local"""

_SEARCH_NAIVE = """\
tidewatch/cli.py:25:    now = datetime.now()
tidewatch/cli.py:32:        print(todays(args.harbour))
tidewatch/clock.py:3:from datetime import datetime, timedelta
tidewatch/export.py:26:    start = datetime(day.year, day.month, day.day) - OFFSET
tidewatch/gauge.py:34:            at = datetime.strptime(stamp, STAMP)
tidewatch/tables.py:24:    start = datetime(day.year, day.month, day.day)
tidewatch/tables.py:50:    return render(harbour, date.today())"""

_CLI = '''\
"""Command line: `tidewatch table HARBOUR`, `tidewatch export HARBOUR YYYY-MM`."""

import argparse
import sys
from datetime import datetime

from tidewatch.export import filename, month
from tidewatch.tables import todays


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(prog="tidewatch")
    commands = top.add_subparsers(dest="command", required=True)
    table = commands.add_parser("table", help="print the table of today")
    table.add_argument("harbour")
    export = commands.add_parser("export", help="write a month as CSV")
    export.add_argument("harbour")
    export.add_argument("month", nargs="?")
    return top


def default_month() -> tuple[int, int]:
    """The month that the office asks for: the present one."""
    now = datetime.now()
    return now.year, now.month


def main() -> int:
    """Run one command."""
    args = parser().parse_args()
    if args.command == "table":
        print(todays(args.harbour))
        return 0
    year, number = map(int, args.month.split("-")) if args.month else default_month()
    with open(filename(args.harbour, year, number), "w", newline="") as out:
        rows = month(args.harbour, year, number, out)
    print(f"{rows} rows", file=sys.stderr)
    return 0
'''

_TESTS_1 = """\
============================= test session starts ==============================
collected 9 items

tests/test_clock.py ...                                                  [ 33%]
tests/test_export.py ..F                                                 [ 66%]
tests/test_tables.py .F.                                                 [100%]

=================================== FAILURES ===================================
_________________________ test_month_has_every_extreme _________________________

    def test_month_has_every_extreme(gauges, tmp_path):
        out = io.StringIO()
>       assert month("Eastmouth", 2026, 3, out) == 119
E       AssertionError: assert 120 == 119
E        +  where 120 = month('Eastmouth', 2026, 3, <_io.StringIO object>)

tests/test_export.py:31: AssertionError
____________________________ test_table_after_change ___________________________

    def test_table_after_change(gauges):
>       assert render("Eastmouth", date(2026, 3, 30)).splitlines()[3].startswith("05:12")
E       AssertionError: assert False
E        +  where False = <built-in method startswith of str object>('05:12')
E        +    where '04:12  4.61 m  high' = render('Eastmouth', date(2026, 3, 30)).splitlines()[3]

tests/test_tables.py:24: AssertionError
=========================== short test summary info ============================
FAILED tests/test_export.py::test_month_has_every_extreme - AssertionError: a...
FAILED tests/test_tables.py::test_table_after_change - AssertionError: assert...
========================= 2 failed, 7 passed in 0.41s =========================="""

_TESTS_2 = """\
============================= test session starts ==============================
collected 3 items / 2 errors

==================================== ERRORS ====================================
____________________ ERROR collecting tests/test_clock.py ______________________
tests/test_clock.py:4: in <module>
    from tidewatch.clock import OFFSET, day_bounds, is_night, to_local
E   ImportError: cannot import name 'OFFSET' from 'tidewatch.clock'
____________________ ERROR collecting tests/test_export.py _____________________
tidewatch/export.py:7: in <module>
    from tidewatch.clock import OFFSET
E   ImportError: cannot import name 'OFFSET' from 'tidewatch.clock'
=========================== short test summary info ============================
ERROR tests/test_clock.py
ERROR tests/test_export.py
!!!!!!!!!!!!!!!!!!! Interrupted: 2 errors during collection !!!!!!!!!!!!!!!!!!!!
============================== 2 errors in 0.21s ==============================="""

_CLOCK_OLD = """\
from datetime import datetime, timedelta

# Eastmouth and Sandhaven are in the same zone.
OFFSET = timedelta(hours=1)


def to_local(moment: datetime) -> datetime:
    \"\"\"Gauge time to wall time.\"\"\"
    return moment + OFFSET


def to_gauge(moment: datetime) -> datetime:
    \"\"\"Wall time to gauge time.\"\"\"
    return moment - OFFSET"""

_CLOCK_NEW = """\
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

# Eastmouth and Sandhaven are in the same zone.
ZONE = ZoneInfo("Europe/Amsterdam")


def to_local(moment: datetime) -> datetime:
    \"\"\"Gauge time to wall time, both without a zone.\"\"\"
    return moment.replace(tzinfo=UTC).astimezone(ZONE).replace(tzinfo=None)


def to_gauge(moment: datetime) -> datetime:
    \"\"\"Wall time to gauge time, both without a zone; of an hour that comes twice, the first.\"\"\"
    return moment.replace(tzinfo=ZONE).astimezone(UTC).replace(tzinfo=None)"""

_TEST_CLOCK = """\
from datetime import datetime, timedelta

import pytest
from tidewatch.clock import OFFSET, day_bounds, is_night, to_local


def test_to_local_in_winter():
    assert to_local(datetime(2026, 1, 10, 23, 30)) == datetime(2026, 1, 11, 0, 30)


def test_day_bounds_hold_the_moment():
    start, end = day_bounds(datetime(2026, 1, 10, 23, 30))
    assert start <= datetime(2026, 1, 10, 23, 30) < end
    assert end - start == timedelta(hours=24)


@pytest.mark.parametrize(("hour", "closed"), [(20, False), (21, True), (4, True), (5, False)])
def test_is_night(hour, closed):
    assert is_night(datetime(2026, 1, 10, hour) + OFFSET - OFFSET) is closed
"""

_TEST_NEW = """\
def test_to_local_in_summer():
    assert to_local(datetime(2026, 7, 1, 22, 30)) == datetime(2026, 7, 2, 0, 30)


def test_day_of_the_change_back_has_25_hours():
    start, end = day_bounds(datetime(2026, 10, 25, 12))
    assert end - start == timedelta(hours=25)


def test_day_of_the_change_forward_has_23_hours():
    start, end = day_bounds(datetime(2026, 3, 29, 12))
    assert end - start == timedelta(hours=23)
"""

_EXPORT_FAIL = """\
tests/test_export.py:31: in test_month_has_every_extreme
    assert month("Eastmouth", 2026, 3, out) == 119
tidewatch/export.py:20: in month
    rows += _day(harbour, day, writer)
tidewatch/export.py:27: in _day
    found = extremes(harbour, start, start + timedelta(hours=24))
E   AssertionError: assert 120 == 119

Rows written for the last three days of the month:
    2026-03-29,00:01,1.02,low
    2026-03-29,06:09,4.55,high
    2026-03-29,12:24,0.97,low
    2026-03-29,18:31,4.58,high
    2026-03-30,00:40,0.93,low
    2026-03-30,05:12,4.61,high
    2026-03-30,05:12,4.61,high
    2026-03-30,13:05,0.89,low
    2026-03-30,19:10,4.64,high
    2026-03-31,01:18,0.85,low"""

_SETTINGS = """\
[harbours]
eastmouth = { title = "Eastmouth", gauge = "EM1" }
sandhaven = { title = "Sandhaven", gauge = "SH2" }

[print]
paper = "A5"
columns = ["time", "height", "tide"]

[office]
open = 06:00:00
close = 22:00:00
mail = "office@harbour.example\""""

_MYPY = """\
tidewatch/export.py:25: error: Name "csv._writer" is not defined  [name-defined]
tidewatch/clock.py:12: error: Argument 1 to "ZoneInfo" has incompatible type "Any | None"; expected "str"  [arg-type]
Found 2 errors in 2 files (checked 6 source files)"""

_DIFF = """\
diff --git a/settings.toml b/settings.toml
@@ -1,3 +1,6 @@
+[time]
+zone = "Europe/Amsterdam"
+
 [harbours]
diff --git a/tidewatch/clock.py b/tidewatch/clock.py
@@ -1,19 +1,28 @@
-from datetime import datetime, timedelta
+import tomllib
+from datetime import UTC, datetime, timedelta
+from pathlib import Path
+from zoneinfo import ZoneInfo
 
-# Eastmouth and Sandhaven are in the same zone.
-OFFSET = timedelta(hours=1)
+
+def _zone() -> ZoneInfo:
+    with Path("settings.toml").open("rb") as file:
+        return ZoneInfo(tomllib.load(file)["time"]["zone"])
+
+
+ZONE = _zone()
 
 def to_local(moment: datetime) -> datetime:
-    return moment + OFFSET
+    return moment.replace(tzinfo=UTC).astimezone(ZONE).replace(tzinfo=None)
 
 def to_gauge(moment: datetime) -> datetime:
-    return moment - OFFSET
+    return moment.replace(tzinfo=ZONE).astimezone(UTC).replace(tzinfo=None)
diff --git a/tidewatch/export.py b/tidewatch/export.py
@@ -24,10 +24,9 @@
-def _day(harbour: str, day: date, writer: "csv._writer") -> int:
-    start = datetime(day.year, day.month, day.day) - OFFSET
-    found = extremes(harbour, start, start + timedelta(hours=24))
+def _day(harbour: str, day: date, writer: Writer) -> int:
+    start = to_gauge(datetime(day.year, day.month, day.day))
+    end = to_gauge(datetime(day.year, day.month, day.day) + timedelta(days=1))
+    found = extremes(harbour, start, end)
     for extreme in found:
-        local = extreme.at + OFFSET
+        local = to_local(extreme.at)
diff --git a/tidewatch/tables.py b/tidewatch/tables.py
@@ -23,4 +23,4 @@
-    start = datetime(day.year, day.month, day.day)
-    found = extremes(harbour, start, start + timedelta(days=1))
+    start, end = day_bounds(to_gauge(datetime(day.year, day.month, day.day, 12)))
+    found = extremes(harbour, start, end)"""

_CHANGELOG = """\
# Changes

## Unreleased

## 2.3.0 (2026-02-11)
- Tables fit on A5 paper.
- `export` takes the month as `YYYY-MM`; without it, the present month.

## 2.2.1 (2025-11-30)
- A plateau at high water no longer prints two rows.

## 2.2.0 (2025-10-02)
- Sandhaven."""


@dataclass(frozen=True)
class Call:
    """A tool call and its result; `helper` is a conversation that the call sets off in a thread of its own."""

    tool: str
    arguments: dict[str, Any]
    result: str
    thought: str = ""
    helper: Helper | None = None


@dataclass(frozen=True)
class Helper:
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


_EXPLORE = Helper(
    "explorer", EXPLORER,
    "Find every place in tidewatch that converts between gauge time (UTC) and wall time, or that takes a wall "
    "day to be 24 hours long. The repository has a constant OFFSET that should not be constant.",
    (
        Call("search", {"pattern": "OFFSET"}, _SEARCH_OFFSET),
        Call("search", {"pattern": r"datetime\(|now\(|today\(|strptime|timedelta,"}, _SEARCH_NAIVE),
        _read("tidewatch/export.py", _EXPORT),
        _read("tidewatch/cli.py", _CLI),
    ),
    """\
Conversions: clock.py:11 and :16 (to_local, to_gauge, with OFFSET); export.py:26 and :29, its own arithmetic
with OFFSET instead of the two functions.
A day taken for 24 hours: tables.py:24 to 25, and from UTC midnight at that; export.py:27.
cli.py:25 takes the machine's own time for the default month: matters only in the first hour of a month.
gauge.py:34 parses UTC into naive times on purpose (see the docstring): no change needed.
tests/test_clock.py:4 imports OFFSET. Not looked at: README.md, CHANGELOG.md.""",
)  # fmt: skip

_REVIEW = Helper(
    "reviewer", REVIEWER,
    "Review this diff. Intention: wall time comes from the zone in settings.toml, days may have 23 or 25 hours, "
    "nothing else changes.\n\n" + _DIFF,
    (
        _read("tidewatch/gauge.py", _GAUGE),
        _read("settings.toml", '[time]\nzone = "Europe/Amsterdam"\n\n' + _SETTINGS),
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
            Call("list_files", {"path": "."}, _LIST, "I start with what is there."),
            _read("tidewatch/tables.py", _TABLES),
            _read("tidewatch/clock.py", _CLOCK, "The table takes its time from clock.to_local."),
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
                "That is a search over everything; an explorer can do it.", helper=_EXPLORE,
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
        (_run("pytest", _TESTS_1),),
        """\
Two of nine fail, both because of the change of clocks: the table of 30 March prints 04:12 where 05:12 is right,
and the March export counts 120 extremes where there are 119.""",
    ),
    Turn(
        "Fix clock.py first.",
        (
            _edit("tidewatch/clock.py", _CLOCK_OLD, _CLOCK_NEW, "A real zone instead of the constant."),
            _run("pytest", _TESTS_2),
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
            _read("tidewatch/export.py", _EXPORT),
            _run("git stash && pytest -x tests/test_export.py --tb=long; git stash pop", _EXPORT_FAIL,
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
            _read("tests/test_clock.py", _TEST_CLOCK),
            _edit("tests/test_clock.py", "from tidewatch.clock import OFFSET, day_bounds",
                  "from tidewatch.clock import day_bounds"),
            _edit("tests/test_clock.py", "    assert is_night(datetime(2026, 1, 10, hour) + OFFSET - OFFSET)",
                  _TEST_NEW + "\n\n    assert is_night(datetime(2026, 1, 10, hour))"),
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
        (_read("tidewatch/gauge.py", _GAUGE),),
        """\
It can stay. The files hold UTC, the class says so, and nothing in it converts. Times with a zone would be safer
in the long run, but that touches every caller.""",
    ),
    Turn(
        "Then put the name of the zone into settings.toml, please.",
        (
            _read("settings.toml", _SETTINGS),
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
            _read("tidewatch/tables.py", _TABLES, "I have to read it again."),
            _edit(
                "tidewatch/tables.py",
                "    start = datetime(day.year, day.month, day.day)\n"
                "    found = extremes(harbour, start, start + timedelta(days=1))",
                "    start, end = day_bounds(to_gauge(datetime(day.year, day.month, day.day, 12)))\n"
                "    found = extremes(harbour, start, end)",
            ),
            _run("mypy tidewatch && pytest", _MYPY),
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
            _run("git diff", _DIFF),
            Call("delegate", {"role": "reviewer", "task": "Review this diff ..."}, _REVIEW.answer, helper=_REVIEW),
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
            _read("CHANGELOG.md", _CHANGELOG),
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
