"""Which APIs a program talks to, and the environment that points it at the proxy instead."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple
from urllib.parse import SplitResult, urlsplit

from ctxctl.errors import UsageError

FAMILIES: Final = {
    # Older tools read the second name; both end in /v1 (the packages append the rest of the path).
    "openai": ("https://api.openai.com/v1", ("OPENAI_BASE_URL", "OPENAI_API_BASE")),
    "anthropic": ("https://api.anthropic.com", ("ANTHROPIC_BASE_URL",)),
    "gemini": ("https://generativelanguage.googleapis.com", ("GOOGLE_GEMINI_BASE_URL",)),
}
"""What is pointed at the proxy also where the environment says nothing of it: the provider's own address."""
_ALIASES: Final = {
    "anthropic": ("ANTHROPIC_API_URL", "ANTHROPIC_API_BASE"),
    "gemini": ("GEMINI_BASE_URL", "GEMINI_API_BASE"),
}
"""Names that some programs read besides; set only where they are set already."""
_MAKERS: Final = (
    "AI_GATEWAY|ANTHROPIC_VERTEX|AZURE|AZURE_AI|AZURE_OPENAI|CEREBRAS|DASHSCOPE|"
    "DEEPINFRA|DEEPSEEK|FIREWORKS|FIREWORKS_AI|GOOGLE_VERTEX|GROQ|HF|HOSTED_VLLM|"
    "HUGGINGFACE|KIMI|LITELLM|LITELLM_PROXY|LLM|LM_STUDIO|MINIMAX|MISTRAL|MOONSHOT|"
    "NVIDIA_NIM|OLLAMA|OPENROUTER|PERPLEXITY|PERPLEXITYAI|QWEN|SILICONFLOW|TOGETHER|"
    "TOGETHERAI|TOGETHER_AI|VERCEL_AI_GATEWAY|VERTEX|VERTEXAI|VLLM|XAI|ZAI|ZHIPU|"
    "ZHIPUAI"
)
_OTHERS: Final = re.compile(rf"(?:{_MAKERS})_(?:BASE_URL|API_BASE|API_BASE_URL|API_URL|ENDPOINT)")
"""Variables of other providers: pointed at the proxy if they are set.  Not those of AWS: what is sent there
is signed together with the name of the host."""
_VARIABLE: Final = re.compile(r"[A-Z_][A-Z0-9_]*")


class Upstream(NamedTuple):
    """A server that requests are passed on to."""

    scheme: str
    host: str
    """Without the brackets of IPv6."""
    port: int

    @property
    def origin(self) -> str:
        """As in a URL, without a port that goes without saying."""
        return f"{self.scheme}://{self.authority}"

    @property
    def authority(self) -> str:
        """For the `Host` field."""
        name = f"[{self.host}]" if ":" in self.host else self.host
        usual = self.port == (443 if self.scheme == "https" else 80)
        return name if usual else f"{name}:{self.port}"


class Route(NamedTuple):
    """A variable that is pointed at the proxy."""

    variable: str
    url: str
    """Where the program would have gone."""
    upstream: Upstream
    exported: bool = True
    """False: no variable, but a setting of the program's, which is given to it in another way."""

    def pointed(self, port: int) -> str:
        """The same with the proxy in the server's place: whatever the program appends stays as it is."""
        parts = urlsplit(self.url)
        user, at, _ = parts.netloc.rpartition("@")
        return parts._replace(scheme="http", netloc=f"{user}{at}127.0.0.1:{port}").geturl()


def routes(environment: Mapping[str, str], given: Iterable[str] = ()) -> tuple[list[Route], list[str]]:
    """What to point at the proxy, and notes on what is left alone.

    Where one variable of a provider is set, those of its others that are not set stay so: which one a program
    prefers is not known, and it must go where it would have gone.

    Args:
        environment: Of the program.
        given: `NAME=URL`, NAME a provider (`openai`) or a variable of the program's own.

    Raises:
        UsageError: `bad-upstream`.
    """
    found: dict[str, Route] = {}
    notes: list[str] = []
    chosen = given_addresses(given)
    for name, url in chosen.items():
        for variable in FAMILIES[name][1] if name in FAMILIES else (name,):
            found[variable] = Route(variable, url, _asked(url))
    for name, (default, variables) in FAMILIES.items():
        if name in chosen or any(variable in found for variable in variables):
            continue
        family = (*variables, *_ALIASES.get(name, ()))
        present = {variable: url for variable in family if (url := environment.get(variable, "").strip())}
        _add(present or dict.fromkeys(variables, default), found, notes)
    others = {name: environment[name].strip() for name in sorted(environment) if _OTHERS.fullmatch(name)}
    _add({name: url for name, url in others.items() if url}, found, notes)
    return list(found.values()), notes


def bases(ways: Iterable[Route]) -> dict[Upstream, dict[str, bytes]]:
    """Behind each server, the paths of the providers' addresses there, for `answers.spelled`."""
    found: dict[Upstream, dict[str, set[bytes]]] = {}
    for way in ways:
        family = family_of(way.variable)
        if family is not None:
            paths = found.setdefault(way.upstream, {}).setdefault(family, set())
            paths.add(urlsplit(way.url).path.rstrip("/").encode())
    # Of two addresses at one server it is not known which one a request was meant for.
    return {
        upstream: {family: min(paths) for family, paths in families.items() if len(paths) == 1}
        for upstream, families in found.items()
    }


def family_of(variable: str) -> str | None:
    """The provider whose address a variable holds; None: another's."""
    for name, (_, variables) in FAMILIES.items():
        if variable in (*variables, *_ALIASES.get(name, ())):
            return name
    return None


def given_addresses(given: Iterable[str]) -> dict[str, str]:
    """The addresses that the user has named, by provider or variable.  Raises UsageError: `bad-upstream`."""
    return dict(_given(one) for one in given)


def _add(urls: Mapping[str, str], found: dict[str, Route], notes: list[str]) -> None:
    for variable, url in urls.items():
        if variable in found:
            continue
        upstream = parsed(url)
        if upstream is None:
            notes.append(
                f"{variable} is no http or https address: left as it is, what goes there is not recorded"
            )
        else:
            found[variable] = Route(variable, url, upstream)


def _given(one: str) -> tuple[str, str]:
    name, equals, url = one.partition("=")
    name, url = name.strip(), url.strip()
    if not equals or not (name in FAMILIES or _VARIABLE.fullmatch(name)):
        raise UsageError(
            "bad-upstream", f"not NAME=URL: {one}",
            hint=f"NAME is {', '.join(FAMILIES)}, or the variable that the program reads (MY_LLM_URL)",
        )  # fmt: skip
    _asked(url)
    return name, url


def _asked(url: str) -> Upstream:
    upstream = parsed(url)
    if upstream is None:
        raise UsageError(
            "bad-upstream", f"not an address: {url}", hint="for example http://localhost:11434/v1"
        )
    return upstream


def parsed(url: str) -> Upstream | None:
    """The server of an http or https address; None: it is none."""
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
    """The program's environment: each route's variable leads to the proxy, and to it without a detour."""
    made = dict(environment)
    for route, port in ports.items():
        if route.exported:
            made[route.variable] = route.pointed(port)
    if any(name.lower().endswith("_proxy") and name.lower() != "no_proxy" for name in environment):
        # Programs that use a proxy of the network would ask that one for 127.0.0.1.
        for name in ("no_proxy", "NO_PROXY"):
            before = environment.get(name, environment.get(name.swapcase(), ""))
            if before.strip() != "*":
                made[name] = ",".join(part for part in (before.strip().rstrip(","), "127.0.0.1") if part)
    return made
