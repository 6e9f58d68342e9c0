"""The pytest plugin, in a run of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

TRACE = Path(__file__).parents[3] / "traces" / "coding-agent.jsonl"
PLAN = 'version = 1\n[model]\nwindow = 1000\n[[part]]\nname = "rules"\ntokens = 100\n[limits]\ntotal = 100\n'


def run(pytester: pytest.Pytester, test: str, *arguments: str) -> pytest.RunResult:
    """Run a test module in a process of its own, as a user does."""
    pytester.makepyfile(test)
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", *arguments)


def test_the_fixture_works_a_plan_out(pytester: pytest.Pytester) -> None:
    (pytester.path / "plans").mkdir()
    (pytester.path / "plans" / "one.toml").write_text(PLAN)
    pytester.makeini("[pytest]\nctxctl_plan = plans/one.toml\n")
    test = """
        from ctxctl.testing import assert_fits
        def test_budget(context_budget):
            assert context_budget().total("p95") == 100
            assert context_budget("plans/one.toml") is context_budget()
        def test_gate():
            assert_fits("plans/one.toml")
    """
    run(pytester, test).assert_outcomes(passed=2)


def test_a_context_is_accepted_by_the_option_only(pytester: pytest.Pytester) -> None:
    test = f"""
        from ctxctl.testing import assert_context_diff
        def test_context():
            assert_context_diff({str(TRACE)!r} + "@PLACE", "context.json")
    """
    run(pytester, test.replace("PLACE", "2")).assert_outcomes(failed=1)
    run(pytester, test.replace("PLACE", "2"), "--ctxctl-update").assert_outcomes(passed=1)
    run(pytester, test.replace("PLACE", "2")).assert_outcomes(passed=1)
    found = run(pytester, test.replace("PLACE", "3"))
    found.assert_outcomes(failed=1)
    found.stdout.fnmatch_lines(["*4 items differ, +428 \u22120 tokens*", "*added*run pytest*"])
    assert "golden.py" not in found.stdout.str()
