"""Both spellings of a path, with the API's version and without, reach the one that the provider has."""

from __future__ import annotations

import pytest

from ctxctl.record.proxy.messages import provider_path
from ctxctl.record.proxy.upstreams import bases, routes

ALL = {"openai": b"/v1", "anthropic": b"", "gemini": b""}


@pytest.mark.parametrize(
    ("target", "sent"),
    [
        (b"/v1/messages", b"/v1/messages"),
        (b"/messages", b"/v1/messages"),
        (b"/messages?beta=true", b"/v1/messages?beta=true"),
        (b"/v1/v1/messages", b"/v1/messages"),
        (b"/messages/count_tokens", b"/v1/messages/count_tokens"),
        (b"/v1/chat/completions", b"/v1/chat/completions"),
        (b"/chat/completions", b"/v1/chat/completions"),
        (b"/v1/v1/responses", b"/v1/responses"),
        (b"/responses/resp_1", b"/v1/responses/resp_1"),
        (b"/models", b"/v1/models"),
        (b"/models/gemini-2.5-pro:generateContent", b"/v1beta/models/gemini-2.5-pro:generateContent"),
        (b"/v1beta/models/m:countTokens", b"/v1beta/models/m:countTokens"),
        (b"/v1alpha/models/m:countTokens", b"/v1alpha/models/m:countTokens"),
        (b"/", b"/"),
        (b"/api/messages", b"/api/messages"),
        (b"/messages/../secret", b"/messages/../secret"),
        (b"/v2/messages", b"/v2/messages"),
        (b"*", b"*"),
    ],
)
def test_both_spellings_of_a_path(target: bytes, sent: bytes) -> None:
    assert provider_path(target, ALL) == sent


def test_an_address_of_the_users_keeps_its_path() -> None:
    # DeepSeek's has no version, and needs none.
    assert provider_path(b"/chat/completions", {"openai": b""}) == b"/chat/completions"
    assert provider_path(b"/team/v1/messages", {"anthropic": b"/team"}) == b"/team/v1/messages"
    assert provider_path(b"/team/messages", {"anthropic": b"/team"}) == b"/team/v1/messages"
    assert (
        provider_path(b"/openai/v4/chat/completions", {"openai": b"/openai/v4"})
        == b"/openai/v4/chat/completions"
    )
    assert (
        provider_path(b"/openai/chat/completions", {"openai": b"/openai/v4"})
        == b"/openai/v4/chat/completions"
    )
    assert provider_path(b"/messages", {}) == b"/messages"


def test_which_paths_a_server_has() -> None:
    ways, _ = routes(
        {"OPENAI_BASE_URL": "http://a:1/v1/", "ANTHROPIC_BASE_URL": "http://a:1", "GROQ_BASE_URL": "http://b"}
    )
    (found,) = (paths for server, paths in bases(ways).items() if server.port == 1)
    assert found == {"openai": b"/v1", "anthropic": b""}
    ways, _ = routes({"OPENAI_BASE_URL": "http://a:1/v1", "OPENAI_API_BASE": "http://a:1/x"})
    assert not any("openai" in paths for paths in bases(ways).values())
