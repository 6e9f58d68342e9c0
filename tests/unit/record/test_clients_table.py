"""Which program a command runs, and what it is given so that its calls come to the recorder."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ctxctl.record.clients import CLIENTS, Setup, Start, recognised, set_up
from ctxctl.record.clients.redirects import REDIRECTS
from ctxctl.record.clients.settings import json_of, variables_of

PORT = 9
RELAY = f"http://127.0.0.1:{PORT}"


def started(
    command: list[str], environment: Mapping[str, str], home: Path, *given: str
) -> tuple[Setup, Start]:
    """A command as it is run, every address at one port."""
    folder = home / "project"
    folder.mkdir(exist_ok=True)
    setup = set_up(command, {"HOME": str(home), "PATH": "/usr/bin:/bin", **environment}, given, folder=folder)
    return setup, setup.start(dict.fromkeys(setup.ways, PORT))


def written(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


def upstreams(setup: Setup) -> dict[str, str]:
    return {way.variable: way.url for way in setup.ways}


@pytest.mark.parametrize(
    ("command", "name", "at"),
    [
        (["claude", "-p", "x"], "Claude Code", 1),
        (["/opt/bin/claude"], "Claude Code", 1),
        (["env", "-u", "X", "A=b", "claude"], "Claude Code", 5),
        (["nice", "-n", "5", "timeout", "-k", "1", "60", "codex", "exec"], "Codex", 8),
        (["npx", "-y", "@openai/codex@latest", "exec"], "Codex", 3),
        (["npx", "--package", "@openai/codex", "codex", "exec"], "Codex", 4),
        (["npm", "exec", "opencode-ai", "--", "run"], "opencode", 3),
        (["bunx", "opencode-ai@1.18.33", "run"], "opencode", 2),
        (["bun", "x", "@google/gemini-cli"], "Gemini CLI", 3),
        (["pnpm", "dlx", "@qwen-code/qwen-code"], "Qwen Code", 3),
        (["uvx", "--from", "aider-chat", "aider", "x"], "aider", 4),
        (["uv", "tool", "run", "mini-swe-agent==1.0"], "mini-swe-agent", 4),
        (["pipx", "run", "aider-chat"], "aider", 3),
        (["python3.12", "-m", "aider", "--yes"], "aider", 3),
        (["python", "-m", "minisweagent.run.mini"], "mini-swe-agent", 3),
        (["node", "--no-warnings", "/x/codex.js", "exec"], "Codex", 3),
        (["A=b", "copilot"], "Copilot CLI", 2),
        (["sh", "-c", "cd x && codex exec 'a; b' | tail -1"], "Codex", None),
        (["bash", "-lc", "for i in 1 2; do A=b npx opencode-ai run x; done"], "opencode", None),
        (["npx", "-c", "claude -p x"], "Claude Code", None),
    ],
)
def test_a_program_is_recognised_however_it_is_started(
    command: list[str], name: str, at: int | None, tmp_path: Path
) -> None:
    (found,) = recognised(command, tmp_path)
    assert (found.client.name, found.at) == (name, at)


@pytest.mark.parametrize(
    "command",
    [
        [], ["python", "agent.py"], ["python", "-c", "import codex"], ["sh", "run.sh"], ["echo", "claude"],
        ["npx", "some-tool", "codex"], ["make", "claude"], ["env"], ["timeout", "60"], ["pi"],
        ["sh", "-c", "'"],
        ["cat", "codex"], ["git", "commit", "-m", "codex"], ["sh", "-c"], ["npx"], ["node"],
    ],
)  # fmt: skip
def test_what_is_no_client_is_left_alone(command: list[str], tmp_path: Path) -> None:
    assert recognised(command, tmp_path) == []


def test_a_shell_runs_several(tmp_path: Path) -> None:
    found = recognised(["sh", "-c", "claude -p a; codex exec b\nclaude -p c"], tmp_path)
    assert [one.client.name for one in found] == ["Claude Code", "Codex"]


def test_a_common_name_has_to_show_whose_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = written(tmp_path / "bin/pi", "#!/bin/sh\necho 3.14\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(script.parent))
    assert recognised(["pi"], tmp_path) == []
    (tmp_path / ".pi/agent").mkdir(parents=True)
    assert [one.client.name for one in recognised(["pi"], tmp_path)] == ["pi"]
    package = written(tmp_path / "node_modules/@earendil-works/pi-coding-agent/dist/cli.js", "")
    package.chmod(0o755)
    script.unlink()
    script.symlink_to(package)
    assert [one.client.name for one in recognised([str(script)], tmp_path / "none")] == ["pi"]


def test_a_program_from_its_sources_is_known_by_its_package(tmp_path: Path) -> None:
    written(tmp_path / "package.json", {"name": "@openai/codex"})
    script = written(tmp_path / "dist/main.js", "")
    assert [one.client.name for one in recognised(["node", str(script)], tmp_path)] == ["Codex"]


def test_every_client_has_a_way_and_advice() -> None:
    assert {client.name for client in CLIENTS} >= REDIRECTS.keys()
    assert len({name for client in CLIENTS for name in client.commands}) == sum(
        len(c.commands) for c in CLIENTS
    )
    assert all(client.way and client.advice for client in CLIENTS)


def test_nobody_else_is_given_anything(tmp_path: Path) -> None:
    setup, start = started(["python", "agent.py"], {}, tmp_path)
    assert start.command == ["python", "agent.py"]
    changed = {name for name, value in start.environment.items() if setup.environment.get(name) != value}
    assert changed == {"OPENAI_BASE_URL", "OPENAI_API_BASE", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL"}


def test_claude_whose_settings_have_an_address(tmp_path: Path) -> None:
    setup, start = started(["claude", "-p", "x"], {}, tmp_path)
    assert start.command == ["claude", "-p", "x"]
    written(
        tmp_path / ".claude/settings.json", {"env": {"ANTHROPIC_BASE_URL": "https://gate.example/claude"}}
    )
    setup, start = started(["claude", "-p", "x"], {}, tmp_path)
    assert start.command[:2] == ["claude", "--settings"]
    assert json.loads(start.command[2]) == {"env": {"ANTHROPIC_BASE_URL": f"{RELAY}/claude"}}
    assert "https://gate.example/claude" in upstreams(setup).values()
    setup, start = started(["claude", "--settings", "{}", "-p", "x"], {}, tmp_path)
    assert start.command == ["claude", "--settings", "{}", "-p", "x"]
    assert "not recorded" in setup.notes[0]


def codex_flag(start: Start) -> dict[str, Any]:
    at = start.command.index("-c")
    return tomllib.loads(start.command[at + 1])


def test_codex_is_told_with_a_flag(tmp_path: Path) -> None:
    setup, start = started(["codex", "exec", "x"], {}, tmp_path)
    assert codex_flag(start) == {"openai_base_url": f"{RELAY}/v1"}
    assert start.command[-2:] == ["exec", "x"]
    assert upstreams(setup)["Codex's openai_base_url"] == "https://api.openai.com/v1"
    setup, _ = started(["codex"], {"OPENAI_BASE_URL": "http://localhost:1/v1"}, tmp_path)
    assert upstreams(setup)["Codex's openai_base_url"] == "http://localhost:1/v1"
    setup, _ = started(["codex"], {}, tmp_path, "openai=http://localhost:2/v1")
    assert upstreams(setup)["Codex's openai_base_url"] == "http://localhost:2/v1"


def test_codex_with_a_login_goes_where_its_login_goes(tmp_path: Path) -> None:
    written(tmp_path / ".codex/auth.json", {"OPENAI_API_KEY": None, "tokens": {"access_token": "x"}})
    setup, start = started(["codex"], {"OPENAI_BASE_URL": "http://localhost:1/v1"}, tmp_path)
    assert upstreams(setup)["Codex's openai_base_url"] == "https://chatgpt.com/backend-api/codex"
    assert codex_flag(start) == {"openai_base_url": f"{RELAY}/backend-api/codex"}


def test_codex_with_a_provider_of_its_own(tmp_path: Path) -> None:
    written(
        tmp_path / ".codex/config.toml",
        'profile = "p"\n[profiles.p]\nmodel_provider = "mine"\n'
        '[model_providers.mine]\nbase_url = "https://mine.example/api"\n',
    )
    _setup, start = started(["codex", "exec"], {}, tmp_path)
    assert start.command == ["codex", "-c", f'model_providers.mine.base_url="{RELAY}/api"', "exec"]
    _setup, start = started(["codex", "exec", "-c", 'model_provider="openai"'], {}, tmp_path)
    assert codex_flag(start) == {"openai_base_url": f"{RELAY}/v1"}


def test_codex_keeps_the_flag_of_its_user(tmp_path: Path) -> None:
    command = ["codex", "exec", "-c", 'openai_base_url="https://x.example/v1"', "hello"]
    setup, start = started(command, {}, tmp_path)
    assert start.command == ["codex", "exec", "-c", f'openai_base_url="{RELAY}/v1"', "hello"]
    assert upstreams(setup)["Codex's openai_base_url"] == "https://x.example/v1"


def test_a_shell_finds_a_stand_in_that_adds_the_flag(tmp_path: Path) -> None:
    program = written(tmp_path / "bin/codex", '#!/bin/sh\nprintf "%s|" "$@"\n')
    program.chmod(0o755)
    path = f"{program.parent}:/usr/bin:/bin"
    command = ["sh", "-c", "codex exec 'a b' \"$OPENAI_API_KEY\""]
    _setup, start = started(command, {"PATH": path, "OPENAI_API_KEY": "k"}, tmp_path)
    with start:
        done = subprocess.run(
            start.command, env=start.environment, capture_output=True, text=True, check=True
        )
        made = Path(start.environment["PATH"].partition(":")[0])
        assert stat.S_IMODE(made.parent.stat().st_mode) == 0o700
    assert done.stdout == f'-c|openai_base_url="{RELAY}/v1"|exec|a b|k|'
    assert not made.exists()


def test_opencode_gets_the_spelling_that_it_needs(tmp_path: Path) -> None:
    setup, start = started(["opencode", "run"], {"ANTHROPIC_API_KEY": "k"}, tmp_path)
    assert start.environment["ANTHROPIC_BASE_URL"] == f"{RELAY}/v1"
    assert start.environment["OPENAI_BASE_URL"] == f"{RELAY}/v1"
    assert upstreams(setup)["ANTHROPIC_BASE_URL"] == "https://api.anthropic.com/v1"
    # A provider that is named in settings is offered: so Google's is not, without a key for it.
    assert "google" not in json.loads(start.environment["OPENCODE_CONFIG_CONTENT"])["provider"]


def test_opencode_keeps_its_own_settings(tmp_path: Path) -> None:
    written(
        tmp_path / ".config/opencode/opencode.jsonc",
        '{ // mine\n "provider": {"lab": {"options": {"baseURL": "{env:LAB}/v1",},},}, }',
    )
    environment = {
        "LAB": "https://lab.example", "GEMINI_API_KEY": "k", "OPENCODE_CONFIG_CONTENT": '{"theme": "dark"}',
    }  # fmt: skip
    setup, start = started(["opencode"], environment, tmp_path)
    content = json.loads(start.environment["OPENCODE_CONFIG_CONTENT"])
    assert content["theme"] == "dark"
    assert content["provider"]["lab"]["options"]["baseURL"] == f"{RELAY}/v1"
    assert content["provider"]["google"]["options"]["baseURL"] == f"{RELAY}/v1beta"
    assert upstreams(setup)["opencode's provider lab"] == "https://lab.example/v1"


def test_what_opencode_itself_has_to_refuse_stays(tmp_path: Path) -> None:
    _, start = started(["opencode"], {"OPENCODE_CONFIG_CONTENT": "{theme"}, tmp_path)
    assert start.environment["OPENCODE_CONFIG_CONTENT"] == "{theme"


def test_pi_gets_an_extension(tmp_path: Path) -> None:
    written(tmp_path / ".pi/agent/models.json", {"providers": {"lab": {"baseUrl": "https://lab.example/v1"}}})
    _setup, start = started(["npx", "@earendil-works/pi-coding-agent", "-p", "x"], {}, tmp_path)
    with start:
        assert start.command[2] == "--extension"
        text = Path(start.command[3]).read_text(encoding="utf-8")
        led = json.loads(text.partition("const led = ")[2].partition(";")[0])
        assert led == {
            "lab": f"{RELAY}/v1",
            "anthropic": RELAY,
            "openai": f"{RELAY}/v1",
            "google": f"{RELAY}/v1beta",
        }
    assert not Path(start.command[3]).exists()
    _, start = started(["npx", "@earendil-works/pi-coding-agent", "list"], {}, tmp_path)
    assert start.command[-1] == "list"
    assert "--extension" not in start.command


def test_gemini_signs_in_as_it_would_have(tmp_path: Path) -> None:
    _setup, start = started(["gemini"], {"GEMINI_API_KEY": "k"}, tmp_path)
    with start:
        home = Path(start.environment["GEMINI_CLI_HOME"])
        assert json_of(home / ".gemini/settings.json") == {
            "security": {"auth": {"selectedType": "gemini-api-key"}}
        }
        written(home / ".gemini/tmp/chat.json", {})
    # What it wrote is where it belongs, and nothing of ours is.
    assert (tmp_path / ".gemini/tmp/chat.json").exists()
    assert not (tmp_path / ".gemini/settings.json").exists()


def test_gemini_finds_its_files_through_links(tmp_path: Path) -> None:
    settings = written(tmp_path / ".gemini/settings.json", {"ui": {"theme": "x"}})
    notes = written(tmp_path / ".gemini/GEMINI.md", "old")
    written(tmp_path / ".gemini/.env", "GEMINI_API_KEY=k\n")
    _, start = started(["gemini"], {}, tmp_path)
    with start:
        folder = Path(start.environment["GEMINI_CLI_HOME"]) / ".gemini"
        assert json_of(folder / "settings.json")["ui"] == {"theme": "x"}
        assert (folder / "GEMINI.md").read_text() == "old"
        os.replace(written(folder / "new", "new"), folder / "GEMINI.md")
    assert notes.read_text() == "new"
    assert json_of(settings) == {"ui": {"theme": "x"}}


def test_gemini_without_a_way_to_sign_in_is_not_given_a_gateway(tmp_path: Path) -> None:
    _, start = started(["gemini"], {}, tmp_path)
    assert "GOOGLE_GEMINI_BASE_URL" not in start.environment
    assert start.environment["CODE_ASSIST_ENDPOINT"] == RELAY
    written(tmp_path / ".gemini/settings.json", {"security": {"auth": {"selectedType": "gemini-api-key"}}})
    _, start = started(["gemini"], {}, tmp_path)
    assert start.environment["GOOGLE_GEMINI_BASE_URL"] == RELAY
    assert "GEMINI_CLI_HOME" not in start.environment


def test_qwen_goes_where_it_would_have_gone(tmp_path: Path) -> None:
    _, start = started(["qwen"], {"OPENAI_API_KEY": "k"}, tmp_path)
    assert "OPENAI_BASE_URL" not in start.environment
    _, start = started(["qwen"], {"OPENAI_BASE_URL": "https://x.example/v1"}, tmp_path)
    assert start.environment["OPENAI_BASE_URL"] == f"{RELAY}/v1"
    settings = {
        "security": {"auth": {"baseUrl": "https://a.example/v1"}},
        "modelProviders": {"openai": [{"id": "m", "baseUrl": "https://b.example/v1", "envKey": "K"}]},
    }
    written(tmp_path / ".qwen/settings.json", settings)
    setup, start = started(["qwen"], {}, tmp_path)
    with start:
        made = json_of(Path(start.environment["QWEN_CODE_SYSTEM_SETTINGS_PATH"]))
    assert made["security"]["auth"]["baseUrl"] == f"{RELAY}/v1"
    assert made["modelProviders"]["openai"] == [{"id": "m", "baseUrl": f"{RELAY}/v1", "envKey": "K"}]
    assert {"https://a.example/v1", "https://b.example/v1"} <= set(upstreams(setup).values())


def cline_settings(**more: str) -> dict[str, Any]:
    settings = {"provider": "anthropic", "apiKey": "k", **more}
    return {"version": 1, "providers": {"anthropic": {"settings": settings, "updatedAt": "a"}}}


@pytest.mark.parametrize("base", [None, "https://gate.example/v1"])
def test_cline_gets_a_copy_and_its_own_changes_come_home(base: str | None, tmp_path: Path) -> None:
    before = cline_settings(**({"baseUrl": base} if base else {}))
    own = written(tmp_path / ".cline/data/settings/providers.json", before)
    own.chmod(0o600)
    setup, start = started(["cline", "x"], {}, tmp_path)
    assert upstreams(setup)["Cline's provider anthropic"] == (base or "https://api.anthropic.com/v1")
    with start:
        copy = Path(start.environment["CLINE_PROVIDER_SETTINGS_PATH"])
        made = json_of(copy)
        assert made["providers"]["anthropic"]["settings"]["baseUrl"] == f"{RELAY}/v1"
        assert json_of(own) == before
        made["providers"]["anthropic"]["updatedAt"] = "b"
        made["providers"]["anthropic"]["settings"]["apiKey"] = "renewed"
        written(copy, made)
    after = json_of(own)
    assert after["providers"]["anthropic"]["settings"] == before["providers"]["anthropic"]["settings"] | {
        "apiKey": "renewed"
    }
    assert after["providers"]["anthropic"]["updatedAt"] == "b"
    assert stat.S_IMODE(own.stat().st_mode) == 0o600


@pytest.mark.parametrize("word", ["--zen", "-z", "hub", "dashboard"])
def test_cline_with_its_hub_is_left_alone_and_said(word: str, tmp_path: Path) -> None:
    written(tmp_path / ".cline/data/settings/providers.json", cline_settings())
    setup, start = started(["cline", word], {}, tmp_path)
    assert not {"CLINE_PROVIDER_SETTINGS_PATH", "CLINE_SESSION_BACKEND_MODE"} & start.environment.keys()
    assert "not led to the recorder" in setup.notes[0]


CONTINUE = """\
# mine
models:
  - name: one
    provider: anthropic  # a comment
    model: m
  - provider: openai
    apiBase: "https://gate.example/v1/"
    name: two
  - name: three
    provider: elsewhere
rules:
  - be brief
"""


def test_continue_gets_a_copy_of_its_config(tmp_path: Path) -> None:
    own = written(tmp_path / ".continue/config.yaml", CONTINUE)
    setup, start = started(["npx", "@continuedev/cli", "-p", "x"], {}, tmp_path)
    with start:
        assert start.command[2] == "--config"
        text = Path(start.command[3]).read_text(encoding="utf-8")
    assert own.read_text(encoding="utf-8") == CONTINUE
    assert text == CONTINUE.replace(
        "    provider: anthropic  # a comment\n",
        f"    provider: anthropic  # a comment\n    apiBase: {RELAY}/v1/\n",
    ).replace('"https://gate.example/v1/"', f"{RELAY}/v1/")
    assert "https://gate.example/v1/" in upstreams(setup).values()


def test_copilot_stays_with_github_unless_it_has_a_provider(tmp_path: Path) -> None:
    setup, start = started(["copilot"], {}, tmp_path)
    assert "COPILOT_PROVIDER_BASE_URL" not in start.environment
    assert "not led to the recorder" in setup.notes[0]
    setup, _ = started(["copilot"], {}, tmp_path, "COPILOT_PROVIDER_BASE_URL=http://localhost:1/v1")
    assert setup.notes == []
    _setup, start = started(["copilot"], {"COPILOT_PROVIDER_BASE_URL": "https://x.example/v1"}, tmp_path)
    assert start.environment["COPILOT_PROVIDER_BASE_URL"] == f"{RELAY}/v1"


def test_goose_and_crush_have_variables_of_their_own(tmp_path: Path) -> None:
    written(tmp_path / ".config/goose/config.yaml", "OPENAI_HOST: http://localhost:7\n")
    setup, start = started(["goose", "run"], {}, tmp_path)
    assert upstreams(setup)["OPENAI_HOST"] == "http://localhost:7"
    assert start.environment["ANTHROPIC_HOST"] == start.environment["OPENAI_HOST"] == RELAY
    _, start = started(["crush"], {}, tmp_path)
    assert start.environment["OPENAI_API_ENDPOINT"] == f"{RELAY}/v1"


ODD = json.dumps(
    {
        "env": [], "security": {"auth": 7},
        "modelProviders": {"openai": 7, "x": [1, {"baseUrl": 5}]},
        "provider": {"anthropic": 7, "x": {"options": {"baseURL": []}}}, "tokens": 1, "lastUsedProvider": 9,
        "providers": {"anthropic": {"settings": 3}, "lab": {"baseUrl": "ftp://x"}, "y": {"baseUrl": ""}},
        "profiles": 1,
    }
)  # fmt: skip


@pytest.mark.parametrize(
    "text", ["[", "{", '{"providers": 7}', "\x00", "null", "[" * 9000, '{"provider": {"a": 1}}', ODD]
)
def test_settings_that_are_none_disturb_nothing(text: str, tmp_path: Path) -> None:
    for place in (
        ".claude/settings.json", ".codex/config.toml", ".codex/auth.json", ".config/opencode/opencode.json",
        ".pi/agent/models.json", ".gemini/settings.json", ".qwen/settings.json", ".continue/config.yaml",
        ".cline/data/settings/providers.json", ".config/goose/config.yaml", ".local/share/opencode/auth.json",
    ):  # fmt: skip
        written(tmp_path / place, text)
    for client in CLIENTS:
        environment = {"GEMINI_API_KEY": "k", "OPENCODE_CONFIG_CONTENT": text.replace("\0", "")}
        _, start = started(["npx", client.packages[0], "x"], environment, tmp_path)
        start.close()
        assert start.command[-1] == "x"


def test_a_dot_env_is_the_nearest_one(tmp_path: Path) -> None:
    inner = tmp_path / "a/b"
    inner.mkdir(parents=True)
    written(tmp_path / ".env", "X=far\n")
    written(tmp_path / "a/.env", "export X='near' \nY = 2\n")
    assert variables_of(inner, tmp_path, ".gemini") == {"X": "near", "Y": "2"}
