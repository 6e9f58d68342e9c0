"""The rules on real captures: none of them falls over, and how often each fires by kind of capture.

Run with ``-s``, this prints the counts of the files that are taken of each kind; as a program
(``python -m tests.corpus.test_lint``) it goes over everything and prints the table of docs/lint.md.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path

import pytest

from ctxctl.errors import CtxctlError
from ctxctl.lint.registry import choose_rules, rules
from ctxctl.lint.run import LintResult, lint_with_tally
from ctxctl.session import Inspector

CORPUS = Path(os.environ.get("CTXCTL_CORPUS") or ".")
BYTES = 1_500_000
"""Of each kind, about."""
SCREAMS = 40
"""Findings of one default rule in one capture above which nobody would read them."""


def kinds() -> list[Path]:
    folders = [CORPUS / "data", CORPUS / "samples"]
    return sorted(one for folder in folders if folder.is_dir() for one in folder.iterdir() if one.is_dir())


def some(kind: Path, most: int) -> list[Path]:
    """Files of a kind, spread over it, of so many bytes together; a large one only where all are."""
    files = sorted(path for path in kind.rglob("*") if path.is_file() and path.suffix != ".md")
    files.sort(key=lambda path: (path.stat().st_size > most, path))
    chosen, size = [], 0
    step = max(1, len(files) // 12)
    for path in [*files[::step], *files]:
        if path not in chosen and size < most:
            chosen.append(path)
            size += path.stat().st_size
    return chosen


def hits(path: Path) -> LintResult | None:
    """What all rules say of a capture; None for a file that is none."""
    try:
        with Inspector.open(path) as inspector:
            return lint_with_tally(inspector, choose_rules(["all"]))
    except CtxctlError:
        return None


def told(name: str, counts: Counter[str], files: int) -> str:
    return f"{name}: {files} files; " + ", ".join(f"{code} {n}" for code, n in sorted(counts.items()))


@pytest.mark.corpus
@pytest.mark.parametrize("kind", kinds(), ids=lambda path: path.name)
def test_rules_run_over_every_kind_and_none_screams(kind: Path) -> None:
    counts: Counter[str] = Counter()
    files = 0
    on = {rule.code for rule in rules() if rule.default}
    for path in some(kind, BYTES):
        found = hits(path)
        if found is None:
            continue
        files += 1
        mine = Counter(finding.code for finding in found.findings)
        counts += mine
        assert found.tally.more == {}
        assert {code: n for code, n in mine.items() if n > SCREAMS and code in on} == {}, path
        for finding in found.findings:
            assert finding.message
            assert finding.place.ordinal is None or finding.place.ordinal < found.tally.steps
            assert finding.tokens is None or finding.tokens >= 0
    print(told(kind.name, counts, files))


def main() -> None:
    """Every file of every kind."""
    every: dict[str, Counter[str]] = {}
    for kind in kinds():
        counts: Counter[str] = Counter()
        files = 0
        for path in sorted(path for path in kind.rglob("*") if path.is_file()):
            found = hits(path)
            if found is not None:
                files += 1
                counts.update(finding.code for finding in found.findings)
        print(told(kind.name, counts, files), file=sys.stderr)
        for code, n in counts.items():
            every.setdefault(code, Counter())[kind.name] += n
    for rule in rules():
        by = every.get(rule.code, Counter())
        print(f"| {rule.code} | {by.total()} | {', '.join(f'{name} {n}' for name, n in by.most_common())} |")


if __name__ == "__main__":
    main()
