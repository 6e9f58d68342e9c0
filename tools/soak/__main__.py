"""``make soak``: long runs under load on loopback, written to ``docs/benchmarks-soak.md``."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from tools.soak import directory, streams
from tools.soak.samples import HEAD, Sampler, row

PAGE: Final = Path("docs") / "benchmarks-soak.md"
SAMPLES: Final = 10
_PORT: Final = re.compile(r"(?:OPENAI_BASE_URL=|events on |OTLP/HTTP on )http://127\.0\.0\.1:(\d+)")


def main() -> int:
    """Run the parts that are named, all of them by default."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help=", ".join(PARTS))
    parser.add_argument("--minutes", type=float, default=10.0, help="of each part")
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--out", type=Path, help=f"where the tables go; {PAGE} if all parts ran")
    args = parser.parse_args()
    # As Ctrl-C does: what was started is ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    # A shell's background job begins with SIGINT ignored, and so would the commands, which end by it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    names = args.parts or list(PARTS)
    if unknown := [name for name in names if name not in PARTS]:
        parser.error(f"unknown: {', '.join(unknown)}")
    text = "\n".join(_part(name, args.minutes * 60, args.streams) for name in names)
    out = args.out or (PAGE if len(names) == len(PARTS) else None)
    if out is not None:
        out.write_text(_page(text))
    return 0


def _part(name: str, seconds: float, count: int) -> str:
    folder = Path(tempfile.mkdtemp(prefix="ctxctl-soak-"))
    try:
        lines = PARTS[name](folder, seconds, count)
    finally:
        shutil.rmtree(folder)
    print("\n".join(lines), flush=True)
    return "\n".join(lines) + "\n"


def proxy(folder: Path, seconds: float, count: int) -> list[str]:
    """Streams through the recording proxy."""

    async def run() -> list[str]:
        server = await asyncio.start_server(streams.stand_in, "127.0.0.1", 0, backlog=4096)
        upstream = f"openai=http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with server:
            return await _under_load(
                ["record", "--proxy", "--upstream", upstream, "-o", str(folder / "run.jsonl")],
                streams.client, count, seconds, folder / "run.jsonl", '"ctxctl.usage.reported"',
            )  # fmt: skip

    head = f"## The recording proxy, {count:,} streams at once, {seconds / 60:g} minutes"
    said = (
        f"Each stream has {streams.CHUNKS} chunks, one every {streams.EVERY:g} s; lag is from the provider's "
        "write to the program's read."
    )
    return [head, "", said, "", *asyncio.run(run())]


def receiver(folder: Path, seconds: float, count: int) -> list[str]:
    """Senders to the receiver of events."""
    out = folder / "run.jsonl"
    command = ["record", "--events", "--port", "0", "-o", str(out)]
    lines = asyncio.run(_under_load(command, streams.sender, count, seconds, out, '"context.item.added"'))
    head = f"## The receiver of events, {count:,} senders at once, {seconds / 60:g} minutes"
    said = (
        f"Each sender posts an event every {streams.EVERY:g} s; lag is from the post to its acknowledgement."
    )
    return [head, "", said, "", *lines]


def otlp(folder: Path, seconds: float, count: int) -> list[str]:
    """Programs that export spans."""
    out = folder / "run.jsonl"
    command = ["record", "--otlp", "--port", "0", "-o", str(out)]
    lines = asyncio.run(
        _under_load(command, streams.exporter, count, seconds, out, '"ctxctl.usage.reported"')
    )
    head = f"## The receiver of OTLP, {count:,} exporters at once, {seconds / 60:g} minutes"
    said = (
        f"Each program exports the span of a call every {streams.EXPORTS_EVERY:g} s; lag is from the export "
        "to its acknowledgement."
    )
    return [head, "", said, "", *lines]


async def _under_load(
    command: list[str], program: streams.Program, count: int, seconds: float, out: Path, counted: str
) -> list[str]:  # fmt: skip
    """Start the recorder, load it, and compare what was answered with what is in its file."""
    with _ctxctl(command, out.parent) as (process, told):
        port = await asyncio.to_thread(_port, told)
        sampler = Sampler(process.pid)
        sampler.take()
        running = asyncio.ensure_future(streams.load(program, port, count, seconds, sampler))
        while not running.done():
            await asyncio.wait([running], timeout=seconds / SAMPLES)
            sampler.take()
        broken = await running
        await asyncio.sleep(2)
        sampler.take()
    done = sum(sample.done for sample in sampler.samples)
    written = sum(counted in line for line in out.open())
    print(f"{done:,} answered, {written:,} recorded; the command says of it:", flush=True)
    while not told.empty():
        print(f"  {told.get()[1].rstrip()}", flush=True)
    table = [HEAD, *(row(sample) for sample in sampler.samples)]
    return [*table, "", f"{done:,} were answered, {written:,} are in the trace, {broken:,} broke off."]


def watch(folder: Path, seconds: float, _count: int) -> list[str]:
    """A directory of sessions, some of them live."""
    sessions = folder / "sessions"
    directory.make(sessions)
    with _ctxctl(["watch", "--json", str(sessions)], folder, output=subprocess.PIPE) as (process, told):
        sampler = Sampler(process.pid)
        writers, end = directory.Writers(sessions), time.monotonic() + seconds
        # The first reading of the folder is over when the newest session was told of.
        next(_lags(told, 60.0), None)
        sampler.take()
        due = time.monotonic() + seconds / SAMPLES
        while (now := time.monotonic()) < end:
            writers.write()
            if lags := list(_lags(told, 0.5)):
                # The others were written while another session was followed.
                sampler.note(min(lags))
                sampler.did()
            if now >= due:
                sampler.take()
                due += seconds / SAMPLES
    head = (
        f"## `watch` of a directory of {directory.SESSIONS:,} sessions, {directory.LIVE} live, "
        f"{seconds / 60:g} minutes"
    )
    said = (
        "Twice a second another session gets a turn, and the newest session is followed for a while. Done "
        "counts how often a turn was reported; lag is from the write of the newest of them to its line."
    )
    return [head, "", said, "", HEAD, *(row(sample) for sample in sampler.samples)]


def _lags(told: queue.Queue[tuple[float, str]], seconds: float) -> Iterator[float]:
    """The lags of the turns that are told within some seconds."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        try:
            when, line = told.get(timeout=left)
        except queue.Empty:
            return
        found = json.loads(line) if line.startswith("{") else {}
        title = str(found.get("title") or "")
        # The turns that each session began with were not written while anybody looked.
        if found.get("type") == "turn" and title.startswith("at ") and int(title.split()[3]) > 1:
            yield when - float(title.split()[1])


@contextmanager
def _ctxctl(
    arguments: list[str], folder: Path, output: int = subprocess.DEVNULL
) -> Iterator[tuple[subprocess.Popen[str], queue.Queue[tuple[float, str]]]]:
    """A running command, and its lines with the times at which they came."""
    environment = {**os.environ, "CTXCTL_CACHE_DIR": str(folder / "cache")}
    process = subprocess.Popen(
        [sys.executable, "-m", "ctxctl", *arguments], stdin=subprocess.DEVNULL, stdout=output,
        stderr=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip
    told: queue.Queue[tuple[float, str]] = queue.Queue()
    for stream in filter(None, (process.stdout, process.stderr)):
        threading.Thread(target=_read, args=(stream, told), daemon=True).start()
    try:
        yield process, told
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=120)


def _read(stream: IO[str], told: queue.Queue[tuple[float, str]]) -> None:
    for line in stream:
        told.put((time.monotonic(), line))


def _port(told: queue.Queue[tuple[float, str]]) -> int:
    while True:
        _, line = told.get(timeout=60)
        if (found := _PORT.search(line)) is not None:
            return int(found.group(1))


def _page(tables: str) -> str:
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}, {platform.system()}"
    return (
        "# Under load for minutes\n\n"
        "Do descriptors, memory and lag stay flat? Written by `make soak` on "
        f"{time.strftime('%Y-%m-%d')}. The command, the\n"
        "stand-in for the provider and all programs share one machine\n"
        f"({machine}). Descriptors, memory and CPU are of the command and its\n"
        "children; the last line of a table is two seconds after the load.\n\n" + tables
    )


PARTS: Final[dict[str, Callable[[Path, float, int], list[str]]]] = {
    "proxy": proxy,
    "receiver": receiver,
    "otlp": otlp,
    "watch": watch,
}

if __name__ == "__main__":
    sys.exit(main())
