"""Five questions to a dataset of Claude Code's logs, against a plain reader (`raw_claude_code`)."""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")
pytest.importorskip("obstore")

from ctxctl.cli.main import run
from ctxctl.dataset import opening
from ctxctl.dataset.duck import Asked
from tests.corpus import raw_claude_code as raw

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
REAL = ("EntityProcess__agentv", "OpenAgentsInc__openagents", "entireio__cli", "marot__spotter")
"""Folders of logs that clients wrote as they stand; the others have been cut and trimmed to test readers."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the copies are, and nothing else."""
    return tmp_path_factory.mktemp("logs")


@pytest.fixture(scope="module")
def logs(corpus: Path, folder: Path) -> list[Path]:
    """Copies of the logs that are asked about."""
    home = corpus / "data" / "claude-code"
    found = sorted(path for name in REAL for path in (home / name).rglob("*.jsonl") if path.is_file())
    copied = []
    for log in raw.alone(found):
        if not log.name.startswith("agent-"):
            copy = folder / log.relative_to(home)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(log, copy)
            copied.append(copy)
    assert len(copied) >= 30
    return copied


@pytest.fixture(scope="module")
def asked(logs: list[Path], folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    assert logs
    place = tmp_path_factory.mktemp("fleet")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(place / "config"))
        assert run(["fleet", "add", str(folder), "--to", str(place / "dataset"), "-q"]) == 0
        with Asked(opening.opened(str(place / "dataset")).files) as opened:
            yield opened


@pytest.fixture(scope="module")
def requests(logs: list[Path]) -> list[raw.Request]:
    found = raw.requests(logs)
    assert len(found) > 1000
    return found


def grouped(
    requests: Iterable[raw.Request], key: Callable[[raw.Request], Any]
) -> dict[Any, list[raw.Request]]:
    groups = defaultdict(list)
    for one in requests:
        groups[key(one)].append(one)
    return groups


def answers(asked: Asked, name: str, *columns: str) -> list[tuple[Any, ...]]:
    answer = asked.ask(name, {"limit": 100_000})
    return [tuple(row[answer.columns.index(column)] for column in columns) for row in answer.rows]


def test_cache_rate(asked: Asked, requests: list[raw.Request]) -> None:
    expected = {
        version: (len(some), sum(one.sent for one in some), sum(one.read for one in some))
        for version, some in grouped(requests, version_of(requests)).items()
    }
    found = answers(asked, "cache-rate", "client_version", "requests", "sent", "read")
    assert {version: tuple(rest) for version, *rest in found} == expected


def version_of(requests: list[raw.Request]) -> Callable[[raw.Request], Any]:
    """A session's version is that of its log's first request."""
    first = {log: some[0].version for log, some in grouped(requests, lambda one: one.log).items()}
    return lambda one: first[one.log]


def project_of(requests: list[raw.Request]) -> Callable[[raw.Request], Any]:
    """A session's project is the directory that it began in."""
    first = {one.log: raw.began_in(Path(one.log)) for one in requests}
    return lambda one: first[one.log]


def test_p95_window(asked: Asked, requests: list[raw.Request]) -> None:
    expected = {}
    for project, some in grouped(requests, project_of(requests)).items():
        sizes = [one.sent for one in some]
        expected[project] = (len(sizes), raw.nearest_rank(sizes, 50), raw.nearest_rank(sizes, 95), max(sizes))
    found = answers(asked, "p95-window", "project", "requests", "p50", "p95", "largest")
    assert {project: tuple(rest) for project, *rest in found} == expected


def test_sub_agents(asked: Asked, requests: list[raw.Request]) -> None:
    expected = {
        project: (len(some), sum(one.side for one in some))
        for project, some in grouped(requests, project_of(requests)).items()
    }
    assert sum(side for _, side in expected.values()) > 0
    found = answers(asked, "sub-agents", "project", "requests", "sub_requests")
    assert {project: tuple(rest) for project, *rest in found} == expected


def week_of(time: str) -> str:
    day = datetime.fromisoformat(time).date()
    return str(day - timedelta(days=day.weekday()))


def test_cost(asked: Asked, requests: list[raw.Request]) -> None:
    project = project_of(requests)
    expected = {
        key: (len(some), sum(one.sent for one in some), sum(one.output for one in some))
        for key, some in grouped(requests, lambda one: (project(one), one.model, week_of(one.time))).items()
    }
    found = answers(asked, "cost", "project", "model", "week", "requests", "sent", "output")
    assert {tuple(row[:3]): tuple(row[3:]) for row in found} == expected


def test_first_request(asked: Asked, logs: list[Path], requests: list[raw.Request]) -> None:
    version, counted = version_of(requests), {(one.log, one.id) for one in requests}
    expected = defaultdict(list)
    for log in logs:
        first = next((one for one in raw.requests_of(log) if not one.side), None)
        if first is not None and (first.log, first.id) in counted:
            expected[version(first)].append(first.sent)
    found = answers(asked, "first-request", "client_version", "sessions", "p50", "least", "largest")
    assert {name: tuple(rest) for name, *rest in found} == {
        name: (len(sizes), raw.nearest_rank(sizes, 50), min(sizes), max(sizes))
        for name, sizes in expected.items()
    }
