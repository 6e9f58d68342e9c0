"""Who may talk to a receiver, and how much it takes; over raw sockets, as no client would send it."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import resource
import socket
import time
import zlib
from contextlib import ExitStack
from pathlib import Path

import brotli
import pytest
import zstandard

from ctxctl.record import guard
from ctxctl.record.receive import server
from tests.unit.record.receive_help import NDJSON, Receiver, receiving

EVENT = b'{"call":"item","item_id":"x","content":"y"}'
PATHS = ("/v1/events", "/v1/traces", "/v1/logs", "/v1/metrics")


def _request(
    receiver: Receiver, *heads: str, method: str = "POST", path: str = "/v1/events", host: str = ""
) -> bytes:
    host = host or f"127.0.0.1:{receiver.port}"
    head = [
        f"{method} {path} HTTP/1.1",
        f"Host: {host}",
        f"Content-Length: {len(EVENT)}",
        "Connection: close",
        *heads,
    ]
    return receiver.raw("\r\n".join(head).encode() + b"\r\n\r\n" + EVENT)


def _status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


@pytest.mark.parametrize("path", PATHS)
def test_only_our_own_host_without_an_origin_and_with_a_type_that_no_form_can_send(
    tmp_path: Path, path: str
) -> None:
    out = tmp_path / "t.jsonl"
    kind = "Content-Type: application/json"
    with receiving(out, otlp=True) as receiver:
        port = receiver.port
        ours = (f"127.0.0.1:{port}", f"localhost:{port}", f"LOCALHOST:{port}", f"[::1]:{port}")
        others = ("evil.test", f"evil.test:{port}", "127.0.0.1", "localhost", f"127.0.0.1:{port + 1}", "",
                  f"127.0.0.1:{port}.evil.test", f"0.0.0.0:{port}", f"127.1:{port}")  # fmt: skip
        origins = ("", "Origin: null", f"Origin: http://127.0.0.1:{port}", "Sec-Fetch-Site: cross-site")
        kinds, methods = (kind, "Content-Type: text/plain", ""), ("POST", "GET", "OPTIONS", "PUT")
        for host, origin, media, method in itertools.product((*ours, *others), origins, kinds, methods):
            fine = host in ours and not origin and media == kind and method == "POST"
            if fine:
                continue
            answer = _request(
                receiver, *filter(None, (origin, media)), method=method, path=path, host=host or " "
            )
            assert _status(answer) in (400, 403, 405, 415, 421), (host, origin, media, method, answer)
            assert b"access-control" not in answer.lower()
        twice = _request(receiver, kind, f"Host: evil.test:{port}", path=path)
        assert _status(twice) in (400, 421)
    assert out.read_bytes() == b""


def test_no_path_gives_anything_of_the_trace_away(tmp_path: Path) -> None:
    out = tmp_path / "t.jsonl"
    with receiving(out, otlp=True) as receiver:
        assert receiver.post("/v1/events", [json.loads(EVENT)]).status == 200
        kept = out.read_bytes()
        for path in (
            "/",
            "/t.jsonl",
            "/v1/events",
            "/../t.jsonl",
            "/v1/events/x",
            "//",
            "/metrics",
            "/v1/traces",
        ):
            answer = _request(receiver, "Content-Type: application/json", method="GET", path=path)
            assert _status(answer) in (404, 405), answer
            assert b"item_id" not in answer
            assert str(tmp_path).encode() not in answer
    assert out.read_bytes() == kept


def test_it_listens_on_loopback_only(tmp_path: Path) -> None:
    with receiving(tmp_path / "t.jsonl") as receiver:
        table = Path("/proc/net/tcp")
        if not table.exists():
            pytest.skip("no /proc/net/tcp here")
        wanted = f"{receiver.port:04X}"
        rows = [line.split() for line in table.read_text().splitlines()[1:]]
        listening = [row[1] for row in rows if row[1].endswith(f":{wanted}") and row[3] == "0A"]
        assert listening == [f"0100007F:{wanted}"]


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"POST /v1/events HTTP/1.1\r\nHost: %h\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", 400),
        (b"POST /v1/events HTTP/1.1\r\nHost: %h\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
         b"0\r\n\r\n", 400),
        (b"POST /v1/events HTTP/1.1\r\nHost: %h\r\nX: " + b"y" * 100_000 + b"\r\n\r\n", 400),
        (b"POST /v1/events HTTP/1.1\r\nHost: %h\r\n" + b"X: y\r\n" * 5000 + b"\r\n", 400),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
        (b"POST /v1/events HTTP/1.1\r\nHost: %h\r\nContent-Type: application/json\r\n"
         b"Content-Length: 99999999999\r\n\r\n", 413),
    ],
)  # fmt: skip
def test_requests_that_can_be_understood_in_two_ways_or_have_no_end(
    tmp_path: Path, head: bytes, status: int
) -> None:
    with receiving(tmp_path / "t.jsonl") as receiver:
        answer = receiver.raw(head.replace(b"%h", b"127.0.0.1:%d" % receiver.port), 2)
        assert answer == b"" or _status(answer) == status, answer[:200]
        assert b"Traceback" not in answer
        assert receiver.post("/v1/events", [json.loads(EVENT)]).status == 200


def test_a_grpc_client_is_told_what_to_set(tmp_path: Path) -> None:
    with receiving(tmp_path / "t.jsonl", otlp=True) as receiver:
        receiver.raw(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00" * 50, 2)
        assert any("gRPC" in line and "http/protobuf" in line for line in receiver.said), receiver.said


def _bombs() -> list[tuple[str, bytes]]:
    zeros = bytes(1 << 20)
    deflate = zlib.compressobj(9, wbits=31)
    packed = b"".join(deflate.compress(zeros) for _ in range(80)) + deflate.flush()
    press = zstandard.ZstdCompressor().compressobj()
    dense = b"".join(press.compress(zeros) for _ in range(80)) + press.flush()
    return [
        ("gzip", packed), ("gzip, gzip", gzip.compress(packed)), ("zstd", dense),
        ("br", brotli.compress(zeros * 64, quality=3)), ("gzip, gzip, gzip, gzip", packed), ("gzip", b"junk"),
        ("gzip", packed[:-9]), ("br", b"\xff"), ("zstd", b"\xff" * 9), ("lzma", b"x"),
        ("gzip", gzip.compress(b"") * 5000),
    ]  # fmt: skip


def test_bombs_and_broken_encodings_are_refused(tmp_path: Path) -> None:
    out = tmp_path / "t.jsonl"
    with receiving(out, otlp=True) as receiver:
        for (encoding, data), path in itertools.product(_bombs(), ("/v1/events", "/v1/traces")):
            answer = receiver.post(path, data, "application/json", Content_Encoding=encoding)
            assert answer.status in (400, 413, 415), (encoding, answer)
    assert out.read_bytes() == b""


def test_more_than_fits_is_sent_away_to_come_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MAX_HELD", 200_000)
    monkeypatch.setattr(guard, "MAX_BODY", 300_000)
    with receiving(tmp_path / "t.jsonl") as receiver:
        lines = [{"call": "item", "item_id": "x", "content": "y" * 250_000}]
        answer = receiver.post("/v1/events", lines)
        assert answer.status == 503
        assert int(answer.headers["Retry-After"]) >= 1
        assert receiver.post("/v1/events", "z" * 400_000, NDJSON).status == 413
        assert receiver.post("/v1/events", [json.loads(EVENT)]).status == 200


def test_who_says_nothing_is_sent_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "HEAD_SECONDS", 0.2)
    monkeypatch.setattr(server, "BODY_SECONDS", 0.2)
    with receiving(tmp_path / "t.jsonl") as receiver:
        with socket.create_connection(("127.0.0.1", receiver.port), timeout=20) as plug:
            plug.sendall(b"POST /v1/events HTTP/1.1\r\nHost:")
            assert _ended(plug) == b""
        with socket.create_connection(("127.0.0.1", receiver.port), timeout=20) as plug:
            host = b"127.0.0.1:%d" % receiver.port
            kind = b"Content-Type: application/json\r\nContent-Length: 9"
            plug.sendall(b"POST /v1/events HTTP/1.1\r\nHost: %b\r\n%b\r\n\r\n{" % (host, kind))
            assert _status(_ended(plug)) == 408


def _ended(plug: socket.socket) -> bytes:
    got = b""
    try:
        while part := plug.recv(4096):
            got += part
    except ConnectionResetError:
        pass
    return got


def test_expect_continue_is_answered_only_where_the_body_is_wanted(tmp_path: Path) -> None:
    with receiving(tmp_path / "t.jsonl") as receiver:
        host = f"127.0.0.1:{receiver.port}"
        for media, first in (("application/json", b"HTTP/1.1 100"), ("text/plain", b"HTTP/1.1 415")):
            with socket.create_connection(("127.0.0.1", receiver.port), timeout=20) as plug:
                head = f"POST /v1/events HTTP/1.1\r\nHost: {host}\r\nContent-Type: {media}\r\n"
                head += f"Expect: 100-continue\r\nContent-Length: {len(EVENT)}\r\n\r\n"
                plug.sendall(head.encode())
                assert plug.recv(4096).startswith(first)
                if media == "application/json":
                    plug.sendall(EVENT)
                    assert b"200 OK" in plug.recv(4096)


def test_nothing_goes_through_a_link_and_the_descriptors_go_with_the_receiver(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0
    for n in range(3):
        with receiving(tmp_path / f"t{n}.jsonl") as receiver:
            assert receiver.post("/v1/events", [json.loads(EVENT)]).status == 200
    if before:
        time.sleep(0.1)
        assert len(os.listdir("/proc/self/fd")) <= before + 2


@pytest.mark.slow
def test_a_thousand_programs_send_at_once(tmp_path: Path) -> None:
    count = 1000
    mine = resource.getrlimit(resource.RLIMIT_NOFILE)
    if mine[1] != resource.RLIM_INFINITY and mine[1] < 3 * count:
        pytest.skip("this machine allows fewer descriptors")
    out = tmp_path / "t.jsonl"
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (3 * count, mine[1]))
        with receiving(out) as receiver, ExitStack() as stack:
            at = ("127.0.0.1", receiver.port)
            senders = [stack.enter_context(socket.create_connection(at, 30)) for _ in range(count)]
            for n, sender in enumerate(senders):
                body = json.dumps({**json.loads(EVENT), "item_id": f"item-{n}"}).encode()
                head = f"Host: 127.0.0.1:{receiver.port}\r\nContent-Type: application/json\r\n"
                lead = f"POST /v1/events HTTP/1.1\r\n{head}Content-Length: {len(body)}\r\n\r\n"
                sender.sendall(lead.encode() + body)
            assert {sender.recv(100).split(b" ")[1] for sender in senders} == {b"200"}
            assert not [line for line in receiver.said if "at a time" in line]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, mine)
    assert sum(b'"item_id":"item-' in line for line in out.read_bytes().splitlines()) == count


def test_connections_fit_the_descriptors_that_a_process_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = [256, 512]
    monkeypatch.setattr(resource, "getrlimit", lambda _: tuple(limits))
    monkeypatch.setattr(resource, "setrlimit", lambda _, made: limits.__setitem__(slice(None), made))
    assert guard.room_for_connections(each=2) == (512 - 64) // 2
    assert limits == [512, 512]

    def refuses(*_: object) -> None:
        raise ValueError("not allowed")

    limits[:] = [200, 4096]
    monkeypatch.setattr(resource, "setrlimit", refuses)
    assert guard.room_for_connections() == 200 - 64
    limits[:] = [resource.RLIM_INFINITY, resource.RLIM_INFINITY]
    assert guard.room_for_connections() == guard.MAX_CONNECTIONS
