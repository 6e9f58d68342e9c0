"""All cases of the oracle."""

from __future__ import annotations

from tests.oracle import (
    cases_append,
    cases_changes,
    cases_frames,
    cases_identity,
    cases_sizes,
    cases_steps,
    cases_wire,
)
from tests.oracle.case import Case

ALL: list[Case] = [
    *cases_frames.CASES,
    *cases_append.CASES,
    *cases_changes.CASES,
    *cases_identity.CASES,
    *cases_steps.CASES,
    *cases_sizes.CASES,
    *cases_wire.CASES,
]
