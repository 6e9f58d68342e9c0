"""Pack what the installed genai-prices knows into ``ctxctl/tokens/data/genai_prices.json.z``.

    build_prices.py

The library takes longer to import (pydantic, an HTTP client, a table of constructor calls) than most commands
take to run.  What ctxctl asks of it is a table of prices by model and day, and where in a response its bill
stands; both are read from here for as long as the installed version is the packed one
(`ctxctl.tokens.catalogue.packed`).  A test builds the file anew and compares, so an upgrade of the library is
followed by ``make prices``.

The same version gives the same bytes.
"""

from __future__ import annotations

import dataclasses
import json
import zlib
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

OUT = Path(__file__).resolve().parent.parent / "ctxctl" / "tokens" / "data" / "genai_prices.json.z"
BILLS = (("anthropic", "default"), ("google", "default"))
"""Providers and flavours of their APIs whose bills are read (`ctxctl.providers.dialects.base`)."""
Json = dict[str, Any]


def packed(catalogue_date: str) -> bytes:
    """The whole file.

    Args:
        catalogue_date: YYYY-MM-DD, of `ctxctl.tokens.catalogue.table`: a model is listed by its prices then.
    """
    from genai_prices.data import providers

    when = datetime.fromisoformat(f"{catalogue_date}T12:00:00+00:00")
    whole = {
        "version": version("genai_prices"),
        "bills": [
            {"provider": provider.id, "flavour": rule.api_flavor, **_bill(rule)}
            for provider in providers
            for rule in provider.extractors or ()
            if (provider.id, rule.api_flavor) in BILLS
        ],
        "providers": [_provider(provider, when) for provider in providers],
    }
    return zlib.compress(json.dumps(whole, separators=(",", ":"), default=_plain).encode(), 9)


def _provider(provider: Any, when: datetime) -> Json:
    return {
        "id": provider.id,
        "match": _match(provider.provider_match),
        "fallbacks": provider.fallback_model_providers or [],
        "models": [
            {
                "match": _match(model.match),
                "listed": _is_listed(model, provider, when),
                "prices": _dated(model.prices),
                "price_variants": [
                    {"when": v.when, "prices": _prices(v.prices), "constraint": _constraint(v.constraint)}
                    for v in model.price_variants or ()
                ],
            }
            for model in provider.models
        ],
    }


def _is_listed(model: Any, provider: Any, when: datetime) -> bool:
    """Whether the library can price a request of text to a model."""
    from genai_prices import Usage

    usage = Usage(input_tokens=1, output_tokens=1)
    try:
        found = model.calc_price(usage, provider, genai_request_timestamp=when)
    except (LookupError, ValueError):
        return False
    return found.model_price.input_mtok is not None


def _match(clause: Any) -> Json | None:
    """A clause as the library's own JSON has it: one key, which says how."""
    if clause is None:
        return None
    ((name, value),) = vars(clause).items()
    if isinstance(value, list):
        return {name.rstrip("_"): [_match(one) for one in value]}
    return {name: value}


def _dated(prices: Any) -> list[Json]:
    if not isinstance(prices, list):
        return [{"prices": _prices(prices)}]
    return [{"prices": _prices(one.prices), "constraint": _constraint(one.constraint)} for one in prices]


def _constraint(constraint: Any) -> Json | None:
    return None if constraint is None else dataclasses.asdict(constraint)


def _prices(prices: Any) -> Json:
    from ctxctl.tokens.catalogue.packed import LibraryPrices

    kept = {name: getattr(prices, name) for name in LibraryPrices.__struct_fields__}
    return {
        name: dataclasses.asdict(price) if dataclasses.is_dataclass(price) else price  # type: ignore[arg-type]
        for name, price in kept.items()
        if price is not None
    }


def _bill(rule: Any) -> Json:
    """Where the numbers stand, but for those in lists, of which `base.usage_record_of` takes none."""
    paths = [[part.path] if isinstance(part.path, str) else list(part.path) for part in rule.mappings]
    return {
        "parts": [
            [path, part.dest, part.required]
            for path, part in zip(paths, rule.mappings, strict=True)
            if all(isinstance(step, str) for step in path)
        ]
    }


def _plain(value: Any) -> str:
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def main() -> None:
    """Write the file."""
    from ctxctl.tokens.catalogue.table import load_table

    OUT.write_bytes(packed(load_table().date))
    print(f"genai-prices {version('genai_prices')}: {OUT.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
