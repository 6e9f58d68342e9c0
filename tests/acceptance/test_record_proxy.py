"""Between a program and its API is a relay that neither notices, whatever becomes of the recorder."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import pytest

from ctxctl.record.options import Options
from ctxctl.record.proxy.server import Proxy
from ctxctl.record.proxy.upstreams import parsed
from ctxctl.record.proxy.writer_client import WriterClient
from tests.acceptance.wire_scenarios import SCENARIOS
from tests.acceptance.wires import Scenario, Upstream

_FULL = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1500, 1500))\n"
_READ_ONLY = """
import errno, os
def write(descriptor, data, real=os.write):
    if descriptor > 2:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))
    return real(descriptor, data)
os.write = write
"""


@dataclass
class Stand:
    """A server, and a proxy before it whose recorder is in some state."""

    state: str
    upstream: Upstream
    proxy: Proxy
    scribe: WriterClient
    trace: Path
    asked: int = 0
    """Requests to a model that went through it."""

    @property
    def port(self) -> int:
        return next(iter(self.proxy.listeners.values())).port


@pytest.fixture(scope="module", params=["healthy", "disk full", "read-only", "killed", "stalled"])
def stand(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    state = request.param
    folder = tmp_path_factory.mktemp("proxy")
    trace, upstream = folder / "run.jsonl", Upstream()
    before = os.environ.get("CTXCTL_STATE_DIR")
    os.environ["CTXCTL_STATE_DIR"] = str(folder)
    try:
        scribe = WriterClient(Options(trace), {"disk full": _FULL, "read-only": _READ_ONLY}.get(state, ""))
        scribe.ready()
    finally:
        if before is None:
            del os.environ["CTXCTL_STATE_DIR"]
        else:
            os.environ["CTXCTL_STATE_DIR"] = before
    server = parsed(upstream.url)
    assert server is not None
    proxy = Proxy([server], copies=scribe.connection)
    made = Stand(state, upstream, proxy, scribe, trace)
    if state == "killed":
        os.kill(scribe.pid, signal.SIGKILL)
    elif state == "stalled":
        os.kill(scribe.pid, signal.SIGSTOP)
    yield made
    if state == "stalled":
        os.kill(scribe.pid, signal.SIGCONT)
    proxy.stop()
    upstream.close()
    _settle(made)


def _settle(stand: Stand) -> None:
    """What the recorder's books say is what its state lets expect."""
    books = stand.scribe.finish(120.0)
    assert books is not None
    assert stand.proxy.busy == 0
    assert sum(listener.faults for listener in stand.proxy.listeners.values()) == 0
    if stand.state == "killed":
        assert not books.kept
        return
    assert books.kept
    if stand.state in ("disk full", "read-only"):
        assert books.dropped > 0 or not stand.asked
        return
    assert books.dropped == 0
    assert books.written == len(stand.trace.read_bytes().splitlines())
    assert stand.proxy.copies.lost == 0
    assert books.recorded == stand.asked


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_both_sides_see_what_they_would_without_it(stand: Stand, scenario: Scenario) -> None:
    client, server = stand.upstream.play(scenario, stand.upstream.port)
    stand.asked += scenario.asks
    client_behind, server_behind = stand.upstream.play(scenario, stand.port)
    if scenario.name == "empty lines before a request":
        server.got = server.got.lstrip(b"\r\n")  # which mean nothing, and end at the first server
    for bare, behind in ((client, client_behind), (server, server_behind)):
        size = min(len(bare.got), len(behind.got)) if scenario.loose else None
        assert sha256(behind.got[:size]).digest() == sha256(bare.got[:size]).digest(), behind.got[:500]
        assert behind.end == bare.end


def test_there_are_forty_scenarios_of_each_kind() -> None:
    assert len({scenario.name for scenario in SCENARIOS}) == len(SCENARIOS) >= 40
