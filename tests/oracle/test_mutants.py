"""The oracle is sharp: a wrong engine fails at least one of its cases."""

from __future__ import annotations

import pytest

from tests.oracle import mutants, reference
from tests.oracle.case import Case, check
from tests.oracle.cases import ALL
from tests.oracle.counting import count
from tests.oracle.rules import Rules


def fails(case: Case, rules: Rules) -> bool:
    said = reference.replay(case.events, count, target=case.target, model=case.model, rules=rules)
    return check(case, said) != []


def test_the_known_wrong_engines_are_among_them() -> None:
    assert set(mutants.KNOWN) <= mutants.ALL.keys()


@pytest.mark.parametrize("name", mutants.ALL)
def test_a_wrong_engine_is_caught(name: str) -> None:
    assert any(fails(case, mutants.ALL[name]) for case in ALL)
