"""How each known program is redirected to the relay: what it reads, in which order, what it gets instead."""

from __future__ import annotations

import re
import shutil
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson

from ctxctl.record.clients.settings import (
    json_of,
    merged_with,
    put_at,
    text_of,
    toml_of,
    value_at,
    variables_of,
    write_over,
)
from ctxctl.record.clients.setup import Setup, with_version

if TYPE_CHECKING:
    from ctxctl.record.clients.setup import Ready, Start
    from ctxctl.record.proxy.upstreams import Route


_CONTENT: Final = "OPENCODE_CONFIG_CONTENT"
_NAMES: Final = ("config.json", "opencode.json", "opencode.jsonc")
_VARIABLE: Final = re.compile(r"\{env:([^}]+)\}")
_GOOGLE: Final = ("GOOGLE_GENERATIVE_AI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY")
_KNOWN: Final = {"opencode": "https://opencode.ai/zen/v1", "openrouter": "https://openrouter.ai/api/v1"}
"""Providers of opencode's that are offered without a setting, and read no variable."""


def opencode(setup: Setup, arguments: Sequence[str]) -> Ready | None:
    """opencode reads variables as its SDKs spell them, and addresses in settings, which go before.

    Redirected are the providers that its settings name, and those it has a key for.  It offers every provider
    that a setting names: so none is named here that would not be offered anyway.
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
    routes = {name: setup.redirect(f"opencode's provider {name}", url) for name, url in urls.items()}

    def ready(start: Start) -> None:
        given = setup.environment.get(_CONTENT, "").strip()
        content = json_of(given) if given else {}
        if given and not content and given != "{}":
            return  # opencode says what is wrong with it
        for name, route in routes.items():
            if route is not None:
                put_at(content, ("provider", name, "options", "baseURL"), start.address(route))
        start.environment[_CONTENT] = orjson.dumps(content).decode()

    return ready


def _configured(setup: Setup) -> Iterator[tuple[str, str]]:
    """Yield the providers with an address, from the weakest settings on."""
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


Json = dict[str, Any]
_LOGIN: Final = "https://chatgpt.com/backend-api/codex"
"""Where Codex goes with a ChatGPT login instead of a key."""
_OPENAI: Final = "openai"
_PROFILE: Final = ("-p", "--profile")
_CONFIG: Final = ("-c", "--config")


def codex(setup: Setup, arguments: Sequence[str]) -> Ready | None:
    """Codex reads its address from settings alone; `-c` goes before them, and sets the provider's `base_url`.

    `OPENAI_BASE_URL`, which Codex 0.169 does not read, says where the user sends OpenAI's calls, as for every
    program; but not with a ChatGPT login, which no other server takes.
    """
    home = setup.path("CODEX_HOME", ".codex")
    settings = toml_of(home / "config.toml")
    given = _given(arguments)
    profile = _option_value(arguments, _PROFILE) or given.get("profile") or settings.get("profile")
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
        return None  # a shell puts a variable there, which may be redirected itself
    route = setup.redirect(f"Codex's {key}", url)
    if route is None:
        return None

    def ready(start: Start) -> None:
        quoted = orjson.dumps(start.address(route)).decode()
        if key in given:
            # Of two settings the last one counts, which is the user's.
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
    """Return the settings among the arguments: `-c KEY=VALUE`, the value in TOML or as bare text."""
    found: dict[str, Any] = {}
    for word, following in pairwise(arguments):
        if word in _CONFIG and "=" in following:
            key, _, value = following.partition("=")
            try:
                found[key.strip()] = tomllib.loads(f"x = {value}")["x"]
            except tomllib.TOMLDecodeError:
                found[key.strip()] = value.strip()
    return found


def _option_value(arguments: Sequence[str], names: Sequence[str]) -> str | None:
    """Return the argument behind the first of these options."""
    return next((arguments[n + 1] for n, word in enumerate(arguments[:-1]) if word in names), None)


def _table(value: Any, key: Any) -> dict[str, Any]:
    found = value.get(key) if isinstance(value, dict) and isinstance(key, str) else None
    return found if isinstance(found, dict) else {}


def overlaid(start: Start, name: str, real: Path, files: Mapping[str, bytes]) -> Path:
    """Make a directory of links to the program's own one, in which some files are replaced.

    What the program adds or writes anew goes to its own directory when it has ended.

    Args:
        start: The start of the program.
        name: The directory's name, below the folder of this run.
        real: The program's own directory, which may be missing.
        files: The replaced files, by name: the program's changes to these are not kept.
    """
    folder = start.file(f"{name}/.ctxctl", b"").parent
    (folder / ".ctxctl").unlink()
    for there in real.iterdir() if real.is_dir() else ():
        if there.name not in files:
            (folder / there.name).symlink_to(there.absolute())
    for file, data in files.items():
        start.file(f"{name}/{file}", data)
    start.at_end(partial(_bring_home, folder, real, frozenset(files)))
    return folder


def _bring_home(folder: Path, real: Path, ours: frozenset[str]) -> None:
    new = [one for one in folder.iterdir() if one.name not in ours and not one.is_symlink()]
    if new:
        real.mkdir(mode=0o700, parents=True, exist_ok=True)
    for one in new:
        own = real / one.name
        if not own.exists():
            shutil.move(one, own)
        elif one.is_file() and own.is_file():
            write_over(own, one.read_bytes())


def claude(setup: Setup, arguments: Sequence[str]) -> Ready | None:
    """Claude Code reads `env` of its settings before the environment, and `--settings` before both."""
    name = "ANTHROPIC_BASE_URL"
    own = setup.path("CLAUDE_CONFIG_DIR", ".claude")
    files = [
        own / "settings.json",
        *(setup.folder / ".claude" / f for f in ("settings.json", "settings.local.json")),
    ]
    given = _option_value(arguments, ("--settings",))
    url = None
    for settings in (*map(json_of, files), _settings_given(setup, given)):
        env = settings.get("env")
        found = env.get(name) if isinstance(env, dict) else None
        url = found if isinstance(found, str) and found.strip() else url
    if url is None:
        return None
    route = setup.redirect(f"Claude Code's setting env.{name}", url)
    if route is None or given is not None:
        # Two `--settings` are not merged.
        setup.notes.append(f"Claude Code's settings hold {name}: what goes there is not recorded")
        return None

    def ready(start: Start) -> None:
        start.argue("--settings", orjson.dumps({"env": {name: start.address(route)}}).decode())

    return ready


def _settings_given(setup: Setup, given: str | None) -> Json:
    if given is None:
        return {}
    return json_of(given) if given.lstrip().startswith("{") else json_of(setup.folder / given)


_PI: Final = {"anthropic": "anthropic", "openai": "openai", "google": "gemini"}
_PI_OTHER: Final = frozenset(("install", "remove", "uninstall", "update", "list", "config"))


def pi(setup: Setup, arguments: Sequence[str]) -> Ready | None:
    """pi reads no variable: an extension gives it the addresses of providers, as users' own extensions do."""
    if arguments and arguments[0] in _PI_OTHER:
        return None
    routes: dict[str, Route] = {}
    own = json_of(setup.path("PI_CODING_AGENT_DIR", ".pi", "agent") / "models.json").get("providers")
    for name, provider in own.items() if isinstance(own, dict) else ():
        url = provider.get("baseUrl") if isinstance(provider, dict) else None
        route = setup.redirect(f"pi's provider {name}", url)
        if route is not None:
            routes[name] = route
    for name, family in _PI.items():
        if name not in routes:
            url = setup.address(family)
            route = setup.redirect(
                f"pi's provider {name}", with_version(url, family) if family == "gemini" else url
            )
            if route is not None:
                routes[name] = route

    def ready(start: Start) -> None:
        addresses = {name: start.address(route) for name, route in routes.items()}
        path = start.file("ctxctl-record.js", _EXTENSION % orjson.dumps(addresses))
        start.argue("--extension", str(path))

    return ready


_EXTENSION: Final = b"""// Made by `ctxctl record` for one run: leads the providers' addresses to its relay.
const led = %b;
export default function (pi) {
  if (typeof pi.registerProvider !== "function") return;
  for (const [name, baseUrl] of Object.entries(led)) pi.registerProvider(name, { baseUrl });
}
"""


def gemini(setup: Setup, arguments: Sequence[str]) -> Ready | None:
    """Gemini CLI takes `GOOGLE_GEMINI_BASE_URL` for a gateway where no setting says how to sign in.

    So the way to sign in that it would choose is put into its settings, in a directory of links to its own
    (seen in 0.61).  Where that is unknown, the variable stays unset.
    """
    setup.export("CODE_ASSIST_ENDPOINT", "https://cloudcode-pa.googleapis.com")
    own = setup.path("GEMINI_CLI_HOME", ".") / ".gemini"
    system = setup.environment.get("GEMINI_CLI_SYSTEM_SETTINGS_PATH", "/etc/gemini-cli/settings.json")
    defaults = setup.environment.get(
        "GEMINI_CLI_SYSTEM_DEFAULTS_PATH", "/etc/gemini-cli/system-defaults.json"
    )
    places = (defaults, own / "settings.json", setup.folder / ".gemini" / "settings.json", system)
    if any(value_at(json_of(place), "security", "auth", "selectedType") for place in places):
        return None
    known = {**variables_of(setup.folder, setup.home, ".gemini"), **setup.environment}
    if known.get("GOOGLE_GENAI_USE_GCA") == "true" or known.get("GOOGLE_GENAI_USE_VERTEXAI") == "true":
        return None
    if not known.get("GEMINI_API_KEY"):
        setup.withhold("GOOGLE_GEMINI_BASE_URL")
        if setup.chosen("gemini") is None:
            setup.notes.append(
                "Gemini CLI has no key that can be seen: of its ways, Google's login is recorded"
            )
        return None
    settings = merged_with(
        json_of(own / "settings.json"), {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    )

    def ready(start: Start) -> None:
        folder = overlaid(start, "home/.gemini", own, {"settings.json": orjson.dumps(settings)})
        start.environment["GEMINI_CLI_HOME"] = str(folder.parent)

    return ready


def qwen(setup: Setup, arguments: Sequence[str]) -> Ready | None:
    """Qwen Code goes to the address in its settings, else to Alibaba's."""
    setup.withhold("OPENAI_BASE_URL")
    setup.withhold("OPENAI_API_BASE")
    system = setup.environment.get("QWEN_CODE_SYSTEM_SETTINGS_PATH", "/etc/qwen-code/settings.json")
    merged: Json = {}
    for place in (setup.home / ".qwen/settings.json", setup.folder / ".qwen/settings.json", system):
        merged = merged_with(merged, json_of(place))
    routes: list[tuple[tuple[Any, ...], Route]] = []
    spots: list[tuple[Any, ...]] = [("security", "auth", "baseUrl")]
    providers = merged.get("modelProviders")
    for kind, models in providers.items() if isinstance(providers, dict) else ():
        count = len(models) if isinstance(models, list) else 0
        spots += [("modelProviders", kind, n, "baseUrl") for n in range(count)]
    for spot in spots:
        url = value_at(merged, *spot)
        route = setup.redirect(f"Qwen Code's {'.'.join(map(str, spot))}", url or None)
        if route is not None:
            routes.append((spot, route))
    if not routes:
        return None

    def ready(start: Start) -> None:
        # Only the system's settings are stronger than a project's; lists in them are not merged.
        made = merged_with(json_of(system), {k: merged[k] for k in ("modelProviders",) if k in merged})
        for spot, route in routes:
            put_at(made, spot, start.address(route))
        path = start.file("qwen-settings.json", orjson.dumps(made))
        start.environment["QWEN_CODE_SYSTEM_SETTINGS_PATH"] = str(path)

    return ready


_CLINE: Final = {"anthropic": "anthropic", "openai": "openai", "openai-native": "openai", "gemini": "gemini"}


_CLINE_HUB: Final = frozenset(("--zen", "-z", "hub", "dashboard", "kanban", "connect", "schedule"))


def cline(setup: Setup, arguments: Sequence[str]) -> Ready | None:
    """Cline keeps addresses in one file, whose place a variable names: it gets a copy with the relay's.

    Cline also writes to the file (renewed tokens): its changes go to its own file at the end.
    """
    if any(word in _CLINE_HUB for word in arguments):
        setup.notes.append("Cline's hub asks by itself: it is not led to the recorder")
        return None
    path = setup.path("CLINE_PROVIDER_SETTINGS_PATH", "-")
    if not setup.environment.get("CLINE_PROVIDER_SETTINGS_PATH"):
        if _option_value(arguments, ("--config", "--data-dir")) is not None:
            setup.notes.append("Cline with --config or --data-dir is not led to the recorder")
            return None
        data = setup.path("CLINE_DATA_DIR", ".cline", "data")
        if setup.environment.get("CLINE_DIR") and not setup.environment.get("CLINE_DATA_DIR"):
            data = setup.path("CLINE_DIR") / "data"
        path = data / "settings" / "providers.json"
    before = json_of(path)
    providers = before.get("providers")
    routes: dict[str, Route] = {}
    for name, provider in providers.items() if isinstance(providers, dict) else ():
        settings = provider.get("settings") if isinstance(provider, dict) else None
        if not isinstance(settings, dict):
            continue
        family = _CLINE.get(name)
        url = settings.get("baseUrl") or (with_version(setup.address(family), family) if family else None)
        route = setup.redirect(f"Cline's provider {name}", url)
        if route is not None:
            routes[name] = route
    return partial(_cline_ready, path, before, routes) if routes else None


def _cline_ready(path: Path, before: Json, routes: Mapping[str, Route], start: Start) -> None:
    made = orjson.loads(orjson.dumps(before))
    for name, route in routes.items():
        made["providers"][name]["settings"]["baseUrl"] = start.address(route)
    copy = start.file("cline-providers.json", orjson.dumps(made))
    start.environment["CLINE_PROVIDER_SETTINGS_PATH"] = str(copy)
    # A running hub has the addresses as they were, and one that starts here would keep the relay's.
    start.environment.setdefault("CLINE_SESSION_BACKEND_MODE", "local")

    def put_back() -> None:
        after = json_of(copy)
        if not after or after == made or json_of(path) != before:
            return
        for name, route in routes.items():
            settings = value_at(after, "providers", name, "settings")
            if not isinstance(settings, dict) or settings.get("baseUrl") != start.address(route):
                continue
            was = value_at(before, "providers", name, "settings", "baseUrl")
            if was is None:
                del settings["baseUrl"]
            else:
                settings["baseUrl"] = was
        write_over(path, orjson.dumps(after, option=orjson.OPT_INDENT_2) + b"\n")

    start.at_end(put_back)


_CONTINUE: Final = {"anthropic": "anthropic", "openai": "openai", "gemini": "gemini"}
_MODEL: Final = re.compile(r"^([ \t]*)-[ \t]+\S", re.MULTILINE)
_PROVIDER: Final = re.compile(
    r"^([ \t]*(?:-[ \t]+)?)provider:[ \t]*[\"']?([\w-]+)[\"']?[ \t]*(?:#.*)?$", re.MULTILINE
)
_BASE: Final = re.compile(r"^([ \t]*(?:-[ \t]+)?apiBase:[ \t]*)[\"']?([^\s\"'#]+)[\"']?", re.MULTILINE)


def continue_cli(setup: Setup, arguments: Sequence[str]) -> Ready | None:
    """Continue reads addresses from config.yaml alone: it gets a copy with the relay's.

    Only the lines `apiBase:` and `provider:` of the file are touched.
    """
    given = _option_value(arguments, ("--config",))
    usual = setup.path("CONTINUE_GLOBAL_DIR", ".continue") / "config.yaml"
    text = text_of(setup.folder / given if given is not None else usual)
    if not text:
        return None
    pieces: list[str | Route] = []
    for block in re.split(r"(?m)^(?=[ \t]*-[ \t]+\S)", text):
        base, provider = _BASE.search(block), _PROVIDER.search(block)
        family = _CONTINUE.get(provider[2]) if provider is not None else None
        url = (
            base[2]
            if base is not None
            else with_version(setup.address(family), family) + "/"
            if family
            else None
        )
        route = setup.redirect(f"Continue's model {len(pieces) + 1}", url)
        if route is None:
            pieces.append(block)
        elif base is not None:
            pieces += [block[: base.end(1)], route, block[base.end() :]]
        elif provider is not None:
            indent = " " * len(provider[1])
            pieces += [block[: provider.end()], f"\n{indent}apiBase: ", route, block[provider.end() :]]
    if not any(not isinstance(piece, str) for piece in pieces):
        return None

    def ready(start: Start) -> None:
        made = "".join(p if isinstance(p, str) else start.address(p) for p in pieces)
        path = start.file("continue-config.yaml", made.encode())
        if given is None:
            start.argue("--config", str(path))
        else:
            start.replace(given, str(path))

    return ready


def copilot(setup: Setup, arguments: Sequence[str]) -> Ready | None:
    """Copilot CLI is redirected only with the user's own provider: the variable makes it leave GitHub."""
    if setup.environment.get("COPILOT_PROVIDER_BASE_URL", "").strip():
        setup.export("COPILOT_PROVIDER_BASE_URL", "")
    elif "COPILOT_PROVIDER_BASE_URL" not in setup.given:
        setup.notes.append("Copilot CLI asks GitHub's server, which is not led to the recorder")
    return None


def amp(setup: Setup, arguments: Sequence[str]) -> Ready | None:
    """Amp is not redirected: its own server asks the models."""
    setup.notes.append("Amp's own server asks the models: no request can be recorded here")
    return None


_HOST: Final = r"(?m)^{}:[ \t]*[\"']?(https?://[^\s\"'#]+)"


def goose(setup: Setup, arguments: Sequence[str]) -> Ready | None:
    """Goose reads hosts without a path; variables go before its settings, so these are read for them."""
    text = text_of(setup.path("XDG_CONFIG_HOME", ".config") / "goose" / "config.yaml")
    for variable, family in (("ANTHROPIC_HOST", "anthropic"), ("OPENAI_HOST", "openai")):
        own = re.search(_HOST.format(variable), text)
        setup.export(variable, own[1] if own is not None else re.sub(r"/v1/?\Z", "", setup.address(family)))
    return None


def crush(setup: Setup, arguments: Sequence[str]) -> Ready | None:
    """Crush reads variables with names of its own."""
    for variable, family in _CRUSH:
        setup.export(variable, setup.address(family))
    return None


_CRUSH: Final = (
    ("ANTHROPIC_API_ENDPOINT", "anthropic"),
    ("OPENAI_API_ENDPOINT", "openai"),
    ("GEMINI_API_ENDPOINT", "gemini"),
)


REDIRECTS: Final[Mapping[str, Callable[[Setup, Sequence[str]], Ready | None]]] = {
    "Claude Code": claude,
    "Codex": codex,
    "opencode": opencode,
    "pi": pi,
    "Copilot CLI": copilot,
    "Gemini CLI": gemini,
    "Qwen Code": qwen,
    "Cline": cline,
    "Continue": continue_cli,
    "Goose": goose,
    "Crush": crush,
    "Amp": amp,
}
"""By program; for the others the providers' variables are enough, or nothing can be done."""


def set_up(
    command: Sequence[str], environment: Mapping[str, str], given: Iterable[str] = (), *,
    home: Path | None = None, folder: Path | None = None,
) -> Setup:  # fmt: skip
    """Return a command's setup, each program redirected in its own way; arguments and errors as `Setup`."""
    setup = Setup(command, environment, given, home=home, folder=folder)
    setup.prepare(REDIRECTS)
    return setup
