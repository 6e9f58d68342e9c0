"""``ctxctl formats``: which captures can be opened."""

from __future__ import annotations

import typer

from ctxctl.cli import options as opt


def formats(json: opt.Json = False) -> None:
    """List the formats that can be opened directly or imported."""
    from ctxctl.cli.session import manner
    from ctxctl.formats.registry import available
    from ctxctl.report.tables import Column, table
    from ctxctl.text import visible

    how = manner(json=json)
    found = [("native", "ctxctl trace: Agent Context events as JSON Lines", "recorded")]
    found += [(f.name, f.title, f.default_policy) for f in available()]
    if json:
        for name, title, policy in found:
            how.out.json({"type": "format", "name": name, "title": title, "default_policy": policy})
    else:
        columns = (Column("format"), Column("what", least=20), Column("policy"))
        rows = [tuple(visible(cell) for cell in row) for row in found]
        listed = table(columns, rows, how.out.width)
        how.out.lines([*listed.head, *(line for lines in listed.rows for line in lines)])
    how.out.flush()
    raise typer.Exit(0)
