"""docs/fleet-reference.md is what the schema and the questions say; ``make docs`` writes it anew."""

from __future__ import annotations

from scripts.docs_fleet import PAGE, page


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page()
