"""Wrong engines: each is the reference with one rule of DESIGN replaced by a wrong one.

The first eleven are those that weak test suites let pass in practice; the rest are further ways to misread
the same sentences.  `test_mutants` shows that every one of them fails at least one case of the oracle.
"""

from __future__ import annotations

from dataclasses import fields

from tests.oracle.rules import Rules

KNOWN = (
    "net_ledger",
    "silent_changes",
    "moved_by_index",
    "prefix_by_item",
    "shared_items",
    "visibility_ignored",
    "every_live_omitted",
    "first_assembly_wins",
    "position_ignored",
    "version_ref_ignored",
    "budget_drops_ignored",
)

ALL = {rule.name: Rules(**{rule.name: True}) for rule in fields(Rules)}
