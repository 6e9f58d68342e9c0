"""The packed table of models: windows, limits and prices by provider, known without a network.

The table is of models.dev, litellm and genai-prices (MIT; `data/NOTICE`), packed by
``scripts/build_models.py``; `load_table().date` says how new it is, `Table.source_of` whose a row
is and of when.  The same model has other limits and prices with another provider, so a row is of both.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from ctxctl.typed_decoding import from_json

DATA: Final = Path(__file__).parent.parent / "data" / "models.json.z"


class Prices(NamedTuple):
    """US dollars for a million tokens; None: not known (and not: free)."""

    input: float | None = None
    output: float | None = None
    cache_read: float | None = None
    cache_write: float | None = None
    cache_write_1h: float | None = None
    """Of what is kept for an hour."""
    audio_input: float | None = None
    audio_output: float | None = None
    reasoning: float | None = None
    """Of an answer's reasoning, where it is not priced like the rest of it."""


class Tier(NamedTuple):
    """Prices of a whole request whose input is larger than `above` tokens."""

    above: int
    input: float | None = None
    output: float | None = None
    cache_read: float | None = None
    cache_write: float | None = None
    cache_write_1h: float | None = None
    audio_input: float | None = None
    audio_output: float | None = None
    reasoning: float | None = None

    @property
    def prices(self) -> Prices:
        """Without the bound."""
        return Prices(*self[1:])


class Row(NamedTuple):
    """One model with one provider; None where the table does not say."""

    provider: str
    model: str
    family: str | None
    window: int | None
    """Tokens of input and output together."""
    max_input: int | None
    max_output: int | None
    prices: Prices
    tiers: tuple[Tier, ...]
    """By rising bound."""
    updated: str | None
    """When the source last changed it: YYYY-MM-DD, or less."""
    deprecated: bool
    source: int = 0
    """Whose row it is: a number of `Table.sources`."""


class Table:
    """All rows, found by provider and by model; names are compared without regard to case."""

    def __init__(self, date: str, rows: Iterable[Row], sources: Iterable[tuple[str, str]] = ()) -> None:
        by_model: dict[str, list[Row]] = {}
        for row in rows:
            by_model.setdefault(row.model.lower(), []).append(row)
        self._by_model: dict[str, tuple[Row, ...] | msgspec.Raw] = {
            name: tuple(of) for name, of in by_model.items()
        }
        """By name in lower case; what was packed is decoded when it is asked for: one model of 5,000 is."""
        self.date = date
        """YYYY-MM-DD: of the newest of its sources that is dated."""
        self.sources = tuple(sources)
        """Names, and of when each is: a date, or a package's version; the oldest first."""
        self.providers = frozenset(row.provider for of in by_model.values() for row in of)

    @classmethod
    def unpacked(cls, data: bytes) -> Table:
        """The table that ``scripts/build_models.py`` packed."""
        packed = from_json(zlib.decompress(data), _Packed)
        made = cls(packed.date, (), packed.sources)
        made._by_model.update(packed.models)
        made.providers = frozenset(packed.providers)
        return made

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """All of them, by provider and model."""
        rows = (row for name in self._by_model for row in self.carried(name))
        return tuple(sorted(rows, key=lambda row: (row.provider, row.model)))

    def row(self, provider: str, model: str) -> Row | None:
        """A model with one provider; of several spellings the last."""
        found = [row for row in self.carried(model) if row.provider == provider]
        return found[-1] if found else None

    def carried(self, model: str) -> tuple[Row, ...]:
        """The rows of all providers that list exactly this model, by provider."""
        found = self._by_model.get(model.lower(), ())
        if isinstance(found, msgspec.Raw):
            found = self._by_model[model.lower()] = from_json(found, tuple[Row, ...])
        return found

    def source_of(self, row: Row) -> str:
        """Whose row it is, and of when: one phrase."""
        if row.source >= len(self.sources):
            return f"models.dev, {self.date}"
        return ", ".join(self.sources[row.source])

    def models(self) -> Iterable[str]:
        """Names in lower case, each once."""
        return self._by_model


class _Packed(msgspec.Struct):
    date: str
    sources: list[tuple[str, str]]
    providers: list[str]
    models: dict[str, msgspec.Raw]


@lru_cache(maxsize=1)
def load_table() -> Table:
    """The table that is packaged; some 3 ms, once a process."""
    return Table.unpacked(DATA.read_bytes())
