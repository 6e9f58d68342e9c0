"""What an import of a session remembers, so that another one can go on with it once the session has grown."""

from __future__ import annotations

from typing import Any, Final

from ctxctl import listdiff
from ctxctl.importers.claude_code import (
    blocks,
    chain,
    late_lines,
    lineage,
    reader,
    requests,
    sent_texts,
    thread,
)
from ctxctl.ingest import build, fidelity, lines, parents, understood
from ctxctl.ingest.checkpoint import GoingOn
from ctxctl.model.vocab import Level
from ctxctl.trace.object_graph import GraphTable
from ctxctl.trace.source import Source


def _nothing() -> None:
    return None


TABLE: Final = GraphTable(
    (
        blocks, chain, late_lines, lineage, reader, requests, sent_texts, thread, build, fidelity,
        lines, parents, understood, listdiff,
    ),
    {
        # What the import that goes on makes again.
        reader.Session: {"_handlers": dict, "_records": dict},
        fidelity.Meter: {"_handlers": dict},
        chain.ChainPath: {"_lookup": _nothing, "_holder": _nothing},
        requests.MessageLines: {"sha": _nothing},
    },
    enums=(Level,),
    methods=((reader.Session, "_report"),),
)  # fmt: skip


def _still(state: dict[str, Any], source: Source) -> bool:
    session: reader.Session = state["reader"]
    return lineage.impossible_parent_line(source) == session.impossible and not session.late.read(source)


def _brought(state: dict[str, Any]) -> None:
    state["reader"].brought()
    _, meter, *_ = state["measured"]
    meter.brought()


GOING_ON: Final = GoingOn(TABLE, _still, _brought)
