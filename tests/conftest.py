"""What every test gets: a machine of its own (no cache, settings, colours or terminal size of the user's)."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import settings

from tests import timing
from tests.homes import Homes

ROOT = Path(__file__).resolve().parent.parent

MACHINE = dict(os.environ)
"""The environment as the test run found it, for the few tests that need the real one (a package registry)."""

GARBAGE = (500_000, 20, 50)
"""Thresholds of garbage collection, five times those of a `ctxctl` process, as it took much of a run."""

OTHERS_TIME = ("acceptance", "faults", "tui", "unit/fleet", "unit/record", "unit/session")
"""Folders whose tests wait for processes, terminals and threads.

A machine that does something else for a while can make one of these fail: it runs once more, and the run's
summary lists it.
"""

NEED_CORPUS = "set CTXCTL_CORPUS to a directory of captures (make corpus CORPUS=DIR)"

if os.environ.get("CTXCTL_CORPUS"):
    # Some tests list their captures when they are collected: absolute before any of them is imported.
    os.environ["CTXCTL_CORPUS"] = str((ROOT / os.environ["CTXCTL_CORPUS"]).resolve())

settings.register_profile("suite", deadline=None, derandomize=True, print_blob=True, max_examples=50)
# What CI runs.
settings.register_profile("thorough", deadline=None, derandomize=True, print_blob=True, max_examples=100)
settings.register_profile("explore", deadline=None, max_examples=2000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))


def pytest_configure(config: pytest.Config) -> None:
    """Let a run say first how long it may take; and programs that tests start be ended by Ctrl-C.

    A shell lets what it starts in the background ignore that, and a program that ignores it goes on doing so.
    """
    timing.pytest_configure(config)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect tests, not garbage: there is next to none of it, and ever more to look through."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_report_header() -> str:
    """Say in the run's header whether the corpus tests run."""
    return f"corpus: {os.environ.get('CTXCTL_CORPUS') or 'none, ' + NEED_CORPUS}"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what uses the corpus, so that ``-m corpus`` finds it, and skip it where there is none."""
    # The environments of tests/frameworks are without it.
    again = config.pluginmanager.hasplugin("rerunfailures")

    @cache
    def of_file(path: Path) -> tuple[bool, bool]:
        waits = any(path.is_relative_to(ROOT / "tests" / folder) for folder in OTHERS_TIME)
        return again and waits, "corpus" in path.parts

    for item in items:
        flaky, corpus = of_file(item.path)
        if flaky:
            item.add_marker(pytest.mark.flaky(reruns=1))
        if corpus or "corpus" in getattr(item, "fixturenames", ()):
            item.add_marker("corpus")
        if item.get_closest_marker("corpus") and not os.environ.get("CTXCTL_CORPUS"):
            item.add_marker(pytest.mark.skip(reason=NEED_CORPUS))
    # Long ones first: none of them is left for one worker at the end, when the others have nothing to do.
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.fixture(scope="session")
def _machines(tmp_path_factory: pytest.TempPathFactory) -> Homes:
    return Homes(tmp_path_factory.mktemp("machines"))


@pytest.fixture(autouse=True)
def _own_machine(_machines: Homes, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith("CTXCTL_") and name not in {"CTXCTL_CORPUS", "CTXCTL_UPDATE_GOLDENS"}:
            monkeypatch.delenv(name)
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "PAGER", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    # A test of the search for settings unsets it.
    monkeypatch.setenv("CTXCTL_CONFIG", "off")
    home = _machines.home()
    monkeypatch.setenv("CTXCTL_CACHE_DIR", str(home / "cache" / "ctxctl"))
    for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "HOME"):
        monkeypatch.setenv(name, str(home if name == "HOME" else home / name.lower()))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("LINES", "40")
    monkeypatch.setenv("CTXCTL_PAGER", "")  # tests of the pager set it
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("TZ", "UTC")


@pytest.fixture
def one_cache(_own_machine: None, _machines: Homes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all processes of a test count into one cache: loading an encoding takes longer than the rest."""
    monkeypatch.setenv("CTXCTL_CACHE_DIR", str(_machines.folder / "cache" / "ctxctl"))


@pytest.fixture(autouse=True, scope="session")
def _heap() -> Iterator[None]:
    """Leave what was imported and collected out of every garbage collection: it is large, and it stays.

    What a command freezes is meant for a process of its own, which ends with it: here it is not frozen.
    """
    gc.collect()
    gc.freeze()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gc, "freeze", lambda: None)
        yield
    gc.unfreeze()


@pytest.fixture(autouse=True, scope="module")
def _thresholds() -> None:
    """Collect as rarely in each module, whatever a command of the one before has set."""
    gc.set_threshold(*GARBAGE)


@pytest.fixture(scope="session")
def machine() -> dict[str, str]:
    """Return the environment as it was before it was isolated."""
    return dict(MACHINE)


@pytest.fixture(scope="session")
def corpus() -> Path:
    """Return the directory of captures kept outside the repository; without one the test is skipped."""
    where = os.environ.get("CTXCTL_CORPUS")
    if not where:
        pytest.skip(NEED_CORPUS)
    path = Path(where)
    assert path.is_dir(), f"CTXCTL_CORPUS is not a directory: {path}"
    return path
