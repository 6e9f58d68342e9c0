"""What a smaller budget would have left of Sibyl's packs, as its own code has it: a what-if follows 1.2."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxctl.model.whatif import Limits
from ctxctl.session import Inspector
from tests.frameworks.sibyl_packs import called, lines, returned

ENVIRONMENTS = ("sibyl-1.2",)


@pytest.mark.parametrize("first", range(0, 300, 100))
def test_a_smaller_budget_is_supposed_as_its_own_code_has_it(first: int, tmp_path: Path) -> None:
    """Of packs that were rendered whole: what was left out does not come back."""
    held = 0
    for number in range(first, first + 100):
        given, payload, pack = called(number)
        payload["markdown"] = returned(pack, token_budget=1_000_000)["markdown"]
        if "..." in payload["markdown"] or "_Trimmed" in payload["markdown"] or not pack.total_items:
            continue
        path = tmp_path / f"{number}.jsonl"
        path.write_text("".join(lines(number, {**given, "markdown_token_budget": 1_000_000}, payload)))
        for tokens in (100, 200, 450, 1000, 4000):
            with Inspector.open(str(path), policy="sibyl", limits=Limits(window=tokens)) as inspector:
                list(inspector.replay())
                wanted = returned(pack, token_budget=tokens)["markdown"]
                assert inspector.assembled(0) == wanted, (number, tokens)
        held += 1
    assert held > 5
