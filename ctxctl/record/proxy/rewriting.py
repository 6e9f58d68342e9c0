"""What is not passed on as it is: who may ask, the line of a request that is changed, answers of our own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from ctxctl.record.guard import refused

if TYPE_CHECKING:
    from ctxctl.record.proxy.messages import Request
    from ctxctl.record.proxy.upstream_pool import Via
    from ctxctl.record.proxy.upstreams import Upstream


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
    """The head and the request with the path as the provider has it (`spelled`)."""
    target = spelled(request.target, bases)
    if target == request.target:
        return head, request
    _, crlf, rest = head.partition(b"\r\n")
    line = b"%b %b %b" % (request.method, target, request.version)
    return line + crlf + rest, request._replace(target=target)


def rewritten(head: bytes, request: Request, upstream: Upstream, via: Via | None) -> bytes:
    """The head with the server's name in `Host`; all else is left as it is.

    `via`: the network's own proxy, which is asked for the whole address.
    """
    name = upstream.authority.encode("idna" if not upstream.host.isascii() else "ascii")
    head = _HOST.sub(lambda found: found[1] + name, head, count=1)
    if via is None or upstream.scheme != "http" or not request.target.startswith(b"/"):
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


_ENDPOINTS: Final = {
    "anthropic": re.compile(rb"/messages(?:/count_tokens|/batches(?:/.*)?)?"),
    "openai": re.compile(
        rb"/(?:chat/completions|responses(?:/.*)?|completions|embeddings|models(?:/[^:]*)?)"
    ),
    "gemini": re.compile(rb"/models/[^/]+:[A-Za-z]+"),
}
_VERSIONS: Final = {"anthropic": b"/v1", "openai": b"/v1", "gemini": b"/v1beta"}
_VERSION: Final = re.compile(rb"/v[0-9]+(?:alpha|beta)?[0-9]*\Z")

Bases = Mapping[str, bytes]
"""Of the providers behind one server, the path of each one's address: `{"openai": b"/v1"}`."""


def spelled(target: bytes, bases: Bases) -> bytes:
    """The request's target as the provider has it: a path, and perhaps a query.

    Programs leave the version of an API out or give it twice: one appends `/messages` to the address that it
    is given, another one `/v1/messages`; some that are given `https://api.openai.com/v1` append
    `/v1/chat/completions` to it.  Behind a variable that many programs read, one of the spellings would not
    be answered, so the relay takes both.  All else of a path stays.

    Only a known endpoint right behind the address is looked at:

    - `/messages` becomes `/v1/messages`, Gemini's `/models/M:generateContent` gets `/v1beta`: these APIs have
      a version in every path, whoever offers them.
    - A version that the address has and the path lacks, or has twice, is put right.  OpenAI's, without one in
      the address, stays without (`https://api.deepseek.com/chat/completions`): it may be meant so.
    """
    path, question, query = target.partition(b"?")
    for family, base in bases.items():
        made = _spelled(path, family, base.rstrip(b"/"))
        if made != path:
            return made + question + query
    return target


def _spelled(path: bytes, family: str, base: bytes) -> bytes:
    endpoint, version = _ENDPOINTS[family], _VERSIONS[family]
    own = _VERSION.search(base)
    root, version = (base[: own.start()], own[0]) if own is not None else (base, version)
    if not path.startswith(root):
        return path
    rest = path[len(root) :]
    if rest.startswith(version * 2 + b"/") and endpoint.fullmatch(rest[2 * len(version) :]):
        return root + rest[len(version) :]
    if (own is not None or family != "openai") and endpoint.fullmatch(rest):
        return root + version + rest
    return path
