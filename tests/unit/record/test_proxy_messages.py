"""Where HTTP messages end, however they are cut, and what is no message."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.record.guard import own_hosts
from ctxctl.record.proxy.messages import (
    Body,
    MalformedError,
    MisdirectedError,
    addressed_to,
    check_request,
    head_end,
    parse_answer,
    parse_request,
)
from ctxctl.record.proxy.upstreams import Upstream

HEAD = b"POST /v1/x?y=%%20 HTTP/1.1\r\nHost: a\r\n%b\r\n"


@given(
    st.lists(st.binary(min_size=1, max_size=40), max_size=6),
    st.lists(st.integers(0, 400), max_size=8),
    st.binary(max_size=20),
)
def test_a_chunked_body_ends_where_it_ends_however_it_is_cut(
    chunks: list[bytes], cuts: list[int], after: bytes
) -> None:
    raw = b"".join(b"%X;e=1\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\nT: 1\r\n\r\n"
    data = raw + after
    places = [0, *sorted({cut for cut in cuts if cut < len(data)}), len(data)]
    body, got, end = Body(chunked=True), bytearray(), 0
    for start, stop in pairwise(places):
        if body.done:
            break
        pieces: list[bytes] = []
        end = start + body.feed(data[start:stop], 0, pieces)
        got += b"".join(pieces)
    assert body.done
    assert end == len(raw)
    assert bytes(got) == b"".join(chunks)


@pytest.mark.parametrize(
    "raw",
    [
        b"zz\r\n",
        b"\r\n",
        b"-1\r\n",
        b"+1\r\n",
        b"0x1\r\n",
        b"1 \t x\r\na\r\n",
        b"1\na\r\n",
        b"1\r\nab\r\n",
        b"1\r\na\n",
        b"1" * 16 + b"\r\n",
        b"1;" + b"x" * 20_000,
        b"1;\rx\r\n",
        b" 1\r\na\r\n",
    ],
)
def test_chunks_that_servers_cut_differently_are_none(raw: bytes) -> None:
    with pytest.raises(MalformedError):
        Body(chunked=True).feed(raw, 0, [])


@pytest.mark.parametrize(
    "head",
    [
        HEAD % b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        HEAD % b"Content-Length: 5\r\nContent-Length: 5\r\n",
        HEAD % b"Content-Length: 5, 5\r\n",
        HEAD % b"Content-Length: +5\r\n",
        HEAD % b"Content-Length: 0x5\r\n",
        HEAD % b"Content-Length:\r\n",
        HEAD % b"Transfer-Encoding: gzip, chunked\r\n",
        HEAD % b"Transfer-Encoding: identity\r\n",
        HEAD % b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        HEAD % b"Transfer-Encoding : chunked\r\n",
        HEAD % b"Host: b\r\n",
        HEAD % b"X: a\r\n b\r\n",
        HEAD % b"X: a\0b\r\n",
        HEAD % b"X: a\rb\r\n",
        HEAD % b"X: a\nY: b\r\n",
        HEAD % b"no colon\r\n",
        HEAD % b": empty\r\n",
        b"POST /x HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST /x HTTP/2.0\r\n\r\n",
        b"POST /x\r\n\r\n",
        b"POST  /x HTTP/1.1\r\n\r\n",
        b"PO ST /x HTTP/1.1\r\n\r\n",
        b"POST /\x7f HTTP/1.1\r\n\r\n",
        b"POST /x HTTP/1.1\nHost: a\n\n",
    ],
)
def test_requests_that_could_be_understood_in_two_ways_are_none(head: bytes) -> None:
    with pytest.raises(MalformedError):
        parse_request(head)


def test_a_request_is_read() -> None:
    found = parse_request(
        HEAD % b"x-A:  b \r\nTransfer-Encoding: Chunked\r\nConnection: a, Upgrade\r\nUpgrade: b\r\n"
    )
    assert (found.method, found.target) == (b"POST", b"/v1/x?y=%20")
    assert (b"x-A", b"b") in found.fields
    assert found.body.chunked
    assert found.upgrades
    assert parse_request(HEAD % b"Content-Length: 0\r\n").body.done
    assert not parse_request(HEAD % b"Content-Length: 1\r\n").body.done


@pytest.mark.parametrize(
    ("head", "method", "done", "until_close"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b"GET", True, False),
        (b"HTTP/1.1 200\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\n", b"GET", False, False),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", b"HEAD", True, False),
        (b"HTTP/1.1 204 No\r\nContent-Length: 3\r\n\r\n", b"GET", True, False),
        (b"HTTP/1.1 100 Continue\r\n\r\n", b"GET", True, False),
        (b"HTTP/1.0 200 OK\n\n", b"GET", False, True),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", b"GET", False, True),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n", b"GET", False, False),
        (b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nbad line\r\n\r\n", b"GET", False, True),
    ],
)
def test_where_an_answer_ends(head: bytes, method: bytes, done: bool, until_close: bool) -> None:
    found = parse_answer(head, method)
    assert (found.body.done, found.body.until_close) == (done, until_close)


@pytest.mark.parametrize(
    "head",
    [b"ICY 200 OK\r\n\r\n", b"HTTP/1.1 20 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"],
)
def test_what_is_no_answer(head: bytes) -> None:
    with pytest.raises(MalformedError):
        parse_answer(head, b"GET")


@given(st.integers(0, 40), st.integers(0, 40))
def test_the_end_of_a_head_is_found_when_it_comes_in_pieces(first: int, second: int) -> None:
    data = b"GET / HTTP/1.1\r\nHost: a\r\n\r\nbody"
    first, second = sorted((min(first, len(data)), min(second, len(data))))
    found = -1
    for start, stop in ((0, first), (first, second), (second, len(data))):
        if found < 0:
            found = head_end(data[:stop], start)
    assert data[:found].endswith(b"\r\n\r\n")
    assert data[found:] == b"body"


@pytest.mark.parametrize(
    ("method", "origins", "passed"),
    [
        ("GET", ["http://127.0.0.1:9700"], True),
        ("GET", ["http://LOCALHOST:9700"], True),
        ("GET", [], True),
        ("GET", ["http://127.0.0.1:9701"], False),
        ("GET", ["https://api.example.com"], False),
        ("GET", ["http://rebind.test:9700"], False),
        ("GET", ["https://evil.example", "http://127.0.0.1:9700"], False),
        ("GET", ["http://127.0.0.1:9700", "https://evil.example"], False),
        ("GET", ["null"], False),
        ("POST", ["http://127.0.0.1:9700"], False),
    ],
)
def test_the_relays_own_address_as_origin_of_a_socket_becomes_the_servers(
    method: str, origins: list[str], passed: bool
) -> None:
    upgrade = "Upgrade: websocket\r\nConnection: Upgrade\r\n" if method == "GET" else ""
    lines = "".join(f"oRigin: {origin}\r\n" for origin in origins)
    text = f"{method} /v1/responses HTTP/1.1\r\nHost: 127.0.0.1:9700\r\n{upgrade}{lines}X-Origin: a\r\n\r\n"
    head = text.encode()
    request = parse_request(head)
    if not passed:
        with pytest.raises(MisdirectedError):
            check_request(request, own_hosts(9700))
        return
    check_request(request, own_hosts(9700))
    sent = addressed_to(head, request, Upstream("https", "api.example.com", 443), None)
    own = [f"http://{name}" for name in ("127.0.0.1:9700", "LOCALHOST:9700")]
    expected = text.replace("Host: 127.0.0.1:9700", "Host: api.example.com")
    for name in own:
        expected = expected.replace(name, "https://api.example.com")
    assert sent.decode() == expected
