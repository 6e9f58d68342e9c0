"""How runtimes, routers and clouds spell a model and its provider, and what that comes down to."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import urlsplit

MAKERS: Final = (
    "anthropic",
    "openai",
    "google",
    "mistral",
    "xai",
    "deepseek",
    "moonshotai",
    "zai",
    "alibaba",
    "minimax",
    "cohere",
    "llama",
    "stepfun",
    "xiaomi",
    "inception",
    "perplexity",
    "upstage",
    "morph",
)
"""Providers that serve models of their own, as the table calls them."""

_PROVIDERS: Final = {
    "aws": "amazon-bedrock",
    "aws.bedrock": "amazon-bedrock",
    "bedrock": "amazon-bedrock",
    "bedrock_converse": "amazon-bedrock",
    "azure_ai": "azure",
    "azure_openai": "azure",
    "azure.ai.inference": "azure",
    "azure.ai.openai": "azure",
    "azure-openai": "azure",
    "azureopenai": "azure",
    "copilot": "github-copilot",
    "github_copilot": "github-copilot",
    "copilot-cli": "github-copilot",
    "fireworks": "fireworks-ai",
    "fireworks_ai": "fireworks-ai",
    "gcp.gemini": "google",
    "gemini": "google",
    "google_genai": "google",
    "google-gla": "google",
    "gcp.vertex_ai": "google-vertex",
    "google-vertexai": "google-vertex",
    "google.vertex": "google-vertex",
    "vertex": "google-vertex",
    "vertex.anthropic": "google-vertex",
    "vertex_ai": "google-vertex",
    "vertexai": "google-vertex",
    "github": "github-models",
    "meta-llama": "llama",
    "mistral_ai": "mistral",
    "mistralai": "mistral",
    "moonshot": "moonshotai",
    "openai-codex": "openai",
    "openai_chat": "openai",
    "openai_responses": "openai",
    "qwen": "alibaba",
    "together": "togetherai",
    "together_ai": "togetherai",
    "vercel_ai_gateway": "vercel",
    "x-ai": "xai",
    "x_ai": "xai",
    "z-ai": "zai",
    "zai-org": "zai",
}
_HOSTS: Final = (
    ("api.anthropic.com", "anthropic"),
    ("api.openai.com", "openai"),
    ("chatgpt.com", "openai"),
    ("generativelanguage.googleapis.com", "google"),
    ("aiplatform.googleapis.com", "google-vertex"),
    ("openrouter.ai", "openrouter"),
    ("openai.azure.com", "azure"),
    ("services.ai.azure.com", "azure"),
    ("cognitiveservices.azure.com", "azure-cognitive-services"),
    ("amazonaws.com", "amazon-bedrock"),
    ("githubcopilot.com", "github-copilot"),
    ("models.github.ai", "github-models"),
    ("api.mistral.ai", "mistral"),
    ("api.deepseek.com", "deepseek"),
    ("api.x.ai", "xai"),
    ("api.groq.com", "groq"),
    ("api.together.xyz", "togetherai"),
    ("api.together.ai", "togetherai"),
    ("api.fireworks.ai", "fireworks-ai"),
    ("api.moonshot.ai", "moonshotai"),
    ("api.moonshot.cn", "moonshotai-cn"),
    ("api.z.ai", "zai"),
    ("open.bigmodel.cn", "zhipuai"),
    ("api.cerebras.ai", "cerebras"),
    ("integrate.api.nvidia.com", "nvidia"),
    ("api.deepinfra.com", "deepinfra"),
    ("api.minimax.io", "minimax"),
    ("api.cohere.com", "cohere"),
    ("api.perplexity.ai", "perplexity"),
    ("ai-gateway.vercel.sh", "vercel"),
    ("router.huggingface.co", "huggingface"),
)
"""Ends of host names."""

_API: Final = re.compile(r"\.(?:chat|responses|completion|embedding|messages|generative-ai)$")
"""Which of a provider's interfaces was called, as Vercel's AI SDK names it behind the provider."""
_REGION: Final = re.compile(r"^(?:us-gov|us|eu|apac|au|jp|ca|global)\.(?=[a-z0-9-]+\.)")
_ARN: Final = re.compile(r"^arn:aws[a-z-]*:bedrock:.*/(?P<name>[^/]+)$")
_TAG: Final = re.compile(r":(?:free|thinking|nitro|floor|beta|extended|online|exacto|discounted)$")
_DATE: Final = re.compile(r"[-@](?:20\d{6}|20\d\d-\d\d-\d\d|default|latest)$")
_LARGE: Final = re.compile(r"\[1m\]$")
_VENDORS: Final = frozenset(("anthropic", "amazon", "meta", "mistral", "cohere", "openai", "deepseek"))
_REVISION: Final = re.compile(r"-v\d+(?::\d+)?$")
_DOTTED: Final = re.compile(r"-(\d+)-(\d)(?=$|-)")
_TRIES: Final = 48
_MAX: Final = 200
"""Characters of a name; a longer one is no model's."""


class Spelling(NamedTuple):
    """One way to read a model's name."""

    name: str
    """In lower case."""
    provider: str | None
    """The provider that the name itself says."""
    change: str
    """What was done to it, to be shown; empty: nothing."""
    tuned: bool = False
    """It is somebody's fine-tune of this model: another price, the same limits."""


def provider_of(name: str | None, url: str | None = None) -> str | None:
    """A provider as the table calls it, from a runtime's name for it or from the address of its API."""
    if name is not None and name.strip():
        plain = _API.sub("", name.strip().lower())
        return _PROVIDERS.get(plain, plain)
    try:
        host = (urlsplit(url).hostname or "") if url is not None else ""
    except ValueError:
        return None
    return next((found for end, found in _HOSTS if host == end or host.endswith("." + end)), None)


def large_window(model: str) -> bool:
    """Whether the name asks for a window of a million tokens (Claude Code's ``[1m]``)."""
    return _LARGE.search(model.strip().lower()) is not None


@lru_cache(maxsize=256)
def spellings(model: str) -> tuple[Spelling, ...]:
    """A name as it is, then as it may be meant: the fewest changes first, no two alike."""
    return tuple(_spelled(model))


def _spelled(model: str) -> Iterator[Spelling]:
    if len(model) > _MAX:
        return
    waiting = deque([Spelling(model.strip().lower(), None, "")])
    seen: set[tuple[str, str | None]] = set()
    while waiting and len(seen) < _TRIES:
        spelling = waiting.popleft()
        key = (spelling.name, spelling.provider)
        if not spelling.name or key in seen:
            continue
        seen.add(key)
        yield spelling
        waiting.extend(
            step._replace(
                provider=step.provider or spelling.provider,
                change=", ".join(filter(None, (spelling.change, step.change))),
                tuned=step.tuned or spelling.tuned,
            )
            for step in _changes(spelling.name)
        )


def _changes(name: str) -> Iterator[Spelling]:
    """What one step makes of a name, the surest first."""
    large = _LARGE.sub("", name)
    if large != name:
        yield Spelling(large, None, "without [1m]")
        return
    arn = _ARN.match(name)
    if arn is not None:
        yield Spelling(arn["name"], "amazon-bedrock", "out of its ARN")
        return
    if name.startswith("ft:"):
        yield Spelling(name.split(":")[1], "openai", "the model that was fine-tuned", tuned=True)
        return
    untagged = _TAG.sub("", name)
    if untagged != name:
        yield Spelling(untagged, None, "without its tag")
    carrier, slash, rest = name.partition("/")
    if slash:
        yield Spelling(rest, provider_of(carrier), f"without {carrier}/")
        yield Spelling(rest, None, f"without {carrier}/")
        return
    yield from _plainer(name)


def _plainer(name: str) -> Iterator[Spelling]:
    """A name without a path, less what clouds and routers add to it."""
    regional = _REGION.sub("", name)
    if regional != name:
        yield Spelling(name, "amazon-bedrock", "")
        yield Spelling(regional, "amazon-bedrock", "without its region")
    vendor, dot, rest = name.partition(".")
    if dot and vendor in _VENDORS:
        yield Spelling(name, "amazon-bedrock", "")
        yield Spelling(_REVISION.sub("", rest), None, "as its maker spells it")
    dated = _DATE.sub("", name)
    if dated != name:
        yield Spelling(dated, None, "without its date")
    if name.startswith("claude"):
        for other in (name.replace(".", "-"), _DOTTED.sub(r"-\1.\2", name)):
            yield Spelling(other, None, "spelled differently")
