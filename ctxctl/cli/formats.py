"""``ctxctl formats``: which captures can be opened, and what each of them tells."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from ctxctl.cli import options as opt
from ctxctl.cli.parameters import Argument, Done

if TYPE_CHECKING:
    from ctxctl.cli.output import Output
    from ctxctl.entry_points import Plugin
    from ctxctl.ingest.declaration import Format

Name = Annotated[
    str | None, Argument(metavar="[NAME]", help="One format: what it reads and what it records.")
]


@opt.takes(opt.PAGED)
def formats(
    options: opt.CommonOptions,
    name: Name = None,
) -> None:
    """List the formats that can be opened directly or imported, or describe one."""
    from ctxctl.cli.run import begin
    from ctxctl.importers.registry import available, broken_plugin_of, broken_plugins, by_name

    run = begin(options)
    if name is not None:
        found = by_name(name)
        _one(found, run.out, json=options.json)
        broken = broken_plugin_of(found)
        _broken((broken,) if broken is not None else (), run.out, json=options.json)
    else:
        _all(available(), run.out, json=options.json)
        _broken(broken_plugins(), run.out, json=options.json)
    run.out.flush()
    raise Done(0)


def _all(known: tuple[Format, ...], out: Output, *, json: bool) -> None:
    from ctxctl.report.tables import Column, table
    from ctxctl.text import visible

    found = [("native", "ctxctl trace: Agent Context events as JSON Lines", "recorded")]
    found += sorted((f.name, f.title, f.default_policy) for f in known)
    if json:
        for name, title, policy in found:
            out.json({"type": "format", "name": name, "title": title, "default_policy": policy})
        return
    columns = (Column("format"), Column("what", least=20), Column("policy"))
    rows = [tuple(visible(cell) for cell in row) for row in found]
    listed = table(columns, rows, out.width)
    out.lines([*listed.head, *(line for lines in listed.rows for line in lines)])


def _broken(plugins: tuple[Plugin, ...], out: Output, *, json: bool) -> None:
    """Name the plug-ins that do not work, each with its error."""
    from ctxctl.text import visible

    for plugin in plugins:
        if json:
            out.json({"type": "plugin", "name": plugin.name, "value": plugin.value, "error": plugin.error})
        else:
            out.lines([visible(f"the plug-in {plugin.name} ({plugin.value}) {plugin.trouble}")])


def _one(found: Format, out: Output, *, json: bool) -> None:
    from ctxctl.report.fidelity import declared, declared_lines, held_against

    about = found.about
    if json:
        out.json(
            {
                "type": "format",
                "name": found.name,
                "title": found.title,
                "default_policy": found.default_policy,
                "reads": about.reads,
                "places": about.places,
                "turns": about.turns,
                "limits": about.limits,
                "origin": about.origin or None,
                "held_against": held_against(about),
                "facts": declared(about),
            }
        )
        return
    out.lines(_described(found, out.width))
    out.lines(["", *declared_lines(about, out.width)])


def _described(found: Format, width: int) -> Iterator[str]:
    """What a format is, in labelled paragraphs."""
    from ctxctl.ingest.about import sentence
    from ctxctl.report.fidelity import held_words
    from ctxctl.report.tables import labelled
    from ctxctl.text import visible

    about = found.about
    facts = [("format", found.name), ("what", found.title), ("policy", found.default_policy)]
    facts.append(("reads", about.reads))
    facts += [("found in", place) for place in about.places]
    facts.append(("turns", about.turns))
    facts += [("left out", sentence(limit)) for limit in about.limits]
    if told := held_words(about):
        facts.append(("held to", told))
    if about.origin:
        facts.append(("facts of", about.origin))
    for label, text in facts:
        yield from labelled(label, visible(text), width, indent=0, tab=9)
