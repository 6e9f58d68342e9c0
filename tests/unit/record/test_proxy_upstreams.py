"""Which variables of a program lead to the proxy, and where it passes on what comes."""

from __future__ import annotations

import pytest

from ctxctl.errors import UsageError
from ctxctl.record.proxy.upstreams import Upstream, network_proxy_of, parsed, pointed, routes

OPENAI = Upstream("https", "api.openai.com", 443)


def led(environment: dict[str, str], *given: str) -> dict[str, str]:
    """Each variable that is set for the program, with 9 for the port."""
    ways, _ = routes(environment, given)
    after = pointed(environment, dict.fromkeys(ways, 9))
    return {name: value for name, value in after.items() if environment.get(name) != value}


def test_the_providers_own_addresses_where_nothing_is_set() -> None:
    ways, notes = routes({})
    assert {way.variable: way.url for way in ways} == {
        "OPENAI_BASE_URL": "https://api.openai.com/v1",
        "OPENAI_API_BASE": "https://api.openai.com/v1",
        "ANTHROPIC_BASE_URL": "https://api.anthropic.com",
        "GOOGLE_GEMINI_BASE_URL": "https://generativelanguage.googleapis.com",
    }
    assert notes == []
    assert led({})["OPENAI_BASE_URL"] == "http://127.0.0.1:9/v1"
    assert led({})["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:9"


def test_what_is_set_is_the_upstream_and_keeps_its_path() -> None:
    environment = {
        "OPENAI_BASE_URL": "https://u:p@gate.example:8443/team%20a/v1/?x=1",
        "OPENROUTER_BASE_URL": "",
    }
    ways, _ = routes(environment)
    assert ways[0].upstream == Upstream("https", "gate.example", 8443)
    after = led(environment)
    assert after["OPENAI_BASE_URL"] == "http://u:p@127.0.0.1:9/team%20a/v1/?x=1"
    # A program that prefers the other name must not be sent to another server than before.
    assert "OPENAI_API_BASE" not in after
    assert "OPENROUTER_BASE_URL" not in after
    assert "ANTHROPIC_BASE_URL" in after


def test_other_providers_are_led_only_if_they_are_set() -> None:
    environment = {
        "GROQ_BASE_URL": "https://api.groq.com",
        "AZURE_OPENAI_ENDPOINT": "https://x.openai.azure.com/",
        "ANTHROPIC_API_URL": "https://claude.example",
        "ANTHROPIC_BEDROCK_BASE_URL": "https://b.example",
        "AWS_ENDPOINT_URL": "https://aws.example",
        "MY_BASE_URL": "https://mine.example",
    }
    after = led(environment)
    assert after["GROQ_BASE_URL"] == "http://127.0.0.1:9"
    assert after["AZURE_OPENAI_ENDPOINT"] == "http://127.0.0.1:9/"
    assert after["ANTHROPIC_API_URL"] == "http://127.0.0.1:9"
    assert not after.keys() & {
        "ANTHROPIC_BASE_URL",
        "ANTHROPIC_BEDROCK_BASE_URL",
        "AWS_ENDPOINT_URL",
        "MY_BASE_URL",
    }


def test_upstreams_that_are_given() -> None:
    after = led(
        {"OPENAI_BASE_URL": "https://x.example/v1"},
        "openai=http://localhost:11434/v1",
        "MY_LLM=http://[::1]:8/a",
    )
    assert after["OPENAI_BASE_URL"] == after["OPENAI_API_BASE"] == "http://127.0.0.1:9/v1"
    assert after["MY_LLM"] == "http://127.0.0.1:9/a"
    ways, _ = routes({}, ["MY_LLM=http://[::1]:8/a"])
    assert (ways[0].upstream.host, ways[0].upstream.authority) == ("::1", "[::1]:8")


@pytest.mark.parametrize(
    "given", ["openai", "=http://x", "lower=http://x", "openai=", "openai=ftp://x", "X=http://a b"]
)
def test_upstreams_that_are_none(given: str) -> None:
    with pytest.raises(UsageError) as found:
        routes({}, [given])
    assert found.value.slug == "bad-upstream"
    assert found.value.hint


@pytest.mark.parametrize(
    "url", ["unix:/x", "localhost:8000", "http://", "http://a:99999", "http://a\\b", "http://a\n"]
)
def test_what_is_no_address_is_left_alone_and_said(url: str) -> None:
    assert parsed(url) is None
    ways, notes = routes({"OPENAI_BASE_URL": url, "OPENAI_API_BASE": "http://a"})
    assert "OPENAI_BASE_URL" not in {way.variable for way in ways} or url.strip() == "http://a"
    assert url.strip() == "http://a" or "OPENAI_BASE_URL" in notes[0]


def test_programs_do_not_ask_the_networks_proxy_for_ours() -> None:
    after = led({"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": "intern.example, "})
    assert after["NO_PROXY"] == after["no_proxy"] == "intern.example,127.0.0.1"
    assert "NO_PROXY" not in led({"NO_PROXY": "intern.example"})
    assert "NO_PROXY" not in led({"ALL_PROXY": "http://p", "NO_PROXY": "*", "no_proxy": "*"})


def test_the_networks_proxy_is_used_as_the_program_would(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    assert network_proxy_of(OPENAI) is None
    monkeypatch.setenv("HTTPS_PROXY", "http://me:p%40ss@proxy.example:3128")
    via = network_proxy_of(OPENAI)
    assert via is not None
    assert via.server == Upstream("http", "proxy.example", 3128)
    assert via.credentials == b"Basic bWU6cEBzcw=="
    assert network_proxy_of(Upstream("http", "127.0.0.1", 1)) is None
    monkeypatch.setenv("NO_PROXY", "api.openai.com")
    assert network_proxy_of(OPENAI) is None
    monkeypatch.delenv("NO_PROXY")
    monkeypatch.setenv("HTTPS_PROXY", "socks5://proxy.example")
    with pytest.raises(UsageError) as found:
        network_proxy_of(OPENAI)
    assert found.value.slug == "bad-network-proxy"
