"""What is known of a model as a trace names it: limits and prices, where from, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from ctxctl.tokens.catalogue.names import MAKERS, Spelling, large_window, provider_of, spellings
from ctxctl.tokens.catalogue.table import Prices, Row, Table, Tier, load_table

MILLION: Final = 1_000_000


class KnownModel(NamedTuple):
    """What the settings or the table say of a model; None is what neither says."""

    asked: str
    """The name as given: untrusted text."""
    provider: str | None
    model: str | None
    """As the table spells it."""
    window: int | None
    max_input: int | None
    max_output: int | None
    prices: Prices
    tiers: tuple[Tier, ...]
    how: str
    """`settings`; `listed`: by the provider that was named; `agreed`: nobody named one, and all that list it
    have the same limits; `maker`: they have not, these are those of its maker's own service; `reseller`: its
    maker is not known here, and one provider lists it; `disputed`: several do and disagree; `unknown`."""
    note: str
    """One sentence of how it was found and what was assumed."""
    others: tuple[Row, ...] = ()
    """Rows of other providers that list the same model."""
    deprecated: bool = False
    updated: str | None = None
    source: str = ""
    """Whose row it is, and of when."""
    tuned: bool = False
    """It is somebody's fine-tune, whose price nobody lists."""

    @property
    def sure(self) -> bool:
        """Whether nothing was assumed: which provider it was is known, or does not matter."""
        return self.how in ("settings", "listed", "agreed")


def find_model(
    model: str,
    provider: str | None = None,
    *,
    url: str | None = None,
    own: Mapping[str, Mapping[str, Any]] | None = None,
    table: Table | None = None,
) -> KnownModel:
    """Look a model up.

    Args:
        model: As the runtime, router or cloud writes it.
        provider: Who served it, as the runtime calls them.
        url: The address that it was asked at; says the provider where `provider` does not.
        own: The user's table of models (`[models."name"]` of the settings); goes before everything else.
        table: Another table than the packaged one.
    """
    table = load_table() if table is None else table
    asked = provider_of(provider, url)
    mine = _own(model, own or {}, table)
    if mine is not None:
        return mine
    ways = list(spellings(model))
    for spelling in ways:
        for served in filter(None, (asked, spelling.provider)):
            row = _served(table, served, spelling)
            if row is not None:
                # `anthropic/claude-…` is the maker, or how a router spells it.
                routed = asked is None and served in MAKERS and table.carried(model.strip())
                return _known(model, row, spelling, "routed" if routed else "listed", table)
    asked = asked or next((way.provider for way in ways if way.provider in table.providers), None)
    # Nobody said who serves it, or those that were named do not list it.
    found = next(filter(None, (_made(model, way, table) for way in ways)), None)
    found = found or next(filter(None, (_carried(model, way, table) for way in ways)), None)
    if found is None:
        return KnownModel(
            model[:200], asked, None, None, None, None, Prices(), (), "unknown", "No provider lists it."
        )
    if asked is not None:
        how = "maker" if found.how == "agreed" else found.how
        return found._replace(how=how, note=f"{asked} does not list it. {found.note}")
    return found


def near_names(model: str, count: int = 3, table: Table | None = None) -> list[str]:
    """Names in the table like this one, the nearest first."""
    from difflib import get_close_matches

    table = load_table() if table is None else table
    return get_close_matches(model.strip().lower()[:80], list(table.models()), count)


def _served(table: Table, provider: str, spelling: Spelling) -> Row | None:
    for name in (provider, f"{provider}-anthropic"):  # Vertex lists Anthropic's models apart
        row = table.row(name, spelling.name)
        if row is not None:
            return row
    return None


def _made(asked: str, spelling: Spelling, table: Table) -> KnownModel | None:
    """A model as its maker serves it."""
    rows = (table.row(maker, spelling.name) for maker in MAKERS)
    row = next((row for row in rows if row is not None), None)
    return _known(asked, row, spelling, "maker", table) if row is not None else None


def _carried(asked: str, spelling: Spelling, table: Table) -> KnownModel | None:
    """A model of which no maker is known here: what those that list it agree on."""
    rows = table.carried(spelling.name)
    if not rows:
        return None
    if len(rows) == 1:
        return _known(asked, rows[0], spelling, "reseller", table)
    window, max_input, max_output = (_same(row[field] for row in rows) for field in (3, 4, 5))
    agreed = window is not None
    agreement = "agree on its window" if agreed else "disagree on its window: name the provider"
    return KnownModel(
        asked[:200], None, rows[0].model, window, max_input if agreed else None, max_output, Prices(), (),
        "agreed" if agreed else "disputed",
        _sentence(f"{len(rows)} providers list it and {agreement}", spelling), rows,
        source=table.source_of(max(rows, key=lambda row: row.source)),
    )  # fmt: skip


def _known(asked: str, row: Row, spelling: Spelling, how: str, table: Table) -> KnownModel:
    others = tuple(other for other in table.carried(row.model) if other is not row)
    if how == "maker" and others and all(model_limits(other) == model_limits(row) for other in others):
        how = "agreed"
    how = "maker" if how == "routed" else how
    note = {
        "listed": f"As {row.provider} lists it",
        "agreed": f"As {row.provider} serves it, and all others that list it",
        "maker": f"As {row.provider} serves it; other providers may differ",
        "reseller": f"Only {row.provider} lists it; other providers may differ",
    }[how]
    window, max_input = row.window, row.max_input
    if large_window(asked):
        window, max_input = MILLION, None
        note += "; the name asks for a window of 1,000,000"
    prices, tiers = (Prices(), ()) if spelling.tuned else (row.prices, row.tiers)
    return KnownModel(
        asked[:200], row.provider, row.model, window, max_input, row.max_output, prices, tiers, how,
        _sentence(note, spelling), others, row.deprecated, row.updated, table.source_of(row), spelling.tuned,
    )  # fmt: skip


def model_limits(row: Row) -> tuple[int | None, int | None]:
    """What decides whether a prompt fits: the window, and the most input."""
    return row.window, row.max_input


def _sentence(text: str, spelling: Spelling) -> str:
    tuned = "; what a fine-tune costs is not known" if spelling.tuned else ""
    return f"{text}{f' ({spelling.change})' if spelling.change else ''}{tuned}."


def _same(values: Iterable[Any]) -> Any:
    found = set(values)
    return found.pop() if len(found) == 1 else None


def _own(model: str, own: Mapping[str, Mapping[str, Any]], table: Table) -> KnownModel | None:
    """The user's own entry; what it leaves out comes from the model that it says it is `like`."""
    entry = next((e for name, e in own.items() if name.lower() == model.strip().lower()), None)
    if entry is None:
        return None
    like = entry.get("like")
    base = find_model(like, entry.get("provider"), table=table) if isinstance(like, str) else None
    prices = Prices(
        *(entry.get(f"{name}_price", getattr(base.prices, name) if base else None) for name in Prices._fields)
    )
    window, max_input, max_output = (
        entry.get(field, getattr(base, field) if base else None)
        for field in ("window", "max_input", "max_output")
    )
    if "input_price" in entry and "cache_write_1h_price" not in entry:
        prices = prices._replace(cache_write_1h=None)  # follows from the input's, as documented
    served = entry.get("provider") or (base.provider if base else None)
    note = "From the settings" + (f", the rest as {like}" if base is not None else "") + "."
    tiers = base.tiers if base and "input_price" not in entry else ()
    named = base.model if base else model[:200]
    return KnownModel(
        model[:200], served, named, window, max_input, max_output, prices, tiers, "settings", note
    )
