"""``ctxctl policies``: what a session can be replayed under, and with which parameters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from ctxctl.cli import options as opt
from ctxctl.cli.parameters import Argument, Done

if TYPE_CHECKING:
    from ctxctl.policies.registry import PolicyListing

Name = Annotated[
    str | None,
    Argument(
        metavar="[NAME]", help="One policy: its rules and parameters.", autocompletion=opt.complete_policies
    ),
]


@opt.takes(opt.PAGED)
def policies(
    options: opt.CommonOptions,
    name: Name = None,
) -> None:
    """List the policies that a session can be replayed under, or describe one."""
    from ctxctl.cli.run import begin
    from ctxctl.policies.registry import described_policies, policy_by_name

    run = begin(options)
    if name is not None:
        policy_by_name(name)  # says which there are
    known = [about for about in described_policies() if name is None or about.name == name.partition(":")[0]]
    if options.json:
        for about in known:
            run.out.json(_object(about))
    elif name is not None:
        run.out.lines(_policy_lines(known[0], run.out.width))
    else:
        run.out.lines(_listed(known, run.out.width))
    run.out.flush()
    raise Done(0)


def _listed(known: list[PolicyListing], width: int) -> Iterator[str]:
    from ctxctl.report.tables import labelled, wrap
    from ctxctl.text import cells, visible

    names = [visible(about.name) for about in known]
    tab = max(map(cells, names)) + 2
    for name, about in zip(names, known, strict=True):
        yield from labelled(name, visible(about.what), width, tab=tab)
    yield ""
    yield from wrap(
        f"{_policy_names(known)} say what is left out of a window that is too small. "
        "`ctxctl policies NAME` shows the rules and parameters of one; "
        "`--policy NAME:PARAMETER=VALUE,…` sets them.",
        width,
    )


def _policy_names(known: list[PolicyListing]) -> str:
    others = [about.name for about in known if not about.fits]
    return f"All but {', '.join(others[:-1])} and {others[-1]}" if others[1:] else f"All but {others[0]}"


def _policy_lines(about: PolicyListing, width: int) -> Iterator[str]:
    from ctxctl.policies.registry import parameter_text
    from ctxctl.report.tables import Column, labelled, table, wrap
    from ctxctl.text import visible

    yield from labelled("policy", visible(about.name), width)
    paragraphs = about.rules.split("\n\n")
    yield from labelled("what", visible(about.what), width)
    for paragraph in paragraphs[1:]:
        yield ""
        for line in _entries(paragraph):
            yield from wrap(visible(line), width)
    if about.parameters:
        columns = (
            Column("parameter"), Column("type"), Column("default", least=12), Column("what", least=20),
        )  # fmt: skip
        rows = [
            (p.name, p.kind, parameter_text(p.default) or "(none)", visible(p.what)) for p in about.parameters
        ]
        listed = table(columns, rows, width)
        yield ""
        yield from listed.head
        yield from (line for lines in listed.rows for line in lines)


def _entries(paragraph: str) -> Iterator[str]:
    """The points of a list, or the paragraph, each as one line."""
    entry: list[str] = []
    for line in paragraph.splitlines():
        if line.startswith("- ") and entry:
            yield " ".join(entry)
            entry = []
        entry.append(line.strip())
    yield " ".join(entry)


def _object(about: PolicyListing) -> dict[str, object]:
    return {
        "type": "policy",
        "name": about.name,
        "what": about.what,
        "rules": about.rules,
        "fits": about.fits,
        "parameters": [{"name": p.name, "type": p.kind, "default": p.default} for p in about.parameters],
    }
