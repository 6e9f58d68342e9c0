"""What is a cache miss, from two bills and what is recorded between them; all numbers worked by hand."""

from __future__ import annotations

from typing import Any

import pytest

from ctxctl.engine.sizes.cache_misses import (
    BilledRequest,
    CacheMemory,
    cache_miss,
    lifetime,
    memory_after,
    memory_unbilled,
    seconds_between,
)
from ctxctl.model.results import Miss

NOON = "2026-05-04T12:00:00Z"


def request(**fields: Any) -> BilledRequest:
    told: dict[str, Any] = {
        "input": 50_000, "read": 0, "written": 49_900, "written_1h": 0, "output": 100, "recorded": 30_000,
        "model": "claude-opus-4-5", "provider": "anthropic", "time": NOON,
    }  # fmt: skip
    return BilledRequest(**{**told, **fields})


FIRST = memory_after(None, request())


def found(now: BilledRequest, before: CacheMemory | None = FIRST, **how: Any) -> Miss | None:
    """With everything of the request before kept, unless `prefix` says otherwise."""
    told: dict[str, Any] = {"prefix": 30_000, "error": 0.15}
    return cache_miss(before, now, **{**told, **how})


def test_what_was_in_the_cache_and_is_not_read_is_missed() -> None:
    now = request(input=51_000, read=0, written=50_900, recorded=30_700, time="2026-05-04T12:01:00Z")
    # 49,900 had been written; 100 stood behind the last mark.
    assert found(now) == Miss(49_900, 0, 49_900, "unexplained", None, 60.0, 300)


def test_a_full_read_is_none_and_so_is_what_lies_behind_the_last_mark() -> None:
    assert found(request(input=51_000, read=49_900, written=1_100)) is None
    assert found(request(input=51_000, read=48_900, written=2_100)) is None
    assert found(request(input=51_000, read=48_876, written=2_124)) == Miss(
        49_900, 48_876, 1_024, "unexplained", None, 0.0, 300
    )


@pytest.mark.parametrize("how", ["first", "no figures", "no figures before", "contradiction", "not compared"])
def test_what_cannot_be_told_is_no_miss(how: str) -> None:
    now = request(input=51_000, read=0, written=50_900)
    if how == "first":
        assert found(now, None) is None
    elif how == "no figures":
        assert found(now._replace(read=None, written=None)) is None
    elif how == "no figures before":
        assert found(now, memory_after(None, request(read=None, written=None))) is None
    elif how == "contradiction":
        assert found(now._replace(written=52_000)) is None
    else:
        assert found(now, prefix=None) is None


def test_a_client_that_marks_nothing_misses_nothing() -> None:
    bare = memory_after(None, request(written=0))
    assert found(request(written=0), bare) is None
    # The same figures of a provider that caches by itself are a miss.
    other = {"provider": "openai", "model": "gpt-5", "written": None}
    assert found(request(**other), memory_after(None, request(**other))) is not None


def test_less_was_sent_than_before() -> None:
    now = request(input=20_000, read=5_000, written=15_000)
    miss = found(now)
    assert miss is not None
    assert (miss.expected, miss.tokens, miss.cause) == (20_000, 15_000, "unrecorded")


def test_a_recorded_change_explains_what_it_makes_new() -> None:
    now = request(input=51_000, read=10_000, written=41_000, recorded=30_000)
    # Near the end: 2,000 of 30,000 are gone, and as much is new, each taken as 2,300: 47,700 are left.
    near = found(now, prefix=28_000)
    assert near is not None
    assert (near.expected, near.tokens) == (47_700, 37_700)
    # In the middle a cache on request has nothing that it would look for.
    assert found(now, prefix=15_000) is None
    assert found(now, prefix=0) is None


def test_a_cache_of_its_own_accord_keeps_what_stands_before_the_change() -> None:
    kind = {"provider": "openai", "model": "gpt-5", "written": None}
    now = request(input=51_000, read=1_500, recorded=30_000, **kind)
    miss = found(now, memory_after(None, request(**kind)), prefix=11_500, error=0.15)
    assert miss is not None
    assert (miss.expected, miss.tokens) == (10_000, 8_500)
    assert found(now, memory_after(None, request(**kind)), prefix=0) is None


def test_tokens_are_no_more_than_was_paid_for() -> None:
    now = request(input=90_000, read=49_000, written=41_000)
    assert found(now) is None  # 40,000 of 41,000 are new


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({}, "unexplained"),
        ({"model": "claude-haiku-4-5"}, "model"),
        ({"time": "2026-05-04T12:05:01Z"}, "expired"),
        ({"time": "2026-05-04T12:05:00Z"}, "unexplained"),
        ({"time": "2026-05-04T12:05:01Z", "model": "claude-haiku-4-5"}, "model"),
        ({"input": 60_000, "written": 60_000}, "unrecorded"),
        ({"time": None}, "unexplained"),
    ],
)
def test_causes_as_far_as_facts_go(change: dict[str, Any], cause: str) -> None:
    miss = found(request(**change))
    assert miss is not None
    assert miss.cause == cause


@pytest.mark.parametrize(
    ("lacked", "lacks", "cause"),
    [
        # The bill is 8,000 larger, and as much more of it is recorded in the model's own tokens.
        (20_000, 20_000, "unexplained"),
        (20_000, 30_000, "unrecorded"),
        # Known of one of them only: 8,000 more were billed, and not one more is recorded.
        (None, 20_000, "unrecorded"),
        (20_000, None, "unrecorded"),
    ],
)
def test_what_the_frame_is_said_to_lack_goes_before_what_the_bills_leave(
    lacked: int | None, lacks: int | None, cause: str
) -> None:
    before = memory_after(None, request(unrecorded=lacked))
    miss = found(request(input=58_000, written=58_000, unrecorded=lacks), before)
    assert miss is not None
    assert miss.cause == cause


def test_reasoning_that_was_billed_and_is_not_recorded_is_no_change() -> None:
    thought = memory_after(None, request(output=9_000))
    miss = found(request(input=58_000, written=58_000), thought)
    assert miss is not None
    assert miss.cause == "unexplained"


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        ("model_changed", "model"),
        ("ttl_expired_1h", "expired"),
        ("tools_changed", "unrecorded"),
        ("messages_changed", "unrecorded"),
        ("previous_message_not_found", "expired"),
        ("something new", "expired"),
    ],
)
def test_the_clients_own_word_goes_first(said: str, cause: str) -> None:
    miss = found(request(time="2026-05-04T12:10:00Z"), said=said)
    assert miss is not None
    assert (miss.cause, miss.recorded_cause) == (cause, said)


def test_an_hour_is_kept_where_it_was_paid_for_and_until_something_else_is() -> None:
    paid = memory_after(None, request(written_1h=49_900))
    assert paid.lifetime == 3600
    read = memory_after(paid, request(read=49_900, written=0, written_1h=0, time="2026-05-04T12:50:00Z"))
    assert read.lifetime == 3600
    assert memory_after(paid, request(written=100, written_1h=0)).lifetime == 300
    assert memory_after(paid, request(written=100, written_1h=40)).lifetime == 300
    later = found(request(time="2026-05-04T13:49:00Z"), read)
    assert later is not None
    assert (later.idle, later.cause) == (3540.0, "unexplained")


@pytest.mark.parametrize(
    ("model", "provider", "kept"),
    [
        ("claude-sonnet-4-5", "github", 300),
        ("openai/gpt-5.1-codex", "openai", 600),
        ("gpt-4o", "azure", 600),
        ("gpt-5.5", "openai", 86_400),
        ("o3", "openai", 600),
        ("gemini-2.5-pro", "google", None),
        ("deepseek-chat", "deepseek", None),
        (None, None, None),
    ],
)
def test_documented_lifetimes(model: str | None, provider: str | None, kept: int | None) -> None:
    assert lifetime(request(model=model, provider=provider)) == kept


def test_a_step_without_a_bill_shortens_what_is_kept_and_moves_the_clock() -> None:
    between = memory_unbilled(FIRST, 12_000, "2026-05-04T12:04:00Z")
    assert between is not None
    assert (between.prefix, between.time) == (12_000, "2026-05-04T12:04:00Z")
    assert found(request(), between) is None
    assert memory_unbilled(None, 5, NOON) is None
    assert memory_unbilled(FIRST, None, NOON) is FIRST


def test_times() -> None:
    assert seconds_between(NOON, "2026-05-04T14:00:30+02:00") == 30.0
    assert seconds_between(NOON, "2026-05-04T11:00:00Z") is None
    assert seconds_between(None, NOON) is None
    assert seconds_between("1970-01-01T00:00:00Z", NOON) is None
    assert seconds_between("soon", NOON) is None
    assert seconds_between("2026-05-04T12:00:00", NOON) is None
