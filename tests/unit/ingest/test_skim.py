"""The layout that a head shows, wherever it is cut or torn."""

from __future__ import annotations

from ctxctl.ingest.skim import layout_of_head


def test_paths_of_objects_and_arrays() -> None:
    seen = layout_of_head(b'{"a": "x", "b": [{"c": 1, "d": {"e": "f"}}, [{"g": 2}]], "h": []}')
    assert seen.paths == {"a", "b", "b[].c", "b[].d", "b[].d.e", "b[][].g", "h"}
    assert (seen.values["a"], seen.values["b[].d.e"]) == ("x", "f")


def test_root_array_and_json_lines() -> None:
    assert layout_of_head(b'[{"a": 1}, {"b": 2}]').paths == {"[].a", "[].b"}
    assert layout_of_head(b'{"a": 1}\n{"b": 2}\n').paths == {"a", "b"}


def test_head_that_ends_in_a_string_shows_what_stands_before() -> None:
    assert layout_of_head(b'{"a": {"b": "x } { \\"y\\": 1').paths == {"a", "a.b"}


def test_torn_first_line_costs_that_line_alone() -> None:
    assert layout_of_head(b'{"a": "cut\n{"b": 2}\n').has("a", "b")
    assert layout_of_head(b'{"a": {"x": [\n{"b": 2}\n').has("a", "b")
    assert layout_of_head(b'lost": 3}\n{"b": 2}\n').paths == {"b"}


def test_byte_order_mark_and_blank_lines() -> None:
    assert layout_of_head(b'\xef\xbb\xbf\n\n {"a": 1}').paths == {"a"}


def test_prose_is_nothing() -> None:
    assert layout_of_head(b'See {"a": 1}').paths == frozenset()
    assert layout_of_head(b"").paths == frozenset()


def test_deep_nesting_is_bounded() -> None:
    assert layout_of_head(b'{"a":' * 20000).paths
    assert layout_of_head(b"[" * 60000).paths == frozenset()
