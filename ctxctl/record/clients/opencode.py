"""opencode: the providers' variables, spelled as its SDKs have them; its settings go before."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import orjson

from ctxctl.record.clients.settings import json_of, put
from ctxctl.record.clients.setup import with_version

if TYPE_CHECKING:
    from pathlib import Path

    from ctxctl.record.clients.setup import Ready, Setup, Start

_CONTENT: Final = "OPENCODE_CONFIG_CONTENT"
_NAMES: Final = ("config.json", "opencode.json", "opencode.jsonc")
_VARIABLE: Final = re.compile(r"\{env:([^}]+)\}")
_GOOGLE: Final = ("GOOGLE_GENERATIVE_AI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY")
_KNOWN: Final = {"opencode": "https://opencode.ai/zen/v1", "openrouter": "https://openrouter.ai/api/v1"}
"""Providers that are offered without being named in the settings, and read no variable."""


def prepare(setup: Setup, arguments: Sequence[str]) -> Ready | None:
    """Lead what its settings name, and what it has a key for.

    A provider that is named in settings is offered: so none is named here that would not be offered anyway.
    """
    setup.versioned("anthropic")
    setup.versioned("openai")
    urls = dict(_configured(setup))
    signed_in = json_of(setup.path("XDG_DATA_HOME", ".local", "share") / "opencode" / "auth.json")
    if "google" not in urls and ("google" in signed_in or any(map(setup.environment.get, _GOOGLE))):
        urls["google"] = with_version(setup.address("gemini"), "gemini")
    for name, url in _KNOWN.items():
        if name == "opencode" or name in signed_in or setup.environment.get(f"{name.upper()}_API_KEY"):
            urls.setdefault(name, url)
    routes = {name: setup.lead(f"opencode's provider {name}", url) for name, url in urls.items()}

    def ready(start: Start) -> None:
        given = setup.environment.get(_CONTENT, "").strip()
        content = json_of(given) if given else {}
        if given and not content and given != "{}":
            return  # opencode says what is wrong with it
        for name, route in routes.items():
            if route is not None:
                put(content, ("provider", name, "options", "baseURL"), start.address(route))
        start.environment[_CONTENT] = orjson.dumps(content).decode()

    return ready


def _configured(setup: Setup) -> Iterator[tuple[str, str]]:
    """Providers with an address, the weakest settings first."""
    for settings in _settings(setup):
        providers = settings.get("provider")
        for name, provider in providers.items() if isinstance(providers, dict) else ():
            options = provider.get("options") if isinstance(provider, dict) else None
            url: Any = options.get("baseURL") if isinstance(options, dict) else None
            if isinstance(url, str):
                yield name, _VARIABLE.sub(lambda found: setup.environment.get(found[1], ""), url)


def _settings(setup: Setup) -> Iterator[dict[str, Any]]:
    folders: list[Path] = [setup.path("XDG_CONFIG_HOME", ".config") / "opencode"]
    for name in _NAMES:
        yield json_of(folders[0] / name)
    if setup.environment.get("OPENCODE_CONFIG"):
        yield json_of(setup.path("OPENCODE_CONFIG"))
    project = [setup.folder, *setup.folder.parents]
    root = next((n for n, folder in enumerate(project) if (folder / ".git").exists()), 0)
    for folder in reversed(project[: root + 1]):
        for name in _NAMES[1:]:
            yield json_of(folder / name)
            yield json_of(folder / ".opencode" / name)
    if setup.environment.get("OPENCODE_CONFIG_DIR"):
        for name in _NAMES[1:]:
            yield json_of(setup.path("OPENCODE_CONFIG_DIR") / name)
    yield json_of(setup.environment.get(_CONTENT, "{}"))
