"""Codex: it reads its address from its settings alone, which `-c` goes before."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import orjson

from ctxctl.record.clients.settings import json_of, toml_of

if TYPE_CHECKING:
    from ctxctl.record.clients.setup import Ready, Setup, Start

_LOGIN: Final = "https://chatgpt.com/backend-api/codex"
"""Where it goes with a login of ChatGPT's instead of a key."""
_OPENAI: Final = "openai"
_PROFILE: Final = ("-p", "--profile")
_CONFIG: Final = ("-c", "--config")


def prepare(setup: Setup, arguments: Sequence[str]) -> Ready | None:
    """Lead the provider that it is set to: `openai_base_url`, or the `base_url` of one of the user's own.

    `OPENAI_BASE_URL`, which Codex 0.169 does not read, is taken for the user's word on where OpenAI's calls
    go, as it is for every program; not with a login of ChatGPT's, which no other server takes.
    """
    home = setup.path("CODEX_HOME", ".codex")
    settings = toml_of(home / "config.toml")
    given = _given(arguments)
    profile = _after(arguments, _PROFILE) or given.get("profile") or settings.get("profile")
    chosen = _table(_table(settings, "profiles"), profile) | (
        toml_of(home / f"{profile}.config.toml") if isinstance(profile, str) and "/" not in profile else {}
    )
    provider = (
        given.get("model_provider")
        or chosen.get("model_provider")
        or settings.get("model_provider")
        or _OPENAI
    )
    if not isinstance(provider, str):
        return None
    key = "openai_base_url" if provider == _OPENAI else f"model_providers.{provider}.base_url"
    url = given.get(key)
    if url is None and provider == _OPENAI:
        url = chosen.get(key) or settings.get(key) or _usual(setup, json_of(home / "auth.json"))
    elif url is None:
        tables = (_table(one, "model_providers") for one in (chosen, settings))
        url = next((found for table in tables if (found := _table(table, provider).get("base_url"))), None)
    if isinstance(url, str) and url.startswith("$"):
        return None  # a shell puts a variable there, which may be one of those that are led
    route = setup.lead(f"Codex's {key}", url) if isinstance(url, str) else None
    if route is None:
        return None

    def ready(start: Start) -> None:
        quoted = orjson.dumps(start.address(route)).decode()
        if key in given:
            # Of two the last one counts, and that is the user's.
            for word, following in pairwise(arguments):
                if word in _CONFIG and following.partition("=")[0].strip() == key:
                    start.replace(following, f"{key}={quoted}")
        else:
            start.argue("-c", f"{key}={quoted}")

    return ready


def _usual(setup: Setup, login: dict[str, Any]) -> str:
    signed_in = isinstance(login.get("tokens"), dict) and not login.get("OPENAI_API_KEY")
    if signed_in and not setup.environment.get("CODEX_API_KEY"):
        return setup.given.get("openai", _LOGIN)
    return setup.address("openai")


def _given(arguments: Sequence[str]) -> dict[str, Any]:
    """Settings among the arguments: `-c KEY=VALUE`, the value in TOML or a bare text."""
    found: dict[str, Any] = {}
    for word, following in pairwise(arguments):
        if word in _CONFIG and "=" in following:
            key, _, value = following.partition("=")
            try:
                found[key.strip()] = tomllib.loads(f"x = {value}")["x"]
            except tomllib.TOMLDecodeError:
                found[key.strip()] = value.strip()
    return found


def _after(arguments: Sequence[str], names: Sequence[str]) -> str | None:
    return next((arguments[n + 1] for n, word in enumerate(arguments[:-1]) if word in names), None)


def _table(value: Any, key: Any) -> dict[str, Any]:
    found = value.get(key) if isinstance(value, dict) and isinstance(key, str) else None
    return found if isinstance(found, dict) else {}
