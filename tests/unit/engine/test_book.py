"""Identity, versions and references."""

from __future__ import annotations

from hashlib import sha256

import pytest

from ctxctl.engine.replay.item_table import ItemTable, base_id, version_of
from ctxctl.model.records import Item

DIGEST = sha256(b"text").hexdigest()


@pytest.mark.parametrize(
    ("item", "version"),
    [
        (Item("a", version="7", content_digest=DIGEST), "7"),
        (Item("a", content_digest=DIGEST), DIGEST[:16]),
        (Item("a", source_digests=("sha256-16:67ece809a3fd08f8",)), "67ece809a3fd08f8"),
        (Item("a", source_digests=("etag:W/9",)), "W/9"),
        (Item("a"), None),
    ],
)
def test_version(item: Item, version: str | None) -> None:
    assert version_of(item) == version


@pytest.mark.parametrize(
    ("item", "base"),
    [
        (Item("note@v2", version="v2"), "note"),
        (Item(f"note@{DIGEST[:16]}", content_digest=DIGEST), "note"),
        (Item(f"note@{DIGEST[:7]}", version="3", content_digest=DIGEST), "note"),
        (Item(f"note@{DIGEST[:2]}", content_digest=DIGEST), f"note@{DIGEST[:2]}"),
        (Item("note@67ece8", source_digests=("sha256-16:67ece809a3fd08f8",)), "note"),
        (Item("user@host", content_digest=DIGEST), "user@host"),
        (Item("@scope/pkg", version="x"), "@scope/pkg"),
        (Item("note@", version=""), "note@"),
    ],
)
def test_only_a_suffix_that_is_a_version_or_digest_is_taken_off(item: Item, base: str) -> None:
    assert base_id(item, version_of(item)) == base


def book(*items: Item) -> ItemTable:
    made = ItemTable("model")
    for line, item in enumerate(items):
        made.enter(item, line)
    return made


def test_a_ref_names_the_latest_version_or_one_of_them() -> None:
    b = book(Item("note", version="v1"), Item("note", version="v2"))
    assert b.find("note") is not None
    assert [b.find(ref).version for ref in ("note", "note@v1", "note@v2")] == ["v2", "v1", "v2"]  # type: ignore[union-attr]
    assert b.find("note@v3") is None
    assert b.find("other") is None


def test_an_id_with_an_at_sign_is_not_mistaken_for_a_version() -> None:
    b = book(Item("user", version="1"))
    assert b.item_of("user@host") == "user@host"
    assert b.item_of("user@1") == "user"
    assert b.item_of(f"user@{DIGEST[:16]}") == "user"


def test_visibility() -> None:
    b = book(Item("a"), Item("b", visibility=("tool",)), Item("c", visibility=("tool", "model")))
    assert [v.item for v in b.live.values() if v.visible] == ["a", "c"]


def test_a_compaction_takes_the_version_it_names() -> None:
    b = book(Item("a", version="1"), Item("a", version="2"), Item("b", version="1"))
    b.compact("a@1")
    b.compact("b")
    b.summarised("sum", 9)
    assert list(b.live) == ["a", "sum"]


def test_the_live_items_only_grew_unless_one_left_or_was_replaced() -> None:
    b = book(Item("a", version="1"), Item("b", version="1"))
    assert ([v.item for v in b.appeared], b.disturbed) == (["a", "b"], False)
    b.settle()
    assert (b.appeared, b.disturbed) == ([], False)
    b.leave("never there")
    assert not b.disturbed
    b.leave("a")
    assert (list(b.live), b.disturbed) == (["b"], True)
    b.settle()
    b.enter(Item("b", version="2"), 3)
    assert (b.appeared, b.disturbed) == ([], True)
