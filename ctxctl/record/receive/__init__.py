"""`ctxctl record --events` and `--otlp`: receives events and OTLP on a loopback port."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from ctxctl.errors import UnavailableError, UsageError
from ctxctl.wording import plural

if TYPE_CHECKING:
    import socket
    from collections.abc import Awaitable, Callable

    from ctxctl.record.options import Options
    from ctxctl.record.receive.otlp import SpanBuffer
    from ctxctl.record.receive.server import ReceiverServer, Route
    from ctxctl.record.recorder import Recorder


_LOOK: Final = 0.25
"""Seconds between two checks for spans that have waited long enough."""
_METRICS: Final = "metrics were sent as well; they are taken and not recorded"


def serve(options: Options, port: int, *, otlp: bool, events: bool) -> int:
    """Receive until a signal asks for the end; returns the exit code.

    Args:
        options: Where to record, and how.
        port: The port on 127.0.0.1 and ::1; 0: any free one.
        otlp: Whether to take OTLP: `/v1/traces`, `/v1/logs`, `/v1/metrics`.
        events: Whether to take `/v1/events`.

    Raises:
        UsageError: `port-taken`; as `Options.recorder`.
        UnreadableError: As `Options.recorder`.
        UnavailableError: `needs-serve`, `needs-otlp`.
    """
    from ctxctl.record.end_signals import EndSignals
    from ctxctl.record.guard import new_event_loop

    _available(otlp=otlp)
    sockets = listening(port)
    try:
        recorder = options.recorder()
    except BaseException:
        for one in sockets:
            one.close()
        raise

    async def until(ending: EndSignals) -> None:
        asked = asyncio.Event()
        asyncio.get_running_loop().add_reader(ending.fd, asked.set)
        await asked.wait()

    with EndSignals() as ending, asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(receive(options, recorder, sockets, otlp=otlp, events=events, until=lambda: until(ending)))
    return 0


def listening(port: int) -> list[socket.socket]:
    """Return sockets that listen on a loopback port; raises UsageError (`port-taken`)."""
    from ctxctl.record.guard import loopback

    try:
        return loopback(port)
    except OSError as error:
        raise UsageError(
            "port-taken", f"cannot listen on 127.0.0.1:{port}: {error.strerror}",
            hint="another `ctxctl record` or a collector may listen there: give another one with --port; "
            "0 takes any that is free",
        ) from None  # fmt: skip


async def receive(
    options: Options, recorder: Recorder, sockets: list[socket.socket], *, otlp: bool, events: bool,
    until: Callable[[], Awaitable[None]], ready: Callable[[int], None] | None = None,
) -> None:  # fmt: skip
    """Receive as `serve` does, until `until()` is over; `ready` gets the port."""
    from ctxctl.record.receive.server import ReceiverServer

    def report(line: str) -> None:
        options.say(f"ctxctl: {line}")

    spans: SpanBuffer | None = None
    routes: dict[str, Route] = {}
    if events:
        routes.update(_events(recorder))
    server = ReceiverServer(routes, report)
    if otlp:
        spans = _otlp(recorder, routes, server)
    await server.open(sockets)
    options.begin(*_where(server.port, otlp=otlp, events=events))
    if ready is not None:
        ready(server.port)
    looking = asyncio.ensure_future(_hand_on_due(server, spans)) if spans is not None else None
    try:
        await until()
    finally:
        if looking is not None:
            looking.cancel()
            with suppress(asyncio.CancelledError):
                await looking
        await server.close()
        if spans is not None:
            spans.due(everything=True)
        options.finish(recorder, *_summary(spans))


def _available(*, otlp: bool) -> None:
    try:
        import aiohttp  # noqa: F401
    except ImportError:
        raise UnavailableError(
            "needs-serve", "receiving needs aiohttp", hint="pip install 'ctxctl[serve]'"
        ) from None
    if otlp:
        from ctxctl.record.receive.otlp import available

        available()


def _events(recorder: Recorder) -> dict[str, Route]:
    from ctxctl.record.receive.events import MEDIA, EventsEndpoint
    from ctxctl.record.receive.server import Route

    taken = EventsEndpoint(recorder)
    return {"/v1/events": Route(taken.take, MEDIA, wait=taken.wait)}


def _otlp(recorder: Recorder, routes: dict[str, Route], server: ReceiverServer) -> SpanBuffer:
    from ctxctl.record.receive import otlp
    from ctxctl.record.receive.otlp import SpanBuffer
    from ctxctl.record.receive.replies import Reply, WriteGuard, whole_seconds
    from ctxctl.record.receive.server import Route

    spans, guard = SpanBuffer(recorder), WriteGuard(recorder._core.journal)

    def metrics(body: bytes, media: str) -> Reply:
        server.report_once(_METRICS)
        return otlp.ignored(body, media)

    def wait() -> int | None:
        # Spans that are held can wait for the disk; more are taken once they are written.
        return whole_seconds(guard.wait()) if guard.wait() and spans.is_full() else None

    for signal in ("traces", "logs"):
        routes[f"/v1/{signal}"] = Route(
            otlp.ExportEndpoint(signal, spans).take, otlp.MEDIA, otlp.refuse, wait
        )
    routes["/v1/metrics"] = Route(metrics, otlp.MEDIA, otlp.refuse)
    return spans


async def _hand_on_due(server: ReceiverServer, spans: SpanBuffer) -> None:
    while True:
        await asyncio.sleep(_LOOK)
        try:
            await server.run_in_worker(spans.due)
        except Exception as error:  # later spans must still be written
            server.report_once(f"a fault of ctxctl: {type(error).__name__}")


def _where(port: int, *, otlp: bool, events: bool) -> list[str]:
    address = f"http://127.0.0.1:{port}"
    lines = []
    if otlp:
        lines.append(
            f"OTLP/HTTP on {address}: OTEL_EXPORTER_OTLP_ENDPOINT={address} "
            "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf"
        )
    if events:
        lines.append(f"events on {address}/v1/events (POST, NDJSON)")
    return lines


def _summary(spans: SpanBuffer | None) -> list[str]:
    if spans is None:
        return []
    calls = plural(spans.calls, "model call")
    lines = [f"{calls}; spans and log records of other things, not recorded: {spans.others:,}"]
    if spans.late:
        lines.append(f"spans and log records left out, as they came too late or twice: {spans.late:,}")
    return lines
