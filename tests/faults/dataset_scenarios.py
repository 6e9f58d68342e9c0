"""Commands on a dataset of many captures: after each failing call each is there as before or as after."""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
from hashlib import sha256
from pathlib import Path
from typing import ClassVar

from tests.faults.command_scenarios import CLAUDE, check_message
from tests.faults.failing import Report, Tell, tried

_USED = ("add", "upkeep", "captures", "opening", "parquet", "store", "on_ray", "duck", "comparing")
Rows = dict[str, list[str]]
"""By capture, what a dataset has of it."""
_STATES: dict[type, tuple[Rows, Rows]] = {}


class DatasetCommand:
    """A command that makes or changes a dataset.

    What it says where it fails names the dataset, or the file of it, and what the system said.  A second run
    mends whatever the first one left.
    """

    arguments: ClassVar[tuple[str, ...]] = ()

    def prepare(self, folder: Path) -> None:
        """Lay out the captures, and a dataset where there is one before."""
        (folder / "captures").mkdir()
        shutil.copyfile(CLAUDE, folder / "captures" / "one.jsonl")

    def act(self, folder: Path, tell: Tell) -> int:
        from ctxctl.cli.main import run

        os.environ["CTXCTL_CACHE"] = "off"
        return run(self.arguments)

    def warm(self, folder: Path, tell: Tell) -> None:
        """Load what is needed; the store itself begins threads, which no fork outlives."""
        from ctxctl.cli.main import run

        for name in ("obstore.store", "pyarrow.parquet", *(f"ctxctl.dataset.{one}" for one in _USED)):
            importlib.import_module(name)
        os.environ["CTXCTL_CACHE"] = "off"
        run(["replay", "captures/one.jsonl"])

    def states(self) -> tuple[Rows, Rows]:
        """What the dataset holds before, and after where nothing fails."""
        if type(self) not in _STATES:
            import tempfile

            with tempfile.TemporaryDirectory() as name:
                self.prepare(Path(name))
                before = held(Path(name))
                report = tried(self, Path(name), None)
                assert report.code == 0, report.said
                _STATES[type(self)] = before, held(Path(name))
        return _STATES[type(self)]

    def check(self, folder: Path, report: Report) -> None:
        before, after = self.states()
        found = held(folder)
        for name in {*before, *after, *found}:
            assert found.get(name) in (before.get(name), after.get(name)), (name, found)
        assert "Traceback" not in report.said, report.said
        if report.code == 0 and report.why in report.said:
            told = [line for line in report.said.splitlines() if report.why in line]
            assert len(told) == 1, told
            assert re.match(r"ctxctl: not read: \S*captures|ctxctl: \S*store", told[0]), told
        elif report.code == 0:
            assert found == after, report.printed
        elif report.code is not None:
            check_message(report, {"store", "captures", "one.jsonl", "two.jsonl", self.key_of(folder)})
        again = tried(self, folder, None)
        assert again.code == 0, again.said
        assert held(folder) == after, (held(folder), after)

    def key_of(self, folder: Path) -> str:
        """The name of the file that holds the dataset's key."""
        kept = folder / "home" / "config" / "ctxctl" / "fleet-keys"
        return next((one.name for one in kept.iterdir()), "fleet-keys") if kept.is_dir() else "fleet-keys"


def held(folder: Path) -> Rows:
    """The rows of each capture in a dataset; each file that counts is there, as its commit has it.

    Nothing where there is no dataset, or a capture could not be read.
    """
    report = tried(_Held(), folder, None)
    assert report.code == 0, report.said
    found: Rows = json.loads(report.told)
    return found


class _Held:
    """Tells what a dataset holds, from a process of its own: its store begins threads."""

    def prepare(self, folder: Path) -> None:
        """It only looks."""

    def check(self, folder: Path, report: Report) -> None:
        """There is nothing to hold it to."""

    def act(self, folder: Path, tell: Tell) -> int:
        from ctxctl.dataset.known import read_file
        from ctxctl.dataset.log import live
        from ctxctl.errors import UnreadableError

        try:
            snapshot = live("store")
        except UnreadableError as error:
            if error.slug != "no-dataset":
                raise
            tell(b"{}")
            return 0
        rows: list[tuple[int, str]] = []
        paths: dict[int, str] = {}
        for path, file in snapshot.files.items():
            data = Path("store", path).read_bytes()
            assert (len(data), sha256(data).hexdigest()) == (file.bytes, file.sha256), path
            for row in read_file(snapshot, file).to_pylist():
                if file.table == "sources":
                    paths[row["source"]] = Path(row["path"]).name if row["failed"] is None else ""
                told = {name: row[name] for name in _TOLD & row.keys()}
                rows.append((row["source"], json.dumps([file.table, told], sort_keys=True)))
        tell(json.dumps({
            name: sorted(told for source, told in rows if paths[source] == name)
            for name in sorted({*paths.values()} - {""})
        }).encode())  # fmt: skip
        return 0


_TOLD = {"step", "kind", "name", "tokens", "reported_input"}
"""Columns that do not differ from folder to folder."""


class FleetAdd(DatasetCommand):
    """A first capture into a dataset that there is not yet."""

    arguments = ("fleet", "add", "captures", "--to", "store", "--jobs", "1", "--host", "h")


class FleetAddChanged(FleetAdd):
    """A capture that has grown, and another one: rows are replaced, and files with them."""

    def prepare(self, folder: Path) -> None:
        super().prepare(folder)
        whole = CLAUDE.read_bytes().splitlines(keepends=True)
        (folder / "captures" / "one.jsonl").write_bytes(b"".join(whole[: len(whole) // 2]))
        made = tried(self, folder, None)
        assert made.code == 0, made.said
        (folder / "captures" / "one.jsonl").write_bytes(b"".join(whole))
        shutil.copyfile(CLAUDE, folder / "captures" / "two.jsonl")


class FleetForget(FleetAdd):
    """Sessions that are removed with every file that holds them."""

    arguments = ("fleet", "forget", "--before", "2100-01-01", "--dataset", "store")

    def prepare(self, folder: Path) -> None:
        super().prepare(folder)
        made = tried(FleetAdd(), folder, None)
        assert made.code == 0, made.said


class FleetCompact(FleetForget):
    """Small files that are joined: the rows stay what they are."""

    arguments = ("fleet", "compact", "--dataset", "store")

    def prepare(self, folder: Path) -> None:
        super().prepare(folder)
        shutil.copyfile(CLAUDE, folder / "captures" / "two.jsonl")
        made = tried(FleetAdd(), folder, None)
        assert made.code == 0, made.said
