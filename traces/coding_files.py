# ruff: noqa: E501, W293 - the documents in here keep their own line lengths
"""Files and command outputs that the agent of coding-agent.jsonl reads.

The project, `tidewatch`, is made up: it prints tide tables for small harbours, and since the clocks went forward
they are an hour early.
"""

from __future__ import annotations

LIST = """\
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

TABLES = '''\
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

CLOCK = '''\
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

GAUGE = '''\
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

EXPORT = '''\
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

SEARCH_OFFSET = """\
tidewatch/clock.py:6:OFFSET = timedelta(hours=1)
tidewatch/clock.py:11:    return moment + OFFSET
tidewatch/clock.py:16:    return moment - OFFSET
tidewatch/export.py:7:from tidewatch.clock import OFFSET
tidewatch/export.py:26:    start = datetime(day.year, day.month, day.day) - OFFSET
tidewatch/export.py:29:        local = extreme.at + OFFSET
tests/test_clock.py:4:from tidewatch.clock import OFFSET, day_bounds, is_night, to_local"""

SEARCH_NAIVE = """\
tidewatch/cli.py:25:    now = datetime.now()
tidewatch/cli.py:32:        print(todays(args.harbour))
tidewatch/clock.py:3:from datetime import datetime, timedelta
tidewatch/export.py:26:    start = datetime(day.year, day.month, day.day) - OFFSET
tidewatch/gauge.py:34:            at = datetime.strptime(stamp, STAMP)
tidewatch/tables.py:24:    start = datetime(day.year, day.month, day.day)
tidewatch/tables.py:50:    return render(harbour, date.today())"""

CLI = '''\
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

TESTS_1 = """\
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

TESTS_2 = """\
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

CLOCK_OLD = """\
from datetime import datetime, timedelta

# Eastmouth and Sandhaven are in the same zone.
OFFSET = timedelta(hours=1)


def to_local(moment: datetime) -> datetime:
    \"\"\"Gauge time to wall time.\"\"\"
    return moment + OFFSET


def to_gauge(moment: datetime) -> datetime:
    \"\"\"Wall time to gauge time.\"\"\"
    return moment - OFFSET"""

CLOCK_NEW = """\
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

TEST_CLOCK = """\
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

TEST_NEW = """\
def test_to_local_in_summer():
    assert to_local(datetime(2026, 7, 1, 22, 30)) == datetime(2026, 7, 2, 0, 30)


def test_day_of_the_change_back_has_25_hours():
    start, end = day_bounds(datetime(2026, 10, 25, 12))
    assert end - start == timedelta(hours=25)


def test_day_of_the_change_forward_has_23_hours():
    start, end = day_bounds(datetime(2026, 3, 29, 12))
    assert end - start == timedelta(hours=23)
"""

EXPORT_FAIL = """\
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

SETTINGS = """\
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

MYPY = """\
tidewatch/export.py:25: error: Name "csv._writer" is not defined  [name-defined]
tidewatch/clock.py:12: error: Argument 1 to "ZoneInfo" has incompatible type "Any | None"; expected "str"  [arg-type]
Found 2 errors in 2 files (checked 6 source files)"""

DIFF = """\
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

CHANGELOG = """\
# Changes

## Unreleased

## 2.3.0 (2026-02-11)
- Tables fit on A5 paper.
- `export` takes the month as `YYYY-MM`; without it, the present month.

## 2.2.1 (2025-11-30)
- A plateau at high water no longer prints two rows.

## 2.2.0 (2025-10-02)
- Sandhaven."""
