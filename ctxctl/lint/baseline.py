"""A committed file of findings that are known: a run reports only the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from ctxctl.analysis.baseline_file import BaselineKind, replace_baseline
from ctxctl.model.findings import Finding
from ctxctl.text import visible

_HINT: Final = "`ctxctl lint ... --baseline FILE --update-baseline` writes it"
_KIND: Final = BaselineKind(16 << 20, "no baseline of findings", _HINT, _HINT)

Known = dict[str, dict[str, str]]
"""By trace, marks of findings with what they said."""


class BaselineSplit(NamedTuple):
    """Findings held against a baseline."""

    new: list[Finding]
    known: int
    stale: list[str]
    """What the baseline has and the traces have not, one line each."""


def finding_mark(finding: Finding) -> str:
    """What stays the same of a finding from run to run: rule, session, thread and subject."""
    from hashlib import sha256

    place = finding.place
    identity = "\0".join((finding.code, place.session or "", place.thread, finding.subject))
    return f"{finding.code}:{sha256(identity.encode('utf-8', 'replace')).hexdigest()[:16]}"


def name_of(trace: str) -> str:
    """The name under which a baseline knows a trace: the same wherever the file lies."""
    import os

    return os.path.basename(trace) or trace


def split_by_baseline(
    findings: Sequence[Finding], traces: Iterable[str], codes: Iterable[str], path: Path
) -> BaselineSplit:
    """Split findings by what the baseline knows; raises UnreadableError (`no-such-file`, `bad-baseline`).

    Only of the traces that were read, and of the rules that ran, can an entry be stale.
    """
    known = read_baseline(path)
    left = {(name, key) for name in map(name_of, traces) for key in known.get(name, {})}
    new = []
    for finding in findings:
        key = (name_of(finding.trace), finding_mark(finding))
        if key[1] in known.get(key[0], {}):
            left.discard(key)
        else:
            new.append(finding)
    ran = set(codes)
    stale = sorted(
        f"{visible(name)}: {known[name][key]}" for name, key in left if key.partition(":")[0] in ran
    )
    return BaselineSplit(new, len(findings) - len(new), stale)


def write_baseline(findings: Sequence[Finding], traces: Iterable[str], path: Path) -> list[str]:
    """Write the file anew for the traces that were read; what changed, one line each.

    What it has of other traces stays.  Raises CtxctlError("write-failed"), UnreadableError("bad-baseline").
    """
    before = read_baseline(path) if path.is_file() else {}
    now: Known = {name: marks for name, marks in before.items() if name not in set(map(name_of, traces))}
    for finding in findings:
        text = f"{finding.code} {visible(finding.message)[:120]}"
        now.setdefault(name_of(finding.trace), {})[finding_mark(finding)] = text
    table = {name: dict(sorted(marks.items())) for name, marks in sorted(now.items())}
    replace_baseline(path, {"findings": table})
    old = {(name, key): text for name, marks in before.items() for key, text in marks.items()}
    new = {(name, key): text for name, marks in now.items() for key, text in marks.items()}
    changes = [f"{visible(name)}: {new[name, key]}, new" for name, key in sorted(new.keys() - old.keys())]
    return changes + [
        f"{visible(name)}: {old[name, key]}, gone" for name, key in sorted(old.keys() - new.keys())
    ]


def read_baseline(path: Path) -> Known:
    """The findings that a baseline knows, by trace; raises UnreadableError."""
    return _KIND.read(path, _parse)


def _parse(data: dict[str, Any]) -> Known:
    return {
        str(name): {str(key): visible(str(said)) for key, said in marks.items()}
        for name, marks in data["findings"].items()
    }
