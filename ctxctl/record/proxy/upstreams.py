"""The servers that a program's requests go to: found in its environment, replaced by the proxy, and reached.

The proxy reaches them with TLS and, where there is one, through the network's own proxy.
"""

from __future__ import annotations

import asyncio
import base64
import os
import re
import ssl
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Final, NamedTuple, cast
from urllib.parse import SplitResult, unquote, urlsplit

from ctxctl.errors import UsageError

FAMILIES: Final = {
    # Older tools read the second name; both end in /v1 (the packages append the rest of the path).
    "openai": ("https://api.openai.com/v1", ("OPENAI_BASE_URL", "OPENAI_API_BASE")),
    "anthropic": ("https://api.anthropic.com", ("ANTHROPIC_BASE_URL",)),
    "gemini": ("https://generativelanguage.googleapis.com", ("GOOGLE_GEMINI_BASE_URL",)),
}
"""By provider, its own address and the variables that are set even if the environment has none."""
_ALIASES: Final = {
    "anthropic": ("ANTHROPIC_API_URL", "ANTHROPIC_API_BASE"),
    "gemini": ("GEMINI_BASE_URL", "GEMINI_API_BASE"),
}
"""Further variables that some programs read; changed only where they are set already."""
_MAKERS: Final = (
    "AI_GATEWAY|ANTHROPIC_VERTEX|AZURE|AZURE_AI|AZURE_OPENAI|CEREBRAS|DASHSCOPE|"
    "DEEPINFRA|DEEPSEEK|FIREWORKS|FIREWORKS_AI|GOOGLE_VERTEX|GROQ|HF|HOSTED_VLLM|"
    "HUGGINGFACE|KIMI|LITELLM|LITELLM_PROXY|LLM|LM_STUDIO|MINIMAX|MISTRAL|MOONSHOT|"
    "NVIDIA_NIM|OLLAMA|OPENROUTER|PERPLEXITY|PERPLEXITYAI|QWEN|SILICONFLOW|TOGETHER|"
    "TOGETHERAI|TOGETHER_AI|VERCEL_AI_GATEWAY|VERTEX|VERTEXAI|VLLM|XAI|ZAI|ZHIPU|"
    "ZHIPUAI"
)
_OTHERS: Final = re.compile(rf"(?:{_MAKERS})_(?:BASE_URL|API_BASE|API_BASE_URL|API_URL|ENDPOINT)")
"""Variables of other providers, changed where they are set.  AWS is left out: it signs the host's name."""
_VARIABLE: Final = re.compile(r"[A-Z_][A-Z0-9_]*")


class Upstream(NamedTuple):
    """A server that requests are passed on to."""

    scheme: str
    host: str
    """Without the brackets of IPv6."""
    port: int

    @property
    def origin(self) -> str:
        """The server as in a URL, without a default port."""
        return f"{self.scheme}://{self.authority}"

    @property
    def authority(self) -> str:
        """The server as in the `Host` field."""
        name = f"[{self.host}]" if ":" in self.host else self.host
        usual = self.port == (443 if self.scheme == "https" else 80)
        return name if usual else f"{name}:{self.port}"


class Route(NamedTuple):
    """A variable, or a setting, whose address is replaced by the proxy's."""

    variable: str
    url: str
    """Where the program would have gone."""
    upstream: Upstream
    exported: bool = True
    """Whether it is a variable; False: a setting, which the program gets in another way."""

    def pointed(self, port: int) -> str:
        """Return the address with the proxy in the server's place and the same path."""
        parts = urlsplit(self.url)
        user, at, _ = parts.netloc.rpartition("@")
        return parts._replace(scheme="http", netloc=f"{user}{at}127.0.0.1:{port}").geturl()


def routes(environment: Mapping[str, str], given: Iterable[str] = ()) -> tuple[list[Route], list[str]]:
    """Return the addresses to replace by the proxy's, and notes on what is left alone.

    Where one variable of a provider is set, those of its others that are not set stay so: which one a program
    prefers is not known, and it must go where it would have gone.

    Args:
        environment: The program's environment.
        given: `NAME=URL`, NAME being a provider (`openai`) or a variable that the program reads.

    Raises:
        UsageError: `bad-upstream`.
    """
    found: dict[str, Route] = {}
    notes: list[str] = []
    chosen = given_addresses(given)
    for name, url in chosen.items():
        for variable in FAMILIES[name][1] if name in FAMILIES else (name,):
            found[variable] = Route(variable, url, _upstream_given(url))
    for name, (default, variables) in FAMILIES.items():
        if name in chosen or any(variable in found for variable in variables):
            continue
        family = (*variables, *_ALIASES.get(name, ()))
        present = {variable: url for variable in family if (url := environment.get(variable, "").strip())}
        _add_routes(present or dict.fromkeys(variables, default), found, notes)
    others = {name: environment[name].strip() for name in sorted(environment) if _OTHERS.fullmatch(name)}
    _add_routes({name: url for name, url in others.items() if url}, found, notes)
    return list(found.values()), notes


def bases(ways: Iterable[Route]) -> dict[Upstream, dict[str, bytes]]:
    """Return, by server, the paths of the providers' addresses there, for `messages.provider_path`."""
    found: dict[Upstream, dict[str, set[bytes]]] = {}
    for way in ways:
        family = family_of(way.variable)
        if family is not None:
            paths = found.setdefault(way.upstream, {}).setdefault(family, set())
            paths.add(urlsplit(way.url).path.rstrip("/").encode())
    # Where a provider has two addresses at one server, it is unknown which one a request is for.
    return {
        upstream: {family: min(paths) for family, paths in families.items() if len(paths) == 1}
        for upstream, families in found.items()
    }


def family_of(variable: str) -> str | None:
    """Return the provider whose address a variable holds; None: another provider's."""
    for name, (_, variables) in FAMILIES.items():
        if variable in (*variables, *_ALIASES.get(name, ())):
            return name
    return None


def given_addresses(given: Iterable[str]) -> dict[str, str]:
    """Return the user's addresses, by provider or variable.  Raises UsageError: `bad-upstream`."""
    return dict(_named_address(one) for one in given)


def _add_routes(urls: Mapping[str, str], found: dict[str, Route], notes: list[str]) -> None:
    for variable, url in urls.items():
        if variable in found:
            continue
        upstream = parsed(url)
        if upstream is None:
            notes.append(
                f"{variable} is not an http or https address: left as it is; what goes there is not recorded"
            )
        else:
            found[variable] = Route(variable, url, upstream)


def _named_address(one: str) -> tuple[str, str]:
    name, equals, url = one.partition("=")
    name, url = name.strip(), url.strip()
    if not equals or not (name in FAMILIES or _VARIABLE.fullmatch(name)):
        raise UsageError(
            "bad-upstream", f"not NAME=URL: {one}",
            hint=f"NAME is {', '.join(FAMILIES)}, or the variable that the program reads (MY_LLM_URL)",
        )  # fmt: skip
    _upstream_given(url)
    return name, url


def _upstream_given(url: str) -> Upstream:
    upstream = parsed(url)
    if upstream is None:
        raise UsageError(
            "bad-upstream", f"not an address: {url}", hint="for example http://localhost:11434/v1"
        )
    return upstream


def parsed(url: str) -> Upstream | None:
    """Return the server of an http or https address; None: it is no such address."""
    try:
        parts: SplitResult = urlsplit(url)
        port = parts.port
        host = parts.hostname
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not host or re.search(r"[\x00-\x20\x7f\\]", url):
        return None
    return Upstream(parts.scheme, host, port if port is not None else 443 if parts.scheme == "https" else 80)


def pointed(environment: Mapping[str, str], ports: Mapping[Route, int]) -> dict[str, str]:
    """Return the program's environment with the proxy's addresses, which bypass the network's own proxy."""
    made = dict(environment)
    for route, port in ports.items():
        if route.exported:
            made[route.variable] = route.pointed(port)
    if any(name.lower().endswith("_proxy") and name.lower() != "no_proxy" for name in environment):
        # Programs that use the network's proxy would ask it for 127.0.0.1.
        for name in ("no_proxy", "NO_PROXY"):
            before = environment.get(name, environment.get(name.swapcase(), ""))
            if before.strip() != "*":
                made[name] = ",".join(part for part in (before.strip().rstrip(","), "127.0.0.1") if part)
    return made


_EYEBALLS: Final = 0.25
"""Seconds until a name's next address is tried beside the first (RFC 8305)."""
_MAX_HEAD: Final = 64 << 10
_BUNDLES: Final = (
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
)
"""Files in which macOS and Linux distributions keep the authorities that they trust."""
_MORE_CAS: Final = ("NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
"""Variables that name further files of authorities; `SSL_CERT_FILE` is OpenSSL's own."""


class NetworkProxy(NamedTuple):
    """The network's own proxy, as the environment names it."""

    server: Upstream
    credentials: bytes | None
    """The value of `Proxy-Authorization`."""


class RefusedError(OSError):
    """The network's proxy refuses the connection."""


def network_proxy_of(upstream: Upstream) -> NetworkProxy | None:
    """Return the proxy that a program would use for this server (`https_proxy`, `all_proxy`, `no_proxy`).

    Raises:
        UsageError: `bad-network-proxy`: its protocol is not supported, as SOCKS.
    """
    from urllib import request as network

    proxies = network.getproxies_environment()
    url = proxies.get(upstream.scheme) or proxies.get("all")
    if not url or upstream.host in ("127.0.0.1", "localhost", "::1"):
        return None
    bypass: Callable[[str, dict[str, str]], bool] = network.proxy_bypass_environment  # type: ignore[attr-defined]
    if bypass(upstream.host, proxies):
        return None
    parts = urlsplit(url if "://" in url else f"http://{url}")
    try:
        port = parts.port
    except ValueError:
        port = None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(
            "bad-network-proxy",
            f"the environment's proxy for {upstream.origin} is not an HTTP proxy",
            hint=f"no_proxy={upstream.host} goes there directly",
        )
    server = Upstream(parts.scheme, parts.hostname, port or (443 if parts.scheme == "https" else 80))
    credentials = None
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        credentials = b"Basic " + base64.b64encode(pair.encode())
    return NetworkProxy(server, credentials)


def trusted_context() -> ssl.SSLContext:
    """Return a TLS context that trusts the authorities of the system and the environment."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    paths = ssl.get_default_verify_paths()
    if not paths.cafile and not paths.capath:
        # Some builds of Python look for the system's authorities in the wrong place.
        bundle = next((path for path in _BUNDLES if os.path.exists(path)), None)
        if bundle is not None:
            context.load_verify_locations(bundle)
    for name in _MORE_CAS:
        if path := os.environ.get(name):
            with suppress(OSError, ssl.SSLError):
                context.load_verify_locations(**{"capath" if os.path.isdir(path) else "cafile": path})
    return context


async def connect(
    upstream: Upstream,
    network_proxy: NetworkProxy | None,
    context: ssl.SSLContext,
    protocol: Callable[[], asyncio.Protocol],
) -> None:
    """Connect a protocol to a server.  Raises OSError, also for errors of TLS."""
    loop = asyncio.get_running_loop()
    server = upstream if network_proxy is None else network_proxy.server
    if network_proxy is None or upstream.scheme == "http":
        await loop.create_connection(
            protocol, server.host, server.port, ssl=context if server.scheme == "https" else None,
            happy_eyeballs_delay=_EYEBALLS,
        )  # fmt: skip
        return
    transport, asking = await loop.create_connection(
        _ConnectReply, server.host, server.port, ssl=context if server.scheme == "https" else None
    )
    try:
        transport.write(_connect_head(upstream, network_proxy))
        status = await asking.status
        if not status.startswith(b"2"):
            raise RefusedError(
                f"the network's proxy answered {status.decode('ascii', 'replace') or 'nothing'}"
            )
        made = protocol()
        inner = await loop.start_tls(transport, made, context, server_hostname=upstream.host)
    except BaseException:
        transport.abort()
        raise
    made.connection_made(cast("asyncio.Transport", inner))


class _ConnectReply(asyncio.Protocol):
    """Reads the answer of the network's proxy to CONNECT."""

    def __init__(self) -> None:
        self.status: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        """The answer's status; empty: there was no answer."""
        self._head = b""

    def data_received(self, data: bytes) -> None:
        """Read the head; nothing comes behind it before TLS begins."""
        self._head += data
        if (b"\r\n\r\n" in self._head or len(self._head) > _MAX_HEAD) and not self.status.done():
            self.status.set_result(self._head.split(b" ", 2)[1][:3] if b" " in self._head else b"")

    def connection_lost(self, exc: Exception | None) -> None:
        """Give up: the connection is closed."""
        if not self.status.done():
            self.status.set_result(b"")


def _connect_head(upstream: Upstream, network_proxy: NetworkProxy) -> bytes:
    name = f"[{upstream.host}]" if ":" in upstream.host else upstream.host
    place = f"{name}:{upstream.port}".encode("ascii" if name.isascii() else "idna")
    asked = b"CONNECT %b HTTP/1.1\r\nHost: %b\r\n" % (place, place)
    if network_proxy.credentials is not None:
        asked += b"Proxy-Authorization: " + network_proxy.credentials + b"\r\n"
    return asked + b"\r\n"
