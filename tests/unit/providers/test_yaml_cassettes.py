"""Entries of a damaged YAML document, read by themselves."""

from __future__ import annotations

from ctxctl.providers.calls.yaml_cassettes import _closed


class _Entry(bytes):
    """An entry that counts how often something is looked for in the whole of it."""

    searched = 0

    def __contains__(self, part: object) -> bool:
        _Entry.searched += 1
        return isinstance(part, bytes) and self.find(part) >= 0


def test_what_an_entry_takes_over_from_others_is_null() -> None:
    entry = b"- a: &own\n    b: 1\n  c: *own\n  d: *other\n  e: *ow\n  f: '*own'\n"
    assert _closed(entry) == b"- a: &own\n    b: 1\n  c: *own\n  d: null\n  e: null\n  f: '*own'\n"


def test_the_anchors_of_an_entry_are_looked_for_once() -> None:
    names = range(1000)
    entry = _Entry(b"- a:\n" + b"".join(b"  - *b%d\n" % name for name in names))
    assert _closed(entry) == b"- a:\n" + b"  - null\n" * len(names)
    assert _Entry.searched == 0
