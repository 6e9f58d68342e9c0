"""Datasets made by hand or by chance, with the tables of the schema; what the ingest makes is tested elsewhere."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ctxctl.dataset import schema
from ctxctl.dataset.schema import SCHEMA_VERSION

TYPES = {
    "string": pa.string(), "bool": pa.bool_(), "int32": pa.int32(), "int64": pa.int64(), "uint64": pa.uint64(),
    "double": pa.float64(), "timestamp": pa.timestamp("us", "UTC"), "binary": pa.binary(),
    "labels": pa.map_(pa.string(), pa.string()), "tokens by name": pa.map_(pa.string(), pa.int64()),
}  # fmt: skip
PLAIN: dict[str, Any] = {
    "string": "", "bool": False, "int32": 0, "int64": 0, "uint64": 0, "double": 0.0, "binary": b"", "labels": [],
    "tokens by name": [],
}  # fmt: skip
Rows = Mapping[str, Sequence[Mapping[str, Any]]]


def written(folder: Path, rows: Rows) -> dict[str, list[str]]:
    """Parquet files of the tables; a column that a row does not name is null, or plain where it cannot be."""
    files = {}
    for table in schema.TABLES:
        made = rows.get(table.name, ())
        unknown = {name for row in made for name in row} - {one.name for one in table.columns}
        assert not unknown, unknown
        arrays = [
            pa.array([row.get(c.name, None if c.null else PLAIN[c.type]) for row in made], TYPES[c.type])
            for c in table.columns
        ]
        path = folder / f"{table.name}.parquet"
        fields = [pa.field(c.name, TYPES[c.type], c.null) for c in table.columns]
        pq.write_table(pa.Table.from_arrays(arrays, schema=pa.schema(fields)), path)
        files[table.name] = [str(path)]
    return files


def dataset(folder: Path, rows: Rows, *, texts: bool = True) -> Path:
    """A dataset with one commit that holds these rows."""
    (folder / "log").mkdir(parents=True)
    (folder / "data").mkdir()
    files = written(folder / "data", rows)
    head = {
        "ctxctl_dataset": 1,
        "schema": SCHEMA_VERSION,
        "id": "0" * 32,
        "key_check": "",
        "texts": texts,
        "paths": True,
    }
    (folder / "dataset.json").write_text(json.dumps(head))
    add = [
        {"table": name, "path": f"data/{name}.parquet", "month": "2026-01", "format": "native", "rows": len(rows.get(name, ())),
         "bytes": Path(paths[0]).stat().st_size, "sha256": sha256(Path(paths[0]).read_bytes()).hexdigest()}
        for name, paths in files.items()
    ]  # fmt: skip
    (folder / "log" / f"{1:020}.json").write_text(json.dumps({"version": 1, "add": add, "remove": []}))
    return folder


def by_chance(seed: int, sessions: int = 120) -> Rows:
    """Rows of every table that hang together as an ingest's do: captures, copies of requests, nulls everywhere."""
    chance = random.Random(seed)
    made = _Chance(chance)
    for number in range(sessions):
        made.session(number)
    return made.rows


class _Chance:
    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.rows: dict[str, list[dict[str, Any]]] = {table.name: [] for table in schema.TABLES}
        self.requests: list[int] = []

    def maybe(self, value: Any, share: float = 0.8) -> Any:
        return value if self.chance.random() < share else None

    def session(self, number: int) -> None:
        pick = self.chance.choice
        started = self.maybe(
            datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=self.chance.randrange(3000)), 0.9
        )
        month = started.strftime("%Y-%m") if started else "unknown"
        where = {"session": (number * 0x9E3779B97F4A7C15) % 2**64, "source": 2**63 + number, "month": month,
                 "format": pick(["claude-code", "codex", "native"])}  # fmt: skip
        client = self.maybe(pick(["claude-code", "codex", "own"]))
        fact = {
            "number": 0, "name": self.maybe(f"s{number}"), "project": self.maybe(pick(["shop", "site", "ünï"])),
            "branch": self.maybe(pick(["main", "dev"])), "client": client,
            "client_version": client and self.maybe(pick(["2.0.1", "2.1.0", "2.10.0"])), "host": "h",
            "labels": [("team", pick(["a", "b"]))] if self.chance.random() < 0.5 else [],
            "model": self.maybe(pick(["m-1", "m-2"])), "started": started, "ended": started,
        }  # fmt: skip
        steps = [self.step(where, fact, ordinal) for ordinal in range(self.chance.randrange(1, 25))]
        self.rows["sources"].append({
            **{name: where[name] for name in ("source", "month", "format")}, "path": self.maybe(f"/logs/{number}.jsonl"),
            "host": "h", "bytes": 1000, "inputs": b"", "ctxctl": "1", "sessions": 1,
        })  # fmt: skip
        self.rows["sessions"].append({
            **where, **fact, "turns": steps[-1]["turn"], "requests": len(steps), "limit": steps[0]["limit"],
            "first_sent": steps[0]["sent"], "largest_sent": max(one["sent"] for one in steps),
            "sent": sum(one["sent"] for one in steps),
        })  # fmt: skip
        for stay in range(self.chance.randrange(2, 40)):
            self.stay(where, len(steps), stay)

    def step(self, where: Mapping[str, Any], fact: Mapping[str, Any], ordinal: int) -> dict[str, Any]:
        sent = self.chance.randrange(1000, 220_000)
        sub = self.chance.random() < 0.2
        if self.requests and self.chance.random() < 0.1:
            request = self.chance.choice(self.requests)
        else:
            request = self.chance.randrange(2**64)
            self.requests.append(request)
        time = fact["started"] and self.maybe(fact["started"] + timedelta(minutes=ordinal), 0.95)
        step = {
            **where, "thread": "explorer" if sub else "main", "sub_agent": sub, "ordinal": ordinal,
            "turn": ordinal // 3 + 1, "step": ordinal % 3 + 1, "target": "ui" if self.chance.random() < 0.05 else "model",
            "time": time, "model": self.maybe(fact["model"]), "request": self.maybe(request), "sent": sent,
            "sent_method": self.chance.choice(["reported", "expected", "recorded"]), "recorded": sent,
            "unrecorded": self.maybe(7), "limit": self.maybe(200_000), "over": self.maybe(max(0, sent - 200_000)),
            "tools": 10, "system": 20, "read": self.maybe(sent // 2), "written": self.maybe(5), "output": self.maybe(30),
            "usd": self.maybe(sent / 1e6), "uncounted": self.chance.choice([0, 0, 2]),
        }  # fmt: skip
        if step["usd"] is not None:
            step["usd_method"] = self.chance.choice(["billed", "billed", "counted", "expected"])
            step["usd_least"] = self.chance.random() < 0.1
        self.rows["steps"].append(step)
        shared = {
            name: step[name]
            for name in (
                "session",
                "source",
                "month",
                "format",
                "thread",
                "sub_agent",
                "ordinal",
                "time",
                "model",
            )
        }
        kind = self.chance.choice(["break", "miss", "none", "none"])
        if kind != "none":
            self.rows["misses"].append({
                **shared, "kind": kind, "cause": self.chance.choice(["updated", "added"] if kind == "break" else ["expired", "unexplained"]),
                "item_kind": self.maybe("tool_definition") if kind == "break" else None,
                "tokens": self.chance.randrange(10_000), "usd": self.maybe(self.chance.random()), "idle": self.maybe(30.5),
            })  # fmt: skip
        if ordinal and self.chance.random() < 0.1:
            self.rows["compactions"].append({
                **shared, "trigger": self.maybe("auto"), "before": sent + 100, "after": sent, "items": 3, "tokens": 60,
                "by_kind": [("tool_result", 50), ("user_message", 10)], "by_tool": [("Read", 40), ("Bash", 10)],
                "summary": self.maybe(5),
            })  # fmt: skip
        return step

    def stay(self, where: Mapping[str, Any], steps: int, number: int) -> None:
        pick = self.chance.choice
        first = self.chance.randrange(steps)
        last = self.chance.randrange(first, steps)
        kind = pick(["tool_result", "tool_result", "tool_definition", "tool_call", "user_message"])
        tool = (
            None
            if kind == "user_message"
            else self.maybe(pick(["Read", "Bash", "mcp__git__log", "mcp__db__ask"]), 0.9)
        )
        if kind == "tool_definition" and number % 3 == 0:
            tool = "mcp__db__never"
        tokens, content = self.maybe(self.chance.randrange(1, 500)), self.maybe(self.chance.randrange(40))
        steps_of = None if tokens is None else tokens * (last - first + 1)
        if content is not None:
            held = {"source": where["source"], "content": content}
            if not any(
                one["source"] == held["source"] and one["content"] == content for one in self.rows["contents"]
            ):
                text = self.maybe(f"content {content}: the quick brown fox") if content % 3 else None
                self.rows["contents"].append({
                    **held, "month": where["month"], "format": where["format"], "kind": kind, "bytes": 10, "tokens": tokens,
                    "text": text,
                })  # fmt: skip
        self.rows["stays"].append({
            **where, "thread": "main", "number": number, "item": number // 2, "kind": kind, "segment": "history",
            "tool": tool, "server": tool.split("__")[1] if tool and tool.startswith("mcp__") else None,
            "path": self.maybe(pick(["a.py", "b.py"]), 0.6) if kind == "tool_result" else None, "content": content,
            "first": first, "last": last, "requests": last - first + 1, "tokens": tokens, "token_steps": steps_of,
            "stale_token_steps": None if steps_of is None else steps_of // pick([1, 2, 10**6]), "entered": "added",
            "left": self.maybe("compacted", 0.3), "usd": self.maybe(self.chance.random() / 100),
        })  # fmt: skip
