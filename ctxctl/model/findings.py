"""What a rule found in a trace: values that every view of findings reads.

Texts hold words of the trace as they are; a view makes them visible.  Tokens are integers, money is exact.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final, Literal

import msgspec

Severity = Literal["error", "warning", "info"]
SEVERITIES: Final[tuple[Severity, ...]] = ("error", "warning", "info")
"""The worst first.  `error`: a record contradicts itself or leaks; `warning`: costs something or misleads;
`info`: worth a look."""


class Place(msgspec.Struct, frozen=True, gc=False):
    """Where something was found.  A step has an address; a finding about no step has only a line."""

    ordinal: int | None
    """Of the step, 0-based in the trace."""
    session: str | None
    thread: str
    turn: int | None
    step: int | None
    line: int
    """Of the event that shows it, 1-based; 0 where none does."""
    event_id: str | None = None
    session_needed: bool = False
    """Whether an address has to name the session: the trace holds several."""


class Finding(msgspec.Struct, frozen=True):
    """One finding: a rule, one subject, and every place at which it was found.

    Findings come in the order of `findings_order`, which depends on nothing but the trace and the settings.
    """

    code: str
    """`CTX012`, stable."""
    name: str
    """The rule's name in words with hyphens, stable."""
    severity: Severity
    message: str
    """One sentence without a full stop: what is wrong."""
    fix: str
    """One sentence: what to do about it."""
    place: Place
    """The first one."""
    item: str | None = None
    """The item that it is about, or the first of several."""
    subject: str = ""
    """What tells the finding apart from others of its rule in the same thread, and from run to run."""
    count: int = 1
    """Places at which it was found, `place` included."""
    more: tuple[Place, ...] = ()
    """The next few of them."""
    tokens: int | None = None
    """What it cost in tokens, over all places; None where that is not known or does not apply."""
    money: Decimal | None = None
    """The same in US dollars; None where no price is known, or not for all of it."""
    note: str | None = None
    """How the cost was reckoned, where that needs saying."""
    trace: str = ""
    """The trace's name as the user typed it."""


def findings_order(finding: Finding) -> tuple[object, ...]:
    """Sort key: the worst first, then the dearest, then by rule and place."""
    return (
        SEVERITIES.index(finding.severity),
        -(finding.tokens or 0),
        finding.code,
        finding.place.line,
        finding.place.ordinal or 0,
        finding.subject,
    )


class Tally(msgspec.Struct):
    """What was held against a trace, beside the findings."""

    rules: tuple[str, ...] = ()
    """Codes of the rules that ran, in order."""
    steps: int = 0
    more: dict[str, int] = {}
    """By code, findings beyond those that were kept."""
    ignored: dict[str, int] = {}
    """By code, findings that the trace itself asks to ignore."""
    idle: dict[str, str] = {}
    """By code, why a rule had nothing to look at: what it needs is not recorded."""
