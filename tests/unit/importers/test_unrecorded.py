"""What is not in a capture is named by evidence only."""

from __future__ import annotations

import pytest

from ctxctl.importers.registry import available
from ctxctl.ingest.about import About, absent, native
from ctxctl.model.records import Fidelity
from ctxctl.report.sent import lacking_text

NONE = {"not recorded": 9}
ALL = {"native": 9}


def measured(**facts: dict[str, int]) -> Fidelity:
    return Fidelity("x", 9, facts)


def test_facts_that_were_met_nowhere_are_named_in_the_order_of_a_request() -> None:
    found = measured(tool_definitions=NONE, reasoning=NONE, system_prompt=NONE, messages=ALL)
    assert lacking_text([found]) == "system prompt, tools, reasoning"


@pytest.mark.parametrize(
    "facts",
    [
        {"system_prompt": {"native": 1, "not recorded": 8}, "wrapper": ALL},
        {"system_prompt": {"derived": 9}, "wrapper": ALL},
        {"wrapper": ALL},
    ],
)
def test_what_is_there_in_part_or_was_never_counted_is_not_named(facts: dict[str, dict[str, int]]) -> None:
    assert lacking_text([measured(**facts)]) == ""


def test_the_wrapper_is_named_where_nothing_else_is() -> None:
    assert lacking_text([measured(system_prompt=ALL)]) == "wrappers"
    assert lacking_text([measured(system_prompt=NONE)]) == "system prompt"


def test_of_several_imports_all_must_lack_it() -> None:
    both = [measured(system_prompt=NONE, tool_definitions=NONE), measured(tool_definitions=NONE)]
    assert lacking_text(both) == "tools"


def test_what_was_not_understood_is_not_called_not_recorded() -> None:
    unread = {"not understood": 9}
    both = measured(system_prompt=unread, tool_definitions=NONE)
    assert lacking_text([both]) == "tools, system prompt (not understood)"
    assert lacking_text([measured(system_prompt=unread, wrapper=ALL)]) == "system prompt (not understood)"
    assert lacking_text([measured(system_prompt=unread)]) == "system prompt (not understood)"


def test_before_anything_was_measured_the_declaration_says() -> None:
    about = About(
        "", (), "", {"tool_definitions": native(), "system_prompt": absent("no"), "wrapper": native()}
    )
    assert lacking_text((), about) == "system prompt"
    assert lacking_text([measured(system_prompt=ALL, wrapper=ALL)], about) == ""


def test_iflow_declares_that_it_lacks_both() -> None:
    about = next(one.about for one in available() if one.name == "iflow")
    assert lacking_text((), about) == "system prompt, tools"
