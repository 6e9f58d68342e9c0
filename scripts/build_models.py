"""Pack models.dev's table of models (MIT) into ``ctxctl/tokens/data/models.json.z``.

    build_models.py FILE --date 2026-07-02    a saved api.json of models.dev, or its rows as JSON lines
    build_models.py https://models.dev/api.json

The packed table is what ``ctxctl.tokens.catalogue`` reads: one list a model, in the order of
``catalogue.Row``.  Prices are US dollars for a million tokens.  A number that cannot be meant (a window of 0,
a price below 0) is left out, as if the source did not have it.
"""

from __future__ import annotations

import argparse
import datetime
import json
import urllib.request
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

OUT = Path(__file__).resolve().parent.parent / "ctxctl" / "tokens" / "data" / "models.json.z"
PRICES = ("input", "output", "cache_read", "cache_write")
_SPELLINGS = {"cache_input": "cache_read", "cached_input": "cache_read", "cached_write": "cache_write"}


def rows_of(data: bytes) -> Iterator[dict[str, Any]]:
    """The models of either spelling of the source, each with `provider` and `model`."""
    try:
        whole = json.loads(data)
    except json.JSONDecodeError:
        yield from (json.loads(line) for line in data.splitlines() if line.strip())
        return
    for provider, about in whole.items():
        for model, told in about.get("models", {}).items():
            limit, cost = told.get("limit", {}), dict(told.get("cost", {}))
            above = cost.pop("context_over_200k", None)
            tiers = [{**above, "tier": {"size": 200_000}}] if above else cost.pop("tiers", [])
            yield {
                "provider": provider,
                "model": model,
                "family": told.get("family"),
                "window": limit.get("context"),
                "max_input": limit.get("input"),
                "max_output": limit.get("output"),
                "usd_per_mtok": cost,
                "tiers": {"tiers": tiers},
                "updated": told.get("last_updated"),
                "deprecated": told.get("status") == "deprecated",
            }


def packed(row: dict[str, Any]) -> list[Any]:
    """One model as `catalogue.Row` has it."""
    tiers = [
        [tier["tier"]["size"], *_prices(tier)]
        for tier in (row.get("tiers") or {}).get("tiers", ())
        if isinstance(tier.get("tier", {}).get("size"), int)
    ]
    return [
        row["provider"],
        row["model"],
        row.get("family"),
        _count(row.get("window")),
        _count(row.get("max_input")),
        _count(row.get("max_output")),
        _prices(row.get("usd_per_mtok") or {}),
        tiers,
        row.get("updated"),
        bool(row.get("deprecated")),
    ]


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and value > 0 else None


def _prices(table: dict[str, Any]) -> list[float | None]:
    spelled = {_SPELLINGS.get(name, name): price for name, price in table.items()}
    found = [spelled.get(name) for name in PRICES]
    return [round(p, 6) if isinstance(p, int | float) and p >= 0 else None for p in found]


def main() -> None:
    """Read the source, write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("source")
    parser.add_argument("--date", help="when the source was taken (default: today)")
    args = parser.parse_args()
    if args.source.startswith("https://"):
        with urllib.request.urlopen(args.source, timeout=60) as answer:
            data = answer.read()
    else:
        data = Path(args.source).read_bytes()
    rows = sorted((packed(row) for row in rows_of(data)), key=lambda row: (row[0], row[1]))
    table = {"date": args.date or datetime.date.today().isoformat(), "rows": rows}
    OUT.write_bytes(zlib.compress(json.dumps(table, separators=(",", ":")).encode(), 9))
    print(f"{len(rows)} models, {OUT.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
