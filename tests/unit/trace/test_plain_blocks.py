"""Blocks that are decoded at once are what they are field by field, with the same said of what is wrong."""

from __future__ import annotations

import msgspec
import pytest

from ctxctl.model.records import Block
from ctxctl.trace.contents import Contents
from ctxctl.trace.items import ItemBuilder, Memos
from ctxctl.trace.source import Source

BLOCKS = [
    b'{"item_refs":["a"]}',
    b' {"item_refs" : ["a","b"] , "segment":"tools", "role":"user", "block_id":"n"} ',
    b'{"item_refs":["a"],"role":null,"segment":null,"position":null,"block_id":null}',
    b'{"item_refs":["a"],"role":1}',
    b'{"item_refs":["a"],"block_id":5}',
    b'{"item_refs":["a",1]}',
    b'{"item_refs":[{"item_id":"a","version":"2"}]}',
    b'{"item_refs":[],"item_refs":["b"]}',
    b'{"item_refs":[]}',
    b'{"item_refs":null,"item_ref":"a"}',
    b'{"item_refs":"a"}',
    b'{"item_refs":["a"],"position":2}',
    b'{"item_refs":["a"],"position":-0}',
    b'{"item_refs":["a"],"position":true}',
    b'{"item_refs":["a"],"position":"2"}',
    b'{"item_refs":["a"],"position":1e999}',
    b'{"item_refs":["a"],"position":18446744073709551617}',
    b'{"item_refs":["a"],"position":%s}' % (b"9" * 400),
    b'{"item_refs":["a"],"position":0.1234567890123456789012345}',
    b'{"item_refs":["a"],"metadata":{"ctxctl":{"role":"user"}}}',
    b'{"item_refs":["a"],"content":"text"}',
    b'"a"',
    b"7",
]


def _built(way: str, raw: bytes) -> tuple[Block | None, list[tuple[str, str, str]]]:
    said: list[tuple[str, str, str]] = []
    source = Source.from_bytes("trace", raw)
    builder = ItemBuilder(Contents(source), Memos(), lambda *problem: said.append(problem))
    block = getattr(builder, way)(b"key", raw, raw, 0)
    if block is not None and block.content is not None:  # one object a store
        block = msgspec.structs.replace(block, content=None)
    return block, said


@pytest.mark.parametrize("raw", BLOCKS)
def test_a_block_is_the_same_either_way(raw: bytes) -> None:
    assert _built("_block", raw) == _built("_other_block", raw)


def test_a_block_that_is_no_text_is_refused_either_way() -> None:
    for way in ("_block", "_other_block"):
        with pytest.raises(UnicodeDecodeError):
            _built(way, b'{"item_refs":["\xff"]}')
