"""What the rules of `ctxctl lint` found, as the lists mark it: by turn, step and item.  Plain Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeVar

from ctxctl.model.findings import Finding, Severity

TurnName = tuple[str | None, str, int]


class FindingMark(NamedTuple):
    """One finding, as it stands beside a turn, a step or an item; the message is raw."""

    severity: Severity
    message: str


Marks = tuple[FindingMark, ...]


@dataclass(frozen=True, slots=True)
class FindingMarks:
    """The findings at each place, the worst first.

    A finding keeps the first places at which it was found; at the others the item that it is about is marked,
    where it is about one.
    """

    turns: Mapping[TurnName, Marks] = field(default_factory=dict)
    steps: Mapping[int, Marks] = field(default_factory=dict)
    """By the step's ordinal."""
    items: Mapping[str, Marks] = field(default_factory=dict)

    @classmethod
    def of(cls, findings: Iterable[Finding], directory: str | None) -> FindingMarks:
        """The marks of findings, which come in their order; paths are told from the directory."""
        turns: dict[TurnName, list[FindingMark]] = {}
        steps: dict[int, list[FindingMark]] = {}
        items: dict[str, list[FindingMark]] = {}
        for finding in findings:
            mark = FindingMark(finding.severity, local_message(finding.message, directory))
            if finding.item is not None:
                items.setdefault(finding.item, []).append(mark)
            places = (finding.place, *finding.more)
            named = {(p.session, p.thread, p.turn) for p in places if p.turn is not None}
            for session, thread, turn in named:
                assert turn is not None
                turns.setdefault((session, thread, turn), []).append(mark)
            for ordinal in {p.ordinal for p in places if p.ordinal is not None}:
                steps.setdefault(ordinal, []).append(mark)
        return cls(_whole(turns), _whole(steps), _whole(items))


NO_MARKS: Final = FindingMarks()
"""Nothing is marked: nothing was found, or not looked for yet."""


def local_message(message: str, directory: str | None) -> str:
    """A finding's sentence, with paths below the directory told from there."""
    return message.replace(f"{directory.rstrip('/')}/", "") if directory and directory.strip("/") else message


def phrase(marks: Marks) -> str:
    """The worst of several findings in words, and how many more there are; raw."""
    more = f" (+{len(marks) - 1})" if len(marks) > 1 else ""
    return f"{marks[0].message}{more}" if marks else ""


def style(marks: Marks) -> str:
    """How the sign of some findings looks."""
    return "muted" if all(mark.severity == "info" for mark in marks) else "warning"


_Key = TypeVar("_Key")


def _whole(found: Mapping[_Key, list[FindingMark]]) -> dict[_Key, Marks]:
    return {key: tuple(marks) for key, marks in found.items()}
