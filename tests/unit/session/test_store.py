"""Learned sets on disk: names, versions, damage."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from ctxctl.errors import UnreadableError, UsageError
from ctxctl.ingest.build import digest_of
from ctxctl.session.learned import store
from ctxctl.session.learned.book import LearnedItem, LearnedSet


@pytest.fixture(autouse=True)
def _data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CTXCTL_DATA_DIR", str(tmp_path / "data"))


def made(client: str = "claude-code", version: str = "2.1.330", text: str = "You answer.") -> LearnedSet:
    item = LearnedItem("system_prompt", "system", digest_of(text))
    return LearnedSet(client, version, {"main": (item,)}, {item.digest: text})


def test_a_set_is_private_and_comes_back_as_it_was() -> None:
    path = store.save_set(made())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert store.read_set("claude-code", "2.1.330") == made()


@pytest.mark.parametrize(
    ("old", "new"), [(b"You answer.", b"You obey.  "), (b'"system_prompt"', b'"user_message"')]
)
def test_a_set_that_was_changed_is_refused(old: bytes, new: bytes) -> None:
    path = store.save_set(made())
    data = path.read_bytes()
    assert old in data
    path.write_bytes(data.replace(old, new))
    with pytest.raises(UnreadableError, match="it was changed"):
        store.read_set("claude-code", "2.1.330")


def test_a_set_under_another_name_is_refused() -> None:
    path = store.save_set(made())
    path.rename(path.with_name("claude-code@2.1.331.json"))
    with pytest.raises(UnreadableError, match="another client's or version's"):
        store.read_set("claude-code", "2.1.331")


def test_the_very_version_comes_first_then_the_newest_of_its_line_then_none() -> None:
    for version in ("2.1.9", "2.1.330", "2.1.40", "2.0.1"):
        store.save_set(made(version=version))
    exact = store.find_set("claude-code", "2.1.40")
    assert exact is not None
    assert (exact.learned.version, exact.exact) == ("2.1.40", True)
    near = store.find_set("claude-code", "2.1.331")
    assert near is not None
    assert (near.learned.version, near.exact) == ("2.1.330", False)
    assert store.find_set("claude-code", "3.1.0") is None
    assert store.find_set("claude-code", None) is None
    assert store.find_set("codex", "2.1.330") is None


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".hidden", "a" * 81, "a@b"])
def test_a_name_never_leads_out_of_the_directory(name: str) -> None:
    with pytest.raises(UsageError):
        store.save_set(made(client=name))
    with pytest.raises(UsageError):
        store.save_set(made(version=name))


def test_forgetting_one_version_or_all() -> None:
    for version in ("1.0", "1.1"):
        store.save_set(made("codex", version))
    store.save_set(made())
    assert store.forget_sets("codex@1.0") == ["codex 1.0"]
    assert store.forget_sets("codex") == ["codex 1.1"]
    assert store.set_names() == [("claude-code", "2.1.330")]
    with pytest.raises(UsageError, match="nothing is known"):
        store.forget_sets("codex")
