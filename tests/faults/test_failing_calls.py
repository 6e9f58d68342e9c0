"""Each call of the system that an operation makes fails once, or is the last one of the process.

By default each call of the operations that write, and a sample of those that only keep what can be made
again; `CTXCTL_FAULTS=all` tries each call of all of them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
COMPILER = shutil.which("cc")
EVERY = os.environ.get("CTXCTL_FAULTS") == "all"
SECONDS = 7200 if EVERY else 280
"""What one scenario may take: each of its calls is a run of its own."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(SECONDS + 20),
    pytest.mark.skipif(sys.platform != "linux", reason="calls are stood in for as Linux has them"),
    pytest.mark.skipif(COMPILER is None, reason="needs a C compiler"),
]

WRITING = (
    "RedactionKey", "Calibration", "Baseline", "Golden", "SavedText", "Remembered", "SettingsOfProgram",
    "SignIn", "Import", "ImportOver", "ExportOver", "Recording", "RecordStdin",
)  # fmt: skip
KEEPING = {
    "Export": 11, "ReplayOfNative": 37, "ReplayOfCapture": 41, "ReplayOfDatabase": 3, "ImportOfDatabase": 7,
    "ReplayOfDatabaseInUse": 47,
}  # fmt: skip
"""Operations of hundreds of calls, and of how many one is tried: others in each manner (`first_of`)."""
WATCHING = {"Watch": 9, "WatchDirectory": 13, "WatchCapture": 17}
"""Operations that wait for what comes: a try takes a second."""
DATASET = {"FleetAdd": 23, "FleetAddChanged": 43, "FleetForget": 13, "FleetCompact": 23}
"""Operations on a dataset, of which a try takes a second too."""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("library") / "failpoints.so"
    assert COMPILER is not None
    command = [COMPILER, "-shared", "-fPIC", "-O1", "-w", "-o", str(made), str(HERE / "failpoints.c"), "-ldl"]
    subprocess.run(command, check=True)
    return made


def failing(
    library: Path, folder: Path, scenario: str, manners: str, step: int = 1
) -> dict[str, dict[str, Any]]:
    """What came of a scenario in each manner: the calls that there are, and what was wrong."""
    command = [sys.executable, "-m", "tests.faults.failing", scenario, manners, str(folder), str(step)]
    env = {**os.environ, "LD_PRELOAD": str(library), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, Any]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("scenario", WRITING)
def test_a_file_is_as_before_or_as_after(library: Path, tmp_path: Path, scenario: str) -> None:
    found = failing(library, tmp_path, scenario, "fails,short,killed,torn")
    for manner, one in found.items():
        assert one["wrong"] == [], manner
        assert one["calls"], manner


@pytest.mark.parametrize("scenario", KEEPING)
def test_what_cannot_be_kept_changes_no_answer(library: Path, tmp_path: Path, scenario: str) -> None:
    found = failing(library, tmp_path, scenario, "fails,killed,unopened", 1 if EVERY else KEEPING[scenario])
    for manner, one in found.items():
        assert one["wrong"] == [], manner
        assert one["calls"] or manner == "unopened", manner


@pytest.mark.parametrize("scenario", WATCHING)
def test_a_session_is_followed_without_being_told_of_changes(
    library: Path, tmp_path: Path, scenario: str
) -> None:
    found = failing(library, tmp_path, scenario, "unwatched")
    assert found["unwatched"] == {"calls": {"inotify": 2}, "wrong": []}


@pytest.mark.parametrize("scenario", WATCHING)
def test_following_a_session_works_or_says_why_not(library: Path, tmp_path: Path, scenario: str) -> None:
    found = failing(library, tmp_path, scenario, "fails", 1 if EVERY else WATCHING[scenario])
    assert found["fails"]["wrong"] == []
    assert found["fails"]["calls"]


@pytest.mark.parametrize("scenario", DATASET)
def test_a_dataset_is_as_before_or_as_after(library: Path, tmp_path: Path, scenario: str) -> None:
    found = failing(library, tmp_path, scenario, "fails,killed", 1 if EVERY else DATASET[scenario])
    for manner, one in found.items():
        assert one["wrong"] == [], manner
        assert one["calls"], manner


@pytest.mark.parametrize("scenario", ["PlainWriting", "HastyRecording"])
def test_a_file_that_is_not_written_so_is_found(library: Path, tmp_path: Path, scenario: str) -> None:
    """A control."""
    found = failing(library, tmp_path, scenario, "fails,killed,torn")
    assert all(one["wrong"] for one in found.values()), found
