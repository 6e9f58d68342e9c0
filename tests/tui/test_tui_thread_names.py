"""Threads and sessions are called by what they do, never by an id."""

from __future__ import annotations

import pytest

from ctxctl.model.annotations import Origin
from ctxctl.text import cells
from ctxctl.tui.thread_names import ThreadNames, holds_id, is_id

UUID = "3e6a5f09-8e10-4614-8714-152f3cc1b719"


def spawned(kind: str | None = None) -> Origin:
    return Origin("main", "toolu_01Y64XEaRvUYinzv9rW9qZXd", kind)


@pytest.mark.parametrize(
    "name",
    [
        UUID,
        "agent-a93ccab",
        "ses_2489b0678ffeFw2Sxn96jy1nAM",
        "toolu_01Y64XEaRvUYinzv9rW9qZXd",
        "1763900000123",
    ],
)
def test_ids_are_told_by_their_looks(name: str) -> None:
    assert holds_id(name)


@pytest.mark.parametrize(
    "name",
    ["main", "explorer", "scorer-model_graded_fact", "77.epoch-1", "run-20261123", "gpt-4o", "facade", "s1"],
)
def test_names_that_somebody_gave_are_none(name: str) -> None:
    assert not holds_id(name)
    assert not is_id(name)


@pytest.mark.parametrize(
    ("thread", "origin", "called"),
    [
        ("main", None, "main"),
        ("explorer", spawned("Explore"), "explorer"),
        ("agent-a93ccab", spawned("Explore"), "Explore"),
        ("agent-a93ccab", spawned(), "sub-agent"),
        ("agent-a93ccab", None, "sub-agent"),
        ("agent-acompact-70d8e7", spawned(), "acompact"),
        (UUID, spawned(), "sub-agent"),
        (UUID, spawned(UUID), "sub-agent"),
        (UUID, None, "thread"),
    ],
)
def test_a_thread_is_called_by_its_type(thread: str, origin: Origin | None, called: str) -> None:
    names = ThreadNames()
    names.take("s", thread, origin)
    assert names.of("s", thread) == called


def test_threads_of_one_type_are_numbered_and_keep_their_numbers() -> None:
    names = ThreadNames()
    for thread in ("agent-a93ccab", "agent-b93ccab", "agent-a93ccab"):
        names.take("s", thread, spawned("Explore"))
    names.take("another", "agent-a93ccab", spawned("Explore"))
    assert names.of("s", "agent-a93ccab") == names.of("another", "agent-a93ccab") == "Explore"
    assert names.of("s", "agent-b93ccab") == "Explore-2"
    assert names.place("s", "agent-b93ccab", 3, 1) == "Explore-2 3.1"
    assert names.place("s", "main", 3, 1) == "3.1"


def test_a_session_is_called_by_its_number_and_first_words() -> None:
    names = ThreadNames()
    for session in ("named", UUID):
        names.take(session, "main", None)
    assert names.session("named", "words", 40) == "session named"
    assert names.session(UUID, "mend the clock", 40) == "session 2 “mend the clock”"
    assert names.session(UUID, "mend the clock", 20) == "session 2 “mend th…”"
    assert names.session(UUID, "mend the clock", 9) == "session 2"
    assert names.session(UUID, "mend the clock", 3) == "#2"
    assert names.session(UUID, None, 40) == "session 2"
    assert all(cells(names.session(s, "m" * 50, n)) <= n for n in range(60) for s in (None, "named", UUID))
