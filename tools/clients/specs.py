"""The clients: what is installed, the settings of a user who has a provider of his own, and two prompts."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

FIRST: Final = "[task A] Look around and say what notes.txt is about."
SECOND: Final = "[task B] Look again and say how many lines it has."
_KEY: Final = "sk-nobody"


class Spec(NamedTuple):
    """One client.

    Attributes:
        name: As in `ctxctl.record.clients.CLIENTS`.
        package: Of npm or PyPI; with `also` beside it.
        npm: It is npm's.
        command: What is run.
        family: The provider that it asks here.
        own: Writes the settings that name the stand-in's address into a home; returns variables.
        bare: The same without any address.
        first: Arguments with `{prompt}`.
        second: Of the second prompt, which goes on with the first one's session where the client can.
        version: Installed where the newest cannot be.
    """

    name: str
    package: str
    npm: bool
    command: str
    family: str
    own: Callable[[Path, str], Mapping[str, str]]
    bare: Callable[[Path], Mapping[str, str]]
    first: tuple[str, ...]
    second: tuple[str, ...]
    version: str = ""
    also: tuple[str, ...] = ()


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _claude(home: Path, url: str) -> Mapping[str, str]:
    _write(home / ".claude/settings.json", json.dumps({"env": {"ANTHROPIC_BASE_URL": url}}))
    return _claude_bare(home)


def _claude_bare(home: Path) -> Mapping[str, str]:
    return {"ANTHROPIC_API_KEY": _KEY, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}


def _codex(home: Path, url: str) -> Mapping[str, str]:
    provider = f'name = "Mine"\nbase_url = "{url}/v1"\nenv_key = "MINE_API_KEY"\nwire_api = "responses"\n'
    text = f'model = "gpt-5"\nmodel_provider = "mine"\n[model_providers.mine]\n{provider}'
    _write(home / ".codex/config.toml", text)
    return {"MINE_API_KEY": _KEY}


def _codex_bare(home: Path) -> Mapping[str, str]:
    _write(home / ".codex/config.toml", 'model = "gpt-5"\n')
    return {"OPENAI_API_KEY": _KEY, "CODEX_API_KEY": _KEY}


def _opencode(home: Path, url: str) -> Mapping[str, str]:
    settings = {"provider": {"anthropic": {"options": {"baseURL": f"{url}/v1"}}}}
    _write(home / ".config/opencode/opencode.json", json.dumps(settings))
    return _opencode_bare(home)


def _opencode_bare(home: Path) -> Mapping[str, str]:
    return {"ANTHROPIC_API_KEY": _KEY}


def _pi(home: Path, url: str) -> Mapping[str, str]:
    _write(home / ".pi/agent/models.json", json.dumps({"providers": {"anthropic": {"baseUrl": url}}}))
    return _opencode_bare(home)


def _copilot(home: Path, url: str) -> Mapping[str, str]:
    return {
        "COPILOT_PROVIDER_BASE_URL": f"{url}/v1", "COPILOT_PROVIDER_TYPE": "openai",
        "COPILOT_PROVIDER_API_KEY": _KEY, "COPILOT_MODEL": "gpt-5",
    }  # fmt: skip


def _copilot_bare(home: Path) -> Mapping[str, str]:
    # Without an address it is GitHub's, which asks for a login.
    return {}


def _gemini(home: Path, url: str) -> Mapping[str, str]:
    settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    _write(home / ".gemini/settings.json", json.dumps(settings))
    return {"GEMINI_API_KEY": _KEY, "GOOGLE_GEMINI_BASE_URL": url}


def _gemini_bare(home: Path) -> Mapping[str, str]:
    return {"GEMINI_API_KEY": _KEY}


def _qwen(home: Path, url: str) -> Mapping[str, str]:
    auth = {"selectedType": "openai", "baseUrl": f"{url}/v1", "apiKey": _KEY}
    _write(
        home / ".qwen/settings.json", json.dumps({"security": {"auth": auth}, "model": {"name": "gpt-4o"}})
    )
    return {}


def _qwen_bare(home: Path) -> Mapping[str, str]:
    return {"OPENAI_API_KEY": _KEY, "OPENAI_MODEL": "gpt-4o"}


def _cline(home: Path, url: str) -> Mapping[str, str]:
    return _cline_settings(home, {"baseUrl": f"{url}/v1"})


def _cline_bare(home: Path) -> Mapping[str, str]:
    return _cline_settings(home, {})


def _cline_settings(home: Path, more: Mapping[str, str]) -> Mapping[str, str]:
    settings = {"provider": "anthropic", "apiKey": _KEY, "model": "claude-sonnet-4-5", **more}
    provider = {"settings": settings, "updatedAt": "2026-01-01T00:00:00.000Z", "tokenSource": "manual"}
    whole = {"version": 1, "lastUsedProvider": "anthropic", "modes": {}, "providers": {"anthropic": provider}}
    _write(home / ".cline/data/settings/providers.json", json.dumps(whole))
    # Without a hub, which would outlive the run.
    return {"CLINE_SESSION_BACKEND_MODE": "local"}


def _continue(home: Path, url: str) -> Mapping[str, str]:
    return _continue_settings(home, f"    apiBase: {url}/v1/\n")


def _continue_bare(home: Path) -> Mapping[str, str]:
    return _continue_settings(home, "")


def _continue_settings(home: Path, base: str) -> Mapping[str, str]:
    model = (
        f"  - name: sonnet\n    provider: anthropic\n    model: claude-sonnet-4-5\n    apiKey: {_KEY}\n{base}"
    )
    _write(home / ".continue/config.yaml", f"name: Mine\nversion: 1.0.0\nschema: v1\nmodels:\n{model}")
    return {"CONTINUE_TELEMETRY_ENABLED": "0"}


def _litellm(home: Path) -> Mapping[str, str]:
    return {
        "OPENAI_API_KEY": _KEY, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "MSWEA_CONFIGURED": "true",
        "MSWEA_COST_TRACKING": "ignore_errors",
    }  # fmt: skip


def _aider(home: Path, url: str) -> Mapping[str, str]:
    return {**_litellm(home), "OPENAI_API_BASE": f"{url}/v1"}


def _mini(home: Path, url: str) -> Mapping[str, str]:
    return {**_litellm(home), "OPENAI_BASE_URL": f"{url}/v1"}


_AIDER: Final = (
    "--model", "openai/gpt-4o", "--yes-always", "--no-show-release-notes", "--no-check-update", "--no-pretty",
    "--analytics-disable", "--map-tokens", "0", "--message", "{prompt}", "notes.txt",
)  # fmt: skip

SPECS: Final = (
    Spec("Claude Code", "@anthropic-ai/claude-code", True, "claude", "anthropic", _claude, _claude_bare,
         ("-p", "--allowedTools", "Bash", "--", "{prompt}"),
         ("-p", "-c", "--allowedTools", "Bash", "--", "{prompt}")),
    Spec("Codex", "@openai/codex", True, "codex", "openai", _codex, _codex_bare,
         ("exec", "--skip-git-repo-check", "{prompt}"),
         ("exec", "--skip-git-repo-check", "resume", "--last", "{prompt}")),
    Spec("opencode", "opencode-ai", True, "opencode", "anthropic", _opencode, _opencode_bare,
         ("run", "-m", "anthropic/claude-sonnet-4-5", "{prompt}"),
         ("run", "-c", "-m", "anthropic/claude-sonnet-4-5", "{prompt}")),
    # What the newest one depends on was not in the registry.
    Spec("pi", "@earendil-works/pi-coding-agent", True, "pi", "anthropic", _pi, _opencode_bare,
         ("-p", "--provider", "anthropic", "--model", "claude-sonnet-4-5", "{prompt}"),
         ("-p", "-c", "--provider", "anthropic", "--model", "claude-sonnet-4-5", "{prompt}"),
         version="0.87.1"),
    Spec("Copilot CLI", "@github/copilot", True, "copilot", "openai", _copilot, _copilot_bare,
         ("--allow-all", "-p", "{prompt}"), ("--allow-all", "--continue", "-p", "{prompt}")),
    Spec("Gemini CLI", "@google/gemini-cli", True, "gemini", "gemini", _gemini, _gemini_bare,
         ("-m", "gemini-2.5-pro", "--yolo", "--skip-trust", "-p", "{prompt}"),
         ("-m", "gemini-2.5-pro", "--yolo", "--skip-trust", "--resume", "latest", "-p", "{prompt}")),
    Spec("Qwen Code", "@qwen-code/qwen-code", True, "qwen", "openai", _qwen, _qwen_bare,
         ("--yolo", "-p", "{prompt}"), ("--yolo", "--continue", "-p", "{prompt}")),
    Spec("Cline", "cline", True, "cline", "anthropic", _cline, _cline_bare, ("{prompt}",), ("{prompt}",)),
    Spec("Continue", "@continuedev/cli", True, "cn", "anthropic", _continue, _continue_bare,
         ("-p", "--auto", "{prompt}"), ("-p", "--auto", "--resume", "{prompt}")),
    Spec("aider", "aider-chat", False, "aider", "openai", _aider, _litellm, _AIDER,
         ("--restore-chat-history", *_AIDER)),
    Spec("mini-swe-agent", "mini-swe-agent", False, "mini", "openai", _mini, _litellm,
         ("-m", "openai/gpt-4o", "-y", "--exit-immediately", "-o", "out.json", "-t", "{prompt}"),
         ("-m", "openai/gpt-4o", "-y", "--exit-immediately", "-o", "out.json", "-t", "{prompt}"),
         also=("mcp",)),
)  # fmt: skip
