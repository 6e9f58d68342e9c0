"""What an import of a rollout remembers, so that another one can go on with it once the rollout has grown."""

from __future__ import annotations

from typing import Any, Final

from ctxctl import listdiff
from ctxctl.importers.codex import forks, history, parts, reader
from ctxctl.ingest import build, conversation, fidelity, item_identity, lines, run, understood
from ctxctl.ingest import parts as ingest_parts
from ctxctl.ingest.checkpoint import GoingOn
from ctxctl.model.vocab import Level
from ctxctl.trace.object_graph import GraphTable
from ctxctl.trace.source import Source

TABLE: Final = GraphTable(
    (
        forks, history, parts, reader, build, conversation, fidelity, item_identity, lines, run, understood,
        ingest_parts, listdiff,
    ),
    {
        # What the import that goes on makes again.
        reader.Rollout: {"_types": dict, "_source": lambda: None},
        fidelity.Meter: {"_handlers": dict},
    },
    enums=(Level,),
)  # fmt: skip


def _still(state: dict[str, Any], source: Source) -> bool:
    held: bool = state["reader"].still(source)
    return held


def _brought(state: dict[str, Any]) -> None:
    state["reader"].brought()
    _, meter, *_ = state["measured"]
    meter.brought()


GOING_ON: Final = GoingOn(TABLE, _still, _brought)
