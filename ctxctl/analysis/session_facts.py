"""Compute the facts of one session for a list (`model.session_list.SessionFacts`)."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from ctxctl.analysis.cost_groups import CostWords
from ctxctl.analysis.costs import add_cost, cost_of
from ctxctl.fleet.captures import lasting
from ctxctl.fleet.packing import packed
from ctxctl.fleet.session_list import ReadSession
from ctxctl.importers.whereabouts import recorded_directory
from ctxctl.model.cost_sums import CostSums
from ctxctl.model.problem import Problem
from ctxctl.model.results import Step
from ctxctl.model.session_list import PROMPT, SessionFacts
from ctxctl.model.vocab import MAIN_THREAD
from ctxctl.prompt_words import says_words
from ctxctl.session.facade import Inspector
from ctxctl.tokens.catalogue.rates import RateBook
from ctxctl.trace.inputs import recording

_MAX_TURNS = 16
"""Turns whose prompts are searched for one that does not begin with a client's own note (`<…>`)."""


def work(path: str, format_name: str, words: bytes, _more: bytes) -> tuple[bytes, bool]:
    """Return what a capture holds and cost, as an encoded `ReadSession`; `words`: encoded `CostWords`.

    Raises what `Inspector.open` raises.
    """
    with recording() as inputs:
        facts, problems = _facts(path, format_name, words)
    keep = inputs.settled and lasting(format_name, _asked(words)[0].policy, problems)
    listings = [(*key, digest) for key, digest in inputs.listings.items()]
    return packed(ReadSession(facts, inputs.files, listings, keep)), keep


def _facts(path: str, format_name: str, words: bytes) -> tuple[SessionFacts, list[Problem]]:
    asked, book = _asked(words)
    sums = CostSums()
    prompts: list[str] = []
    times: list[str] = []
    with Inspector.open(
        path, target=asked.target, model=asked.model, encoding=asked.encoding, policy=asked.policy,
        format=format_name, calibration=asked.calibration, learned=asked.learned, own_models=asked.models,
    ) as inspector:  # fmt: skip
        for result in inspector.replay():
            if not isinstance(result, Step):
                if len(prompts) < _MAX_TURNS and result.thread == MAIN_THREAD and result.title:
                    prompts.append(result.title[:PROMPT])
                continue
            add_cost(sums, cost_of(result, book))
            if result.time is not None:
                times = (
                    [min(times[0], result.time), max(times[1], result.time)] if times else 2 * [result.time]
                )
        summary = inspector.summary
        assert summary is not None
        facts = SessionFacts(
            directory=recorded_directory(path),
            prompt=next((text for text in prompts if says_words(text)), (*prompts, None)[0]),
            sessions=summary.sessions,
            turns=summary.turns,
            steps=summary.steps,
            sent=sums.sent_tokens.context + sums.unsized_tokens,
            unbilled=sums.unreported,
            unsized=sums.unsized,
            cost=sums.cost,
            counted=sums.is_counted,
            at_least=sums.at_least,
            first=times[0] if times else None,
            last=times[1] if times else None,
            stated=sums.stated,
        )
        return facts, inspector.problems


@lru_cache(maxsize=4)
def _asked(words: bytes) -> tuple[CostWords, RateBook]:
    """Return the settings and the source of prices, whose lookups are reused for the next session."""
    asked = msgspec.msgpack.decode(words, type=CostWords)
    return asked, RateBook(asked.models, asked.provider, asked.as_of)
