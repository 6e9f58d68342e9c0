"""``ctxctl policies``, and asking for one with parameters."""

from __future__ import annotations

import json

import pytest

from ctxctl.cli.main import run
from ctxctl.errors import UsageError
from ctxctl.policies.fitting.eviction import Fifo
from ctxctl.policies.registry import described_policies, policy_by_name, policy_names


def test_all_are_listed_and_can_be_had(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["policies", "--json"]) == 0
    listed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert tuple(about["name"] for about in listed) == policy_names()
    for about in listed:
        assert about["what"]
        made = policy_by_name(about["name"])
        assert (made is None) == (about["name"] == "recorded")


def test_one_is_told_with_its_parameters(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["policies", "fifo"]) == 0
    out = capsys.readouterr().out
    assert "protect_recent  int    1" in out
    assert "The oldest leave first." in out


def test_every_parameter_says_what_it_does() -> None:
    for about in described_policies():
        for parameter in about.parameters:
            assert parameter.what, f"{about.name}: {parameter.name}"


def test_parameters() -> None:
    found = policy_by_name("fifo:target=0.5, protect_kinds=plan+memory,sticky=false")
    assert found == Fifo(target=0.5, protect_kinds=("plan", "memory"), sticky=False)


@pytest.mark.parametrize(
    ("asked", "slug"),
    [
        ("nope", "unknown-policy"),
        ("recorded:a=1", "unknown-policy"),
        ("fifo:tarket=1", "bad-policy-parameter"),
        ("fifo:target", "bad-policy-parameter"),
        ("fifo:target=0", "bad-policy-parameter"),
        ("fifo:target=much", "bad-policy-parameter"),
        ("fifo:protect_recent=-1", "bad-policy-parameter"),
        ("sanqian:a=1", "bad-policy-parameter"),
    ],
)
def test_what_there_is_not(asked: str, slug: str) -> None:
    with pytest.raises(UsageError) as caught:
        policy_by_name(asked)
    assert caught.value.slug == slug
    assert caught.value.hint
