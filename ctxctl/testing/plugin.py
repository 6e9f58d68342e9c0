"""The pytest plugin: the option `--ctxctl-update` and the fixture `context_budget`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest

if TYPE_CHECKING:
    from ctxctl.budget.estimate import Estimate

_UPDATE = "CTXCTL_UPDATE"
_PLAN = "ctxctl_plan"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--ctxctl-update` and the setting for the plan."""
    group = parser.getgroup("ctxctl", "contexts of language models")
    group.addoption(
        "--ctxctl-update", action="store_true", help="write what assert_context_diff compares with anew"
    )
    parser.addini(_PLAN, "plan of the context_budget fixture, relative to this file", default="budget.toml")


class PlanEstimator(Protocol):
    """The function that the `context_budget` fixture gives: it works out a plan."""

    def __call__(self, plan: str | os.PathLike[str] | None = None) -> Estimate:
        """Work out a plan without judging it; without an argument, the one that `ctxctl_plan` names."""


@pytest.fixture(scope="session")
def context_budget(pytestconfig: pytest.Config) -> PlanEstimator:
    """Give a function that works out plans (docs/budget.md), each once; paths start at pytest's root."""
    made: dict[Path, Estimate] = {}

    def worked_out(plan: str | os.PathLike[str] | None = None) -> Estimate:
        from ctxctl.testing.fits import estimate_plan

        path = (pytestconfig.rootpath / (plan or pytestconfig.getini(_PLAN))).resolve()
        if path not in made:
            made[path] = estimate_plan(path)
        return made[path]

    return worked_out


@pytest.fixture(autouse=True, scope="session")
def _ctxctl_update(pytestconfig: pytest.Config) -> Iterator[None]:
    """Set the environment variable that the assertions read, for the run, if the option is given."""
    if not pytestconfig.getoption("--ctxctl-update"):
        yield
        return
    before = os.environ.get(_UPDATE)
    os.environ[_UPDATE] = "1"
    yield
    if before is None:
        del os.environ[_UPDATE]
    else:
        os.environ[_UPDATE] = before
