"""The limits of a model where a trace records none: the settings', or the packed table's if it is sure.

The table speaks of a provider's window on the day that it was taken.  A client may open a smaller one
(`tokens.catalogue.clients`), and an account may have a larger one (`contradicted`).  What is left for the
answer is not known of any of them, so a prompt may be as long as `KnownLimit.cap`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from ctxctl.tokens.catalogue.clients import SERVED_BY, client_window
from ctxctl.tokens.catalogue.find import KnownModel, find_model, model_limits
from ctxctl.tokens.catalogue.names import large_window, provider_of
from ctxctl.tokens.catalogue.table import Table, load_table

_SURE: Final = frozenset(("settings", "listed", "agreed", "maker"))
_ITS_OWN: Final = frozenset(("", "-anthropic"))
"""What the table may add to a provider's name."""


class KnownLimit(NamedTuple):
    """A model's limits in tokens; all None: nobody can say, and the note says why."""

    window: int | None
    """Input and output together."""
    max_input: int | None
    """A limit on the input by itself, where one is listed."""
    max_output: int | None
    note: str
    """One sentence, with who says it and when."""
    how: str
    """As `catalogue.find.Known.how`; `client`: the client opens a smaller window than the provider has, or
    the table does not know the model; `contradicted`."""

    @property
    def cap(self) -> int | None:
        """The longest prompt: an answer's room is not known, so all of the window that input may take."""
        known = [size for size in (self.window, self.max_input) if size is not None]
        return min(known) if known else None


NOTHING: Final = KnownLimit(None, None, None, "No model is recorded.", "unknown")


class LimitBook:
    """`known_limit` for one table of settings; each model with its provider and client is looked up once."""

    def __init__(self, own: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        self._own = own
        self._known: dict[tuple[str | None, ...], KnownLimit] = {}

    def of(
        self,
        model: str | None,
        provider: str | None,
        runtime: str | None = None,
        version: str | None = None,
    ) -> KnownLimit:
        """As `known_limit`."""
        key = (model, provider, runtime, version)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = known_limit(
                model, provider, self._own, runtime=runtime, version=version
            )
        return found


def known_limit(
    model: str | None,
    provider: str | None,
    own: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    runtime: str | None = None,
    version: str | None = None,
    table: Table | None = None,
) -> KnownLimit:
    """The limits of a model of which a trace records none; never a guess.

    Args:
        model: As the trace names it.
        provider: Who served it, as the trace says; None: it does not.
        own: The user's table of models (`[models."name"]` of the settings); goes before everything else.
        runtime: Format of the capture (`claude-code`): some clients open smaller windows than there are, or
            get their models from one provider.
        version: Of that client.
        table: Another table than the packaged one.
    """
    if model is None:
        return NOTHING
    if not own and table is None:
        return _packaged(model, provider, runtime, version)
    return _known(model, provider, own, runtime, version, table)


@lru_cache(maxsize=256)
def _packaged(model: str, provider: str | None, runtime: str | None, version: str | None) -> KnownLimit:
    """By the packaged table alone: the same of every capture."""
    return _known(model, provider, None, runtime, version, None)


def _known(
    model: str,
    provider: str | None,
    own: Mapping[str, Mapping[str, Any]] | None,
    runtime: str | None,
    version: str | None,
    table: Table | None,
) -> KnownLimit:
    table = load_table() if table is None else table
    provider = provider or SERVED_BY.get(runtime or "")
    known = find_model(model, provider, own=own, table=table)
    opened = client_window(runtime, version, model)
    why = _unsure(known, provider)
    if why is not None and opened is not None and known.how == "unknown":
        return KnownLimit(opened.window, None, None, opened.note, "client")
    if why is not None:
        return KnownLimit(None, None, None, why, known.how)
    if known.how == "settings":
        return KnownLimit(
            known.window, known.max_input, known.max_output, _told(known, "the settings"), known.how
        )
    if opened is not None and known.window is not None and opened.window < known.window:
        output = min(known.max_output, opened.window) if known.max_output is not None else None
        return KnownLimit(opened.window, None, output, opened.note, "client")
    served = f"{known.source}, for {known.model} as {known.provider} serves it"
    if known.provider is None:
        served = f"{known.source}, for {known.model}, on which all that list it agree"
    if large_window(model):
        served = (
            f"the model's name, which asks for it; {known.model} is of {known.provider or 'any provider'}"
        )
    elif known.how == "maker":
        served += "; others may differ"
    return KnownLimit(known.window, known.max_input, known.max_output, _told(known, served), known.how)


def contradicted(limit: KnownLimit, billed: int | None) -> KnownLimit:
    """The limit, or that it is unknown: a request that was answered does not exceed its window.

    Args:
        limit: What `known_limit` gave.
        billed: Input tokens, caches included, of a request that was answered; best the most that this model
            was ever billed in the session, for the window stays what it was shown to be.
    """
    cap = limit.cap
    if billed is None or cap is None or billed <= cap or limit.how == "settings":
        return limit
    note = (
        f"Unknown: {billed:,} tokens were billed and answered, so it is not {cap:,}, which was {limit.note}"
    )
    return KnownLimit(None, None, None, note, "contradicted")


def _unsure(known: KnownModel, provider: str | None) -> str | None:
    """Why the table's answer is not one to rely on; None: it is."""
    if known.how not in _SURE:
        return f"Unknown: {known.note[:1].lower()}{known.note[1:]}"
    if known.window is None and known.max_input is None:
        return "Unknown: the model is listed without a window."
    asked = provider_of(provider)
    if asked is None or known.how == "settings" or known.provider is None:
        return None
    if known.provider.removeprefix(asked) in _ITS_OWN:
        return None
    mine = (known.window, known.max_input)
    if known.others and all(model_limits(row) == mine for row in known.others):
        return None
    others = f"others differ ({known.provider}: {_size(known)})"
    return f"Unknown: the provider that is recorded does not list it, and {others}."


def _told(known: KnownModel, who: str) -> str:
    inner = f" (input up to {known.max_input:,})" if known.max_input is not None and known.window else ""
    return f"{_size(known)}{inner} by {who}."


def _size(known: KnownModel) -> str:
    size = known.window if known.window is not None else known.max_input
    return f"{size:,}" if size is not None else "no window"
