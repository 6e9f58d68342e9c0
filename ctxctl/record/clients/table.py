"""The table of programs."""

from __future__ import annotations

from typing import Final, NamedTuple


class Client(NamedTuple):
    """A program that is known.

    Attributes:
        name: As its makers write it.
        commands: What it is called by, without an ending.
        packages: Of npm, PyPI and the like; the modules of Python for `python -m`.
        way: How it is led to the relay, in words.
        advice: What to do where nothing came by.
        sure: False: other programs have such a name, too, so a file of that name has to show whose it is.
        home: Directory under the user's home that it makes: shows that a program of its name is meant.
    """

    name: str
    commands: tuple[str, ...]
    packages: tuple[str, ...]
    way: str
    advice: str
    sure: bool = True
    home: str = ""


_VARIABLES: Final = "the providers' variables"

CLIENTS: Final = (
    Client(
        "Claude Code", ("claude",), ("@anthropic-ai/claude-code",),
        "`ANTHROPIC_BASE_URL`; where its settings hold one of their own, `--settings`",
        "with Bedrock, Vertex or Foundry it asks no server that could be recorded; its own log can be: "
        "ctxctl record --watch ~/.claude/projects",
    ),
    Client(
        "Codex", ("codex",), ("@openai/codex",),
        "`-c openai_base_url=…`, or `-c model_providers.NAME.base_url=…` of the provider that it is set to",
        "a provider of your own needs its base_url in config.toml; its own log can be recorded: "
        "ctxctl record --watch ~/.codex/sessions",
    ),
    Client(
        "opencode", ("opencode",), ("opencode-ai",),
        "the providers' variables, Anthropic's with `/v1`; addresses of its own settings by "
        "`OPENCODE_CONFIG_CONTENT`",
        "a provider that opencode.json does not name is reached at its own address: write its "
        "`options.baseURL` there, and it is led to the recorder",
    ),
    Client(
        "pi", ("pi",), ("@earendil-works/pi-coding-agent", "@mariozechner/pi-coding-agent"),
        "an extension in a temporary folder, by `--extension`",
        "providers other than Anthropic, OpenAI, Google and those of models.json are reached at their own "
        "addresses: write a `baseUrl` for yours there, and it is led to the recorder",
        sure=False, home=".pi/agent",
    ),
    Client(
        "Copilot CLI", ("copilot",), ("@github/copilot",),
        "`COPILOT_PROVIDER_BASE_URL`, where it is set",
        "with GitHub's own models it signs in to GitHub's server, which is not led to the recorder; its own "
        "log can be recorded: ctxctl record --watch ~/.copilot/session-state",
    ),
    Client(
        "Gemini CLI", ("gemini",), ("@google/gemini-cli",),
        "`GOOGLE_GEMINI_BASE_URL`, with Google's login `CODE_ASSIST_ENDPOINT`; where its settings do not say "
        "how to sign in, a directory of links to them by `GEMINI_CLI_HOME`",
        "choose how to sign in first (`gemini`, then `/auth`), and then record",
    ),
    Client(
        "Qwen Code", ("qwen",), ("@qwen-code/qwen-code",),
        "`OPENAI_BASE_URL`, where it is set; addresses of its settings by `QWEN_CODE_SYSTEM_SETTINGS_PATH`",
        "with Qwen's login it goes to an address that the login names: give one that you choose, as "
        "--upstream openai=URL",
    ),
    Client(
        "Cline", ("cline",), ("cline",),
        "a copy of its providers' settings in a temporary folder, by `CLINE_PROVIDER_SETTINGS_PATH`, "
        "without its hub",
        "Cline's own models are asked at its own server, which is not led to the recorder; with a provider "
        "of yours (cline auth) they are recorded",
    ),
    Client(
        "Continue", ("cn",), ("@continuedev/cli",),
        "a copy of its config.yaml in a temporary folder, by `--config`",
        "models of its hub, and a config that is not in ~/.continue, are not led to the recorder: give yours "
        "with --config FILE",
        sure=False, home=".continue",
    ),
    Client(
        "aider", ("aider",), ("aider-chat", "aider"), _VARIABLES,
        "an address in .aider.conf.yml or .env goes before the variable: give it as --upstream openai=URL "
        "instead",
    ),
    Client(
        "mini-swe-agent", ("mini", "mini-swe-agent", "mini-extra"), ("mini-swe-agent", "minisweagent"),
        _VARIABLES,
        "an `api_base` in its configuration goes before the variable: give it as --upstream openai=URL "
        "instead",
    ),
    Client(
        "Goose", ("goose",), ("goose",), "`ANTHROPIC_HOST`, `OPENAI_HOST`",
        "its other providers have variables of their own: give one as --upstream NAME=URL",
    ),
    Client(
        "Crush", ("crush",), ("@charmland/crush",), "`ANTHROPIC_API_ENDPOINT`, `OPENAI_API_ENDPOINT`, "
        "`GEMINI_API_ENDPOINT`",
        "a `base_url` in crush.json goes before the variable",
    ),
    Client(
        "Amp", ("amp",), ("@sourcegraph/amp", "@ampcode/cli"), "not at all: its own server asks the models",
        "its own server asks the models, so no request can be recorded here",
    ),
)  # fmt: skip
"""Every program that is known; `ways` has what is done for it."""
