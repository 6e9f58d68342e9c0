"""``ctxctl models``: windows, limits and prices that are known without a network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from ctxctl.cli import options as opt
from ctxctl.cli.parameters import Argument, Done, Option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxctl.cli.output import Output
    from ctxctl.tokens.catalogue.find import KnownModel
    from ctxctl.tokens.catalogue.table import Prices, Row

Name = Annotated[
    str | None,
    Argument(metavar="[NAME]", help="A model's name, as a trace, a router or a cloud provider writes it."),
]
Provider = Annotated[
    str | None,
    Option(
        "--provider", metavar="NAME", help="The provider that serves it: limits and prices depend on that."
    ),
]


@opt.takes(opt.PAGED)
def models(
    options: opt.CommonOptions,
    name: Name = None,
    provider: Provider = None,
) -> None:
    """Show a model's window, limits and prices; without a name, all models by maker, or one provider's."""
    from ctxctl.cli.run import begin
    from ctxctl.tokens.catalogue.find import find_model
    from ctxctl.tokens.catalogue.names import provider_of

    run = begin(options)
    if name is None:
        _list(provider_of(provider), run.settings.models, run.out, json=options.json)
    else:
        known = find_model(name, provider, own=run.settings.models)
        if known.how == "unknown":
            _unknown(name, provider)
        _tell(known, run.out, json=options.json)
    run.out.flush()
    raise Done(0)


def _unknown(name: str, provider: str | None) -> None:
    from ctxctl.errors import UsageError
    from ctxctl.text import visible
    from ctxctl.tokens.catalogue.find import near_names

    alike = near_names(name)
    hint = f"similar names: {', '.join(alike)}; or " if alike else ""
    raise UsageError(
        "unknown-model",
        f"no model called {visible(name[:80])!r} is known",
        hint=f'{hint}define it in ctxctl.toml: [models."NAME"] with window = 128000',
    )


def _list(provider: str | None, own: dict[str, dict[str, object]], out: Output, *, json: bool) -> None:
    """Models of one provider, or of all makers; the user's own first."""
    from ctxctl.errors import UsageError
    from ctxctl.report.catalogue import catalogue_date
    from ctxctl.report.tables import Column, table
    from ctxctl.text import visible
    from ctxctl.tokens.catalogue.find import find_model
    from ctxctl.tokens.catalogue.names import MAKERS
    from ctxctl.tokens.catalogue.table import load_table
    from ctxctl.wording import number

    known = load_table()
    if provider is not None and provider not in known.providers:
        from difflib import get_close_matches

        alike = get_close_matches(provider, sorted(known.providers), 3)
        raise UsageError(
            "unknown-provider",
            f"no provider called {visible(provider[:80])!r} is known",
            hint=f"similar names: {', '.join(alike)}" if alike else f"makers are {', '.join(MAKERS)}",
        )
    mine = [find_model(name, own=own) for name in own]
    rows = [row for row in known.rows if (row.provider == provider if provider else row.provider in MAKERS)]
    if json:
        for entry in mine:
            out.json(_model_object(entry))
        for row in rows:
            out.json(_row_object(row))
        return
    columns = (
        Column("provider", least=8), Column("model", least=20), Column("window", right=True),
        Column("max input", right=True), Column("max output", right=True), Column("$/M in", right=True),
        Column("out", right=True),
    )  # fmt: skip
    cells = [
        (
            e.provider or "settings",
            e.asked,
            *_limits(e.window, e.max_input, e.max_output),
            *_dollars(e.prices),
        )
        for e in mine
    ]
    cells += [
        (
            row.provider,
            row.model,
            *_limits(row.window, row.max_input, row.max_output),
            *_price_ends(row.prices),
        )
        for row in rows
    ]
    listed = table(columns, [tuple(visible(cell) for cell in row) for row in cells], out.width)
    out.lines([*listed.head, *(line for lines in listed.rows for line in lines)])
    others = "" if provider else f"; --provider NAME lists one of {len(known.providers)} providers"
    out.lines(["", f"{number(len(cells))} models; catalogue {catalogue_date()}{others}"])


def _tell(known: KnownModel, out: Output, *, json: bool) -> None:
    """One model, and who else lists it."""
    if json:
        out.json(_model_object(known))
        return
    out.lines(_model_lines(known, out.width))


def _model_lines(known: KnownModel, width: int) -> Iterator[str]:
    from ctxctl.report.catalogue import catalogue_date, catalogue_sources
    from ctxctl.report.tables import Column, labelled, table
    from ctxctl.text import visible
    from ctxctl.tokens.model_encodings import resolve_encoding
    from ctxctl.wording import number

    encoding = resolve_encoding(known.model or known.asked)
    facts = [
        ("model", known.model or known.asked),
        ("provider", known.provider or "not known"),
        ("found", known.note),
        ("window", _tokens(known.window)),
        ("max input", _tokens(known.max_input, "none listed")),
        ("max output", _tokens(known.max_output)),
        ("prices", _priced(known.prices)),
    ]
    facts += [(f"> {number(tier.above)}", _priced(tier.prices)) for tier in known.tiers]
    facts.append(("tokens", f"exact, {encoding.encoding}" if encoding.known else encoding.assumed))
    if known.deprecated:
        facts.append(("note", "its provider has deprecated it"))
    facts.append(
        ("source", (known.source or "the listed providers") if known.how != "settings" else "settings")
    )
    facts.append(("catalogue", f"{catalogue_date()}: {catalogue_sources()}"))
    for label, text in facts:
        yield from labelled(label, visible(text), width, indent=0, tab=12)
    if known.others:
        columns = (
            Column("other providers", least=8), Column("window", right=True), Column("max input", right=True),
            Column("max output", right=True), Column("$/M in", right=True), Column("cached", right=True),
            Column("write", right=True), Column("out", right=True),
        )  # fmt: skip
        rows = [
            (row.provider, *_limits(row.window, row.max_input, row.max_output), *_dollars(row.prices))
            for row in known.others
        ]
        listed = table(columns, rows, width)
        yield ""
        yield from listed.head
        yield from (line for lines in listed.rows for line in lines)


def _limits(*counts: int | None) -> tuple[str, ...]:
    from ctxctl.wording import number

    return tuple(number(count) for count in counts)


def _price_ends(prices: Prices) -> tuple[str, str]:
    """Prices of input and output alone: all that a line of a terminal has room for."""
    first, *_, last = _dollars(prices)
    return first, last


def _dollars(prices: Prices) -> tuple[str, ...]:
    from ctxctl.wording import NOT_KNOWN, price

    shown = (prices.input, prices.cache_read, prices.cache_write, prices.output)
    return tuple(NOT_KNOWN if one is None else price(one, bare=True) for one in shown)


def _tokens(count: int | None, unknown: str = "not known") -> str:
    return unknown if count is None else f"{count:,} tokens"


def _priced(prices: Prices) -> str:
    from ctxctl.wording import price

    named = (
        ("input", prices.input), ("cache read", prices.cache_read), ("cache write", prices.cache_write),
        ("cache write for 1 h", prices.cache_write_1h), ("output", prices.output),
        ("audio input", prices.audio_input), ("audio output", prices.audio_output),
        ("reasoning", prices.reasoning),
    )  # fmt: skip
    told = [f"{name} {price(one)}" for name, one in named if one is not None]
    return f"{', '.join(told)} for a million tokens" if told else "not known"


_PRICES = 5
"""Fields that every model has, if only as null."""


def _model_object(known: KnownModel) -> dict[str, object]:
    from ctxctl.report.jsonout import listed

    return {
        "type": "model",
        "asked": known.asked,
        "provider": known.provider,
        "model": known.model,
        "how": known.how,
        "sure": known.sure,
        "note": known.note,
        "window": known.window,
        "max_input": known.max_input,
        "max_output": known.max_output,
        "usd_per_mtok": listed(known.prices, _PRICES),
        "tiers": [listed(tier, _PRICES + 1) for tier in known.tiers],
        "deprecated": known.deprecated,
        "updated": known.updated,
        "source": known.source or None,
        "others": [_row_object(row) for row in known.others],
    }


def _row_object(row: Row) -> dict[str, object]:
    from ctxctl.report.jsonout import listed
    from ctxctl.tokens.catalogue.table import load_table

    return {
        "type": "model",
        "provider": row.provider,
        "model": row.model,
        "window": row.window,
        "max_input": row.max_input,
        "max_output": row.max_output,
        "usd_per_mtok": listed(row.prices, _PRICES),
        "tiers": [listed(tier, _PRICES + 1) for tier in row.tiers],
        "deprecated": row.deprecated,
        "updated": row.updated,
        "source": load_table().source_of(row),
    }
