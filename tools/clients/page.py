"""The table of docs/recording.md: written between two marks from what came of the runs."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Final, NamedTuple

from ctxctl.record.clients import CLIENTS
from tools.clients.running import ROOT, Outcome

PAGE: Final = ROOT / "docs" / "recording.md"
BEGIN: Final = "<!-- clients: written by `make clients` -->"
END: Final = "<!-- clients end -->"


class Row(NamedTuple):
    """One client as it was tried."""

    version: str
    alone: Outcome
    own: Outcome
    given: Outcome


def write(rows: dict[str, Row], failed: dict[str, str], page: Path = PAGE) -> None:
    """Put the table into the page; rows of clients that were not tried say why."""
    text = page.read_text(encoding="utf-8")
    head, rest = text.split(BEGIN, 1)
    tail = rest.split(END, 1)[1]
    page.write_text(f"{head}{BEGIN}\n\n{table(rows, failed)}\n{END}{tail}", encoding="utf-8")


def table(rows: dict[str, Row], failed: dict[str, str], day: datetime.date | None = None) -> str:
    """The table and a line on what it says."""
    tried = day or datetime.datetime.now(datetime.UTC).date()
    made = [
        f"Tried on {tried}: two prompts with tool calls, the second resumed, against a server of our own.",
        "",
        "| client | version | led by | requests, steps | bodies equal | usage equal | exit code, output |",
        "|---|---|---|---|---|---|---|",
    ]
    for client in CLIENTS:
        row = rows.get(client.name)
        if row is None:
            why = failed.get(client.name, "not tried")
            made.append(f"| {client.name} | {why} | {client.way} | | | | |")
        else:
            made.append(f"| {client.name} | {row.version} | {client.way} | {_cells(row)} |")
    return "\n".join(made) + "\n"


def _cells(row: Row) -> str:
    ways = [way for way in (row.own, row.given) if way.held is not None]
    holds = [way.held for way in ways if way.held is not None]
    requests, steps = sum(one.requests for one in holds), sum(one.steps for one in holds)
    bodies, usage, told = (sum(getattr(one, name) for one in holds) for name in ("bodies", "usage", "told"))
    same = row.alone.codes == row.own.codes and row.alone.output == row.own.output
    return (
        f"{requests}, {steps} | {bodies} of {requests} | "
        f"{f'{usage} of {told}' if told else 'its streams tell none'} | {'as without' if same else 'differ'}"
    )
