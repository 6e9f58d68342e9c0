"""What is not passed on as it is: who may ask, the line of a request that is changed, answers of our own."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from ctxctl.record.guard import refused
from ctxctl.record.proxy.spelling import spelled

if TYPE_CHECKING:
    from ctxctl.record.proxy.messages import Request
    from ctxctl.record.proxy.server import Listener
    from ctxctl.record.proxy.spelling import Bases

_HOST: Final = re.compile(rb"(\r\n[Hh][Oo][Ss][Tt]:[ \t]*)[^\r]*")


class MisdirectedError(Exception):
    """A request that is not passed on; answered with `status`."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


def checked(request: Request, hosts: frozenset[str]) -> None:
    """Raise MisdirectedError for what a program would not send to its API: a web page does, or a program that
    takes this for a proxy of the network."""
    if request.method.upper() == b"CONNECT":
        raise MisdirectedError(405, "this is no proxy for other servers (CONNECT)")
    if not request.target.startswith(b"/") and request.target != b"*":
        raise MisdirectedError(421, "this is no proxy for other servers (an address in the request line)")
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in request.fields}
    why = refused(headers, hosts, hostless=request.version == b"HTTP/1.0")
    if why is not None:
        raise MisdirectedError(403 if "Origin" in why or "Sec-Fetch" in why else 421, why)


def respelled(head: bytes, request: Request, bases: Bases) -> tuple[bytes, Request]:
    """The head and the request with the path as the provider has it (`spelling`)."""
    target = spelled(request.target, bases)
    if target == request.target:
        return head, request
    _, crlf, rest = head.partition(b"\r\n")
    line = b"%b %b %b" % (request.method, target, request.version)
    return line + crlf + rest, request._replace(target=target)


def rewritten(head: bytes, request: Request, listener: Listener) -> bytes:
    """The head with the server's name in `Host`; all else is left as it is."""
    name = listener.upstream.authority.encode("idna" if not listener.upstream.host.isascii() else "ascii")
    head = _HOST.sub(lambda found: found[1] + name, head, count=1)
    via = listener.via
    if via is None or listener.upstream.scheme != "http" or not request.target.startswith(b"/"):
        return head
    # A proxy of the network is asked with the whole address.
    line, crlf, rest = head.partition(b"\r\n")
    line = b"%b http://%b%b %b" % (request.method, name, request.target, request.version)
    credentials = b"Proxy-Authorization: " + via.credentials + b"\r\n" if via.credentials is not None else b""
    return line + crlf + credentials + rest


def own_answer(status: int, why: str) -> bytes:
    """An answer in the server's place, as the APIs tell errors; the connection ends with it."""
    import orjson

    error = {"type": "ctxctl_proxy_error", "message": f"ctxctl: {why}"}
    body = orjson.dumps({"type": "error", "error": error})
    fields = b"Content-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n" % len(body)
    return b"HTTP/1.1 %d %b\r\n%b\r\n%b" % (status, HTTPStatus(status).phrase.encode(), fields, body)
