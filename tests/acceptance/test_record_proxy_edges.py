"""What the relay does not pass on, servers it cannot reach, and how much it copies."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ctxctl.errors import UsageError
from ctxctl.record.options import Options
from ctxctl.record.proxy import server, writer_client
from ctxctl.record.proxy.server import Proxy
from ctxctl.record.proxy.upstreams import Upstream as Address
from ctxctl.record.proxy.upstreams import parsed
from ctxctl.record.proxy.writer_client import Totals, WriterClient
from tests.acceptance.wire_scenarios import ANSWER, END, JSON, body, post, reply
from tests.acceptance.wires import (
    Scenario,
    Side,
    Upstream,
    ask,
    close,
    opens,
    rest,
    send,
    until,
    until_size,
    waits,
    whole,
)

Make = Callable[..., Proxy]


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    made = Upstream()
    yield made
    made.close()


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Proxies that are stopped at the end."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    made: list[Proxy] = []

    def start(url: str, **more: object) -> Proxy:
        address = parsed(url)
        assert address is not None
        made.append(Proxy([address], **more))  # type: ignore[arg-type]
        return made[-1]

    yield start
    for proxy in made:
        proxy.stop()


def port_of(proxy: Proxy) -> int:
    return next(iter(proxy.listeners.values())).port


REFUSED = [
    (b"CONNECT api.openai.com:443 HTTP/1.1\r\nHost: {host}\r\n\r\n", 405),
    (b"GET http://example.com/ HTTP/1.1\r\nHost: {host}\r\n\r\n", 421),
    (post(body()).replace(b"{host}", b"rebind.test:80"), 421),
    (post(body()).replace(b"{host}", b"127.0.0.1"), 421),
    (post(body()).replace(b"Host: {host}\r\n", b""), 421),
    (post(body()).replace(b"{host}", b"{host}\r\nHost: {host}"), 400),
    (post(body(), b"Origin: http://127.0.0.1"), 403),
    (post(body(), b"Origin: null"), 403),
    (post(body(), b"Sec-Fetch-Site: cross-site"), 403),
    (post(body(), b"Transfer-Encoding: chunked"), 400),
    (post(body(), b"Content-Length: 3"), 400),
    (post(body(), b"X: a\r\n folded"), 400),
    (post(body()).replace(b"HTTP/1.1", b"HTTP/3"), 400),
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\nHost: {host}\r\nX: " + b"x" * (1 << 20) + b"\r\n", 400),
]


@pytest.mark.parametrize(("data", "status"), REFUSED)
def test_what_no_program_sends_to_its_api_is_not_passed_on(
    make: Make, upstream: Upstream, data: bytes, status: int
) -> None:
    proxy = make(upstream.url)
    got = ask(port_of(proxy), data)
    assert got.startswith(b"HTTP/1.1 %d " % status), got
    assert b"Access-Control" not in got
    assert upstream.calm()


def test_a_chunk_that_is_none_is_not_passed_on(make: Make, upstream: Upstream) -> None:
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\n"
    steps = [
        send(head + b"5\r\nhello\r\n"),
        waits("hello"),
        send(b"0 5\r\nGET /admin HTTP/1.1\r\n\r\n"),
        rest,
    ]
    smuggled = Scenario("", steps, [until(b"hello"), opens("hello"), rest])
    client, served = upstream.play(smuggled, port_of(make(upstream.url)))
    assert client.got.startswith(b"HTTP/1.1 400 ")
    assert b"admin" not in served.got


def test_a_second_request_that_is_none_ends_the_connection_without_an_answer_of_ours(
    make: Make, upstream: Upstream
) -> None:
    steps = [send(post(body())), waits("asked"), send(b"no request\r\n\r\n"), rest]
    both = Scenario("", steps, [until(END), opens("asked"), rest])
    client, served = upstream.play(both, port_of(make(upstream.url)))
    assert (bytes(client.got), client.end) == (b"", "reset")
    assert served.end == "reset"
    assert b"no request" not in served.got


@pytest.mark.parametrize("url", ["http://127.0.0.1:{port}", "http://no-such-host.invalid"])
def test_a_server_that_cannot_be_reached_is_said(make: Make, url: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    proxy = make(url.format(port=port))
    got = ask(port_of(proxy), post(body()))
    assert got.startswith(b"HTTP/1.1 502 ")
    told = json.loads(got.partition(b"\r\n\r\n")[2])["error"]["message"]
    origin = url.format(port=port)
    assert told.startswith(f"ctxctl: cannot reach {origin}: ")
    assert list(proxy.unreachable) == [origin]


def test_it_does_not_talk_to_itself(make: Make) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for host in ("127.0.0.1", "localhost", "[::1]"):
        with pytest.raises(UsageError) as found:
            make(f"http://{host}:{port}", port=port)
        assert found.value.slug == "proxy-loop"
    # By a name that only turns out to be this machine.
    proxy = make(f"http://127.1:{port}", port=port)
    assert ask(port_of(proxy), post(body())).startswith(b"HTTP/1.1 508 ")


def test_a_port_that_is_taken_is_said(make: Make, upstream: Upstream) -> None:
    with pytest.raises(UsageError) as found:
        make("https://api.openai.com", port=upstream.port)
    assert found.value.slug == "port-taken"


# -- TLS, and proxies of the network ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for `localhost`, and its key, in one file."""
    made = tmp_path_factory.mktemp("tls") / "both.pem"
    tool = shutil.which("openssl")
    assert tool is not None, "openssl makes the certificate of this test"
    subprocess.run(
        [
            tool,
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=DNS:localhost",
            "-keyout",
            made,
            "-out",
            f"{made}.crt",
        ],
        check=True,
        capture_output=True,
    )
    made.write_bytes(made.read_bytes() + Path(f"{made}.crt").read_bytes())
    return made


def wrapped(certificate: Path) -> Callable[[Side], None]:
    """The server's side goes on with TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    def step(side: Side) -> None:
        side.sock = context.wrap_socket(side.sock, server_side=True, suppress_ragged_eofs=True)

    return step


def test_over_tls(make: Make, upstream: Upstream, certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", f"{certificate}.crt")
    asked, answer = post(body("x" * 300_000)), reply(b"y" * 300_000, JSON)
    proxy = make(f"https://localhost:{upstream.port}")
    serve = [
        wrapped(certificate),
        until_size(len(asked.replace(b"{host}", b"localhost:00000"))),
        send(answer),
        close,
    ]
    client, served = upstream.play(Scenario("", [send(asked), rest], serve), port_of(proxy))
    assert bytes(client.got) == answer
    assert bytes(served.got) == asked.replace(b"{host}", f"localhost:{upstream.port}".encode())


def test_who_gives_up_is_gone_behind_tls_too(
    make: Make, upstream: Upstream, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", f"{certificate}.crt")
    proxy = make(f"https://localhost:{upstream.port}")
    gives_up = Scenario(
        "",
        [send(post(body())), waits("asked"), close],
        [wrapped(certificate), until(END), opens("asked"), rest],
    )
    _, served = upstream.play(gives_up, port_of(proxy))
    assert served.end in ("eof", "reset")


def test_a_certificate_that_nobody_vouches_for_is_refused(
    make: Make, upstream: Upstream, certificate: Path
) -> None:
    proxy = make(f"https://localhost:{upstream.port}")

    def shake(side: Side) -> None:
        with pytest.raises((ssl.SSLError, OSError)):
            wrapped(certificate)(side)

    client, served = upstream.play(Scenario("", [send(post(body())), rest], [shake]), port_of(proxy))
    assert client.got.startswith(b"HTTP/1.1 502 ")
    assert b"its certificate is not trusted" in client.got
    assert bytes(served.got) == b""


def test_by_the_networks_proxy(
    make: Make, upstream: Upstream, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", f"{certificate}.crt")
    monkeypatch.setenv("HTTPS_PROXY", f"http://me:word@127.0.0.1:{upstream.port}")
    proxy = make("https://localhost.example:8443")
    address = Address("https", "localhost.example", 8443)
    listener = proxy.listeners[address]
    # The certificate says `localhost`; who is asked for is checked as without a proxy, and fails.
    tunnel = [
        until(b"\r\n\r\n"),
        send(b"HTTP/1.1 200 Established\r\n\r\n"),
        lambda side: _shakes(side, certificate),
    ]
    client, served = upstream.play(Scenario("", [send(post(body())), rest], tunnel), listener.port)
    lines = served.got.split(b"\r\n")
    assert lines[0] == b"CONNECT localhost.example:8443 HTTP/1.1"
    assert b"Proxy-Authorization: Basic bWU6d29yZA==" in lines
    assert b"its certificate is not trusted" in client.got
    assert b"authorization" not in client.got.lower()


def _shakes(side: Side, certificate: Path) -> None:
    with pytest.raises((ssl.SSLError, OSError)):
        wrapped(certificate)(side)


def test_the_networks_proxy_tunnels(
    make: Make, upstream: Upstream, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", f"{certificate}.crt")
    monkeypatch.setattr(
        server,
        "network_proxy_of",
        lambda _: server.NetworkProxy(Address("http", "127.0.0.1", upstream.port), None),
    )
    proxy = make("https://localhost:8443")
    tunnel = [
        until(b"\r\n\r\n"),
        send(b"HTTP/1.1 200 Established\r\n\r\n"),
        wrapped(certificate),
        until(END),
        send(reply(ANSWER)),
        close,
    ]
    client, served = upstream.play(Scenario("", [send(post(body())), rest], tunnel), port_of(proxy))
    assert bytes(client.got) == reply(ANSWER)
    assert served.got.endswith(post(body()).replace(b"{host}", b"localhost:8443"))


def test_a_server_without_tls_is_asked_of_the_networks_proxy_by_its_whole_address(
    make: Make, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", upstream.url)
    proxy = make("http://gpu.example:8000")
    both = Scenario("", [send(post(body())), rest], [until(END), send(reply(ANSWER)), close])
    client, served = upstream.play(both, port_of(proxy))
    assert bytes(client.got) == reply(ANSWER)
    assert served.got.startswith(
        b"POST http://gpu.example:8000/v1/chat/completions HTTP/1.1\r\nHost: gpu.example:8000\r\n"
    )


# -- how much is copied -------------------------------------------------------------------------------------


def recorded(proxy: Proxy, scribe: WriterClient) -> Totals:
    proxy.stop()
    totals = scribe.finish(60.0)
    assert totals is not None
    return totals


def test_what_is_too_large_is_passed_on_whole_and_recorded_as_that(
    make: Make, upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CTXCTL_STATE_DIR", str(tmp_path))
    limit = 200_000
    monkeypatch.setattr(writer_client, "MAX_BODY", limit)
    code = f"import sys; sys.path[:] = {sys.path!r}\n"
    code += "import ctxctl.record.proxy.writer_client as c, ctxctl.record.exchange as e\n"
    code += f"c.MAX_BODY = e.MAX_BODY = {limit}\n"
    trace = tmp_path / "run.jsonl"
    scribe = WriterClient(Options(trace), code)
    proxy = make(upstream.url, copies=scribe.connection)
    asked, answer = post(body("a" * 3 * limit)), reply(b" " * 3 * limit + ANSWER, JSON)
    for request, reaction in ((asked, reply(ANSWER, JSON)), (post(body()), answer)):
        both = Scenario("", [send(request), rest], [whole(request), send(reaction), close])
        client, served = upstream.play(both, port_of(proxy))
        assert bytes(client.got) == reaction
        assert len(served.got) == len(request.replace(b"{host}", f"127.0.0.1:{upstream.port}".encode()))
    totals = recorded(proxy, scribe)
    assert (totals.recorded, totals.dropped) == (2, 0)
    text = trace.read_text()
    assert f"a request of {len(body('a' * 3 * limit)):,} bytes, more than the {limit:,}" in text
    assert "aaaaaaaa" not in text
    assert "Blue light scatters." in text
    events = [json.loads(line) for line in text.splitlines()]
    assert any(event["event_type"] == "ctxctl.step.failed" for event in events)


def test_what_the_recorder_does_not_take_is_counted_and_nothing_waits(
    make: Make, upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CTXCTL_STATE_DIR", str(tmp_path))
    monkeypatch.setattr(writer_client, "BACKLOG", 300_000)
    scribe = WriterClient(Options(tmp_path / "run.jsonl"))
    proxy = make(upstream.url, copies=scribe.connection)
    os.kill(scribe.pid, signal.SIGSTOP)
    try:
        asked = post(body("b" * 200_000))
        for _ in range(6):
            both = Scenario("", [send(asked), rest], [whole(asked), send(reply(ANSWER, JSON)), close])
            client, _ = upstream.play(both, port_of(proxy))
            assert bytes(client.got) == reply(ANSWER, JSON)
    finally:
        os.kill(scribe.pid, signal.SIGCONT)
    totals = recorded(proxy, scribe)
    lost = proxy.copies.lost
    assert 0 < lost < 6
    assert totals.kept
    assert totals.recorded >= 6 - lost
