"""What a capture cost by its bills alone, and by the whole reading: for tests that compare the two."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from ctxctl.analysis import session_costs, session_facts
from ctxctl.analysis.cost_groups import CostWords, SessionCosts
from ctxctl.fleet.session_list import ReadSession
from ctxctl.model.session_list import SessionFacts
from ctxctl.report.cost_sums import cost_facts, sums_fields
from ctxctl.session.billed_steps import BilledSteps, billed_steps

WORDS = CostWords("model", None, None, None, "saved", "none", {}, contents=False)


def of_bills(path: Path, format_name: str, *, prompt: bool = False) -> BilledSteps | None:
    """The capture's requests by its bills; None where they are not sure."""
    return billed_steps(
        str(path), format_name, target=WORDS.target, model=None, encoding=None, policy=None,
        calibration=WORDS.calibration, learned=WORDS.learned, prompt=prompt,
    )  # fmt: skip


def listed(path: Path, format_name: str) -> tuple[SessionFacts, SessionFacts] | None:
    """What `ls` shows of a capture by its bills, and by the whole reading; None where those are not sure."""
    words = msgspec.msgpack.encode(WORDS)

    def told() -> SessionFacts:
        data, _ = session_facts.work(str(path), format_name, words, b"")
        return msgspec.msgpack.decode(data, type=ReadSession).facts

    if of_bills(path, format_name, prompt=True) is None:
        return None
    first = told()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session_facts, "billed_steps", lambda *_, **__: None)
        return first, told()


def printed(path: Path, format_name: str, *, contents: bool = False) -> dict[str, Any]:
    """All that `cost DIR` shows of a capture, in text and as JSON, less what only contents tell.

    Args:
        path: The capture.
        format_name: Its format.
        contents: Read it whole.
    """
    words = msgspec.structs.replace(WORDS, contents=contents)
    data, lasting = session_costs.work(str(path), format_name, msgspec.msgpack.encode(words), b"")
    costs = msgspec.msgpack.decode(data, type=SessionCosts)
    shown: dict[str, Any] = {"lasting": lasting}
    for name in SessionCosts.__struct_fields__:
        if name != "parts":
            shown[name] = getattr(costs, name)
    shown["parts"] = [
        (
            part.session, part.day, part.branch, part.model, part.first, part.last,
            sums_fields(part.sums, contents=False), list(cost_facts(part.sums, contents=False)),
        )
        for part in costs.parts
    ]  # fmt: skip
    return shown
