"""Pack tables of models into ``ctxctl/tokens/data/models.json.z``.

    build_models.py models.dev=https://models.dev/api.json
    build_models.py models.dev@2026-07-02=rows.jsonl models.dev=api.json litellm@1.9.1,2026-11-12=prices.json

Each source is ``NAME[@STAMP]=FILE`` (or an https address), the oldest first.  A stamp says of when it is: a
date, or a package's version with the date of its release; the newest date of all is the catalogue's.  What a
later source says of a model of a provider replaces what an earlier one said, and what only an earlier one
lists stays, with its stamp.  What is known of the sources:

- ``models.dev`` (MIT): its ``api.json``, or its rows as JSON lines.  Its stamp is the newest change in it,
  where none is given.
- ``litellm`` (MIT): ``model_prices_and_context_window_backup.json`` of its wheel.  Taken are Anthropic's
  models and those of OpenAI that no other source lists.  Its `max_input_tokens` is the window; from GPT-5 on
  it is the longest input.
- ``genai-prices`` (MIT): no file, the package that is installed (``genai-prices@0.2.3,2026-11-10=``).  Taken
  are models of Anthropic, Google and OpenAI that no other source lists.

The packed table is what ``ctxctl.tokens.catalogue`` reads: by model, one list a provider in the order of
``catalogue.table.Row``, what is unknown at the end of a list left out.  Prices are US dollars for a million
tokens.  A number that cannot be meant (a window of 0, a price below 0) is left out, as if the source did not
have it.  The same sources give the same bytes.
"""

from __future__ import annotations

import argparse
import json
import re
import urllib.request
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

OUT = Path(__file__).resolve().parent.parent / "ctxctl" / "tokens" / "data" / "models.json.z"
PRICES = (
    "input", "output", "cache_read", "cache_write", "cache_write_1h", "audio_input", "audio_output",
    "reasoning",
)  # fmt: skip
_SPELLINGS = {
    "cache_input": "cache_read", "cached_input": "cache_read", "cached_write": "cache_write",
    "input_audio": "audio_input", "output_audio": "audio_output",
}  # fmt: skip
_DAY = re.compile(r"20\d\d-\d\d-\d\d")
_SPLIT = re.compile(r"gpt-[5-9]|daybreak|chat-latest")
"""OpenAI's models whose longest input is not their window."""
_DATED = re.compile(r"-20\d\d-?\d\d-?\d\d$")
_MAKERS = {"anthropic": "anthropic", "google": "google", "openai": "openai"}
"""Providers whose models genai-prices is asked for: its name for them, and ours."""
Json = dict[str, Any]
Told = dict[tuple[str, str], Json]


def rows_of_models_dev(data: bytes, known: Told) -> Iterator[Json]:
    """The models of either spelling of models.dev, each with `provider` and `model`."""
    try:
        whole = json.loads(data)
    except json.JSONDecodeError:
        yield from (json.loads(line) for line in data.splitlines() if line.strip())
        return
    if isinstance(whole.get("provider"), str):
        yield whole  # the only row of a file of rows
        return
    for provider, about in whole.items():
        for model, told in about.get("models", {}).items():
            limit, cost = told.get("limit", {}), dict(told.get("cost", {}))
            above = cost.pop("context_over_200k", None)
            tiers = cost.pop("tiers", None) or ([{**above, "tier": {"size": 200_000}}] if above else [])
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


def rows_of_litellm(data: bytes, known: Told) -> Iterator[Json]:
    """Models of Anthropic, and those of OpenAI that are not known yet."""
    for name, told in json.loads(data).items():
        provider, size = told.get("litellm_provider"), told.get("max_input_tokens")
        if told.get("mode") not in ("chat", "responses") or not size:
            continue
        if provider not in ("anthropic", "openai"):
            continue
        listed = (provider, name) in known or (provider, _DATED.sub("", name)) in known
        if provider == "openai" and (listed or ":" in name):
            continue
        before = known.get((provider, name), {})
        window = _SPLIT.match(name) is None
        yield {
            **before,
            "provider": provider,
            "model": name,
            "window": size if window else None,
            "max_input": None if window else size,
            "max_output": told.get("max_output_tokens"),
            "usd_per_mtok": _litellm_prices(told, ""),
            "tiers": {"tiers": list(_litellm_tiers(told))},
        }


def _litellm_prices(told: Json, above: str) -> Json:
    fields = {
        "input": f"input_cost_per_token{above}",
        "output": f"output_cost_per_token{above}",
        "cache_read": f"cache_read_input_token_cost{above}",
        "cache_write": f"cache_creation_input_token_cost{above}",
        "cache_write_1h": f"cache_creation_input_token_cost_above_1hr{above}",
        "audio_input": f"input_cost_per_audio_token{above}",
        "audio_output": f"output_cost_per_audio_token{above}",
    }
    return {ours: told[theirs] * 1e6 for ours, theirs in fields.items() if told.get(theirs) is not None}


def _litellm_tiers(told: Json) -> Iterator[Json]:
    for name in told:
        found = re.fullmatch(r"input_cost_per_token_above_(\d+)k_tokens", name)
        if found:
            above = f"_above_{found[1]}k_tokens"
            yield {**_litellm_prices(told, above), "tier": {"size": int(found[1]) * 1000}}


def rows_of_genai_prices(data: bytes, known: Told) -> Iterator[Json]:
    """Models that are not known yet, as the installed package has them."""
    from genai_prices.data import providers

    for provider in providers:
        ours = _MAKERS.get(provider.id)
        for model in provider.models if ours is not None else ():
            prices = model.prices if not isinstance(model.prices, list) else model.prices[-1].prices
            flat = {key: getattr(prices, f"{key}_mtok", None) for key in PRICES}
            priced = {key: _base(price) for key, price in flat.items() if price is not None}
            if (ours, model.id) in known or model.context_window is None or "input" not in priced:
                continue
            if model.id.startswith("gpt-oss") or (ours == "google" and not model.id.startswith("gemini")):
                continue  # not of this provider's own service
            yield {
                "provider": ours,
                "model": model.id,
                "window": model.context_window,
                "usd_per_mtok": priced,
                "tiers": {"tiers": list(_genai_tiers(flat))},
                "deprecated": bool(model.deprecated),
            }


def _base(price: Any) -> float:
    return float(getattr(price, "base", price))


def _genai_tiers(flat: Json) -> Iterator[Json]:
    sizes = sorted({tier.start for price in flat.values() for tier in getattr(price, "tiers", ())})
    for size in sizes:
        at = {}
        for key, price in flat.items():
            for tier in getattr(price, "tiers", ()):
                if tier.start <= size:
                    at[key] = float(tier.price)
        yield {**at, "tier": {"size": size}}


READERS: dict[str, Callable[[bytes, Told], Iterator[Json]]] = {
    "models.dev": rows_of_models_dev,
    "litellm": rows_of_litellm,
    "genai-prices": rows_of_genai_prices,
}


def packed(row: Json) -> list[Any]:
    """One model as `catalogue.table.Row` has it."""
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
        sorted(tiers, key=lambda tier: int(tier[0])),
        row.get("updated"),
        bool(row.get("deprecated")),
        row["source"],
    ]


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and value > 0 else None


def _prices(table: Json) -> list[float | None]:
    spelled = {_SPELLINGS.get(name, name): price for name, price in table.items()}
    found = [spelled.get(name) for name in PRICES]
    kept = [round(p, 6) if isinstance(p, int | float) and p >= 0 else None for p in found]
    while kept and kept[-1] is None:
        kept.pop()
    return kept


def merged(sources: Iterable[tuple[str, str | None, bytes]]) -> Json:
    """The whole table of sources, the oldest first.

    Args:
        sources: Each a name, its stamp (None: its newest change), its data.
    """
    known: Told = {}
    stamps: list[list[str]] = []
    for name, stamp, data in sources:
        rows = list(READERS[name](data, known))
        changed = [row["updated"] for row in rows if len(str(row.get("updated") or "")) == 10]
        stamps.append([name, stamp or max(changed, default="")])
        for row in rows:
            known[row["provider"], row["model"]] = {**row, "source": len(stamps) - 1}
    dated = [found for _, stamp in stamps for found in _DAY.findall(stamp)]
    rows = [packed(known[key]) for key in sorted(known)]
    return {"date": max(dated, default=""), "sources": stamps, "rows": rows}


def grouped(table: Json) -> Json:
    """The table as it is packed: all providers' rows by model, so that one is read without the others."""
    models: dict[str, list[Any]] = {}
    for row in table["rows"]:
        models.setdefault(row[1].lower(), []).append(row)
    providers = sorted({row[0] for row in table["rows"]})
    return {"date": table["date"], "sources": table["sources"], "providers": providers, "models": models}


def _read(place: str) -> bytes:
    if place.startswith("https://"):
        with urllib.request.urlopen(place, timeout=60) as answer:
            return bytes(answer.read())
    return Path(place).read_bytes() if place else b""


def main() -> None:
    """Read the sources, write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source", nargs="+", metavar="NAME[@STAMP]=FILE")
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args()
    sources = []
    for given in args.source:
        named, equals, place = given.partition("=")
        name, _, stamp = named.partition("@")
        if not equals or name not in READERS:
            parser.error(f"{given}: not NAME[@STAMP]=FILE with a name of {', '.join(READERS)}")
        sources.append((name, stamp.replace(",", ", ") or None, _read(place)))
    table = merged(sources)
    args.out.write_bytes(zlib.compress(json.dumps(grouped(table), separators=(",", ":")).encode(), 9))
    told = ", ".join(" ".join(source) for source in table["sources"])
    print(f"{len(table['rows'])} models of {told}: {args.out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
