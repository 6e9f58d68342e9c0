"""Real request bodies: on every step, the frame's items in order are the body that went over the wire."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxctl.errors import CtxctlError
from ctxctl.session import Inspector
from tests.unit.providers import wire_rebuild

PLACES = ("data/api-captures", "data/goose", "data/pi", "data/openhands", "samples/amplifier")
FEWEST = 480
"""Steps that the captures at hand have; fewer means that some are no longer read."""


@pytest.mark.slow
def test_the_body_of_every_step_can_be_put_together_again(corpus: Path) -> None:
    steps = files = 0
    for place in PLACES:
        for path in sorted(p for p in (corpus / place).rglob("*") if p.is_file()):
            with wire_rebuild.bodies() as sent:
                try:
                    inspector = Inspector.open(str(path))
                    list(inspector.replay())
                except CtxctlError:
                    continue
            if sent:
                with inspector:
                    steps += wire_rebuild.check(inspector, sent)
                files += 1
    print(f"\nwire bodies: {steps} steps of {files} captures compared, all the same")
    assert steps >= FEWEST
